"""Operands on chip that begin where the machine says: taken through a copy in DRAM.

The machine's one indexed form is a DMA whose DRAM side moves. A tile that is read somewhere unknown
is therefore written out whole and its part read back by index; the op works on that part. What an
op writes goes the other way: the part is put into the copy by index, and the copy read back.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import attrs

from ncc.ir.kernel import Access, Buffer, KernelOp, Reg
from ncc.ir.kernel_ops import OPS
from ncc.ir.kernel_walks import Walk
from ncc.ir.lower.dma import move, scratch
from ncc.ir.lower.indirect import emit, moves, table

if TYPE_CHECKING:
    from ncc.ir.lower.kernel import Lowering


@attrs.frozen
class Back:
    """A written operand's part, and the copy and tile to which it goes."""

    part: Walk
    access: Access  # of the copy
    copy: Walk
    whole: Walk


def staged(m: Lowering, op: KernelOp) -> tuple[KernelOp, list[Back]]:
    """The op with its moving operands on chip replaced by parts that stand still; what to put back
    when it has run. The same op where there are none."""
    moving = [
        (role, arg)
        for role, arg in op.args
        if isinstance(arg, Access) and m.buffer(arg).on_chip and moves(m, arg)
    ]
    if not moving:
        return op, []
    m.op = attrs.evolve(op, op="dma_copy", keys=(), engine="unknown")
    written = {role.rstrip("?") for role in OPS[op.op].writes}
    parts: dict[str, Access] = {}
    back: list[Back] = []
    for role, access in moving:
        if role in written and m.buffer(access).memory == "psum":
            said = f"{op.op} writes where {access.buffer} in PSUM begins while it runs"
            raise m.dynamic(said, op.origin)
        whole, copy = copied(m, access)
        there = attrs.evolve(access, buffer=copy.loc)
        part = m.tile(access.pairs[0][1], (prod(n for _, n in access.pairs[1:]),), access.dtype)
        emit(m, "IndirectLoad", table(m, there), part)
        parts[role] = named(m, part, access)
        if role in written:
            back.append(Back(part, there, copy, whole))
    args = tuple((role, parts.get(role, arg)) for role, arg in op.args)
    return attrs.evolve(op, args=args), back


def copied(m: Lowering, access: Access) -> tuple[Walk, Walk]:
    """The whole tile behind an access, and a copy of it in DRAM under a name of its own."""
    buffer = m.buffer(access)
    rows, row = buffer.shape[0], prod(buffer.shape[1:])
    whole = m.walked(Access(buffer.name, buffer.dtype, ((row, rows), (1, row)), 0))
    copy = scratch(m, (rows, row), buffer.dtype)
    move(m, copy, m.compact(whole) if whole.memory == "PSUM" else whole)
    m.buffers[copy.loc] = Buffer(copy.loc, buffer.dtype, buffer.shape, "hbm")
    m.filled.add(copy.loc)
    return whole, copy


def named(m: Lowering, part: Walk, access: Access) -> Access:
    """A tile of the lowering as an operand of the shape that the kernel wrote."""
    shape = tuple(n for _, n in access.pairs)
    m.buffers[part.loc] = Buffer(part.loc, access.dtype, (shape[0], prod(shape[1:])), "sbuf")
    m.filled.add(part.loc)
    steps = [prod(shape[i + 1 :]) for i in range(len(shape))]
    return Access(part.loc, access.dtype, tuple(zip(steps, shape, strict=True)), 0)


def put_back(m: Lowering, op: KernelOp, back: list[Back]) -> None:
    """What the op wrote goes where it belongs."""
    m.op = attrs.evolve(op, op="dma_copy", keys=(), engine="unknown")
    for one in back:
        emit(m, "IndirectSave", table(m, one.access), one.part)
        move(m, one.whole, one.copy)


def column_of(m: Lowering, register: Reg, rows: int, dtype: str) -> Walk | None:
    """A register that an element on chip holds, as one number a partition; None if none does."""
    cell = m.cells.get(register.name)
    if cell is None:
        return None
    held = m.tile(rows, (1,), cell.dtype)
    move(m, held, cell.with_free(((0, rows),)))
    if cell.dtype == dtype:
        return held
    wide = m.tile(rows, (1,), dtype)
    m.copy(wide, held)
    return wide
