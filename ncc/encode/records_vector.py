"""The records of DVE and Pool that compute element by element (ISA reference 5.7 to 5.10)."""

from __future__ import annotations

from ncc.encode.codes import ALU, DTYPE
from ncc.encode.operands import dtype_of, number_bits, raw_bits
from ncc.encode.record_parts import (
    Context,
    Encoder,
    Record,
    fields,
    is_bitwise,
    moved,
    operation,
    refusal,
)
from ncc.encode.records_act import activate
from ncc.encode.records_pool import rng
from ncc.ir.bir import Imm, Inst, Operand
from ncc.ir.bir_opcodes import key

INTEGERS = (ALU["add_int"], ALU["mult_int"], ALU["subtract_int"])  # of all generations
EITHER_WAY = frozenset(("add", "mult", "logical_and", "logical_or", "logical_xor", "is_equal"))


def copy(ctx: Context, inst: Inst) -> list[Record]:
    if inst.engine == "Activation":
        one = number_bits(1.0)
        return [activate(ctx, inst, "Copy", scale=one, bias_src_n=1, bias_dtype=DTYPE["float32"])]
    src = ctx.operands.tensor(inst, inst.ins[0])
    dst = ctx.operands.tensor(inst, inst.outs[0])
    return [("Copy" if src.tag == dst.tag else "Cast", moved(ctx, inst))]


def scalar(ctx: Context, inst: Inst, operand: Operand, raw: bool) -> tuple[int, bool]:
    """32 bits, and whether they point at a column; for bit operations it has the tensor's dtype."""
    if raw and isinstance(operand, Imm):
        return raw_bits(operand.value), False
    return ctx.operands.scalar(inst, operand, (dtype_of(inst.ins[0]),) if raw else ("float32",))


def tensor_scalar(ctx: Context, inst: Inst) -> list[Record]:
    if inst.opcode == "TensorScalarPtr" and key(inst, "is_scalar_tensor_tensor"):
        return two_tensors(ctx, inst, "ScalarTensorTensor", inst.ins[2], inst.ins[1])
    if inst.opcode == "TensorScalarPtr" and key(inst, "is_tensor_tensor_scan"):
        return two_tensors(ctx, inst, "TensorTensorScan", inst.ins[1], inst.ins[2])
    first, second = operation(inst, "op0"), operation(inst, "op1")
    bits = raw_bits if is_bitwise(first) or is_bitwise(second) else number_bits
    scalars: list[tuple[int, bool]] = []
    if inst.opcode == "TensorScalar":
        scalars = [(bits(key(inst, "const0")), False), (bits(key(inst, "const1")), False)]
    else:
        scalars = [scalar(ctx, inst, x, bits is raw_bits) for x in inst.ins[1:3]]
    (imm0, pointed0), (imm1, pointed1) = [*scalars, (0, False)][:2]
    if second == 0:
        imm1, pointed1 = 0, False
    made = moved(
        ctx,
        inst,
        op0=first,
        op1=second,
        imm0=imm0,
        imm0_src=int(pointed0),
        imm1=imm1,
        imm1_src=int(pointed1),
        reverse=int(key(inst, "reverse0")) + 2 * int(key(inst, "reverse1")),
    )
    return [("TensorScalarBitvec" if bits is raw_bits else "TensorScalar", made)]


def two_tensors(ctx: Context, inst: Inst, name: str, second: Operand, one: Operand) -> list[Record]:
    """The records with two sources and a scalar. The scan's record has the carried value first."""
    left, right = ctx.operands.tensor(inst, inst.ins[0]), ctx.operands.tensor(inst, second)
    dst = ctx.operands.tensor(inst, inst.outs[0])
    imm, pointed, tag = ctx.operands.any_scalar(inst, one)
    op0, op1 = operation(inst, "op0"), operation(inst, "op1")
    first = bool(key(inst, "reverse0"))
    if name == "TensorTensorScan":
        first = not first and key(inst, "op0") not in EITHER_WAY
    made = fields(
        src0=left.at,
        src1=right.at,
        dst=dst.at,
        src0_dtype=left.tag,
        src1_dtype=right.tag,
        out_dtype=dst.tag,
        nchan=dst.channels,
        op0=op0,
        op1=op1,
        reverse=int(first) + 2 * int(key(inst, "reverse1")),
        imm0=imm,
        imm0_src=int(pointed),
        imm0_dtype=tag,
    )
    if is_bitwise(op0) or is_bitwise(op1):
        raise refusal(inst, "works on bits between two tensors and a scalar, which has no record")
    return [(name, made)]


def tensor_tensor(ctx: Context, inst: Inst) -> list[Record]:
    left = ctx.operands.tensor(inst, inst.ins[0])
    right = ctx.operands.tensor(inst, inst.ins[1])
    dst = ctx.operands.tensor(inst, inst.outs[0])
    op = operation(inst, "op")
    if key(inst, "integer"):
        word = f"{key(inst, 'op')}_int"
        if word not in ALU or (ctx.gen == 2 and ALU[word] not in INTEGERS):
            raise refusal(inst, f"does {key(inst, 'op')} of integers, which has no code")
        op = ALU[word]
    made = fields(
        src0=left.at,
        src1=right.at,
        dst=dst.at,
        src0_dtype=left.tag,
        src1_dtype=right.tag,
        out_dtype=dst.tag,
        op=op,
        nchan=dst.channels,
    )
    return [("TensorTensorBitvec" if is_bitwise(op) else "TensorTensor", made)]


def reciprocal(ctx: Context, inst: Inst) -> list[Record]:
    return [("Reciprocal", moved(ctx, inst))]


def memset(ctx: Context, inst: Inst) -> list[Record]:
    dst = ctx.operands.tensor(inst, inst.outs[0])
    if key(inst, "mode") != "Const":
        return rng(ctx, inst)
    value = int(key(inst, "constant"))
    made = fields(
        dst=dst.at, out_dtype=dst.tag, nchan=dst.channels, count=dst.elements, set_value=value
    )
    return [("Memset", made)]


ENCODERS: dict[str, Encoder] = {
    "TensorCopy": copy,
    "GenericCopy": copy,
    "TensorScalar": tensor_scalar,
    "TensorScalarPtr": tensor_scalar,
    "TensorTensor": tensor_tensor,
    "Reciprocal": reciprocal,
    "Memset": memset,
}
