"""Runs of DMAs, records of engines, and the passes that make them fit."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_programs import TRN1, TRN2, Program, complaints, insts, locs, same, through

from ncc.errors import NccError
from ncc.ir.bir import Ap
from ncc.ir.dma_runs import PARTITION, Runs, runs, steps
from ncc.ir.walks import together
from ncc.passes.bir import legalize_sizes, widen_psum

quick = settings(derandomize=True, deadline=None, max_examples=80)


def addresses(ap, on_chip, size):
    """The byte address of every element of an access, in walking order."""
    pairs = [(step * size, num) for step, num in ap.ap]
    if on_chip:
        pairs[0] = (PARTITION, ap.ap[0][1])
    return [
        sum(s * i for (s, _), i in zip(pairs, at, strict=True))
        for at in product(*(range(num) for _, num in pairs))
    ]


def moved(found):
    """The (source, destination) bytes that a descriptor's runs move, in order."""
    for at in product(*(range(n) for n, _, _ in found.walk)):
        a = sum(i * s for i, (_, s, _) in zip(at, found.walk, strict=True))
        b = sum(i * d for i, (_, _, d) in zip(at, found.walk, strict=True))
        yield from ((a + k, b + k) for k in range(found.src_size))


def check(src, dst, src_chip, dst_chip):
    found = steps(src, dst, src_chip, dst_chip)
    size = {"float32": 4, "bfloat16": 2}[src.dtype]
    pairs = zip(addresses(src, src_chip, size), addresses(dst, dst_chip, size), strict=True)
    assert list(moved(found)) == [(a + k, b + k) for a, b in pairs for k in range(size)]
    return found


def test_the_runs_of_a_plain_tile_are_its_rows():
    src = Ap("x", "bfloat16", ((512, 128), (1, 256)))
    dst = Ap("t", "bfloat16", ((256, 128), (1, 256)))
    assert runs(src, dst, False, True) == Runs(512, 512, ((128, 1024, PARTITION),))
    assert runs(src, dst, False, True).padded() == ((128, 1024, PARTITION), (1, 0, 0))


def test_the_runs_of_a_transposing_load_are_elements():
    src = Ap("x", "float32", ((1, 3), (7, 5)))
    dst = Ap("t", "float32", ((5, 3), (1, 5)))
    found = check(src, dst, False, True)
    assert found == Runs(4, 4, ((3, 4, PARTITION), (5, 28, 4)))
    assert found.padded() == ((5, 28, 4), (3, 4, PARTITION))


def test_a_row_may_be_sent_to_every_partition():
    src = Ap("x", "float32", ((0, 128), (1, 8)))
    dst = Ap("t", "float32", ((8, 128), (1, 8)))
    assert runs(src, dst, False, True) == Runs(32, 32, ((128, 0, PARTITION),))


def test_two_axes_of_partitions_are_two_steps():
    src = Ap("x", "float32", ((100, 2), (9, 4), (1, 8)))
    dst = Ap("t", "float32", ((8, 8), (1, 8)))
    found = check(src, dst, False, True)
    assert found == Runs(32, 32, ((2, 400, 4 * PARTITION), (4, 36, PARTITION)))


def test_a_run_is_at_most_64_kib():
    src, dst = Ap("x", "float32", ((1, 1), (1, 49284))), Ap("y", "float32", ((1, 1), (1, 49284)))
    found = runs(src, dst, False, False)
    assert found == Runs(49284, 49284, ((4, 49284, 49284),))
    prime = Ap("x", "float32", ((1, 1), (1, 65537)))
    assert runs(prime, prime, False, False) is None


@given(
    st.lists(st.sampled_from([1, 2, 3, 4, 6]), min_size=1, max_size=3),
    st.sampled_from([1, 2, 5]),
    st.booleans(),
)
@quick
def test_runs_move_what_the_patterns_say(nums, gap, dense):
    """Any regrouping of one walk: a DRAM side with gaps, a side on chip cut elsewhere."""
    rows = nums[0]
    cols = int(np.prod(nums[1:]))
    step, pairs = gap, []
    for n in reversed(nums):
        pairs.insert(0, (step, n))
        step *= n + (0 if dense else 1)
    pairs = pairs if len(pairs) > 1 else [(1, 1), *pairs]
    src = Ap("x", "float32", tuple(pairs))
    dst = Ap("t", "float32", ((cols + 3, rows), (1, cols)))
    check(src, dst, False, True)


def test_walks_of_different_length_do_not_go_together():
    assert together([[(1, 6)], [(1, 4)]]) is None
    assert together([[(9, 3), (1, 2)], [(7, 2), (1, 3)]]) is None


# legalize-sizes


def transposed(rows, cols, dtype="bfloat16", offset=0):
    p = Program()
    p.dram("x", (rows, cols), dtype, "ExternalInput")
    p.dram("y", (cols, rows), dtype, "ExternalOutput")
    width = rows + offset
    p.tile("a", cols, width, dtype)
    one = ((1, 1), (1, 1))
    out = p.at("a", pairs=((width, cols), *one, (1, rows)), offset=offset)
    of = p.at("x", pairs=((cols, rows), *one, (1, cols)))
    p.op("DMACopy", "DMA", [out], [of], mode="Transpose", transpose_op="XZYW")
    p.save("y", p.at("a", pairs=((width, cols), (1, rows)), offset=offset))
    return p.module()


@pytest.mark.parametrize(
    ("rows", "dtype", "target", "offset", "opcodes"),
    [
        (32, "bfloat16", TRN2, 0, ["DMACopy"]),
        (45, "bfloat16", TRN2, 0, ["DMACopy", "Load"]),
        (15, "bfloat16", TRN2, 0, ["Load"]),
        (32, "float32", TRN2, 0, ["Load"]),
        (32, "bfloat16", TRN1, 0, ["Load"]),
        (32, "bfloat16", TRN2, 16, ["DMACopy"]),
        (32, "bfloat16", TRN2, 5, ["Load"]),
    ],
)
def test_what_the_dma_unit_cannot_transpose_goes_by_elements(rows, dtype, target, offset, opcodes):
    m = transposed(rows, 7, dtype, offset)
    after = legalize_sizes.PASS.apply(m, target)
    assert [i.opcode for i in insts(after)[:-1]] == opcodes
    assert (after is m) == (opcodes == ["DMACopy"])
    assert same(m, after, target)
    assert complaints(after, target, "patterns-are-expressible") == []


@pytest.mark.parametrize(("rows", "opcode"), [(48, "DMACopy"), (40, "Load")])
def test_stripes_are_transposed_where_each_of_them_begins_aligned(rows, opcode):
    """Three matrices side by side: 40 rows of 2 bytes put the second at byte 80, no multiple of 32."""
    p = Program()
    p.dram("x", (rows, 3 * 7), "bfloat16", "ExternalInput")
    p.dram("y", (7, 3 * rows), "bfloat16", "ExternalOutput")
    p.tile("a", 7, 3 * rows, "bfloat16")
    out = p.at("a", pairs=((3 * rows, 7), (1, 1), (rows, 3), (1, rows)))
    of = p.at("x", pairs=((21, rows), (1, 1), (7, 3), (1, 7)))
    p.op("DMACopy", "DMA", [out], [of], mode="Transpose", transpose_op="XZYW")
    p.save("y", p.at("a"))
    m = p.module()
    after = legalize_sizes.PASS.apply(m, TRN2)
    assert {i.opcode for i in insts(after)[:-1]} - {"Save"} == {opcode}
    assert same(m, after, TRN2)
    assert complaints(after, TRN2, "patterns-are-expressible") == []


def test_a_dma_with_three_steps_becomes_as_few_as_possible():
    p = Program()
    p.dram("x", (8, 6, 5, 4), kind="ExternalInput")
    p.dram("y", (8, 30), kind="ExternalOutput")
    p.tile("a", 8, 30)
    p.load("a", p.at("x", pairs=((120, 8), (20, 6), (4, 5))))
    p.load("a", p.at("x", pairs=((120, 8), (4, 5), (20, 6))))
    p.save("y", "a")
    m = p.module()
    after = legalize_sizes.PASS.apply(m, TRN2)
    assert [i.name for i in insts(after)] == ["i0", "i1.0", "i1.1", "i1.2", "i1.3", "i1.4", "i2"]
    assert insts(after)[0] is insts(m)[0]
    assert same(m, after)
    assert complaints(after, TRN2, "patterns-are-expressible") == []


def test_a_long_uneven_run_becomes_two():
    p = Program()
    p.dram("x", (1, 65537), kind="ExternalInput")
    p.dram("y", (1, 65537), kind="ExternalOutput")
    p.op("DMACopy", "DMA", ["y"], ["x"])
    m = p.module()
    after = legalize_sizes.PASS.apply(m, TRN2)
    assert [i.outs[0].ap[-1][1] for i in insts(after)] == [65536, 1]
    assert same(m, after)


def test_a_step_that_does_not_fit_is_taken_by_two_instructions():
    """A copy of t[:, :, 0] of uint8 (128, 2, 46208)."""
    p = Program()
    p.dram("x", (128, 92416), "uint8", "ExternalInput")
    p.dram("y", (128, 2), "uint8", "ExternalOutput")
    p.tile("t", 128, 92416, "uint8")
    p.tile("u", 128, 2, "uint8")
    p.load("t", "x")
    p.copy("u", p.at("t", pairs=((92416, 128), (46208, 2))))
    p.save("y", "u")
    m = p.module()
    after = legalize_sizes.PASS.apply(m, TRN2)
    assert [i.name for i in insts(after)] == ["i0", "i1.0", "i1.1", "i2"]
    assert insts(after)[2].ins[0] == Ap("t", "uint8", ((92416, 128), (1, 1)), 46208)
    assert complaints(m, TRN2, "patterns-are-expressible") == [
        "patterns-are-expressible: NCC510 i1: TensorCopy walks t by [[92416,128],[46208,2]]; step "
        "46208 of dimension 1 is outside −32768 to 32767 (split the access, or make the tile "
        "narrower)"
    ]
    assert complaints(after, TRN2, "patterns-are-expressible") == []


def test_a_step_that_does_not_fit_and_is_taken_often_is_refused():
    p = Program()
    p.tile("t", 4, 40000 * 5, "uint8")
    p.tile("u", 4, 5, "uint8")
    p.op("StreamShuffle", "DVE", ["u"], [p.at("t", pairs=((200000, 4), (40000, 5)))])
    with pytest.raises(NccError) as said:
        legalize_sizes.PASS.apply(p.module(), TRN2)
    assert str(said.value) == (
        "NCC510 legalize-sizes, i0: StreamShuffle walks t by [[200000,4],[40000,5]]; step 40000 "
        "of dimension 1 is outside −32768 to 32767 (split the access, or make the tile narrower)"
    )


def test_a_sum_over_too_many_jumps_becomes_several():
    p = Program()
    p.dram("x", (4, 400), kind="ExternalInput")
    p.dram("y", (4, 48), kind="ExternalOutput")
    for n in "ab":
        p.tile(n, 4, 400)
        p.load(n, "x")
    p.tile("c", 4, 48)
    a = p.at("a", pairs=((400, 4), (100, 3), (30, 2), (9, 2), (2, 4)))
    b = p.at("b", pairs=((400, 4), (90, 3), (40, 2), (10, 2), (1, 4)))
    p.op("TensorTensor", "DVE", ["c"], [a, b], op="add")
    p.save("y", "c")
    m = p.module()
    after = legalize_sizes.PASS.apply(m, TRN2)
    assert len(insts(after)) == len(insts(m)) + 1
    assert same(m, after)
    assert complaints(after, TRN2, "patterns-are-expressible") == []


@pytest.mark.parametrize("cols", [65537, 3 * 43691, 17**4])
def test_a_row_longer_than_a_counter_becomes_several(cols):
    p = Program()
    p.dram("x", (2, cols), "uint8", "ExternalInput")
    p.dram("y", (2, cols), "uint8", "ExternalOutput")
    p.tile("a", 2, cols, "uint8")
    p.load("a", "x")
    p.copy("a", "a")
    p.save("y", "a")
    m = p.module()
    after = legalize_sizes.PASS.apply(m, TRN2)
    counts = [i.outs[0].ap[-1][1] for i in insts(after) if i.opcode == "TensorCopy"]
    assert sum(counts) == cols
    assert max(counts) <= 65535
    assert same(m, after)
    assert complaints(after, TRN2, "patterns-are-expressible") == []


@pytest.mark.parametrize(
    ("parts", "start", "said"),
    [
        (8, 5, "touches 8 partitions of a from partition 5; 8 may start at 0, 32, 64 or 96 only"),
        (40, 32, "touches 40 partitions of a from partition 32; 40 may start at 0 or 64 only"),
        (70, 32, "touches 70 partitions of a from partition 32; 70 may start at 0 only"),
    ],
)
def test_partitions_that_no_engine_can_start_at_are_refused(parts, start, said):
    p = Program()
    p.tile("a", 128, 8)
    p.op("Memset", "DVE", [p.at("a", parts, offset=8 * start)], [])
    with pytest.raises(NccError) as refused:
        legalize_sizes.PASS.apply(p.module(), TRN2)
    assert str(refused.value) == f"NCC505 legalize-sizes, i0: Memset {said}"


def test_a_tile_that_no_sbuf_holds_is_refused():
    p = Program()
    p.tile("a", 128, 60000)
    with pytest.raises(NccError) as said:
        legalize_sizes.PASS.apply(p.module(), TRN2)
    assert str(said.value) == (
        "NCC501 legalize-sizes, a: a takes 240000 bytes a partition, and trn2 has 212984 "
        "(cut the tile into smaller ones)"
    )


def test_sides_that_no_descriptor_walks_together_are_refused():
    p = Program()
    p.dram("x", (30, 30), kind="ExternalInput")
    p.tile("a", 4, 9)
    p.load(p.at("a", pairs=((9, 4), (1, 9))), p.at("x", pairs=((30, 9), (2, 4))))
    with pytest.raises(NccError) as said:
        legalize_sizes.PASS.apply(p.module(), TRN2)
    assert str(said.value) == (
        "NCC512 legalize-sizes, i0: Load moves x by [[30,9],[2,4]] to a by [[9,4],[1,9]]; a "
        "descriptor holds two equal steps above one run "
        "(give both sides equal counts, with fewer jumps)"
    )


# widen-psum


def test_narrow_cells_take_four_bytes_and_their_readers_follow():
    p = Program()
    p.dram("x", (4, 8), "bfloat16", "ExternalInput")
    p.dram("y", (4, 8), "bfloat16", "ExternalOutput")
    p.tile("a", 4, 8, "bfloat16")
    p.tile("ps", 4, 8, "bfloat16", memory="PSUM")
    p.tile("b", 4, 8, "bfloat16")
    p.load("a", "x")
    p.copy("ps", "a")
    p.copy("b", "ps")
    p.save("y", "b")
    m = p.module()
    after = widen_psum.PASS.apply(m, TRN2)
    assert locs(after)["ps"].dims == (4, 32)
    assert [i.outs[0].dtype for i in insts(after)[1:3]] == ["float32", "bfloat16"]
    assert same(m, after)
    assert complaints(after, TRN2, "psum-cells-are-four-bytes") == []
    assert insts(after)[0] is insts(m)[0]


def test_what_no_bank_holds_is_refused():
    p = Program()
    p.tile("ps", 128, 1024, memory="PSUM")
    p.op("Memset", "DVE", [p.at("ps", cols=512, offset=256)], [])
    with pytest.raises(NccError) as said:
        widen_psum.PASS.apply(p.module(), TRN2)
    assert str(said.value) == (
        "NCC504 widen-psum, i0: Memset touches bytes 1024 to 3072 of ps; a bank ends every 2048 "
        "bytes, and no access may pass its end (cut the access where the bank ends)"
    )
    p = Program()
    p.tile("ps", 128, 1024, "bfloat16", memory="PSUM")
    with pytest.raises(NccError) as said:
        widen_psum.PASS.apply(p.module(), TRN2.limited(psum=1))
    assert str(said.value) == (
        "NCC504 widen-psum, ps: ps takes 4096 bytes a partition, and the 1 banks of trn2,psum=1 "
        "have 2048 (cut the tile)"
    )


def test_through_is_the_identity_where_all_fits():
    m = transposed(32, 7)
    assert through(m, TRN2, legalize_sizes.PASS, widen_psum.PASS) is m
