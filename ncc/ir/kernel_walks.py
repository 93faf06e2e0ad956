"""Operands of kernels as walks: a start, partitions, and free pairs; cut so that records hold them.

A kernel's operands are walked in row-major order of their own shapes, which need not agree; a
record takes two to four pairs a side, of 16-bit steps. Here an operand becomes a `Walk`, several
walks are cut at common places, and what does not fit one record becomes pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import product
from math import prod

import attrs

from ncc.ir.bir import Ap
from ncc.ir.walks import Joint, collapsed, merged, together

Pairs = tuple[tuple[int, int], ...]
STEP = 0x7FFF  # what a record's signed 16-bit step holds
COUNT = 0xFFFF  # and its counter


@attrs.frozen
class Walk:
    """One operand: elements of `dtype` in `loc`, whose partitions hold `row` elements each.

    On chip it covers `rows` partitions from `first`, `jump` apart (1 for engines), and from element
    `at` of each walks `free`. In DRAM it walks `free` from element `at`; the rest means nothing.
    """

    loc: str
    dtype: str
    memory: str  # DRAM, SB, PSUM
    row: int
    at: int
    free: Pairs
    first: int = 0
    rows: int = 1
    jump: int = 1

    @property
    def count(self) -> int:
        """Elements a partition; in DRAM all of them."""
        return prod(num for _, num in self.free)

    def ap(self, free: Sequence[tuple[int, int]] | None = None, more: int = 0) -> Ap:
        """The access as BIR has it, or one of other free pairs that begins `more` further on."""
        pairs = (fused(self.free) if free is None else tuple(free)) or ((1, 1),)
        if self.memory == "DRAM":
            if len(pairs) == 1:
                pairs = ((pairs[0][0] * pairs[0][1], 1), *pairs)
            return Ap(self.loc, self.dtype, pairs, self.at + more)
        offset = self.first * self.row + self.at + more
        return Ap(self.loc, self.dtype, ((self.row, self.rows), *pairs), offset)

    def with_free(self, free: Pairs, more: int = 0) -> Walk:
        return attrs.evolve(self, free=free, at=self.at + more)

    def partition(self, first: int, rows: int) -> Walk:
        """Only some of its partitions, counted from its own first."""
        return attrs.evolve(self, first=self.first + first * self.jump, rows=rows)


@attrs.frozen
class Part:
    """A piece of several walks: common joints, slowest first, and how far each begins."""

    joints: tuple[Joint, ...]
    more: tuple[int, ...]

    def of(self, n: int) -> list[tuple[int, int]]:
        """The pairs of walk number `n`."""
        return [(steps[n], num) for num, steps in self.joints]


def cut(
    walks: Sequence[Pairs], free: int = 5, most: int = COUNT, limit: int = STEP
) -> tuple[Part, ...]:
    """Walks of equal counts in pieces: at most `free` pairs, `most` elements, steps to `limit`."""
    return _cut(tuple([tuple(walk) for walk in walks]), free, most, limit)


@lru_cache(1 << 14)
def _cut(walks: tuple[Pairs, ...], free: int, most: int, limit: int) -> tuple[Part, ...]:
    found: list[Part] = []
    for joints, more in aligned(walks):
        for part in _shortened(joints, more, most):
            found += _parted(part, free, limit)
    return tuple(found)


@lru_cache(1 << 14)
def fused(pairs: Pairs) -> Pairs:
    """A walk in the fewest pairs."""
    return tuple(collapsed(pairs))


def aligned(walks: Sequence[Pairs]) -> Iterator[tuple[list[Joint], tuple[int, ...]]]:
    """The walks cut at common places. Where their counts share no factor, in several pieces."""
    none = (0,) * len(walks)
    joints = together(walks)
    if joints is not None:
        yield merged(joints), none
        return
    # the innermost pairs end at different places: go on from end to end, a row or more at a time
    left = [collapsed(walk) for walk in walks]
    total = prod(num for _, num in left[0])
    if any(prod(num for _, num in walk) != total for walk in left):
        raise ValueError("walks of different counts")
    at = 0
    while at < total:
        size = min(_until(walk, at) for walk in left)
        steps = tuple(walk[-1][0] if walk else 0 for walk in left)
        yield [(size, steps)] if size > 1 else [], tuple(_place(walk, at) for walk in left)
        at += size


def _until(walk: list[tuple[int, int]], at: int) -> int:
    """Elements from number `at` to the end of its innermost row."""
    num = walk[-1][1] if walk else 1
    return num - at % num


def _place(walk: list[tuple[int, int]], at: int) -> int:
    """Where element number `at` of a walk lies."""
    found = 0
    for step, num in reversed(walk):
        at, index = divmod(at, num)
        found += index * step
    return found


def _shortened(joints: list[Joint], more: tuple[int, ...], most: int) -> list[Part]:
    """Parts of at most `most` elements."""
    if prod(num for num, _ in joints) <= most:
        return [Part(tuple(joints), more)]
    (num, steps), *rest = joints
    size = most // max(1, prod(n for n, _ in rest))
    found: list[Part] = []
    for at in range(0, num, max(size, 1)):
        here = tuple(a + at * s for a, s in zip(more, steps, strict=True))
        if size:
            found.append(Part(((min(size, num - at), steps), *rest), here))
        else:
            found += _shortened(rest, here, most)
    return found


def _parted(part: Part, free: int, limit: int) -> list[Part]:
    """A part in pieces of at most `free` pairs with steps up to `limit`."""
    inner = merged(part.joints)
    outer: list[Joint] = []
    for joint in list(inner):
        if any(abs(step) > limit for step in joint[1]):
            inner.remove(joint)
            outer.append(joint)
    while len(inner) > free:
        least = min(range(len(inner)), key=lambda i: (inner[i][0], i))
        outer.append(inner.pop(least))
    if not outer:
        return [Part(tuple(inner), part.more)]
    order = {id(joint): n for n, joint in enumerate(part.joints)}
    outer.sort(key=lambda joint: order.get(id(joint), 0))
    found: list[Part] = []
    for at in product(*(range(num) for num, _ in outer)):
        more = tuple(
            start + sum(i * steps[k] for i, (_, steps) in zip(at, outer, strict=True))
            for k, start in enumerate(part.more)
        )
        found.append(Part(tuple(inner), more))
    return found
