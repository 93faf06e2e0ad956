"""Which earlier instructions an instruction must come after, by the bytes they share.

One sweep in program order. What was touched is kept as rectangles in cells of each plane (2 KiB of
bytes; in DRAM 128 rows of them), so that an access looks only at what lies near it and the whole
sweep is linear. A write forgets what it covers: whoever comes later meets the write instead, and
finds the older access behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncc.ir.footprints import DRAM, FLAT, Access, Places, Rect, runs_meet

# rank of a kind of edge: the stronger one stays where a pair has two reasons
STRENGTH = {"Ordered": 1, "Anti": 2, "Output": 3, "Flow": 4}

Entry = tuple[Rect, int]  # what of an access lies in a cell, and whose it is
Cell = tuple[int, int, int]


def _cells(rect: Rect, places: Places) -> Iterator[tuple[Cell, Rect]]:
    """The cells that a rectangle lies in, each with its part."""
    plane, r0, r1, c0, c1, runs = rect
    rows, columns = 128, 2048
    if plane >= DRAM and places.pitches[plane] == FLAT:
        columns = 1 << 16
    if r1 <= rows and c0 // columns == (c1 - 1) // columns:
        yield (plane, 0, c0 // columns), rect
        return
    for row in range(r0 // rows, (r1 - 1) // rows + 1):
        top, bottom = max(r0, row * rows), min(r1, row * rows + rows)
        for column in range(c0 // columns, (c1 - 1) // columns + 1):
            left, right = max(c0, column * columns), min(c1, column * columns + columns)
            part = Rect(plane, top, bottom, left, right, runs)
            yield (plane, row, column), part


def _touching(entries: list[Entry], rect: Rect, found: dict[int, str], kind: str, me: int) -> None:
    """Note in `found` everybody in a cell who has a byte in common with `rect`."""
    _, r0, r1, c0, c1, runs = rect
    for other, who in entries:
        if (
            who != me
            and other[1] < r1
            and r0 < other[2]
            and other[3] < c1
            and c0 < other[4]
            and ((runs is None and other[5] is None) or runs_meet(runs, other[5], rect, other))
            and STRENGTH[kind] > STRENGTH.get(found.get(who, ""), 0)
        ):
            found[who] = kind


def _left(entries: list[Entry], rect: Rect) -> list[Entry]:
    """What of a cell a write does not cover."""
    _, r0, r1, c0, c1, runs = rect
    if runs is not None or not entries:
        return entries
    return [
        entry
        for entry in entries
        if entry[0][1] < r0 or entry[0][2] > r1 or entry[0][3] < c0 or entry[0][4] > c1
    ]


def flows(accesses: Sequence[Access], places: Places) -> list[dict[int, str]]:
    """For each instruction the earlier ones whose bytes it reads: reaching definitions."""
    writers: dict[Cell, list[Entry]] = {}
    result: list[dict[int, str]] = []
    for me, (reads, writes) in enumerate(accesses):
        found: dict[int, str] = {}
        for rect in reads:
            for cell, part in _cells(rect, places):
                if entries := writers.get(cell):
                    _touching(entries, part, found, "Flow", me)
        for rect in writes:
            for cell, part in _cells(rect, places):
                kept = _left(writers.get(cell, []), part)
                kept.append((part, me))
                writers[cell] = kept
        result.append(found)
    return result


def clashes(accesses: Sequence[Access], places: Places) -> list[dict[int, str]]:
    """For each instruction the earlier ones that read (Anti) or wrote (Output) what it writes."""
    readers: dict[Cell, list[Entry]] = {}
    writers: dict[Cell, list[Entry]] = {}
    result: list[dict[int, str]] = []
    for me, (reads, writes) in enumerate(accesses):
        found: dict[int, str] = {}
        for rect in writes:
            for cell, part in _cells(rect, places):
                older = writers.get(cell, [])
                _touching(older, part, found, "Output", me)
                kept = _left(older, part)
                kept.append((part, me))
                writers[cell] = kept
                if seen := readers.get(cell):
                    _touching(seen, part, found, "Anti", me)
                    readers[cell] = _left(seen, part)
        for rect in reads:
            for cell, part in _cells(rect, places):
                readers.setdefault(cell, []).append((part, me))
        result.append(found)
    return result


def merged(*edges: dict[int, str]) -> list[tuple[int, str]]:
    """One kind a pair, the strongest; in program order."""
    one = dict(edges[0])
    for more in edges[1:]:
        for who, kind in more.items():
            if STRENGTH[kind] > STRENGTH.get(one.get(who, ""), 0):
                one[who] = kind
    return sorted(one.items())
