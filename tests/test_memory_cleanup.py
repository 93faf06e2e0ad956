"""leave-ssa, copy-elim and pre-sched: what they change, what they leave, and that nothing breaks."""

from __future__ import annotations

from memory_programs import TRN2, Program, complaints, insts, lines, same
from test_alloc_spills import random_program

from ncc.passes.bir import copy_elim, leave_ssa, pre_sched


def io(p, *names, shape=(4, 8)):
    for n in names:
        p.dram(n, shape, kind="ExternalOutput" if n in "yz" else "ExternalInput")


# leave-ssa


def test_each_value_gets_a_location():
    p = Program()
    io(p, "x", "y")
    for n in "ab":
        p.tile(n, 4, 8)
    p.load("a", "x")
    p.copy("b", "a")
    p.add("a", "a", "b")
    p.copy("b", "a")
    p.save("y", "b")
    m = p.module()
    assert complaints(m, TRN2, "each-value-has-its-location") == [
        "each-value-has-its-location: NCC526 i2: writes a over a value that i1 reads"
    ]
    after = leave_ssa.PASS.apply(m, TRN2)
    assert lines(after) == [
        "i0 Load a <- x",
        "i1 TensorCopy b <- a",
        "i2 TensorTensor a_SsaClone0 <- a,b",
        "i3 TensorCopy b_SsaClone0 <- a_SsaClone0",
        "i4 Save y <- b_SsaClone0",
    ]
    assert same(m, after)
    assert complaints(after, TRN2, "each-value-has-its-location") == []
    assert leave_ssa.PASS.apply(after, TRN2) is after


def test_rings_partial_writes_and_sums_are_left_alone():
    p = Program()
    io(p, "x", "y")
    ring = p.tile("r", 4, 8, count=2, ring=True)
    p.tile("a", 4, 8)
    p.tile("ps", 8, 8, memory="PSUM")
    for n in range(4):
        p.load(ring[n % 2], "x")
        p.copy("a", ring[n % 2]) if n == 0 else p.copy(p.at("a", cols=4), p.at(ring[n % 2], cols=4))
        p.save("y", "a")
    for n in range(3):
        p.matmul("ps", "a", "a", n > 0)
        p.save("y", "a")
    m = p.module()
    assert leave_ssa.PASS.apply(m, TRN2) is m


def test_a_new_sum_begins_a_value():
    p = Program()
    io(p, "x")
    p.tile("a", 4, 8)
    p.tile("o", 8, 8)
    p.tile("ps", 8, 8, memory="PSUM")
    p.load("a", "x")
    for again in (False, True):
        p.matmul("ps", "a", "a")
        p.matmul("ps", "a", "a", accumulate=True)
        if not again:
            p.copy(p.at("o", cols=4), p.at("ps", cols=4))
    after = leave_ssa.PASS.apply(p.module(), TRN2)
    assert [i.outs[0].loc for i in insts(after)[1:]] == [
        "ps",
        "ps",
        "o",
        "ps_SsaClone0",
        "ps_SsaClone0",
    ]


def test_a_value_begins_where_nothing_from_before_is_read_again():
    """Half a tile, written and read again and again, is many values; a last look at all is not."""
    for look in (False, True):
        p = Program()
        io(p, "x")
        p.dram("y", (4, 4), kind="ExternalOutput")
        p.dram("z", (4, 8), kind="ExternalOutput")
        p.tile("a", 4, 8)
        p.load("a", "x")
        p.save("z", "a")
        for _ in range(2):
            p.load(p.at("a", cols=4), p.at("x", cols=4))
            p.save("y", p.at("a", cols=4))
        if look:
            p.save("z", "a")
        m = p.module()
        after = leave_ssa.PASS.apply(m, TRN2)
        assert (after is m) == look
        assert same(m, after)


# copy-elim


def copied(**changes):
    """A load, a copy of part of it, and a reader of a part of that."""
    p = Program()
    io(p, "x", shape=(4, 8))
    io(p, "y", shape=(4, 2))
    p.tile("a", 4, 8)
    p.tile("b", 4, 5)
    p.load("a", "x")
    p.copy("b", p.at("a", cols=5, offset=2))
    if changes.get("write"):
        p.op("Memset", "DVE", ["a"], [])
    p.save("y", p.at("b", cols=2, offset=3))
    return p.module()


def test_the_readers_of_a_copy_read_its_source():
    m = copied()
    after = copy_elim.PASS.apply(m, TRN2)
    assert lines(after) == ["i0 Load a <- x", "i2 Save y <- a"]
    assert insts(after)[1].ins[0].ap == ((8, 4), (1, 2))
    assert insts(after)[1].ins[0].offset == 5
    assert same(m, after)
    assert "b" not in [s.name for s in after.main.sets]


def test_a_copy_stays_where_its_source_changes():
    m = copied(write=True)
    assert copy_elim.PASS.apply(m, TRN2) is m


def test_a_chain_of_copies_goes_as_a_whole():
    p = Program()
    io(p, "x", "y")
    for n in "abc":
        p.tile(n, 4, 8)
    p.load("a", "x")
    p.copy("b", "a")
    p.copy("c", "b")
    p.save("y", "c")
    m = p.module()
    after = copy_elim.PASS.apply(m, TRN2)
    assert lines(after) == ["i0 Load a <- x", "i3 Save y <- a"]
    assert same(m, after)


# pre-sched


def panels(count=3, ring=False):
    """Two loads, a sum and a store, again and again."""
    p = Program()
    io(p, "x", "w", shape=(128, 8))
    p.dram("y", (128 * count, 8), kind="ExternalOutput")
    rings = {n: p.tile(n, 128, 8, count=2, ring=True) for n in "abc"} if ring else {}
    for k in range(count):
        a, b, c = (rings[n][k % 2] if ring else p.tile(f"{n}{k}", 128, 8) for n in "abc")
        p.load(a, "x")
        p.load(b, "w")
        p.add(c, a, b)
        p.save(p.at("y", 128, 8, 128 * 8 * k), c)
    return p.module()


def test_loads_go_ahead_where_there_is_room():
    after = pre_sched.PASS.apply(panels(), TRN2)
    assert [i.name for i in insts(after)] == [
        "i0",
        "i1",
        "i4",
        "i5",
        "i8",
        "i9",
        "i2",
        "i3",
        "i6",
        "i7",
        "i10",
        "i11",
    ]
    assert same(panels(), after)


def test_a_ring_is_loaded_again_only_after_its_reader():
    m = panels(4, ring=True)
    after = pre_sched.PASS.apply(m, TRN2)
    names = [i.name for i in insts(after)]
    assert names == [
        "i0",
        "i1",
        "i4",
        "i5",
        "i2",
        "i8",
        "i9",
        "i3",
        "i6",
        "i12",
        "i13",
        "i7",
        "i10",
        "i11",
        "i14",
        "i15",
    ]
    assert same(m, after)


def test_loads_wait_where_memory_is_short():
    p = Program()
    io(p, "x", "w", "y", "z", shape=(128, 8))
    for n in "abcd":
        p.tile(n, 128, 8)
    p.load("a", "x")
    p.load("c", "w")
    p.copy("b", "a")
    p.save("y", "b")
    p.copy("d", "c")
    p.save("z", "d")
    m = p.module()
    assert pre_sched.PASS.apply(m, TRN2) is m
    late = pre_sched.PASS.apply(m, TRN2.limited(sbuf=64))
    assert [i.name for i in insts(late)] == ["i0", "i2", "i3", "i1", "i4", "i5"]
    assert same(m, late)


def test_any_order_it_gives_means_the_same():
    for seed in range(12):
        m = random_program(seed)
        for sbuf in (64, 256, 4096):
            after = pre_sched.PASS.apply(m, TRN2.limited(sbuf=sbuf))
            assert sorted(i.name for i in insts(after)) == sorted(i.name for i in insts(m))
            assert same(m, after), (seed, sbuf)


def test_clean_up_together_means_the_same():
    changed = 0
    for seed in range(12):
        m = random_program(seed)
        after = leave_ssa.PASS.apply(m, TRN2)
        assert same(m, after), seed
        assert complaints(after, TRN2, "each-value-has-its-location") == []
        less = copy_elim.PASS.apply(after, TRN2)
        assert same(m, less), seed
        changed += (after is not m) + (less is not after)
    assert changed > 8
