"""The pass encode: instructions of every kind against records of the ISA reference."""

from __future__ import annotations

from typing import Any

import pytest
from order_programs import TAIL, TRN2, bytes_of, chip, dram, module, seed, through, whole

from ncc.encode.bundle import encode_bundle
from ncc.errors import NccError
from ncc.ir.bir import Ap, Imm, Inst, Loc, LocSet, Module, Update, Wait, with_insts
from ncc.ir.isa import Program
from ncc.passes import load
from ncc.target import TARGETS, Target

TRN1 = TARGETS["trn1"]


def records(sets: tuple[LocSet, ...], inst: Inst, target: Target = TRN2) -> list[str]:
    """The records of one instruction, as hexadecimal bytes."""
    made = module(sets, [inst], target.arch)
    made = with_insts(made, made.main.blocks[0].insts[:1])
    program: Program = load("output.encode").apply(made, target)
    streams = {s.engine: s.bundles for s in program.streams}
    return [encode_bundle(b, target.gen).hex() for b in streams[inst.engine]]


def tiles(*placed: tuple[str, str, int, int], memory: str = "SB") -> tuple[LocSet, ...]:
    """Tiles of 128 partitions: name, dtype, elements per partition, first byte."""
    return tuple(chip(name, dtype, (128, n), (at,), memory) for name, dtype, n, at in placed)


PSUM = tiles(("p", "float32", 512, 0), memory="PSUM")
ALL = (
    *PSUM,
    *tiles(
        ("h", "bfloat16", 512, 0x3000),
        ("bias", "float32", 1, 0x2000),
        ("sum", "float32", 1, 0x2004),
        ("inv", "float32", 1, 0x2014),
        ("in0", "bfloat16", 256, 0x4000),
        ("out", "float32", 256, 0x5000),
        ("half", "bfloat16", 256, 0x6000),
        ("wide", "float32", 2048, 0x7000),
        ("few", "float32", 4, 0x2010),
        ("cast", "bfloat16", 256, 0xA000),
        ("zero", "float32", 256, 0xC000),
    ),
)


def column(name: str) -> Ap:
    return whole(name, "float32", 128, 1)


VECTORS: list[tuple[Inst, str]] = [
    (
        Inst(
            "i",
            "Activation",
            "Activation",
            (whole("p", "float32", 128, 512), column("bias")),
            (whole("h", "bfloat16", 128, 512),),
            (("acc", "ZeroAccumulate"), ("func", "Exp"), ("scale", 0.125)),
        ),
        "2110000000000000000000000000030000000002010001000100000201000100aa0680070000003e002000000000000000300000010001000100000201000100",
    ),
    (
        Inst("i", "ActivationReadAccumulator", "Activation", (), (column("sum"),)),
        "24100000000000000000000000000000000000000000000000000000010000000a00800000000000000000000420000001000100000000000000000000000000",
    ),
    (
        Inst("i", "LoadActFuncSet", "Activation"),
        "23100000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    ),
    (
        Inst(
            "i",
            "TensorTensor",
            "DVE",
            (Ap("p", "float32", ((512, 128), (1, 256))), whole("in0", "bfloat16", 128, 256)),
            (whole("out", "float32", 128, 256),),
            (("op", "add"),),
        ),
        "4110000000000000000000006a0a0480000000020100010001000001010001000040000001000100010000010100010000500000010001000100000101000100",
    ),
    (
        Inst(
            "i",
            "TensorScalarPtr",
            "DVE",
            (whole("out", "float32", 128, 256), column("bias"), Imm(1.5)),
            (whole("half", "bfloat16", 128, 256),),
            (("op0", "mult"), ("op1", "add")),
        ),
        "43100000000000000000000000000000005000000100010001000001010001000a06800106040000002000000000c03f00600000010001000100000101000100",
    ),
    (
        Inst(
            "i",
            "TensorReduce",
            "DVE",
            (Ap("wide", "float32", ((2048, 128), (512, 4), (1, 512))),),
            (whole("few", "float32", 128, 4),),
            (("axis", "X"), ("negate", True), ("op", "max")),
        ),
        "42100000000000000000000000700000010000020100010000020400010001000a0a800108020000000000001020000001000100010001000400010001000100",
    ),
    (
        Inst(
            "i",
            "TensorCopy",
            "DVE",
            (Ap("p", "float32", ((512, 128), (1, 256))),),
            (whole("cast", "bfloat16", 128, 256),),
        ),
        "47100000000000000000000000000002010001000100010000010100010001000a068000000000000000000000a0000001000100010001000001010001000100",
    ),
    (
        Inst("i", "Reciprocal", "DVE", (column("sum"),), (column("inv"),)),
        "48100000000000000000000004200000010001000100010001000100010001000a0a800000000000000000001420000001000100010001000100010001000100",
    ),
    (
        Inst("i", "Memset", "DVE", (), (whole("zero", "float32", 128, 256),)),
        "49100000000000000000000000000000000000000000000000000000000100000a008000000000000000000000c0000001000100010001000001010001000100",
    ),
    (
        Inst(
            "i",
            "EventSemaphore",
            "SP",
            waits=(Wait("DVE", 4, 3, 4), Wait("SP", 1, 4, 1)),
        ),
        "a0100000050300000400000000000000000000000000000000000000000000000504000001000000000000000000000000000000000000000000000000000000",
    ),
    (
        Inst("i", "Exit", "PE"),
        "df100000000000000000000001000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000",
    ),
]


@pytest.mark.parametrize(("inst", "want"), VECTORS, ids=lambda x: getattr(x, "opcode", ""))
def test_records_are_those_of_the_reference(inst: Inst, want: str):
    assert records(ALL, inst) == [want]


def test_two_quadrants_on_trn2():
    sets = (
        chip("w", "bfloat16", (32, 32), (0,), base=32),
        chip("x", "bfloat16", (32, 64), (0x400,), base=32),
        chip("p", "float32", (32, 64), (2048,), "PSUM", base=64),
    )
    product = Inst(
        "i",
        "Matmult",
        "PE",
        (whole("x", "bfloat16", 32, 64), whole("w", "bfloat16", 32, 32)),
        (whole("p", "float32", 32, 64),),
        (("accumulation_flag", 3),),
    )
    assert records(sets, product) == [
        "01100000000000000000000000000000000080000100010001002000010001000600000000002020000000000204000000000000000000000000000000000000",
        "02100000000000000000000000000000000480000100010001004000010001000600000000002020000000030204000000082002010001000100400001000100",
    ]


def transpose() -> tuple[tuple[LocSet, ...], Inst]:
    sets = (
        chip("d", "bfloat16", (128, 128), (0x3000,)),
        chip("eye", "bfloat16", (128, 128), (0x3800,)),
        chip("p", "float32", (128, 128), (4096,), "PSUM"),
    )
    ins = whole("eye", "bfloat16", 128, 128), whole("d", "bfloat16", 128, 128)
    keys = (("accumulation_flag", 3), ("is_transpose", True))
    return sets, Inst("i", "Matmult", "PE", ins, (whole("p", "float32", 128, 128),), keys)


def test_a_transpose_on_trn2_copies():
    assert records(*transpose()) == [
        "01100000000000000000000000000000003000000100010001008000010001000600010000008080000000000f0f000000000000000000000000000000000000",
        "02100000000000000000000000000000003800000100010001008000010001000600010000008080000000030f0f000000100002010001000100800001000100",
    ]


def test_a_transpose_on_trn1_is_a_product():
    weights, product = records(*transpose(), TRN1)
    assert weights[0x22 * 2 : 0x23 * 2] == product[0x22 * 2 : 0x23 * 2] == "00"
    assert weights[0x2C * 2 : 0x2F * 2] == "0f0f10"


def test_the_seed_on_trn1_has_the_seeds_own_bundles():
    made = through(seed(), *TAIL)
    products = [i for i in made.main.blocks[0].insts if i.opcode == "Matmult"]
    made = with_insts(made, tuple(products))
    program: Program = load("output.encode").apply(made, TRN1)
    got = [encode_bundle(b, 2).hex() for b in program.streams[0].bundles]
    for t, flag in enumerate(("01", "00", "00", "02")):
        load_, multiply = got[2 * t], got[2 * t + 1]
        assert load_[:8] + load_[32:] == (
            f"0110000000{t:02x}0000010001000100800001000100"
            "0600000000008080000000000f0f100000000000000000000000000000000000"
        )
        assert multiply[:8] + multiply[32:] == (
            f"0210000000{4 + 2 * t:02x}0000010001000100000101000100"
            f"06000000000080800000 00{flag}0f0f100000000002010001000100000101000100".replace(
                " ", ""
            )
        )


def product(dtype: str, **keys: Any) -> list[str]:
    sets = (
        chip("w", dtype, (64, 16), (0,)),
        chip("x", dtype, (64, 8), (0x400,)),
        chip("p", "float32", (16, 8), (0,), "PSUM"),
    )
    return records(
        sets,
        Inst(
            "i",
            "Matmult",
            "PE",
            (whole("x", dtype, 64, 8), whole("w", dtype, 64, 16)),
            (whole("p", "float32", 16, 8),),
            tuple(sorted(keys.items())),
            waits=(Wait("qSP", 1, 12, 16),),
            updates=(Update("PE", 0, 1),),
        ),
    )


@pytest.mark.parametrize(("flag", "first", "second"), [(3, 1, 2), (1, 1, 0), (4, 0, 0), (6, 0, 2)])
def test_fp32_goes_through_the_array_twice(flag: int, first: int, second: int):
    four = product("float32", accumulation_flag=flag)
    assert [r[:2] for r in four] == ["01", "02", "01", "02"]
    assert [int(r[0x21 * 2 : 0x22 * 2], 16) for r in four] == [2, 3, 1, 3]
    assert [int(r[0x2B * 2 : 0x2C * 2], 16) for r in four[1::2]] == [first, second]
    assert [r[8:24] for r in four] == ["050c000010000000", "0" * 16, "0" * 16, "0000130000000000"]


def test_a_warm_matmul_is_one_record_with_the_wait():
    (only,) = product("bfloat16", accumulation_flag=3, weights_loaded=True)
    assert only[:2] == "02" and only[8:24] == "050c130010000000"
    cold = product("bfloat16", accumulation_flag=3)
    assert [r[8:24] for r in cold] == ["050c000010000000", "0000130000000000"]


def test_a_copy_on_activation_is_the_function_copy():
    one = Inst("i", "TensorCopy", "Activation", (column("sum"),), (column("inv"),))
    (got,) = records(ALL, one)
    assert got[:2] == "21" and got[0x23 * 2 : 0x28 * 2] == "800000803f"
    assert got[0x0C * 2 : 0x10 * 2] == "01000001"


def test_relu_with_a_column_as_bias():
    one = Inst(
        "i",
        "Activation",
        "Activation",
        (whole("out", "float32", 128, 256), column("bias")),
        (whole("half", "bfloat16", 128, 256),),
        (("func", "Relu"),),
    )
    (got,) = records(ALL, one)
    assert got[0x23 * 2 : 0x30 * 2] == "02" + "0000803f" + "00200000" + "00000000"
    assert got[0x0F * 2 : 0x10 * 2] == "00"
    (bare,) = records(ALL, Inst("i", "Activation", "Activation", one.ins[:1], one.outs, one.keys))
    assert bare[0x28 * 2 : 0x2C * 2] == "00000000" and bare[0x0F * 2 : 0x10 * 2] == "01"


def test_tensor_scalar_has_its_numbers_in_the_record():
    one = Inst(
        "i",
        "TensorScalar",
        "DVE",
        (whole("out", "float32", 128, 256),),
        (whole("out", "float32", 128, 256),),
        (("const0", 0.0), ("op0", "max")),
    )
    (got,) = records(ALL, one)
    assert got[0x20 * 2 : 0x30 * 2] == "0a0a80000800000000000000" + "00000000"


def move(src: Ap, dst: Ap, target: Target = TRN2, opcode: str = "Load", **keys: Any) -> list[str]:
    sets = (
        dram("x", "bfloat16", (512, 256), "ExternalInput"),
        dram("y", "float32", (300, 200), "ExternalOutput"),
        chip("t", "bfloat16", (128, 256), (0x400,)),
        chip("u", "float32", (128, 256), (0x800,)),
    )
    all_keys = tuple(sorted({"queue": "qSP", **keys}.items()))
    updates = (Update("qSP", 12, 16),)
    return records(sets, Inst("i", opcode, "SP", (src,), (dst,), all_keys, updates=updates), target)


def test_a_transpose_by_elements_where_the_unit_cannot():
    src = Ap("x", "bfloat16", ((256, 24), (1, 1), (1, 1), (1, 100)))
    dst = Ap("t", "bfloat16", ((256, 100), (1, 1), (1, 1), (1, 24)))
    keys = {"mode": "Transpose", "transpose_op": "XZYW"}
    (got,) = move(src, dst, opcode="DMACopy", **keys)  # 24 rows are no multiple of 16
    assert got[0x0F * 2 : 0x10 * 2] == "00"
    assert got[0x18 * 2 : 0x26 * 2] == "00020000" + "02000000" + "18006400" + "0200"
    assert got[0x30 * 2 : 0x3E * 2] == "02000000" + "00000400" + "18006400" + "0200"
    src = Ap("x", "bfloat16", ((256, 32), (1, 1), (1, 1), (1, 100)))
    dst = Ap("t", "bfloat16", ((256, 100), (1, 1), (1, 1), (1, 32)))
    assert len(move(src, dst, opcode="DMACopy", **keys)) == 2
    assert len(move(src, dst, TRN1, opcode="DMACopy", **keys)) == 1


def test_a_transfer_that_casts_has_two_sizes():
    src = Ap("x", "bfloat16", ((256, 128), (1, 200)))
    (got,) = move(src, Ap("u", "float32", ((256, 128), (1, 200))))
    assert got[0x24 * 2 : 0x26 * 2] == "9001" and got[0x3C * 2 : 0x3E * 2] == "2003"
    assert got[0x3E * 2 :] == "060a"


def test_variables_come_in_the_order_of_their_kinds():
    scratch = LocSet(
        "s", "float32", (4, 8), locs=(Loc("s", "DRAM", (1, 128), 4096, allocated=True),)
    )
    declared = LocSet(
        "f",
        "bfloat16",
        (4, 8),
        "ExternalInput",
        locs=(Loc("f", "DRAM", (1, 64), allocated=True),),
        declared="float8_e4m3fn",
    )
    a = chip("a", "float32", (4, 8), (0,))
    sets = (
        scratch,
        dram("y", "float32", (4, 8), "ExternalOutput"),
        dram("k", "float32", (4, 8), "Const"),
        dram("x", "float32", (4, 8), "ExternalInput"),
        declared,
        a,
    )
    save = Inst(
        "i",
        "Save",
        "Activation",
        (whole("a", "float32", 4, 8),),
        (whole("s", "float32", 4, 8),),
        (("queue", "qActivation"),),
        updates=(Update("qActivation", 9, 16),),
    )
    program: Program = encoded(sets, save)
    assert [(v.name, v.id, v.kind, v.offset) for v in program.vars] == [
        ("x", 1, "input", 0),
        ("f", 2, "input", 0),
        ("y", 3, "output", 0),
        ("k", 4, "file", 0),
        ("s", 5, "virtual", 4096),
    ]
    assert program.vars[1].declared == "float8_e4m3fn"
    (bundle,) = program.streams[1].bundles
    assert dict(bundle.fields)["dst"].var == 5 and dict(bundle.fields)["dst"].byte == 0


def encoded(sets: tuple[LocSet, ...], *insts: Inst) -> Program:
    made: Module = with_insts(module(sets, []), insts)
    program: Program = load("output.encode").apply(made, TRN2)
    return program


def test_an_input_is_read_at_the_place_of_its_location():
    (got,) = move(
        Ap("x", "bfloat16", ((256, 8), (1, 256)), 256 * 16), whole("t", "bfloat16", 8, 256)
    )
    assert got[0x10 * 2 : 0x18 * 2] == "00200000" + "01000010"


@pytest.mark.parametrize(
    ("inst", "said"),
    [
        (
            Inst("i", "BNGradients", "Pool"),
            "NCC607 i: BNGradients has no record; it should be gone before encode",
        ),
        (Inst("i", "NoOp", "ALL"), "NCC607 i: NoOp is on engine ALL, which has no stream"),
        (
            Inst("i", "NoOp", "PE", waits=(Wait("SP", 1, 4, 1), Wait("DVE", 1, 3, 1))),
            "NCC606 i: has 2 waits, and its record holds 1 (alloc-sems divides them)",
        ),
        (
            Inst(
                "i",
                "TensorTensor",
                "DVE",
                (column("sum"),) * 2,
                (column("inv"),),
                (("op", "average"),),
            ),
            "NCC606 i: does average, which has no code",
        ),
        (
            Inst(
                "i",
                "Matmult",
                "PE",
                (whole("in0", "bfloat16", 128, 64), whole("half", "bfloat16", 128, 64)),
                (whole("p", "float32", 64, 64),),
                (("accumulation_flag", 3), ("perf_mode", "DoubleRow")),
            ),
            "NCC606 i: has perf_mode=DoubleRow, and no record of ncc's packs rows or columns (two "
            "products, one for each half of the rows, give the same sum)",
        ),
        (
            Inst("i", "TensorCopy", "DVE", (column("sum"),), (whole("nowhere", "float32", 1, 1),)),
            "NCC606 i: touches nowhere, which has no place",
        ),
    ],
)
def test_what_no_record_says_is_refused(inst: Inst, said: str):
    with pytest.raises(NccError) as told:
        encoded(ALL, inst)
    assert str(told.value) == said


def test_every_record_can_be_traced_to_its_instruction():
    made = through(seed(), *TAIL)
    program: Program = load("output.encode").apply(made, TRN2)
    passes = {b.origin.passes[-1] for s in program.streams for b in s.bundles}
    assert passes == {"encode"}


def test_the_stream_is_the_same_twice():
    assert bytes_of(through(seed(), *TAIL)) == bytes_of(through(seed(), *TAIL))
