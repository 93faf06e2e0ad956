"""Replace every loop by its iterations, one after the other, with numbers for expressions.

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
              turn = DMACopy DMA x_t(i):bfloat16[[4,5],[1,1],[1,1],[1,4]] <- x():bfloat16[[15,4],[1,1],[1,1],[1,5]]+5*i mode=Transpose transpose_op=XZYW loopnest=(i,)
              cast = TensorCopy DVE y_t(i):float32[[4,5],[1,4]] <- x_t(i):bfloat16[[4,5],[1,4]] loopnest=(i,)
              store = Save DMA y():float32[[12,5],[1,4]]+4*i <- y_t(i):float32[[4,5],[1,4]] loopnest=(i,)
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
          turn.0 = DMACopy DMA x_t_0:bfloat16[[4,5],[1,1],[1,1],[1,4]] <- x:bfloat16[[15,4],[1,1],[1,1],[1,5]] mode=Transpose transpose_op=XZYW
          cast.0 = TensorCopy DVE y_t_0:float32[[4,5],[1,4]] <- x_t_0:bfloat16[[4,5],[1,4]]
          store.0 = Save DMA y:float32[[12,5],[1,4]] <- y_t_0:float32[[4,5],[1,4]]
          turn.1 = DMACopy DMA x_t_1:bfloat16[[4,5],[1,1],[1,1],[1,4]] <- x:bfloat16[[15,4],[1,1],[1,1],[1,5]]+5 mode=Transpose transpose_op=XZYW
          cast.1 = TensorCopy DVE y_t_1:float32[[4,5],[1,4]] <- x_t_1:bfloat16[[4,5],[1,4]]
          store.1 = Save DMA y:float32[[12,5],[1,4]]+4 <- y_t_1:float32[[4,5],[1,4]]
          turn.2 = DMACopy DMA x_t_2:bfloat16[[4,5],[1,1],[1,1],[1,4]] <- x:bfloat16[[15,4],[1,1],[1,1],[1,5]]+10 mode=Transpose transpose_op=XZYW
          cast.2 = TensorCopy DVE y_t_2:float32[[4,5],[1,4]] <- x_t_2:bfloat16[[4,5],[1,4]]
          store.2 = Save DMA y:float32[[12,5],[1,4]]+8 <- y_t_2:float32[[4,5],[1,4]]
          exit = Exit ALL

Why: the streams of the machine have no loops here, and every later question (which bytes live
when, who waits for whom) is about single instructions with known addresses. An iteration is part of
the instruction's name, so that a name says where it comes from. A matmul learns whether it begins a
sum: it does when every loop that it accumulates over stands at 0.
"""

from __future__ import annotations

from collections.abc import Callable

import attrs

from ncc.errors import NccError, Place
from ncc.ir.affine import at
from ncc.ir.bir import Ap, Block, Function, Inst, LocSet, Module, Operand, SymAp
from ncc.ir.bir_opcodes import key, keyed
from ncc.ir.bir_patterns import Pairs, block_number, canonical
from ncc.passes.base import define
from ncc.target import Target

NAME = "unroll"
MOST_INSTRUCTIONS = 4_000_000  # the real ceiling is 24,999,999, which would take hours here
Env = dict[str, int]
Make = Callable[[Env], Operand]


def operand_maker(operand: Operand, inst: Inst, sets: dict[str, LocSet]) -> Make:
    """A function from an iteration to the operand there; equal operands are one object."""
    if not isinstance(operand, SymAp):
        return lambda env: operand
    of = sets[operand.set]
    plain = inst.opcode == "DMACopy" and key(inst, "mode") == "Transpose"
    dram = of.memory == "DRAM"
    made: dict[tuple[int, ...], Ap] = {}
    names = [loc.name for loc in of.locs]
    number_of = block_number(of)
    block, offset, dtype, pairs = operand.block, operand.offset, operand.dtype, operand.ap
    fixed = all(isinstance(num, int) for _, num in pairs)
    shrinking = [num for _, num in pairs if not isinstance(num, int)]

    def pattern(env: Env) -> Pairs:
        ap = tuple((step, at(num, env)) for step, num in pairs)
        return ap if plain else canonical(ap, dram)

    whole: Pairs = pattern({}) if fixed else ()

    def make(env: Env) -> Ap:
        try:
            number, start = number_of(block, env), offset.at(env)
        except ValueError as said:
            raise NccError("NCC414", f"wants {said}", inst.origin.place(inst.name, NAME)) from None
        seen = (number, start) if fixed else (number, start, *[x.at(env) for x in shrinking])
        found = made.get(seen)
        if found is None:
            found = Ap(names[number], dtype, whole if fixed else pattern(env), start)
            made[seen] = found
        return found

    return make


class Unroller:
    """One function's walk: the loops that are open, and what they gave so far."""

    def __init__(self, func: Function) -> None:
        self.sets = {of.name: of for of in func.sets}
        self.out: list[Inst] = []
        self.names: set[str] = set()
        self.func = func

    def block(self, block: Block, env: Env) -> Callable[[str], None]:
        """The block compiled once: a function that appends one iteration of it."""
        steps = [self.step(inst, env) for inst in block.insts]

        def run(suffix: str) -> None:
            for step in steps:
                step(suffix)

        return run

    def step(self, inst: Inst, env: Env) -> Callable[[str], None]:
        return self.loop(inst, env) if inst.opcode == "Loop" else self.straight(inst, env)

    def loop(self, inst: Inst, env: Env) -> Callable[[str], None]:
        name, low, high, stride = inst.axis or ("", 0, 0, 1)
        bodies = [self.block(block, env) for block in inst.blocks]
        once = len(range(low, high, stride)) == 1  # its iteration tells no two instructions apart

        def run(suffix: str) -> None:
            for value in range(low, high, stride):
                env[name] = value
                for body in bodies:
                    body(suffix if once else f"{suffix}.{value}")
            env.pop(name, None)

        return run

    def straight(self, inst: Inst, env: Env) -> Callable[[str], None]:
        ins = [operand_maker(x, inst, self.sets) for x in inst.ins]
        outs = [operand_maker(x, inst, self.sets) for x in inst.outs]
        name, opcode, engine, origin = inst.name, inst.opcode, inst.engine, inst.origin.by(NAME)
        over: tuple[str, ...] = key(inst, "accumulate_over") if opcode.startswith("Matmult") else ()
        first = later = inst.keys
        if over:
            first = keyed(opcode, inst.keys, accumulate_over=())
            later = keyed(opcode, inst.keys, accumulate_over=(), accumulate=True)
        emit = self.emit

        def run(suffix: str) -> None:
            keys = later if over and any(env[x] for x in over) else first
            emit(
                Inst(
                    name + suffix,
                    opcode,
                    engine,
                    tuple([make(env) for make in ins]),
                    tuple([make(env) for make in outs]),
                    keys,
                    () if suffix else inst.deps,  # a wish for order names what no loop repeats
                    origin=origin,
                )
            )

        return run

    def emit(self, inst: Inst) -> None:
        name = inst.name
        while name in self.names:
            name += "_"
        if name is not inst.name:
            inst = attrs.evolve(inst, name=name)
        self.names.add(name)
        self.out.append(inst)

    def function(self) -> Function:
        if sum(map(count, self.func.blocks)) > MOST_INSTRUCTIONS:
            said = f"unrolling @{self.func.name} gives more than {MOST_INSTRUCTIONS} instructions"
            hint = "make the tiles larger, so that loops have fewer rounds"
            raise NccError("NCC415", said, Place(value=self.func.name, during=NAME), hint)
        env: Env = {}
        blocks: list[Block] = []
        for block in self.func.blocks:
            self.out = []
            self.block(block, env)("")
            blocks.append(Block(block.name, tuple(self.out)))
        return attrs.evolve(self.func, blocks=tuple(blocks))


def count(block: Block) -> int:
    """How many instructions a block unrolls to; asked before the first is made."""
    total = 0
    for inst in block.insts:
        trips = len(range(*inst.axis[1:])) if inst.axis else 1
        total += trips * sum(map(count, inst.blocks)) if inst.blocks else 1
    return total


def apply(module: Module, target: Target) -> Module:
    functions = tuple(Unroller(func).function() for func in module.functions)
    return attrs.evolve(module, functions=functions)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    needs=("operands-are-bound",),
    gives=("no-loop-is-left", "patterns-are-physical"),
    after={"lower-ac": "whether a copy transposes is said by its abstract form"},
    real="unroll",
    job="W0",
    sure="confirmed",
)
