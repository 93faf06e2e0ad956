"""NKI, registers: 32 bits, read and written by the sequencers (NKI reference 2.3)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ncc import numerics
from ncc.errors import NccError
from ncc.interp.kernel_call import Call
from ncc.interp.kernel_memory import held_as, kind_of
from ncc.ir.kernel import Reg


def _set(c: Call, value: Any) -> None:
    to = c.args["dst"]
    if not isinstance(to, Reg):
        raise NccError("NCC282", f"{c.op.op} has no register as dst")
    c.core.registers[to.name] = fitted(value, to.dtype)


def fitted(value: Any, dtype: str) -> Any:
    """A number as a register of this type holds it: integers wrap around."""
    kind = kind_of(dtype)
    if kind.kind not in "iu":
        with np.errstate(all="ignore"):
            return float(np.float32(value))
    if isinstance(value, float):
        value = int(numerics.cast(np.asarray([value]), "int64")[0])
    mask = (1 << 8 * kind.itemsize) - 1
    return int(np.asarray([int(value) & mask], np.uint64).astype(kind)[0])


def register_move(c: Call) -> None:
    _set(c, c.number("src"))


def register_load(c: Call) -> None:
    """One element of memory, by value."""
    x = c.read("src").reshape(-1)[0]
    _set(c, float(x) if x.dtype.kind not in "iu" else int(x))


def register_store(c: Call) -> None:
    value = np.asarray([c.number("src")])
    dtype = held_as(c.dtype("dst"))
    kind = kind_of(dtype)
    if value.dtype.kind in "iu" and kind.kind in "iu":
        c.write("dst", value.astype(kind))
    else:
        c.store("dst", value)


_ALU: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "maximum": lambda a, b: max(a, b),
    "minimum": lambda a, b: min(a, b),
    "bitwise_and": lambda a, b: int(a) & int(b),
    "bitwise_or": lambda a, b: int(a) | int(b),
    "bitwise_xor": lambda a, b: int(a) ^ int(b),
    "left_shift": lambda a, b: int(a) << min(int(b) & 0xFFFFFFFF, 64),
    "right_shift": lambda a, b: (int(a) & 0xFFFFFFFF) >> min(int(b) & 0xFFFFFFFF, 64),
    "equal": lambda a, b: int(a == b),
    "not_equal": lambda a, b: int(a != b),
    "greater": lambda a, b: int(a > b),
    "greater_equal": lambda a, b: int(a >= b),
    "less": lambda a, b: int(a < b),
    "less_equal": lambda a, b: int(a <= b),
}


def register_alu(c: Call) -> None:
    """dst = a op b; 32-bit integers wrap around."""
    f = _ALU.get(c.key["op"])
    if f is None:
        raise NccError("NCC282", f"registers have no operation {c.key['op']}")
    _set(c, f(c.number("a"), c.number("b")))


MEANING = {
    "register_move": register_move,
    "register_load": register_load,
    "register_store": register_store,
    "register_alu": register_alu,
}
