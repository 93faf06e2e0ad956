"""What the general-purpose cores compute: gathers, bounds, counts and the k largest.

Their 128 lanes are eight cores of 16 partitions. Arrays are [rows, elements].
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ncc import numerics
from ncc.numerics import Array

CORE = 16
I64 = NDArray[np.int64]


def core_indices(index: Array) -> list[I64]:
    """The index list of each core: its 16 rows read column by column, the partition fastest."""
    blocks = range(0, index.shape[0], CORE)
    return [index[at : at + CORE].T.reshape(-1).astype(np.int64) for at in blocks]


def local_gather(source: Array, index: Array, each: int, count: int, places: int) -> Array:
    """[rows, places]: `each` elements from every index on, for all rows of the index's core.

    Only the first `count` indices of a core are read (−1: all). Where they would not fill the
    places `each` at a time, single elements are moved. IndexError beyond the source.
    """
    lists = core_indices(index)
    count = lists[0].size if count < 0 else min(count, lists[0].size)
    each = each if count * each == places else 1
    out = np.empty((source.shape[0], min(count * each, places)), source.dtype)
    for n, found in enumerate(lists):
        rows = slice(n * CORE, (n + 1) * CORE)
        spread = (found[:count, None] + np.arange(each)).reshape(-1)[: out.shape[1]]
        bad = spread[(spread < 0) | (spread >= source.shape[1])]
        if bad.size:
            raise IndexError(f"index {int(bad[0])} of {source.shape[1]} elements a row")
        out[rows] = source[rows][:, spread]
    return out


def sequence_bounds(ids: Array) -> NDArray[np.float64]:
    """[2, n]: start and end (exclusive) of the run of equal ids around each element.

    Of the padding, id 0, they are n and −1.
    """
    x = ids.reshape(-1)
    n = x.size
    change = np.flatnonzero(x[1:] != x[:-1]) + 1
    starts, ends = np.concatenate([[0], change]), np.concatenate([change, [n]])
    lengths = ends - starts
    low, high = np.repeat(starts, lengths), np.repeat(ends, lengths)
    pad = x == 0
    return np.stack([np.where(pad, n, low), np.where(pad, -1, high)]).astype(np.float64)


def nonzero_with_count(row: Array, offset: int, padding: int) -> NDArray[np.int32]:
    """[n + 1]: the places of what is not zero, each plus `offset`, then padding, then how many."""
    at = np.flatnonzero(row != 0)
    out = np.full(row.size + 1, padding, np.int64)
    out[: at.size] = at + offset
    out[-1] = at.size
    return out.astype(np.int32)


def topk(block: Array, n: int, k: int) -> tuple[Array, I64]:
    """The k largest of the first n elements of one core, ascending, and their numbers.

    Element e of a core stands in partition e mod 16, column e div 16. Of equal ones at the edge the
    earlier are kept.
    """
    line = block.T.reshape(-1)[:n]
    order = np.argsort(-numerics.widen(line), kind="stable")[:k][::-1]
    return line[order], order.astype(np.int64)


def snake(line: Array, columns: int, old: Array) -> Array:
    """`old`, [16, columns], with `line` laid down as `topk` reads one."""
    out = old.T.reshape(-1).copy()
    out[: line.size] = line
    return out.reshape(columns, CORE).T
