"""Waits: what they order is derived again, from streams, queues and waits alone."""

from __future__ import annotations

import attrs
import pytest
from order_programs import TRN2, chip, dram, module, seed, through, whole
from order_random import flagged, program

from ncc.errors import NccError
from ncc.ir.bir import Inst, Module, Wait, with_insts
from ncc.ir.bir_order_laws import (
    every_dma_has_a_queue,
    semaphores_are_numbered,
    waits_cover_edges,
    waits_fit_bundles,
)
from ncc.ir.clocks import DMAS
from ncc.passes import load
from ncc.target import TARGETS

SYNCED = ("flow_deps", "anti_deps", "expand_engines", "sync_waits")


def synced(number: int) -> Module:
    return through(flagged(through(program(number))), *SYNCED)


def known(insts: tuple[Inst, ...]) -> list[set[int]]:
    """For each instruction everybody that is complete before it starts, by graph search."""
    start, done = 0, 1
    before: dict[tuple[int, int], list[tuple[int, int]]] = {}
    streams: dict[str, int] = {}
    units: dict[str, list[int]] = {}
    for n, inst in enumerate(insts):
        before[n, start], before[n, done] = [], [(n, start)]
        if (last := streams.get(inst.engine)) is not None:
            complete = insts[last].opcode not in DMAS
            before[n, start].append((last, done if complete else start))
        streams[inst.engine] = n
        for wait in inst.waits:
            before[n, start].append((units[wait.unit][wait.count - 1], done))
        for update in inst.updates:
            row = units.setdefault(update.unit, [])
            if inst.opcode in DMAS and row:
                before[n, done].append((row[-1], done))
            row.append(n)
    found: list[set[int]] = []
    for n in range(len(insts)):
        seen: set[tuple[int, int]] = set()
        todo = [(n, start)]
        while todo:
            for event in before[todo.pop()]:
                if event not in seen:
                    seen.add(event)
                    todo.append(event)
        found.append({who for who, what in seen if what == done})
    return found


def uncovered(made: Module) -> list[tuple[str, str]]:
    insts = made.main.blocks[0].insts
    number = {inst.name: n for n, inst in enumerate(insts)}
    before = known(insts)
    return [
        (inst.name, name)
        for n, inst in enumerate(insts)
        for name, _ in inst.deps
        if number[name] not in before[n]
    ]


def test_waits_cover_every_edge_and_none_is_spare():
    waits = 0
    for number in range(60):
        made = synced(number)
        assert not uncovered(made), number
        assert not list(waits_cover_edges(made, TRN2))
        insts = made.main.blocks[0].insts
        for n, inst in enumerate(insts):
            for wait in inst.waits:
                waits += 1
                less = attrs.evolve(inst, waits=tuple(w for w in inst.waits if w is not wait))
                cut = with_insts(made, (*insts[:n], less, *insts[n + 1 :]))
                assert uncovered(cut), (number, inst.name, wait)
                (said, *_) = waits_cover_edges(cut, TRN2)
                assert said.code == "NCC613"
    assert waits > 300


def test_an_instruction_waits_once_a_counter():
    for number in range(60):
        for inst in synced(number).main.blocks[0].insts:
            units = [wait.unit for wait in inst.waits]
            assert len(units) == len(set(units))


def test_a_wait_for_what_never_completes_is_refused():
    made = through(seed(), "flow_deps", "anti_deps", "expand_engines", "sync_waits")
    insts = made.main.blocks[0].insts
    late = attrs.evolve(insts[8], waits=(Wait("qSP", 9),))
    (said,) = waits_cover_edges(with_insts(made, (*insts[:8], late, *insts[9:])), TRN2)
    assert str(said) == ("NCC613 i8: waits for qSP >= 9, which nothing before it completes")


def test_several_waits_stand_two_by_two_on_helpers():
    insts = [Inst(f"i{n}", "NoOp", e) for n, e in enumerate(("PE", "Activation", "Pool", "SP"))]
    deps = tuple((f"i{n}", "Ordered") for n in range(4))
    insts.append(Inst("i4", "NoOp", "DVE", deps=deps))
    made = through(module((), insts), "expand_engines", "sync_waits", "alloc_sems")
    found = {i.name: i for i in made.main.blocks[0].insts}
    assert [(w.sem, w.value) for w in found["i4.0"].waits] == [(4, 1), (2, 1)]
    assert [(w.sem, w.value) for w in found["i4.1"].waits] == [(1, 1)]
    assert [(w.sem, w.value) for w in found["i4"].waits] == [(0, 1)]
    assert not found["i4.0"].updates and found["i4.0"].engine == "DVE"
    assert list(found).index("i4.1") + 1 == list(found).index("i4")
    assert not list(waits_cover_edges(made, TRN2))
    for inst in found.values():
        assert not list(waits_fit_bundles(inst, made, TRN2))
        assert not list(semaphores_are_numbered(inst, made, TRN2))


def test_helpers_keep_the_order_of_random_programs():
    helpers = 0
    for number in range(40):
        made = through(synced(number), "alloc_sems")
        assert not uncovered(made) and not list(waits_cover_edges(made, TRN2))
        for inst in made.main.blocks[0].insts:
            helpers += inst.opcode == "EventSemaphore"
            assert not list(waits_fit_bundles(inst, made, TRN2))
    assert helpers > 10


def test_loads_go_to_sp_and_saves_to_activation():
    made = through(seed())
    found = {
        i.name: (i.engine, dict(i.keys)["queue"])
        for i in made.main.blocks[0].insts
        if i.opcode in DMAS
    }
    assert found["i0"] == found["i1"] == ("SP", "qSP")
    assert found["i13"] == ("Activation", "qActivation")
    assert [(q.name, q.engine, q.semaphore) for q in made.queues] == [
        ("qActivation", "Activation", -1),
        ("qSP", "SP", -1),
    ]
    for inst in made.main.blocks[0].insts:
        assert not list(every_dma_has_a_queue(inst, made, TRN2))
    assert load("bir.bind_dma").apply(made, TRN2) is made


def test_an_engine_that_was_chosen_stays():
    a = whole("a", "float32", 4, 8)
    sets = (dram("x", "float32", (4, 8), "ExternalInput"), chip("a", "float32", (4, 8), (0,)))
    made = through(module(sets, [Inst("i0", "Load", "Pool", (whole("x", "float32", 4, 8),), (a,))]))
    assert [q.name for q in made.queues] == ["qPool"]
    with pytest.raises(
        NccError, match=r"NCC601 i0: PE cannot trigger a DMA on trn1; SP, Activation"
    ):
        wrong = module(sets, [Inst("i0", "Load", "PE", (whole("x", "float32", 4, 8),), (a,))])
        load("bir.bind_dma").apply(wrong, TARGETS["trn1"])


def test_a_copy_between_two_places_in_dram_leaves_the_chip():
    sets = (
        dram("x", "float32", (4, 8), "ExternalInput"),
        dram("y", "float32", (4, 8), "ExternalOutput"),
    )
    ends = (whole("x", "float32", 4, 8),), (whole("y", "float32", 4, 8),)
    made = through(module(sets, [Inst("i0", "DMACopy", "DMA", *ends)]), "expand_engines")
    assert [(i.opcode, i.engine) for i in made.main.blocks[0].insts] == [
        ("DMACopy", "Activation"),
        ("Exit", "Activation"),
    ]


def test_only_an_exit_stands_on_all_engines():
    with pytest.raises(NccError, match="NCC602 i0: Drain on all engines cannot be divided"):
        through(module((), [Inst("i0", "Drain", "ALL")]), "expand_engines")


def test_a_program_without_work_leaves_on_one_engine():
    made = through(module((), []), "expand_engines")
    assert [(i.opcode, i.engine) for i in made.main.blocks[0].insts] == [("Exit", "SP")]
