"""Kernels' values by position, statistics, searches and random numbers."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from ncc.ir.bir import Imm, Operand
from ncc.ir.data import FLOATS
from ncc.ir.kernel import Access, Reg
from ncc.ir.kernel_walks import Walk
from ncc.ir.lower.act import constant, finish, whole
from ncc.ir.lower.dma import move, scratch
from ncc.ir.lower.indirect import exact
from ncc.ir.lower.moving import column_of
from ncc.ir.lower.vector import alu, scalars
from ncc.ir.walks import collapsed

if TYPE_CHECKING:
    from ncc.ir.lower.kernel import Lowering

# a comparison with 0 that the record lacks is its mirror image of the negative value
MIRROR = {"is_lt": "is_gt", "is_le": "is_ge"}
STEP = 0x7FFF
CORE = 16  # partitions that one core of Pool works on


def pattern_of(m: Lowering, places: int) -> list[tuple[int, int]]:
    pairs = [(int(step), int(num)) for step, num in m.key("pattern")]
    if prod(num for _, num in pairs) != places:
        said = f"counts {prod(num for _, num in pairs)} values for {places} elements a partition"
        raise m.refuse(said)
    return collapsed(pairs) or [(0, 1)]


def in_row(m: Lowering, dst: Walk, free: int) -> Walk:
    """Where Pool writes: the destination, if it is in SBUF and its record can hold it."""
    pairs = collapsed(dst.free)
    if dst.memory == "SB" and len(pairs) <= free and all(abs(s) <= STEP for s, _ in pairs):
        return dst
    return m.temp(dst)


def start(m: Lowering, arg: Any, value: int) -> int:
    """Where the values begin: a number while the kernel is traced."""
    if arg is None:
        return value
    found = m.number(arg)
    if found is None:
        raise m.dynamic(f"{m.op.op} begins at a register", m.op.origin)
    return found


def iota(m: Lowering) -> None:
    dst, begin = m.walk("dst"), m.op.arg("offset")
    own = None
    if isinstance(begin, Reg) and m.number(begin) is None:
        own = column_of(m, begin, dst.rows, "int32")
    if own is None:
        count(m, dst, start(m, begin, 0))
        return
    held = m.temp(dst, "int32")  # counted from 0, then moved by what the register holds
    count(m, held, 0)
    by = m.same_quadrant(held, own)
    exact(m, held, held, by.with_free(((0, dst.count),)), "add")
    m.copy(dst, held)


def count(m: Lowering, dst: Walk, base: int) -> None:
    """dst = base + the pattern's values."""
    pairs = pattern_of(m, dst.count)
    out = in_row(m, dst, 4)
    keys: dict[str, Any] = {"channel_multiplier": int(m.key("channel_multiplier"))}
    for part, first, size in _tables(m, pairs):
        piece = out if size == dst.count else _slice(m, out, first, size)
        m.emit("Iota", "Pool", (piece.ap(),), base=base + part[0], pattern=part[1], **keys)
    finish(m, out, dst)


def _slice(m: Lowering, out: Walk, first: int, size: int) -> Walk:
    """Elements `first` on of a destination that is one row."""
    pairs = collapsed(out.free)
    if len(pairs) > 1:
        raise m.refuse("has a pattern with more jumps than a record holds")
    return out.with_free(((pairs[0][0], size),), first * pairs[0][0])


def _tables(
    m: Lowering, pairs: list[tuple[int, int]]
) -> list[tuple[tuple[int, tuple[tuple[int, int], ...]], int, int]]:
    """A pattern in pieces of at most four pairs of 16-bit steps: (base, pairs), first, count."""
    if len(pairs) <= 4 and all(abs(s) <= STEP and n <= 0xFFFF for s, n in pairs):
        return [((0, tuple(pairs)), 0, prod(n for _, n in pairs))]
    (step, num), *rest = pairs
    size = prod(n for _, n in rest)
    if num > 4096:
        raise m.refuse(f"has a pattern with {num} steps of {step}")
    found: list[tuple[tuple[int, tuple[tuple[int, int], ...]], int, int]] = []
    for i in range(num):
        for (base, inner), first, count in _tables(m, rest or [(0, 1)]):
            found.append(((base + i * step, inner), first + i * size, count))
    return found


def affine_select(m: Lowering) -> None:
    data, dst = m.walk("on_true_tile"), m.walk("dst")
    base = start(m, m.op.arg("offset"), int(m.key("offset")))
    pairs = pattern_of(m, dst.count)
    across, compare = int(m.key("channel_multiplier")), alu(m, m.key("cmp_op"))
    if compare in MIRROR:
        base, across, compare = -base, -across, MIRROR[compare]
        pairs = [(-step, num) for step, num in pairs]
    out = in_row(m, dst, 2)
    if data.memory != "SB" or len(collapsed(data.free)) > 2:
        data = m.compact(data)
    data = whole(m, data, 2)
    fill = m.op.arg("on_false_value")
    value = m.key("on_false_value") if fill is None else getattr(fill, "value", None)
    if value is None:
        raise m.refuse("fills with a tensor")
    for part, first, size in _tables(m, pairs):
        to, source = out, data
        if size != dst.count:
            to, source = _slice(m, out, first, size), _slice(m, data, first, size)
        m.emit(
            "TensorScalarAffineSelect",
            "Pool",
            (to.ap(),),
            (source.ap(),),
            base=base + part[0],
            pattern=part[1],
            channel_multiplier=across,
            compare_op=compare,
            fill_value=float(value),
        )
    finish(m, out, dst)


# --- whole rows -----------------------------------------------------------------------------------


def row_op(
    m: Lowering,
    opcode: str,
    engine: str,
    dst: Walk,
    srcs: list[Walk],
    more: tuple[Operand, ...] = (),
    free: int = 4,
    out_free: int = 2,
    **keys: Any,
) -> None:
    """One instruction over whole rows, its operands made such as a record takes."""
    reads = [whole(m, m.narrow(x), free).ap() for x in srcs]
    out = narrow_result(m, dst, out_free)
    m.emit(opcode, engine, (out.ap(),), (*reads, *more), **keys)
    finish(m, out, dst)


def narrow_result(m: Lowering, dst: Walk, free: int) -> Walk:
    pairs = collapsed(dst.free)
    if len(pairs) > free or m.wants(dst) != dst.dtype:
        return m.temp(dst)
    return dst


def bn_stats(m: Lowering) -> None:
    row_op(m, "BNStats", "DVE", m.walk("dst"), [m.walk("data")])


def bn_aggr(m: Lowering) -> None:
    row_op(m, "BNStatsAggregate", "DVE", m.walk("dst"), [m.walk("data")])


def max8(m: Lowering) -> None:
    row_op(m, "Max", "DVE", m.walk("dst"), [m.walk("src")])


def nc_find_index8(m: Lowering) -> None:
    data, vals = m.walk("data"), m.walk("vals")
    row_op(m, "MaxIndex", "DVE", m.walk("dst"), [data, whole(m, vals, 2)])


def nc_match_replace8(m: Lowering) -> None:
    data, vals, dst = m.walk("data"), m.walk("vals"), m.walk("dst")
    places = m.maybe("dst_idx")
    imm = m.op.arg("imm")
    by = m.key("imm") if imm is None else getattr(imm, "value", 0.0)
    keys: dict[str, Any] = {"imm_value": float(by)}
    vals = whole(m, vals, 2)
    if places is None:
        row_op(m, "MatchReplace", "DVE", dst, [data, vals], out_free=4, **keys)
        return
    data, vals = (whole(m, m.narrow(x), 4) for x in (data, vals))
    out, at = narrow_result(m, dst, 4), narrow_result(m, places, 2)
    reads = (data.ap(), vals.ap())
    if m.target.level < 30:
        from ncc.ir.lower.first import places8

        places8(m, data, vals, at)
        m.emit("MatchReplace", "DVE", (out.ap(),), reads, **keys)
    else:
        m.emit("MaxIndexAndMatchReplace", "DVE", (out.ap(), at.ap()), reads, **keys)
    finish(m, out, dst)
    finish(m, at, places)


def sequence_bounds(m: Lowering) -> None:
    dst, ids = m.walk("dst"), m.walk("segment_ids")
    out = in_row(m, dst, 4)
    if ids.memory != "SB":
        ids = m.compact(ids)
    m.emit("GetSequenceBounds", "Pool", (out.ap(),), (whole(m, ids, 4).ap(),))
    finish(m, out, dst)


def nonzero_with_count(m: Lowering) -> None:
    dst, src = m.walk("dst"), m.walk("src")
    keys = {"index_offset": int(m.key("index_offset")), "padding_val": int(m.key("padding_val"))}
    if src.memory != "SB":
        src = m.compact(src)
    out = in_row(m, dst, 3)
    if out is not dst:
        m.copy(out, dst)
    m.emit("NonzeroWithCount", "Pool", (out.ap(),), (whole(m, src, 3).ap(),), **keys)
    finish(m, out, dst)


def topk(m: Lowering) -> None:
    src, values, places = m.walk("src"), m.walk("val_dst"), m.walk("idx_dst")
    keys: dict[str, Any] = {"opFunctionName": "topk", "is_builtin": True}
    keys["arguments"] = (int(m.key("n")), values.count)
    if values.rows >= CORE:
        m.emit("CustomOp", "Pool", (values.ap(), places.ap()), (src.ap(),), **keys)
        return
    # one partition wants the snake of 16 in a line: through HBM
    columns = -(-values.count // CORE)
    snakes = [m.tile(CORE, (columns,), m.wants(x)) for x in (values, places)]
    for one in snakes:
        m.memset(one, 0)
    m.emit("CustomOp", "Pool", [x.ap() for x in snakes], (src.ap(),), **keys)
    for snake, to in zip(snakes, (values, places), strict=True):
        line = scratch(m, (columns * CORE,), snake.dtype)
        move(m, line.with_free(((1, CORE), (CORE, columns))), snake)
        held = to if to.memory == "SB" else m.temp(to)
        move(m, held, line.with_free(((1, to.count),)))
        finish(m, held, to)


# --- random numbers -------------------------------------------------------------------------------


def dropout(m: Lowering) -> None:
    data, dst = m.walk("data"), m.walk("dst")
    chance = m.scalar("prob", dst.rows)
    assert chance is not None
    row_op(m, "Dropout", "DVE", dst, [data], (chance,), free=3, out_free=3)


def uniform(m: Lowering, like: Walk) -> Walk:
    """Random float32 numbers in [0, 1): the upper 24 bits of random words."""
    drawn, high = m.temp(like, "uint32"), m.temp(like, "uint32")
    m.emit("Rng", m.engine("DVE", like), (drawn.ap(),))
    keys: dict[str, Any] = {"op0": "logical_shift_right", "const0": 8}
    m.emit("TensorScalar", "DVE", (high.ap(),), (drawn.ap(),), **keys)
    found = m.temp(like, "float32")
    keys = {"op0": "mult", "const0": 2.0**-24}
    m.emit("TensorScalar", "DVE", (found.ap(),), (high.ap(),), **keys)
    return found


def rand2(m: Lowering) -> None:
    """Uniform numbers from min to max."""
    dst = m.walk("dst")
    low, high = m.scalar("min", dst.rows), m.scalar("max", dst.rows)
    low, high = low or Imm(0.0), high or Imm(1.0)
    if isinstance(low, Imm) and isinstance(high, Imm):
        span: Operand = Imm(_fp32(_fp32(high.value) - _fp32(low.value)))
    else:
        top, bottom = (column(m, x, dst.rows) for x in (high, low))
        held = m.tile(dst.rows, (1,), "float32")
        m.emit("TensorTensor", "DVE", (held.ap(),), (top, bottom), op="subtract")
        span = held.ap()
    stages: list[tuple[str, Operand, bool]] = [("mult", span, False), ("add", low, False)]
    scalars(m, "DVE", dst, uniform(m, dst), stages)


def column(m: Lowering, scalar: Operand, rows: int) -> Operand:
    return constant(m, rows, float(scalar.value)) if isinstance(scalar, Imm) else scalar


def _fp32(value: float) -> float:
    import numpy as np

    return float(np.float32(value))


def rng(m: Lowering) -> None:
    dst = m.walk("dst")
    if m.wants(dst) in FLOATS:
        finish(m, uniform(m, dst), dst)
        return
    out = narrow_result(m, dst, 4)
    m.emit("Rng", m.engine("DVE", dst), (out.ap(),))
    finish(m, out, dst)


def seeds(m: Lowering) -> None:
    """A seed is that of both generators, unless the call names an engine."""
    seed = m.op.op == "set_rng_seed"
    every = ("Pool", "DVE") if seed else ("Pool",)
    engines = {"vector": ("DVE",), "gpsimd": ("Pool",)}.get(m.op.engine, every)
    for engine in engines:
        m.emit("SetRandState" if seed else "RandSetState", engine, (), (m.walk("src_seeds").ap(),))


def rand_get_state(m: Lowering) -> None:
    engine = {"vector": "DVE", "gpsimd": "Pool"}.get(m.op.engine, "Pool")
    m.emit("RandGetState", engine, (m.walk("dst").ap(),))


# --- what leaves no trace in one core's stream ----------------------------------------------------


def device_print(m: Lowering) -> None:
    """Prints are the simulator's."""
    arg = m.op.arg("tensor")
    if isinstance(arg, Access) and arg.moves:
        m.walked(arg)


LOWER = {
    "iota": iota,
    "affine_select": affine_select,
    "bn_stats": bn_stats,
    "bn_aggr": bn_aggr,
    "max8": max8,
    "nc_find_index8": nc_find_index8,
    "nc_match_replace8": nc_match_replace8,
    "sequence_bounds": sequence_bounds,
    "nonzero_with_count": nonzero_with_count,
    "topk": topk,
    "dropout": dropout,
    "rng": rng,
    "rand2": rand2,
    "set_rng_seed": seeds,
    "rand_set_state": seeds,
    "rand_get_state": rand_get_state,
    "device_print": device_print,
}
