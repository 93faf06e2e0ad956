"""Which earlier instructions an instruction must come after, by the bytes they share.

One sweep in program order. What was touched is kept as rectangles in cells of each plane (2 KiB of
bytes; in DRAM 128 rows of them), so that an access looks only at what lies near it and the whole
sweep is linear. A write forgets what it covers: whoever comes later meets the write instead, and
finds the older access behind it. Simplified: what a write covers only in part stays whole, so that
an edge may name somebody whose bytes are gone. The write in between then has edges to both, so such
an edge orders nothing new and costs no wait.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from ncc.ir.bir import Module, with_insts
from ncc.ir.bir_change import with_deps
from ncc.ir.core import unchanged
from ncc.ir.footprints import DRAM, FLAT, Access, Places, Rect, runs_meet

# rank of a kind of edge: the stronger one stays where a pair has two reasons
STRENGTH = {"Ordered": 1, "Anti": 2, "Output": 3, "Flow": 4}

Entry = tuple[Rect, int]  # what of an access lies in a cell, and whose it is
Cell = tuple[int, int, int]
Parts = tuple[tuple[Cell, Rect], ...]


class Cells:
    """The cells that rectangles lie in, each with its part; those of a rectangle are kept."""

    def __init__(self, places: Places) -> None:
        self.places = places
        self._known: dict[Rect, Parts] = {}

    def of(self, rects: Sequence[Rect]) -> Iterator[tuple[Cell, Rect]]:
        known = self._known
        for rect in rects:
            parts = known.get(rect)
            if parts is None:
                parts = known[rect] = tuple(self._parts(rect))
            yield from parts

    def _parts(self, rect: Rect) -> Iterator[tuple[Cell, Rect]]:
        plane, r0, r1, c0, c1, runs = rect
        rows, columns = 128, 2048
        if plane >= DRAM and self.places.pitches[plane] == FLAT:
            columns = 1 << 16
        for row in range(r0 // rows, (r1 - 1) // rows + 1):
            top, bottom = max(r0, row * rows), min(r1, row * rows + rows)
            for column in range(c0 // columns, (c1 - 1) // columns + 1):
                left, right = max(c0, column * columns), min(c1, column * columns + columns)
                yield (plane, row, column), Rect(plane, top, bottom, left, right, runs)


def _readers(entries: Sequence[Entry], rect: Rect, found: dict[int, str], me: int) -> None:
    """Note in `found` everybody in a cell who read a byte of `rect`, unless they wrote one too."""
    _, r0, r1, c0, c1, runs = rect
    for other, who in entries:
        _, top, bottom, left, right, holes = other
        if top < r1 and r0 < bottom and left < c1 and c0 < right and who != me:
            if (runs is not None or holes is not None) and not runs_meet(runs, holes, rect, other):
                continue
            found.setdefault(who, "Anti")  # an Output of the same pair is stronger


def _reaching(
    entries: Sequence[Entry], rect: Rect, found: dict[int, str], kind: str, me: int
) -> None:
    """Note in `found` the writers whose bytes `rect` meets, the latest first: behind a write that
    covers all of it no older one is left to meet, and that write came after them itself."""
    _, r0, r1, c0, c1, runs = rect
    for other, who in reversed(entries):
        _, top, bottom, left, right, holes = other
        if top < r1 and r0 < bottom and left < c1 and c0 < right:
            if (runs is not None or holes is not None) and not runs_meet(runs, holes, rect, other):
                continue
            if who != me:
                found[who] = kind
            if holes is None and top <= r0 and r1 <= bottom and left <= c0 and c1 <= right:
                return


def _left(entries: Sequence[Entry], rect: Rect) -> list[Entry]:
    """What of a cell a write does not cover."""
    _, r0, r1, c0, c1, runs = rect
    if runs is not None:
        return list(entries)
    return [
        entry
        for entry in entries
        if entry[0][1] < r0 or entry[0][2] > r1 or entry[0][3] < c0 or entry[0][4] > c1
    ]


def flows(accesses: Sequence[Access], places: Places) -> list[dict[int, str]]:
    """For each instruction the earlier ones whose bytes it reads: reaching definitions."""
    cells = Cells(places)
    writers: dict[Cell, list[Entry]] = {}
    result: list[dict[int, str]] = []
    for me, (reads, writes) in enumerate(accesses):
        found: dict[int, str] = {}
        for cell, part in cells.of(reads):
            if entries := writers.get(cell):
                _reaching(entries, part, found, "Flow", me)
        for cell, part in cells.of(writes):
            kept = _left(writers.get(cell, ()), part)
            kept.append((part, me))
            writers[cell] = kept
        result.append(found)
    return result


def clashes(accesses: Sequence[Access], places: Places) -> list[dict[int, str]]:
    """For each instruction the earlier ones that read (Anti) or wrote (Output) what it writes."""
    cells = Cells(places)
    readers: dict[Cell, list[Entry]] = {}
    writers: dict[Cell, list[Entry]] = {}
    result: list[dict[int, str]] = []
    for me, (reads, writes) in enumerate(accesses):
        found: dict[int, str] = {}
        for cell, part in cells.of(writes):
            older = writers.get(cell, ())
            _reaching(older, part, found, "Output", me)
            kept = _left(older, part)
            kept.append((part, me))
            writers[cell] = kept
            if seen := readers.get(cell):
                _readers(seen, part, found, me)
                readers[cell] = _left(seen, part)
        for cell, part in cells.of(reads):
            if seen := readers.get(cell):
                seen.append((part, me))
            else:
                readers[cell] = [(part, me)]
        result.append(found)
    return result


def with_edges(
    module: Module, found: Sequence[dict[int, str]], kept: Collection[str], by: str
) -> Module:
    """The module with the edges `found`, and of those it has the ones of a kind in `kept`."""
    insts = module.main.blocks[0].insts
    number = {inst.name: n for n, inst in enumerate(insts)}
    names = [inst.name for inst in insts]
    new = list(insts)
    for n, inst in enumerate(insts):
        if not inst.deps and not found[n]:
            continue
        old = {number[name]: kind for name, kind in inst.deps if kind in kept}
        deps = tuple([(names[who], kind) for who, kind in merged(old, found[n])])
        if deps != inst.deps:
            new[n] = with_deps(inst, deps, by)
    return module if unchanged(new, insts) else with_insts(module, tuple(new))


def merged(one: dict[int, str], other: dict[int, str]) -> list[tuple[int, str]]:
    """Both sets of edges, one kind a pair, the strongest; in program order."""
    if other:
        one = dict(one)
        for who, kind in other.items():
            if STRENGTH[kind] > STRENGTH.get(one.get(who, ""), 0):
                one[who] = kind
    return sorted(one.items()) if len(one) > 1 else list(one.items())
