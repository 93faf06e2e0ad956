"""Products of a kernel that cannot begin where the kernel wants them: through a bank of their own.

A group's first matmul zeroes its whole bank. Where another value in that bank is still needed, and
the group's own bytes are not zero, it is summed in a tile of its own, and a copy takes the sum to
where the kernel wants it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

import attrs

from ncc.ir.bir import Ap, Block, Function, Inst, Loc, LocSet, Module
from ncc.ir.bir_walk import all_insts
from ncc.ir.psum_groups import Groups, Value
from ncc.ir.psum_zeros import Zeros
from ncc.target import BANK

ROUNDS = 16
ME = "lower-kernel"


class Asked(Zeros):
    """Notes who cannot start, instead of refusing."""

    def __init__(self, insts: tuple[Inst, ...]) -> None:
        super().__init__(insts)
        self.lost: list[Value] = []

    def refused(self, group: Value, other: Value) -> bool:
        self.lost.append(group)
        return False


def started(
    sets: Sequence[LocSet], insts: list[Inst], arch: str
) -> tuple[list[LocSet], list[Inst]]:
    """New sets, and the instructions in which every group can begin."""
    everything = list(all_insts((Block("", tuple(insts)),)))
    if not any(inst.opcode == "Matmult" for inst in everything):
        return [], insts
    begun = Begun(sets, arch, everything)
    return begun.more, begun.body(insts)


class Begun:
    """A kernel's straight runs of instructions, one after the other; a loop is a border of two."""

    def __init__(self, sets: Sequence[LocSet], arch: str, everything: Sequence[Inst]) -> None:
        self.sets, self.arch = sets, arch
        self.more: list[LocSet] = []
        self.taken = {of.name for of in sets}
        self.labels = {inst.name for inst in everything}
        self.uses = used(everything)

    def body(self, insts: Sequence[Inst]) -> list[Inst]:
        """The top of a kernel: what lies on both sides of a loop, or in it, crosses its borders."""
        parts = list(runs(insts))
        spans: dict[str, list[int]] = {}
        for n, part in enumerate(parts):
            for name in used(all_insts((Block("", tuple(part)),))):
                spans.setdefault(name, []).append(n)
        found: list[Inst] = []
        for n, part in enumerate(parts):
            near = frozenset(x for x, at in spans.items() if at[0] <= n <= at[-1])
            found += self.part(part, near)
        return found

    def part(self, insts: Sequence[Inst], near: frozenset[str]) -> list[Inst]:
        found: list[Inst] = []
        for part in runs(insts):
            if not part[0].blocks:
                mine = used(part)
                elsewhere = frozenset(x for x in near if self.uses[x] > mine[x])
                found += self.run(list(part), elsewhere)
                continue
            blocks = tuple(Block(x.name, tuple(self.part(x.insts, near))) for x in part[0].blocks)
            found.append(attrs.evolve(part[0], blocks=blocks))
        return found

    def run(self, insts: list[Inst], crossing: frozenset[str]) -> list[Inst]:
        """One straight run; who cannot start in it gets a tile of its own."""
        for _ in range(ROUNDS):
            module = Module("k", self.arch, (function((*self.sets, *self.more), insts),))
            asked = Asked(tuple(insts))
            asked.flags(Groups(module, tuple(insts), crossing))
            if not asked.lost:
                break
            insts = moved(insts, asked.lost, self.more, self.taken, self.labels)
        return insts


def runs(insts: Sequence[Inst]) -> Iterator[Sequence[Inst]]:
    """The instructions parted into loops, each alone, and what stands between them."""
    start = 0
    for n, inst in enumerate(insts):
        if inst.blocks:
            if start < n:
                yield insts[start:n]
            yield insts[n : n + 1]
            start = n + 1
    if start < len(insts):
        yield insts[start:]


def used(insts: Iterable[Inst]) -> Counter[str]:
    """How often each location is named."""
    return Counter(x.loc for i in insts for x in (*i.ins, *i.outs) if isinstance(x, Ap))


def function(sets: Sequence[LocSet], insts: list[Inst]) -> Function:
    """A function in which every PSUM tile without an address has banks of its own."""
    placed: list[LocSet] = []
    bank = 8
    for of in sets:
        locs: list[Loc] = []
        for loc in of.locs:
            if loc.type == "PSUM" and not loc.allocated:
                loc = attrs.evolve(loc, addr=bank * BANK, allocated=True)
                bank += -(-loc.dims[1] // BANK)
            locs.append(loc)
        placed.append(attrs.evolve(of, locs=tuple(locs)))
    return Function("k", tuple(placed), (Block("Block1", tuple(insts)),))


def moved(
    insts: list[Inst],
    lost: Sequence[Value],
    more: list[LocSet],
    taken: set[str],
    labels: set[str],
) -> list[Inst]:
    """The groups in tiles of their own; a copy behind each member that somebody reads after."""
    homes: dict[int, Ap] = {}  # by number of a member
    copies: dict[int, Ap] = {}
    for group in lost:
        out = insts[group.first].outs[0]
        assert isinstance(out, Ap)
        home = tile(out, f"{insts[group.first].name}.p", more, taken, insts[group.first])
        for member in group.members:
            homes[member] = home
            if member in group.stops or member == group.members[-1]:
                copies[member] = out
    found: list[Inst] = []
    for n, inst in enumerate(insts):
        if n not in homes:
            found.append(inst)
            continue
        found.append(attrs.evolve(inst, outs=(homes[n],)))
        if n in copies:
            name, k = f"{inst.name}_c", 0
            while name in labels:
                k += 1
                name = f"{inst.name}_c{k}"
            labels.add(name)
            copy = Inst(name, "TensorCopy", "DVE", (homes[n],), (copies[n],), origin=inst.origin)
            found.append(copy)
    return found


def tile(out: Ap, wish: str, more: list[LocSet], taken: set[str], inst: Inst) -> Ap:
    """A new PSUM tile for what an access holds."""
    name, k = wish, 0
    while name in taken:
        k += 1
        name = f"{wish}{k}"
    taken.add(name)
    rows, count = out.ap[0][1], 1
    for _, num in out.ap[1:]:
        count *= num
    loc = Loc(name, "PSUM", (rows, count * 4))
    more.append(
        LocSet(name, out.dtype, (rows, count), memory="PSUM", locs=(loc,), origin=inst.origin)
    )
    return Ap(name, out.dtype, ((count, rows), (1, count)))
