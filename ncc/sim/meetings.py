"""Where cores meet: a CoreBarrier holds its engine until the other core has come to the same one.

A barrier has a number. Whoever comes to it leaves what it knows; when all cores have come as often
as this one, it goes on and knows what each of them knew when it came. So what one core did before a
barrier is over for the other behind it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from ncc.sim.race import Clock, joined


class Meetings:
    """The barriers of all cores of a run."""

    def __init__(self, cores: int) -> None:
        self.came: list[defaultdict[int, list[Clock]]] = [defaultdict(list) for _ in range(cores)]

    def come(self, core: int, number: int, clock: Sequence[int]) -> int:
        """A core has come to a barrier; how often it has by now."""
        mine = self.came[core][number]
        mine.append(tuple(clock))
        return len(mine)

    def absent(self, number: int, times: int) -> list[int]:
        """The cores that have not come so often yet."""
        return [core for core, came in enumerate(self.came) if len(came[number]) < times]

    def known(self, number: int, times: int) -> Clock:
        """What all cores together knew when they came."""
        first, *rest = (came[number][times - 1] for came in self.came)
        for clock in rest:
            first = joined(first, clock)
        return first
