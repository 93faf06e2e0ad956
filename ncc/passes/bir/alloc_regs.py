"""Give every register its number.

Before:
    module m gen3
      func sg0000
        block Block1
          i0 = RegisterMove SP %n:int32 <- 5:int32
          i1 = RegisterMove SP %i:int32 <- 0:int32
          i2 = CompareAndBranch SP <- %i:int32 %n:int32 comp_op=IS_LTREG on_false=after on_true=turn
        block turn
          i3 = RegisterAlu SP %twice:int32 <- %i:int32 %i:int32 op=add
          i4 = RegisterAlu SP %more:int32 <- %twice:int32 1:int32 op=add
          i5 = RegisterAlu SP %i:int32 <- %i:int32 %more:int32 op=max
          i6 = CompareAndBranch SP <- %i:int32 %n:int32 comp_op=IS_LTREG on_false=after on_true=turn
        block after
          i7 = Exit SP

After:
    module m gen3
      func sg0000
        block Block1
          i0 = RegisterMove SP %r0:int32 <- 5:int32
          i1 = RegisterMove SP %r1:int32 <- 0:int32
          i2 = CompareAndBranch SP <- %r1:int32 %r0:int32 comp_op=IS_LTREG on_false=after on_true=turn
        block turn
          i3 = RegisterAlu SP %r2:int32 <- %r1:int32 %r1:int32 op=add
          i4 = RegisterAlu SP %r2:int32 <- %r2:int32 1:int32 op=add
          i5 = RegisterAlu SP %r1:int32 <- %r1:int32 %r2:int32 op=max
          i6 = CompareAndBranch SP <- %r1:int32 %r0:int32 comp_op=IS_LTREG on_false=after on_true=turn
        block after
          i7 = Exit SP

Why: an engine has 64 registers, two of which the encoder keeps for itself. What is live goes by the
branches: a register that a turn reads before it writes it lives around the loop, a product of one
line only to the next. Two that are never live together may share a number. Each engine has
registers of its own, but what all engines do has one name, and gets the same number on all: going
through the program, a register takes the lowest that nobody has whom it meets anywhere.
"""

from __future__ import annotations

import attrs

from ncc.errors import NccError
from ncc.ir.bir import Block, Function, Inst, Module, Operand, Reg
from ncc.ir.bir_loops import ways
from ncc.ir.clocks import ENGINES
from ncc.numerics_registers import COUNT
from ncc.passes.base import define
from ncc.target import Target

NAME = "alloc-regs"
Names = set[str]


def apply(module: Module, target: Target) -> Module:
    func = module.main
    order = list(dict.fromkeys(x.name for b in func.blocks for i in b.insts for x in registers(i)))
    if not order:
        return module
    meets: dict[str, Names] = {name: set() for name in order}
    for engine in ENGINES:
        meeting(func, engine, meets)
    numbers = coloured(order, meets)
    if bad := next((name for name in order if numbers[name] >= COUNT), ""):
        raise too_many(func, bad, max(numbers.values()) + 1)
    blocks = tuple(Block(b.name, tuple(numbered(i, numbers) for i in b.insts)) for b in func.blocks)
    func = attrs.evolve(func, blocks=blocks)
    return attrs.evolve(module, functions=(func, *module.functions[1:]))


def registers(inst: Inst) -> list[Reg]:
    return [x for x in (*inst.outs, *inst.ins) if type(x) is Reg]


def meeting(func: Function, engine: str, meets: dict[str, Names]) -> None:
    """Note which registers of one engine are live together."""
    blocks = [
        Block(b.name, tuple(i for i in b.insts if i.engine == engine and registers(i)))
        for b in func.blocks
    ]
    follow = following(func)
    live: list[Names] = [set() for _ in blocks]  # where each block begins
    changed = True
    while changed:
        changed = False
        for n in range(len(blocks) - 1, -1, -1):
            before = set[str]().union(*[live[k] for k in follow[n]])
            for inst in reversed(blocks[n].insts):
                before = through(inst, before)
            changed = changed or before != live[n]
            live[n] = before
    for n, block in enumerate(blocks):
        after = set[str]().union(*[live[k] for k in follow[n]])
        for inst in reversed(block.insts):
            for x in inst.outs:
                if type(x) is Reg:
                    for other in after - {x.name}:
                        meets[x.name].add(other)
                        meets[other].add(x.name)
            after = through(inst, after)


def following(func: Function) -> list[list[int]]:
    """Of each block those that may come next."""
    number = {block.name: n for n, block in enumerate(func.blocks)}
    last = len(func.blocks) - 1
    return [
        [number[way] for way in ways(block) if way in number] or ([n + 1] if n < last else [])
        for n, block in enumerate(func.blocks)
    ]


def through(inst: Inst, after: Names) -> Names:
    """What is live before an instruction, from what is live after it."""
    written = {x.name for x in inst.outs if type(x) is Reg}
    return (after - written) | {x.name for x in inst.ins if type(x) is Reg}


def coloured(order: list[str], meets: dict[str, Names]) -> dict[str, int]:
    numbers: dict[str, int] = {}
    for name in order:
        taken = {numbers[other] for other in meets[name] if other in numbers}
        numbers[name] = next(n for n in range(len(order)) if n not in taken)
    return numbers


def numbered(inst: Inst, numbers: dict[str, int]) -> Inst:
    if not registers(inst):
        return inst

    def new(x: Operand) -> Operand:
        return Reg(f"r{numbers[x.name]}", x.dtype) if type(x) is Reg else x

    ins, outs = tuple(map(new, inst.ins)), tuple(map(new, inst.outs))
    return attrs.evolve(inst, ins=ins, outs=outs, origin=inst.origin.by(NAME))


def too_many(func: Function, name: str, count: int) -> NccError:
    """NCC608: more registers are live together than an engine has."""
    inst = next(
        i for b in func.blocks for i in b.insts if any(x.name == name for x in registers(i))
    )
    said = f"{count} registers are live together, and an engine has {COUNT} for a program"
    hint = "keep values that turns only pass on in a tile, and load them where they are needed"
    return NccError("NCC608", said, inst.origin.place(name, NAME), hint)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("registers-are-numbered",),
    after={"expand-engines": "what an engine keeps is known when all it does is in its stream"},
    real="alloc_regs",
    job="W0",
    sure="inferred",
)
