"""The records of the general-purpose cores: gathers, bounds, counts, library functions; and random
numbers.

Where the ISA reference has no bytes for an opcode, its layout is our own choice.
"""

from __future__ import annotations

from ncc.encode.record_parts import Context, Encoder, Record, fields, moved, refusal
from ncc.encode.values import word_of
from ncc.ir.bir import Ap, Inst
from ncc.ir.bir_opcodes import key
from ncc.ir.isa import At

INDIRECT = 1 << 29  # marks the address of an index list
FUNCTIONS = {"topk": 1}  # of the built-in library
KEEP = 1  # Dropout's mode: the threshold is the rate of what stays


def run(ctx: Context, inst: Inst, number: int) -> At:
    """Where an operand starts whose elements lie side by side."""
    found = ctx.operands.tensor(inst, inst.ins[number])
    if found.at.dims not in ((), ((1, found.elements),), ((1, 1),)):
        raise refusal(inst, f"gathers from {found.at.dims}; data and index lie side by side")
    return At(found.at.space, found.at.partition, found.at.byte)


def indirect_copy(ctx: Context, inst: Inst) -> list[Record]:
    src, dst = ctx.operands.tensor(inst, inst.ins[0]), ctx.operands.tensor(inst, inst.outs[0])
    index = ctx.operands.tensor(inst, inst.ins[1])
    whole = 16 * index.elements
    each = int(key(inst, "num_elem_per_idx"))
    made = fields(
        index=At("raw", 0, word_of(run(ctx, inst, 1)) | INDIRECT),
        src=run(ctx, inst, 0),
        num=int(key(inst, "num_valid_indices")) or whole,
        in_dtype=src.tag,
        out_dtype=dst.tag,
        nchan=dst.channels,
        per_index=each,
        buffer_size=src.elements,
        dst=dst.at,
    )
    return [("IndirectCopy", made)]


def gather(ctx: Context, inst: Inst) -> list[Record]:
    """The table of a row is latched first."""
    table, index = (ctx.operands.tensor(inst, x) for x in inst.ins)
    dst = ctx.operands.tensor(inst, inst.outs[0])
    latched = fields(src=table.at, in_dtype=table.tag, nchan=table.channels)
    made = fields(
        src=index.at, dst=dst.at, in_dtype=index.tag, out_dtype=dst.tag, nchan=dst.channels
    )
    return [("PoolBufferLoad", latched), ("Gather", made)]


def sequence_bounds(ctx: Context, inst: Inst) -> list[Record]:
    return [("GetSequenceBounds", moved(ctx, inst))]


def nonzero(ctx: Context, inst: Inst) -> list[Record]:
    offset, padding = (int(key(inst, x)) & 0xFFFFFFFF for x in ("index_offset", "padding_val"))
    return [("NonzeroWithCount", moved(ctx, inst, index_offset=offset, pad_value=padding))]


def custom(ctx: Context, inst: Inst) -> list[Record]:
    """The function and its numbers, then one record a tensor; the last one starts it."""
    name = str(key(inst, "opFunctionName"))
    if name not in FUNCTIONS or not key(inst, "is_builtin"):
        raise refusal(inst, f"calls {name!r}, which the built-in library has not")
    n, k = key(inst, "arguments")
    operands = [*inst.ins, *inst.outs]
    found: list[Record] = [
        ("CustomOpHeader", fields(function=FUNCTIONS[name], tensors=len(operands), n=n, k=k))
    ]
    for number, operand in enumerate(operands):
        one = ctx.operands.tensor(inst, operand)
        made = fields(tensor=one.at, dtype=one.tag, nchan=one.channels, number=number)
        found.append(("CustomOpPayload", made))
    return found


# random numbers


def rng(ctx: Context, inst: Inst) -> list[Record]:
    dst = ctx.operands.tensor(inst, inst.outs[0])
    made = fields(dst=dst.at, out_dtype=dst.tag, nchan=dst.channels, count=dst.elements)
    return [("Rng", made)]


def dropout(ctx: Context, inst: Inst) -> list[Record]:
    threshold, pointed = ctx.operands.scalar(inst, inst.ins[1])
    made = moved(
        ctx,
        inst,
        threshold=threshold,
        threshold_src=int(pointed),
        threshold_dtype=0xA,
        mode=KEEP * int(key(inst, "is_keep_threshold")),
    )
    return [("Dropout", made)]


def uniform(ctx: Context, inst: Inst) -> list[Record]:
    (low, pointed0), (high, pointed1) = (ctx.operands.scalar(inst, x) for x in inst.ins)
    dst = ctx.operands.tensor(inst, inst.outs[0])
    made = fields(
        dst=dst.at,
        out_dtype=dst.tag,
        nchan=dst.channels,
        imm0=low,
        imm0_src=int(pointed0),
        imm1=high,
        imm1_src=int(pointed1),
    )
    return [("Rand2", made)]


def set_state(ctx: Context, inst: Inst) -> list[Record]:
    operand = inst.ins[0]
    name = "SetRngSeed" if inst.opcode == "SetRandState" else "RandSetState"
    if not isinstance(operand, Ap):
        raise refusal(inst, "takes the state of a generator from a number", "put it in SBUF")
    src = ctx.operands.tensor(inst, operand)
    return [(name, fields(src=src.at, in_dtype=src.tag, nchan=src.channels))]


def get_state(ctx: Context, inst: Inst) -> list[Record]:
    dst = ctx.operands.tensor(inst, inst.outs[0])
    return [("RandGetState", fields(dst=dst.at, out_dtype=dst.tag, nchan=dst.channels))]


ENCODERS: dict[str, Encoder] = {
    "IndirectCopy": indirect_copy,
    "Gather": gather,
    "GetSequenceBounds": sequence_bounds,
    "NonzeroWithCount": nonzero,
    "CustomOp": custom,
    "Rng": rng,
    "Dropout": dropout,
    "Rand2": uniform,
    "SetRandState": set_state,
    "RandSetState": set_state,
    "GetRandState": get_state,
    "RandGetState": get_state,
}
