"""Registers: numbers that are known here, elements on chip that hold them, or the machine's own.

Without a loop of the machine a register is needed only for what memory holds. It then is a tile of
one int32, and Pool's integer unit does its arithmetic. In a kernel with such a loop what is not
known is in a register of every engine, and an element on chip is made of it where one is read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs
import numpy as np

from ncc.ir.bir import Imm, Operand
from ncc.ir.bir import Reg as Register
from ncc.ir.kernel import Access, Reg
from ncc.ir.kernel import Imm as Number
from ncc.ir.kernel_selectors import ALU, UNARY
from ncc.ir.kernel_walks import Walk
from ncc.ir.lower.dma import move
from ncc.numerics_registers import OPS, apply

if TYPE_CHECKING:
    from ncc.ir.lower.kernel import Lowering

Value = int | float
FLOATS: dict[str, Callable[[Value, Value], Value]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "maximum": max,
    "minimum": min,
}
WORDS = ("int32", "uint32")
# what Pool's integer unit has
POOL = frozenset(FLOATS) | {"equal", "not_equal", "greater", "greater_equal", "less", "less_equal"}


def wrapped(value: Value, dtype: str) -> Value:
    """A number as 32 bits of the register's type hold it."""
    if "float" in dtype:
        return float(value)
    value = int(value) & 0xFFFFFFFF
    return value - (1 << 32) if dtype.startswith("int") and value >> 31 else value


def named(register: Reg) -> Register:
    """A register of the machine; one of floats holds their bits."""
    return Register(register.name, "uint32" if register.dtype == "uint32" else "int32")


def operand(value: Value | Reg, dtype: str) -> Operand:
    if isinstance(value, Reg):
        return named(value)
    bits = int(np.array(value, np.float32).view(np.int32)) if "float" in dtype else int(value)
    return Imm(bits, "int32")


def cell(m: Lowering, register: Reg) -> Walk | None:
    """The element on chip that holds what a register does; None where there is none."""
    found = m.cells.get(register.name)
    if found is None and m.plan.loops:
        found = m.tile(1, (1,), "float32" if "float" in register.dtype else "int32")
        m.emit("TensorSave", "Pool", (found.ap(),), (named(register),))
    return found


def put(m: Lowering, value: Value | Walk | Reg) -> None:
    """A register takes a number, another register's value, or an element's on chip."""
    to = m.op.arg("dst")
    assert isinstance(to, Reg)
    m.env.pop(to.name, None)
    m.cells.pop(to.name, None)
    if isinstance(value, Reg) or to.name in m.plan.real:
        if isinstance(value, Walk):
            m.emit("TensorLoad", "ALL", (named(to),), (value.ap(),))
        else:
            m.emit("RegisterMove", "ALL", (named(to),), (operand(value, to.dtype),))
    elif isinstance(value, Walk) and m.plan.loops:
        m.emit("TensorLoad", "ALL", (named(to),), (value.ap(),))
    elif isinstance(value, Walk):
        m.cells[to.name] = value
    else:
        m.env[to.name] = wrapped(value, to.dtype)


def given(m: Lowering, role: str) -> Value | Walk | Reg:
    """What an operand is: a number, or an element that holds it."""
    arg = m.op.arg(role)
    if isinstance(arg, Number):
        return arg.value
    if isinstance(arg, Reg) and arg.name in m.env:
        return m.env[arg.name]
    if isinstance(arg, Reg) and m.plan.loops and arg.name in m.plan.written:
        return arg
    if isinstance(arg, Reg):
        return m.cells.get(arg.name, 0)  # one that nothing was moved to holds 0
    raise m.dynamic(f"{m.op.op} reads {role} from memory", m.op.origin)


def element(m: Lowering, value: Value | Walk | Reg) -> Walk:
    """The same as an element on chip."""
    if isinstance(value, Walk):
        return value
    if isinstance(value, Reg):
        found = cell(m, value)
        assert found is not None
        return found
    held = m.tile(1, (1,), "int32")
    m.memset(held, int(value) & 0xFFFFFFFF)
    return held


def register_move(m: Lowering) -> None:
    put(m, given(m, "src"))


def register_alu(m: Lowering) -> None:
    op = m.key("op")
    a, b = given(m, "a"), given(m, "b")
    if ALU.get(op) not in OPS or op in UNARY:
        raise m.dynamic(f"{m.op.op} applies {op} to registers", m.op.origin)
    if isinstance(a, Reg) or isinstance(b, Reg):
        sequenced(m, op, a, b)
        return
    if not isinstance(a, Walk) and not isinstance(b, Walk):
        put(m, FLOATS[op](a, b) if op in FLOATS else apply(ALU[op], int(a), int(b)))
        return
    if op not in POOL or any(isinstance(x, Walk) and x.dtype != "int32" for x in (a, b)):
        raise m.dynamic(f"{m.op.op} applies {op} to what memory holds", m.op.origin)
    held = m.tile(1, (1,), "int32")
    reads = (element(m, a).ap(), element(m, b).ap())
    m.emit("TensorTensor", "Pool", (held.ap(),), reads, op=ALU[op], integer=True)
    put(m, held)


def sequenced(m: Lowering, op: str, a: Value | Walk | Reg, b: Value | Walk | Reg) -> None:
    """Arithmetic of the sequencers, every engine's on its own registers."""
    to = m.op.arg("dst")
    assert isinstance(to, Reg)
    floats = any("float" in x.dtype for x in (a, b, to) if isinstance(x, Reg))
    if floats or isinstance(a, Walk) or isinstance(b, Walk):
        raise m.dynamic(f"{m.op.op} computes with floating-point numbers in registers", m.op.origin)
    reads = tuple(operand(x, to.dtype) for x in (a, b))
    m.emit("RegisterAlu", "ALL", (named(to),), reads, op=ALU[op])


def chosen(m: Lowering) -> Walk:
    """The element that is loaded; in DRAM its place may be in a register."""
    from ncc.ir.lower.indirect import load, moves, table

    op, source = m.op, m.op.arg("src")
    if not isinstance(source, Access) or not moves(m, source):
        return m.walk("src")
    m.op = attrs.evolve(op, op="dma_copy", keys=(), engine="unknown")
    found = load(m, table(m, source))
    m.op = op
    return found


def register_load(m: Lowering) -> None:
    """The register is an element of its own, which takes what memory holds now."""
    src, to = chosen(m), m.op.arg("dst")
    real = isinstance(to, Reg) and "float" in to.dtype
    if m.plan.loops and src.memory != "PSUM" and src.dtype in (("float32",) if real else WORDS):
        put(m, src)
        return
    held = m.tile(1, (1,), "float32" if real else "int32")
    if src.memory == "DRAM":
        same = m.tile(1, (1,), src.dtype)
        move(m, same, src)
        src = same
    if src.memory == "SB" and (src.dtype in WORDS if not real else src.dtype == "float32"):
        source = attrs.evolve(src, dtype=held.dtype)
        move(m, held, source)
    else:
        m.copy(held, src)
    put(m, held)


def register_store(m: Lowering) -> None:
    from ncc.ir.lower.move import bits_of

    dst, value = m.walk("dst"), given(m, "src")
    if isinstance(value, Reg):
        same = ("float32",) if "float" in value.dtype else WORDS
        if dst.memory != "PSUM" and m.wants(dst) in same:
            m.emit("TensorSave", "SP", (dst.ap(),), (named(value),))
            return
        value = element(m, value)
    if not isinstance(value, Walk) and dst.memory != "DRAM":
        m.memset(dst, bits_of(value, m.wants(dst)))
        return
    if not isinstance(value, Walk):
        held = m.tile(1, (1,), dst.dtype)
        m.memset(held, bits_of(value, dst.dtype))
    else:
        held = value
        if value.dtype in WORDS and dst.dtype in WORDS:
            held = attrs.evolve(value, dtype=dst.dtype)
        elif dst.memory != "DRAM":
            m.copy(dst, value)
            return
        else:
            held = m.tile(1, (1,), dst.dtype)
            m.copy(held, value)
    if dst.memory == "PSUM":
        m.copy(dst, held)
    else:
        move(m, dst, held)


LOWER = {
    "register_move": register_move,
    "register_alu": register_alu,
    "register_load": register_load,
    "register_store": register_store,
}
