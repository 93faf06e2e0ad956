"""Reserve the bytes at the top of SBUF that the runtime keeps for itself.

Before:
    module f gen3
      func sg0000
        block Block1

After:
    module f gen3
      func sg0000
        set EvalAccelReservedLoc uint8 (128,16392) memory=SB
          loc EvalAccelReservedLoc SB (128,16392) addr=212984 allocated=true pinned=true runtime_reserved=true
        block Block1

Why: from trn2 on the loader writes there while a program runs. A location that stands there before
any allocator starts is the plainest way to say so: it prints, it is drawn on the memory map, and
the law that live tiles never share a byte keeps everyone off it.
"""

from __future__ import annotations

import attrs

from ncc.ir.bir import Loc, LocSet, Module
from ncc.passes.base import define
from ncc.target import TARGETS, Target

NAME = "EvalAccelReservedLoc"


def apply(module: Module, target: Target) -> Module:
    if target.level < 30 or any(x.name == NAME for x in module.main.sets):
        return module
    start = TARGETS[target.name].sbuf_usable  # a limit that was asked for moves no region
    size = -(-(target.sbuf_size - start) // 8) * 8
    dims = target.partitions, size
    loc = Loc(NAME, "SB", dims, start, allocated=True, pinned=True, runtime_reserved=True)
    region = LocSet(NAME, "uint8", dims, memory="SB", locs=(loc,))
    func = attrs.evolve(module.main, sets=(*module.main.sets, region))
    return attrs.evolve(module, functions=(func, *module.functions[1:]))


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("the-runtime-has-its-region",),
    real="RuntimeMemoryReservation",
    job="W0",
    sure="confirmed",
)
