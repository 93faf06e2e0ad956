"""Give every tensor its locations, and every operand the pattern with which it walks one.

Before:
    module cast gen3
      func sg0000
        set x bfloat16 (4,15) kind=ExternalInput
        set y float32 (5,12) kind=ExternalOutput
        set x_t bfloat16 (3,5,4) memory=SB partition_dim=1
        set y_t float32 (3,5,4) memory=SB partition_dim=1
        block Block1
          for.i = Loop ALL axis=(i,0,3,1)
            block block0
              turn = AbstractCopy DMA x_t[i,c,r|c:5|r:4] <- x[r,c+5*i|r:4|c:5] transpose=true
              cast = TensorCopy DVE|Activation y_t[i,c,r|c:5|r:4] <- x_t[i,c,r|c:5|r:4]
              store = AbstractCopy DMA y[c,4*i+r|c:5|r:4] <- y_t[i,c,r|c:5|r:4]
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
              turn = AbstractCopy DMA x_t(i):bfloat16[[4,5],[1,4]] <- x():bfloat16[[15,4],[1,5]]+5*i transpose=true
              cast = TensorCopy DVE|Activation y_t(i):float32[[4,5],[1,4]] <- x_t(i):bfloat16[[4,5],[1,4]]
              store = AbstractCopy DMA y():float32[[12,5],[1,4]]+4*i <- y_t(i):float32[[4,5],[1,4]]
          exit = Exit ALL

Why: a tile is named axes over a tensor; the machine knows only a place, steps and counts. Here the
one becomes the other, once: a tensor with block dimensions gets one location a block, a tile's axes
become [step, num] pairs over the location's elements, and what depends on a loop stays symbolic.
Both sides of a copy are walked in the order of their pairs, so a pair may be joined with its
neighbour on one side only. A transposing copy keeps that name as long as each side is a plain
matrix; otherwise its source is walked in the order of the destination, element by element.
"""

from __future__ import annotations

import attrs

from ncc.errors import NccError
from ncc.ir.bir import Block, Function, Inst, Loc, LocSet, Module, Operand, SymAp, Tile
from ncc.ir.bir_opcodes import key, keyed
from ncc.ir.bir_patterns import (
    SymPairs,
    block_of,
    elements,
    joined,
    loc_dims,
    loc_shape,
    side,
    strides,
    walk,
)
from ncc.passes.base import define
from ncc.target import Target

NAME = "bind-memlocs"


def with_locs(of: LocSet, taken: set[str]) -> LocSet:
    """The set with one location a block: NAME, or NAME_0, NAME_1, ... where it has blocks."""
    if of.locs:
        return of
    blocks = elements([(0, n) for n in of.shape[: of.partition_dim]])
    dims = loc_dims(of)
    names = [of.name] if not of.partition_dim else [f"{of.name}_{i}" for i in range(blocks)]
    locs: list[Loc] = []
    for name in names:
        while name in taken:
            name += "_"
        taken.add(name)
        locs.append(Loc(name, of.memory, dims))
    return attrs.evolve(of, locs=tuple(locs))


class Binder:
    """One function's sets, by name."""

    def __init__(self, sets: dict[str, LocSet]) -> None:
        self.sets = sets

    def block(self, block: Block) -> Block:
        return Block(block.name, tuple(self.inst(inst) for inst in block.insts))

    def inst(self, inst: Inst) -> Inst:
        if inst.opcode == "AbstractCopy" and key(inst, "transpose"):
            return self.transpose(inst)
        return self.made(
            inst,
            tuple(self.operand(inst, x) for x in inst.ins),
            tuple(self.operand(inst, x) for x in inst.outs),
        )

    def made(
        self, inst: Inst, ins: tuple[Operand, ...], outs: tuple[Operand, ...], plain: bool = False
    ) -> Inst:
        return attrs.evolve(
            inst,
            ins=ins,
            outs=outs,
            keys=keyed(inst.opcode, inst.keys, transpose=False) if plain else inst.keys,
            blocks=tuple(self.block(b) for b in inst.blocks),
            origin=inst.origin.by(NAME),
        )

    def transpose(self, inst: Inst) -> Inst:
        """Two matrices stay a transposing copy; else the source follows the destination."""
        source, result = inst.ins[0], inst.outs[0]
        if not isinstance(source, Tile) or not isinstance(result, Tile):
            return inst
        groups = [
            side(axes, walk(self.sets[tile.set], tile)[1])
            for tile in (source, result)
            for axes in (tile.par, tile.free)
        ]
        if all(len(group) <= 1 for group in groups):
            return self.made(inst, (self.operand(inst, source),), (self.operand(inst, result),))
        follows = Tile(source.set, source.index, result.par, result.free)
        return self.made(
            inst, (self.operand(inst, follows),), (self.operand(inst, result),), plain=True
        )

    def operand(self, inst: Inst, operand: Operand) -> Operand:
        if not isinstance(operand, Tile):
            return operand
        of = self.sets[operand.set]
        try:
            offset, steps = walk(of, operand)
        except ValueError as said:
            place = inst.origin.place(inst.name, NAME)
            raise NccError("NCC411", f"the operand {of.name} {said}", place) from None
        block = block_of(of, operand.index)
        return SymAp(of.name, block, of.dtype, self.pairs(inst, of, operand, steps), offset)

    def pairs(self, inst: Inst, of: LocSet, tile: Tile, steps: dict[str, int]) -> SymPairs:
        """The partition pair and the free pairs on chip; in DRAM all axes in their order."""
        down, along = side(tile.par, steps), side(tile.free, steps)
        shape = loc_shape(of)
        if of.memory == "DRAM":
            head = down or [(strides(shape)[0] if shape else 1, 1)]
            if not along and len(down) > 1:
                return tuple(down)
            return (*head, *(along or [(1, 1)]))
        width = strides(shape)[0]
        if len(down) > 1 or any(step != width for step, _ in down):
            shown = ",".join(f"[{step},{num}]" for step, num in down)
            said = (
                f"the operand {of.name} walks partitions by {shown}, and a partition of it holds "
                f"{width} elements; only consecutive partitions can be walked"
            )
            raise NccError("NCC411", said, inst.origin.place(inst.name, NAME))
        return (*(down or [(width, 1)]), *(joined(along) or [(1, 1)]))


def apply(module: Module, target: Target) -> Module:
    functions: list[Function] = []
    for func in module.functions:
        taken: set[str] = set()
        sets = tuple(with_locs(of, taken) for of in func.sets)
        binder = Binder({of.name: of for of in sets})
        blocks = tuple(binder.block(block) for block in func.blocks)
        functions.append(attrs.evolve(func, sets=sets, blocks=blocks))
    return attrs.evolve(module, functions=tuple(functions))


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("operands-are-bound",),
    after={"penguin-to-bir": "it binds that pass's tiles"},
    real="BirCodeGenLoop.createMemLoc",
    job="F2",
    sure="confirmed",
)
