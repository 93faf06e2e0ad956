"""What makes the opcodes of kernels legal: shapes, element types and keys of their operands.

One small function an opcode says what `ncc.ir.bir_operands` says, as checks. Only accesses that are
placed patterns (`Ap`) are looked at: before `unroll` there are none of these opcodes in loops.
"""

from __future__ import annotations

from collections.abc import Callable

from ncc.errors import NccError
from ncc.ir.bir import Ap, Imm, Inst
from ncc.ir.bir_matmul_laws import fault
from ncc.ir.bir_opcodes import OPCODES, key
from ncc.ir.bir_operands import least_level, one_value
from ncc.ir.bir_patterns import elements
from ncc.ir.bir_shapes import (
    Found,
    alike,
    column,
    count,
    dtype,
    parts,
    rowwise,
    same,
    sized,
    typed,
    whole,
    worded,
)
from ncc.ir.data import DTYPES, FLOATS, size_of
from ncc.ir.walks import collapsed
from ncc.target import Target

BITS = frozenset(
    (
        *("bitwise_not", "bitwise_and", "bitwise_or", "bitwise_xor"),
        *("arith_shift_left", "arith_shift_right", "logical_shift_left", "logical_shift_right"),
    )
)
COMPARES = ("is_equal", "not_equal", "is_gt", "is_ge", "is_lt", "is_le")
FOLDS = ("add", "subtract", "mult", "max", "min", "logical_and", "logical_or", "logical_xor")
ACROSS = ("add", "average", "max", "bitwise_or", "bitwise_and", "bitwise_xor")
WORDS = ("int32", "uint32")
NUMBERS = frozenset(d for d in DTYPES if size_of(d) <= 4)  # of a scalar with a dtype of its own
FLT_MIN = -3.4028234663852886e38


# ---- one function an opcode ---------------------------------------------------------------------


def tensor_scalar(inst: Inst) -> Found:
    x, out = inst.ins[0], inst.outs[0]
    yield from alike(inst, x, out)
    bits = [key(inst, n) in BITS for n in ("op0", "op1") if key(inst, n) != "bypass"]
    if any(bits) and not all(bits):
        said = f"mixes {key(inst, 'op0')} and {key(inst, 'op1')}: bits and numbers"
        yield fault("NCC427", inst, said)
    if any(bits):
        yield from whole(inst, x, out)
    for one in inst.ins[1:]:
        yield from column(inst, one, parts(out), (dtype(x),) if any(bits) else ("float32",))
    if key(inst, "op0") == "bypass" != key(inst, "op1"):
        yield fault("NCC427", inst, f"op0 is bypass, so op1 cannot be {key(inst, 'op1')}")


def pointer(inst: Inst) -> Found:
    third, scan = key(inst, "is_scalar_tensor_tensor"), key(inst, "is_tensor_tensor_scan")
    if not (third or scan):
        yield from tensor_scalar(inst)
        return
    if len(inst.ins) != 3 or (third and scan):
        yield fault("NCC403", inst, f"{inst.opcode} reads {len(inst.ins)} operands and takes 3")
        return
    x, y, scalar = inst.ins[0], inst.ins[2 if third else 1], inst.ins[1 if third else 2]
    out = inst.outs[0]
    for one in (x, y):
        if not isinstance(one, Ap):
            yield fault("NCC403", inst, f"{inst.opcode} takes two tensors and one scalar")
            return
    yield from alike(inst, x, y, out)
    yield from column(inst, scalar, parts(out), NUMBERS)
    for name in ("op0", "op1"):
        if key(inst, name) in BITS:
            yield fault("NCC427", inst, f"{inst.opcode} does {key(inst, name)} on two tensors")
    if inst.engine not in ("DVE", "Unassigned"):
        said = f"{inst.engine} cannot run this form of {inst.opcode}; DVE can"
        yield fault("NCC406", inst, said)


def cached(inst: Inst) -> Found:
    x, out = inst.ins[0], inst.outs[0]
    yield from alike(inst, x, out)
    for one in inst.ins[1:]:
        yield from column(inst, one, parts(out))
    for one in (x, out):
        yield from typed(inst, one, FLOATS, "an operand")
    yield from worded(inst, "op1", FOLDS[:5])
    yield from worded(inst, "mode", ("Reduce", "Cumulative"))
    yield from worded(inst, "acc", ("ZeroAccumulate", "AddAccumulate", "LoadAccumulate"))
    if key(inst, "reverse0") or key(inst, "reverse1"):
        yield fault("NCC427", inst, f"{inst.opcode} has no reversed operands")
    if (len(inst.ins) == 3) != (key(inst, "acc") == "LoadAccumulate"):
        said = f"{inst.opcode} has {len(inst.ins)} operands under {key(inst, 'acc')}"
        yield fault("NCC403", inst, said, "a third is what LoadAccumulate begins with")


def tensor_tensor(inst: Inst) -> Found:
    operands = (*inst.ins, *inst.outs)
    yield from alike(inst, *operands)
    if key(inst, "op") in BITS:
        yield from whole(inst, *operands)
    if not key(inst, "integer"):
        return
    yield from worded(inst, "op", ("add", "subtract", "mult", "max", "min", *COMPARES))
    yield from same(inst, *operands)
    yield from typed(inst, inst.outs[0], WORDS, "an integer operand")
    if inst.engine not in ("Pool", "Unassigned"):
        said = f"{inst.engine} has no integer unit for {inst.opcode}; Pool has"
        yield fault("NCC406", inst, said)


def activation(inst: Inst) -> Found:
    out = inst.outs[0]
    yield from alike(inst, inst.ins[0], out)
    for one, dtypes in zip(inst.ins[1:], (NUMBERS, ("float32",)), strict=False):
        yield from column(inst, one, parts(out), dtypes)
    yield from worded(inst, "acc", ("Idle", "Zero", "ZeroAccumulate", "AddAccumulate"))
    yield from worded(inst, "reduce_op", ("bypass", "add"))


def read_back(inst: Inst) -> Found:
    yield from sized(inst, inst.outs[0], 1, "an accumulator")


def reduce(inst: Inst) -> Found:
    x, out, axis, op = inst.ins[0], inst.outs[0], key(inst, "axis"), key(inst, "op")
    if op in BITS:
        yield from whole(inst, x, out)
    if axis in ("C", "XYZWC"):
        yield from worded(inst, "op", ACROSS)
        if inst.engine not in ("Pool", "Unassigned") or key(inst, "negate"):
            yield fault("NCC406", inst, "partitions are folded by Pool, and without negate")
        yield from sized(inst, out, count(x) if axis == "C" else 1, "the fold")
        if parts(out) != 1:
            yield fault("NCC420", inst, f"a fold over partitions writes 1, not {parts(out)}")
        return
    inner = {"X": 1, "XY": 2, "XYZ": 3, "XYZW": 4}[axis]
    yield from worded(inst, "op", (*FOLDS, "bitwise_and", "bitwise_or", "bitwise_xor"))
    if isinstance(x, Ap):
        kept = elements(x.ap[1 : max(1, len(x.ap) - inner)])
        yield from sized(inst, out, kept, "the fold")
        if parts(x) != parts(out):
            yield fault("NCC420", inst, f"folds {parts(x)} partitions into {parts(out)}")


def pool(inst: Inst) -> Found:
    x, out = inst.ins[0], inst.outs[0]
    if isinstance(x, Ap):
        yield from sized(inst, out, elements(x.ap[1 : max(1, len(x.ap) - 2)]), "the window's fold")


def statistics(inst: Inst) -> Found:
    yield from rowwise(inst, inst.ins[0], inst.outs[0])
    yield from sized(inst, inst.outs[0], 6, "a record of statistics")


def merge(inst: Inst) -> Found:
    yield from rowwise(inst, inst.ins[0], inst.outs[0])
    yield from sized(inst, inst.outs[0], 2, "mean and variance")
    if count(inst.ins[0]) % 3:
        yield fault("NCC420", inst, f"merges {count(inst.ins[0])} elements, no groups of 3")


def affine(inst: Inst) -> Found:
    out = inst.outs[0]
    total = 1
    for _, num in key(inst, "pattern"):
        total *= num
    if len(key(inst, "pattern")) > 4:
        yield fault("NCC427", inst, f"a pattern of {len(key(inst, 'pattern'))} pairs; 4 fit")
    yield from sized(inst, out, total, "the pattern")
    if inst.ins:
        yield from alike(inst, inst.ins[0], out)
        yield from worded(inst, "compare_op", COMPARES)


def ranged(inst: Inst) -> Found:
    x, out = inst.ins[0], inst.outs[0]
    yield from alike(inst, x, out)
    for one in inst.ins[1:]:
        yield from column(inst, one, parts(out))
    for name in ("compare_op0", "compare_op1"):
        yield from worded(inst, name, tuple(x for x in COMPARES if x != "not_equal"))
    yield from worded(inst, "reduce_cmd", ("Idle", "ZeroAccumulate", "AddAccumulate"))
    yield from worded(inst, "reduce_op", ("bypass", "max"))
    if abs(key(inst, "fill_value") - FLT_MIN) > 1e31:
        yield fault(
            "NCC427", inst, f"fills with {key(inst, 'fill_value')}; {FLT_MIN} alone is known"
        )


def predicate(inst: Inst) -> Found:
    mask, out = inst.ins[0], inst.outs[0]
    yield from alike(inst, mask, out)
    if dtype(mask) in FLOATS or size_of(dtype(mask)) > 4:
        yield fault("NCC413", inst, f"{inst.opcode} chooses by {dtype(mask)}, no integers")


def copy_predicated(inst: Inst) -> Found:
    yield from predicate(inst)
    source, out = inst.ins[1], inst.outs[0]
    if len(inst.ins) == 3:
        yield from alike(inst, source, out)
        yield from column(inst, inst.ins[2], parts(out))
        yield from worded(inst, "accumulator_cmd", ("Idle", "ZeroAccumulate", "AddAccumulate"))
        yield from worded(inst, "reduce_op", ("bypass", "max"))
        return
    if one_value(inst):
        yield from column(inst, source, parts(out), (dtype(out),))
        return
    yield from alike(inst, source, out)
    if key(inst, "reverse_pred"):
        said = f"{inst.opcode} copies a tensor where its predicate is zero"
        yield fault("NCC427", inst, said, "compare the predicate with 0 first")


def select(inst: Inst) -> Found:
    yield from predicate(inst)
    for one in inst.ins[1:]:
        if isinstance(one, Ap):
            yield from alike(inst, one, inst.outs[0])


def shuffle(inst: Inst) -> Found:
    x, out, mask = inst.ins[0], inst.outs[0], key(inst, "mask")
    yield from same(inst, x, out)
    yield from sized(inst, x, count(out), "the destination")
    if len(mask) != 32 or any(not (0 <= lane < 32 or lane == 255) for lane in mask):
        yield fault("NCC427", inst, f"a mask of {len(mask)} lanes; 32 of 0 to 31, or 255, make one")
        return
    for top in range(0, parts(out), 32):
        used = [lane for lane in mask[: parts(out) - top] if lane != 255]
        if used and top + max(used) >= parts(x):
            said = f"takes partition {top + max(used)} of a source that has {parts(x)}"
            yield fault("NCC420", inst, said)
            return


def turn(inst: Inst) -> Found:
    x, out = inst.ins[0], inst.outs[0]
    yield from same(inst, x, out)
    yield from alike(inst, x, out)
    if parts(x) % 32 or count(x) % 32:
        said = f"turns {parts(x)} partitions of {count(x)} elements, no blocks of 32 by 32"
        yield fault("NCC420", inst, said)


def searched(inst: Inst) -> Found:
    data, *values = inst.ins
    yield from rowwise(inst, *inst.ins, *inst.outs)
    if not 8 <= count(data) <= 16_384:
        yield fault("NCC420", inst, f"searches {count(data)} elements; 8 to 16384 fit")
    for one in values:
        yield from sized(inst, one, 8, "a search")
    if inst.opcode == "Max":
        yield from sized(inst, inst.outs[0], 8, "the largest")
    if inst.opcode in ("MaxIndex", "MaxIndexAndMatchReplace"):
        yield from sized(inst, inst.outs[-1], 8, "the places")
        yield from typed(inst, inst.outs[-1], ("uint16", "uint32"), "the result")
    if inst.opcode.endswith("MatchReplace"):
        yield from alike(inst, data, inst.outs[0])


def indirect_copy(inst: Inst) -> Found:
    data, index = inst.ins
    yield from rowwise(inst, data, index, inst.outs[0])
    yield from same(inst, data, inst.outs[0])
    yield from typed(inst, index, ("uint16",), "the index")
    for one in (data, index):
        if isinstance(one, Ap) and any(step != 1 for step, _ in collapsed(one.ap[1:])):
            said = f"gathers from {one.loc} with jumps; its elements lie side by side"
            yield fault("NCC408", inst, said)
    if parts(data) % 16:
        yield fault("NCC420", inst, f"gathers on {parts(data)} partitions, no cores of 16")
    if key(inst, "num_elem_per_idx") not in (1, 2, 4, 8, 16, 32):
        yield fault("NCC427", inst, f"takes {key(inst, 'num_elem_per_idx')} elements an index")
    if not 0 <= key(inst, "num_valid_indices") <= 16 * count(index):
        yield fault("NCC427", inst, f"uses {key(inst, 'num_valid_indices')} of {16 * count(index)}")


def gather(inst: Inst) -> Found:
    data, index = inst.ins
    yield from rowwise(inst, data, index)
    yield from alike(inst, index, inst.outs[0])
    yield from same(inst, data, inst.outs[0])
    yield from typed(inst, index, ("uint32",), "the index")


def bounds(inst: Inst) -> Found:
    yield from sized(inst, inst.outs[0], 2 * count(inst.ins[0]), "start and end")
    if parts(inst.ins[0]) != 1 or parts(inst.outs[0]) != 1:
        yield fault("NCC420", inst, f"{inst.opcode} works on one partition")


def nonzero(inst: Inst) -> Found:
    yield from sized(inst, inst.outs[0], count(inst.ins[0]) + 1, "places and their number")
    yield from rowwise(inst, inst.ins[0], inst.outs[0])
    yield from typed(inst, inst.outs[0], ("int32",), "the result")
    yield from typed(inst, inst.ins[0], ("int32", "float32"), "the source")


def dropout(inst: Inst) -> Found:
    x, out = inst.ins[0], inst.outs[0]
    yield from alike(inst, x, out)
    yield from same(inst, x, out)
    yield from column(inst, inst.ins[1], parts(out))


def indirect(inst: Inst) -> Found:
    index = inst.ins[1]
    load = inst.opcode == "IndirectLoad"
    table, data = (inst.ins[0], inst.outs[0]) if load else (inst.outs[0], inst.ins[0])
    if not isinstance(table, Ap) or not isinstance(data, Ap):
        return
    if (table.ap[0][1], count(table)) != (parts(data), count(data)):
        said = (
            f"{inst.opcode} moves {table.ap[0][1]} rows of {count(table)} elements and "
            f"{parts(data)} of {count(data)}"
        )
        yield fault("NCC420", inst, said)
    if table.ap[0][0]:
        yield fault("NCC408", inst, f"the rows of {table.loc} begin where the index says; step 0")
    yield from column(inst, index, parts(data), WORDS)
    if key(inst, "index_limit") < 1:
        yield fault(
            "NCC427", inst, f"index_limit is {key(inst, 'index_limit')}; it counts the rows"
        )


RULES: dict[str, Callable[[Inst], Found]] = {
    "TensorScalar": tensor_scalar,
    "TensorScalarPtr": pointer,
    "TensorScalarCache": cached,
    "TensorTensor": tensor_tensor,
    "Activation": activation,
    "ActivationReadAccumulator": read_back,
    "ReadActivationAccumulator": read_back,
    "DveReadAccumulator": read_back,
    "TensorReduce": reduce,
    "Pool": pool,
    "BNStats": statistics,
    "BNStatsAggregate": merge,
    "Iota": affine,
    "TensorScalarAffineSelect": affine,
    "RangeSelect": ranged,
    "Select": select,
    "CopyPredicated": copy_predicated,
    "StreamShuffle": shuffle,
    "StreamTranspose": turn,
    "Max": searched,
    "MaxIndex": searched,
    "MatchReplace": searched,
    "MaxIndexAndMatchReplace": searched,
    "IndirectCopy": indirect_copy,
    "Gather": gather,
    "GetSequenceBounds": bounds,
    "NonzeroWithCount": nonzero,
    "Dropout": dropout,
    "IndirectLoad": indirect,
    "IndirectSave": indirect,
    "IndirectSaveAccumulate": indirect,
}


def shapes(inst: Inst, target: Target) -> NccError | None:
    """The first thing that is wrong with the operands of a kernel's opcode."""
    rule = RULES.get(inst.opcode)
    if rule is None or not all(isinstance(x, (Ap, Imm)) for x in (*inst.ins, *inst.outs)):
        return None
    level = least_level(inst)
    if target.level < level and OPCODES[inst.opcode].level <= target.level:
        said = f"this form of {inst.opcode} does not exist on {target.name}"
        return fault("NCC436", inst, said)
    return next(rule(inst), None)
