"""Several access patterns walked side by side: the arithmetic of the legalisers and the encoder.

A walk is a list of (step, num) pairs, slowest first. Walks with equal element counts are cut at the
same places by `together`, and `merged` joins what every one of them passes without a jump.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd

Joint = tuple[int, tuple[int, ...]]  # a count, and the step of each walk


def collapsed(pairs: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """One walk in the fewest pairs: counts of 1 drop out, pairs without a jump fuse."""
    return [(steps[0], num) for num, steps in merged([(n, (s,)) for s, n in pairs])]


def merged(joints: Sequence[Joint]) -> list[Joint]:
    """The same for walks side by side: two pairs fuse where they do in every walk."""
    found: list[Joint] = []
    for num, steps in joints:
        if num == 1:
            continue
        if found and all(o == s * num for o, s in zip(found[-1][1], steps, strict=True)):
            found[-1] = (found[-1][0] * num, steps)
        else:
            found.append((num, steps))
    return found


def together(walks: Sequence[Sequence[tuple[int, int]]]) -> list[Joint] | None:
    """The walks cut at common places; None where their counts do not allow it."""
    left = [collapsed(walk) for walk in walks]
    found: list[Joint] = []
    while any(left):
        if not all(left):
            return None
        num = gcd(*(walk[-1][1] for walk in left))
        if num == 1:
            return None
        found.append((num, tuple(walk[-1][0] for walk in left)))
        for walk in left:
            step, count = walk.pop()
            if count > num:
                walk.append((step * num, count // num))
    return found[::-1]
