"""The happens-before check: two accesses to the same bytes, one a write, must be ordered by waits.

A clock has one component a unit: the five engines in wire order, then their five DMA queues; those
of a second core follow. That of an engine counts the bundles it has completed, that of a queue its
completed DMAs. Clocks grow along a stream and by waits alone, never by what happened to have
arrived, so that the verdict is the same in every interleaving (passes reference 12.3).
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Sequence

from ncc.errors import NccError, Place
from ncc.sim.twins import Bytes, equal, within
from ncc.sim.views import Box, overlap

ENGINES = 5
UNITS = 2 * ENGINES
Clock = tuple[int, ...]
START: Clock = (0,) * UNITS


# One past access: first and last row and byte of its rectangle (ends excluded), its box, its unit
# and position there, whether it wrote, the bundle as messages name it, its number among all,
# what it wrote, where cores may write the same, and what its issuer knew. It is over for whoever's
# clock has the position at the unit. A tuple: a drawer may hold a hundred of them.
Access = tuple[int, int, int, int, Box, int, int, bool, str, int, Bytes | None, Clock]


def joined(a: Sequence[int], b: Sequence[int]) -> Clock:
    """The least clock that knows what both know."""
    return tuple(map(max, a, b))


class Drawer:
    """The past of one column of a memory: writes, and the last read of each box by each unit."""

    __slots__ = ("reads", "writes")

    def __init__(self) -> None:
        self.writes: list[Access] = []
        self.reads: dict[tuple[Box, int], Access] = {}


class Race:
    """The last accesses to every drawer of the memories."""

    def __init__(self) -> None:
        self.drawers: defaultdict[tuple[int, int, int], Drawer] = defaultdict(Drawer)
        self.count = 0
        self.twins: dict[tuple[int, int], bool] = {}  # by the numbers of two accesses
        self.early: tuple[Access, Access] | None = None  # a transfer, and one that came too soon

    def verdict(self) -> None:
        """Raises the race that waited for a better name, once the run is over."""
        if self.early is not None:
            raise _race(*self.early)

    def access(
        self,
        box: Box,
        write: bool,
        clock: Sequence[int],
        unit: int,
        position: int,
        by: str,
        serial: bool = False,
        values: Bytes | None = None,
    ) -> None:
        """Checks a new access, whose issuer knows `clock`, against the past, and keeps it.

        `serial`: what the same instruction touched before is over by then. `values` are the bytes
        that it writes, where other cores may write the same.
        """
        (top, end), low, high = box.rows, box.low, box.high
        self.count += 1
        new: Access = (
            top,
            end,
            low,
            high,
            box,
            unit,
            position,
            write,
            by,
            self.count,
            values,
            tuple(clock),
        )
        for key in box.columns:
            drawer = self.drawers[key]
            past = drawer.writes
            meet = [a for a in past if a[0] < end and top < a[1] and a[2] < high and low < a[3]]
            for old in meet:
                ordered = self._ordered(old, new, clock, serial)
                if write and ordered and _covers(box, old[4]):
                    past.remove(old)
            if not write:
                drawer.reads[box, unit] = new
                continue
            for old in list(drawer.reads.values()):
                if not (old[0] < end and top < old[1] and old[2] < high and low < old[3]):
                    continue
                if self._ordered(old, new, clock, serial) and _covers(box, old[4]):
                    del drawer.reads[old[4], old[5]]
            past.append(new)

    def _ordered(self, old: Access, new: Access, clock: Sequence[int], serial: bool) -> bool:
        """Whether the issuer of `new` knows that `old` is over; a race where it must and does
        not."""
        unit = old[5]
        if clock[unit] >= old[6] or (unit == new[5] and unit % UNITS < ENGINES):
            return True
        if serial and unit == new[5] and old[6] == new[6]:
            return True
        if (old[7] or new[7]) and overlap(new[4], old[4]) and not self._unnoticed(old, new):
            self._found(old, new)
        return False

    def _found(self, old: Access, new: Access) -> None:
        """A race: an error at once, unless a transfer came before an earlier one of its own queue.

        That one races with whoever goes on with the earlier one's bytes too: the last of them is
        whom it should have waited for, so the error waits for the end of the run to name that one.
        """
        if self.early is None:
            if old[5] != new[5]:
                raise _race(old, new)
            self.early = old, new
            return
        before, early = self.early
        for one, other in ((old, new), (new, old)):
            follows = other is early or _knows(other, early)
            follows = follows and _knows(one, before) and not _knows(one, early)
            if follows and overlap(one[4], early[4]):
                self.early = one, early

    # --- the same work on two cores ---------------------------------------------------------------

    def _unnoticed(self, old: Access, new: Access) -> bool:
        """Whether no order of two accesses of different cores could be noticed: both write the same
        bytes, or the reader has written itself what the other core writes."""
        if old[5] // UNITS == new[5] // UNITS:
            return False
        if old[7] and new[7]:
            return self._twins(old, new)
        read, write = (new, old) if old[7] else (old, new)
        mine = [
            one
            for key in read[4].columns
            for one in self.drawers[key].writes
            if one[5] // UNITS == read[5] // UNITS and one[9] < read[9]
        ]
        return within(read[4], write[4], [x[4] for x in mine if self._twins(x, write)])

    def _twins(self, one: Access, other: Access) -> bool:
        pair = one[9], other[9]
        found = self.twins.get(pair)
        if found is None:
            found = self.twins[pair] = equal(one[4], one[10], other[4], other[10])
        return found


def _covers(box: Box, other: Box) -> bool:
    """Whether whoever is ordered after the access to `box` is so after that to `other`."""
    return box is other or (
        box.solid
        and box.rows[0] <= other.rows[0]
        and other.rows[1] <= box.rows[1]
        and box.low <= other.low
        and other.high <= box.high
    )


def _knows(one: Access, other: Access) -> bool:
    """Whether the issuer of the first access knew that the second was over."""
    return one[11][other[5]] >= other[6]


def _race(old: Access, new: Access) -> NccError:
    top, end = max(old[0], new[0]), min(old[1], new[1])
    low, high = max(old[2], new[2]), min(old[3], new[3])
    space, by, before = new[4].space, new[8], old[8]
    said = (
        f"{'writes' if new[7] else 'reads'} {space} rows {top} to {end - 1} bytes {low} to "
        f"{high - 1} that {before} {'writes' if old[7] else 'reads'}, and no wait orders them"
    )
    hint = "make the later one wait for the other"
    if new[5] // UNITS != old[5] // UNITS:
        hint = "the cores must meet between the two: put a core_barrier there"
    return NccError("NCC902", said, Place(value=by), hint)


class Counter:
    """Who raised one semaphore, when, and what they knew: from it a wait learns its clock.

    A wait for k on a counter with one writer comes after that writer's update that reached k. With
    several writers, one is only known to have done k minus all that the others do in the program.
    """

    def __init__(self, units: int = UNITS) -> None:
        self.values: defaultdict[int, list[int]] = defaultdict(list)
        self.clocks: defaultdict[int, list[Clock]] = defaultdict(list)
        self.totals: dict[int, int] = {}  # by writer, over the whole program
        self.static = True  # only raised, and by streams without branches
        self.latest: Clock = (0,) * units

    def raised(self, writer: int, amount: int, clock: Clock) -> None:
        """Records an update; `clock` is the writer's at completion."""
        values = self.values[writer]
        values.append((values[-1] if values else 0) + amount)
        self.clocks[writer].append(clock)
        if not self.static:
            self.latest = joined(self.latest, clock)

    def cleared(self) -> None:
        """The counter counts from zero again; a wait from now on is for updates from now on."""
        self.values.clear()
        self.clocks.clear()

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
