"""Opcodes that move data: copies, transposes, DMAs, rows by index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ncc import numerics
from ncc.interp.bir_lanes import random_words
from ncc.interp.bir_memory import Slot, every
from ncc.interp.bir_values import Array, Env, Meaning, fault, fitted, mark, mask_of, put, rows
from ncc.ir.bir import Inst
from ncc.ir.bir_opcodes import key
from ncc.ir.data import numpy_type, size_of

if TYPE_CHECKING:
    from ncc.interp.bir import Interpreter


def copy(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """Same type: the bits; another type: converted, through float32."""
    source = ins[0].values
    if ins[0].dtype != out.dtype:
        source = numerics.widen(source)
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
    if mode == "CCE":
        return summed(m, inst, ins, out)
    if mode != "Transpose" or ins[0].values.ndim != 4:
        said = f"DMACopy in mode {mode} with {ins[0].values.ndim} pairs has no meaning here yet"
        raise fault(inst, said)
    x = ins[0]
    values, shadow = x.values.transpose(3, 1, 2, 0), x.shadow.transpose(3, 1, 2, 0, 4)
    return m.store(inst, out, values, [Slot(values, shadow, x.place, False, x.dtype, 0)])


def summed(m: Interpreter, inst: Inst, ins: list[Any], out: Slot) -> None:
    """The sum of the sources in float32, one after the other."""
    if key(inst, "cce_op") != "add":
        raise fault(inst, f"DMACopy in mode CCE adds; it has no {key(inst, 'cce_op')}")
    total = numerics.widen(fitted(ins[0].values, out))
    for more in ins[1:]:
        total = numerics.alu("add", total, fitted(more.values, out))
    m.store(inst, out, total, ins)


# ---- rows by index ------------------------------------------------------------------------------


def _picked(m: Interpreter, inst: Inst, index: Slot, table: Slot) -> list[tuple[int, int] | None]:
    """For each row the element of the table's location that it begins at, and its index."""
    if not m.memory.known(index):
        raise fault(inst, f"{inst.opcode} reads an index that nothing wrote", "NCC430")
    limit, scale = key(inst, "index_limit"), key(inst, "index_scale")
    found: list[tuple[int, int] | None] = []
    for at in index.values.reshape(-1).astype(np.int64):
        if 0 <= at < limit:
            found.append((table.offset + int(at) * scale, int(at)))
        elif key(inst, "oob_is_err"):
            said = f"{inst.opcode} takes row {int(at)} of {table.place.name}, which has {limit}"
            raise fault(inst, said, "NCC432")
        else:
            found.append(None)
    return found


def _row(m: Interpreter, inst: Inst, operand: Any, start: int) -> Slot:
    """One row of the table's pattern, from an element of its location on."""
    pairs = ((operand.ap[0][0], 1), *operand.ap[1:])
    return m.memory.window(operand.loc, operand.dtype, pairs, start, inst)


def indirect_load(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    table, index = ins
    places = rows(out)
    old, known = places.copy(), out.bits().copy()
    for r, start in enumerate(_picked(m, inst, index, table)):
        if start is not None:
            one = _row(m, inst, inst.ins[0], start[0])
            old[r] = _as(one.values, out.dtype).reshape(-1)
            known[r] = every(one.shadow).reshape(-1)
    out.values[...] = old.reshape(out.values.shape)
    mark(m, inst, out, None if known.all() else known)


def indirect_save(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    data, index = ins
    x = rows(data)
    mask = mask_of(m, x.shape, data)
    adds = inst.opcode == "IndirectSaveAccumulate"
    if adds and key(inst, "op") != "add":
        raise fault(inst, f"IndirectSaveAccumulate adds; it has no {key(inst, 'op')}")
    for r, start in enumerate(_picked(m, inst, index, out)):
        if start is None:
            continue
        one = _row(m, inst, inst.outs[0], start[0])
        bits = None if mask is None else mask[r].reshape(one.values.shape)
        value = x[r].reshape(one.values.shape)
        if adds:
            value = numerics.alu("add", one.values, value)
            if not m.memory.known(one):
                was = every(one.shadow)
                bits = was if bits is None else bits & was
        one.values[...] = _as(value, one.dtype)
        m.memory.wrote(one, bits)


def _as(values: Array, dtype: str) -> Array:
    """The bits for one dtype; through float32 for another."""
    same = values.dtype == numpy_type(dtype)
    return values if same else numerics.cast(numerics.widen(values), dtype)


def memset(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    if key(inst, "mode") == "Random":
        return random_words(m, inst, ins, out, env)
    bits = int(key(inst, "constant")).to_bytes(8, "little")[: size_of(out.dtype)]
    out.values[...] = np.frombuffer(bits, out.values.dtype)[0]
    return m.mark(inst, out, [])


def shuffle(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """Row 32q + j takes row 32q + mask[j]; 255 leaves it."""
    source, mask = ins[0], key(inst, "mask")
    x, old = rows(source), rows(out).copy()
    known, was = source.bits(), out.bits().copy()
    for j in range(old.shape[0]):
        lane = int(mask[j % 32])
        if lane == 255:
            continue
        at = j // 32 * 32 + lane
        if lane > 31 or at >= x.shape[0]:
            said = f"StreamShuffle takes row {at} of a source that has {x.shape[0]}"
            raise fault(inst, said, "NCC432")
        old[j], was[j] = x[at], known[at]
    out.values[...] = old.reshape(out.values.shape)
    mark(m, inst, out, None if was.all() else was)


def stream_transpose(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """Blocks of 32 × 32, each turned in its place."""
    x, bits = rows(ins[0]), ins[0].bits()
    if x.shape[0] % 32 or x.shape[1] % 32:
        raise fault(inst, f"StreamTranspose of {x.shape[0]} × {x.shape[1]}, no blocks of 32 × 32")
    mask = None if m.memory.known(ins[0]) else blocks(bits)
    put(m, inst, out, blocks(x), mask)


def blocks(x: Array) -> Array:
    """Each block of 32 rows × 32 elements transposed in its place."""
    down, across = x.shape
    four = x.reshape(down // 32, 32, across // 32, 32).swapaxes(1, 3)
    return four.reshape(down, across)


MEANING: dict[str, Meaning] = {
    "AbstractCopy": abstract_copy,
    "GenericCopy": copy,
    "Load": copy,
    "Save": copy,
    "TensorCopy": copy,
    "DMACopy": dma_copy,
    "IndirectLoad": indirect_load,
    "IndirectSave": indirect_save,
    "IndirectSaveAccumulate": indirect_save,
    "Memset": memset,
    "StreamShuffle": shuffle,
    "StreamTranspose": stream_transpose,
}
