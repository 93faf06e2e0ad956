"""DVE and Pool by position or condition: Iota, selects, predicated copies, quadrants.

ISA reference 5.7, 5.10 and 5.15 to 5.18.
"""

from __future__ import annotations

import numpy as np

from ncc import numerics
from ncc import numerics_rows as rows_of
from ncc.encode.values import bits_f32
from ncc.errors import NccError
from ncc.ir.data import numpy_type
from ncc.ir.isa import At
from ncc.sim.act import element_bits, merged_marks
from ncc.sim.engine import Engine, Fields, Scalar, flat, together
from ncc.sim.memory import Array, Marks
from ncc.sim.vector import arith, into, read, stage

FILL = {0: "is_gt", 1: "is_ge", 2: "is_equal", 3: "not_equal"}  # fill_mode
QUADRANT = 32


def _affine(f: Fields, rows: int) -> Array:
    """base + Σ i·step + row · multiplier, as int64 [rows, elements]."""
    base, dims = f["pattern"]
    return rows_of.affine(base, tuple(reversed(dims)), rows, f.get("channel_multiplier", 0))


def iota(e: Engine, f: Fields) -> None:
    to, dtype = into(e, f)
    values = _affine(f, to.array.shape[0]).astype(np.uint32).view(np.int32)
    if values.size != to.array.size:
        raise NccError("NCC912", f"counts {values.size} values for {to.array.size} places")
    e.put(to, values, dtype)


def affine_select(e: Engine, f: Fields) -> None:
    """src where the affine value compares so with 0, else the fill register."""
    source, (to, dtype) = read(e, f), into(e, f)
    x, _ = together(source, to)
    rows = x.shape[0]
    where = _affine(f, rows)
    if where.size != x.size:
        raise NccError("NCC912", f"counts {where.size} positions for {x.size} elements")
    fill = np.asarray(bits_f32(e.register(f.get("fill_reg", 0))), np.float32)
    keep = numerics.ALU[FILL[f.get("fill_mode", 0) & 3]](where, np.int64(0) * where) != 0
    own = x if x.dtype == numpy_type(dtype) else numerics.cast(numerics.widen(x), dtype)
    y = np.where(keep, flat(own), numerics.cast(fill.reshape(1), dtype))
    known = e.marks(source)
    e.write(to, y, None if known is None else flat(known) | ~keep)


def range_select(e: Engine, f: Fields) -> None:
    """src where the element's index lies within two bounds of its row, else −FLT_MAX."""
    rows = f.get("nchan", 0)
    source, (to, dtype) = read(e, f), into(e, f)
    bounds = [e.scalar(f.get(f"bound{i}", 0), f.get(f"bound{i}_src", 0), rows) for i in range(2)]
    x, _ = together(source, to)
    count = x.size // rows
    index = np.float32(bits_f32(f.get("base", 0))) + np.arange(count, dtype=np.float32)
    keep = np.ones((rows, count), np.bool_)
    for i, bound in enumerate(bounds):
        keep &= stage(arith(f.get(f"comp_op{i}", 0)), index[None, :], bound.value, False) != 0
    y = np.where(keep, flat(numerics.widen(x)), np.float32(bits_f32(f.get("fill", 0))))
    known = merged_marks(e.marks(source), count, *bounds)
    if (command := f.get("reduce_cmd", 0)) in (2, 3):
        _running_max(e, command, y, known)
    e.put(to, y, dtype, known)


def _running_max(e: Engine, command: int, y: Array, known: Marks | None) -> None:
    rows = y.shape[0]
    first = e.sums[:rows] if command == 2 else np.full(rows, numerics.FP32_MIN, np.float32)
    written = np.ones(rows, np.bool_) if known is None else np.logical_and.reduce(known, axis=1)
    e.sums_known[:rows] = written & e.sums_known[:rows] if command == 2 else written
    e.sums[:rows] = rows_of.folded("max", y, first)


def _predicate(e: Engine, f: Fields, name: str, tag: str) -> tuple[Array, Marks | None]:
    """Where a predicate of integers is not zero; unwritten ones are an error, as they choose."""
    found = read(e, f, name, tag)
    if found.array.dtype.kind not in "iu":
        raise NccError("NCC912", "a predicate holds integers")
    if e.marks(found) is not None:
        raise NccError("NCC903", "a predicate that nobody wrote chooses")
    return flat(found.array) != 0, None


def copy_predicated(e: Engine, f: Fields) -> None:
    """The destination takes the data where the predicate is not zero, and stays elsewhere."""
    choose, _ = _predicate(e, f, "src0", "src0_dtype")
    data, (to, dtype) = read(e, f, "src1", "src1_dtype"), into(e, f)
    x, old = together(data, to)
    if choose.size != x.size:
        raise NccError("NCC912", f"{choose.size} predicates for {x.size} elements")
    y = flat(x) if x.dtype == numpy_type(dtype) else numerics.cast(numerics.widen(flat(x)), dtype)
    known = _either(choose, e.marks(data), None if to.written(e.mem) else to.element_marks())
    e.write(to, np.where(choose, y, flat(old)), known)


def _either(choose: Array, yes: Marks | None, no: Marks | None) -> Marks | None:
    if yes is None and no is None:
        return None
    full = np.ones(choose.shape, np.bool_)
    a = full if yes is None else yes.reshape(choose.shape)
    b = full if no is None else no.reshape(choose.shape)
    return np.where(choose, a, b)


def copy_predicated_scalar(e: Engine, f: Fields) -> None:
    """One value where the predicate is zero (or is not, when reversed)."""
    choose, _ = _predicate(e, f, "predicate", "pred_dtype")
    to, dtype = into(e, f)
    rows = to.array.shape[0]
    if choose.size != to.array.size:
        raise NccError("NCC912", f"{choose.size} predicates for {to.array.size} elements")
    choose = choose if f.get("reversed_pred", 0) else ~choose
    how, raw = f.get("imm_src", 0), f.get("imm", 0)
    one = (
        e.scalar(raw, 1, rows, dtype)
        if how == 1
        else Scalar(element_bits(e.register(raw) if how == 2 else raw, dtype), None)
    )
    old = flat(to.array)
    y = np.where(choose, np.broadcast_to(one.value.reshape(-1, 1), old.shape), old)
    fresh = merged_marks(None, old.shape[1], one)
    known = _either(choose, fresh, None if to.written(e.mem) else to.element_marks())
    e.write(to, y, known)


def select_reduce(e: Engine, f: Fields) -> None:
    """src1 where the predicate holds, else the scalar; the largest feeds the accumulator."""
    choose, _ = _predicate(e, f, "src0", "src0_dtype")
    choose = ~choose if f.get("reverse", 0) & 1 else choose
    data = read(e, f, "src1", "src1_dtype")
    rows = f.get("nchan", 0)
    other = e.scalar(f.get("imm0", 0), f.get("imm0_src", 0), rows)
    to, dtype = into(e, f)
    x, _ = together(data, to)
    if choose.size != x.size:
        raise NccError("NCC912", f"{choose.size} predicates for {x.size} elements")
    y = np.where(choose, flat(numerics.widen(x)), numerics.widen(other.value))
    known = _either(choose, e.marks(data), merged_marks(None, choose.shape[1], other))
    if (command := f.get("accumulator_cmd", 0)) in (2, 3):
        _running_max(e, command, y, known)
    e.put(to, y, dtype, known)


# --- quadrants ------------------------------------------------------------------------------------


def _quadrants(x: Array) -> Array:
    """[quadrants, 32, elements] of a tile; its rows are a multiple of 32."""
    if x.shape[0] % QUADRANT:
        raise NccError("NCC912", f"{x.shape[0]} partitions are not whole quadrants of 32")
    return x.reshape(-1, QUADRANT, x.shape[1])


def _same(e: Engine, f: Fields) -> None:
    if e.dtype(f.get("in_dtype", 0)) != e.dtype(f.get("out_dtype", 0)) or f.get("mask_enable", 0):
        raise NccError("NCC912", "moves bits of one dtype, without a mask")


def stream_transpose(e: Engine, f: Fields) -> None:
    """Each block of 32 partitions × 32 consecutive elements, transposed where it stands."""
    _same(e, f)
    source, (to, _) = read(e, f), into(e, f)
    x, _ = together(source, to)
    known = e.marks(source)

    def turn(a: Array) -> Array:
        blocks = _quadrants(flat(a))
        if blocks.shape[2] % QUADRANT:
            raise NccError("NCC912", f"{blocks.shape[2]} elements are not whole blocks of 32")
        four = blocks.reshape(blocks.shape[0], QUADRANT, -1, QUADRANT).swapaxes(1, 3)
        return four.reshape(flat(a).shape)

    e.write(to, turn(x), None if known is None else turn(known))


def load_mask(e: Engine, f: Fields) -> None:
    e.lanes = f.get("mask", bytes(QUADRANT))


def stream_shuffle(e: Engine, f: Fields) -> None:
    """Partition 32q + j takes partition 32q + lane[j] of the source; a lane with bit 20 leaves its
    partition as it is. Of the source only the partitions that lanes name are read."""
    _same(e, f)
    if not e.lanes:
        raise NccError("NCC919", "no shuffle mask was loaded")
    if any(lane & 0x1F != lane & 0xDF for lane in e.lanes):
        raise NccError("NCC919", "a shuffle lane is above 31")
    to, _ = into(e, f)
    count, at, tag = f.get("nchan", 0), f["src"], e.dtype(f.get("in_dtype", 0))
    old, marks = flat(to.array), to.element_marks().reshape(to.array.shape[0], -1)
    new, known = old.copy(), marks.copy()
    for top in range(0, count, QUADRANT):
        taken = [(j, x) for j, x in enumerate(e.lanes[: count - top]) if not x & 0x20]
        if not taken:
            continue
        used = max(x for _, x in taken) + 1
        start = At(at.space, at.partition + top, at.byte, at.dims)
        source = e.source(start, used, tag)
        x, own = flat(source.array), source.element_marks().reshape(used, -1)
        if x.shape[1] != new.shape[1]:
            raise NccError("NCC912", f"the patterns hold {x.shape[1]}, {new.shape[1]} elements")
        for j, lane in taken:
            new[top + j], known[top + j] = x[lane], own[lane]
    e.write(to, new, None if known.all() else known)


EFFECTS = {
    "Iota": iota,
    "AffineSelect": affine_select,
    "RangeSelect": range_select,
    "CopyPredicated": copy_predicated,
    "CastPredicated": copy_predicated,
    "CopyPredicatedScalar": copy_predicated_scalar,
    "SelectReduce": select_reduce,
    "StreamTranspose": stream_transpose,
    "LoadMaskSelect": load_mask,
    "StreamShuffle": stream_shuffle,
}
