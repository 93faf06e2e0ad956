"""What the meanings of opcodes share: operands as arrays of one shape, and where they are known.

`rows(slot)` is an operand as partitions × elements in the order of its pairs. A *mask* says which
elements of that shape come from written bytes only; None is all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ncc import numerics
from ncc.errors import NccError
from ncc.interp.bir_memory import Bits, Slot, every
from ncc.ir.bir import Imm, Inst
from ncc.ir.data import numpy_type

if TYPE_CHECKING:
    from ncc.interp.bir import Interpreter

Array = NDArray[Any]
Env = dict[str, int]
Meaning = Callable[["Interpreter", Inst, list[Any], Any, Env], None]


def fault(inst: Inst, said: str, code: str = "NCC433", hint: str = "") -> NccError:
    return NccError(code, said, inst.origin.place(inst.name), hint)


def fitted(x: Array, out: Slot) -> Array:
    """An operand in the destination's shape: walked alike, or one value a partition."""
    shape = out.values.shape
    if x.shape == shape:
        return x
    if x.size == out.values.size:
        return x.reshape(shape)
    column = x.reshape(*shape[: out.down], *[1] * (len(shape) - out.down))
    return np.broadcast_to(column, shape)


def value_of(source: Any, out: Slot) -> Any:
    """A source's float32 values as the destination walks them; a number for an immediate."""
    if isinstance(source, Imm):
        return np.float32(source.value)
    x = source.values
    return numerics.widen(x if x.shape == out.values.shape else fitted(x, out))


def raw_of(source: Any, out: Slot, dtype: str) -> Array:
    """A source's own bits as the destination walks them, for operations on bits."""
    if isinstance(source, Imm):
        return np.broadcast_to(whole(source.value, numpy_type(dtype)), out.values.shape)
    return fitted(source.values, out)


def whole(value: float | int, kind: np.dtype[Any]) -> Array:
    """The low bits of a number of the program, as an element."""
    bits = int(value) & 0xFFFFFFFFFFFFFFFF
    return np.array([bits], np.uint64).view(kind)[:1].reshape(())


def rows(slot: Slot) -> Array:
    """The elements as partitions × the rest."""
    x = slot.values
    return x if x.ndim == 2 else x.reshape(x.shape[0], -1)


def column(source: Any, count: int) -> Array:
    """A scalar in float32: [partitions, 1], or a number for an immediate."""
    if isinstance(source, Imm):
        return np.asarray(source.value, np.float32)
    return numerics.widen(source.values.reshape(count, 1))


def mask_of(m: Interpreter, places: tuple[int, int], *sources: Any) -> Bits | None:
    """Where all of the sources are known, as partitions × elements; columns spread."""
    found: Bits | None = None
    for one in sources:
        if isinstance(one, Imm) or m.memory.known(one):
            continue
        bits = np.broadcast_to(one.bits(), places)
        found = bits if found is None else found & bits
    return found


def row_mask(m: Interpreter, out: Slot, *sources: Slot) -> Bits | None:
    """The same for results that a whole row decides."""
    mask = None
    for one in sources:
        if not m.memory.known(one):
            row = every(one.bits(), 1)
            mask = row if mask is None else mask & row
    if mask is None:
        return None
    return np.repeat(mask[:, None], out.values.size // mask.size, axis=1)


def put(m: Interpreter, inst: Inst, out: Slot, values: Array, mask: Bits | None) -> None:
    """Write a result, rounded once, of partitions × elements."""
    shape = out.values.shape
    out.values[...] = numerics.cast(values, out.dtype).reshape(shape)
    mark(m, inst, out, mask)


def mark(m: Interpreter, inst: Inst, out: Slot, mask: Bits | None) -> None:
    m.memory.wrote(out, None if mask is None else mask.reshape(out.values.shape))
    m.foreign(inst, out)
