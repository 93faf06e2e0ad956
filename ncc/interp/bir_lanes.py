"""Opcodes of the general-purpose cores: gathers, bounds, counts, the k largest; random numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ncc import numerics, numerics_groups, numerics_random
from ncc.interp.bir_memory import Slot
from ncc.interp.bir_values import (
    Array,
    Env,
    Meaning,
    column,
    fault,
    mark,
    mask_of,
    put,
    row_mask,
    rows,
)
from ncc.ir.bir import Inst
from ncc.ir.bir_opcodes import key
from ncc.ir.data import FLOATS
from ncc.ir.kernel_inline import refused

if TYPE_CHECKING:
    from ncc.interp.bir import Interpreter

GENERATORS = {"Pool": 1, "DVE": 4}  # generators of random numbers a lane


def known_index(m: Interpreter, inst: Inst, index: Slot) -> None:
    if not m.memory.known(index):
        raise fault(inst, f"{inst.opcode} reads an index that nothing wrote", "NCC430")


def indirect_copy(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """Elements by the index list of each core of 16 partitions."""
    x, index, places = rows(ins[0]), rows(ins[1]), rows(out)
    known_index(m, inst, ins[1])
    count = key(inst, "num_valid_indices") or -1
    each = key(inst, "num_elem_per_idx")

    def pick(a: Array) -> Array:
        return numerics_groups.local_gather(a, index, each, count, places.shape[1])

    try:
        found = pick(x)
    except IndexError as error:
        raise fault(inst, f"{inst.opcode} reads {error}", "NCC432") from None
    bits = mask_of(m, x.shape, ins[0])
    was = mask_of(m, places.shape, out)
    width = found.shape[1]
    if bits is not None or was is not None:
        full = np.ones(places.shape, np.bool_) if was is None else was.copy()
        full[:, :width] = True if bits is None else pick(bits)
        was = None if full.all() else full
    values = places.copy()
    values[:, :width] = found
    out.values[...] = values.reshape(out.values.shape)
    mark(m, inst, out, was)


def gather(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """out[p, k] = data[p, index[p, k]]."""
    x, index = rows(ins[0]), rows(ins[1]).astype(np.int64)
    known_index(m, inst, ins[1])
    bad = index[(index < 0) | (index >= x.shape[1])]
    if bad.size:
        said = f"Gather reads index {int(bad[0])} of {x.shape[1]} elements a row"
        raise fault(inst, said, "NCC432")
    bits = mask_of(m, x.shape, ins[0])
    marks = None if bits is None else np.take_along_axis(bits, index, axis=1)
    out.values[...] = np.take_along_axis(x, index, axis=1).reshape(out.values.shape)
    mark(m, inst, out, marks)


def sequence_bounds(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    if not m.memory.known(ins[0]):
        raise fault(inst, "GetSequenceBounds reads ids that nothing wrote", "NCC430")
    put(m, inst, out, numerics_groups.sequence_bounds(rows(ins[0])).reshape(1, -1), None)


def nonzero(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """Places of what is not 0 and how many; the first partition of every core."""
    x, values = rows(ins[0]), rows(out).copy()
    marks = out.bits().copy()
    row = row_mask(m, ins[0], ins[0])
    for at in range(0, len(x), numerics_groups.CORE):
        offset, padding = key(inst, "index_offset"), key(inst, "padding_val")
        values[at] = numerics_groups.nonzero_with_count(x[at], offset, padding)
        marks[at] = True if row is None else row[at, 0]
    out.values[...] = values.reshape(out.values.shape)
    mark(m, inst, out, None if marks.all() else marks)


def custom(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """The functions of the built-in library."""
    if key(inst, "opFunctionName") != "topk" or not key(inst, "is_builtin"):
        raise refused(inst)
    n, k = key(inst, "arguments")
    x, second = rows(ins[0]), m.memory.slot(inst.outs[1], env, inst)
    mask = [row_mask(m, one, ins[0]) for one in (out, second)]
    values, places = rows(out).copy(), rows(second).copy()
    for top in range(0, len(x), numerics_groups.CORE):
        core = slice(top, top + numerics_groups.CORE)
        best, at = numerics_groups.topk(x[core], n, k)
        values[core] = numerics_groups.snake(best, values.shape[1], values[core])
        line = at.astype(places.dtype)
        places[core] = numerics_groups.snake(line, places.shape[1], places[core])
    for slot, found, marks in ((out, values, mask[0]), (second, places, mask[1])):
        slot.values[...] = found.reshape(slot.values.shape)
        mark(m, inst, slot, marks)


# ---- random numbers -----------------------------------------------------------------------------


def states(m: Interpreter, inst: Inst) -> Array:
    """The generators of the instruction's engine."""
    engine = "Pool" if inst.engine == "Pool" else "DVE"
    found = m.random.get(engine)
    if found is None:
        found = m.random[engine] = numerics_random.seeded(0, GENERATORS[engine])
    return found


def words(m: Interpreter, inst: Inst, out: Slot) -> Array:
    count, places = rows(out).shape
    return numerics_random.draw(states(m, inst), count, places)


def random_words(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """The low bits of random words; a float gets numbers in [0, 1)."""
    found = words(m, inst, out)
    if out.dtype in FLOATS:
        return put(m, inst, out, numerics_random.uniform(found), None)
    out.values[...] = found.astype(out.values.dtype).reshape(out.values.shape)
    return mark(m, inst, out, None)


def dropout(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    u = numerics_random.uniform(words(m, inst, out))
    limit = column(ins[1], len(u))
    gone = u >= limit if key(inst, "is_keep_threshold") else u < limit
    x = numerics.widen(rows(ins[0]))
    put(m, inst, out, np.where(gone, np.float32(0), x), mask_of(m, u.shape, *ins))


def uniform(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """Numbers from the first operand to the second."""
    u = numerics_random.uniform(words(m, inst, out))
    low, high = column(ins[0], len(u)), column(ins[1], len(u))
    span = numerics.alu("subtract", high, low)
    y = numerics.alu("add", numerics.alu("mult", u, span), low)
    put(m, inst, out, y, mask_of(m, u.shape, *ins))


def set_state(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """Words of the generators; one word alone seeds them all."""
    known_index(m, inst, ins[0])
    x = rows(ins[0])
    engine = "Pool" if inst.engine == "Pool" else "DVE"
    if inst.opcode == "SetRandState":
        m.random[engine] = numerics_random.seeded(int(x[0, 0]), GENERATORS[engine])
        return
    flat = states(m, inst).reshape(numerics_random.LANES, -1)
    flat[: len(x), : x.shape[1]] = x[:, : flat.shape[1]].astype(np.uint32)


def get_state(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    count, places = rows(out).shape
    flat = states(m, inst).reshape(numerics_random.LANES, -1)
    if places > flat.shape[1]:
        said = f"{inst.opcode} reads {places} words of a lane that has {flat.shape[1]}"
        raise fault(inst, said)
    out.values[...] = flat[:count, :places].astype(out.values.dtype).reshape(out.values.shape)
    mark(m, inst, out, None)


MEANING: dict[str, Meaning] = {
    "IndirectCopy": indirect_copy,
    "Gather": gather,
    "GetSequenceBounds": sequence_bounds,
    "NonzeroWithCount": nonzero,
    "CustomOp": custom,
    "Rng": random_words,
    "Dropout": dropout,
    "Rand2": uniform,
    "SetRandState": set_state,
    "RandSetState": set_state,
    "GetRandState": get_state,
    "RandGetState": get_state,
}
