"""The records of DVE and Pool over whole rows: folds, statistics, searches (ISA reference 5.9,
5.11, 5.19, 5.20)."""

from __future__ import annotations

from math import prod

from ncc.encode.operands import dtype_of, number_bits
from ncc.encode.record_parts import (
    Context,
    Encoder,
    Record,
    command,
    fields,
    is_bitwise,
    moved,
    operation,
    refusal,
)
from ncc.ir.bir import Inst
from ncc.ir.bir_opcodes import key
from ncc.ir.data import size_of
from ncc.ir.isa import At

AXES = {"X": 2, "XY": 3, "XYZ": 4, "XYZW": 5}
LANES = {"add": 0, "average": 1, "max": 2, "bitwise_or": 3, "bitwise_and": 4, "bitwise_xor": 5}
FIRST_BITS = LANES["bitwise_or"]


def tensor_reduce(ctx: Context, inst: Inst) -> list[Record]:
    axis = str(key(inst, "axis"))
    if axis in ("C", "XYZWC"):
        return across(ctx, inst, int(axis == "C"))
    op = operation(inst, "op")
    if axis not in AXES or key(inst, "apply_transpose"):
        raise refusal(inst, f"reduces {axis}, which has no record")
    src = ctx.operands.tensor(inst, inst.ins[0])
    dst = ctx.operands.tensor(inst, inst.outs[0])
    made = fields(
        src=ctx.operands.unfused(inst, inst.ins[0]),
        dst=dst.at,
        in_dtype=src.tag,
        out_dtype=dst.tag,
        nchan=src.channels,
        op=op,
        op_dim=AXES[axis],
        negated=int(key(inst, "negate")),
    )
    return [("TensorReduceBitvec" if is_bitwise(op) else "TensorReduce", made)]


def across(ctx: Context, inst: Inst, axis: int) -> list[Record]:
    """A fold over partitions has operations of its own numbers."""
    op = str(key(inst, "op"))
    if op not in LANES or key(inst, "negate"):
        raise refusal(inst, f"folds partitions with {op}, which has no record")
    src = ctx.operands.tensor(inst, inst.ins[0])
    dst = ctx.operands.tensor(inst, inst.outs[0])
    count = src.channels * (src.elements if axis == 0 else 1)
    made = fields(
        src=src.at,
        dst=dst.at,
        in_dtype=src.tag,
        out_dtype=dst.tag,
        nchan=src.channels,
        reduce_op=LANES[op],
        reduce_axis=axis,
        scale=number_bits(1 / count if op == "average" else 1.0),
    )
    bits = LANES[op] >= FIRST_BITS
    return [("CrossLaneReduceBitvec" if bits else "CrossLaneReduce", made)]


def pool(ctx: Context, inst: Inst) -> list[Record]:
    src, dst = ctx.operands.tensor(inst, inst.ins[0]), ctx.operands.tensor(inst, inst.outs[0])
    at = ctx.operands.unfused(inst, inst.ins[0])
    window = prod(num for _, num in at.dims[:2])
    most = key(inst, "func") == "Max"
    made = fields(
        src=at,
        dst=dst.at,
        in_dtype=src.tag,
        out_dtype=dst.tag,
        nchan=src.channels,
        pool_func=1 if most else 2,
        pool_dim=3,
        scale=number_bits(1.0 if most else 1 / window),
    )
    return [("Pool", made)]


def cached(ctx: Context, inst: Inst) -> list[Record]:
    """x op s, folded into the accumulator on the way."""
    mode = str(key(inst, "mode"))
    if mode == "TensorScan" or key(inst, "reverse0") or key(inst, "reverse1"):
        raise refusal(inst, f"folds in mode {mode} with reversed operands, which has no record")
    imm0, pointed0 = ctx.operands.scalar(inst, inst.ins[1])
    imm1, pointed1 = ctx.operands.scalar(inst, inst.ins[2]) if len(inst.ins) > 2 else (0, False)
    made = moved(
        ctx,
        inst,
        op0=operation(inst, "op0"),
        op1=operation(inst, "op1"),
        imm0=imm0,
        imm0_src=int(pointed0),
        imm1=imm1,
        imm1_src=int(pointed1),
        accumulator_cmd=command(inst, "acc"),
    )
    name = "TensorScalarCacheReduce" if mode == "Reduce" else "TensorScalarCacheCumulative"
    return [(name, made)]


# statistics


def bn_stats(ctx: Context, inst: Inst) -> list[Record]:
    count = ctx.operands.tensor(inst, inst.ins[0]).elements
    even, odd = number_bits(-(-count // 2)), number_bits(count // 2)
    return [("BatchNormStats2", moved(ctx, inst, even_count=even, odd_count=odd))]


def bn_merge(ctx: Context, inst: Inst) -> list[Record]:
    return [("BatchNormAggregate", moved(ctx, inst))]


# searches


def backward(at: At) -> At:
    """Eight elements from the last to the first."""
    (step, num) = at.dims[0] if at.dims else (1, 1)
    return At(at.space, at.partition, at.byte, ((-step, num), *at.dims[1:]))


def turned(ctx: Context, inst: Inst, number: int, out: bool = False) -> At:
    """The descriptor of an operand of eight, which the unit serves from lane 7 down."""
    operand = (inst.outs if out else inst.ins)[number]
    found = ctx.operands.tensor(inst, operand)
    if found.elements != 8 or len(found.at.dims) > 1:
        raise refusal(inst, f"searches for {found.elements} values in {found.at.dims}; it takes 8")
    size = size_of(dtype_of(operand))
    step = found.at.dims[0][0] if found.at.dims else 1
    last = At(found.at.space, found.at.partition, found.at.byte + 7 * step * size, found.at.dims)
    return backward(last)


def latch(ctx: Context, inst: Inst, upward: bool = False) -> Record:
    """The eight values are latched before a search; slot 0 last, or first where `upward`."""
    values = ctx.operands.tensor(inst, inst.ins[1])
    at = values.at if upward else turned(ctx, inst, 1)
    return ("MatchValueLoad", fields(src=at, in_dtype=values.tag, nchan=values.channels))


def largest(ctx: Context, inst: Inst) -> list[Record]:
    src, dst = ctx.operands.tensor(inst, inst.ins[0]), ctx.operands.tensor(inst, inst.outs[0])
    made = fields(
        src=src.at,
        dst=turned(ctx, inst, 0, out=True),
        in_dtype=src.tag,
        out_dtype=dst.tag,
        nchan=src.channels,
    )
    return [("Max8", made)]


def max_index(ctx: Context, inst: Inst) -> list[Record]:
    return [latch(ctx, inst), ("FindIndex8", moved(ctx, inst))]


def match_replace(ctx: Context, inst: Inst) -> list[Record]:
    """With places: the values are latched the other way round, so that slot 7 is served first."""
    replaced = moved(ctx, inst, replacement=number_bits(key(inst, "imm_value")))
    if inst.opcode == "MatchReplace":
        return [latch(ctx, inst), ("MatchReplace8", replaced)]
    src, places = ctx.operands.tensor(inst, inst.ins[0]), ctx.operands.tensor(inst, inst.outs[1])
    found = fields(
        src=src.at,
        dst=turned(ctx, inst, 1, out=True),
        in_dtype=src.tag,
        out_dtype=places.tag,
        nchan=src.channels,
    )
    return [latch(ctx, inst, upward=True), ("FindIndex8", found), ("MatchReplace8", replaced)]


ENCODERS: dict[str, Encoder] = {
    "TensorReduce": tensor_reduce,
    "Pool": pool,
    "TensorScalarCache": cached,
    "BNStats": bn_stats,
    "BNStatsAggregate": bn_merge,
    "Max": largest,
    "MaxIndex": max_index,
    "MatchReplace": match_replace,
    "MaxIndexAndMatchReplace": match_replace,
}
