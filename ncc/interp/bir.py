"""What BIR means at every stage, from tiles in loops to placed bytes.

Instructions run in program order: dependences, waits and queues only say what else would be right.
A matmul adds passes of products to PSUM in float32; whether it begins a sum is said by `accumulate`
until mm-acc-flags, by its flags from then on. Everything else computes in float32 and rounds once,
when it writes. It is an error when a byte that nothing wrote reaches an output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncc import numerics
from ncc.errors import NccError
from ncc.interp import bir_psum as psum
from ncc.interp.bir_memory import Bits, Memory, Slot, every
from ncc.ir.bir import Block, Imm, Inst, Module
from ncc.ir.bir_keys import START
from ncc.ir.bir_opcodes import OPCODES, key
from ncc.ir.data import size_of
from ncc.target import Target

Array = NDArray[Any]
Watch = dict[str, Array]
Env = dict[str, int]
INNER = {"X": 1, "XY": 2, "XYZ": 3}


def run(
    module: Module, target: Target, inputs: Sequence[Array], watch: Watch | None = None
) -> list[Array]:
    """The outputs for `inputs`; `watch`, if given, receives every set's values by its name."""
    func = module.main
    machine = Interpreter(module, target)
    memory = machine.memory
    takes = [of for of in func.sets if of.kind == "ExternalInput"]
    for of, given in zip(takes, inputs, strict=True):
        held = numerics.cast(np.asarray(given), of.declared or of.dtype)
        memory.fill(of, numerics.cast(held, of.dtype).reshape(of.shape))
    for block in func.blocks:
        machine.block(block, {})
    outputs: list[Array] = []
    for of in func.sets:
        if of.kind == "ExternalOutput":
            values, written = memory.whole(of)
            if not written.all():
                at_ = tuple(int(i) for i in np.argwhere(~written)[0])
                said = (
                    f"{int((~written).sum())} elements of the output {of.name} hold bytes that "
                    f"nothing wrote, the first at {at_}"
                )
                raise NccError("NCC430", said, of.origin.place(of.name))
            outputs.append(values)
    if watch is not None:
        watch.update({of.name: memory.whole(of)[0] for of in func.sets})
    return outputs


class Interpreter:
    """One run: memory, and the accumulators that no address names."""

    def __init__(self, module: Module, target: Target) -> None:
        self.target = target
        self.memory = Memory(module.main.sets, target)
        self.flags = any(
            k == "accumulation_flag"
            for block in module.main.blocks
            for inst in block.insts
            for k, _ in inst.keys
        )
        self.sums: dict[str, tuple[Array, Bits]] = {}

    def block(self, block: Block, env: Env) -> None:
        for inst in block.insts:
            if inst.axis is not None:
                name, low, high, stride = inst.axis
                for value in range(low, high, stride):
                    env[name] = value
                    for body in inst.blocks:
                        self.block(body, env)
                env.pop(name, None)
            else:
                self.step(inst, env)

    def step(self, inst: Inst, env: Env) -> None:
        meaning = MEANING.get(inst.opcode)
        if meaning is None:
            if OPCODES[inst.opcode].family in ("sync", "terminator") or inst.opcode in QUIET:
                return
            said = f"{inst.opcode} has no meaning here yet; a later issue brings it"
            raise NccError("NCC433", said, inst.origin.place(inst.name))
        slot = self.memory.slot
        ins = [x if isinstance(x, Imm) else slot(x, env, inst) for x in inst.ins]
        outs = [slot(x, env, inst) for x in inst.outs]
        if self.flags and inst.engine != "PE":
            for each in ins:
                if isinstance(each, Slot) and each.place.memory == "PSUM":
                    psum.check_read(each, inst)
        meaning(self, inst, ins, outs[0] if outs else None, env)

    def store(self, inst: Inst, out: Slot, value: Array, sources: Sequence[Slot | Imm]) -> None:
        """Write a result, rounded once, with the shadow of what it was made of."""
        values = numerics.cast(value, out.dtype)
        shape = out.values.shape
        out.values[...] = values if values.shape == shape else values.reshape(shape)
        self.mark(inst, out, sources)

    def mark(self, inst: Inst, out: Slot, sources: Sequence[Slot | Imm]) -> None:
        known = self.memory.known
        mask = None
        for each in sources:
            if not isinstance(each, Imm) and not known(each):
                bits = fitted(every(each.shadow), out)
                mask = bits if mask is None else mask & bits
        self.memory.wrote(out, mask)
        if self.flags and inst.engine != "PE" and out.place.memory == "PSUM":
            psum.foreign(out)


def fitted(x: Array, out: Slot) -> Array:
    """An operand in the destination's shape: walked alike, or one value a partition."""
    shape = out.values.shape
    if x.shape == shape:
        return x
    if x.size == out.values.size:
        return x.reshape(shape)
    column = x.reshape(*shape[: out.down], *[1] * (len(shape) - out.down))
    return np.broadcast_to(column, shape)


def value_of(source: Any, out: Slot) -> Any:
    """A source's float32 values as the destination walks them; a number for an immediate."""
    if isinstance(source, Imm):
        return np.float32(source.value)
    x = source.values
    return numerics.widen(x if x.shape == out.values.shape else fitted(x, out))


# ---- one function an opcode ---------------------------------------------------------------------


def copy(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """Same type: the bits; another type: converted."""
    source = ins[0].values
    if source.shape != out.values.shape:
        source = source.reshape(out.values.shape)
    m.store(inst, out, source, ins)


def abstract_copy(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    if not key(inst, "transpose"):
        return copy(m, inst, ins, out, env)
    return turned(m, inst, ins[0], out)


def turned(m: Interpreter, inst: Inst, source: Slot, out: Slot) -> None:
    """The dimensions that walk the source's rows go behind the others."""
    split = source.down
    order = (*range(split, source.values.ndim), *range(split))
    values = source.values.transpose(order).reshape(out.values.shape)
    shadow = source.shadow.transpose(*order, source.values.ndim)
    shadow = shadow.reshape(*out.values.shape, shadow.shape[-1])
    m.store(inst, out, values, [Slot(values, shadow, source.place, False, source.dtype, 0)])


def dma_copy(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    mode = key(inst, "mode")
    if mode == "Copy":
        return copy(m, inst, ins, out, env)
    if mode != "Transpose" or ins[0].values.ndim != 4:
        said = f"DMACopy in mode {mode} with {ins[0].values.ndim} pairs has no meaning here yet"
        raise NccError("NCC433", said, inst.origin.place(inst.name))
    x = ins[0]
    values, shadow = x.values.transpose(3, 1, 2, 0), x.shadow.transpose(3, 1, 2, 0, 4)
    return m.store(inst, out, values, [Slot(values, shadow, x.place, False, x.dtype, 0)])


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
    rows, columns = every(stationary.bits(), 0), every(moving.bits(), 0)
    mask = (rows[:, None] & columns[None, :]).reshape(out.values.shape)
    m.memory.wrote(out, mask if anew else mask & every(out.shadow))


def activation(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    x = value_of(ins[0], out)
    bias = value_of(ins[1], out) if len(ins) > 1 else 0.0
    y = numerics.activation(key(inst, "func"), x, key(inst, "scale"), bias, key(inst, "alpha"))
    m.store(inst, out, y, ins)
    command = key(inst, "acc")
    if command in ("ZeroAccumulate", "AddAccumulate", "Accumulate"):
        op = key(inst, "reduce_op")
        op = "add" if op == "bypass" else op
        known = every(out.bits(), 1)
        total = numerics.reduce(op, y.reshape(known.size, -1), (1,))
        if command != "ZeroAccumulate" and "Activation" in m.sums:
            old, was = m.sums["Activation"]
            total, known = numerics.alu(op, old[: len(total)], total), known & was[: len(total)]
        m.sums["Activation"] = total, known


def read_sum(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    rows = out.values.shape[0]
    nothing = np.full(rows, np.nan, np.float32), np.zeros(rows, np.bool_)
    total, known = m.sums.get("Activation", nothing)
    m.store(inst, out, total[:rows].reshape(out.values.shape), [])
    if not known[:rows].all():
        m.memory.wrote(out, known[:rows].reshape(out.values.shape))


def stage(op: str, x: Array, scalar: Any, reverse: bool) -> Array:
    """One step of a tensor-scalar instruction."""
    if op == "bypass":
        return x
    number = (
        np.broadcast_to(np.asarray(scalar, x.dtype), x.shape) if op in numerics.BITVEC else scalar
    )
    if op in numerics.BITVEC:
        return numerics.bitvec(op, number, x) if reverse else numerics.bitvec(op, x, number)
    scalar = np.asarray(scalar, np.float32)
    return numerics.alu(op, scalar, x) if reverse else numerics.alu(op, x, scalar)


def tensor_scalar(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    op0, op1 = key(inst, "op0"), key(inst, "op1")
    x = ins[0].values if op0 in numerics.BITVEC else value_of(ins[0], out)
    x = stage(op0, x, key(inst, "const0"), key(inst, "reverse0"))
    m.store(inst, out, stage(op1, x, key(inst, "const1"), key(inst, "reverse1")), ins)


def tensor_scalar_ptr(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    x = value_of(ins[0], out)
    for i, scalar in enumerate(ins[1:3]):
        op, reverse = key(inst, f"op{i}"), key(inst, f"reverse{i}")
        x = stage(op, x, value_of(scalar, out), reverse)
    m.store(inst, out, x, ins)


def tensor_tensor(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    op = key(inst, "op")
    if op in numerics.BITVEC:
        a, b = (fitted(x.values, out) for x in ins)
        return m.store(inst, out, numerics.bitvec(op, a, b), ins)
    return m.store(inst, out, numerics.alu(op, value_of(ins[0], out), value_of(ins[1], out)), ins)


def tensor_reduce(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """Fold the innermost dimensions; `negate` after the fold."""
    x = ins[0]
    inner = INNER[key(inst, "axis")]
    axes = tuple(range(max(1, x.values.ndim - inner), x.values.ndim))
    y = numerics.reduce(key(inst, "op"), x.values, axes)
    known = every(every(x.shadow), axes).reshape(out.values.shape)
    m.store(inst, out, -y if key(inst, "negate") else y, [])
    if not m.memory.known(x):
        m.memory.wrote(out, known)


def memset(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    bits = int(key(inst, "constant")).to_bytes(8, "little")[: size_of(out.dtype)]
    out.values[...] = np.frombuffer(bits, out.values.dtype)[0]
    m.mark(inst, out, [])


def reciprocal(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    m.store(inst, out, numerics.alu("divide", np.ones((), np.float32), value_of(ins[0], out)), ins)


MEANING: dict[str, Callable[[Interpreter, Inst, list[Any], Any, Env], None]] = {
    "AbstractCopy": abstract_copy,
    "GenericCopy": copy,
    "Load": copy,
    "Save": copy,
    "TensorCopy": copy,
    "DMACopy": dma_copy,
    "Matmult": matmult,
    "Activation": activation,
    "ActivationReadAccumulator": read_sum,
    "ReadActivationAccumulator": read_sum,
    "TensorScalar": tensor_scalar,
    "TensorScalarPtr": tensor_scalar_ptr,
    "TensorTensor": tensor_tensor,
    "TensorReduce": tensor_reduce,
    "Memset": memset,
    "Reciprocal": reciprocal,
}
QUIET = {"LoadActFuncSet"}  # tables that the functions of `numerics` do not need
