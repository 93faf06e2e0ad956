"""DVE over a whole row: batch statistics and the eight largest (ISA reference 5.19, 5.20)."""

from __future__ import annotations

import numpy as np

from ncc import numerics
from ncc.encode.values import bits_f32
from ncc.errors import NccError
from ncc.sim.engine import Engine, Fields, flat
from ncc.sim.memory import Array, Marks
from ncc.sim.vector import into, read
from ncc.sim.views import View

EIGHT = 8


def _rows(known: Marks | None, places: int) -> Marks | None:
    """One mark a row, for results that a whole row decides."""
    if known is None:
        return None
    row = np.logical_and.reduce(flat(known), axis=1)
    return np.repeat(row[:, None], places, axis=1)


def _places(to: View, count: int) -> None:
    found = to.array.size // to.array.shape[0]
    if found != count:
        raise NccError("NCC912", f"writes {count} elements a row to {found} places")


def batch_stats(e: Engine, f: Fields) -> None:
    """(count, mean, count · variance) of the elements at even places, then of those at odd ones."""
    source, (to, dtype) = read(e, f), into(e, f)
    _places(to, 6)
    x = flat(source.array).astype(np.float64)
    out = np.zeros((x.shape[0], 6), np.float64)
    for half in range(2):
        part = x[:, half::2]
        if part.shape[1]:
            with np.errstate(all="ignore"):
                mean = part.mean(axis=1)
                spread = ((part - mean[:, None]) ** 2).sum(axis=1)
            out[:, 3 * half] = part.shape[1]
            out[:, 3 * half + 1], out[:, 3 * half + 2] = mean, spread
    e.put(to, out.astype(np.float32), dtype, _rows(e.marks(source), 6))


def batch_aggregate(e: Engine, f: Fields) -> None:
    """Groups of (count, mean, count · variance) as one mean and one population variance."""
    source, (to, dtype) = read(e, f), into(e, f)
    _places(to, 2)
    x = flat(source.array).astype(np.float64)
    if x.shape[1] % 3:
        raise NccError("NCC912", f"{x.shape[1]} elements are not whole groups of 3")
    groups = x.reshape(x.shape[0], -1, 3)
    count, mean, spread = groups[..., 0], groups[..., 1], groups[..., 2]
    with np.errstate(all="ignore"):
        total = count.sum(axis=1)
        middle = (count * mean).sum(axis=1) / total
        variance = (
            spread.sum(axis=1) + (count * (mean - middle[:, None]) ** 2).sum(axis=1)
        ) / total
    out = np.stack([middle, variance], axis=1).astype(np.float32)
    e.put(to, out, dtype, _rows(e.marks(source), 2))


def largest(e: Engine, f: Fields) -> None:
    """The eight largest of a row. The unit writes from lane 7 down, the smallest of them first."""
    source, (to, dtype) = read(e, f), into(e, f)
    _places(to, EIGHT)
    x = flat(numerics.widen(source.array))
    if not EIGHT <= x.shape[1] <= 16384:
        raise NccError("NCC912", f"takes 8 to 16384 elements a row, and has {x.shape[1]}")
    e.put(to, np.sort(x, axis=1)[:, -EIGHT:], dtype, _rows(e.marks(source), EIGHT))


def load_values(e: Engine, f: Fields) -> None:
    """Latches eight values a row; the stream runs from lane 7 down."""
    source = read(e, f)
    x = flat(numerics.widen(source.array))
    if x.shape[1] != EIGHT:
        raise NccError("NCC912", f"latches 8 values, and was given {x.shape[1]}")
    known = e.marks(source)
    e.searched = (x[:, ::-1].copy(), None if known is None else flat(known)[:, ::-1].copy())


def _positions(e: Engine, x: Array) -> tuple[Array, Marks | None]:
    """For each latched value the index of its next occurrence, −1 where there is none."""
    if e.searched is None:
        raise NccError("NCC912", "no values were latched")
    values, known = e.searched
    rows = x.shape[0]
    if values.shape[0] < rows:
        raise NccError("NCC912", f"values of {values.shape[0]} rows for {rows}")
    found = np.full((rows, EIGHT), -1, np.int64)
    free = np.ones(x.shape, np.bool_)
    lanes = np.arange(rows, dtype=np.int64)
    for i in range(EIGHT):
        hit = (x == values[:rows, i : i + 1]) & free
        at = hit.argmax(axis=1)
        some = hit.any(axis=1)
        found[some, i] = at[some]
        free[lanes[some], at[some]] = False
    return found, known


def _found_marks(mine: Marks | None, latched: Marks | None, rows: int) -> Marks | None:
    if mine is None and latched is None:
        return None
    a = np.ones((rows, EIGHT), np.bool_) if mine is None else mine
    return a if latched is None else a & latched[:rows]


def find_index(e: Engine, f: Fields) -> None:
    """The first index of each latched value; equal values take successive ones."""
    source, (to, dtype) = read(e, f), into(e, f)
    _places(to, EIGHT)
    found, latched = _positions(e, flat(numerics.widen(source.array)))
    if dtype not in ("uint16", "uint32"):
        raise NccError("NCC912", f"indices are uint16 or uint32, not {dtype}")
    known = _found_marks(_rows(e.marks(source), EIGHT), latched, found.shape[0])
    absent = np.iinfo(to.array.dtype).max
    e.put(to, np.where(found < 0, absent, found), dtype, known)


def match_replace(e: Engine, f: Fields) -> None:
    """A copy with the first occurrence of each latched value replaced."""
    source, (to, dtype) = read(e, f), into(e, f)
    x = flat(numerics.widen(source.array))
    _places(to, x.shape[1])
    found, latched = _positions(e, x)
    y = x.copy()
    there = np.nonzero(found >= 0)
    y[there[0], found[there]] = bits_f32(f.get("replacement", 0))
    known = e.marks(source)
    if latched is not None:
        known = _rows(latched[: x.shape[0]], x.shape[1]) if known is None else known
    e.put(to, y, dtype, known)


EFFECTS = {
    "BatchNormStats": batch_stats,
    "BatchNormStats2": batch_stats,
    "BatchNormAggregate": batch_aggregate,
    "Max8": largest,
    "MatchValueLoad": load_values,
    "FindIndex8": find_index,
    "MatchReplace8": match_replace,
}
