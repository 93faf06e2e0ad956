"""Which earlier instructions an instruction must come after, by the bytes they share.

One sweep in program order. What was touched is kept as rectangles in cells of each plane (2 KiB of
bytes; in DRAM 128 rows of them), so that an access looks only at what lies near it and the whole
sweep is linear. A write forgets what it covers: whoever comes later meets the write instead, and
finds the older access behind it. Simplified: what a write covers only in part stays whole (unless
many have read it), so that an edge may name somebody whose bytes are gone. The write in between
then has edges to both, so such an edge orders nothing new and costs no wait.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

from ncc.ir.bir import Module, with_insts
from ncc.ir.bir_change import with_deps
from ncc.ir.bir_loops import line
from ncc.ir.core import unchanged
from ncc.ir.footprints import (
    DRAM,
    FLAT,
    Access,
    Footprints,
    Holes,
    Places,
    Rect,
    runs_meet,
    same_bytes,
)
from ncc.ir.recent import Recent

MANY = 16  # readers of the same bytes, from which on it pays to cut off what is written over
# rank of a kind of edge: the stronger one stays where a pair has two reasons
STRENGTH = {"Ordered": 1, "Anti": 2, "Output": 3, "Flow": 4}

Found = list[dict[int, str]]
# the verifier asks for what the pass has just found
_flows, _clashes = Recent[Found](), Recent[Found]()

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


class Layer:
    """What of one kind of access lies in a cell: whose it is, by the bytes, the latest last."""

    __slots__ = ("all", "found")

    def __init__(self, all: bool = False) -> None:
        self.all = all  # everybody counts, not only the last of the same bytes
        self.found: dict[Any, tuple[Rect, list[int]]] = {}

    def add(self, rect: Rect, me: int) -> None:
        """One more access beside those of the same bytes."""
        key = _bytes(rect, me)
        if entry := self.found.get(key):
            entry[1].append(me)
        else:
            self.found[key] = rect, [me]

    def put(self, rect: Rect, me: int) -> None:
        """One access instead of all that it hides."""
        self.hide(rect)
        self.found[_bytes(rect, me)] = rect, [me]

    def hide(self, rect: Rect) -> None:
        """Forget what lies behind a write."""
        found = self.found
        _, r0, r1, c0, c1, runs = rect
        if runs is not None:
            found.pop(_bytes(rect, -1), None)
            return
        met = {
            key: _left(entry[0], rect, len(entry[1]) > MANY)
            for key, entry in found.items()
            if entry[0][1] < r1 and r0 < entry[0][2] and entry[0][3] < c1 and c0 < entry[0][4]
        }
        if not met:
            return
        if all(not left or left[0] is found[key][0] for key, left in met.items()):
            for key, left in met.items():
                if not left:
                    del found[key]
            return
        self.found = {}
        for key, (other, whose) in found.items():
            if key not in met:
                self._keep(key, other, whose)
            for strip in met.get(key, ()):
                self._keep(key if strip is other else _bytes(strip, whose[-1]), strip, whose)

    def _keep(self, key: Any, rect: Rect, whose: list[int]) -> None:
        """An entry in its order; of two of the same bytes the later write hides the other."""
        old = self.found.pop(key, None)
        if old and self.all:
            whose = sorted({*old[1], *whose})
        self.found[key] = rect, whose


def _left(other: Rect, rect: Rect, cut: bool) -> tuple[Rect, ...]:
    """What a write leaves of a rectangle: nothing where it covers it, else all; with `cut` what
    lies beside it, where it reaches across."""
    plane, top, bottom, left, right, holes = other
    _, r0, r1, c0, c1, _ = rect
    across, down = r0 <= top and bottom <= r1, c0 <= left and right <= c1
    if across and down:
        return ()
    if not cut or holes is not None or not (across or down):
        return (other,)
    found: list[Rect] = []
    if across:
        if left < c0:
            found.append(Rect(plane, top, bottom, left, c0))
        if c1 < right:
            found.append(Rect(plane, top, bottom, c1, right))
    else:
        if top < r0:
            found.append(Rect(plane, top, r0, left, right))
        if r1 < bottom:
            found.append(Rect(plane, r1, bottom, left, right))
    return tuple(found)


def _bytes(rect: Rect, me: int) -> Any:
    """What is equal for rectangles that are surely the same bytes."""
    runs = rect[5]
    if runs or runs is None:
        return rect
    return (rect, id(runs)) if type(runs) is Holes else (rect, -1, me)


def _readers(layer: Layer, rect: Rect, found: dict[int, str], me: int) -> None:
    """Note in `found` everybody in a cell who read a byte of `rect`, unless they wrote one too."""
    _, r0, r1, c0, c1, runs = rect
    for other, whose in layer.found.values():
        _, top, bottom, left, right, holes = other
        if top < r1 and r0 < bottom and left < c1 and c0 < right:
            if (runs is not None or holes is not None) and not runs_meet(runs, holes, rect, other):
                continue
            for who in whose:
                if who != me:
                    found.setdefault(who, "Anti")  # an Output of the same pair is stronger


def _reaching(layer: Layer, rect: Rect, found: dict[int, str], kind: str, me: int) -> None:
    """Note in `found` the writers whose bytes `rect` meets, the latest first: behind a write that
    covers all of it no older one is left to meet, and that write came after them itself."""
    _, r0, r1, c0, c1, runs = rect
    for other, (who,) in reversed(layer.found.values()):
        _, top, bottom, left, right, holes = other
        if top < r1 and r0 < bottom and left < c1 and c0 < right:
            if (runs is not None or holes is not None) and not runs_meet(runs, holes, rect, other):
                continue
            if who != me:
                found[who] = kind
            if holes is None and top <= r0 and r1 <= bottom and left <= c0 and c1 <= right:
                return
            if runs is not None and same_bytes(rect, other):
                return


def flows(accesses: Sequence[Access], places: Places) -> Found:
    """For each instruction the earlier ones whose bytes it reads: reaching definitions."""
    return _flows.get(accesses, lambda: _sweep_reads(accesses, places))


def clashes(accesses: Sequence[Access], places: Places) -> Found:
    """For each instruction the earlier ones that read (Anti) or wrote (Output) what it writes."""
    return _clashes.get(accesses, lambda: _sweep_writes(accesses, places))


def _sweep_reads(accesses: Sequence[Access], places: Places) -> Found:
    cells = Cells(places)
    writers: dict[Cell, Layer] = {}
    result: Found = []
    for me, (reads, writes) in enumerate(accesses):
        found: dict[int, str] = {}
        for cell, part in cells.of(reads):
            if layer := writers.get(cell):
                _reaching(layer, part, found, "Flow", me)
        for cell, part in cells.of(writes):
            layer = writers.get(cell)
            if layer is None:
                layer = writers[cell] = Layer()
            layer.put(part, me)
        result.append(found)
    return result


def _sweep_writes(accesses: Sequence[Access], places: Places) -> Found:
    cells = Cells(places)
    readers: dict[Cell, Layer] = {}
    writers: dict[Cell, Layer] = {}
    result: Found = []
    for me, (reads, writes) in enumerate(accesses):
        found: dict[int, str] = {}
        for cell, part in cells.of(writes):
            older = writers.get(cell)
            if older is None:
                older = writers[cell] = Layer()
            _reaching(older, part, found, "Output", me)
            older.put(part, me)
            if seen := readers.get(cell):
                _readers(seen, part, found, me)
                seen.hide(part)
        for cell, part in cells.of(reads):
            seen = readers.get(cell)
            if seen is None:
                seen = readers[cell] = Layer(all=True)
            seen.add(part, me)
        result.append(found)
    return result


def each_block(module: Module, find: Callable[[Sequence[Access], Places], Found]) -> Found:
    """What `find` says of each block, numbered along the line: at a border all engines meet."""
    footprints = Footprints(module)
    found: Found = []
    for block in module.main.blocks:
        start = len(found)
        mine = find(footprints.all(block.insts), footprints.places)
        found += [{who + start: kind for who, kind in x.items()} for x in mine] if start else mine
    return found


def with_edges(
    module: Module, found: Sequence[dict[int, str]], kept: Collection[str], by: str
) -> Module:
    """The module with the edges `found`, and of those it has the ones of a kind in `kept`."""
    insts = line(module.main)
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
