"""The records of the Activation engine, and of the accumulators of ACT and DVE."""

from __future__ import annotations

from typing import Any

from ncc.encode.codes import ACT_FUNC, DTYPE
from ncc.encode.operands import number_bits
from ncc.encode.record_parts import Context, Encoder, Record, command, fields, refusal
from ncc.ir.bir import Inst
from ncc.ir.bir_opcodes import key

# functions that BIR calls otherwise than the record's table
WIRE_NAMES = {
    "Gelu_apprx_tanh": "Gelu_tanh",
    "Gelu_apprx_sigmoid": "Gelu_sigmoid",
    "Derivative_Gelu_apprx_sigmoid": "dGelu_sigmoid",
    "Derivative_Gelu": "dGelu",
    "Derivative_Erf": "dErf",
    "Abs_reciprocal_sqrt": "AbsRecipSqrt",
    "Derivative_silu": "dSilu",
    "Is_finite": "IsFinite",
}
PLAIN = frozenset(("Copy", "Reciprocal"))  # written with a parametric immediate of 0
SLOPED = frozenset(("Lrelu", "Prelu"))  # `alpha` is their immediate


def activate(ctx: Context, inst: Inst, func: str, **more: Any) -> Record:
    src = ctx.operands.tensor(inst, inst.ins[0])
    dst = ctx.operands.tensor(inst, inst.outs[0])
    name = WIRE_NAMES.get(func, func)
    if name not in ACT_FUNC:
        raise refusal(inst, f"evaluates {func}, which has no code")
    plain = func in PLAIN
    made = fields(
        src=src.at,
        dst=dst.at,
        in_dtype=src.tag,
        out_dtype=dst.tag,
        nchan=dst.channels,
        act_func=ACT_FUNC[name],
        imm_src=int(plain),
        **more,
    )
    return ("Activate", made)


def activation(ctx: Context, inst: Inst) -> list[Record]:
    func = str(key(inst, "func"))
    bias, pointed, tag = 0, False, DTYPE["float32"]
    if len(inst.ins) > 1:
        bias, pointed, tag = ctx.operands.any_scalar(inst, inst.ins[1])
    scale, scaled = number_bits(key(inst, "scale")), False
    if len(inst.ins) > 2:
        scale, scaled = ctx.operands.scalar(inst, inst.ins[2])
    return [
        activate(
            ctx,
            inst,
            func,
            scale=scale,
            scale_src=int(scaled),
            bias=bias,
            bias_src_n=int(not pointed),  # this field counts the other way round
            bias_dtype=tag,
            imm=number_bits(key(inst, "alpha")) if func in SLOPED else 0,
            accumulator_cmd=command(inst, "acc"),
        )
    ]


def read_accumulator(ctx: Context, inst: Inst) -> list[Record]:
    dst = ctx.operands.tensor(inst, inst.outs[0])
    name = "DveReadAccumulator"
    if inst.engine == "Activation":
        name = "ActivationReadAccumulator"
    negated = int(inst.opcode == name == "DveReadAccumulator" and key(inst, "negated"))
    made = fields(count=1, out_dtype=dst.tag, nchan=dst.channels, dst=dst.at, negated=negated)
    return [(name, made)]


def load_table(ctx: Context, inst: Inst) -> list[Record]:
    return [("ActivationTableLoad", fields(table_set=int(key(inst, "act_func_set_id"))))]


ENCODERS: dict[str, Encoder] = {
    "Activation": activation,
    "ActivationReadAccumulator": read_accumulator,
    "ReadActivationAccumulator": read_accumulator,
    "DveReadAccumulator": read_accumulator,
    "LoadActFuncSet": load_table,
}
