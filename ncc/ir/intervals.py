"""Time in a line of instructions: a position is the moment, a live range is closed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

from ncc.ir.bir import Ap, Function, Inst, Loc, LocSet, Module, with_sets
from ncc.ir.bir_loops import lives
from ncc.ir.locations import with_locs

Span = tuple[int, int]


def spans(insts: Sequence[Inst]) -> dict[str, Span]:
    """The first and the last instruction that touches each location."""
    first: dict[str, int] = {}
    last: dict[str, int] = {}
    for at, inst in enumerate(insts):
        for x in inst.outs:
            if type(x) is Ap:
                last[x.loc] = at
                if x.loc not in first:
                    first[x.loc] = at
        for x in inst.ins:
            if type(x) is Ap:
                last[x.loc] = at
                if x.loc not in first:
                    first[x.loc] = at
    return {name: (first[name], at) for name, at in last.items()}


def has_life(owner: LocSet, loc: Loc) -> bool:
    """Whether a location comes into being and goes: on chip, and scratch in DRAM."""
    return not loc.runtime_reserved and (loc.type != "DRAM" or owner.kind == "Internal")


def with_live(func: Function) -> tuple[LocSet, ...]:
    """The function's sets with `Loc.live` as its instructions have it."""
    sets, found = func.sets, lives(func).spans
    changed: dict[str, Loc] = {}
    for owner in sets:
        for loc in owner.locs:
            live = found.get(loc.name) if has_life(owner, loc) else None
            if live != loc.live:
                changed[loc.name] = attrs.evolve(loc, live=live)
    return with_locs(sets, changed)


def measured(module: Module) -> Module:
    """The module with the live ranges that its instructions have."""
    return with_sets(module, with_live(module.main))


def peak(weighted: Iterable[tuple[int, int, int]]) -> tuple[int, int]:
    """The largest sum of weights live at one moment of (first, last, weight), and that moment."""
    steps: dict[int, int] = {}
    for first, last, weight in weighted:
        steps[first] = steps.get(first, 0) + weight
        steps[last + 1] = steps.get(last + 1, 0) - weight
    most = now = when = 0
    for at in sorted(steps):
        now += steps[at]
        if now > most:
            most, when = now, at
    return most, when


def first_gap(taken: Iterable[Span], size: int, align: int, limit: int) -> int | None:
    """The lowest aligned start of `size` free units below `limit`; `taken` holds (start, end)."""
    at = 0
    for start, end in sorted(taken):
        if start - at >= size:
            break
        if end > at:
            at = -(-end // align) * align
    return at if at + size <= limit else None


def last_gap(taken: Iterable[Span], size: int, align: int, limit: int) -> int | None:
    """The highest such start."""
    top = limit
    for start, end in sorted(taken, key=lambda span: (-span[1], -span[0])):
        at = (top - size) // align * align
        if at >= end:
            return at
        top = min(top, start)
    at = (top - size) // align * align
    return at if at >= 0 else None


def best_gap(taken: Iterable[Span], size: int, align: int, limit: int) -> tuple[int, int] | None:
    """(waste, start): the aligned start in the smallest gap that fits, of equal ones the lowest."""
    best: tuple[int, int] | None = None
    low = 0
    for start, end in (*sorted(taken), (limit, limit)):
        at = -(-low // align) * align
        left = min(start, limit) - at - size
        if left >= 0 and (best is None or left < best[0]):
            best = left, at
        low = max(low, end)
    return best
