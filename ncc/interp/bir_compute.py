"""Opcodes that compute element by element: ALU, activation, predicates; and the matmul."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ncc import numerics, numerics_rows
from ncc.interp import bir_psum as psum
from ncc.interp.bir_memory import Slot, every
from ncc.interp.bir_values import (
    Array,
    Env,
    Meaning,
    column,
    fault,
    mark,
    mask_of,
    put,
    raw_of,
    rows,
    value_of,
)
from ncc.ir.bir import Imm, Inst
from ncc.ir.bir_keys import START
from ncc.ir.bir_opcodes import key
from ncc.ir.data import FLOATS

if TYPE_CHECKING:
    from ncc.interp.bir import Interpreter


def matmult(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    moving, stationary = ins[0], ins[1]
    shape = out.values.shape
    x, w = moving.matrix(), stationary.matrix()
    flag = key(inst, "accumulation_flag")
    if key(inst, "is_transpose") and m.target.pe_copies_transpose:
        if flag:
            psum.copied(out, inst)
        out.values[...] = numerics.cast(w.T, out.dtype).reshape(shape)
        _mark_product(m, out, moving, stationary, True)
        return
    over = key(inst, "accumulate_over")
    adds = key(inst, "accumulate") or (bool(over) and any(env.get(v, 0) for v in over))
    if flag:
        psum.begin(out, flag, inst)
        adds = True
        fresh_sum = bool(flag & START)
    else:
        fresh_sum = not adds
    total = numerics.widen(out.values) if adds else np.zeros(shape, np.float32)
    for part in numerics.matmul_passes(w, x):
        total = numerics.add(total, part.reshape(shape))
    out.values[...] = numerics.cast(total, out.dtype)
    _mark_product(m, out, moving, stationary, fresh_sum)
    if flag:
        psum.end(out, flag)


def _mark_product(m: Interpreter, out: Slot, moving: Slot, stationary: Slot, anew: bool) -> None:
    """Row m and column n of a product are known where all of both operands' columns are."""
    known = m.memory.known
    if known(moving) and known(stationary) and (anew or known(out)):
        m.memory.wrote(out)
        return
    down, across = every(stationary.bits(), 0), every(moving.bits(), 0)
    mask = (down[:, None] & across[None, :]).reshape(out.values.shape)
    m.memory.wrote(out, mask if anew else mask & every(out.shadow))


# ---- accumulators -------------------------------------------------------------------------------


def accumulate(
    m: Interpreter, inst: Inst, command: str, op: str, y: Array, bits: Any, first: Any = None
) -> None:
    """Fold float32 values [partitions, elements] into the accumulator of the engine.

    `bits` says which were known (None: all). `first` is what it begins with: by command the
    identity, what it holds, or (column, known).
    """
    start = begun(m, inst, command, op, len(y), first)
    if start is None:
        return
    before, known = start
    known = known if bits is None else known & every(bits, 1)
    if command != "Zero":
        before = numerics_rows.folded(op, y, before)
    m.set_sum(inst.engine, before, known)


def begun(
    m: Interpreter, inst: Inst, command: str, op: str, count: int, first: Any = None
) -> tuple[Array, Array] | None:
    """What an accumulator begins with, and whether that is known; None where it is left alone."""
    if command == "Idle":
        return None
    if command in ("AddAccumulate", "Accumulate"):
        return m.sum_of(inst.engine, count)
    if command == "LoadAccumulate":
        return first
    value = 0.0 if command == "Zero" else numerics_rows.IDENTITY[op] if first is None else first
    return np.full(count, value, np.float32), np.ones(count, np.bool_)


def read_sum(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    count = out.values.shape[0]
    engine = "DVE" if inst.opcode == "DveReadAccumulator" else "Activation"
    total, known = m.sum_of(engine, count)
    if engine == "DVE" and key(inst, "negated"):
        total = -total
    put(m, inst, out, total.reshape(count, 1), None if known.all() else known.reshape(count, 1))


def activation(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    func = key(inst, "func")
    if func == "Copy" and ins[0].dtype == out.dtype:
        y = ins[0].values.reshape(out.values.shape)
    else:
        x = value_of(ins[0], out)
        bias = value_of(ins[1], out) if len(ins) > 1 else 0.0
        scale = value_of(ins[2], out) if len(ins) > 2 else key(inst, "scale")
        y = numerics.activation(func, x, scale, bias, key(inst, "alpha"))
    m.store(inst, out, y, ins)
    command = key(inst, "acc")
    if command != "Idle":
        op = key(inst, "reduce_op")
        y = numerics.widen(y).reshape(out.values.shape[0], -1)
        bits = None if m.memory.known(out) else out.bits()
        accumulate(m, inst, command, "add" if op == "bypass" else op, y, bits)


# ---- one tensor and scalars, two tensors --------------------------------------------------------


def stage(op: str, x: Array, scalar: Any, reverse: bool) -> Array:
    """One step of a tensor-scalar instruction in float32."""
    if op == "bypass":
        return x
    scalar = np.asarray(scalar, np.float32)
    return numerics.alu(op, scalar, x) if reverse else numerics.alu(op, x, scalar)


def bit_stage(op: str, x: Array, scalar: Array, reverse: bool) -> Array:
    if op == "bypass":
        return x
    return numerics.bitvec(op, scalar, x) if reverse else numerics.bitvec(op, x, scalar)


def on_bits(inst: Inst, *names: str) -> bool:
    """Whether an instruction works on bits instead of numbers."""
    return any(key(inst, name) in numerics.BITVEC for name in names)


def tensor_scalar(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """Also TensorScalarPtr: its scalars are operands instead of keys."""
    if inst.opcode == "TensorScalar":
        scalars: list[Any] = [Imm(key(inst, "const0")), Imm(key(inst, "const1"))]
    elif key(inst, "is_scalar_tensor_tensor"):
        return scalar_tensor_tensor(m, inst, ins, out)
    elif key(inst, "is_tensor_tensor_scan"):
        return scan(m, inst, ins, out)
    else:
        scalars = ins[1:3]
    if on_bits(inst, "op0", "op1"):
        x = raw_of(ins[0], out, out.dtype)
        for i, scalar in enumerate(scalars):
            one = raw_of(scalar, out, ins[0].dtype)
            x = bit_stage(key(inst, f"op{i}"), x, one, key(inst, f"reverse{i}"))
    else:
        x = value_of(ins[0], out)
        for i, scalar in enumerate(scalars):
            x = stage(key(inst, f"op{i}"), x, value_of(scalar, out), key(inst, f"reverse{i}"))
    return m.store(inst, out, x, ins)


def scalar_tensor_tensor(m: Interpreter, inst: Inst, ins: list[Any], out: Slot) -> None:
    x, scalar, y = (value_of(one, out) for one in ins)
    t = stage(key(inst, "op0"), x, scalar, key(inst, "reverse0"))
    m.store(inst, out, stage(key(inst, "op1"), t, y, key(inst, "reverse1")), ins)


def scan(m: Interpreter, inst: Inst, ins: list[Any], out: Slot) -> None:
    """r = (x op0 r) op1 y at every element; the carried r is float32."""
    x, y = rows(ins[0]), rows(ins[1])
    first = np.broadcast_to(column(ins[2], len(x)).reshape(-1), (len(x),))
    swap0, swap1 = not key(inst, "reverse0"), key(inst, "reverse1")
    values = numerics_rows.scan(key(inst, "op0"), key(inst, "op1"), x, y, first, swap0, swap1)
    bits = mask_of(m, x.shape, *ins)
    put(m, inst, out, values, None if bits is None else np.logical_and.accumulate(bits, axis=1))


def tensor_tensor(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    op = key(inst, "op")
    if op in numerics.BITVEC:
        a, b = (raw_of(x, out, out.dtype) for x in ins)
        return m.store(inst, out, numerics.bitvec(op, a, b), ins)
    if key(inst, "integer"):
        a, b = (raw_of(x, out, out.dtype) for x in ins)
        return m.store(inst, out, numerics.integer(op, a, b, out.dtype), ins)
    return m.store(inst, out, numerics.alu(op, value_of(ins[0], out), value_of(ins[1], out)), ins)


def reciprocal(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    m.store(inst, out, numerics.alu("divide", np.ones((), np.float32), value_of(ins[0], out)), ins)


# ---- predicates ---------------------------------------------------------------------------------


def chosen(m: Interpreter, inst: Inst, mask: Slot) -> Array:
    """Where a predicate is not zero; what nothing wrote may not choose."""
    if mask.dtype in FLOATS:
        raise fault(inst, f"{inst.opcode} chooses by {mask.dtype}; a predicate holds integers")
    if not m.memory.known(mask):
        raise fault(inst, f"{inst.opcode} chooses by bytes that nothing wrote", "NCC430")
    return rows(mask) != 0


def either(choose: Array, yes: Any, no: Any) -> Any:
    """The mask of a choice between two, each with its own (None: known)."""
    if yes is None and no is None:
        return None
    full = np.ones(choose.shape, np.bool_)
    return np.where(choose, full if yes is None else yes, full if no is None else no)


def _exact(source: Any, out: Slot) -> Array:
    """What is written of a source: its bits if it has the destination's dtype."""
    if isinstance(source, Imm):
        return numerics.cast(np.asarray([[source.value]], np.float32), out.dtype)
    x = source.values.reshape(source.values.shape[0], -1)
    return x if source.dtype == out.dtype else numerics.cast(numerics.widen(x), out.dtype)


def copy_predicated(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    if len(ins) == 3:
        return select_reduce(m, inst, ins, out)
    choose = chosen(m, inst, ins[0])
    choose = ~choose if key(inst, "reverse_pred") else choose
    old = rows(out)
    was = mask_of(m, old.shape, out)
    values = np.where(choose, np.broadcast_to(_exact(ins[1], out), old.shape), old)
    bits = either(choose, mask_of(m, old.shape, ins[1]), was)
    out.values[...] = values.reshape(out.values.shape)
    return mark(m, inst, out, bits)


def select_reduce(m: Interpreter, inst: Inst, ins: list[Any], out: Slot) -> None:
    choose = chosen(m, inst, ins[0])
    choose = ~choose if key(inst, "reverse_pred") else choose
    x, other = numerics.widen(rows(ins[1])), column(ins[2], len(choose))
    y = np.where(choose, x, other)
    bits = either(choose, mask_of(m, x.shape, ins[1]), mask_of(m, x.shape, ins[2]))
    put(m, inst, out, y, bits)
    accumulate(m, inst, key(inst, "accumulator_cmd"), "max", y, bits, numerics.FP32_MIN)


def select(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    choose, shape = chosen(m, inst, ins[0]), rows(out).shape
    values = np.where(choose, _exact(ins[1], out), _exact(ins[2], out))
    bits = either(choose, mask_of(m, shape, ins[1]), mask_of(m, shape, ins[2]))
    out.values[...] = values.reshape(out.values.shape)
    mark(m, inst, out, bits)


MEANING: dict[str, Meaning] = {
    "Matmult": matmult,
    "Activation": activation,
    "ActivationReadAccumulator": read_sum,
    "ReadActivationAccumulator": read_sum,
    "DveReadAccumulator": read_sum,
    "TensorScalar": tensor_scalar,
    "TensorScalarPtr": tensor_scalar,
    "TensorTensor": tensor_tensor,
    "Reciprocal": reciprocal,
    "CopyPredicated": copy_predicated,
    "Select": select,
}
