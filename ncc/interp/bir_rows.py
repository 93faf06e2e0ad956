"""Opcodes over whole rows: folds, running values, statistics, selections by place, searches."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np

from ncc import numerics, numerics_rows
from ncc.interp.bir_compute import accumulate, begun, stage
from ncc.interp.bir_memory import every
from ncc.interp.bir_values import (
    Array,
    Env,
    Meaning,
    column,
    fault,
    mark,
    mask_of,
    put,
    row_mask,
    rows,
)
from ncc.ir.bir import Inst
from ncc.ir.bir_opcodes import key
from ncc.ir.data import numpy_type

if TYPE_CHECKING:
    from ncc.interp.bir import Interpreter

INNER = {"X": 1, "XY": 2, "XYZ": 3, "XYZW": 4}


def tensor_reduce(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """Fold the innermost dimensions; `negate` after the fold."""
    axis, op = key(inst, "axis"), key(inst, "op")
    if axis in ("C", "XYZWC"):
        return across(m, inst, ins, out)
    x = ins[0].values
    axes = tuple(range(max(1, x.ndim - INNER[axis]), x.ndim))
    known = None
    if not m.memory.known(ins[0]):
        known = every(every(ins[0].shadow), axes).reshape(len(x), -1)
    if op in numerics.BITVEC:
        y = bit_fold(op, x, axes).reshape(out.values.shape)
        out.values[...] = y
        return mark(m, inst, out, known)
    y = numerics.reduce(op, x, axes)
    return put(m, inst, out, -y if key(inst, "negate") else y, known)


def bit_fold(op: str, x: Array, axes: tuple[int, ...]) -> Array:
    """A bit operation folded over the trailing axes, or over the first one."""
    if axes == (0,):
        return reduce(lambda a, b: numerics.bitvec(op, a, b), list(x))
    flat = x.reshape(*x.shape[: axes[0]], -1)
    return reduce(
        lambda a, b: numerics.bitvec(op, a, b), (flat[..., i] for i in range(flat.shape[-1]))
    )


def across(m: Interpreter, inst: Inst, ins: list[Any], out: Any) -> None:
    """A fold over the partitions; the destination has one."""
    op, x = key(inst, "op"), rows(ins[0])
    bits = None if m.memory.known(ins[0]) else ins[0].bits()
    if key(inst, "axis") == "XYZWC":
        x = x.reshape(-1, 1)
        bits = None if bits is None else bits.reshape(-1, 1)
    known = None if bits is None else every(bits, 0).reshape(1, -1)
    if op in numerics.BITVEC:
        out.values[...] = bit_fold(op, x, (0,)).reshape(out.values.shape)
        return mark(m, inst, out, known)
    y = numerics.reduce("add" if op == "average" else op, x, (0,))
    if op == "average":
        y = numerics.alu("mult", y, np.asarray(1 / len(x), np.float32))
    return put(m, inst, out, y.reshape(1, -1), known)


def pool(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """The largest or the average of the two innermost dimensions."""
    x = ins[0].values
    axes = tuple(range(max(1, x.ndim - 2), x.ndim))
    known = None
    if not m.memory.known(ins[0]):
        known = every(every(ins[0].shadow), axes).reshape(len(x), -1)
    most = key(inst, "func") == "Max"
    y = numerics.reduce("max" if most else "add", x, axes)
    if not most:
        count = int(np.prod([x.shape[a] for a in axes]))
        y = numerics.alu("mult", y, np.asarray(1 / count, np.float32))
    put(m, inst, out, y, known)


def cached(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """t = x op0 s, and its fold: the result is t, or every running value."""
    x, op, command = rows(ins[0]), key(inst, "op1"), key(inst, "acc")
    t = stage(key(inst, "op0"), numerics.widen(x), column(ins[1], len(x)), False)
    bits, seed = mask_of(m, x.shape, *ins[:2]), None
    if command == "LoadAccumulate":
        value = np.broadcast_to(column(ins[2], len(x)).reshape(-1), (len(x),))
        mask = mask_of(m, (len(x), 1), ins[2])
        seed = value, np.ones(len(x), np.bool_) if mask is None else mask[:, 0]
    if key(inst, "mode") == "Reduce":
        put(m, inst, out, t, bits)
        return accumulate(m, inst, command, op, t, bits, seed)
    start = begun(m, inst, command, op, len(x), seed)
    if start is None:
        raise fault(inst, "TensorScalarCache folds under no accumulator command")
    before, known = start
    steps = np.concatenate([before.reshape(-1, 1), t], axis=1)
    walk = numerics_rows.running(op, steps, swapped=True)
    if bits is not None or not known.all():
        own = np.ones(t.shape, np.bool_) if bits is None else bits
        ways = np.logical_and.accumulate(np.concatenate([known[:, None], own], axis=1), axis=1)
        bits, known = ways[:, 1:], ways[:, -1]
    m.set_sum(inst.engine, walk[:, -1], known)
    return put(m, inst, out, walk[:, 1:], bits)


# ---- statistics ---------------------------------------------------------------------------------


def bn_stats(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    mask = row_mask(m, out, ins[0])
    put(m, inst, out, numerics_rows.bn_stats(numerics.widen(rows(ins[0]))), mask)


def bn_merge(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    mask = row_mask(m, out, ins[0])
    put(m, inst, out, numerics_rows.bn_merge(numerics.widen(rows(ins[0]))), mask)


# ---- by place -----------------------------------------------------------------------------------


def affine(inst: Inst, count: int) -> Array:
    """The affine values of an instruction, [partitions, elements]."""
    pattern = tuple((int(step), int(num)) for step, num in key(inst, "pattern"))
    return numerics_rows.affine(key(inst, "base"), pattern, count, key(inst, "channel_multiplier"))


def iota(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    values = affine(inst, out.values.shape[0]).astype(np.uint32).view(np.int32)
    put(m, inst, out, values, None)


def affine_select(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """The source where the affine value compares so with 0, else the fill."""
    x = rows(ins[0])
    where = affine(inst, len(x))
    keep = numerics.ALU[key(inst, "compare_op")](where, np.zeros((), np.int64)) != 0
    bits = mask_of(m, x.shape, ins[0])
    fill = numerics.cast(np.asarray([key(inst, "fill_value")], np.float32), out.dtype)
    own = x if ins[0].dtype == out.dtype else numerics.cast(numerics.widen(x), out.dtype)
    out.values[...] = np.where(keep, own, fill).reshape(out.values.shape)
    mark(m, inst, out, None if bits is None else bits | ~keep)


def range_select(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """The source where the element's number lies within two bounds, else the fill."""
    x = numerics.widen(rows(ins[0]))
    first = int(key(inst, "base"))
    place = np.arange(first, first + x.shape[1], dtype=np.int64)[None, :]
    keep = np.ones(x.shape, np.bool_)
    for i in range(2):
        bound = column(ins[1 + i], len(x))
        keep &= numerics.alu(key(inst, f"compare_op{i}"), place, bound) != 0
    y = np.where(keep, x, np.float32(key(inst, "fill_value")))
    bits = mask_of(m, x.shape, *ins)
    put(m, inst, out, y, bits)
    accumulate(m, inst, key(inst, "reduce_cmd"), "max", y, bits, numerics.FP32_MIN)


# ---- searches -----------------------------------------------------------------------------------


def largest(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    put(m, inst, out, numerics_rows.largest8(rows(ins[0])), row_mask(m, out, ins[0]))


def max_index(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    found = numerics_rows.positions8(rows(ins[0]), rows(ins[1]))
    mask = row_mask(m, out, *ins)
    places = numerics_rows.indices8(found, numpy_type(out.dtype))
    out.values[...] = places.reshape(out.values.shape)
    mark(m, inst, out, mask)


def match_replace(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """Also MaxIndexAndMatchReplace, which writes the places too."""
    x = rows(ins[0])
    found = numerics_rows.positions8(x, rows(ins[1]), downward=True)
    mask = row_mask(m, out, *ins)
    y = numerics_rows.replaced8(x, found, float(key(inst, "imm_value")))
    if inst.opcode == "MaxIndexAndMatchReplace":
        second = m.memory.slot(inst.outs[1], env, inst)
        marks = row_mask(m, second, *ins)
        places = numerics_rows.indices8(found, numpy_type(second.dtype))
        second.values[...] = places.reshape(second.values.shape)
        mark(m, inst, second, marks)
    put(m, inst, out, y, mask)


MEANING: dict[str, Meaning] = {
    "TensorReduce": tensor_reduce,
    "Pool": pool,
    "TensorScalarCache": cached,
    "BNStats": bn_stats,
    "BNStatsAggregate": bn_merge,
    "Iota": iota,
    "TensorScalarAffineSelect": affine_select,
    "RangeSelect": range_select,
    "Max": largest,
    "MaxIndex": max_index,
    "MatchReplace": match_replace,
    "MaxIndexAndMatchReplace": match_replace,
}
