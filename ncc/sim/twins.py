"""Cores that write the same bytes to the same place: no order between them could be noticed.

A kernel that runs on two cores may do part of its work on both. Two such writes are twins: which of
them comes last makes no difference. Who has written a place itself, and then reads it, does not
need to wait for the twin of its own write either.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncc import numerics
from ncc.sim.memory import SHARED, Memory
from ncc.sim.views import Box, View

Bytes = NDArray[np.uint8]


def kept(mem: Memory, source: View, to: View, dtype: tuple[str, str] | None) -> Bytes | None:
    """The bytes that a DMA will write where other cores write too; None where they do not."""
    if not mem.peers or -SHARED < to.space.key <= 0:
        return None
    values: Any = source.array
    if dtype is not None and values.dtype != to.array.dtype:
        values = numerics.cast(numerics.widen(values), dtype[1])
    return np.array(values).reshape(-1).view(np.uint8)


def addresses(box: Box) -> NDArray[np.int64]:
    """Every byte that a box touches, in the order of its walk."""
    found = np.array([box.base], np.int64)
    for step, num in (*box.runs, (1, box.run)):
        found = np.add.outer(found, np.arange(num, dtype=np.int64) * step).reshape(-1)
    return found


def equal(box: Box, mine: Bytes | None, other: Box, its: Bytes | None) -> bool:
    """Whether two writes leave the same bytes wherever they meet."""
    if mine is None or its is None:
        return False
    if (box.base, box.runs, box.run) == (other.base, other.runs, other.run):
        return bool(np.array_equal(mine, its))
    _, at, there = np.intersect1d(addresses(box), addresses(other), return_indices=True)
    return bool(np.array_equal(mine[at], its[there]))


def within(box: Box, other: Box, covers: Iterable[Box]) -> bool:
    """Whether the bytes that two boxes share lie in those of `covers`."""
    common = np.intersect1d(addresses(box), addresses(other))
    for one in covers:
        common = np.setdiff1d(common, addresses(one))
    return not common.size
