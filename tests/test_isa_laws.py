"""The laws of ISA programs: what the rules' pages do not show, one planted fault each."""

from __future__ import annotations

import pytest
from isa_programs import MIXED, matmul

from ncc.encode.laws import LAWS, nodes, signature
from ncc.encode.text import parse
from ncc.target import TARGETS


def complaints(text, target="trn2"):
    program, machine = parse(text), TARGETS[target]
    found = []
    for law in LAWS:
        if law.node:
            found += [w for node in nodes(program) for w in law.check(node, program, machine)]
        else:
            found += law.check(program, machine)
    return [f"{w.code} {w.place}: {w.said}" for w in found]


def test_good_programs_obey():
    assert complaints(matmul()) == []
    assert complaints(MIXED, "trn1") == []


def test_the_signature_is_in_order_and_as_declared():
    assert signature(parse(MIXED)) == (
        (("x y", "float8_e4m3fn", (4, 8)),),
        (("sb", "float32", (4, 8)),),
    )


PLANTED = [
    ("num_active_rows=128", "num_active_rows=0", "NCC703 bundle 0 of PE (LoadStationary)"),
    ("row_grp=15 col_grp=15", "row_grp=1 col_grp=15", "row_grp 0x1 holds 32 partitions"),
    ("row_grp=15 col_grp=15", "row_grp=15 col_grp=15 xbus_sel=16", "xbus_sel is 0x10"),
    ("row_grp=15 col_grp=15", "row_grp=15 col_grp=0", "NCC712"),
    ("moving=sb[0]+0x400[1:256]", "moving=ps[0]bank1+0x0[1:256]", "moving is not in SBUF"),
    ("dst=ps[0]bank0+0x0[1:256]", "dst=sb[0]+0x0[1:256]", "dst is not in PSUM"),
    ("dst=ps[0]bank0+0x0[1:256]", "dst=ps[0]bank0+0x404[1:256]", "dst leaves its bank"),
    ("dst=ps[0]bank0+0x0[1:256]", "dst=ps[0]bank9+0x0[1:256]", "NCC705"),
    ("in_dtype=bfloat16 num", "in_dtype=int32 num", "in_dtype int32 is no input of PE"),
    (
        "in_dtype=bfloat16 num",
        "fp32_mode=high in_dtype=float32 num",
        "its LoadStationary has float32",
    ),
    ("in_dtype=bfloat16 num", "fp32_mode=high in_dtype=bfloat16 num", "has fp32_mode 2"),
    ("update=S0++\n  Exit", "update=S0++", "the stream ends with Matmul"),
    ("  Exit\nstream Act", "  Exit\n  Exit\nstream Act", "an Exit stands before the end"),
    ("tile_src_rows=16", "tile_src_rows=15", "the tile of an Extension is 15 x 128"),
    ("src_size=256 dst", "src_size=258 dst", "NCC729"),
    ("dst_step=(32,0)", "dst_step=(48,0)", "multiples of 32"),
    ("dst=v3+0x0", "dst=v3+0x4", "dst touches bytes 4 to 131075 of out, which has 131072"),
    ("dst=v3+0x0", "dst=v4+0x0", "dst is in variable 4, which there is not"),
    ("dst=v3+0x0", "dst=v1+0x0", "dst is lhs, which is an input and is only read"),
    ("src=v1+0x300", "src=v1+0x302", "src touches bytes 770 to 131073 of lhs"),
    ("semaphore=9 sem", "semaphore=8 sem", "raises S[8] by 16, and qActivation has S[9] by 16"),
    ("sem_increment=16", "sem_increment=17", "sem_increment is 17, outside 1..16"),
    ("queue qSP owner=SP semaphore=12 num_queues=16\n", "", "no queue of SP is declared"),
    ("owner=SP semaphore=12", "owner=SP semaphore=9", "is not the only one"),
    ("dst_step=(262144,0)", "dst_step=(0,0)", "dst repeats with step 0"),
    ("src=sb[0]+0xc00 src", "src=sb[1]+0xc00 src", "src touches partitions 1 to 128"),
    ("src=sb[0]+0xc00 src", "src=sb[0]+0x37e00 src", "src touches bytes 228864 to 229887"),
    ("dst_dtype=float32\n", "dst_dtype=int64\n", "do not both travel"),
    ("target=cayman", "target=sunda", "NCC744"),
    ("id=3", "id=4", "variable 3 has the id 4"),
    ("var rhs id=2 kind=input", "var lhs id=2 kind=input", "two variables have this name"),
    ("kind=output", "kind=outputs", "'outputs' is no kind"),
    ("kind=output", "kind=file", "a file has data, and nothing else has"),
    ("var lhs id=1 kind=input", "var lhs id=1 kind=virtual", "an input comes after virtuals"),
]


@pytest.mark.parametrize(("old", "new", "said"), PLANTED)
def test_a_planted_fault_is_named(old, new, said):
    text = matmul()
    assert old in text
    found = complaints(text.replace(old, new, 1))
    assert any(said in x for x in found), found


def test_pool_has_no_psum():
    text = MIXED.replace(
        "stream Pool\n",
        "stream Pool\n  Copy src=ps[0]bank0+0x0[1:4] in_dtype=float32 out_dtype=float32 nchan=4"
        " dst=sb[0]+0x40[1:4]\n",
    )
    assert complaints(text, "trn1") == [
        "NCC707 bundle 0 of Pool (Copy): src is in PSUM, which Pool cannot reach"
    ]


def test_column_group_8_does_not_work_on_generation_2():
    text = MIXED.replace(
        "stream PE\n",
        "stream PE\n  LoadStationary src=sb[0]+0x0[1:32] in_dtype=bfloat16 num_active_rows=32"
        " num_active_cols=32 row_grp=1 col_grp=8\n",
    )
    assert complaints(text, "trn1") == [
        "NCC712 bundle 0 of PE (LoadStationary): col_grp 8 does not work on generation 2"
    ]


def test_generation_2_has_no_transposing_dma():
    text = MIXED.replace(
        "semaphore=10 sem_increment=4 src=v1",
        "dge_op=transpose semaphore=10 sem_increment=4 src=v1",
        1,
    )
    assert any("dge_op 2 on generation 2" in x for x in complaints(text, "trn1"))
