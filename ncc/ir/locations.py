"""Finding locations by name, and the part of a location that an access touches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import attrs

from ncc.ir.bir import Ap, Inst, Loc, LocSet
from ncc.ir.core import unchanged
from ncc.ir.data import size_of
from ncc.ir.indirect import INDIRECT, spread_all
from ncc.ir.recent import Recent

Owned = tuple[LocSet, Loc]


def owners(sets: tuple[LocSet, ...]) -> dict[str, Owned]:
    """Every location with its set, by name."""

    def found() -> dict[str, Owned]:
        return {loc.name: (owner, loc) for owner in sets for loc in owner.locs}

    return _owners.get(sets, found)


_owners = Recent[dict[str, Owned]]()


def with_locs(sets: tuple[LocSet, ...], changed: Mapping[str, Loc]) -> tuple[LocSet, ...]:
    """The sets with some locations replaced; the same object where nothing changes."""
    same = True
    new: list[LocSet] = []
    for owner in sets:
        locs = tuple(changed.get(loc.name, loc) for loc in owner.locs)
        if unchanged(locs, owner.locs):
            new.append(owner)
        else:
            new.append(attrs.evolve(owner, locs=locs))
            same = False
    return sets if same else tuple(new)


def fresh(wanted: str, taken: set[str]) -> str:
    """`wanted`, or the first of `wanted.1`, `wanted.2`, ... that is free; now it is taken."""
    name, number = wanted, 0
    while name in taken:
        number += 1
        name = f"{wanted}.{number}"
    taken.add(name)
    return name


class Box(NamedTuple):
    """Partitions p0 to p1 and elements (or bytes) e0 to e1 of a location, ends not included."""

    p0: int
    p1: int
    e0: int
    e1: int

    def joined(self, other: Box) -> Box:
        """The smallest box around both."""
        return Box(
            min(self.p0, other.p0),
            max(self.p1, other.p1),
            min(self.e0, other.e0),
            max(self.e1, other.e1),
        )

    def holds(self, other: Box) -> bool:
        return (
            self.p0 <= other.p0
            and other.p1 <= self.p1
            and self.e0 <= other.e0
            and other.e1 <= self.e1
        )

    @property
    def area(self) -> int:
        return (self.p1 - self.p0) * (self.e1 - self.e0)


@attrs.define
class Cover:
    """What a run of writes has written: a box in bytes, and whether they leave no hole in it.

    `parts` are the writes that leave no hole themselves; whether they hold a box together does not
    depend on their order.
    """

    box: Box | None = None
    dense: bool = True
    parts: list[Box] = attrs.field(factory=list[Box])

    def add(self, ap: Ap, loc: Loc) -> None:
        new = byte_box(ap, loc)
        solid = is_solid(ap, loc)
        self.dense = self.dense and solid
        if solid and not (self.parts and self.parts[-1].holds(new)):
            self.parts.append(new)
        if self.box is None:
            self.box = new
        else:
            self.dense = self.dense and make_a_box(self.box, new)
            self.box = self.box.joined(new)

    def holds(self, box: Box) -> bool:
        if self.box is None or not self.box.holds(box):
            return False
        return self.dense or not _without(box, self.parts)


def _without(box: Box, parts: list[Box]) -> list[Box]:
    """What of a box lies in none of the parts."""
    left = [box]
    for part in parts:
        rest: list[Box] = []
        for one in left:
            rest += _minus(one, part)
        left = rest
        if not left:
            break
    return left


def _minus(box: Box, part: Box) -> list[Box]:
    """What of a box lies outside a part, in at most four boxes."""
    p0, p1 = max(box.p0, part.p0), min(box.p1, part.p1)
    e0, e1 = max(box.e0, part.e0), min(box.e1, part.e1)
    if p0 >= p1 or e0 >= e1:
        return [box]
    found: list[Box] = []
    if box.p0 < p0:
        found.append(Box(box.p0, p0, box.e0, box.e1))
    if p1 < box.p1:
        found.append(Box(p1, box.p1, box.e0, box.e1))
    if box.e0 < e0:
        found.append(Box(p0, p1, box.e0, e0))
    if e1 < box.e1:
        found.append(Box(p0, p1, e1, box.e1))
    return found


def make_a_box(a: Box, b: Box) -> bool:
    """Whether two boxes cover the smallest box around both."""
    if a.holds(b) or b.holds(a):
        return True
    if (a.p0, a.p1) == (b.p0, b.p1):
        return a.e0 <= b.e1 and b.e0 <= a.e1
    return (a.e0, a.e1) == (b.e0, b.e1) and a.p0 <= b.p1 and b.p0 <= a.p1


def row_of(loc: Loc, dtype: str) -> int:
    """Elements of `dtype` in one partition of a location (in the whole of it, in DRAM)."""
    return loc.dims[1] // size_of(dtype)


def box_of(ap: Ap, loc: Loc) -> Box:
    """The box of a location that an access stays in."""
    pairs = ap.ap
    if loc.type == "DRAM":
        p0, e0, count = 0, ap.offset, 1
    else:
        p0, e0 = divmod(ap.offset, row_of(loc, ap.dtype))
        count, pairs = pairs[0][1], pairs[1:]
    low = high = e0
    for step, num in pairs:
        if step >= 0:
            high += step * (num - 1)
        else:
            low += step * (num - 1)
    return Box(p0, p0 + count, low, high + 1)


def byte_box(ap: Ap, loc: Loc) -> Box:
    """The same in bytes: accesses of one location may have several types."""
    p0, p1, e0, e1 = box_of(ap, loc)
    size = size_of(ap.dtype)
    return Box(p0, p1, e0 * size, e1 * size)


def is_solid(ap: Ap, loc: Loc) -> bool:
    """Whether an access touches every element of its box, each once."""
    count = 1
    for _, num in ap.ap:
        count *= num
    if count != box_of(ap, loc).area:
        return False
    # equal counts could still be a walk that meets one element twice and another never
    pairs = ap.ap if loc.type == "DRAM" else ap.ap[1:]
    reach = 1
    for step, num in sorted((abs(step), num) for step, num in pairs if num > 1):
        if step != reach:
            return False
        reach *= num
    return True


def reads_and_writes(inst: Inst) -> tuple[list[Ap], list[Ap]]:
    """The accesses of an instruction; a product that accumulates reads what it writes."""
    ins, outs = spread_all(inst) if inst.opcode in INDIRECT else (inst.ins, inst.outs)
    reads = [x for x in ins if type(x) is Ap]
    writes = [x for x in outs if type(x) is Ap]
    if adds_up(inst) or keeps_old(inst):
        reads += writes
    return reads, writes


def keeps_old(inst: Inst) -> bool:
    """Whether some bytes of what an instruction writes may keep their old values."""
    opcode = inst.opcode
    if opcode == "CopyPredicated":
        return len(inst.ins) < 3
    if opcode == "DMACopy":
        return ("mode", "CCE") in inst.keys
    if opcode == "StreamShuffle":
        return any(name == "mask" and 255 in value for name, value in inst.keys)
    if opcode == "IndirectLoad":
        return ("oob_is_err", False) in inst.keys
    return opcode in PARTIAL


PARTIAL = frozenset(
    ("IndirectCopy", "IndirectSave", "IndirectSaveAccumulate", "NonzeroWithCount", "CustomOp")
)


def adds_up(inst: Inst) -> bool:
    """Whether a product is added to what lies at its destination (before mm-acc-flags)."""
    return inst.opcode.startswith("Matmult") and ("accumulate", True) in inst.keys
