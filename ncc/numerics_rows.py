"""What engines compute along a row: running values, scans, statistics, the eight largest.

Arrays are [rows, elements]; values are float32 unless a line says otherwise. One definition for the
NKI interpreter, the BIR interpreter and the machine (ISA reference 5.9 to 5.11, 5.15 to 5.20).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ncc import numerics
from ncc.numerics import F32, Array

EIGHT = 8
I64 = NDArray[np.int64]

# What an accumulator holds before its first element, by the operation that folds into it
IDENTITY = {
    "add": 0.0,
    "subtract": 0.0,
    "mult": 1.0,
    "max": -np.inf,
    "min": np.inf,
    "abs_max": 0.0,
    "abs_min": np.inf,
}


def affine(base: int, dims: tuple[tuple[int, int], ...], rows: int, multiplier: int) -> I64:
    """base + Σ index · step + row · multiplier; `dims` are (step, num), slowest first."""
    walk = np.full((), base, np.int64)
    for step, num in dims:
        walk = np.add.outer(walk, np.arange(num, dtype=np.int64) * step)
    lanes = np.arange(rows, dtype=np.int64) * multiplier
    return np.add.outer(lanes, walk.reshape(-1))


def folded(op: str, x: Array, before: Array) -> F32:
    """One value a row: `before` folded with all elements; a sum in float64, rounded once."""
    rows = x.shape[0]
    first = np.broadcast_to(np.asarray(before, np.float32).reshape(-1, 1), (rows, 1))
    steps = np.concatenate([first, numerics.widen(x).reshape(rows, -1)], axis=1)
    return numerics.reduce(op, steps, (1,))


_ACCUMULATE = {"add": np.add, "mult": np.multiply, "max": np.maximum, "min": np.minimum}


def running(op: str, steps: Array, swapped: bool = False) -> F32:
    """The running value along each row from its first element on, rounded at every step.

    A step is `carried op element`, or `element op carried` when swapped.
    """
    x = numerics.widen(steps)
    with np.errstate(all="ignore"):
        if op in _ACCUMULATE and not (op in ("max", "min") and np.isnan(x).any()):
            return _ACCUMULATE[op].accumulate(x, axis=1, dtype=np.float32)
        columns = np.ascontiguousarray(x.T)
        out = np.empty_like(columns)
        out[0] = columns[0]
        f = numerics.ALU[op]
        for i in range(1, columns.shape[0]):
            out[i] = f(columns[i], out[i - 1]) if swapped else f(out[i - 1], columns[i])
        return np.ascontiguousarray(out.T)


def scan(
    op0: str,
    op1: str,
    x: Array,
    y: Array,
    first: Array,
    swapped0: bool = False,
    swapped1: bool = False,
) -> F32:
    """r = (r op0 x[i]) op1 y[i] for every i, from `first`, one value a row; r is kept in float32.

    `swapped0` computes `x[i] op0 r`, `swapped1` puts y[i] first.
    """
    a, b = np.ascontiguousarray(numerics.widen(x).T), np.ascontiguousarray(numerics.widen(y).T)
    out = np.empty(a.shape, np.float32)
    f, g = numerics.ALU[op0], numerics.ALU[op1]
    carried = np.broadcast_to(np.asarray(first, np.float32).reshape(-1), (a.shape[1],))
    with np.errstate(all="ignore"):
        for i in range(a.shape[0]):
            t = f(a[i], carried) if swapped0 else f(carried, a[i])
            t = t if t.dtype == np.float32 else t.astype(np.float32)
            out[i] = g(b[i], t) if swapped1 else g(t, b[i])
            carried = out[i]
    return np.ascontiguousarray(out.T)


def bn_stats(x: Array) -> F32:
    """[rows, 6]: (count, mean, count · variance) of elements at even places, then at odd ones."""
    wide = x.astype(np.float64)
    out = np.zeros((wide.shape[0], 6), np.float64)
    with np.errstate(all="ignore"):
        for half in range(2):
            part = wide[:, half::2]
            if part.shape[1]:
                mean = part.mean(axis=1)
                out[:, 3 * half] = part.shape[1]
                out[:, 3 * half + 1] = mean
                out[:, 3 * half + 2] = ((part - mean[:, None]) ** 2).sum(axis=1)
        return out.astype(np.float32)


def bn_merge(x: Array) -> F32:
    """[rows, 2]: mean and population variance of groups of (count, mean, count · variance)."""
    groups = x.astype(np.float64).reshape(x.shape[0], -1, 3)
    count, mean, spread = groups[..., 0], groups[..., 1], groups[..., 2]
    with np.errstate(all="ignore"):
        total = count.sum(axis=1)
        middle = (count * mean).sum(axis=1) / total
        apart = (count * (mean - middle[:, None]) ** 2).sum(axis=1)
        variance = (spread.sum(axis=1) + apart) / total
        return np.stack([middle, variance], axis=1).astype(np.float32)


def largest8(x: Array) -> F32:
    """The eight largest of each row, the largest first; equal ones stand as often as they occur."""
    return np.sort(numerics.widen(x), axis=1)[:, : -EIGHT - 1 : -1]


def positions8(x: Array, values: Array, downward: bool = False) -> I64:
    """[rows, 8]: where each of eight values occurs first, −1 where it does not.

    An occurrence is given out once: of equal values the slot that is served first has the first.
    Slots are served from 0 up, or from 7 down.
    """
    x, values = numerics.widen(x), numerics.widen(values)
    rows = x.shape[0]
    found = np.full((rows, EIGHT), -1, np.int64)
    lanes = np.arange(rows, dtype=np.int64)
    taken: list[I64] = []
    for i in reversed(range(EIGHT)) if downward else range(EIGHT):
        hit = x == values[:rows, i : i + 1]
        for before in taken:
            hit[lanes, before] &= before < 0
        at = hit.argmax(axis=1)
        found[:, i] = np.where(hit[lanes, at], at, -1)
        taken.append(found[:, i])
    return found


def replaced8(x: Array, found: I64, by: float) -> F32:
    """A copy of each row with the elements at `found` replaced."""
    out = numerics.widen(x).copy()
    row, slot = np.nonzero(found >= 0)
    out[row, found[row, slot]] = by
    return out


def indices8(found: I64, kind: np.dtype[np.generic]) -> Array:
    """Positions as unsigned integers; a missing one is all ones."""
    return found.astype(kind)
