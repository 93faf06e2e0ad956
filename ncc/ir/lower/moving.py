"""Operands on chip that begin where the machine says: taken through a copy in DRAM.

The machine's one indexed form is a DMA whose DRAM side moves. A tile that is read somewhere unknown
is therefore written out whole and its part read back by index; the op works on that part. What an
op writes goes the other way: the part is put into the copy by index, and the copy read back.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

import attrs

from ncc.errors import NccError
from ncc.ir.data import size_of
from ncc.ir.kernel import Access, Buffer, KernelOp, Reg
from ncc.ir.kernel_ops import OPS
from ncc.ir.kernel_walks import Walk
from ncc.ir.lower.dma import move, scratch
from ncc.ir.lower.indirect import emit, moves, table
from ncc.ir.lower.tables import cell

if TYPE_CHECKING:
    from ncc.ir.lower.kernel import Lowering

PRODUCTS = frozenset(("nc_matmul", "nc_transpose"))  # what PE writes, to PSUM alone


@attrs.frozen
class Back:
    """A written operand's part, and the copy and tile to which it goes."""

    part: Walk
    lands: Walk  # where the op writes it: there, or in PSUM
    access: Access  # of the copy
    copy: Walk
    whole: Walk
    adds: bool = False  # what landed is added to the part


def beginning(m: Lowering, op: KernelOp, access: Access) -> KernelOp:
    """A product that was to be added to what is there, as one that is added afterwards: the same
    where it comes in one pass, of operands below float32."""
    operands = [x.dtype for role, x in op.args if isinstance(x, Access) and role != "dst"]
    if access.dtype != "float32" or any(size_of(x) == 4 for x in operands):
        said = f"{op.op} adds, in two passes, to {access.buffer} where it begins at run time"
        raise NccError("NCC398", said, op.origin.place(op.name), "give it operands of 16 bits")
    return attrs.evolve(op, keys=tuple((k, v) for k, v in op.keys if k != "accumulate"))


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
        whole, copy = copied(m, access)
        there = attrs.evolve(access, buffer=copy.loc)
        part = m.tile(access.pairs[0][1], (prod(n for _, n in access.pairs[1:]),), access.dtype)
        product = role in written and op.op in PRODUCTS
        adds = product and bool(dict(op.keys).get("accumulate"))
        if adds:
            op = beginning(m, op, access)
        if adds or not product:
            emit(m, "IndirectLoad", table(m, there), part)
        lands = m.bank(attrs.evolve(part, dtype=cell(part.dtype))) if product else part
        parts[role] = named(m, lands, access)
        if role in written:
            back.append(Back(part, lands, there, copy, whole, adds))
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
    memory = "sbuf" if part.memory == "SB" else "psum"
    m.buffers[part.loc] = Buffer(part.loc, access.dtype, (shape[0], prod(shape[1:])), memory)
    m.filled.add(part.loc)
    steps = [prod(shape[i + 1 :]) for i in range(len(shape))]
    return Access(part.loc, access.dtype, tuple(zip(steps, shape, strict=True)), 0)


def put_back(m: Lowering, op: KernelOp, back: list[Back]) -> None:
    """What the op wrote goes where it belongs."""
    m.op = attrs.evolve(op, op="dma_copy", keys=(), engine="unknown")
    for one in back:
        if one.adds:
            held, product = one.part.ap(), one.lands.ap()
            m.emit("TensorTensor", "DVE", (held,), (held, product), op="add")
        elif one.lands is not one.part:
            m.copy(one.part, one.lands)
        emit(m, "IndirectSave", table(m, one.access), one.part)
        if one.whole.memory == "PSUM":  # where no DMA goes
            held = m.temp(one.whole)
            move(m, held, one.copy)
            m.copy(one.whole, held)
        else:
            move(m, one.whole, one.copy)


def column_of(m: Lowering, register: Reg, rows: int, dtype: str) -> Walk | None:
    """A register that an element on chip holds, as one number a partition; None if none does."""
    from ncc.ir.lower.registers import cell as cell_of

    cell = cell_of(m, register)
    if cell is None:
        return None
    held = m.tile(rows, (1,), cell.dtype)
    move(m, held, cell.with_free(((0, rows),)))
    if cell.dtype == dtype:
        return held
    wide = m.tile(rows, (1,), dtype)
    m.copy(wide, held)
    return wide
