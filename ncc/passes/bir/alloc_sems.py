"""Counters get their semaphores, and an instruction with several waits gets helpers before it.

Before:
    module m gen3
      queue qSP SP
      func sg0000
        block Block1
          i0 = NoOp PE update PE+1
          i1 = NoOp Activation update Activation+1
          i2 = NoOp Pool update Pool+1
          i3 = NoOp DVE after i0(F) i1(F) i2(F) wait Pool>=1 Activation>=1 PE>=1 update DVE+1
          i4 = Exit DVE

After:
    module m gen3
      queue qSP SP semaphore=12
      func sg0000
        block Block1
          i0 = NoOp PE update PE+1(0)
          i1 = NoOp Activation update Activation+1(1)
          i2 = NoOp Pool update Pool+1(2)
          i3.0 = EventSemaphore DVE wait Pool>=1(2>=1) Activation>=1(1>=1)
          i3 = NoOp DVE after i0(F) i1(F) i2(F) wait PE>=1(0>=1) update DVE+1(3)
          i4 = Exit DVE

Why:
    A record has room for one wait and one update; an EventSemaphore has two waits. So of several
    waits the last stays, and the others stand two by two on EventSemaphores right before, in the
    same stream. The numbers are fixed: S[0..4] are the engines in wire order, S[8..12] their direct
    queues. A queue raises its semaphore by 16 for each DMA, so its thresholds are 16 times as high.
"""

from __future__ import annotations

import attrs

from ncc.ir.bir import Inst, Module, Update, Wait, with_insts
from ncc.ir.bir_change import fresh_names, with_sync
from ncc.ir.bir_loops import line
from ncc.ir.clocks import ENGINES, SEMAPHORES, WAITS
from ncc.passes.base import define
from ncc.target import Target

NAME = "alloc-sems"
HELPER = "EventSemaphore"


def apply(module: Module, target: Target) -> Module:
    steps = dict.fromkeys(ENGINES, 1) | {q.name: q.num_queues for q in module.queues}
    bumps = {unit: (Update(unit, SEMAPHORES[unit], step),) for unit, step in steps.items()}
    insts = line(module.main)
    taken = {inst.name for inst in insts}
    new: list[Inst] = []
    for inst in insts:
        waits = tuple(
            [Wait(w.unit, w.count, SEMAPHORES[w.unit], w.count * steps[w.unit]) for w in inst.waits]
        )
        updates = bumps[inst.updates[0].unit] if inst.updates else ()
        room = WAITS.get(inst.opcode, 1)
        if len(waits) > room:
            new += helpers(inst, waits[:-room], taken)
            waits = waits[-room:]
        if waits != inst.waits or updates != inst.updates:
            inst = with_sync(inst, waits, updates, NAME)
        new.append(inst)
    queues = tuple(attrs.evolve(q, semaphore=SEMAPHORES[q.name]) for q in module.queues)
    return attrs.evolve(with_insts(module, tuple(new)), queues=queues)


def helpers(inst: Inst, waits: tuple[Wait, ...], taken: set[str]) -> list[Inst]:
    """EventSemaphores that hold up the stream of `inst` for `waits`, two each."""
    room = WAITS[HELPER]
    shares = [waits[at : at + room] for at in range(0, len(waits), room)]
    names = fresh_names(taken, inst.name, len(shares))
    origin = inst.origin.by(NAME)
    return [
        Inst(name, HELPER, inst.engine, waits=own, origin=origin)
        for name, own in zip(names, shares, strict=True)
    ]


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("semaphores-are-numbered", "waits-fit-bundles"),
    needs=("waits-cover-edges",),
    real="alloc_semaphores",
    job="W0",
    sure="inferred",
)
