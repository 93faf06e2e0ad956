"""Write on every location from which instruction to which its bytes are needed.

Before:
    module f gen3
      func sg0000
        set x float32 (4,8) kind=ExternalInput
          loc x DRAM (1,128)
        set y float32 (4,8) kind=ExternalOutput
          loc y DRAM (1,128)
        set a float32 (4,8) memory=SB
          loc a SB (4,32)
        block Block1
          i0 = Load DMA a:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]]
          i1 = Save DMA y:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]

After:
    module f gen3
      func sg0000
        set x float32 (4,8) kind=ExternalInput
          loc x DRAM (1,128)
        set y float32 (4,8) kind=ExternalOutput
          loc y DRAM (1,128)
        set a float32 (4,8) memory=SB
          loc a SB (4,32) live=(0,1)
        block Block1
          i0 = Load DMA a:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]]
          i1 = Save DMA y:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]

Why: two locations may share bytes iff they are not live together. On a straight line that is one
closed interval each, so the three allocators that follow compare numbers and walk no program.
"""

from __future__ import annotations

from ncc.errors import NccError
from ncc.ir.bir import Ap, Module, with_sets
from ncc.ir.bir_loops import line
from ncc.ir.intervals import has_life, with_live
from ncc.ir.locations import owners
from ncc.passes.base import define
from ncc.target import Target


def apply(module: Module, target: Target) -> Module:
    func = module.main
    insts = line(func)
    written = {n for n, (o, loc) in owners(func.sets).items() if not has_life(o, loc)}
    for inst in insts:
        for x in inst.ins:
            if type(x) is Ap and x.loc not in written:
                said = f"reads {x.loc}, which no instruction before it writes"
                place = inst.origin.place(inst.name, "liveness")
                raise NccError("NCC500", said, place, "write it first, or drop the read")
        for x in inst.outs:
            if type(x) is Ap:
                written.add(x.loc)
    sets = with_live(func)
    return module if sets is func.sets else with_sets(module, sets)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("live-ranges-are-measured",),
    ends=("each-value-has-its-location",),
    after={
        "leave-ssa": "a location that holds one value after the other would live through the pause",
        "pre-sched": "positions are times, and it moves instructions",
    },
    real="Liveness",
    job="W0",
    sure="confirmed",
)
