"""Spilling SBUF tiles: where their values go, and what their uses read instead.

The instructions that touch a tile fall into groups of near neighbours. The first group keeps the
tile; every other one gets a copy of its own, loaded before the group where the group needs what was
there before, and stored after it where the group wrote. A tile that only loads from unchanging DRAM
fill has no home: its loads are repeated. A copy that finds no place either is spilled once more,
and then each of its instructions has a copy of its own.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Sequence

import attrs

from ncc.ir.bir import SHARED, Ap, Function, Inst, Loc, LocSet, Module, Operand
from ncc.ir.bir_loops import joined, line, private, spans_of_blocks
from ncc.ir.bir_opcodes import OPCODES
from ncc.ir.bir_patterns import canonical
from ncc.ir.data import size_of
from ncc.ir.dma_split import parted
from ncc.ir.locations import Box, Cover, Owned, byte_box, fresh, owners, reads_and_writes, row_of

# how far apart two uses that share one copy may be, each time that a tile is spilled again
NEAR = (16, 4, 0)

Sets = tuple[LocSet, ...]
Insts = tuple[Inst, ...]


@attrs.define
class Group:
    """Uses that share one copy: their instructions, what they read and what they write."""

    at: list[int] = attrs.field(factory=list[int])
    reads: Box | None = None
    cover: Cover = attrs.field(factory=Cover)  # of its writes
    wrote_first: bool = True  # nothing was read before something wrote all that is read

    @property
    def writes(self) -> Box | None:
        return self.cover.box


@attrs.define
class Edit:
    """What changes: instructions before and after others, other names in some, some that go."""

    before: dict[int, Insts] = attrs.field(factory=dict[int, Insts])
    after: dict[int, Insts] = attrs.field(factory=dict[int, Insts])
    names: dict[int, dict[str, str]] = attrs.field(factory=dict[int, dict[str, str]])
    gone: set[int] = attrs.field(factory=set[int])
    sets: list[LocSet] = attrs.field(factory=list[LocSet])


class Spiller:
    """The spills of one module: homes, copies and names that are taken."""

    def __init__(self, module: Module, by: str) -> None:
        self.by = by
        self.roots: dict[str, str] = {}  # of a spilled tile and of its copies: the tile
        self.times: dict[str, int] = {}  # how often each was spilled
        self.homes: dict[str, str] = {}  # of a tile: the DRAM location of its value, or
        self.fills: dict[str, Insts] = {}  # the loads that bring it back
        self.borders: list[int] = []  # where blocks begin
        self.shared: set[str] = set()  # tiles that a loop carries, or several blocks touch
        self.short: set[str] = set()  # tiles with uses so few that no copy could be shorter
        self.reloads = 0
        self.locs = set(owners(module.main.sets))
        self.labels = {inst.name for inst in line(module.main)}

    def spill(self, names: Collection[str], func: Function) -> tuple[Sets, Insts]:
        """Sets and instructions with these tiles spilled."""
        sets, insts, own = func.sets, line(func), private(func)
        owned = owners(sets)
        edit = Edit()
        self.borders = [first for first, _ in spans_of_blocks(func)][1:]
        self.shared = set() if own is None else set(names) - own
        for name, uses in touches(names, insts).items():
            self.one(name, owned, insts, uses, edit)
        return (*sets, *edit.sets), self.edited(insts, edit)

    def one(
        self, name: str, owned: dict[str, Owned], insts: Insts, uses: list[int], edit: Edit
    ) -> None:
        """Note in `edit` what spilling one tile changes; `uses` are the instructions with it."""
        owner, loc = owned[name]
        times = self.times.get(name, 0)
        self.times[name] = times + 1
        again = name in self.roots
        if not again:
            self.roots[name] = name
            if fill := refill(name, [insts[at] for at in uses], owned):
                self.fills[name] = fill
            else:
                made = home(owner, loc, fresh(f"{name}_Home", self.locs), self.by)
                self.homes[name] = made.name
                edit.sets.append(made)
        root = self.roots[name]
        written = self.drop_moves(name, loc, insts, uses, edit) if again else None
        uses = [at for at in uses if at not in edit.gone]
        groups = grouped(name, loc, insts, uses, NEAR[min(times, 2)], self.borders)
        shared = name in self.shared
        for group in groups if shared else ():  # an earlier turn may have written it
            written = joined(written, group.writes) if group.writes else written
        mine = ""
        for group in groups:
            if root in self.fills and not group.reads:  # a load whose readers load for themselves
                edit.gone.update(group.at)
                written = group.writes or written
                continue
            mine = self.holder(name, owned[name], times, edit) if mine else name
            if len(group.at) == 1:
                self.short.add(mine)
            first, last = group.at[0], group.at[-1]
            if need := needed(group, written):
                back = self.back(root, mine, need, owned[name], insts[first])
                edit.before[first] = (*edit.before.get(first, ()), *back)
            if group.writes and root in self.homes and (again or shared or group is not groups[-1]):
                out = self.out(root, mine, group.writes, owned[name], insts[last])
                edit.after[last] = (*edit.after.get(last, ()), *out)
            if group.writes:
                written = written.joined(group.writes) if written else group.writes
            for at in group.at if mine != name else ():
                edit.names.setdefault(at, {})[name] = mine

    def holder(self, name: str, owned: Owned, times: int, edit: Edit) -> str:
        """A new tile that holds the value for one group."""
        root = self.roots[name]
        made = copy_of(*owned, fresh(f"{root}_Reload", self.locs), self.by)
        edit.sets.append(made)
        self.roots[made.name], self.times[made.name] = root, times + 1
        return made.name

    def drop_moves(
        self, name: str, loc: Loc, insts: Insts, uses: list[int], edit: Edit
    ) -> Box | None:
        """Drop the loads and stores that an earlier spill gave a copy; what a load brought."""
        written: Box | None = None
        home = self.homes.get(self.roots[name], "")
        for at in uses if home else ():
            inst = insts[at]
            places = [x.loc for x in (*inst.ins, *inst.outs) if type(x) is Ap]
            if OPCODES[inst.opcode].family == "dma" and sorted(places) == sorted((name, home)):
                edit.gone.add(at)
                out = inst.outs[0]
                if type(out) is Ap and out.loc == name:
                    box = byte_box(out, loc)
                    written = written.joined(box) if written else box
        return written

    def edited(self, insts: Insts, edit: Edit) -> Insts:
        done: list[Inst] = []
        for at, inst in enumerate(insts):
            if at in edit.gone:
                continue
            done += edit.before.get(at, ())
            names = edit.names.get(at)
            done.append(renamed(inst, names, self.by) if names else inst)
            done += edit.after.get(at, ())
        return tuple(done)

    def back(self, root: str, copy: str, box: Box, owned: Owned, use: Inst) -> Insts:
        """The loads that bring a value back before `use`."""
        self.reloads += 1
        if root in self.fills:
            return tuple(self.refilled(load, copy, use) for load in self.fills[root])
        src, dst = in_home(self.homes[root], box, owned), on_chip(copy, box, owned)
        return self.moves("Load", src, dst, owned[1], f"{use.name}.reload", use)

    def out(self, root: str, copy: str, box: Box, owned: Owned, writer: Inst) -> Insts:
        """The stores that take a value home after `writer`."""
        src, dst = on_chip(copy, box, owned), in_home(self.homes[root], box, owned)
        return self.moves("Save", src, dst, owned[1], f"{writer.name}.spill", writer)

    def moves(self, opcode: str, src: Ap, dst: Ap, loc: Loc, label: str, by: Inst) -> Insts:
        """One DMA, or as many as its longest runs ask for."""
        at_home = Loc(self.homes[self.roots[loc.name]], "DRAM", (1, loc.dims[0] * loc.dims[1]))
        ends = (at_home, loc) if opcode == "Load" else (loc, at_home)
        origin = by.origin.by(self.by)
        return tuple(
            Inst(fresh(label, self.labels), opcode, "DMA", (a,), (b,), origin=origin)
            for a, b in parted(src, dst, *ends) or [(src, dst)]
        )

    def refilled(self, load: Inst, copy: str, use: Inst) -> Inst:
        out = load.outs[0]
        assert type(out) is Ap
        outs = (Ap(copy, out.dtype, out.ap, out.offset),)
        label = fresh(f"{use.name}.reload", self.labels)
        origin = use.origin.by(self.by)
        return Inst(label, load.opcode, load.engine, load.ins, outs, load.keys, origin=origin)


def touches(names: Collection[str], insts: Insts) -> dict[str, list[int]]:
    """Of each tile the instructions that touch it, by number."""
    found: dict[str, list[int]] = {name: [] for name in names}
    for at, inst in enumerate(insts):
        for x in (*inst.ins, *inst.outs):
            if type(x) is Ap and x.loc in found and found[x.loc][-1:] != [at]:
                found[x.loc].append(at)
    return found


def grouped(
    name: str, loc: Loc, insts: Insts, uses: list[int], near: int, borders: Sequence[int] = ()
) -> list[Group]:
    """The uses of a tile, parted at borders and where they are further than `near` apart."""
    groups: list[Group] = []
    for at in uses:
        last = groups[-1].at[-1] if groups else -near - 1
        if at - last > near or bisect_right(borders, at) != bisect_right(borders, last):
            groups.append(Group())
        group = groups[-1]
        group.at.append(at)
        reads, writes = reads_and_writes(insts[at])
        for x in reads:
            if x.loc == name:
                box = byte_box(x, loc)
                if not group.cover.holds(box):
                    group.wrote_first = False
                group.reads = group.reads.joined(box) if group.reads else box
        for x in writes:
            if x.loc == name:
                group.cover.add(x, loc)
    return groups


def needed(group: Group, written: Box | None) -> Box | None:
    """What must be there before a group: what it reads, and what lies between its own writes."""
    if written is None:
        return None
    box = None if group.wrote_first else group.reads
    if group.writes and not group.cover.dense:
        box = box.joined(group.writes) if box else group.writes
    return box


def refill(name: str, insts: Sequence[Inst], owned: dict[str, Owned]) -> tuple[Inst, ...]:
    """The loads that alone fill a tile, from DRAM that nobody writes; none if others write."""
    found: list[Inst] = []
    was_read = False
    for inst in insts:
        if any(type(x) is Ap and x.loc == name for x in inst.ins):
            was_read = True
        if any(type(x) is Ap and x.loc == name for x in inst.outs):
            source = inst.ins[0] if len(inst.ins) == 1 else None
            if was_read or OPCODES[inst.opcode].family != "dma" or not isinstance(source, Ap):
                return ()
            owner, loc = owned[source.loc]
            if loc.type != "DRAM" or owner.kind in ("Internal", "ExternalOutput", SHARED):
                return ()
            found.append(inst)
    return tuple(found)


def renamed(inst: Inst, names: dict[str, str], by: str) -> Inst:
    def moved(x: Operand) -> Operand:
        if type(x) is Ap and x.loc in names:
            return Ap(names[x.loc], x.dtype, x.ap, x.offset)
        return x

    return attrs.evolve(
        inst,
        ins=tuple(map(moved, inst.ins)),
        outs=tuple(map(moved, inst.outs)),
        origin=inst.origin.by(by),
    )


def copy_of(owner: LocSet, loc: Loc, name: str, by: str) -> LocSet:
    """A set of one tile like `loc`."""
    shape = owner.shape[owner.partition_dim :]
    new = Loc(name, "SB", loc.dims)
    return LocSet(name, owner.dtype, shape, memory="SB", locs=(new,), origin=owner.origin.by(by))


def home(owner: LocSet, loc: Loc, name: str, by: str) -> LocSet:
    """A DRAM set that holds the value of a tile, partition after partition."""
    size = loc.dims[0] * loc.dims[1]
    new = Loc(name, "DRAM", (1, size))
    shape = owner.shape[owner.partition_dim :]
    return LocSet(name, owner.dtype, shape, locs=(new,), origin=owner.origin.by(by))


def on_chip(name: str, box: Box, owned: Owned) -> Ap:
    owner, loc = owned
    row, (low, high) = row_of(loc, owner.dtype), elements(box, owner.dtype)
    return Ap(name, owner.dtype, ((row, box.p1 - box.p0), (1, high - low)), box.p0 * row + low)


def elements(box: Box, dtype: str) -> tuple[int, int]:
    """The elements of a partition that hold the bytes of a box."""
    size = size_of(dtype)
    return box.e0 // size, -(-box.e1 // size)


def in_home(name: str, box: Box, owned: Owned) -> Ap:
    """The same elements at home, where the partitions follow each other."""
    owner, loc = owned
    row, (low, high) = row_of(loc, owner.dtype), elements(box, owner.dtype)
    pairs = canonical(((row, box.p1 - box.p0), (1, high - low)), dram=True)
    return Ap(name, owner.dtype, pairs, box.p0 * row + low)
