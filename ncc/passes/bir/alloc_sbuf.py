"""Give every SBUF tile that fits a rectangle of partitions and bytes.

Before:
    module f gen3
      func sg0000
        set x float32 (128,8) kind=ExternalInput
          loc x DRAM (1,4096)
        set y float32 (128,8) kind=ExternalOutput
          loc y DRAM (1,4096)
        set a float32 (128,8) memory=SB
          loc a SB (128,32) live=(0,1)
        set b float32 (128,8) memory=SB
          loc b SB (128,32) live=(1,2)
        set c float32 (128,8) memory=SB
          loc c SB (128,32) live=(2,3)
        block Block1
          i0 = Load DMA a:float32[[8,128],[1,8]] <- x:float32[[8,128],[1,8]]
          i1 = TensorCopy DVE b:float32[[8,128],[1,8]] <- a:float32[[8,128],[1,8]]
          i2 = TensorCopy DVE c:float32[[8,128],[1,8]] <- b:float32[[8,128],[1,8]]
          i3 = Save DMA y:float32[[8,128],[1,8]] <- c:float32[[8,128],[1,8]]

After:
    module f gen3
      func sg0000
        set x float32 (128,8) kind=ExternalInput
          loc x DRAM (1,4096)
        set y float32 (128,8) kind=ExternalOutput
          loc y DRAM (1,4096)
        set a float32 (128,8) memory=SB
          loc a SB (128,32) allocated=true live=(0,1)
        set b float32 (128,8) memory=SB
          loc b SB (128,32) addr=32 allocated=true live=(1,2)
        set c float32 (128,8) memory=SB
          loc c SB (128,32) allocated=true live=(2,3)
        block Block1
          i0 = Load DMA a:float32[[8,128],[1,8]] <- x:float32[[8,128],[1,8]]
          i1 = TensorCopy DVE b:float32[[8,128],[1,8]] <- a:float32[[8,128],[1,8]]
          i2 = TensorCopy DVE c:float32[[8,128],[1,8]] <- b:float32[[8,128],[1,8]]
          i3 = Save DMA y:float32[[8,128],[1,8]] <- c:float32[[8,128],[1,8]]

Why: SBUF is the scarce memory, and a tile is a rectangle in it. Colouring finds places for tiles
whose lives overlap; whoever finds none stays without `allocated`, and insert-spills, which may add
instructions, deals with it. This pass adds none: it only fills in three fields. `--allocator` puts
a stack or a linear scan (`ncc.ir.allocators`) in the place of colouring, here, for PSUM and for
spills; what must hold afterwards is the same.
"""

from __future__ import annotations

from ncc.ir.bir import Module, with_sets
from ncc.ir.sbuf_rectangles import allocated, placed, rectangles
from ncc.passes.base import define
from ncc.target import Target


def apply(module: Module, target: Target) -> Module:
    func = module.main
    sets = placed(func.sets, allocated(rectangles(module, target), target))
    return module if sets is func.sets else with_sets(module, sets)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    needs=("live-ranges-are-measured",),
    gives=("live-tiles-are-disjoint", "tiles-are-aligned"),
    after={"alloc-psum": "what PSUM cannot hold comes to SBUF, and nothing goes the other way"},
    real="SBAllocator",
    job="W0",
    sure="confirmed",
)
