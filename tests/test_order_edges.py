"""Edges against brute force: bytes one by one, on small random programs."""

from __future__ import annotations

import attrs
import pytest
from order_programs import TRN2, chip, dram, module, through, whole
from order_random import Byte, flagged, program, touched

from ncc.ir.bir import Ap, Inst, Loc, LocSet, Module, with_insts
from ncc.ir.bir_order_laws import edges_cover_conflicts
from ncc.ir.footprints import Places, meets

RANK = {"Ordered": 1, "Anti": 2, "Output": 3, "Flow": 4}


def ordered(seed: int) -> Module:
    """A random program, every other one with flags, and its edges."""
    made = through(program(seed))
    return through(flagged(made) if seed % 2 else made, "flow_deps", "anti_deps")


def paths(made: Module) -> list[set[int]]:
    """For each instruction everybody that edges lead back to."""
    insts = made.main.blocks[0].insts
    number = {inst.name: n for n, inst in enumerate(insts)}
    before: list[set[int]] = []
    for inst in insts:
        own = [number[name] for name, _ in inst.deps]
        before.append(set(own).union(*(before[n] for n in own)))
    return before


def conflict(a: tuple[set[Byte], set[Byte]], b: tuple[set[Byte], set[Byte]]) -> str:
    """The strongest reason why b comes after a."""
    if a[1] & b[0]:
        return "Flow"
    if a[1] & b[1]:
        return "Output"
    return "Anti" if a[0] & b[1] else ""


def reasons(a: tuple[set[Byte], set[Byte]], b: tuple[set[Byte], set[Byte]]) -> set[str]:
    """Every reason why b comes after a; a write that another one hid from b's read is no Flow."""
    pairs = {"Flow": (a[1], b[0]), "Output": (a[1], b[1]), "Anti": (a[0], b[1])}
    return {kind for kind, (one, other) in pairs.items() if one & other}


def test_every_conflict_is_ordered_and_every_edge_is_a_conflict():
    pairs = edges = 0
    for seed in range(120):
        made = ordered(seed)
        insts, bytes_, before = made.main.blocks[0].insts, touched(made), paths(made)
        kinds = [dict(inst.deps) for inst in insts]
        for b in range(len(insts)):
            for a in range(b):
                reason = conflict(bytes_[a], bytes_[b])
                pairs += bool(reason)
                assert not reason or a in before[b], (seed, a, b, reason)
                if kind := kinds[b].get(insts[a].name):
                    edges += 1
                    assert kind in reasons(bytes_[a], bytes_[b]), (seed, a, b)
    assert pairs > 1500 and edges > 900


def test_every_read_has_an_edge_to_each_writer_that_reaches_it():
    reads = 0
    for seed in range(60):
        made = ordered(seed)
        insts = made.main.blocks[0].insts
        last: dict[Byte, int] = {}
        for n, (read, written) in enumerate(touched(made)):
            kinds = dict(insts[n].deps)
            for who in {last[byte] for byte in read if byte in last}:
                reads += 1
                assert kinds.get(insts[who].name) == "Flow", (seed, n, who)
            last.update(dict.fromkeys(written, n))
    assert reads > 150


def test_the_fact_names_an_edge_that_is_missing():
    found = 0
    for seed in range(40):
        made = ordered(seed)
        assert not list(edges_cover_conflicts(made, TRN2))
        insts, bytes_ = made.main.blocks[0].insts, touched(made)
        for n, inst in enumerate(insts):
            for name, _ in inst.deps:
                less = tuple(d for d in inst.deps if d[0] != name)
                cut = (*insts[:n], attrs.evolve(inst, deps=less), *insts[n + 1 :])
                other = next(k for k, i in enumerate(insts) if i.name == name)
                needed = conflict(bytes_[other], bytes_[n]) and other not in reach(cut, n, other)
                said = list(edges_cover_conflicts(with_insts(made, cut), TRN2))
                assert bool(said) == bool(needed), (seed, inst.name, name)
                found += bool(said)
    assert found > 80


def reach(insts: tuple[Inst, ...], start: int, goal: int) -> set[int]:
    """Everybody that edges and in-order streams lead back to."""
    number = {inst.name: n for n, inst in enumerate(insts)}
    seen: set[int] = set()
    todo = [start]
    while todo:
        at = todo.pop()
        dmas = ("Load", "Save", "DMACopy")
        before = [number[name] for name, _ in insts[at].deps]
        before += [
            n
            for n in range(at)
            if insts[n].engine == insts[at].engine and insts[n].opcode not in dmas
        ]
        for n in before:
            if n not in seen:
                seen.add(n)
                todo.append(n)
    return seen


def test_two_neighbours_on_one_row_of_dram_do_not_meet():
    sets = (dram("y", "float32", (256, 1024), "ExternalOutput"),)
    places = Places(module(sets, []).main)
    left = places.rect(Ap("y", "float32", ((1024, 128), (1, 512))))
    right = places.rect(Ap("y", "float32", ((1024, 128), (1, 512)), 512))
    below = places.rect(Ap("y", "float32", ((1024, 128), (1, 1024)), 128 * 1024))
    both = places.rect(Ap("y", "float32", ((1024, 256), (1, 8)), 508))
    assert left and right and below and both
    assert not meets(left, right) and not meets(left, below) and not meets(right, below)
    assert meets(both, left) and meets(both, right) and meets(both, below)


def test_a_write_with_holes_hides_nothing():
    a = chip("a", "float32", (4, 8), (0,))
    b = chip("b", "float32", (4, 8), (32,))
    holes = Ap("a", "float32", ((8, 4), (2, 4)))
    odd = Ap("a", "float32", ((8, 4), (2, 4)), 1)
    insts = [
        Inst("i0", "Memset", "DVE", (), (whole("a", "float32", 4, 8),)),
        Inst("i1", "Memset", "Pool", (), (holes,)),
        Inst("i2", "TensorCopy", "DVE", (odd,), (Ap("b", "float32", ((8, 4), (1, 4))),)),
        Inst("i3", "Memset", "Pool", (), (odd,)),
    ]
    made = through(module((a, b), insts), "flow_deps", "anti_deps")
    found = {i.name: i.deps for i in made.main.blocks[0].insts}
    assert found["i1"] == (("i0", "Output"),)
    assert found["i2"] == (("i0", "Flow"),)
    assert found["i3"] == (("i0", "Output"), ("i2", "Anti"))


def test_an_accumulator_is_a_location_that_no_address_names():
    a, b = chip("a", "float32", (4, 8), (0,)), chip("b", "float32", (4, 1), (32,))
    all_, sums = whole("a", "float32", 4, 8), whole("b", "float32", 4, 1)
    keys = (("acc", "ZeroAccumulate"), ("func", "Exp"))
    insts = [
        Inst("i0", "Activation", "Activation", (all_,), (all_,), keys),
        Inst("i1", "ActivationReadAccumulator", "Activation", (), (sums,)),
        Inst("i2", "Activation", "Activation", (all_,), (all_,), keys),
    ]
    made = through(module((a, b), insts), "flow_deps", "anti_deps")
    found = {i.name: dict(i.deps) for i in made.main.blocks[0].insts}
    assert found["i1"] == {"i0": "Flow"}
    assert found["i2"] == {"i0": "Flow", "i1": "Anti"}


def test_a_second_run_makes_the_edges_anew_and_keeps_wishes():
    a = chip("a", "float32", (4, 8), (0,))
    all_ = whole("a", "float32", 4, 8)
    stale = (("i0", "Flow"), ("i1", "Ordered"))
    insts = [
        Inst("i0", "NoOp", "PE"),
        Inst("i1", "NoOp", "SP"),
        Inst("i2", "Memset", "DVE", (), (all_,), deps=stale),
        Inst("i3", "Memset", "Pool", (), (all_,), deps=(("i1", "Anti"), ("i2", "Anti"))),
    ]
    made = through(module((a,), insts), "flow_deps", "anti_deps")
    found = {i.name: i.deps for i in made.main.blocks[0].insts}
    assert found["i2"] == (("i1", "Ordered"),)
    assert found["i3"] == (("i2", "Output"),)


@pytest.mark.parametrize("name", ["flow_deps", "anti_deps"])
def test_nothing_to_do_gives_the_same_module(name: str):
    made = through(program(3), "flow_deps", "anti_deps")
    again = through(made, "flow_deps", "anti_deps")
    assert made == again
    a = chip("a", "float32", (4, 8), (0,))
    quiet = module((a,), [Inst("i0", "Memset", "DVE", (), (whole("a", "float32", 4, 8),))])
    assert through(quiet, name) is quiet


def test_scratch_that_two_locations_share_is_one_plane():
    sets = (
        chip("a", "float32", (4, 8), (0,)),
        LocSet("s", "float32", (4, 8), locs=(Loc("s", "DRAM", (1, 128), 0, allocated=True),)),
        LocSet("r", "float32", (2, 4), locs=(Loc("r", "DRAM", (1, 32), 96, allocated=True),)),
        LocSet("u", "float32", (2, 4), locs=(Loc("u", "DRAM", (1, 32), 128, allocated=True),)),
    )
    a = Ap("a", "float32", ((8, 2), (1, 4)))
    insts = [
        Inst("i0", "Save", "DMA", (whole("a", "float32", 4, 8),), (whole("s", "float32", 4, 8),)),
        Inst("i1", "Save", "DMA", (a,), (whole("r", "float32", 2, 4),)),
        Inst("i2", "Save", "DMA", (a,), (whole("u", "float32", 2, 4),)),
    ]
    made = through(module(sets, insts), "flow_deps", "anti_deps")
    found = {i.name: i.deps for i in made.main.blocks[0].insts}
    assert found["i1"] == (("i0", "Output"),)
    assert found["i2"] == ()
