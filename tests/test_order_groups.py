"""Accumulation groups: flags, and that sums are right with them."""

from __future__ import annotations

import numpy as np
import pytest
from order_programs import SIZE, TRN2, through

from ncc.errors import NccError
from ncc.interp.bir import run
from ncc.ir.bir import Module
from ncc.ir.bir_order_laws import accumulation_flags_are_set
from ncc.ir.bir_text import parse, show
from ncc.ir.psum_groups import Groups
from ncc.passes import load
from ncc.target import TARGETS

HEAD = """module m {arch}
  func sg0000
    set w bfloat16 (16,8) kind=ExternalInput
      loc w DRAM (1,256) allocated=true
    set x bfloat16 (16,4) kind=ExternalInput
      loc x DRAM (1,128) allocated=true
    set y float32 (8,4) kind=ExternalOutput
      loc y DRAM (1,128) allocated=true
    set z float32 (8,4) kind=ExternalOutput
      loc z DRAM (1,128) allocated=true
    set ws bfloat16 (16,8) memory=SB
      loc ws SB (16,16) allocated=true
    set xs bfloat16 (16,4) memory=SB
      loc xs SB (16,8) addr=16 allocated=true
    set p float32 (8,4) memory=PSUM
      loc p PSUM (8,16) allocated=true
    set q float32 (8,4) memory=PSUM
      loc q PSUM (8,16) {place} allocated=true
    set a float32 (8,4) memory=SB
      loc a SB (8,16) addr=32 allocated=true
    set b float32 (8,4) memory=SB
      loc b SB (8,16) addr=48 allocated=true
    block Block1
      l0 = Load DMA ws:bfloat16[[8,16],[1,8]] <- w:bfloat16[[8,16],[1,8]]
      l1 = Load DMA xs:bfloat16[[4,16],[1,4]] <- x:bfloat16[[4,16],[1,4]]
"""
LINES = {
    "P": "Matmult PE p:float32[[4,8],[1,4]] <- xs:bfloat16[[4,16],[1,4]] ws:bfloat16[[8,16],[1,8]]",
    "rp": "TensorCopy DVE a:float32[[4,8],[1,4]] <- p:float32[[4,8],[1,4]]",
    "rq": "TensorCopy DVE b:float32[[4,8],[1,4]] <- q:float32[[4,8],[1,4]]",
    "zp": "Memset DVE p:float32[[4,8],[1,4]]",
    "op": "Memset DVE p:float32[[4,8],[1,4]] constant=1065353216",
    "lp": "Memset DVE p:float32[[4,8],[1,2]]",
    "hp": "Memset DVE p:float32[[4,8],[1,2]]+2",
    "zq": "Memset DVE q:float32[[4,8],[1,4]]",
    "T": "Matmult PE q:float32[[4,8],[1,4]] <- xs:bfloat16[[4,4],[1,4]] ws:bfloat16[[8,4],[1,8]] is_transpose=true",
}
LINES["Q"] = LINES["P"].replace("p:", "q:")
LINES["P+"], LINES["Q+"] = (LINES[x] + " accumulate=true" for x in "PQ")


def build(words: str, place: str = "addr=16", arch: str = "gen3") -> Module:
    """A program of the words: P and Q start a group, P+ and Q+ add to it, rp and rq read."""
    body = [f"      i{n} = {LINES[word]}" for n, word in enumerate(words.split())]
    body.append("      s0 = Save DMA y:float32[[4,8],[1,4]] <- a:float32[[4,8],[1,4]]")
    body.append("      s1 = Save DMA z:float32[[4,8],[1,4]] <- b:float32[[4,8],[1,4]]")
    body.append("      e = Exit ALL")
    return parse(HEAD.format(arch=arch, place=place) + "\n".join(body) + "\n")


def flags(made: Module) -> list[int]:
    found = [dict(i.keys) for i in made.main.blocks[0].insts if i.opcode == "Matmult"]
    assert not any("accumulate" in keys for keys in found)
    return [keys["accumulation_flag"] for keys in found]


CASES = [
    # one group
    ("P rp Q rq", "addr=16", [3, 3], 1, 1),
    ("P P+ rp Q rq", "addr=16", [1, 6, 3], 2, 1),
    ("P P+ P+ P+ rp Q rq", "addr=16", [1, 4, 4, 6, 3], 4, 1),
    # two groups in one bank, one after the other, both alive
    ("P P+ Q Q+ rp rq", "addr=16", [1, 6, 4, 6], 2, 2),
    ("P Q Q+ rp rq", "addr=16", [3, 4, 6], 1, 2),
    # interleaved
    ("P Q P+ Q+ Q+ P+ rp rq", "addr=16", [1, 4, 4, 4, 6, 6], 3, 3),
    ("Q P Q+ rq P+ rp", "addr=16", [1, 4, 6, 6], 2, 2),
    # the second begins when the first has been read
    ("P P+ rp Q Q+ rq", "addr=16", [1, 6, 1, 6], 2, 2),
    # each in a bank of its own
    ("P Q P+ Q+ rp rq", "addr=2048 bank=1", [1, 1, 6, 6], 2, 2),
    # one bank, other column groups
    ("P Q P+ Q+ rp rq", "base=32", [1, 1, 6, 6], 2, 2),
    # a value that is read in the middle, then added to again
    ("P P+ rp P+ rp Q rq", "addr=16", [1, 6, 6, 3], 3, 1),
    # zeros that the program wrote itself: START makes the same
    ("zp P+ P+ rp Q rq", "addr=16", [1, 6, 3], 2, 1),
    ("zp zq P+ Q+ P+ rp rq", "addr=16", [1, 6, 6], 2, 1),
    # the place is used again
    ("P P+ rp P P+ P+ rp Q rq", "addr=16", [1, 6, 1, 4, 6, 3], 3, 1),
]


@pytest.mark.parametrize(("words", "place", "want", "p", "q"), CASES)
def test_sums_and_flags_are_right(words: str, place: str, want: list[int], p: int, q: int):
    made = build(words, place)
    draw = np.random.default_rng(1)
    w = draw.integers(-4, 5, (16, 8)).astype(np.float32)
    x = draw.integers(-4, 5, (16, 4)).astype(np.float32)
    done = load("bir.mm_acc_flags").apply(made, TRN2)
    assert flags(done) == want
    assert not list(accumulation_flags_are_set(done, TRN2))
    for module in (made, done):
        y, z = run(module, TRN2, [w, x])
        np.testing.assert_array_equal(y, p * (w.T @ x))
        np.testing.assert_array_equal(z, q * (w.T @ x))


def test_adding_to_a_value_of_the_program_takes_no_start():
    done = load("bir.mm_acc_flags").apply(build("op P+ P+ rp Q rq"), TRN2)
    assert flags(done) == [4, 6, 3]


@pytest.mark.parametrize("words", ["P P+ P+ rp Q Q+ rq", "P Q P+ Q+ rp rq", "P P+ rp P+ rp Q rq"])
def test_flags_that_are_there_give_the_same_flags(words: str):
    once = load("bir.mm_acc_flags").apply(build(words), TRN2)
    assert flags(load("bir.mm_acc_flags").apply(once, TRN2)) == flags(once)


def test_a_part_that_is_written_over_needs_its_place_no_more():
    text = show(build("P rp Q rq")).replace("i2 = Matmult PE q:", "i2 = Matmult PE p:")
    text = text.replace(
        "i2 = Matmult PE p:float32[[4,8],[1,4]] <- xs:bfloat16[[4,16],[1,4]]",
        "i2 = Matmult PE p:float32[[4,8],[1,2]] <- xs:bfloat16[[4,16],[1,2]]",
    )
    text = text.replace("<- q:float32[[4,8],[1,4]]", "<- p:float32[[4,8],[1,2]]").replace(
        "b:float32[[4,8],[1,4]] <- p", "b:float32[[4,8],[1,2]] <- p"
    )
    assert flags(load("bir.mm_acc_flags").apply(parse(text), TRN2)) == [3, 3]


def test_parts_that_cover_a_value_together_end_it():
    """Two halves hide all of P: a reader of its place needs P no more, and Q may zero the bank."""
    halves = build("P lp hp rp Q rq")
    names = [inst.name for inst in halves.main.blocks[0].insts]
    lasts = {value.name: names[value.last] for value in Groups(halves).values}
    assert lasts["i0"] == "i0" and lasts["i1"] == lasts["i2"] == "i3"
    half = build("P lp rp Q rq")
    names = [inst.name for inst in half.main.blocks[0].insts]
    assert {value.name: names[value.last] for value in Groups(half).values}["i0"] == "i2"


def test_a_value_that_is_added_to_later_is_not_zeroed():
    with pytest.raises(NccError, match=r"NCC603 i1: the group of i1 .* would zero i0"):
        load("bir.mm_acc_flags").apply(build("op Q P+ rp rq"), TRN2)


def test_zeros_that_somebody_reads_are_not_zeroed_by_a_start():
    made = build("zp P+ rp Q rq")
    wide = "      i9 = TensorCopy DVE a:float32[[4,8],[1,4]] <- q:float32[[4,8],[1,4]]\n"
    text = show(made).replace(
        "      i0 = Memset", "      i8 = Memset DVE q:float32[[4,8],[1,4]]\n      i0 = Memset"
    )
    text = text.replace("      i2 = ", f"{wide}      i2 = ")
    assert flags(load("bir.mm_acc_flags").apply(parse(text), TRN2)) == [6, 3]


def test_a_transpose_on_trn2_zeroes_no_bank():
    made = build("P T P+ rp rq")
    assert flags(load("bir.mm_acc_flags").apply(made, TRN2)) == [1, 3, 6]
    done = through(made, "mm_acc_flags", "flow_deps", "anti_deps")
    found = {i.name: dict(i.deps) for i in done.main.blocks[0].insts}
    assert "i0" in found["i1"]  # the bank that P zeroed
    assert found["i4"] == {"i1": "Flow"}


def test_a_transpose_on_trn1_is_a_product_like_any_other():
    made = build("T rq P rp", arch="sunda")
    done = load("bir.mm_acc_flags").apply(made, TARGETS["trn1"])
    assert flags(done) == [3, 3]
    with pytest.raises(NccError, match="NCC603"):
        load("bir.mm_acc_flags").apply(build("P Q rq T rp", arch="sunda"), TARGETS["trn1"])


def test_a_start_that_would_wipe_a_value_is_refused_naming_both():
    with pytest.raises(NccError) as told:
        load("bir.mm_acc_flags").apply(build("P Q rq Q rp rq"), TRN2)
    assert str(told.value) == (
        "NCC603 i3: the group of i3 (bytes 16 to 32 of bank 0, partitions 0 to 8) cannot start: it "
        "would zero i0 (bytes 0 to 16 of bank 0, partitions 0 to 8), which is still needed, and its "
        "own bytes are not zero (give one of the two another bank)"
    )


def test_adding_to_nothing_is_refused():
    with pytest.raises(NccError, match="NCC604 i0: adds to bytes of PSUM that nothing has written"):
        load("bir.mm_acc_flags").apply(build("P+ rp Q rq"), TRN2)


@pytest.mark.parametrize(
    ("words", "index", "flag", "code", "said"),
    [
        ("P P+ rp Q rq", 0, 4, "NCC611", "adds to bytes of PSUM that nothing has written"),
        ("P P+ rp Q rq", 1, 4, "NCC612", "reads the group of i1 before"),
        ("P Q P+ Q+ rp rq", 1, 1, "NCC611", "its START would zero the group of i0"),
        ("P Q Q+ rp rq", 1, 1, "NCC612", "reads bytes of PSUM that the START of i1 has zeroed"),
        ("P P+ rp Q rq", 0, 5, "NCC611", "has accumulation_flag 5"),
        ("P P+ rp Q rq", 1, 2, "NCC611", "has accumulation_flag 2"),
    ],
)
def test_a_wrong_flag_is_named(words: str, index: int, flag: int, code: str, said: str):
    from ncc.ir.bir import with_insts
    from ncc.ir.bir_change import with_keys

    done = load("bir.mm_acc_flags").apply(build(words), TRN2)
    insts = list(done.main.blocks[0].insts)
    at = [n for n, i in enumerate(insts) if i.opcode == "Matmult"][index]
    insts[at] = with_keys(insts[at], "test", accumulation_flag=flag)
    first = next(iter(accumulation_flags_are_set(with_insts(done, tuple(insts)), TRN2)))
    assert first.code == code and first.said.startswith(said)


def test_random_interleavings_of_two_groups_in_one_bank():
    draw = np.random.default_rng(5)
    w = draw.integers(-4, 5, (16, 8)).astype(np.float32)
    x = draw.integers(-4, 5, (16, 4)).astype(np.float32)
    shared = 0
    for _ in range(60):
        counts = {"P": int(draw.integers(1, 5)), "Q": int(draw.integers(1, 5))}
        order = draw.permutation(list("P" * counts["P"] + "Q" * counts["Q"]))
        words: list[str] = []
        left = dict(counts)
        for name in map(str, order):
            words.append(name if left[name] == counts[name] else f"{name}+")
            left[name] -= 1
            if not left[name] and draw.integers(0, 2):
                words.append(f"r{name.lower()}")
        words += [f"r{name.lower()}" for name in "PQ" if f"r{name.lower()}" not in words]
        done = load("bir.mm_acc_flags").apply(build(" ".join(words)), TRN2)
        shared += sum(flag & 1 for flag in flags(done)) == 1
        assert not list(accumulation_flags_are_set(done, TRN2))
        y, z = run(done, TRN2, [w, x])
        np.testing.assert_array_equal(y, counts["P"] * (w.T @ x))
        np.testing.assert_array_equal(z, counts["Q"] * (w.T @ x))
    assert 20 < shared < 60
    assert SIZE["float32"] == 4
