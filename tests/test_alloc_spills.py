"""Spilling: programs with too little SBUF compute what they computed before, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest
from memory_programs import TRN2, Program, complaints, insts, lines, locs, same, through

from ncc.errors import NccError
from ncc.passes.bir import (
    alloc_dram,
    alloc_psum,
    alloc_sbuf,
    insert_spills,
    leave_ssa,
    liveness,
    pre_sched,
    reserve_runtime,
)

PASSES = [
    leave_ssa.PASS,
    pre_sched.PASS,
    reserve_runtime.PASS,
    liveness.PASS,
    alloc_psum.PASS,
    alloc_sbuf.PASS,
    insert_spills.PASS,
    alloc_dram.PASS,
]
PLACED = (
    "the-runtime-has-its-region",
    "live-ranges-are-measured",
    "every-sum-has-banks",
    "live-sums-share-no-bank",
    "sums-are-aligned",
    "every-tile-has-a-place",
    "live-tiles-are-disjoint",
    "tiles-are-aligned",
    "scratch-is-disjoint",
    "patterns-are-expressible",
)


def least(module):
    """The smallest budget that works, in steps of 8 bytes, and what comes out with it."""
    low, high, best = 8, 25, None
    while high - low > 1:
        middle = (low + high) // 2
        where = TRN2.limited(sbuf=8 * middle)
        try:
            best, high = (where, through(module, where, *PASSES)), middle
        except NccError as said:
            assert said.code == "NCC502"
            low = middle
    return best


def kept(steps):
    """A value that is computed early, unused for a while, and read at the end."""
    p = Program()
    p.dram("x", (128, 8), kind="ExternalInput")
    p.dram("y", (128, 8), kind="ExternalOutput")
    p.tile("a", 128, 8)
    p.tile("b", 128, 8)
    p.load("a", "x")
    p.add("b", "a", "a")
    before = "a"
    for n in range(steps):
        for c in "cde":
            p.tile(f"{c}{n}", 128, 8)
        p.add(f"c{n}", before, before)
        p.copy(f"d{n}", f"c{n}")
        p.add(f"e{n}", f"c{n}", f"d{n}")
        before = f"e{n}"
    p.tile("f", 128, 8)
    p.add("f", before, "b")
    p.save("y", "f")
    return p.module()


def test_a_computed_value_goes_home_and_comes_back():
    m = kept(7)
    where = TRN2.limited(sbuf=96)
    after = through(m, where, *PASSES)
    spills = [x for x in lines(after) if "spill" in x or "reload" in x]
    assert spills == [
        "i1.spill Save b_Home <- b",
        "i23.reload Load b_Reload <- b_Home",
    ]
    assert complaints(after, where, *PLACED) == []
    assert same(m, after)


def test_a_loaded_value_is_loaded_again_instead():
    p = Program()
    p.dram("x", (128, 8), kind="ExternalInput")
    p.dram("y", (128, 8), kind="ExternalOutput")
    p.tile("a", 128, 8)
    p.load("a", "x")
    before = "a"
    for n in range(24):
        p.tile(f"c{n}", 128, 8)
        p.copy(f"c{n}", before)
        before = f"c{n}"
        if n == 10:
            for t in ("d", "e"):
                p.tile(t, 128, 8)
            p.add("d", before, before)
            p.add("e", "d", before)
            before = "e"
    p.tile("f", 128, 8)
    p.add("f", before, "a")
    p.save("y", "f")
    m = p.module()
    where = TRN2.limited(sbuf=96)
    after = through(m, where, *PASSES)
    assert [x for x in lines(after) if "spill" in x or "reload" in x] == [
        "i27.reload Load a_Reload <- x"
    ]
    assert same(m, after)
    assert not [x for x in locs(after) if x.endswith("_Home")]


def test_a_transposed_load_is_repeated_with_its_keys():
    p = Program()
    p.dram("x", (16, 4), "bfloat16", "ExternalInput")
    p.dram("y", (4, 16), "bfloat16", "ExternalOutput")
    one = ((1, 1), (1, 1))
    p.tile("a", 4, 16, "bfloat16")
    out, of = p.at("a", pairs=((16, 4), *one, (1, 16))), p.at("x", pairs=((4, 16), *one, (1, 4)))
    p.op("DMACopy", "DMA", [out], [of], mode="Transpose", transpose_op="XZYW")
    before = "a"
    for n in range(20):
        for c in "cd":
            p.tile(f"{c}{n}", 4, 16, "bfloat16")
        p.add(f"c{n}", before, before)
        p.add(f"d{n}", f"c{n}", before)
        before = f"d{n}"
    p.tile("f", 4, 16, "bfloat16")
    p.add("f", before, "a")
    p.save("y", "f")
    m = p.module()
    where = TRN2.limited(sbuf=96)
    after = through(m, where, *PASSES)
    again = [i for i in insts(after) if i.name.endswith("reload")]
    assert [(i.opcode, dict(i.keys)["mode"]) for i in again] == [("DMACopy", "Transpose")]
    assert same(m, after)


def test_what_even_one_buffer_of_a_ring_cannot_have_is_refused():
    p = Program()
    p.dram("x", (128, 8), kind="ExternalInput")
    p.dram("y", (128, 8), kind="ExternalOutput")
    ring = p.tile("r", 128, 8, count=2, ring=True)
    p.tile("o", 128, 8)
    for n in range(6):
        p.load(ring[n % 2], "x")
        p.copy("o", ring[n % 2])
    p.save("y", "o")
    where = TRN2.limited(sbuf=32)
    with pytest.raises(NccError) as said:
        through(p.module(), where, liveness.PASS, alloc_sbuf.PASS, insert_spills.PASS)
    assert str(said.value) == (
        "NCC502 insert-spills, o: 2 tiles that are live at i1 take 64 bytes a partition, and "
        "trn2,sbuf=32 has 32: o 32 bytes and r_0 32 bytes "
        "(make the tiles smaller, or keep fewer of them at a time)"
    )


def rings(count=6):
    """Two double buffers in SBUF and two in PSUM, whose turns overlap."""
    p = Program()
    p.dram("x", (4, 8 * count), kind="ExternalInput")
    p.dram("y", (8, 8 * count), kind="ExternalOutput")
    a = p.tile("a", 4, 8, count=2, ring=True)
    b = p.tile("b", 8, 8, count=2, ring=True)
    ps = p.tile("p", 8, 8, memory="PSUM", count=2, ring=True)
    q = p.tile("q", 8, 8, memory="PSUM", count=2, ring=True)
    for n in range(count):
        t = n % 2
        p.load(a[t], p.at("x", 4, 8, offset=8 * n))
        p.matmul(ps[t], a[t], a[t])
        p.matmul(q[t], a[t], a[t])
        p.copy(b[t], ps[t])
        p.op("TensorTensor", "DVE", [b[t]], [b[t], q[t]], op="add")
        p.save(p.at("y", 8, 8, offset=8 * n), b[t])
    return p.module()


def test_rings_take_turns_where_memory_does_not_hold_them():
    m = rings()
    roomy = through(m, TRN2, *PASSES)
    assert len({x.bank for x in locs(roomy).values() if x.type == "PSUM"}) == 4
    tight = TRN2.limited(sbuf=96, psum=2)
    after = through(m, tight, *PASSES)
    assert complaints(after, tight, *PLACED) == []
    assert max(x.bank for x in locs(after).values() if x.type == "PSUM") == 1
    assert same(m, after)
    assert not any(s.ring for s in after.main.sets if s.memory == "PSUM")


def random_program(seed):
    """A straight line of loads, sums, partial writes and stores over tiles of several shapes."""
    draw = np.random.default_rng(seed)
    p = Program()
    count = int(draw.integers(3, 10))
    p.dram("x", (128, 64), kind="ExternalInput")
    shapes = [
        (int(draw.choice([128, 128, 40, 20])), int(draw.choice([8, 16]))) for _ in range(count)
    ]
    full = []
    for n, (rows, cols) in enumerate(shapes):
        p.tile(f"t{n}", rows, cols)
    for _ in range(int(draw.integers(8, 50))):
        n = int(draw.integers(count))
        rows, cols = shapes[n]
        mine = [f"t{m}" for m in full if shapes[m] == shapes[n]]
        kind = draw.choice(["load", "op", "op", "op", "part"])
        if n not in full or kind == "load" or not mine:
            p.load(f"t{n}", p.at("x", rows, cols, offset=int(draw.integers(40))))
        elif kind == "op":
            a, b = draw.choice(mine, 2)
            op = str(draw.choice(["add", "subtract", "max"]))
            p.op("TensorTensor", "DVE", [f"t{n}"], [str(a), str(b)], op=op)
        else:
            at = int(draw.integers(cols - 4))
            source = p.at(str(draw.choice(mine)), cols=4, offset=cols - 4 - at)
            p.copy(p.at(f"t{n}", cols=4, offset=at), source)
        if n not in full:
            full.append(n)
    for n in full:
        p.dram(f"y{n}", shapes[n], kind="ExternalOutput")
        p.save(f"y{n}", f"t{n}")
    return p.module()


def test_random_programs_survive_the_least_memory():
    homes = reloads = 0
    for seed in range(8):
        module = random_program(seed)
        where, after = least(module)
        assert complaints(after, where, *PLACED) == [], seed
        assert same(module, after), seed
        labels = [i.name for i in insts(after)]
        assert len(labels) == len(set(labels)), seed
        homes += sum(x.endswith("_Home") for x in locs(after))
        reloads += sum("reload" in x for x in labels)
    assert homes > 8, "too few programs keep a value in DRAM for this test to prove anything"
    assert reloads > 25
