"""Registers and branches: each engine has registers of its own, and all take the same way.

An instruction on engine ALL stands for one on every engine, so that it writes everyone's register.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ncc.interp.bir_memory import Slot
from ncc.interp.bir_values import Env, Meaning, fault
from ncc.ir.bir import Function, Imm, Inst, Reg
from ncc.ir.bir_opcodes import OPCODES, key
from ncc.numerics_registers import COMPARE, OPS, apply, signed

if TYPE_CHECKING:
    from ncc.interp.bir import Interpreter

ENGINES = ("PE", "Activation", "Pool", "DVE", "SP")
LIMIT = 1_000_000  # blocks that a run may enter


def value(m: Interpreter, inst: Inst, operand: Any) -> int:
    """A whole number: an immediate, or a register of the instruction's engine."""
    if isinstance(operand, Imm):
        return int(operand.value)
    if not isinstance(operand, Reg):
        raise fault(inst, f"{inst.opcode} computes with what is no register")
    engine = ENGINES[0] if inst.engine == "ALL" else inst.engine
    found = m.registers.get((engine, operand.name))
    if found is None:
        said = f"{inst.opcode} reads register {operand.name}, which nothing wrote"
        raise fault(inst, said, "NCC430")
    return found if operand.dtype == "uint32" else signed(found)


def write(m: Interpreter, inst: Inst, bits: int) -> None:
    to = inst.outs[0]
    if not isinstance(to, Reg):
        raise fault(inst, f"{inst.opcode} writes to what is no register")
    for engine in ENGINES if inst.engine == "ALL" else (inst.engine,):
        m.registers[engine, to.name] = bits & 0xFFFFFFFF


def move(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    write(m, inst, value(m, inst, inst.ins[0]))


def alu(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    op = key(inst, "op")
    if op not in OPS:
        raise fault(inst, f"registers have no operation {op}")
    write(m, inst, apply(op, *(value(m, inst, x) for x in inst.ins)))


def load(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    source = ins[0]
    if not isinstance(source, Slot) or source.values.nbytes != 4:
        raise fault(inst, "TensorLoad reads one element of 4 bytes")
    if not m.memory.known(source):
        raise fault(inst, "TensorLoad reads bytes that nothing wrote", "NCC430")
    write(m, inst, int.from_bytes(source.values.tobytes(), "little"))


def save(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    if not isinstance(out, Slot) or out.values.nbytes != 4:
        raise fault(inst, "TensorSave writes one element of 4 bytes")
    bits = np.array([value(m, inst, inst.ins[0]) & 0xFFFFFFFF], np.uint64).astype(np.uint32)
    out.values[...] = bits.view(out.values.dtype).reshape(out.values.shape)
    m.mark(inst, out, [])


def region(m: Interpreter, inst: Inst, env: Env) -> None:
    """A loop of the machine, as often as its registers say."""
    turns = counted(m, inst) if inst.opcode == "DynamicForLoop" else again(m, inst)
    for number in turns:
        if number > LIMIT:
            raise fault(inst, f"{inst.name} does not end: it has turned {LIMIT} times")
        for block in inst.blocks:
            m.block(block, env)


def counted(m: Interpreter, inst: Inst) -> Iterator[int]:
    low, high = (value(m, inst, x) for x in inst.ins)
    for number, at in enumerate(range(low, high, key(inst, "step"))):
        write(m, inst, at)
        yield number


def again(m: Interpreter, inst: Inst) -> Iterator[int]:
    """Turns of a DoWhile; its condition is asked before each, or with `is_do_while` after each."""
    number = 0
    while (number == 0 and key(inst, "is_do_while")) or value(m, inst, inst.ins[0]):
        yield number
        number += 1


def taken(m: Interpreter, inst: Inst) -> str | None:
    """The block that a terminator leads to; None where the function ends."""
    if inst.opcode == "UnconditionalBranch":
        return str(key(inst, "target"))
    if inst.opcode != "CompareAndBranch":
        return None
    word = str(key(inst, "comp_op")).removeprefix("IS_")[:2]
    if word not in COMPARE:
        raise fault(inst, f"CompareAndBranch has no comparison {key(inst, 'comp_op')}")
    holds = COMPARE[word](*(value(m, inst, x) for x in inst.ins))
    return str(key(inst, "on_true" if holds else "on_false"))


def run(m: Interpreter, func: Function) -> None:
    """The blocks of a function in the order that its branches say."""
    names = {block.name: n for n, block in enumerate(func.blocks)}
    at = 0
    for _ in range(LIMIT):
        if at >= len(func.blocks):
            return
        block = func.blocks[at]
        m.block(block, {})
        ends = [x for x in block.insts if OPCODES[x.opcode].family == "terminator"]
        ways = {taken(m, x) for x in ends}
        if not ends:
            at += 1
            continue
        if len(ways) > 1:
            raise fault(ends[-1], f"the engines leave {block.name} on different ways")
        (way,) = ways
        if way is None:
            return
        if way not in names:
            raise fault(ends[0], f"branches to {way}, which is no block", "NCC404")
        at = names[way]
    last = func.blocks[at].insts[-1]
    raise fault(last, f"{func.name} does not end: it has entered {LIMIT} blocks")


MEANING: dict[str, Meaning] = {
    "RegisterMove": move,
    "RegisterAlu": alu,
    "TensorLoad": load,
    "TensorSave": save,
}
