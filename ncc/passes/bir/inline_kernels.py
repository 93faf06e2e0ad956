"""Splice every kernel's function into its caller, and keep the addresses that it chose.

Before:
    module copy gen3
      func sg0000
        set x float32 (4,8) kind=ExternalInput
        set y float32 (4,8) kind=ExternalOutput
        block Block1
          copy = NKIKernel ALL y[d0,d1|d0:4|d1:8] <- x[d0,d1|d0:4|d1:8] func=copy func_args=((x,x),) func_outs=((y,y),) kernel_source_val=1 sb_buf_shape=(128,96)  # copy.py:3
          exit = Exit ALL
      func copy attributes=(nki,)
        set copy:x float32 (4,8) kind=ExternalInput
          loc copy:x DRAM (1,128)
        set copy:y float32 (4,8) kind=ExternalOutput
          loc copy:y DRAM (1,128)
        set copy:t float32 (4,8) memory=SB
          loc copy:t SB (4,32) addr=64 allocated=true pinned=true
        set copy:u float32 (4,4) memory=SB
          loc copy:u SB (4,16) addr=80 allocated=true pinned=true
        block Block1
          copy:i0 = Load DMA copy:t:float32[[8,4],[1,8]] <- copy:x:float32[[32,1],[1,32]]  # copy.py:5
          copy:i1 = Save DMA copy:y:float32[[32,1],[1,32]] <- copy:t:float32[[8,4],[1,8]]  # copy.py:6
          copy:i2 = Load DMA copy:u:float32[[4,4],[1,4]] <- copy:x:float32[[8,4],[1,4]]+4  # copy.py:8
          copy:i3 = Save DMA copy:y:float32[[8,4],[1,4]] <- copy:u:float32[[4,4],[1,4]]  # copy.py:9
          copy:exit = Exit ALL

After:
    module copy gen3
      func sg0000
        set x float32 (4,8) kind=ExternalInput
          loc x DRAM (1,128)
        set y float32 (4,8) kind=ExternalOutput
          loc y DRAM (1,128)
        set copy:t.shared float32 (4,8) memory=SB
          loc copy:t.shared SB (4,32) addr=64 allocated=true pinned=true
        block Block1
          copy:i0 = Load DMA copy:t.shared:float32[[8,4],[1,8]] <- x:float32[[32,1],[1,32]]  # copy.py:5
          copy:i1 = Save DMA y:float32[[32,1],[1,32]] <- copy:t.shared:float32[[8,4],[1,8]]  # copy.py:6
          copy:i2 = Load DMA copy:t.shared:float32[[8,4],[1,4]]+4 <- x:float32[[8,4],[1,4]]+4  # copy.py:8
          copy:i3 = Save DMA y:float32[[8,4],[1,4]] <- copy:t.shared:float32[[8,4],[1,4]]+4  # copy.py:9
          exit = Exit ALL

Why: after this there is one function, so that no later pass has to know of kernels: sizes, PSUM,
order and memory are settled once, over everything. A location that the kernel left open is placed
like any other; an address that it chose is kept and pinned, and the allocators work around it.
Tensors of a kernel that overlap become one location, the rectangle around them, and each of them a
view of it: dependences go by bytes, so an address that is used again is ordered like any reuse.
Where two cores could not be split, a kernel for both is one stream: the cores run one after the
other, from barrier to barrier.
"""

from __future__ import annotations

import attrs

from ncc.ir.bir import Block, Inst, LocSet, Module
from ncc.ir.kernel_inline import expansion
from ncc.passes.base import define
from ncc.target import Target


def apply(module: Module, target: Target) -> Module:
    main = module.main
    if len(module.functions) == 1 and not any(
        inst.opcode == "NKIKernel" for block in main.blocks for inst in block.insts
    ):
        return module
    placed: dict[str, LocSet] = {}
    more: list[LocSet] = []
    blocks: list[Block] = []
    for block in main.blocks:
        found: list[Inst] = []
        for inst in block.insts:
            if inst.opcode != "NKIKernel":
                found.append(inst)
                continue
            made = expansion(inst, module)
            placed |= made.bound
            more += made.sets
            found += made.insts
        blocks.append(Block(block.name, tuple(found)))
    sets = tuple(placed.get(of.name, of) for of in main.sets)
    main = attrs.evolve(main, sets=(*sets, *more), blocks=tuple(blocks))
    return attrs.evolve(module, functions=(main,))


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("no-kernel-is-left",),
    needs=("no-carrier-is-left",),
    after={"translate-nki": "it splices in that pass's functions"},
    real="InlineNKIKernel",
    job="W0",
    sure="confirmed",
)
