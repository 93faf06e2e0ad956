"""Locations that hold one value after another, found in one sweep in program order.

A new value begins where something writes all that the location ever holds, after somebody has read
the old one. Partial writes, sums that go on, ring buffers, what a kernel placed itself and what the
outside sees begin nothing: such a location is one value.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ncc.ir.bir import Ap, Inst, LocSet
from ncc.ir.locations import Box, Owned, adds_up, box_of, is_solid, owners


@attrs.define
class Version:
    """One value of a location: the instructions that write it and that read it, by number."""

    writes: list[int] = attrs.field(factory=list[int])
    reads: list[int] = attrs.field(factory=list[int])


def versions(sets: tuple[LocSet, ...], insts: Sequence[Inst]) -> dict[str, list[Version]]:
    """The values of every location that holds more than one, in order."""
    owned = owners(sets)
    suspects = _rewritten(owned, insts)
    if not suspects:
        return {}
    whole = _boxes(owned, insts, suspects)
    found: dict[str, list[Version]] = {name: [Version()] for name in owned if name in suspects}
    for at, inst in enumerate(insts):
        reading = {x.loc for x in inst.ins if type(x) is Ap and x.loc in suspects}
        writing = [x for x in inst.outs if type(x) is Ap and x.loc in suspects]
        for name in sorted(reading):
            found[name][-1].reads.append(at)
        for x in writing:
            mine = found[x.loc]
            if mine[-1].reads and not adds_up(inst):
                loc = owned[x.loc][1]
                if box_of(x, loc) == whole[x.loc] and is_solid(x, loc):
                    mine.append(Version())
            mine[-1].writes.append(at)
    return {name: each for name, each in found.items() if len(each) > 1}


def _rewritten(owned: dict[str, Owned], insts: Sequence[Inst]) -> set[str]:
    """Locations of ours that are written after they were read."""
    was_read: set[str] = set()
    found: set[str] = set()
    for inst in insts:
        for x in inst.ins:
            if type(x) is Ap:
                was_read.add(x.loc)
        for x in inst.outs:
            if type(x) is Ap and x.loc in was_read:
                found.add(x.loc)
    return {name for name in found if _is_ours(owned[name][0])}


def _is_ours(owner: LocSet) -> bool:
    return owner.kind == "Internal" and not owner.ring and not any(x.pinned for x in owner.locs)


def _boxes(owned: dict[str, Owned], insts: Sequence[Inst], names: set[str]) -> dict[str, Box]:
    """The box of all that is ever touched of each location."""
    found: dict[str, Box] = {}
    for inst in insts:
        for x in (*inst.ins, *inst.outs):
            if type(x) is Ap and x.loc in names:
                box = box_of(x, owned[x.loc][1])
                found[x.loc] = found[x.loc].joined(box) if x.loc in found else box
    return found
