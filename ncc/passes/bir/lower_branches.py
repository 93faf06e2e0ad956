"""Loops that the machine runs become blocks with branches.

Before:
    module m gen3
      func sg0000
        set x float32 (4,8) kind=ExternalInput
          loc x DRAM (1,128)
        set n int32 (1,1) kind=ExternalInput
          loc n DRAM (1,4)
        set a float32 (4,8) memory=SB
          loc a SB (4,32)
        set y float32 (4,8) kind=ExternalOutput
          loc y DRAM (1,128)
        block Block1
          i0 = Load DMA a:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]]
          i1 = TensorLoad ALL %n:int32 <- n:int32[[1,1],[1,1]]
          i2 = DynamicForLoop ALL %i:int32 <- 0:int32 %n:int32
            block block0
              i3 = Reciprocal DVE a:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]
          i4 = Save DMA y:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]
          i5 = Exit ALL

After:
    module m gen3
      func sg0000
        set x float32 (4,8) kind=ExternalInput
          loc x DRAM (1,128)
        set n int32 (1,1) kind=ExternalInput
          loc n DRAM (1,4)
        set a float32 (4,8) memory=SB
          loc a SB (4,32)
        set y float32 (4,8) kind=ExternalOutput
          loc y DRAM (1,128)
        block Block1
          i0 = Load DMA a:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]]
          i1 = TensorLoad ALL %n:int32 <- n:int32[[1,1],[1,1]]
          i2.0 = RegisterMove ALL %i:int32 <- 0:int32
          i2.1 = AllEngineBarrier ALL
          i2.2 = CompareAndBranch ALL <- %i:int32 %n:int32 comp_op=IS_LTREG on_false=i2.after on_true=i2.turn
        block i2.turn
          i3 = Reciprocal DVE a:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]
          i2.3 = RegisterAlu ALL %i:int32 <- %i:int32 1:int32 op=add
          i2.4 = AllEngineBarrier ALL
          i2.5 = CompareAndBranch ALL <- %i:int32 %n:int32 comp_op=IS_LTREG on_false=i2.after on_true=i2.turn
        block i2.after
          i4 = Save DMA y:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]
          i5 = Exit ALL

Why: from here on there are only blocks, which are straight lines, and branches between them. The
comparison stands before the loop and at the end of its body, so that a turn is one block and takes
one branch. At the end of each block all engines meet: what a block's instructions wait for is then
inside it, and each turn counts from zero, like a straight line. So every later pass settles order,
sums and waits a block at a time, and only lives reach around a loop. What branches stands on all
engines, because each has a stream of its own, and all have to go the same way.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ncc.ir.bir import Block, Function, Imm, Inst, Module, Operand, Reg
from ncc.ir.bir_change import fresh_names
from ncc.ir.bir_opcodes import key, keyed
from ncc.ir.bir_walk import all_insts
from ncc.ir.locations import fresh
from ncc.passes.base import define
from ncc.target import Target

NAME = "lower-branches"
LOOPS = ("DynamicForLoop", "DoWhile")


def apply(module: Module, target: Target) -> Module:
    main = module.main
    if not any(inst.opcode in LOOPS for inst in all_insts(main.blocks)):
        return module
    main = attrs.evolve(main, blocks=tuple(inside(block) for block in Flattener(main).blocks))
    return attrs.evolve(module, functions=(main, *module.functions[1:]))


def inside(block: Block) -> Block:
    """A block without edges from others: at its border all engines have met."""
    here = {inst.name for inst in block.insts}
    insts = [
        inst
        if all(name in here for name, _ in inst.deps)
        else attrs.evolve(inst, deps=tuple(x for x in inst.deps if x[0] in here))
        for inst in block.insts
    ]
    return Block(block.name, tuple(insts))


class Flattener:
    """One function's blocks, parted where loops begin and end."""

    def __init__(self, func: Function) -> None:
        everything = list(all_insts(func.blocks))
        self.taken = {inst.name for inst in everything}
        self.names = {block.name for block in func.blocks}
        self.registers = {x.name for i in everything for x in i.outs if isinstance(x, Reg)}
        self.blocks: list[Block] = []
        for block in func.blocks:
            self.name, self.insts = block.name, list[Inst]()
            self.body(block.insts)
            self.end("")

    def body(self, insts: Sequence[Inst]) -> None:
        for inst in insts:
            if inst.opcode in LOOPS:
                self.loop(inst)
            else:
                self.insts.append(inst)

    def end(self, following: str) -> None:
        """The block at hand is done, and the next one begins."""
        self.blocks.append(Block(self.name, tuple(self.insts)))
        self.name, self.insts = following, []

    def loop(self, inst: Inst) -> None:
        turn, after = (fresh(f"{inst.name}.{x}", self.names) for x in ("turn", "after"))
        counts = inst.opcode == "DynamicForLoop"
        left, right = inst.ins[0], Imm(0, "int32")
        if counts:
            left, right = inst.outs[0], self.bound(inst)
            self.put(inst, "RegisterMove", (left,), (inst.ins[0],))
        if not counts and key(inst, "is_do_while"):
            self.put(inst, "AllEngineBarrier")
            self.put(inst, "UnconditionalBranch", target=turn)
        else:
            self.branch(inst, left, right, turn, after)
        self.end(turn)
        for block in inst.blocks:
            self.body(block.insts)
        if counts:
            self.put(
                inst, "RegisterAlu", (left,), (left, Imm(key(inst, "step"), "int32")), op="add"
            )
        self.branch(inst, left, right, turn, after)
        self.end(after)

    def bound(self, inst: Inst) -> Operand:
        """The upper bound as it is before the first turn, whatever the body does to its register."""
        upper = inst.ins[1]
        written = [x for i in all_insts(inst.blocks) for x in i.outs]
        if not isinstance(upper, Reg) or upper not in written:
            return upper
        kept = Reg(fresh(f"{upper.name}.bound", self.registers), upper.dtype)
        self.put(inst, "RegisterMove", (kept,), (upper,))
        return kept

    def branch(self, inst: Inst, left: Operand, right: Operand, turn: str, after: str) -> None:
        """All engines meet; then to the next turn, or out of the loop."""
        word = "IS_LT" if inst.opcode == "DynamicForLoop" else "IS_NE"
        comparison = f"{word}{'IMM' if isinstance(right, Imm) else 'REG'}"
        self.put(inst, "AllEngineBarrier")
        ways = {"comp_op": comparison, "on_true": turn, "on_false": after}
        self.put(inst, "CompareAndBranch", (), (left, right), **ways)

    def put(
        self,
        inst: Inst,
        opcode: str,
        outs: tuple[Operand, ...] = (),
        ins: tuple[Operand, ...] = (),
        **keys: object,
    ) -> None:
        (name,) = fresh_names(self.taken, inst.name, 1)
        made = keyed(opcode, **keys) if keys else ()
        self.insts.append(Inst(name, opcode, "ALL", ins, outs, made, origin=inst.origin.by(NAME)))


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    after={"inline-kernels": "only kernels have such loops"},
    real="lower_branch",
    job="W0",
    sure="inferred",
)
