"""One BIR instruction as the records that an engine executes: a table from opcode to function.

A function gives the records without their event bands; the wait goes on the first and the update on
the last, and that is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ncc.encode.codes import ACT_FUNC, ALU, DTYPE, GENERAL_BITVEC, XBUS
from ncc.encode.operands import Operands, number_bits, raw_bits
from ncc.errors import NccError
from ncc.ir.bir import Ap, Inst
from ncc.ir.bir_opcodes import key
from ncc.ir.data import size_of
from ncc.ir.dma_patterns import ROWS, WIDE, is_transposing
from ncc.ir.dma_runs import PARTITION, Runs, runs
from ncc.ir.footprints import Rect, column_group, group_code
from ncc.target import Target

Fields = tuple[tuple[str, Any], ...]
Record = tuple[str, Fields]  # mnemonic and fields
Encoder = Callable[["Context", Inst], list[Record]]

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
COMMANDS = {"Idle": 0, "Zero": 1, "ZeroAccumulate": 3, "AddAccumulate": 2, "LoadAccumulate": 4}
AXES = {"X": 2, "XY": 3, "XYZ": 4, "XYZW": 5}
HIGH, LOW, BOTH = 2, 1, 3  # fp32_mode of the two loads, and of both products
EIGHT_BYTES = {"int64": "int32", "uint64": "uint32"}  # they travel as two of four


class Context:
    """What the functions share: the target and the operands."""

    def __init__(self, target: Target, operands: Operands) -> None:
        self.target, self.operands = target, operands
        self.gen = target.gen


def fields(**values: Any) -> Fields:
    """Fields as a record has them: sorted, and without zeros."""
    return tuple([(k, values[k]) for k in sorted(values) if values[k]])


def refusal(inst: Inst, said: str, hint: str = "") -> NccError:
    return NccError("NCC606", said, inst.origin.place(inst.name), hint)


# PE


def matmult(ctx: Context, inst: Inst) -> list[Record]:
    moving = ctx.operands.tensor(inst, inst.ins[0])
    weights = ctx.operands.tensor(inst, inst.ins[1])
    dest = ctx.operands.tensor(inst, inst.outs[0])
    turned = bool(key(inst, "is_transpose"))
    rows = group_code(weights.at.partition, weights.channels)
    place = Rect(0, dest.at.partition, dest.at.partition + dest.channels, 0, 0)
    columns = column_group(inst, place)
    if not rows or not columns:
        said = (
            f"takes {weights.channels} rows from partition {weights.at.partition} and "
            f"{dest.channels} columns at partition {dest.at.partition}; no group of the array does"
        )
        raise refusal(inst, said, "more than 64 start at 0, more than 32 at 0 or 64")
    if ctx.gen == 2 and columns not in XBUS:
        raise refusal(inst, f"uses column group {columns}, which {ctx.target.name} does not have")
    flag = int(key(inst, "accumulation_flag"))
    if not flag:
        raise refusal(inst, "has no accumulation flag", "mm-acc-flags sets it")
    shared: dict[str, Any] = {
        "num_active_rows": weights.channels,
        "num_active_cols": weights.elements,
        "row_grp": rows,
        "col_grp": columns,
        "xbus_sel": XBUS[columns] if ctx.gen == 2 else 0,
        "transpose_mode": int(turned and ctx.gen > 2),
    }

    def load(mode: int) -> Record:
        made = fields(src=weights.at, in_dtype=weights.tag, fp32_mode=mode, **shared)
        return ("LoadStationary", made)

    def product(mode: int, bits: int) -> Record:
        made = fields(
            moving=moving.at,
            dst=dest.at,
            in_dtype=moving.tag,
            fp32_mode=mode,
            psum_flags=bits,
            psum_zero_region=int(key(inst, "psum_zero_region")),
            **shared,
        )
        return ("Matmul", made)

    bits = flag & 3  # ACCUMULATE is no bit of these generations
    if weights.tag == DTYPE["float32"]:  # two passes: the upper half of the weights, then the rest
        return [load(HIGH), product(BOTH, bits & 1), load(LOW), product(BOTH, bits & 2)]
    pair = [] if key(inst, "weights_loaded") else [load(0)]
    return [*pair, product(0, bits)]


# DMA


def dma(ctx: Context, inst: Inst) -> list[Record]:
    src, dst = inst.ins[0], inst.outs[0]
    if type(src) is not Ap or type(dst) is not Ap or len(inst.ins) != 1:
        raise refusal(inst, "moves something else than one access to another")
    if key(inst, "queue") == "" or not inst.updates:
        raise refusal(inst, "has no queue that counts it", "bind-dma and sync-waits give it one")
    if inst.opcode == "DMACopy" and key(inst, "mode") not in ("Copy", "Transpose"):
        raise refusal(inst, f"has mode {key(inst, 'mode')}, which has no record")
    if is_transposing(inst):
        return transposing(ctx, inst, src, dst)
    found = runs(src, dst, ctx.operands.on_chip(inst, src), ctx.operands.on_chip(inst, dst))
    if found is None:
        said = "walks its two sides in a way that no one descriptor holds"
        raise refusal(inst, said, "legalize-sizes splits it")
    return [direct(ctx, inst, src, dst, found, 0)]


def direct(ctx: Context, inst: Inst, src: Ap, dst: Ap, found: Runs, op: int) -> Record:
    (n0, s0, d0), (n1, s1, d1) = found.padded()
    update = inst.updates[0]
    values: dict[str, Any] = {
        "dge_op": op,
        "dst": ctx.operands.dma(inst, dst),
        "dst_dtype": DTYPE[EIGHT_BYTES.get(dst.dtype, dst.dtype)],
        "dst_size": found.dst_size,
        "sem_increment": update.value,
        "semaphore": update.sem,
        "src": ctx.operands.dma(inst, src),
        "src_dtype": DTYPE[EIGHT_BYTES.get(src.dtype, src.dtype)],
        "src_size": found.src_size,
    }
    if (n0, n1) != (1, 1):
        values["src_num"] = values["dst_num"] = (n0, n1)
    if (s0, s1) != (0, 0):
        values["src_step"] = (s0, s1)
    if (d0, d1) != (0, 0):
        values["dst_step"] = (d0, d1)
    return ("DmaDirect2d", fields(**values))


def transposing(ctx: Context, inst: Inst, src: Ap, dst: Ap) -> list[Record]:
    """Tiles of 16 rows where the unit transposes them itself; else element by element."""
    (row, rows), *_, (step, columns) = src.ap
    size = size_of(src.dtype)
    to = ctx.operands.dma(inst, dst)
    tiled = (
        ctx.target.transposing_dma
        and size == 2
        and src.dtype == dst.dtype
        and rows % ROWS == 0
        and step == dst.ap[-1][0] == 1
        and to.byte % WIDE == 0
    )
    if not tiled:
        across = dst.ap[-1][0] * size_of(dst.dtype)
        walk = ((columns, step * size, PARTITION), (rows, row * size, across))
        found = Runs(size, size_of(dst.dtype), walk)
        return [direct(ctx, inst, src, dst, found, 0)]
    walk = ((rows // ROWS, ROWS * row * size, WIDE),)
    first = direct(ctx, inst, src, dst, Runs(columns * size, WIDE, walk), 2)
    tile = fields(tile_src_row_step=row * size, tile_src_rows=ROWS, tile_src_cols=columns)
    return [first, ("Extension", tile)]


# Activation


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
        bias, pointed = ctx.operands.scalar(inst, inst.ins[1])
    command = str(key(inst, "acc"))
    if command not in COMMANDS:
        raise refusal(inst, f"has the accumulator command {command}, which has no code")
    return [
        activate(
            ctx,
            inst,
            func,
            scale=number_bits(key(inst, "scale")),
            bias=bias,
            bias_src_n=int(not pointed),  # this field counts the other way round
            bias_dtype=tag,
            imm=number_bits(key(inst, "alpha")) if func in SLOPED else 0,
            accumulator_cmd=COMMANDS[command],
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


# DVE and Pool


def copy(ctx: Context, inst: Inst) -> list[Record]:
    if inst.engine == "Activation":
        one = number_bits(1.0)
        return [activate(ctx, inst, "Copy", scale=one, bias_src_n=1, bias_dtype=DTYPE["float32"])]
    src = ctx.operands.tensor(inst, inst.ins[0])
    dst = ctx.operands.tensor(inst, inst.outs[0])
    return [("Copy" if src.tag == dst.tag else "Cast", moved(ctx, inst))]


def moved(ctx: Context, inst: Inst, **more: Any) -> Fields:
    """Source and destination as the four-dimensional records have them."""
    src = ctx.operands.tensor(inst, inst.ins[0])
    dst = ctx.operands.tensor(inst, inst.outs[0])
    return fields(
        src=src.at,
        dst=dst.at,
        in_dtype=src.tag,
        out_dtype=dst.tag,
        nchan=src.channels,
        **more,
    )


def operation(inst: Inst, name: str) -> int:
    word = str(key(inst, name))
    if word not in ALU:
        raise refusal(inst, f"does {word}, which has no code")
    return ALU[word]


def is_bitwise(code: int) -> bool:
    return code != 0 and code in GENERAL_BITVEC


def tensor_scalar(ctx: Context, inst: Inst) -> list[Record]:
    first, second = operation(inst, "op0"), operation(inst, "op1")
    bits = raw_bits if is_bitwise(first) or is_bitwise(second) else number_bits
    scalars: list[tuple[int, bool]] = []
    if inst.opcode == "TensorScalar":
        scalars = [(bits(key(inst, "const0")), False), (bits(key(inst, "const1")), False)]
    else:
        scalars = [ctx.operands.scalar(inst, operand) for operand in inst.ins[1:3]]
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


def tensor_tensor(ctx: Context, inst: Inst) -> list[Record]:
    left = ctx.operands.tensor(inst, inst.ins[0])
    right = ctx.operands.tensor(inst, inst.ins[1])
    dst = ctx.operands.tensor(inst, inst.outs[0])
    op = operation(inst, "op")
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


def tensor_reduce(ctx: Context, inst: Inst) -> list[Record]:
    op, axis = operation(inst, "op"), str(key(inst, "axis"))
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


def reciprocal(ctx: Context, inst: Inst) -> list[Record]:
    return [("Reciprocal", moved(ctx, inst))]


def memset(ctx: Context, inst: Inst) -> list[Record]:
    dst = ctx.operands.tensor(inst, inst.outs[0])
    if key(inst, "mode") != "Const":
        raise refusal(inst, "is a random memset, which has no record yet")
    value = int(key(inst, "constant"))
    made = fields(
        dst=dst.at, out_dtype=dst.tag, nchan=dst.channels, count=dst.elements, set_value=value
    )
    return [("Memset", made)]


# control


def event_semaphore(ctx: Context, inst: Inst) -> list[Record]:
    made: Fields = ()
    if len(inst.waits) > 1:
        wait = inst.waits[1]
        made = fields(wait2_mode=5, wait2_idx=wait.sem, wait2_value=wait.value)
    return [("EventSemaphore", made)]


def leave(ctx: Context, inst: Inst) -> list[Record]:
    return [("Exit", ())]


def nop(ctx: Context, inst: Inst) -> list[Record]:
    return [("Nop", ())]


ENCODERS: dict[str, Encoder] = {
    "Matmult": matmult,
    "Load": dma,
    "Save": dma,
    "DMACopy": dma,
    "Activation": activation,
    "ActivationReadAccumulator": read_accumulator,
    "ReadActivationAccumulator": read_accumulator,
    "DveReadAccumulator": read_accumulator,
    "LoadActFuncSet": load_table,
    "TensorCopy": copy,
    "GenericCopy": copy,
    "TensorScalar": tensor_scalar,
    "TensorScalarPtr": tensor_scalar,
    "TensorTensor": tensor_tensor,
    "TensorReduce": tensor_reduce,
    "Reciprocal": reciprocal,
    "Memset": memset,
    "EventSemaphore": event_semaphore,
    "Exit": leave,
    "NoOp": nop,
}
