"""A matmul whose weights are still in the PE array does not load them again.

Before:
    module m gen3
      func sg0000
        set x bfloat16 (4,4) memory=SB
          loc x SB (4,8) allocated=true
        set w bfloat16 (4,8) memory=SB
          loc w SB (4,16) addr=8 allocated=true
        set p float32 (8,4) memory=PSUM
          loc p PSUM (8,16) allocated=true
        set q float32 (8,4) memory=PSUM
          loc q PSUM (8,16) addr=2048 bank=1 allocated=true
        block Block1
          i0 = Matmult PE p:float32[[4,8],[1,4]] <- x:bfloat16[[4,4],[1,4]] w:bfloat16[[8,4],[1,8]] accumulation_flag=3
          i1 = Matmult PE q:float32[[4,8],[1,4]] <- x:bfloat16[[4,4],[1,4]] w:bfloat16[[8,4],[1,8]] accumulation_flag=3
          i2 = Memset DVE w:bfloat16[[8,4],[1,1]]
          i3 = Matmult PE q:float32[[4,8],[1,4]] <- x:bfloat16[[4,4],[1,4]] w:bfloat16[[8,4],[1,8]] accumulation_flag=3
          i4 = Exit PE

After:
    module m gen3
      func sg0000
        set x bfloat16 (4,4) memory=SB
          loc x SB (4,8) allocated=true
        set w bfloat16 (4,8) memory=SB
          loc w SB (4,16) addr=8 allocated=true
        set p float32 (8,4) memory=PSUM
          loc p PSUM (8,16) allocated=true
        set q float32 (8,4) memory=PSUM
          loc q PSUM (8,16) addr=2048 bank=1 allocated=true
        block Block1
          i0 = Matmult PE p:float32[[4,8],[1,4]] <- x:bfloat16[[4,4],[1,4]] w:bfloat16[[8,4],[1,8]] accumulation_flag=3
          i1 = Matmult PE q:float32[[4,8],[1,4]] <- x:bfloat16[[4,4],[1,4]] w:bfloat16[[8,4],[1,8]] accumulation_flag=3 weights_loaded=true
          i2 = Memset DVE w:bfloat16[[8,4],[1,1]]
          i3 = Matmult PE q:float32[[4,8],[1,4]] <- x:bfloat16[[4,4],[1,4]] w:bfloat16[[8,4],[1,8]] accumulation_flag=3
          i4 = Exit PE

Why:
    A matmul is two records: one loads the stationary tile into the array, one streams the moving
    tile through it. Several matmuls in a row often share the stationary tile. What the array holds
    is remembered for each group of rows and columns, and forgotten when another tile takes part of
    the group, when something writes the tile's bytes in SBUF, or when fp32 weights come, which take
    two loads. `weights_loaded` then says that the first of the two records is not needed.
"""

from __future__ import annotations

from typing import Any

from ncc.ir.bir import Ap, Inst, Module, with_insts
from ncc.ir.bir_change import with_keys
from ncc.ir.bir_loops import line
from ncc.ir.core import unchanged
from ncc.ir.footprints import (
    SBUF,
    Footprints,
    Rect,
    column_group,
    group_code,
    key_of,
    meets,
    share_cells,
)
from ncc.passes.base import define
from ncc.target import Target

NAME = "drop-warm-loads"
Group = tuple[int, int]  # the codes of its rows and its columns
SIGNATURE = ("is_transpose", "perf_mode", "tile_size", "tile_position", "weights_quant_offset")


def apply(module: Module, target: Target) -> Module:
    new: list[Inst] = []
    for block in module.main.blocks:
        array = WarmArray(Footprints(module))  # a turn may come from elsewhere
        for inst in block.insts:
            warm = array.step(inst) and not key_of(inst, "weights_loaded", False)
            new.append(with_keys(inst, NAME, weights_loaded=True) if warm else inst)
    return module if unchanged(new, line(module.main)) else with_insts(module, tuple(new))


class WarmArray:
    """What the PE array holds: for each group its tile, as bytes and as how it was loaded."""

    def __init__(self, footprints: Footprints) -> None:
        self.footprints = footprints
        self.held: dict[Group, tuple[Rect, tuple[Any, ...]]] = {}

    def step(self, inst: Inst) -> bool:
        """Take one instruction into account; whether it is a matmul that finds its weights."""
        if inst.opcode == "Matmult":
            return self.matmul(inst)
        if self.held and inst.outs:
            for dest in self.footprints.places.touched(inst)[1]:
                if dest.plane == SBUF:
                    self.held = {g: t for g, t in self.held.items() if not meets(t[0], dest)}
        return False

    def matmul(self, inst: Inst) -> bool:
        weights = inst.ins[1]
        (_, tile), (dest,) = self.footprints.places.touched(inst)
        if type(weights) is not Ap:
            return False
        group = (group_code(tile.r0, tile.r1 - tile.r0), column_group(inst, dest))
        if weights.dtype == "float32":
            self.held = {}
            return False
        loaded = (weights, *(key_of(inst, name) for name in SIGNATURE))
        if (found := self.held.get(group)) and found[1] == loaded:
            return True
        self.held = {g: t for g, t in self.held.items() if not share_cells(g, group)}
        self.held[group] = (tile, loaded)
        return False


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("warm-weights-are-held",),
    required=False,
    after={"alloc-sems": "what moves an instruction or writes SBUF comes before"},
    real="codegen's weight cache",
    job="W0",
    sure="confirmed",
)
