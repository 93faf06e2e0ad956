"""Which elements of a PSUM tensor were written, and how a product is cut where they differ.

`nc_matmul` with `accumulate=None` overwrites an element that nobody wrote since the tensor was
allocated, and adds to one that somebody did. One instruction does one of the two, so a product over
elements of both kinds becomes several, over columns (or rows) of one kind each. What a device loop
repeats is settled once, as it is traced.
"""

from __future__ import annotations

import math
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import attrs

from ncc.ir.data import size_of
from ncc.ir.kernel import Access

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ncc.nki.trace import Storage

Pairs = tuple[tuple[int, int], ...]


def written(storage: Storage, access: Access) -> NDArray[np.bool_]:
    """The flags of an access's elements in its shape, as a view: reading asks, assigning marks.

    A flag stands for an element of the buffer, and for a byte once an access of another size came
    (the view then has a last axis more: the bytes of each element).
    """
    import numpy as np

    made, flags = storage.buffer, storage.written
    own, size = size_of(made.dtype), size_of(access.dtype)
    count = math.prod(made.shape)
    if flags is None:
        flags = storage.written = np.zeros(count, np.bool_)
    grain = count * own // len(flags)
    if grain not in (size, 1):
        flags = storage.written = np.repeat(flags, grain)
        grain = 1
    per = size // grain
    shape = [num for _, num in access.pairs]
    strides = [step * per for step, _ in access.pairs]
    if per > 1:
        shape.append(per)
        strides.append(1)
    return np.ndarray(shape, np.bool_, flags, access.offset * per, strides)


def mark(storage: Storage, access: Access) -> None:
    """These elements are written now; with a run-time index all that it may reach."""
    flags = written(storage, access)
    if access.moves and storage.written is not None:
        storage.written[:] = True
    else:
        flags[...] = True


def state(storage: Storage, access: Access) -> NDArray[np.bool_]:
    """Per element of the access, as (partitions, elements a partition): written or not. A run-time
    index into a tensor that is written in part gives a mixture that no cut separates."""
    import numpy as np

    shape = (access.pairs[0][1], math.prod([num for _, num in access.pairs[1:]]))
    if storage.written is None:
        return np.zeros(shape, bool)
    if access.moves:
        flags = storage.written
        if flags.all() or not flags.any():
            return np.full(shape, bool(flags[0]))
        mixed = np.zeros(shape, bool)
        mixed[0, 0] = True
        return mixed
    flags = written(storage, access)
    if flags.ndim > len(access.pairs):
        flags = np.logical_or.reduce(flags, axis=-1)
    return flags.reshape(shape)


def uniform(flags: NDArray[np.bool_]) -> bool:
    """Whether all are alike."""
    return bool(flags.all()) if flags[0, 0] else not flags.any()


def runs(flags: NDArray[Any]) -> list[tuple[int, int, bool]]:
    """(first, end, flag) of each stretch of equal flags."""
    import numpy as np

    edges = [0, *(np.flatnonzero(flags[1:] != flags[:-1]) + 1).tolist(), len(flags)]
    return [(a, b, bool(flags[a])) for a, b in pairwise(edges)]


def merged(pairs: Pairs) -> list[tuple[int, int]]:
    """The same walk in as few pairs as it takes."""
    found: list[tuple[int, int]] = []
    for step, num in pairs:
        if num == 1:
            continue
        if found and found[-1][0] == step * num:
            found[-1] = (step, found[-1][1] * num)
        else:
            found.append((step, num))
    return found or [(1, 1)]


def row_length(access: Access) -> int:
    """Elements of the innermost stretch of a partition: between its multiples, one access."""
    return merged(access.pairs[1:])[-1][1]


def columns(access: Access, first: int, end: int) -> Access:
    """The elements `first` to `end` of each partition, which lie in one innermost stretch."""
    free = merged(access.pairs[1:])
    step, num = free[-1]
    row, inside = divmod(first, num)
    offset = access.offset + inside * step
    for outer, count in reversed(free[:-1]):
        row, here = divmod(row, count)
        offset += here * outer
    return attrs.evolve(access, pairs=(access.pairs[0], (step, end - first)), offset=offset)


def cuts(first: int, end: int, *accesses: Access) -> list[tuple[int, int]]:
    """The columns `first` to `end` in parts that are one stretch in every access."""
    found = {first, end}
    for access in accesses:
        row = row_length(access)
        found.update(range(first - first % row + row, end, row))
    edges = sorted(found)
    return list(pairwise(edges))


def partitions(access: Access, first: int, end: int) -> Access:
    """The partitions `first` to `end` of an access."""
    step, _ = access.pairs[0]
    pairs = ((step, end - first), *access.pairs[1:])
    return attrs.evolve(access, pairs=pairs, offset=access.offset + first * step)
