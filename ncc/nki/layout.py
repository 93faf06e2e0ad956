"""Where the elements of a view lie: arithmetic on shapes and strides, without tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence

Ints = tuple[int, ...]


def row_major(shape: Sequence[int]) -> Ints:
    """Strides of a tensor whose elements lie one after the other."""
    strides = [1] * len(shape)
    for k in range(len(shape) - 1, 0, -1):
        strides[k - 1] = strides[k] * shape[k]
    return tuple(strides)


def filled(shape: Sequence[int], total: int) -> Ints | None:
    """`shape` with its one −1 replaced; None when no number makes `total` elements."""
    unknown = [k for k, n in enumerate(shape) if n == -1]
    if len(unknown) > 1 or any(n < 0 for k, n in enumerate(shape) if k not in unknown):
        return None
    if unknown:
        rest = math.prod(n for n in shape if n != -1)
        if not rest or total % rest:
            return None
        return tuple(total // rest if n == -1 else n for n in shape)
    return tuple(shape) if math.prod(shape) == total else None


def merged(shape: Ints, strides: Ints) -> list[tuple[int, int]]:
    """The same walk in as few (count, stride) as it takes, slowest first; counts of 1 left out."""
    runs: list[tuple[int, int]] = []
    for count, stride in zip(shape, strides, strict=True):
        if count == 1:
            continue
        if runs and runs[-1][1] == stride * count:
            runs[-1] = (runs[-1][0] * count, stride)
        else:
            runs.append((count, stride))
    return runs


def reshaped(shape: Ints, strides: Ints, new: Ints) -> Ints | None:
    """Strides that walk the same elements in the same order in the shape `new` (which has as many
    elements); None when a dimension of `new` would cross a jump of the layout."""
    if 0 in shape:
        return row_major(new)
    runs = merged(shape, strides)
    found = [1] * len(new)
    left, stride = 1, 1  # what is left of the run that is being split, from its fastest end
    for k in range(len(new) - 1, -1, -1):
        if new[k] == 1:
            found[k] = stride * left if left > 1 else stride
            continue
        if left == 1:
            if not runs:
                return None
            left, stride = runs.pop()
        if left % new[k]:
            return None
        found[k] = stride
        stride *= new[k]
        left //= new[k]
    return tuple(found)


def span(shape: Sequence[int], strides: Sequence[int]) -> tuple[int, int]:
    """The lowest and highest address of a walk, counted from its start."""
    low = high = 0
    for count, stride in zip(shape, strides, strict=True):
        reach = (count - 1) * stride
        if reach < 0:
            low += reach
        else:
            high += reach
    return low, high
