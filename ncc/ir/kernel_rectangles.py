"""Tensors of a kernel that overlap on chip: one location, and a view of it for each.

The rectangle (partitions × bytes) that bounds tensors which meet may meet others; then it grows,
until no two rectangles meet. Each tensor is a view: its own type, other steps and another offset.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ncc.errors import NccError
from ncc.ir.bir import Ap, Inst, Loc, LocSet
from ncc.ir.data import size_of
from ncc.target import BANK


@attrs.frozen
class View:
    """Where a tensor lies in a rectangle: partitions and bytes from its start."""

    loc: str
    down: int
    along: int  # bytes
    width: int  # bytes per partition of the rectangle
    was: int  # bytes per partition of the tensor

    def access(self, x: Ap, call: Inst) -> Ap:
        """The same elements of the rectangle."""
        size = size_of(x.dtype)
        row, old = self.width // size, self.was // size
        if self.along % size or self.width % size:
            said = f"reads {x.loc} as {x.dtype}, and it lies {self.along} bytes inside {self.loc}"
            raise NccError("NCC395", said, call.origin.place(call.name))
        partition, inside = divmod(x.offset, old)
        (step, num), *free = x.ap
        jump = row * max(step // old, 1) if num > 1 else row
        offset = (partition + self.down) * row + inside + self.along // size
        return Ap(self.loc, x.dtype, ((jump, num), *free), offset)


@attrs.frozen
class Rectangle:
    first: int
    end: int  # partitions
    low: int
    high: int  # bytes
    members: tuple[int, ...]

    def meets(self, other: Rectangle) -> bool:
        return (
            self.low < other.high
            and other.low < self.high
            and self.first < other.end
            and other.first < self.end
        )


def rectangles(
    call: Inst, sets: Sequence[LocSet], pinned: bool = True
) -> tuple[tuple[LocSet, ...], dict[str, View]]:
    """The sets with those that overlap made one, and the views of those that were.

    `pinned` False: addresses only say what overlaps, and are chosen anew by the caller.
    """
    kept: dict[int, LocSet] = {}
    views: dict[str, View] = {}
    taken = {of.name for of in sets}
    for memory in ("SB", "PSUM"):
        for one in _disjoint(sets, memory):
            if len(one.members) == 1:
                of = sets[one.members[0]]
                kept[one.members[0]] = of if pinned else _free(of)
                continue
            made = _joined(call, sets, one, memory, pinned, taken)
            kept[min(one.members)] = made
            low = _start(one, memory, pinned)
            for n in one.members:
                loc = sets[n].locs[0]
                views[loc.name] = View(
                    made.locs[0].name,
                    loc.base - one.first,
                    loc.addr - low,
                    made.locs[0].dims[1],
                    loc.dims[1],
                )
    found: list[LocSet] = []
    for n, of in enumerate(sets):
        if n in kept:
            found.append(kept[n])
        elif not (of.locs and of.locs[0].name in views):
            found.append(of)
    return tuple(found), views


def _disjoint(sets: Sequence[LocSet], memory: str) -> list[Rectangle]:
    """Rectangles of which no two meet, over every placed set of a memory."""
    found: list[Rectangle] = []
    for n, of in enumerate(sets):
        if of.memory != memory or len(of.locs) != 1 or not of.locs[0].allocated:
            continue
        loc = of.locs[0]
        new = Rectangle(loc.base, loc.base + loc.dims[0], loc.addr, loc.addr + loc.dims[1], (n,))
        while near := [x for x in found if x.meets(new)]:
            found = [x for x in found if not x.meets(new)]
            new = _bound(sets, [*near, new])
        found.append(new)
    return found


def _bound(sets: Sequence[LocSet], parts: list[Rectangle]) -> Rectangle:
    members = tuple(sorted(n for one in parts for n in one.members))
    unit = max(4, *(size_of(sets[n].dtype) for n in members))
    low = min(one.low for one in parts)
    high = max(one.high for one in parts)
    return Rectangle(
        min(one.first for one in parts),
        max(one.end for one in parts),
        low - low % unit,
        high + -high % unit,
        members,
    )


def _start(one: Rectangle, memory: str, pinned: bool) -> int:
    """Where the location begins; one that is placed anew keeps its distance to its bank's start."""
    return one.low if pinned or memory != "PSUM" else one.low - one.low % BANK


def _joined(
    call: Inst,
    sets: Sequence[LocSet],
    one: Rectangle,
    memory: str,
    pinned: bool,
    taken: set[str],
) -> LocSet:
    members = [sets[n] for n in one.members]
    if one.end > 128 or one.low < 0:
        names = ", ".join(of.name for of in members[:4])
        said = f"places {names} on partitions {one.first} to {one.end - 1}; there are 128"
        raise NccError("NCC395", said, call.origin.place(call.name))
    name = f"{members[0].name}.shared"
    while name in taken:
        name += "_"
    taken.add(name)
    low = _start(one, memory, pinned)
    dims = (one.end - one.first, one.high - low)
    wide = max(members, key=lambda of: size_of(of.dtype))
    bank = low // BANK if memory == "PSUM" else 0
    loc = Loc(name, memory, dims)
    if pinned:
        loc = attrs.evolve(loc, addr=low, base=one.first, bank=bank, allocated=True, pinned=True)
    shape = (dims[0], dims[1] // size_of(wide.dtype))
    return LocSet(name, wide.dtype, shape, memory=memory, locs=(loc,), origin=members[0].origin)


def _free(of: LocSet) -> LocSet:
    """The set without an address."""
    loc = of.locs[0]
    return attrs.evolve(of, locs=(Loc(loc.name, loc.type, loc.dims),))
