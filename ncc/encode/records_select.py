"""The records that choose by place or predicate, and those of quadrants (ISA reference 5.7, 5.10,
5.15 to 5.18)."""

from __future__ import annotations

from typing import Any

from ncc.encode.codes import ALU, DTYPE
from ncc.encode.operands import dtype_of, element_bits, number_bits
from ncc.encode.record_parts import (
    Context,
    Encoder,
    Record,
    command,
    fields,
    moved,
    operation,
    refusal,
)
from ncc.ir.bir import Imm, Inst, Operand
from ncc.ir.bir_opcodes import key
from ncc.ir.bir_operands import one_value

FILL_REGISTER = 63  # of Pool, written right before each selection
FILL_MODE = {"is_gt": 0, "is_ge": 1, "is_equal": 2, "not_equal": 3}
NEGATED = {"is_lt": "is_gt", "is_le": "is_ge"}  # of the negated value
FLT_MIN = 0xFF7FFFFF
STAYS, PASS = 255, 0x20


def pattern(inst: Inst, sign: int = 1) -> dict[str, Any]:
    """The affine value of a record, or its negative."""
    dims = tuple((sign * int(s), int(n)) for s, n in reversed(key(inst, "pattern")))
    while dims and dims[-1] == (1, 1):
        dims = dims[:-1]
    multiplier = sign * int(key(inst, "channel_multiplier"))
    return {"pattern": (sign * int(key(inst, "base")), dims), "channel_multiplier": multiplier}


def iota(ctx: Context, inst: Inst) -> list[Record]:
    dst = ctx.operands.tensor(inst, inst.outs[0])
    made = fields(dst=dst.at, out_dtype=dst.tag, nchan=dst.channels, **pattern(inst))
    return [("Iota", made)]


def affine_select(ctx: Context, inst: Inst) -> list[Record]:
    """A register takes the fill value first. Less and less-or-equal compare the negative."""
    compare = str(key(inst, "compare_op"))
    sign = -1 if compare in NEGATED else 1
    compare = NEGATED.get(compare, compare)
    if compare not in FILL_MODE:
        raise refusal(inst, f"compares with {key(inst, 'compare_op')}, which has no code")
    fill = fields(
        count=1,
        dtype=DTYPE["float32"],
        source=1,
        dst_regs=bytes((FILL_REGISTER, *bytes(7))),
        imm0=number_bits(key(inst, "fill_value")),
    )
    chosen = moved(
        ctx, inst, fill_mode=FILL_MODE[compare], fill_reg=FILL_REGISTER, **pattern(inst, sign)
    )
    return [("RegisterMove", fill), ("AffineSelect", chosen)]


def range_select(ctx: Context, inst: Inst) -> list[Record]:
    if number_bits(key(inst, "fill_value")) != FLT_MIN:
        said = f"fills with {key(inst, 'fill_value')}; the unit knows -3.4028234663852886e+38 only"
        raise refusal(inst, said)
    (bound0, pointed0), (bound1, pointed1) = (ctx.operands.scalar(inst, x) for x in inst.ins[1:3])
    made = moved(
        ctx,
        inst,
        reduce_cmd=command(inst, "reduce_cmd"),
        reduce_op=ALU["max"],
        base=number_bits(key(inst, "base")),
        fill=FLT_MIN,
        comp_op0=operation(inst, "compare_op0"),
        comp_op1=operation(inst, "compare_op1"),
        bound0=bound0,
        bound0_src=int(pointed0),
        bound1=bound1,
        bound1_src=int(pointed1),
    )
    return [("RangeSelect", made)]


# predicates


def predicated(ctx: Context, inst: Inst, source: Operand, mask: Operand) -> Record:
    """The destination takes the source where the mask is not zero."""
    out = inst.outs[0]
    chooser, dst = ctx.operands.tensor(inst, mask), ctx.operands.tensor(inst, out)
    if isinstance(source, Imm):
        return one(ctx, inst, element_bits(source.value, dtype_of(out)), 0, 1)
    data = ctx.operands.tensor(inst, source)
    made = fields(
        src0=chooser.at,
        src1=data.at,
        dst=dst.at,
        src0_dtype=chooser.tag,
        src1_dtype=data.tag,
        out_dtype=dst.tag,
        nchan=dst.channels,
    )
    return ("CopyPredicated" if data.tag == dst.tag else "CastPredicated", made)


def one(ctx: Context, inst: Inst, bits: int, pointed: int, where: int) -> Record:
    """One value a partition, where the mask is not zero (1) or is (0)."""
    mask, dst = ctx.operands.tensor(inst, inst.ins[0]), ctx.operands.tensor(inst, inst.outs[0])
    made = fields(
        predicate=mask.at,
        pred_dtype=mask.tag,
        reversed_pred=where,
        nchan=dst.channels,
        in_dtype=dst.tag,
        out_dtype=dst.tag,
        imm_src=pointed,
        imm=bits,
        dst=dst.at,
    )
    return ("CopyPredicatedScalar", made)


def copy_predicated(ctx: Context, inst: Inst) -> list[Record]:
    if len(inst.ins) == 3:
        return select_reduce(ctx, inst)
    source, reverse = inst.ins[1], bool(key(inst, "reverse_pred"))
    out = inst.outs[0]
    if one_value(inst):
        if isinstance(source, Imm):
            return [one(ctx, inst, element_bits(source.value, dtype_of(out)), 0, int(not reverse))]
        word, pointed = ctx.operands.scalar(inst, source, (dtype_of(out),))
        return [one(ctx, inst, word, int(pointed), int(not reverse))]
    if reverse:
        said = "copies a tensor where its predicate is zero, which has no record"
        raise refusal(inst, said, "compare the predicate with 0 first")
    return [predicated(ctx, inst, source, inst.ins[0])]


def select_reduce(ctx: Context, inst: Inst) -> list[Record]:
    if key(inst, "reduce_op") not in ("max", "bypass"):
        raise refusal(inst, f"reduces with {key(inst, 'reduce_op')}; the unit has max only")
    mask, data = ctx.operands.tensor(inst, inst.ins[0]), ctx.operands.tensor(inst, inst.ins[1])
    dst = ctx.operands.tensor(inst, inst.outs[0])
    imm, pointed = ctx.operands.scalar(inst, inst.ins[2])
    made = fields(
        src0=mask.at,
        src1=data.at,
        dst=dst.at,
        src0_dtype=mask.tag,
        src1_dtype=data.tag,
        out_dtype=dst.tag,
        nchan=dst.channels,
        op1=ALU["max"],
        reverse=int(key(inst, "reverse_pred")),
        accumulator_cmd=command(inst, "accumulator_cmd"),
        imm0=imm,
        imm0_src=int(pointed),
        imm0_dtype=DTYPE["float32"],
    )
    return [("SelectReduce", made)]


# quadrants


def shuffle(ctx: Context, inst: Inst) -> list[Record]:
    """The lanes are loaded first. As many partitions as the destination has take part."""
    lanes = [j | PASS if x == STAYS else int(x) for j, x in enumerate(key(inst, "mask"))]
    if len(lanes) != 32 or any(not 0 <= x < 64 for x in lanes):
        raise refusal(inst, f"shuffles by {len(lanes)} lanes; 32 of 0 to 31, or 255, make a mask")
    src, dst = ctx.operands.tensor(inst, inst.ins[0]), ctx.operands.tensor(inst, inst.outs[0])
    made = fields(src=src.at, dst=dst.at, in_dtype=src.tag, out_dtype=dst.tag, nchan=dst.channels)
    return [
        ("LoadMaskSelect", (("mask", bytes(lanes)),) if any(lanes) else ()),
        ("StreamShuffle", made),
    ]


def stream_transpose(ctx: Context, inst: Inst) -> list[Record]:
    return [("StreamTranspose", moved(ctx, inst))]


ENCODERS: dict[str, Encoder] = {
    "Iota": iota,
    "TensorScalarAffineSelect": affine_select,
    "RangeSelect": range_select,
    "CopyPredicated": copy_predicated,
    "StreamShuffle": shuffle,
    "StreamTranspose": stream_transpose,
}
