"""Which bytes an instruction of placed BIR reads and writes, as rectangles.

A rectangle is rows × bytes on a *plane*: SBUF and PSUM (rows are partitions), a DRAM tensor (its
rows), or the state that no address names. Two accesses to one byte are always on one plane. A
rectangle with holes knows its runs if they are few; only one without holes can hide an older one.
What is never written (inputs, constants) has no rectangles: nothing has to wait for it.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

from ncc.ir.bir import SHARED, Ap, Function, Inst, Loc, LocSet, Module, Operand
from ncc.ir.core import unchanged
from ncc.ir.data import size_of
from ncc.ir.indirect import INDIRECT, spread_all
from ncc.ir.recent import Recent
from ncc.target import BANK

SBUF, PSUM, HIDDEN, DRAM = 0, 1, 2, 3  # planes; DRAM tensors count up from the last
FEW = 32  # runs of one row that are worth knowing one by one
FLAT = 1 << 62  # the row length of DRAM that several locations share: one endless row
ACCUMULATORS = {"Activation": 0, "DVE": 1}  # rows of the hidden plane
TABLES = 2
GENERATORS = {"DVE": 3, "Pool": 4}  # of random numbers
DRAWS = frozenset(
    ("Rng", "Rand2", "Dropout", "SetRandState", "RandSetState", "GetRandState", "RandGetState")
)

COMMANDS = frozenset(("acc", "reduce_cmd", "accumulator_cmd"))  # keys that move an accumulator
READ_BACK = {
    "ActivationReadAccumulator": "Activation",
    "ReadActivationAccumulator": "Activation",
    "DveReadAccumulator": "DVE",
}


class Rect(NamedTuple):
    """Rows r0 to r1 and bytes c0 to c1 of a plane, ends not included."""

    plane: int
    r0: int
    r1: int
    c0: int
    c1: int
    runs: tuple[tuple[int, int], ...] | None = None  # None: no holes; (): holes that are not known


class Holes(tuple[tuple[int, int], ...]):
    """Holes that are not known one by one, `()`; of one pattern there is one, so that the same
    bytes are known again."""


_holes: dict[tuple[Any, ...], Holes] = {}


def same_bytes(a: Rect, b: Rect) -> bool:
    """Whether two rectangles are surely the same bytes, holes included."""
    if a[:5] != b[:5]:
        return False
    if a.runs or a.runs is None:
        return a.runs == b.runs
    return a.runs is b.runs and type(a.runs) is Holes


Rects = tuple[Rect, ...]
Operands = tuple[Operand, ...]


class Access(NamedTuple):
    """What one instruction touches."""

    reads: Rects
    writes: Rects


NOTHING = Access((), ())


def meets(a: Rect, b: Rect) -> bool:
    """Whether the two have a byte in common (yes, where the holes are not known)."""
    if a.plane != b.plane or a.r0 >= b.r1 or b.r0 >= a.r1 or a.c0 >= b.c1 or b.c0 >= a.c1:
        return False
    if a.runs is None and b.runs is None:
        return True
    return runs_meet(a.runs, b.runs, a, b)


def runs_meet(left: Any, right: Any, a: Rect, b: Rect) -> bool:
    """The same for two whose boxes meet and one of which has holes."""
    if left == () or right == ():
        return True
    mine = ((a.c0, a.c1),) if left is None else left
    other = ((b.c0, b.c1),) if right is None else right
    at = 0
    for low, high in mine:
        while at < len(other) and other[at][1] <= low:
            at += 1
        if at < len(other) and other[at][0] < high:
            return True
    return False


def covers(a: Rect, b: Rect) -> bool:
    """Whether `a` holds every byte of `b`."""
    return (
        a.runs is None
        and a.plane == b.plane
        and a.r0 <= b.r0
        and b.r1 <= a.r1
        and a.c0 <= b.c0
        and b.c1 <= a.c1
    )


class Places:
    """The planes of a function and where its locations stand on them."""

    def __init__(self, func: Function) -> None:
        self.found: dict[str, tuple[int, Loc, LocSet, int]] = {}
        self.pitches: dict[int, int] = {}
        self._known: dict[tuple[int, int], tuple[Operands, Operands, Rects, Rects]] = {}
        self.accesses: tuple[list[Any], list[Access]] = ([], [])  # of the last walk, and of what
        scratch: list[tuple[Loc, LocSet]] = []
        for owner in func.sets:
            for loc in owner.locs:
                if loc.type == "SB":
                    self.found[loc.name] = (SBUF, loc, owner, loc.dims[1])
                elif loc.type == "PSUM":
                    self.found[loc.name] = (PSUM, loc, owner, loc.dims[1])
                elif owner.kind in ("ExternalOutput", SHARED):
                    self._stand(loc, owner, _row(owner))
                elif owner.kind == "Internal":
                    scratch.append((loc, owner))
        self._share(scratch)

    def _stand(self, loc: Loc, owner: LocSet, pitch: int, plane: int = 0) -> int:
        plane = plane or DRAM + len(self.pitches)
        self.pitches[plane] = pitch
        self.found[loc.name] = (plane, loc, owner, pitch)
        return plane

    def _share(self, scratch: list[tuple[Loc, LocSet]]) -> None:
        """Scratch locations that share bytes share a plane, and then count bytes in one row."""
        scratch.sort(key=lambda pair: (pair[0].addr, pair[0].name))
        group: list[tuple[Loc, LocSet]] = []
        end = -1
        for loc, owner in [*scratch, (Loc("", "DRAM", (1, 0), addr=1 << 62), None)]:
            if (loc.addr >= end or not loc.allocated) and group:
                if len(group) == 1:
                    self._stand(*group[0], _row(group[0][1]))
                else:
                    plane = self._stand(*group[0], FLAT)
                    for member, its in group[1:]:
                        self._stand(member, its, FLAT, plane)
                group, end = [], -1
            if owner is not None:
                group.append((loc, owner))
            end = max(end, loc.addr + loc.dims[1])

    def rect(self, ap: Ap) -> Rect | None:
        """The rectangle of an access; None in DRAM that nothing writes."""
        place = self.found.get(ap.loc)
        if place is None:
            return None
        plane, loc, _, pitch = place
        size = size_of(ap.dtype)
        if plane >= DRAM:
            return _in_dram(plane, pitch, loc, ap, size)
        row, byte = divmod(ap.offset * size, pitch)
        pairs = ap.ap
        row += loc.base
        byte += loc.addr
        if len(pairs) == 2 and pairs[1][0] == 1:  # nearly every access
            return Rect(plane, row, row + pairs[0][1], byte, byte + pairs[1][1] * size)
        low, high, runs = _walk([p for p in pairs[1:] if p[1] > 1 and p[0]], byte, size)
        return Rect(plane, row, row + pairs[0][1], low, high, runs)

    def touched(self, inst: Inst) -> tuple[Rects, Rects]:
        """The rectangles of its operands, of `ins` and of `outs`.

        Passes keep the tuples of operands as they are, so that each is looked at once; those that
        are remembered are kept alive here, which keeps their identity theirs.
        """
        key = (id(inst.ins), id(inst.outs))
        if known := self._known.get(key):
            return known[2], known[3]
        if inst.opcode in INDIRECT:
            ins, outs = spread_all(inst)
            reads, holed = self._rects(ins), self._rects(outs)
            writes = tuple([rect._replace(runs=()) for rect in holed])
        else:
            reads, writes = self._rects(inst.ins), self._rects(inst.outs)
        self._known[key] = (inst.ins, inst.outs, reads, writes)
        return reads, writes

    def _rects(self, operands: Operands) -> Rects:
        found = [self.rect(x) for x in operands if type(x) is Ap]
        return tuple([rect for rect in found if rect is not None])


_places = Recent[Places]()


def places_of(func: Function) -> Places:
    """The places of a function; those of the last functions asked about are kept."""
    return _places.get(func.sets, lambda: Places(func))


def _row(owner: LocSet) -> int:
    return max(1, owner.shape[-1] if owner.shape else 1) * size_of(owner.dtype)


def _walk(
    pairs: list[tuple[int, int]], start: int, size: int
) -> tuple[int, int, tuple[tuple[int, int], ...] | None]:
    """First byte, end and holes of a walk over (step, num) pairs, steps in elements."""
    low = start + sum(min(0, step * (num - 1)) for step, num in pairs) * size
    pairs = sorted((abs(step) * size, num) for step, num in pairs)
    run, at = size, 0
    while at < len(pairs) and pairs[at][0] == run:
        run *= pairs[at][1]
        at += 1
    rest = pairs[at:]
    high = low + run + sum(step * (num - 1) for step, num in rest)
    if not rest:
        return low, high, None
    starts = [low]
    for step, num in rest:
        if len(starts) * num > FEW:
            return low, high, _holes.setdefault((size, *pairs), Holes())
        starts = [s + step * k for s in starts for k in range(num)]
    starts.sort()
    if any(b - a < run for a, b in pairwise(starts)):
        return low, high, ()
    return low, high, tuple((s, s + run) for s in starts)


def _in_dram(plane: int, pitch: int, loc: Loc, ap: Ap, size: int) -> Rect:
    start = ap.offset * size + (loc.addr if pitch == FLAT else 0)
    pairs = [(step, num) for step, num in ap.ap if num > 1 and step]
    if any(step < 0 for step, _ in pairs):
        low, high, _ = _walk(pairs, start, size)
        return Rect(plane, low // pitch, (high - 1) // pitch + 1, 0, pitch, ())
    inside = [pair for pair in pairs if pair[0] * size < pitch]
    across = sorted((step * size, num) for step, num in pairs if step * size >= pitch)
    low, high, runs = _walk(inside, start % pitch, size)
    if high > pitch and (runs is None and low == 0 and high % pitch == 0):
        rows, high = high // pitch, pitch
    elif high > pitch:  # a walk that crosses rows: whole rows, with holes
        rows, low, high, runs = (high - 1) // pitch + 1, 0, pitch, ()
    else:
        rows = 1
    first = start // pitch
    last = first + rows
    solid = True
    for step, num in across:
        solid = solid and step == rows * pitch
        rows *= num
        last += (step // pitch) * (num - 1) + (1 if step % pitch else 0)
        if step % pitch:  # rows of another length than the tensor's
            low, high, solid = 0, pitch, False
    return Rect(plane, first, last, low, high, runs if solid else ())


def key_of(inst: Inst, name: str, default: Any = None) -> Any:
    """The value of one key of an instruction."""
    for key, value in inst.keys:
        if key == name:
            return value
    return default


def adds(inst: Inst) -> bool:
    """Whether a matmul adds to its destination: its flags say so, or else `accumulate`."""
    flag = key_of(inst, "accumulation_flag")
    return not flag & 1 if flag else bool(key_of(inst, "accumulate", False))


def is_copying_transpose(inst: Inst, gen: int) -> bool:
    """A PE transpose that moves bits to its destination and touches nothing else (gen3 on)."""
    return gen > 2 and bool(key_of(inst, "is_transpose", False))


def group_code(start: int, size: int) -> int:
    """The code of array rows or columns from `start` (ISA reference 5.1); 0 if there is none."""
    if size <= 32:
        return {0: 1, 32: 2, 64: 4, 96: 8}.get(start, 0)
    if size <= 64:
        return {0: 0x3, 64: 0xC}.get(start, 0)
    return 0xF if start == 0 else 0


GROUP_SPAN = {
    **{1: (0, 32), 2: (32, 64), 4: (64, 96), 8: (96, 128)},
    **{0x3: (0, 64), 0xC: (64, 128), 0xF: (0, 128)},
}


def share_cells(a: tuple[int, int], b: tuple[int, int]) -> bool:
    """Whether two groups, as codes of rows and columns, share a cell; code 0 shares with all."""
    return all(
        GROUP_SPAN[x][0] < GROUP_SPAN[y][1] and GROUP_SPAN[y][0] < GROUP_SPAN[x][1]
        for x, y in zip(a, b, strict=True)
        if x and y
    )


def column_group(inst: Inst, dest: Rect) -> int:
    """The columns of the PE array that a matmul uses; a transpose always takes all of them."""
    if key_of(inst, "is_transpose", False):
        return 0xF if dest.r0 == 0 else 0
    return group_code(dest.r0, dest.r1 - dest.r0)


def window(inst: Inst, dest: Rect) -> Rect:
    """What a START of this matmul zeroes: the banks of its destination, on its column group."""
    r0, r1 = GROUP_SPAN.get(column_group(inst, dest), (dest.r0, dest.r1))
    low, high = dest.c0 // BANK * BANK, ((dest.c1 - 1) // BANK + 1) * BANK
    return Rect(PSUM, r0, r1, low, high)


class Footprints:
    """The accesses of every instruction of a straight-line module, in program order."""

    def __init__(self, module: Module) -> None:
        self.places = places_of(module.functions[0])
        self.gen = 2 if module.arch == "sunda" else 3

    def of(self, inst: Inst) -> Access:
        """What `inst` reads and writes."""
        if not inst.outs and not inst.ins:
            if inst.opcode == "LoadActFuncSet":
                return Access((), (Rect(HIDDEN, TABLES, TABLES + 1, 0, 1),))
            return NOTHING
        reads, writes = self.places.touched(inst)
        if inst.opcode == "Matmult":
            return self._matmul(inst, reads, writes)
        if inst.opcode in DRAWS or ("mode", "Random") in inst.keys:
            row = GENERATORS.get(inst.engine, 3)
            state = Rect(HIDDEN, row, row + 1, 0, 1)
            return Access((*reads, state), (*writes, state))
        if inst.engine == "Activation" or inst.engine == "DVE":
            more, state = self._state(inst)
            return Access((*reads, *more), (*writes, *state))
        return Access(reads, writes)

    def _matmul(self, inst: Inst, reads: Rects, writes: Rects) -> Access:
        if not writes or is_copying_transpose(inst, self.gen):
            return Access(reads, writes)
        if adds(inst):
            return Access((*reads, writes[0]), writes)
        if key_of(inst, "accumulation_flag"):
            return Access(reads, (window(inst, writes[0]),))
        return Access(reads, writes)

    def _state(self, inst: Inst) -> tuple[list[Rect], list[Rect]]:
        """Accumulators and tables: locations that no address names."""
        opcode = inst.opcode
        if opcode in READ_BACK:
            row = ACCUMULATORS[READ_BACK[opcode]]
            return [Rect(HIDDEN, row, row + 1, 0, 1)], []
        reads: list[Rect] = []
        writes: list[Rect] = []
        for key, value in inst.keys:
            if key in COMMANDS and value != "Idle":
                row = ACCUMULATORS[inst.engine]
                writes.append(Rect(HIDDEN, row, row + 1, 0, 1))
                if value in ("AddAccumulate", "Accumulate"):
                    reads += writes
        if opcode == "Activation":
            reads.append(Rect(HIDDEN, TABLES, TABLES + 1, 0, 1))
        return reads, writes

    def all(self, insts: tuple[Inst, ...]) -> list[Access]:
        """The accesses in program order: the very list of the last time, where edges and waits are
        all that changed since."""
        read: list[Any] = [self.gen]
        for inst in insts:
            read += (inst.opcode, inst.engine, inst.ins, inst.outs, inst.keys)
        known, accesses = self.places.accesses
        if not unchanged(read, known):
            of = self.of
            accesses = [of(inst) for inst in insts]
            self.places.accesses = read, accesses
        return accesses
