"""Calls that choose between two values, by a predicate, a range or an affine index."""

from __future__ import annotations

from typing import Any

from ncc.ir.kernel import Imm
from ncc.nki import operators
from ncc.nki.isa import constants as c
from ncc.nki.isa.calls import call, reduce_name
from ncc.nki.isa.operands import (
    SBUF,
    WIDE_INTS,
    Tile,
    column,
    dtypes,
    is_tensor,
    not_both_psum,
    number,
    record,
    register,
    same,
    scalar,
    since,
    tile,
    whole,
)
from ncc.nki.operators import COMPARE
from ncc.nki.trace import Instruction, invalid, wrong_shape, wrong_type

FP32_MIN = -3.4028234663852886e38
RANGES = COMPARE - {"not_equal"}
MAXIMUM = frozenset({"maximum"})
NARROW_INTS = frozenset({"int8", "uint8", "int16", "uint16"})
FLOATS = frozenset({"float32", "bfloat16", "float16", "float8e4", "float8e5", "float8_e4m3fn"})
MOST_INDEX = 1 << 24  # the index is a float32
Pattern = tuple[tuple[int, int], ...]


@call
def select_reduce(
    dst: Any,
    predicate: Any,
    on_true: Any,
    on_false: Any,
    reduce_res: Any = None,
    reduce_cmd: Any = c.reduce_cmd.idle,
    reduce_op: Any = "maximum",
    reverse_pred: bool = False,
    name: str | None = None,
) -> Instruction:
    """dst = on_true where the predicate is not 0, else on_false; reduce_res = its maximum."""
    where = "select_reduce"
    to, chosen = tile(dst, where, "dst"), tile(predicate, where, "predicate")
    data = tile(on_true, where, "on_true")
    dtypes(where, chosen, NARROW_INTS, "write the predicate into a uint8 tile")
    if data.dtype in WIDE_INTS or data.name == "tfloat32":
        said = f"{where} takes no {data.name} as on_true, {data.show()} is of that type"
        raise wrong_type("NCC338", said, "copy it into a float32 or 16-bit tile")
    same(where, to, chosen, data)
    not_both_psum(where, chosen, data)
    symbol = operators.optional(reduce_op, where, "reduce_op", MAXIMUM) or "maximum"
    result = None if reduce_res is None else tile(reduce_res, where, "reduce_res")
    column(where, result, data)
    args = {
        "dst": to,
        "reduce_res": result,
        "predicate": chosen,
        "on_true": data,
        "on_false": scalar(on_false, where, "on_false", data),
    }
    keys = {
        "reverse_pred": bool(reverse_pred),
        "reduce_op": symbol,
        "reduce_cmd": reduce_name(reduce_cmd, where),
    }
    return record(where, args, keys, name=name)


@call
def range_select(
    dst: Any,
    on_true_tile: Any,
    comp_op0: Any,
    comp_op1: Any,
    bound0: Any,
    bound1: Any,
    reduce_cmd: Any = c.reduce_cmd.reset_reduce,
    reduce_res: Any = None,
    reduce_op: Any = "maximum",
    range_start: Any = 0,
    on_false_value: Any = FP32_MIN,
    name: str | None = None,
) -> Instruction:
    """dst = on_true_tile where the free index (from range_start) is inside both bounds, else the
    least float32; reduce_res = its maximum."""
    where = "range_select"
    since(where, 3)
    to, data = tile(dst, where, "dst"), tile(on_true_tile, where, "on_true_tile")
    dtypes(where, data, FLOATS)
    dtypes(where, to, FLOATS)
    same(where, to, data)
    first = operators.symbol(comp_op0, where, "comp_op0", RANGES)
    second = operators.symbol(comp_op1, where, "comp_op1", RANGES)
    bounds = [_bound(where, bound0, "bound0", data), _bound(where, bound1, "bound1", data)]
    start = whole(range_start, where, "range_start", -MOST_INDEX, MOST_INDEX)
    if max(abs(start), abs(start + data.free)) >= MOST_INDEX:
        said = f"{where} counts in float32, up to 2^24; it was to reach {start + data.free}"
        raise invalid("NCC351", said, "shift the bounds instead")
    least = number(on_false_value, where, "on_false_value")
    if not -3.4028236e38 <= least <= -3.4028234e38:
        said = f"{where} takes only the least float32 as on_false_value, was given {least}"
        raise invalid("NCC345", said, "leave it out, or pass nl.fp32.min")
    symbol = operators.optional(reduce_op, where, "reduce_op", MAXIMUM) or "maximum"
    result = None if reduce_res is None else tile(reduce_res, where, "reduce_res")
    column(where, result, data)
    args = {
        "dst": to,
        "reduce_res": result,
        "on_true_tile": data,
        "bound0": bounds[0],
        "bound1": bounds[1],
    }
    keys = {
        "comp_op0": first,
        "comp_op1": second,
        "range_start": start,
        "reduce_op": symbol,
        "reduce_cmd": reduce_name(reduce_cmd, where),
    }
    return record(where, args, keys, name=name)


def _bound(where: str, value: Any, role: str, like: Tile) -> Tile:
    """A bound is a float32 column."""
    if not is_tensor(value):
        said = f"{where} takes {role} as a float32 column (P, 1), was given {value!r}"
        raise wrong_type("NCC346", said, "memset a column with it")
    found = scalar(value, where, role, like)
    assert isinstance(found, Tile)
    dtypes(where, found, frozenset({"float32"}), "allocate the column as nl.float32")
    return found


def pattern_of(where: str, given: Any, *tiles: Tile) -> Pattern:
    """`[[step, num], ...]`, whose counts multiply to the elements of a partition (NCC351)."""
    try:
        pairs = [tuple(pair) for pair in given]
    except TypeError:
        pairs = []
    if not pairs or any(len(pair) != 2 for pair in pairs):
        said = f"{where} takes pattern as [[step, num], ...], was given {given!r:.60}"
        raise invalid("NCC351", said, "one pair for each free dimension, the outermost first")
    if len(pairs) > 4:
        said = f"{where} takes at most 4 pairs in pattern, was given {len(pairs)}"
        raise invalid("NCC351", said, "merge pairs that continue each other")
    found = tuple(
        (whole(step, where, "a step of pattern"), whole(num, where, "a count of pattern", 1))
        for step, num in pairs
    )
    count = 1
    for _, num in found:
        count *= num
    for one in tiles:
        if one.free != count:
            raise wrong_shape(
                "NCC334",
                f"{where}: pattern {show(found)} walks {count} elements a partition, {one.show()}"
                f" has {one.free}",
                "make the counts of pattern multiply to the elements of a partition",
            )
    return found


def show(pattern: Pattern) -> str:
    return str([list(pair) for pair in pattern])


@call
def affine_select(
    dst: Any,
    pattern: Any,
    channel_multiplier: Any,
    on_true_tile: Any,
    on_false_value: Any,
    cmp_op: Any = "equal",
    offset: Any = 0,
    name: str | None = None,
) -> Instruction:
    """With v = offset + partition × channel_multiplier + Σ index × step of pattern:
    dst = on_true_tile where cmp_op(v, 0), else on_false_value."""
    where = "affine_select"
    if is_tensor(on_false_value) and not is_tensor(on_true_tile):
        # an earlier release had offset as third argument
        offset, channel_multiplier, on_true_tile, on_false_value, cmp_op = (
            channel_multiplier,
            on_true_tile,
            on_false_value,
            cmp_op if not callable(cmp_op) and not isinstance(cmp_op, str) else offset,
            offset if callable(offset) else "equal",
        )
    to, data = tile(dst, where, "dst", SBUF), tile(on_true_tile, where, "on_true_tile", SBUF)
    same(where, to, data)
    pairs = pattern_of(where, pattern, to)
    keys = {
        "pattern": pairs,
        "channel_multiplier": whole(channel_multiplier, where, "channel_multiplier"),
        "offset": whole(offset, where, "offset"),
        "cmp_op": operators.symbol(cmp_op, where, "cmp_op", COMPARE),
        "on_false_value": float(number(on_false_value, where, "on_false_value")),
    }
    return record(where, {"dst": to, "on_true_tile": data}, keys, name=name)


@call
def iota(
    dst: Any, pattern: Any, offset: Any = 0, channel_multiplier: Any = 0, name: str | None = None
) -> Instruction:
    """dst = offset + partition × channel_multiplier + Σ index × step of pattern, as int32."""
    where = "iota"
    to = tile(dst, where, "dst", SBUF)
    pairs = pattern_of(where, pattern, to)
    start = register(offset)
    if start is None:
        value = whole(offset, where, "offset")
        begin = Imm(value) if value else None
    else:
        begin = start
    keys = {
        "pattern": pairs,
        "channel_multiplier": whole(channel_multiplier, where, "channel_multiplier"),
    }
    return record(where, {"dst": to, "offset": begin}, keys, name=name)
