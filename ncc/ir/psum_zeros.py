"""Which accumulation groups of PSUM may begin with START, and which begin on zeros that are there.

START zeroes the whole bank on the partitions of its column group, so a group may have it only where
nothing else is alive in that window.
"""

from __future__ import annotations

from ncc.errors import NccError
from ncc.ir.bir import Inst
from ncc.ir.bir_keys import ACCUMULATE, START, STOP
from ncc.ir.footprints import PSUM, Rect, covers, meets, window
from ncc.ir.psum_groups import Groups, Value, banks


class Zeros:
    """Walks the values of PSUM and knows where an earlier START has left zeros."""

    def __init__(self, insts: tuple[Inst, ...]) -> None:
        self.insts = insts
        self.alive: dict[int, list[Value]] = {}  # by bank
        self.zeroed: dict[int, list[tuple[Rect, list[Rect]]]] = {}  # window, written since

    def flags(self, groups: Groups) -> dict[int, int]:
        """The flag of each member of a group, by instruction number."""
        flags: dict[int, int] = {}
        for value in groups.values:
            head = START if value.members and self.starts(value) else ACCUMULATE
            for member in value.members:
                flags[member] = head if member == value.first else ACCUMULATE
                if member in value.stops or member == value.members[-1]:
                    flags[member] |= STOP
            self.write(value, head == START)
        return flags

    def starts(self, group: Value) -> bool:
        """Whether the group's first matmul may zero its window; if not, its bytes are zero."""
        if group.under and not group.on_zeros:
            return False
        zone = window(self.insts[group.first], group.rect)
        spoiled = [
            other
            for bank in banks(zone)
            for other in self.living(bank, group.first)
            if meets(other.rect, zone)
        ]
        if not spoiled:
            return True
        if group.under or self.is_zero(group.rect):
            return False
        return self.refused(group, spoiled[0])

    def refused(self, group: Value, other: Value) -> bool:
        """NCC603: the group cannot start."""
        inst = self.insts[group.first]
        said = (
            f"the group of {group.name} ({group.where()}) cannot start: it would zero {other.name}"
            f" ({other.where()}), which is still needed, and its own bytes are not zero"
        )
        hint = "give one of the two another bank"
        raise NccError("NCC603", said, inst.origin.place(inst.name), hint)

    def living(self, bank: int, now: int) -> list[Value]:
        kept = [value for value in self.alive.get(bank, ()) if value.last >= now]
        self.alive[bank] = kept
        return kept

    def is_zero(self, rect: Rect) -> bool:
        return any(
            covers(zone, rect) and not any(meets(other, rect) for other in since)
            for bank in banks(rect)
            for zone, since in self.zeroed.get(bank, ())
        )

    def write(self, value: Value, started: bool) -> None:
        if value.rect.plane != PSUM:
            return
        for bank in banks(value.rect):
            zones = self.zeroed.get(bank, [])
            if started:
                zone = window(self.insts[value.first], value.rect)
                kept = [z for z in zones if not covers(zone, z[0])]
                since: list[Rect] = []
                zones = [*kept, (zone, since)]
                self.zeroed[bank] = zones
            for _, writes in zones:
                if not any(covers(other, value.rect) for other in writes):
                    writes.append(value.rect)
            self.alive[bank] = [*self.living(bank, value.first), value]
