"""Registers on a straight line: numbers that are known here, or elements on chip that hold them.

A loop whose bounds are numbers is unrolled, so a register is needed only for what memory holds. It
then is a tile of one int32, and Pool's integer unit does its arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import attrs

from ncc.ir.kernel import Imm as Number
from ncc.ir.kernel import Reg
from ncc.ir.kernel_walks import Walk
from ncc.ir.lower.dma import move

if TYPE_CHECKING:
    from ncc.ir.lower.kernel import Lowering

Value = int | float
ALU: dict[str, Callable[[int, int], int]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "maximum": max,
    "minimum": min,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "left_shift": lambda a, b: a << min(b, 32),
    "right_shift": lambda a, b: (a & 0xFFFFFFFF) >> min(b, 32),
    "equal": lambda a, b: int(a == b),
    "not_equal": lambda a, b: int(a != b),
    "greater": lambda a, b: int(a > b),
    "greater_equal": lambda a, b: int(a >= b),
    "less": lambda a, b: int(a < b),
    "less_equal": lambda a, b: int(a <= b),
}
FLOATS: dict[str, Callable[[Value, Value], Value]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "maximum": max,
    "minimum": min,
}
WORDS = ("int32", "uint32")
# what Pool's integer unit has, by its name there
POOL = {
    **{"add": "add", "subtract": "subtract", "multiply": "mult", "maximum": "max"},
    **{"minimum": "min", "equal": "is_equal", "not_equal": "not_equal", "greater": "is_gt"},
    **{"greater_equal": "is_ge", "less": "is_lt", "less_equal": "is_le"},
}


def wrapped(value: Value, dtype: str) -> Value:
    """A number as 32 bits of the register's type hold it."""
    if "float" in dtype:
        return float(value)
    value = int(value) & 0xFFFFFFFF
    return value - (1 << 32) if dtype.startswith("int") and value >> 31 else value


def put(m: Lowering, value: Value | Walk) -> None:
    """A register takes a number, or an element on chip that holds its value."""
    to = m.op.arg("dst")
    assert isinstance(to, Reg)
    m.env.pop(to.name, None)
    m.cells.pop(to.name, None)
    if isinstance(value, Walk):
        m.cells[to.name] = value
    else:
        m.env[to.name] = wrapped(value, to.dtype)


def given(m: Lowering, role: str) -> Value | Walk:
    """What an operand is: a number, or an element that holds it."""
    arg = m.op.arg(role)
    if isinstance(arg, Number):
        return arg.value
    if isinstance(arg, Reg) and arg.name in m.env:
        return m.env[arg.name]
    if isinstance(arg, Reg):
        return m.cells.get(arg.name, 0)  # one that nothing was moved to holds 0
    raise m.dynamic(f"{m.op.op} reads {role} from memory", m.op.origin)


def element(m: Lowering, value: Value | Walk) -> Walk:
    """The same as an element on chip."""
    if isinstance(value, Walk):
        return value
    held = m.tile(1, (1,), "int32")
    m.memset(held, int(value) & 0xFFFFFFFF)
    return held


def register_move(m: Lowering) -> None:
    put(m, given(m, "src"))


def register_alu(m: Lowering) -> None:
    op = m.key("op")
    a, b = given(m, "a"), given(m, "b")
    if op not in ALU:
        raise m.dynamic(f"{m.op.op} applies {op} to registers", m.op.origin)
    if not isinstance(a, Walk) and not isinstance(b, Walk):
        put(m, FLOATS[op](a, b) if op in FLOATS else ALU[op](int(a), int(b)))
        return
    if op not in POOL or any(isinstance(x, Walk) and x.dtype != "int32" for x in (a, b)):
        raise m.dynamic(f"{m.op.op} applies {op} to what memory holds", m.op.origin)
    held = m.tile(1, (1,), "int32")
    reads = (element(m, a).ap(), element(m, b).ap())
    m.emit("TensorTensor", "Pool", (held.ap(),), reads, op=POOL[op], integer=True)
    put(m, held)


def register_load(m: Lowering) -> None:
    """The register is an element of its own, which takes what memory holds now."""
    src, to = m.walk("src"), m.op.arg("dst")
    real = isinstance(to, Reg) and "float" in to.dtype
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
