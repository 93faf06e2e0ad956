"""The colouring engine and the three allocators: nobody's bytes meet, and refusals say why."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_programs import TRN1, TRN2, Program, complaints, locs, same, through

from ncc.errors import NccError
from ncc.ir.bir import with_insts
from ncc.ir.colouring import Node, blocking, choices, colour, impact
from ncc.ir.core import Origin
from ncc.ir.intervals import first_gap, last_gap, peak
from ncc.ir.locations import with_locs
from ncc.ir.sbuf_rectangles import LOWER, QUADRANT, TALL
from ncc.passes.bir import (
    alloc_dram,
    alloc_psum,
    alloc_sbuf,
    insert_spills,
    liveness,
    reserve_runtime,
)
from ncc.target import target as read_target

quick = settings(derandomize=True, deadline=None, max_examples=60)
CLASSES = [QUADRANT, *((b,) for b in QUADRANT), LOWER, *((b,) for b in LOWER), TALL]


def test_how_many_positions_a_placed_neighbour_can_block():
    """The table of the reference's nine height classes, derived from its definition."""
    table = [[blocking(mine, other) for mine in CLASSES] for other in CLASSES]
    assert table[0] == [1, 1, 1, 1, 1, 1, 1, 1, 1]
    assert table[1] == [1, 1, 0, 0, 0, 1, 1, 0, 1]
    assert table[5] == [2, 1, 1, 1, 1, 1, 1, 1, 1]
    assert table[6] == [2, 1, 1, 0, 0, 1, 1, 0, 1]
    assert table[8] == [4, 1, 1, 1, 1, 2, 1, 1, 1]


def test_the_degree_test_of_three_wide_tiles():
    """Three tiles of 80 KiB in 192 KiB: each capacity is the reference's −26621."""
    nodes = [Node(n, 0, 9, 10240, TALL) for n in "abc"]
    assert choices(nodes[0], 24576) - 2 * impact(nodes[0], nodes[1]) == -26621


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(1, 9)), max_size=8), st.integers(1, 8))
@quick
def test_gaps_are_free_and_extreme(spans, align):
    taken = [(start, start + size) for start, size in spans]

    def free(at):
        return at % align == 0 and all(at + 5 <= a or b <= at for a, b in taken)

    fits = [at for at in range(76) if free(at)]
    assert first_gap(taken, 5, align, 80) == (fits[0] if fits else None)
    assert last_gap(taken, 5, align, 80) == (fits[-1] if fits else None)


nodes_ = st.lists(
    st.tuples(
        st.integers(0, 40),
        st.integers(0, 12),
        st.integers(1, 12),
        st.sampled_from([TALL, LOWER, QUADRANT, LOWER[:1], QUADRANT[:1]]),
        st.sampled_from([1, 1, 4]),
        st.sampled_from([1.0, 5.0, float("inf")]),
    ),
    min_size=1,
    max_size=40,
)


@given(nodes_, st.integers(12, 64))
@quick
def test_coloured_rectangles_are_disjoint_legal_and_complete(rows, budget):
    nodes = [Node(f"n{i}", lo, lo + more, *rest) for i, (lo, more, *rest) in enumerate(rows)]
    found = colour(nodes, budget)
    assert set(found.places) | set(found.unplaced) == {n.name for n in nodes}
    grid = {}
    for n in nodes:
        if n.name not in found.places:
            continue
        bands, start = found.places[n.name]
        assert bands in n.bands
        assert start % n.align == 0
        assert 0 <= start <= start + n.size <= budget
        for t in range(n.lo, n.hi + 1):
            for band in (b for b in QUADRANT if b & bands):
                for unit in range(start, start + n.size):
                    assert (t, band, unit) not in grid, f"{n.name} on {grid[t, band, unit]}"
                    grid[t, band, unit] = n.name


@given(nodes_)
@quick
def test_what_the_degree_test_promises_is_kept(rows):
    """Nodes that are all sure of a place get one."""
    nodes = [Node(f"n{i}", lo, lo + more, *rest) for i, (lo, more, *rest) in enumerate(rows)]
    budget = 2000
    sure = all(choices(n, budget) > sum(impact(n, o) for o in nodes if o is not n) for n in nodes)
    assert not sure or not colour(nodes, budget).unplaced


def test_what_stands_already_is_neither_moved_nor_met():
    fixed = Node("k", 0, 9, 4, fixed=(1, 2))
    found = colour([fixed, Node("a", 0, 9, 2), Node("b", 0, 9, 3)], 9)
    assert found.places == {"k": (1, 2), "a": (1, 0), "b": (1, 6)}


def test_peak_is_the_first_worst_moment():
    assert peak([(0, 4, 3), (2, 6, 5), (5, 9, 4)]) == (9, 5)


# PSUM


def sums(lives, banks):
    """A program of memsets and copies in which PSUM tiles live as told."""
    p = Program()
    p.tile("o", 128, 512, ring=True)
    for n, b in enumerate(banks):
        p.tile(f"p{n}", 128, 512 * b, memory="PSUM")
    for t in range(max(hi for _, hi in lives) + 1):
        name = [n for n, span in enumerate(lives) if t in span]
        for n in name:
            part = p.at(f"p{n}", cols=512)
            if t == lives[n][0]:
                p.op("Memset", "DVE", [part], [])
            else:
                p.copy("o", part)
    return p.module()


def test_banks_of_the_reference():
    """p0 1 bank live 0-3, p1 2 banks live 1-5, p2 1 bank live 4-6: banks 0, 2 and 0."""
    m = sums([(0, 3), (1, 5), (4, 6)], [1, 2, 1])
    m = through(m, TRN2, liveness.PASS, alloc_psum.PASS)
    assert [locs(m)[f"p{n}"].bank for n in range(3)] == [0, 2, 0]
    assert [locs(m)[f"p{n}"].addr for n in range(3)] == [0, 4096, 0]
    assert complaints(m, TRN2, "live-sums-share-no-bank", "sums-are-aligned") == []


def nine(arch="gen3"):
    """Nine sums that are all open when the last one ends."""
    p = Program(arch)
    p.tile("w", 4, 128)
    p.tile("x", 4, 512)
    p.op("Memset", "DVE", ["w"], [])
    p.op("Memset", "DVE", ["x"], [])
    for n in range(9):
        p.tile(f"p{n}", 128, 512, memory="PSUM", origin=Origin("nine.py", n + 3))
    for k in (0, 1):
        for n in range(9):
            p.matmul(f"p{n}", "x", "w", k > 0)
    p.tile("o", 128, 512, ring=True)
    for n in range(9):
        p.copy("o", f"p{n}")
    return p.module()


def test_nine_open_sums_are_refused_by_name_and_bank():
    m = through(nine(), TRN2, liveness.PASS)
    with pytest.raises(NccError) as said:
        alloc_psum.PASS.apply(m, TRN2)
    tiles = [f"p{n} 1 bank (nine.py:{n + 3})" for n in range(9)]
    assert str(said.value) == (
        "NCC503 nine.py:3, alloc-psum, p0: 9 PSUM tiles that are live at i10 take 9 banks, and "
        f"trn2 has 8: {', '.join(tiles[:-1])} and {tiles[-1]} "
        "(copy a finished sum to SBUF before the next one starts)"
    )


def test_finished_sums_go_to_sbuf_when_banks_are_few():
    p = Program()
    p.dram("x", (4, 128), kind="ExternalInput")
    p.dram("y", (128, 128), kind="ExternalOutput")
    p.tile("a", 4, 128)
    p.load("a", "x")
    for n in range(5):
        p.tile(f"p{n}", 128, 128, memory="PSUM")
        p.matmul(f"p{n}", "a", "a")
    p.tile("s", 128, 128)
    p.op("TensorTensor", "DVE", ["s"], ["p0", "p1"], op="add")
    for n in (2, 3, 4):
        p.tile(f"s{n}", 128, 128)
        p.add(f"s{n}", "s" if n == 2 else f"s{n - 1}", f"p{n}")
    p.save("y", "s4")
    m = through(p.module(), TRN2, liveness.PASS)
    two = TRN2.limited(psum=2)
    after = alloc_psum.PASS.apply(m, two)
    copies = [i.name for i in after.main.blocks[0].insts if i.name.endswith(".spill")]
    assert copies, "five sums in two banks need copies"
    facts = ("every-sum-has-banks", "live-sums-share-no-bank", "sums-are-aligned")
    assert complaints(after, two, *facts, "live-ranges-are-measured") == []
    assert max(x.bank for x in locs(after).values() if x.type == "PSUM") < 2
    assert same(m, after, two)


# SBUF


def wide(tiles=3, cols=24642, arch="gen3"):
    """An elementwise sum of wide tiles; with two, the sum is written over the first."""
    p = Program(arch)
    for n in "AB":
        p.dram(n, (128, cols), kind="ExternalInput")
    p.dram("C", (128, cols), kind="ExternalOutput")
    for line, n in enumerate("abc"[:tiles], 3):
        p.tile(n, 128, cols, origin=Origin("add.py", line))
    p.load("a", "A")
    p.load("b", "B")
    p.add("c" if tiles == 3 else "a", "a", "b")
    p.save("C", "c" if tiles == 3 else "a")
    return p.module()


ALL = (reserve_runtime.PASS, liveness.PASS, alloc_psum.PASS, alloc_sbuf.PASS, insert_spills.PASS)


@pytest.mark.parametrize("name", ["trn1", "trn2", "trn3"])
def test_three_wide_tiles_fit_nowhere(name):
    where = read_target(name)
    with pytest.raises(NccError) as said:
        through(wide(), where, *ALL)
    assert str(said.value) == (
        "NCC502 add.py:3, insert-spills, a: 3 tiles that are live at i2 take 295704 bytes a "
        f"partition, and {name} has {where.sbuf_usable}: a 98568 bytes (add.py:3), "
        "b 98568 bytes (add.py:4) and c 98568 bytes (add.py:5) "
        "(make the tiles smaller, or keep fewer of them at a time)"
    )


def test_two_wide_tiles_fit_where_there_is_room():
    for name in ("trn2", "trn3"):
        m = through(wide(2), read_target(name), *ALL)
        assert {x.addr for x in locs(m).values() if x.name in "ab"} == {0, 98568}
    with pytest.raises(NccError) as said:
        through(wide(2), TRN1, *ALL)
    assert said.value.code == "NCC502"


def test_small_tiles_move_to_other_quadrants_only_when_they_must():
    p = Program()
    p.dram("x", (32, 8), kind="ExternalInput")
    p.dram("y", (32, 8), kind="ExternalOutput")
    for n in range(4):
        p.load(p.tile(f"t{n}", 32, 8), "x")
    for n in range(4):
        p.save("y", f"t{n}")
    m = through(p.module(), TRN2, liveness.PASS)
    roomy = locs(alloc_sbuf.PASS.apply(m, TRN2))
    assert [(roomy[f"t{n}"].base, roomy[f"t{n}"].addr) for n in range(4)] == [
        (0, 0),
        (0, 32),
        (0, 64),
        (0, 96),
    ]
    tight = alloc_sbuf.PASS.apply(m, TRN2.limited(sbuf=32))
    assert sorted(locs(tight)[f"t{n}"].base for n in range(4)) == [0, 32, 64, 96]
    assert complaints(tight, TRN2, "live-tiles-are-disjoint", "tiles-are-aligned") == []


def test_what_one_instruction_reads_together_starts_at_partition_0():
    p = Program()
    p.dram("x", (32, 8), kind="ExternalInput")
    p.dram("y", (32, 8), kind="ExternalOutput")
    for n in "abc":
        p.tile(n, 32, 8)
    p.load("a", "x")
    p.load("b", "x")
    p.add("c", "a", "b")
    p.save("y", "c")
    m = through(p.module(), TRN2, liveness.PASS, alloc_sbuf.PASS)
    assert (locs(m)["a"].base, locs(m)["b"].base) == (0, 0)
    with pytest.raises(NccError):
        tight = TRN2.limited(sbuf=32)
        through(p.module(), tight, liveness.PASS, alloc_sbuf.PASS, insert_spills.PASS)


def test_the_transposing_dma_lands_on_32_bytes():
    p = Program()
    p.dram("x", (16, 4), "bfloat16", "ExternalInput")
    p.dram("y", (4, 16), "bfloat16", "ExternalOutput")
    p.tile("odd", 4, 4, "bfloat16")
    p.tile("a", 4, 16, "bfloat16")
    p.op("Memset", "DVE", ["odd"], [])
    one = ((1, 1), (1, 1))
    out, of = p.at("a", pairs=((16, 4), *one, (1, 16))), p.at("x", pairs=((4, 16), *one, (1, 4)))
    p.op("DMACopy", "DMA", [out], [of], mode="Transpose", transpose_op="XZYW")
    p.save("y", "a")
    p.save(p.at("y", cols=4), "odd")
    m = through(p.module(), TRN2, liveness.PASS, alloc_sbuf.PASS)
    assert (locs(m)["odd"].addr, locs(m)["a"].addr) == (0, 32)


def test_a_place_that_a_kernel_chose_stands():
    m = through(wide(2, cols=16), TRN2)
    func = m.main
    sets = tuple(
        attrs.evolve(s, locs=(attrs.evolve(s.locs[0], addr=24, allocated=True, pinned=True),))
        if s.name == "b"
        else s
        for s in func.sets
    )
    m = attrs.evolve(m, functions=(attrs.evolve(func, sets=sets),))
    m = through(m, TRN2, liveness.PASS, alloc_sbuf.PASS)
    assert (locs(m)["b"].addr, locs(m)["a"].addr) == (24, 88)


def test_the_runtimes_region_is_above_what_programs_use():
    for name, start, size in (("trn2", 212984, 16392), ("trn3", 245752, 16392)):
        small = read_target(f"{name},sbuf=4096")
        m = through(wide(2, cols=16), small, reserve_runtime.PASS)
        loc = locs(m)["EvalAccelReservedLoc"]
        assert (loc.addr, loc.dims) == (start, (128, size))
        assert complaints(m, small, "the-runtime-has-its-region") == []
    m = wide(2, cols=16, arch="sunda")
    assert reserve_runtime.PASS.apply(m, TRN1) is m


# DRAM


def test_scratch_of_the_reference():
    """t0 and t1 of a page each die before t2 of two pages: 0, 4096, and 0 again."""
    p = Program()
    p.tile("a", 4, 8, ring=True)
    p.op("Memset", "DVE", ["a"], [])
    for n, cols in (("t0", 8), ("t1", 1000), ("t2", 2000)):
        p.dram(n, (4, cols))
    part = {n: p.at(n, cols=8) for n in ("t0", "t1", "t2")}
    for n in ("t0", "t1"):
        p.save(part[n], "a")
    for n in ("t1", "t0"):
        p.load("a", part[n])
    p.save(part["t2"], "a")
    p.load("a", part["t2"])
    m = through(p.module(), TRN2, liveness.PASS, alloc_dram.PASS)
    assert [locs(m)[n].addr for n in ("t0", "t1", "t2")] == [0, 4096, 0]
    assert complaints(m, TRN2, "scratch-is-disjoint") == []
    wrong = {"t1": (0, "has bytes 0 to 16000, and t0, live too, has 0 to 128")}
    wrong["t2"] = (8, "starts at byte 8 of the scratchpad, which is no multiple of 4096")
    for name, (addr, said) in wrong.items():
        sets = with_locs(m.main.sets, {name: attrs.evolve(locs(m)[name], addr=addr)})
        moved = with_insts(m, m.main.blocks[0].insts, sets=sets)
        (found, *_) = complaints(moved, TRN2, "scratch-is-disjoint")
        assert found.endswith(said), found


def test_outside_tensors_are_variables_of_their_own():
    m = through(wide(2, cols=16), TRN2, liveness.PASS, alloc_dram.PASS)
    assert all(locs(m)[n].allocated and locs(m)[n].addr == 0 for n in "ABC")


def test_reading_before_writing_is_refused():
    p = Program()
    p.dram("y", (4, 8), kind="ExternalOutput")
    p.tile("a", 4, 8)
    p.save("y", "a")
    with pytest.raises(NccError) as said:
        liveness.PASS.apply(p.module(), TRN2)
    assert str(said.value) == (
        "NCC500 liveness, i0: reads a, which no instruction before it writes "
        "(write it first, or drop the read)"
    )


def test_the_laws_see_what_is_wrong():
    """Each place moved by a little is refused with the sentence of its fact."""
    m = through(wide(2, cols=16), TRN2, liveness.PASS, alloc_sbuf.PASS)

    def moved(name, **places):
        func = m.main
        sets = tuple(
            attrs.evolve(s, locs=(attrs.evolve(s.locs[0], **places),)) if s.name == name else s
            for s in func.sets
        )
        return attrs.evolve(m, functions=(attrs.evolve(func, sets=sets),))

    facts = ("live-tiles-are-disjoint", "tiles-are-aligned", "live-ranges-are-measured")
    facts += ("every-tile-has-a-place",)
    assert complaints(m, TRN2, *facts) == []
    assert complaints(moved("b", addr=56), TRN2, *facts) == [
        "live-tiles-are-disjoint: NCC521 add.py:4, b: has bytes 56 to 120, and a, live too, has "
        "0 to 64"
    ]
    assert complaints(moved("b", addr=68), TRN2, *facts) == [
        "tiles-are-aligned: NCC522 add.py:4, b: starts at byte 68, which is no multiple of 8"
    ]
    assert complaints(moved("b", addr=212984), TRN2, *facts) == [
        "tiles-are-aligned: NCC522 add.py:4, b: ends at byte 213048, and trn2 has 212984"
    ]
    assert complaints(moved("b", live=(1, 3)), TRN2, *facts) == [
        "live-ranges-are-measured: NCC520 add.py:4, b: live is written as (1, 3), and the "
        "instructions say (1, 2)"
    ]
    assert complaints(moved("b", allocated=False), TRN2, *facts) == [
        "every-tile-has-a-place: NCC523 add.py:4, b: is used and has no place in SB"
    ]


def test_many_tiles_are_all_placed():
    draw = np.random.default_rng(0)
    lo = draw.integers(0, 13000, 4000)
    nodes = [
        Node(f"n{i}", int(a), int(a + draw.integers(2, 200)), int(draw.integers(16, 260)), TALL)
        for i, a in enumerate(lo)
    ]
    assert not colour(nodes, 26623).unplaced


def test_the_laws_of_psum_dram_and_the_runtime_say_what_is_wrong():
    m = sums([(0, 3), (1, 5), (4, 6)], [1, 2, 1])
    m = through(m, TRN2, reserve_runtime.PASS, liveness.PASS, alloc_psum.PASS)

    def moved(name, **places):
        func = m.main
        sets = tuple(
            attrs.evolve(s, locs=(attrs.evolve(s.locs[0], **places),)) if s.name == name else s
            for s in func.sets
        )
        return attrs.evolve(m, functions=(attrs.evolve(func, sets=sets),))

    facts = ("live-sums-share-no-bank", "sums-are-aligned", "the-runtime-has-its-region")
    assert complaints(moved("p1", addr=0, bank=0), TRN2, *facts) == [
        "live-sums-share-no-bank: NCC521 p1: has bytes 0 to 4096, and p0, live too, has 0 to 2048"
    ]
    assert complaints(moved("p1", addr=2048, bank=1), TRN2, *facts) == [
        "sums-are-aligned: NCC522 p1: has 2 banks from 1 on, and a START clears aligned ones"
    ]
    assert complaints(moved("p1", addr=16384, bank=8), TRN2, *facts) == [
        "sums-are-aligned: NCC522 p1: ends in bank 9, and trn2 has 8 banks"
    ]
    assert complaints(moved("p1", allocated=False), TRN2, "every-sum-has-banks") == [
        "every-sum-has-banks: NCC523 p1: is used and has no place in PSUM"
    ]
    assert complaints(moved("EvalAccelReservedLoc", addr=8), TRN2, *facts) == [
        "the-runtime-has-its-region: NCC527 EvalAccelReservedLoc: covers bytes 8 to 16400, and "
        "the runtime has 212984 to 229376"
    ]
    assert complaints(moved("EvalAccelReservedLoc", runtime_reserved=False), TRN2, *facts) == [
        "the-runtime-has-its-region: NCC527 0 locations are reserved for the runtime, and trn2 "
        "wants 1"
    ]
