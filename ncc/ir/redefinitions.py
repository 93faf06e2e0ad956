"""Locations that hold one value after another: where each begins, and how to part them.

The accesses of a location fall into phases: writes, then reads. A phase begins a new value when its
writes cover everything that is read from there on until another phase does. Partial writes that a
later read looks past, sums that go on, what a kernel placed and what the outside sees begin no new
value. Rings hold many values on purpose and count only for who asks for them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import attrs

from ncc.ir.bir import Ap, Function, Inst, Loc, LocSet, Operand
from ncc.ir.bir_loops import line, private
from ncc.ir.locations import Box, Cover, Owned, adds_up, byte_box, fresh, keeps_old, owners

Sets = tuple[LocSet, ...]
Insts = tuple[Inst, ...]
LARGE = 8192  # bytes a partition of a tile that had better not be there twice at one moment


@attrs.define
class Version:
    """One value of a location: the instructions that write it and that read it, by number."""

    writes: list[int] = attrs.field(factory=list[int])
    reads: list[int] = attrs.field(factory=list[int])


@attrs.define
class Phase(Version):
    """Writes and the reads that follow them."""

    cover: Cover = attrs.field(factory=Cover)
    needs: Box | None = None  # what the reads look at
    adds: bool = False  # it goes on with a sum that was read, or a large tile is worked on in place

    def begins(self, later: Box | None) -> bool:
        """Whether nothing from before is read any more."""
        return not self.adds and (later is None or self.cover.holds(later))


def versions(func: Function, rings: Collection[str] = ()) -> dict[str, list[Version]]:
    """The values of every location that holds more than one, in order; of `rings` too. What a loop
    carries from turn to turn is one value."""
    insts, own = line(func), private(func)
    owned = owners(func.sets)
    suspects = _rewritten(owned, insts, rings)
    if own is not None:
        suspects &= own
    if not suspects:
        return {}
    phases: dict[str, list[Phase]] = {name: [Phase()] for name in owned if name in suspects}
    for at, inst in enumerate(insts):
        for x in inst.ins:
            if type(x) is Ap and x.loc in phases:
                phase, box = phases[x.loc][-1], byte_box(x, owned[x.loc][1])
                phase.reads.append(at)
                phase.needs = phase.needs.joined(box) if phase.needs else box
        for x in inst.outs:
            if type(x) is Ap and x.loc in phases:
                _write(phases[x.loc], at, inst, x, owned[x.loc][1])
    found = {name: _joined(each) for name, each in phases.items()}
    return {name: each for name, each in found.items() if len(each) > 1}


def _write(mine: list[Phase], at: int, inst: Inst, ap: Ap, loc: Loc) -> None:
    if mine[-1].reads:
        in_place = at == mine[-1].reads[-1] and (loc.type == "PSUM" or loc.dims[1] > LARGE)
        mine.append(Phase(adds=adds_up(inst) or keeps_old(inst) or in_place))
    phase = mine[-1]
    phase.writes.append(at)
    if keeps_old(inst) or (adds_up(inst) and not phase.cover.holds(byte_box(ap, loc))):
        box = byte_box(ap, loc)
        phase.needs = phase.needs.joined(box) if phase.needs else box
    else:
        phase.cover.add(ap, loc)


def _joined(phases: list[Phase]) -> list[Version]:
    """Phases that do not begin a value go on with the one before them."""
    begins: list[bool] = []
    later: Box | None = None
    for phase in reversed(phases):
        if phase.needs:
            later = phase.needs.joined(later) if later else phase.needs
        begins.append(phase.begins(later))
        if begins[-1]:
            later = None
    found: list[Version] = []
    for phase, new in zip(phases, reversed(begins), strict=True):
        if new or not found:
            found.append(Version())
        found[-1].writes += phase.writes
        found[-1].reads += phase.reads
    return found


def _rewritten(
    owned: Mapping[str, Owned], insts: Sequence[Inst], rings: Collection[str]
) -> set[str]:
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
    return {name for name in found if _is_ours(owned[name][0], rings)}


def _is_ours(owner: LocSet, rings: Collection[str]) -> bool:
    if owner.ring and owner.name not in rings:
        return False
    return owner.kind == "Internal" and not any(x.pinned for x in owner.locs)


def parted(
    sets: Sets, insts: Insts, found: dict[str, list[Version]], by: str
) -> tuple[Sets, Insts]:
    """Sets and instructions in which every value but a location's first has one of its own."""
    owned = owners(sets)
    taken = set(owned)
    reads: dict[int, dict[str, str]] = {}
    writes: dict[int, dict[str, str]] = {}
    clones: list[LocSet] = []
    for name, values in found.items():
        for number, value in enumerate(values[1:]):
            clone = fresh(f"{name}_SsaClone{number}", taken)
            clones.append(cloned(*owned[name], clone, by))
            for at in value.reads:
                reads.setdefault(at, {})[name] = clone
            for at in value.writes:
                writes.setdefault(at, {})[name] = clone
    new = tuple(_renamed(x, reads.get(i), writes.get(i), by) for i, x in enumerate(insts))
    return (*sets, *clones), new


def cloned(owner: LocSet, loc: Loc, name: str, by: str) -> LocSet:
    """A set of one location like `loc`."""
    shape = owner.shape[owner.partition_dim :] if loc.type != "DRAM" else owner.shape
    return attrs.evolve(
        owner,
        name=name,
        shape=shape,
        partition_dim=0,
        ring=False,
        locs=(Loc(name, loc.type, loc.dims),),
        origin=owner.origin.by(by),
    )


def without_rings(func: Function, rings: Collection[str], by: str) -> tuple[Sets, Insts] | None:
    """The same with these rings given up: each of their values has a location of its own.

    That costs the order in which buffers take turns, and gives an allocator short lives instead
    of long ones. None where no ring holds a second value.
    """
    found = versions(func, rings)
    if not found:
        return None
    gone = set(rings)
    if len(func.blocks) > 1:  # one whose turns a loop shares stays as it is
        gone = {x.name for x in func.sets if any(loc.name in found for loc in x.locs)} & gone
    plain = tuple(attrs.evolve(x, ring=False) if x.name in gone else x for x in func.sets)
    return parted(plain, line(func), found, by)


def _renamed(
    inst: Inst, reads: dict[str, str] | None, writes: dict[str, str] | None, by: str
) -> Inst:
    if reads is None and writes is None:
        return inst
    return attrs.evolve(
        inst,
        ins=tuple(_moved(x, reads or {}) for x in inst.ins),
        outs=tuple(_moved(x, writes or {}) for x in inst.outs),
        origin=inst.origin.by(by),
    )


def _moved(operand: Operand, names: dict[str, str]) -> Operand:
    if type(operand) is Ap and operand.loc in names:
        return Ap(names[operand.loc], operand.dtype, operand.ap, operand.offset)
    return operand
