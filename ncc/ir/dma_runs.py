"""The two sides of a DMA as one walk over contiguous runs.

A descriptor copies runs of bytes: contiguous on both sides, at most 64 KiB, and on chip never out
of their partition. Above the run it has two steps a side. `runs` cuts the two patterns into the
same runs; where no run is longer, it is one element, which is legal and slow.
"""

from __future__ import annotations

from functools import lru_cache

import attrs

from ncc.ir.bir import Ap
from ncc.ir.data import size_of
from ncc.ir.walks import merged, together

PARTITION = 0x40000  # bytes from one partition to the next, in DMA addresses
LONGEST = 0x10000  # bytes of a run
SHORTEST = 512  # bytes of the pieces that a longer run may be cut into evenly
COUNT = 0xFFFF  # what a counter of a descriptor holds

Pairs = tuple[tuple[int, int], ...]
Walk = tuple[tuple[int, int, int], ...]


@attrs.frozen
class Runs:
    """`walk` is (count, source step, destination step), slowest first, steps in bytes.

    The sizes are the bytes of one run; they differ only where the DMA casts.
    """

    src_size: int
    dst_size: int
    walk: Walk

    def padded(self) -> Walk:
        """The walk as a descriptor has it: two steps, the fastest first, unused ones (1, 0, 0)."""
        return (*reversed(self.walk), (1, 0, 0), (1, 0, 0))[:2]


def runs(src: Ap, dst: Ap, src_on_chip: bool, dst_on_chip: bool) -> Runs | None:
    """The runs of a DMA that one descriptor can hold, or None."""
    found = steps(src, dst, src_on_chip, dst_on_chip)
    return found if found and len(found.walk) <= 2 and fits(found) else None


def steps(src: Ap, dst: Ap, src_on_chip: bool, dst_on_chip: bool) -> Runs | None:
    """The same with any number of steps; None where the sides cannot be walked together."""
    sizes = size_of(src.dtype), size_of(dst.dtype)
    return _steps(src.ap, dst.ap, src_on_chip, dst_on_chip, *sizes)


def fits(found: Runs) -> bool:
    """Whether run and counters fit their fields."""
    return max(found.src_size, found.dst_size) <= LONGEST and all(
        n <= COUNT for n, _, _ in found.walk
    )


@lru_cache(4096)
def _steps(
    src: Pairs, dst: Pairs, src_chip: bool, dst_chip: bool, src_size: int, dst_size: int
) -> Runs | None:
    both = [_in_bytes(src, src_chip, src_size), _in_bytes(dst, dst_chip, dst_size)]
    joints = together(both)
    if joints is None:
        return None
    walk = [(num, at[0], at[1]) for num, at in merged(joints)]
    run = 1
    if walk and walk[-1][1:] == (src_size, dst_size):
        run = walk.pop()[0]
    wide = max(src_size, dst_size)
    if run * wide > LONGEST and (part := _divisor(run, LONGEST // wide)) * wide >= SHORTEST:
        walk.append((run // part, part * src_size, part * dst_size))
        run = part
    return Runs(run * src_size, run * dst_size, tuple(walk))


def _in_bytes(pairs: Pairs, on_chip: bool, size: int) -> list[tuple[int, int]]:
    walk = [(step * size, num) for step, num in pairs]
    if on_chip:
        walk[0] = (PARTITION, pairs[0][1])
    return walk


def _divisor(number: int, most: int) -> int:
    """The largest divisor of `number` that is at most `most`."""
    return next(d for d in range(most, 0, -1) if number % d == 0)
