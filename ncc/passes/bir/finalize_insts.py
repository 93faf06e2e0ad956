"""Choose one engine for every instruction, and write down the loops around it.

Before:
    module cast gen3
      func sg0000
        set x bfloat16 (4,15) kind=ExternalInput
          loc x DRAM (1,120)
        set y float32 (5,12) kind=ExternalOutput
          loc y DRAM (1,240)
        set x_t bfloat16 (3,5,4) memory=SB partition_dim=1
          loc x_t_0 SB (5,8)
          loc x_t_1 SB (5,8)
          loc x_t_2 SB (5,8)
        set y_t float32 (3,5,4) memory=SB partition_dim=1
          loc y_t_0 SB (5,16)
          loc y_t_1 SB (5,16)
          loc y_t_2 SB (5,16)
        block Block1
          for.i = Loop ALL axis=(i,0,3,1)
            block block0
              turn = AbstractCopy DMA x_t(i):bfloat16[[4,5],[1,4]] <- x():bfloat16[[15,4],[1,5]]+5*i transpose=true
              cast = TensorCopy DVE|Activation y_t(i):float32[[4,5],[1,4]] <- x_t(i):bfloat16[[4,5],[1,4]]
              store = AbstractCopy DMA y():float32[[12,5],[1,4]]+4*i <- y_t(i):float32[[4,5],[1,4]]
          exit = Exit ALL

After:
    module cast gen3
      func sg0000
        set x bfloat16 (4,15) kind=ExternalInput
          loc x DRAM (1,120)
        set y float32 (5,12) kind=ExternalOutput
          loc y DRAM (1,240)
        set x_t bfloat16 (3,5,4) memory=SB partition_dim=1
          loc x_t_0 SB (5,8)
          loc x_t_1 SB (5,8)
          loc x_t_2 SB (5,8)
        set y_t float32 (3,5,4) memory=SB partition_dim=1
          loc y_t_0 SB (5,16)
          loc y_t_1 SB (5,16)
          loc y_t_2 SB (5,16)
        block Block1
          for.i = Loop ALL axis=(i,0,3,1)
            block block0
              turn = AbstractCopy DMA x_t(i):bfloat16[[4,5],[1,4]] <- x():bfloat16[[15,4],[1,5]]+5*i transpose=true loopnest=(i,)
              cast = TensorCopy DVE y_t(i):float32[[4,5],[1,4]] <- x_t(i):bfloat16[[4,5],[1,4]] loopnest=(i,)
              store = AbstractCopy DMA y():float32[[12,5],[1,4]]+4*i <- y_t(i):float32[[4,5],[1,4]] loopnest=(i,)
          exit = Exit ALL

Why: select-insts said which engines may run an instruction; they run in parallel, so the work is
spread. Going through the program, each instruction takes the engine of its set that has the fewest
elements a partition to work on so far (the first one of equals), counting every iteration of the
loops around it. Streams that feed each other stay short, and the choice never depends on anything
but the program.
"""

from __future__ import annotations

from typing import cast

import attrs

from ncc.ir.affine import Extent
from ncc.ir.bir import Ap, Block, Function, Inst, Module, SymAp, Tile
from ncc.passes.base import define
from ncc.target import Target

NAME = "finalize-insts"


def most(extent: Extent) -> int:
    return extent if isinstance(extent, int) else extent.most


def width(inst: Inst) -> int:
    """Elements a partition that the instruction writes in one iteration, at most."""
    out = inst.outs[0] if inst.outs else None
    pairs = out.ap[1:] if isinstance(out, SymAp | Ap) else out.free if isinstance(out, Tile) else ()
    count = 1
    for _, num in cast(tuple[tuple[object, Extent], ...], pairs):
        count *= most(num)
    return count


class Balance:
    """The work that each engine has so far."""

    def __init__(self) -> None:
        self.load: dict[str, int] = {}

    def block(self, block: Block, nest: tuple[str, ...], times: int) -> Block:
        return Block(block.name, tuple(self.inst(x, nest, times) for x in block.insts))

    def inst(self, inst: Inst, nest: tuple[str, ...], times: int) -> Inst:
        blocks = inst.blocks
        if inst.axis:
            name, low, high, stride = inst.axis
            trips = max(0, -(-(high - low) // stride))
            blocks = tuple(self.block(b, (*nest, name), times * trips) for b in blocks)
        choices = inst.engine.split("|")
        engine = min(choices, key=lambda x: self.load.get(x, 0))
        self.load[engine] = self.load.get(engine, 0) + width(inst) * times
        return attrs.evolve(
            inst, engine=engine, loopnest=nest, blocks=blocks, origin=inst.origin.by(NAME)
        )


def apply(module: Module, target: Target) -> Module:
    functions: list[Function] = []
    for func in module.functions:
        balance = Balance()
        blocks = tuple(balance.block(block, (), 1) for block in func.blocks)
        functions.append(attrs.evolve(func, blocks=blocks))
    return attrs.evolve(module, functions=tuple(functions))


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("every-instruction-has-one-engine",),
    after={"penguin-to-bir": "it chooses among the engines that this pass wrote"},
    real="BirCodeGenLoop.transformInstruction",
    job="F2",
    sure="confirmed",
)
