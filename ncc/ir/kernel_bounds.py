"""Whether an access of a kernel stays where it must: in its buffer, its block, its partition."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product

from ncc.ir.data import size_of
from ncc.ir.kernel import Access, Buffer

Pairs = Sequence[tuple[int, int]]


def access_fault(access: Access, buffer: Buffer, turns: Mapping[str, int]) -> str:
    """Why a pattern does not stay inside its buffer; "" when it does, moves left aside. `turns` has
    the count of each axis that moves it."""
    if not access.pairs or any(num < 1 for _, num in access.pairs):
        return "" if 0 in buffer.shape else f"walks {access.pairs}; a pair counts at least 1"
    bytes_of = size_of(access.dtype)
    shape, size = buffer.shape, size_of(buffer.dtype)
    whole = math.prod(shape) * size // bytes_of
    total = whole * max(buffer.blocks, 1)
    axes = [(stride, turns.get(axis, 1)) for axis, stride in access.terms]
    back, reach = _reach(access.pairs)
    low, high = _reach(axes)
    low, high = access.offset + back + low, access.offset + reach + high
    if low < 0 or high >= total:
        return f"reaches {buffer.name} from element {low} to {high} of {total}"
    if buffer.blocks and _leaves(access.offset, axes, whole, back, reach):
        return f"reaches from one block of {buffer.name} into another"
    if not buffer.on_chip:
        return ""
    row = math.prod(shape[1:]) * size // bytes_of
    step, num = access.pairs[0]
    if num > 1 and (not row or step % row) and not access.moves:
        return f"walks {buffer.name} by {step} in its first pair; a partition holds {row} elements"
    back, reach = _reach(access.pairs[1:])
    if left := _leaves(access.offset, axes, row, back, reach):
        span = f"{left[0] + back} to {left[0] + reach}"
        return f"reaches {buffer.name} at {span} of the {row} elements of a partition"
    return ""


def _reach(pairs: Pairs) -> tuple[int, int]:
    """The lowest and the highest element of a walk from 0."""
    low = high = 0
    for step, num in pairs:
        far = step * (num - 1)
        low, high = low + min(far, 0), high + max(far, 0)
    return low, high


def _leaves(start: int, axes: Pairs, unit: int, back: int, reach: int) -> tuple[int, ...]:
    """A place in a unit from which a walk leaves that unit, in some turn; () when none does."""
    inside = start % unit
    moves = [(step % unit if step > 0 else -(-step % unit), num) for step, num in axes]
    low, high = _reach(moves)
    if inside + low + back >= 0 and inside + high + reach < unit:
        return ()
    # some turn carries into the next unit: every turn is looked at
    for at in product(*(range(num) for _, num in moves)):
        here = (inside + sum(n * step for n, (step, _) in zip(at, moves, strict=True))) % unit
        if here + back < 0 or here + reach >= unit:
            return (here,)
    return ()
