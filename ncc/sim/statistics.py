"""DVE over a whole row: batch statistics and the eight largest (ISA reference 5.19, 5.20)."""

from __future__ import annotations

import numpy as np

from ncc import numerics
from ncc import numerics_rows as rows_of
from ncc.encode.values import bits_f32
from ncc.errors import NccError
from ncc.sim.engine import Engine, Fields, flat
from ncc.sim.memory import Array, Marks
from ncc.sim.vector import into, read
from ncc.sim.views import View

EIGHT = rows_of.EIGHT


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
    out = rows_of.bn_stats(flat(source.array))
    e.put(to, out, dtype, _rows(e.marks(source), 6))


def batch_aggregate(e: Engine, f: Fields) -> None:
    """Groups of (count, mean, count · variance) as one mean and one population variance."""
    source, (to, dtype) = read(e, f), into(e, f)
    _places(to, 2)
    x = flat(source.array)
    if x.shape[1] % 3:
        raise NccError("NCC912", f"{x.shape[1]} elements are not whole groups of 3")
    out = rows_of.bn_merge(x)
    e.put(to, out, dtype, _rows(e.marks(source), 2))


def largest(e: Engine, f: Fields) -> None:
    """The eight largest of a row. The unit writes from lane 7 down, the smallest of them first."""
    source, (to, dtype) = read(e, f), into(e, f)
    _places(to, EIGHT)
    x = flat(numerics.widen(source.array))
    if not EIGHT <= x.shape[1] <= 16384:
        raise NccError("NCC912", f"takes 8 to 16384 elements a row, and has {x.shape[1]}")
    e.put(to, rows_of.largest8(x)[:, ::-1], dtype, _rows(e.marks(source), EIGHT))


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
    found = rows_of.positions8(x, values)
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
    e.write(to, rows_of.indices8(found, to.array.dtype), known)


def match_replace(e: Engine, f: Fields) -> None:
    """A copy with the first occurrence of each latched value replaced."""
    source, (to, dtype) = read(e, f), into(e, f)
    x = flat(numerics.widen(source.array))
    _places(to, x.shape[1])
    found, latched = _positions(e, x)
    y = rows_of.replaced8(x, found, bits_f32(f.get("replacement", 0)))
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
