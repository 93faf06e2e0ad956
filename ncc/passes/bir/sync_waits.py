"""Edges between engines become waits for counters; each instruction counts when it is complete.

Before:
    module m gen3
      func sg0000
        block Block1
          i0 = NoOp PE
          i1 = NoOp PE
          i2 = NoOp Activation after i1(F)
          i3 = NoOp DVE after i0(F) i1(F) i2(F)
          i4 = NoOp DVE after i1(F) i3(F)
          i5 = Exit DVE

After:
    module m gen3
      func sg0000
        block Block1
          i0 = NoOp PE update PE+1
          i1 = NoOp PE update PE+1
          i2 = NoOp Activation after i1(F) wait PE>=2 update Activation+1
          i3 = NoOp DVE after i0(F) i1(F) i2(F) wait Activation>=1 update DVE+1
          i4 = NoOp DVE after i1(F) i3(F) update DVE+1
          i5 = Exit DVE

Why:
    Each engine and each queue has one counter that rises by one per completion, so `PE >= 4` means
    that the first four on PE are done, and one wait covers many producers. A clock per engine knows
    what earlier waits imply: going through the needs of an instruction from the latest producer
    back, most are already known, and no wait is made that another one implies. Order inside one
    stream costs nothing, but a DMA has only been issued there: its completion is its queue's.
"""

from __future__ import annotations

from ncc.ir.bir import Inst, Module, Update, Wait, with_insts
from ncc.ir.bir_change import with_sync
from ncc.ir.clocks import DMAS, SILENT, UNITS, Clocks, needs, unit_of
from ncc.passes.base import define
from ncc.target import Target

NAME = "sync-waits"
UPDATE = {unit: (Update(unit),) for unit in UNITS}
UNIT_NAMES = tuple(UNITS)


def apply(module: Module, target: Target) -> Module:
    new: list[Inst] = []
    for block in module.main.blocks:  # at a border all engines meet, and count from zero
        new += counted(block.insts)
    return with_insts(module, tuple(new))


def counted(insts: tuple[Inst, ...]) -> list[Inst]:
    """The instructions of one block with their waits and updates."""
    clocks = Clocks()
    number: dict[str, int] = {}
    places: list[tuple[int, int]] = []
    new: list[Inst] = []
    for n, inst in enumerate(insts):
        clock = clocks.start(inst.engine)
        waits: list[Wait] = []
        if inst.deps:
            preds = [number[name] for name, _ in inst.deps]
            for _, unit, count in needs(preds, places, UNITS[inst.engine]):
                if clock[unit] < count:
                    waits.append(Wait(UNIT_NAMES[unit], count))
                    clocks.wait(clock, unit, count)
        number[inst.name] = n
        unit_name = unit_of(inst)
        unit = UNITS[unit_name]
        if inst.opcode in SILENT:
            places.append((unit, 0))
            updates: tuple[Update, ...] = ()
        else:
            places.append((unit, clocks.complete(n, clock, unit, inst.opcode in DMAS)))
            updates = UPDATE[unit_name]
        new.append(with_sync(inst, tuple(waits), updates, NAME))
    return new


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("waits-cover-edges",),
    needs=("edges-cover-conflicts", "every-dma-has-a-queue", "every-engine-is-named"),
    after={"expand-engines": "an Exit waits too, each engine's for its own queue"},
    real="synchronizer",
    job="W0",
    sure="inferred",
)
