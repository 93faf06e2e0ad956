"""Loops that the machine runs: which they are, what lives in registers for them, and their bodies.

A loop between two numbers is unrolled. Another one becomes a region, whose body is lowered once;
its index, and whatever a body writes, is in registers of the machine, the same on every engine. A
tile that a body shares with what is around it holds something before the first turn, because there
may be none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs

from ncc.ir.bir import Block, Imm, Inst, Operand
from ncc.ir.bir import Reg as Register
from ncc.ir.bir_opcodes import keyed
from ncc.ir.kernel import (
    Access,
    Arg,
    DeviceFor,
    DeviceWhile,
    Kernel,
    KernelOp,
    Reg,
    Scalar,
    Statement,
    ops_of,
)
from ncc.ir.kernel import Imm as Number
from ncc.ir.kernel_ops import writes
from ncc.ir.lower.tables import ME, MOST_TURNS

if TYPE_CHECKING:
    from ncc.ir.lower.kernel import Lowering

Loop = DeviceFor | DeviceWhile


@attrs.frozen
class Plan:
    """What a kernel's loops ask for. Without a loop of the machine nothing is in registers."""

    loops: frozenset[str]  # the loops that the machine runs
    real: frozenset[str]  # registers that their turns write
    written: frozenset[str]  # registers that anything writes
    first: tuple[str, ...]  # registers that are read where no turn may have written them


def plan(kernel: Kernel) -> Plan:
    fixed = constants(kernel)
    loops = [x for x in loops_of(kernel.body) if not is_fixed(x, fixed)]
    turning = {x.name for x in loops}
    real: set[str] = set()
    for loop in loops:
        real |= {x for op in ops_of(loop.body) for x in results(op)} - fixed
        real.add(loop.var.name if isinstance(loop, DeviceFor) else loop.condition.name)
    written = {x for op in ops_of(kernel.body) for x in results(op)}
    written |= {x.var.name for x in loops_of(kernel.body) if isinstance(x, DeviceFor)}
    first = tuple(sorted(real & early(kernel.body, loops)))
    return Plan(frozenset(turning), frozenset(real), frozenset(written), first)


def loops_of(body: tuple[Statement, ...]) -> Iterator[Loop]:
    for one in body:
        if isinstance(one, Loop):
            yield one
        if not isinstance(one, KernelOp):
            yield from loops_of(one.body)


def results(op: KernelOp) -> set[str]:
    """The registers that an op writes."""
    given = writes(op.op)
    return {x.name for role, x in op.args if isinstance(x, Reg) and role in given}


def asked(op: KernelOp) -> set[str]:
    """The registers that an op reads, as an operand or as the start of one."""
    given = writes(op.op)
    found: set[str] = set()
    for role, x in op.args:
        if isinstance(x, Reg) and role not in given:
            found.add(x.name)
        if isinstance(x, Access):
            found |= {
                m.source.name
                for m in x.moves
                if isinstance(m, Scalar) and isinstance(m.source, Reg)
            }
    return found


def constants(kernel: Kernel) -> set[str]:
    """Registers that are written once, with what is a number while the loops are unrolled."""
    makers: dict[str, list[KernelOp]] = {}
    for op in ops_of(kernel.body):
        for name in results(op):
            makers.setdefault(name, []).append(op)
    found: set[str] = set()
    known = -1
    while len(found) > known:
        known = len(found)
        for name, ops in makers.items():
            moved = ops[0].op in ("register_move", "register_alu")
            given = [x for role, x in ops[0].args if role != "dst"]
            if len(ops) == 1 and moved and all(is_number(x, found) for x in given):
                found.add(name)
        for loop in loops_of(kernel.body):
            if isinstance(loop, DeviceFor) and is_fixed(loop, found):
                found.add(loop.var.name)
    return found


def is_number(x: Arg, fixed: set[str]) -> bool:
    return isinstance(x, Number) or (isinstance(x, Reg) and x.name in fixed)


def is_fixed(loop: Loop, fixed: set[str]) -> bool:
    """Whether a loop is unrolled."""
    if isinstance(loop, DeviceWhile) or not all(is_number(x, fixed) for x in bounds(loop)):
        return False
    low, high = loop.lower, loop.upper
    if isinstance(low, Number) and isinstance(high, Number):
        return len(range(int(low.value), int(high.value), loop.step)) <= MOST_TURNS
    return True


def bounds(loop: DeviceFor) -> tuple[Number | Reg, Number | Reg]:
    return loop.lower, loop.upper


def early(body: tuple[Statement, ...], loops: list[Loop]) -> set[str]:
    """Registers that are read outside of the loop in which they are written first, or before."""
    place = {id(op): n for n, op in enumerate(ops_of(body))}
    wrote: dict[str, int] = {}
    read: dict[str, list[int]] = {}
    for op in ops_of(body):
        for name in asked(op):
            read.setdefault(name, []).append(place[id(op)])
        for name in results(op):
            wrote.setdefault(name, place[id(op)])
    found: set[str] = set()
    for loop in loops:
        inside = [place[id(op)] for op in ops_of(loop.body)]
        if not inside:
            continue
        for name, at in wrote.items():
            if at in range(inside[0], inside[-1] + 1):
                outside = [n for n in read.get(name, ()) if n < at or n > inside[-1]]
                found |= {name} if outside else set()
    return found


# --- a loop on its way down -----------------------------------------------------------------------


def begin(m: Lowering) -> None:
    """Registers that somebody reads before any turn hold 0."""
    m.op = KernelOp("registers", "loop", ())
    for name in m.plan.first:
        m.emit("RegisterMove", "ALL", (Register(name),), (Imm(0, "int32"),))


def device_loop(m: Lowering, one: Loop) -> None:
    """A loop as a region: its body once, between what its registers say."""
    if isinstance(one, DeviceWhile) and one.condition.name not in m.plan.written:
        return  # its condition is 0
    prepare(m, one)
    opcode, reads, outs, keys = "DoWhile", (), (), ()
    if isinstance(one, DeviceFor):
        opcode = "DynamicForLoop"
        reads = tuple(bound(m, x) for x in bounds(one))
        outs = (Register(one.var.name),)
        keys = keyed(opcode, step=one.step)
    else:
        reads = (Register(one.condition.name),)
    m.around.append(m.insts)
    m.insts = []
    m.body(one.body)
    inner, m.insts = tuple(m.insts), m.around.pop()
    name = m.label(f"{one.name}{m.suffix}")
    blocks = (Block("block0", inner),)
    origin = one.origin.by(ME)
    m.insts.append(Inst(name, opcode, "ALL", reads, outs, keys, blocks=blocks, origin=origin))


def bound(m: Lowering, x: Number | Reg) -> Operand:
    known = m.number(x)
    if known is not None or not isinstance(x, Reg) or x.name not in m.plan.written:
        return Imm(known or 0, "int32")
    return Register(x.name)


def prepare(m: Lowering, loop: Loop) -> None:
    """Tiles that a turn reads first, or that are used elsewhere too, hold something before it."""
    inside, everywhere = uses(loop.body), uses(m.kernel.body)
    m.op = KernelOp(loop.name, "loop", (), origin=loop.origin)
    m.after = ()
    for name, count in inside.items():
        buffer = m.buffers[name]
        if not buffer.on_chip:
            continue
        if name not in m.filled:
            m.fill(buffer)
        elif name not in m.known and (count < everywhere[name] or reads_first(loop, name)):
            m.fresh_values(name)


def uses(body: tuple[Statement, ...]) -> Counter[str]:
    """How often each buffer is named."""
    return Counter(access.buffer for op in ops_of(body) for access, _ in accesses(op))


def reads_first(loop: Loop, name: str) -> bool:
    for op in ops_of(loop.body):
        mine = [wrote for access, wrote in accesses(op) if access.buffer == name]
        if mine:
            return not all(mine) or any(k == "accumulate" and v for k, v in op.keys)
    return False


def accesses(op: KernelOp) -> Iterator[tuple[Access, bool]]:
    """The accesses of an op, those of starts too, and whether it writes there."""
    given = writes(op.op)
    for role, x in op.args:
        if isinstance(x, Access):
            yield x, role in given
            for move in x.moves:
                if isinstance(move.source, Access):
                    yield move.source, False
