"""Choose one engine for every instruction, and write down the loops around it.

Before:
    PLACEHOLDER

After:
    PLACEHOLDER

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
from ncc.ir.bir import Block, Function, Inst, Module, SymAp, Tile
from ncc.passes.base import define
from ncc.target import Target

NAME = "finalize-insts"


def most(extent: Extent) -> int:
    return extent if isinstance(extent, int) else extent.most


def width(inst: Inst) -> int:
    """Elements a partition that the instruction writes in one iteration, at most."""
    out = inst.outs[0] if inst.outs else None
    pairs = out.ap[1:] if isinstance(out, SymAp) else out.free if isinstance(out, Tile) else ()
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
