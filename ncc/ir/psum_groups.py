"""Accumulation groups: runs of matmuls that add up in one PSUM destination, and who lives beside.

A *value* is what stands in a rectangle of PSUM from the instruction that begins it to its last
reader; a group is the value that a run of matmuls makes. Found in one sweep; what a bank holds at
one time is little, so that the sweep is linear.
"""

from __future__ import annotations

import attrs

from ncc.errors import NccError
from ncc.ir.bir import Ap, Inst, Module
from ncc.ir.bir_loops import line
from ncc.ir.footprints import (
    BANK,
    PSUM,
    Footprints,
    Rect,
    adds,
    covers,
    is_copying_transpose,
    key_of,
    meets,
)


@attrs.define(eq=False)
class Value:
    """What stands in `rect` from instruction number `first` to number `last`."""

    rect: Rect
    name: str  # of the instruction that begins it
    first: int
    last: int
    members: list[int] = attrs.field(factory=list[int])  # of a group: its matmuls
    stops: set[int] = attrs.field(factory=set[int])  # members after which somebody reads
    zero: bool = False  # a memset to 0
    under: str = ""  # of a group that adds to a value of somebody else: whose
    on_zeros: bool = False  # that value is a memset to 0: a START makes the same
    left: list[Rect] = attrs.field(factory=list[Rect])  # what later values do not hide

    def where(self) -> str:
        """Bank, bytes and partitions, for a sentence."""
        _, r0, r1, c0, c1, _ = self.rect
        bank, low = divmod(c0, BANK)
        return f"bytes {low} to {low + c1 - c0} of bank {bank}, partitions {r0} to {r1}"


def common(a: Rect, b: Rect) -> Rect:
    """The box that two rectangles share."""
    rows, columns = (max(a.r0, b.r0), min(a.r1, b.r1)), (max(a.c0, b.c0), min(a.c1, b.c1))
    return Rect(a.plane, *rows, *columns)


def without(a: Rect, b: Rect) -> list[Rect]:
    """What is left of `a` beside `b`, in boxes; all of it where holes hide how they overlap."""
    if covers(b, a):
        return []
    if not meets(a, b) or a.runs is not None or b.runs is not None:
        return [a]
    r0, r1, c0, c1 = max(a.r0, b.r0), min(a.r1, b.r1), max(a.c0, b.c0), min(a.c1, b.c1)
    boxes = (
        Rect(a.plane, a.r0, r0, a.c0, a.c1),
        Rect(a.plane, r1, a.r1, a.c0, a.c1),
        Rect(a.plane, r0, r1, a.c0, c0),
        Rect(a.plane, r0, r1, c1, a.c1),
    )
    return [box for box in boxes if box.r0 < box.r1 and box.c0 < box.c1]


def banks(rect: Rect) -> range:
    return range(rect.c0 // BANK, (rect.c1 - 1) // BANK + 1)


class Groups:
    """The values of PSUM in one block: `values` in order of their first instruction.

    Before it the locations in `crossing` hold something, and behind it somebody needs them.
    """

    def __init__(
        self,
        module: Module,
        insts: tuple[Inst, ...] | None = None,
        crossing: frozenset[str] = frozenset(),
    ) -> None:
        self.footprints = Footprints(module)
        self.values: list[Value] = []
        self.began: dict[int, Value] = {}  # by number of the first instruction
        self._standing: dict[int, list[Value]] = {}  # by bank
        self._open: dict[Ap, Value] = {}  # groups that can still grow, by destination
        self._outs: dict[int, Ap] = {}  # of an open group's first instruction: its destination
        whose = self._enter(module, crossing)
        for n, inst in enumerate(insts := line(module.main) if insts is None else insts):
            self._look(n, inst)
        for value in self.values:  # what is left of it is needed behind the border
            if any(meets(part, rect) for part in value.left for rect in whose):
                value.last = len(insts)

    def _enter(self, module: Module, crossing: frozenset[str]) -> list[Rect]:
        """What stands there when a block begins: the locations that it shares with others."""
        found: list[Rect] = []
        for of in module.main.sets:
            for loc in of.locs:
                if loc.name in crossing and loc.type == "PSUM":
                    rows, columns = (loc.base, loc.dims[0]), (loc.addr, loc.dims[1])
                    rect = Rect(PSUM, rows[0], sum(rows), columns[0], sum(columns))
                    found.append(rect)
                    self._begin(Value(rect, loc.name, -1, -1))
        return found

    def _look(self, n: int, inst: Inst) -> None:
        reads, writes = self.footprints.places.touched(inst)
        for read in reads:
            if read.plane == PSUM:
                for value in self._there(read):
                    value.last = n
                    if value.members:
                        value.stops.add(value.members[-1])
        if not writes or writes[0].plane != PSUM or type(out := inst.outs[0]) is not Ap:
            return
        dest = writes[0]
        if inst.opcode == "Matmult" and not is_copying_transpose(inst, self.footprints.gen):
            self._matmul(n, inst, out, dest)
        else:
            zero = inst.opcode == "Memset" and not key_of(inst, "constant", 0)
            self._begin(Value(dest, inst.name, n, n, zero=zero))

    def _matmul(self, n: int, inst: Inst, out: Ap, dest: Rect) -> None:
        below = self._there(dest)
        begins = not below and key_of(inst, "accumulation_flag")  # on zeros of an earlier START
        if not adds(inst) or begins:
            self._opened(out, Value(dest, inst.name, n, n, [n]))
            return
        if group := self._open.get(out):
            group.members.append(n)
            group.last = max(group.last, n)
            return
        if not below:
            said = "adds to bytes of PSUM that nothing has written"
            hint = "the first matmul of a group does not accumulate"
            raise NccError("NCC604", said, inst.origin.place(inst.name), hint)
        zeros = all(value.zero and covers(value.rect, dest) for value in below)
        if not zeros:
            for value in below:
                value.last = n
        group = Value(dest, inst.name, n, n, [n], under=below[-1].name, on_zeros=zeros)
        self._opened(out, group)

    def _opened(self, out: Ap, group: Value) -> None:
        self._open[out] = self._begin(group)
        self._outs[group.first] = out

    def _there(self, rect: Rect) -> list[Value]:
        """The values that stand in a rectangle, less those that later ones hide there."""
        seen: list[Value] = []
        for bank in banks(rect):
            standing = self._standing.get(bank, [])
            for n, value in enumerate(standing):
                if value not in seen and any(meets(part, rect) for part in value.left):
                    part = common(value.rect, rect)
                    if value.rect.runs is None or not any(
                        covers(later.rect, part) for later in standing[n + 1 :]
                    ):
                        seen.append(value)
        return seen

    def _begin(self, value: Value) -> Value:
        """A write that is no member of an older group: it ends the groups whose bytes it takes."""
        for older in self._there(value.rect):
            out = self._outs.pop(older.first, None)
            if out is not None and self._open.get(out) is older:
                del self._open[out]
            older.left = [part for box in older.left for part in without(box, value.rect)]
        value.left = [value.rect]
        for bank in banks(value.rect):
            standing = self._standing.get(bank, ())
            self._standing[bank] = [*(v for v in standing if v.left), value]
        self.values.append(value)
        self.began[value.first] = value
        return value
