"""Give every scratch tensor in DRAM an offset in the scratchpad.

Before:
    module f gen3
      func sg0000
        set x float32 (4,8) kind=ExternalInput
          loc x DRAM (1,128)
        set y float32 (4,8) kind=ExternalOutput
          loc y DRAM (1,128)
        set s float32 (4,8)
          loc s DRAM (1,128) live=(1,2)
        set t float32 (4,8)
          loc t DRAM (1,128) live=(3,4)
        set a float32 (4,8) memory=SB
          loc a SB (4,32) live=(0,1)
        set b float32 (4,8) memory=SB
          loc b SB (4,32) live=(2,3)
        set c float32 (4,8) memory=SB
          loc c SB (4,32) live=(4,5)
        block Block1
          i0 = Load DMA a:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]]
          i1 = Save DMA s:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]
          i2 = Load DMA b:float32[[8,4],[1,8]] <- s:float32[[8,4],[1,8]]
          i3 = Save DMA t:float32[[8,4],[1,8]] <- b:float32[[8,4],[1,8]]
          i4 = Load DMA c:float32[[8,4],[1,8]] <- t:float32[[8,4],[1,8]]
          i5 = Save DMA y:float32[[8,4],[1,8]] <- c:float32[[8,4],[1,8]]

After:
    module f gen3
      func sg0000
        set x float32 (4,8) kind=ExternalInput
          loc x DRAM (1,128) allocated=true
        set y float32 (4,8) kind=ExternalOutput
          loc y DRAM (1,128) allocated=true
        set s float32 (4,8)
          loc s DRAM (1,128) allocated=true live=(1,2)
        set t float32 (4,8)
          loc t DRAM (1,128) allocated=true live=(3,4)
        set a float32 (4,8) memory=SB
          loc a SB (4,32) live=(0,1)
        set b float32 (4,8) memory=SB
          loc b SB (4,32) live=(2,3)
        set c float32 (4,8) memory=SB
          loc c SB (4,32) live=(4,5)
        block Block1
          i0 = Load DMA a:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]]
          i1 = Save DMA s:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]
          i2 = Load DMA b:float32[[8,4],[1,8]] <- s:float32[[8,4],[1,8]]
          i3 = Save DMA t:float32[[8,4],[1,8]] <- b:float32[[8,4],[1,8]]
          i4 = Load DMA c:float32[[8,4],[1,8]] <- t:float32[[8,4],[1,8]]
          i5 = Save DMA y:float32[[8,4],[1,8]] <- c:float32[[8,4],[1,8]]

Why: inputs, outputs and constants are variables of the NEFF, each of its own; what the program
itself keeps in DRAM shares one scratchpad. Two tensors may share bytes there iff they are not live
together. DRAM is the bottom: nothing spills from here, so the lowest gap is good enough.
"""

from __future__ import annotations

import attrs

from ncc.ir.bir import Loc, Module, with_sets
from ncc.ir.intervals import first_gap
from ncc.ir.locations import owners, with_locs
from ncc.passes.base import define
from ncc.target import Target

PAGE = 4096


def apply(module: Module, target: Target) -> Module:
    func = module.main
    changed: dict[str, Loc] = {}
    scratch: list[Loc] = []
    for owner, loc in owners(func.sets).values():
        if loc.type != "DRAM" or loc.allocated:
            continue
        if owner.kind == "Internal":
            scratch.append(loc)
        else:
            changed[loc.name] = attrs.evolve(loc, addr=0, allocated=True)
    placed: list[tuple[int, int, int, int]] = []  # first, last, start, end
    for loc in sorted((x for x in scratch if x.live), key=lambda x: (x.live or (0, 0), x.name)):
        first, last = loc.live or (0, 0)
        placed = [span for span in placed if span[1] >= first]  # the others are dead by now
        size = -(-loc.dims[1] // PAGE) * PAGE
        start = first_gap([(a, b) for _, _, a, b in placed], size, PAGE, 1 << 62)
        assert start is not None
        placed.append((first, last, start, start + size))
        changed[loc.name] = attrs.evolve(loc, addr=start, allocated=True)
    sets = with_locs(func.sets, changed)
    return module if sets is func.sets else with_sets(module, sets)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    needs=("live-ranges-are-measured",),
    gives=("scratch-is-disjoint",),
    ends=("live-ranges-are-measured",),  # from here on passes add instructions
    after={"insert-spills": "spilled tiles get their homes here"},
    real="DRAMAllocator",
    job="W0",
    sure="confirmed",
)
