"""The happens-before check: two accesses to the same bytes, one a write, must be ordered by waits.

A clock has one component a unit: the five engines in wire order, then their five DMA queues. That
of an engine counts the bundles it has completed, that of a queue its completed DMAs. Clocks grow
along a stream and by waits alone, never by what happened to have arrived, so that the verdict is
the same in every interleaving (passes reference 12.3).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence

import attrs

from ncc.errors import NccError, Place
from ncc.sim.views import Box, overlap

ENGINES = 5
UNITS = 2 * ENGINES
Clock = tuple[int, ...]
START: Clock = (0,) * UNITS


@attrs.frozen
class Access:
    """One past access; it is over for whoever's clock has `position` at `unit`."""

    box: Box
    unit: int
    position: int
    write: bool
    by: str  # the bundle, as messages name it


def joined(a: Sequence[int], b: Sequence[int]) -> Clock:
    """The least clock that knows what both know."""
    return tuple(map(max, a, b))


class Race:
    """The last accesses to every drawer of the memories."""

    def __init__(self) -> None:
        self.drawers: dict[tuple[int, int, int], list[Access]] = {}

    def access(
        self, box: Box, write: bool, clock: Sequence[int], unit: int, position: int, by: str
    ) -> None:
        """Checks a new access, whose issuer knows `clock`, against the past, and keeps it."""
        new = Access(box, unit, position, write, by)
        (top, end), low, high = box.rows, box.low, box.high
        for key in box.columns:
            past = self.drawers.get(key)
            if past is None:
                self.drawers[key] = [new]
                continue
            kept: list[Access] = []
            for old in past:
                other = old.box
                if other is not box and (
                    other.rows[0] >= end
                    or top >= other.rows[1]
                    or other.low >= high
                    or low >= other.high
                ):
                    kept.append(old)
                    continue
                if (
                    (write or old.write)
                    and clock[old.unit] < old.position
                    and (old.unit != unit or unit >= ENGINES)  # an engine is in order with itself
                ):
                    if overlap(box, other):
                        raise _race(old, new)
                    kept.append(old)
                elif not ((write or (not old.write and old.unit == unit)) and _covers(box, other)):
                    kept.append(old)
            kept.append(new)
            self.drawers[key] = kept


def _covers(box: Box, other: Box) -> bool:
    """Whether whoever is ordered after the access to `box` is so after that to `other`."""
    return box is other or (
        box.solid
        and box.rows[0] <= other.rows[0]
        and other.rows[1] <= box.rows[1]
        and box.low <= other.low
        and other.high <= box.high
    )


def _race(old: Access, new: Access) -> NccError:
    a, b = old.box, new.box
    top, end = max(a.rows[0], b.rows[0]), min(a.rows[1], b.rows[1])
    low, high = max(a.low, b.low), min(a.high, b.high)
    place = f"{a.space} rows {top} to {end - 1} bytes {low} to {high - 1}"
    said = (
        f"{new.by} {'writes' if new.write else 'reads'} {place} that {old.by} "
        f"{'writes' if old.write else 'reads'}, and no wait orders them"
    )
    return NccError("NCC902", said, Place(value=new.by), "make the later one wait for the other")


class Counter:
    """Who raised one semaphore, when, and what they knew: from it a wait learns its clock.

    A wait for k on a counter with one writer comes after that writer's update that reached k. With
    several writers, one is only known to have done k minus all that the others do in the program.
    """

    def __init__(self) -> None:
        self.values: defaultdict[int, list[int]] = defaultdict(list)
        self.clocks: defaultdict[int, list[Clock]] = defaultdict(list)
        self.totals: dict[int, int] = {}  # by writer, over the whole program
        self.static = True  # only raised, and by streams without branches
        self.latest: Clock = START

    def raised(self, writer: int, amount: int, clock: Clock) -> None:
        """Records an update; `clock` is the writer's at completion."""
        values = self.values[writer]
        values.append((values[-1] if values else 0) + amount)
        self.clocks[writer].append(clock)
        if not self.static:
            self.latest = joined(self.latest, clock)

    def known(self, clock: Sequence[int], threshold: int) -> Sequence[int]:
        """`clock` after a wait for at least `threshold`."""
        if not self.static:
            return joined(clock, self.latest)
        total = sum(self.totals.values()) if len(self.totals) > 1 else 0
        for writer, values in self.values.items():
            need = threshold - (total - self.totals[writer] if total else 0)
            if need <= 0:
                continue
            index = bisect_left(values, need)
            if index < len(values):
                clock = joined(clock, self.clocks[writer][index])
        return clock
