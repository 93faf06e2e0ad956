"""Pool's general-purpose cores, 16 partitions each, and random numbers (ISA reference 5.14, 5.21).

The bytes of most of these opcodes are our own choice, and so is which words a generator draws.
"""

from __future__ import annotations

import numpy as np

from ncc import numerics, numerics_groups, numerics_random
from ncc.encode.values import at as address_of
from ncc.errors import NccError
from ncc.ir.data import FLOATS
from ncc.ir.isa import At
from ncc.sim.act import merged_marks
from ncc.sim.engine import Engine, Fields, flat, together
from ncc.sim.memory import Array
from ncc.sim.vector import into, read
from ncc.sim.views import View

INDIRECT = 1 << 29
TOPK = 1


def _index(e: Engine, found: View) -> Array:
    """The values of an index; one that nobody wrote is an error, as it chooses."""
    if e.marks(found) is not None:
        raise NccError("NCC903", "reads an index that nobody wrote")
    return flat(found.array)


def indirect_copy(e: Engine, f: Fields) -> None:
    """Elements of the data by the index list of each core."""
    rows, dtype = f.get("nchan", 0), e.dtype(f.get("in_dtype", 0))
    word, at = f["index"], f["src"]
    if word.space != "raw" or not word.byte & INDIRECT:
        raise NccError("NCC912", "the address of its index list is not marked")
    place, count, each = address_of(word.byte & ~INDIRECT), f.get("num", 0), f.get("per_index", 0)
    columns = -(-count // numerics_groups.CORE)
    lists = e.source(At(place.space, place.partition, place.byte, ((1, columns),)), rows, "uint16")
    data = e.source(
        At(at.space, at.partition, at.byte, ((1, f.get("buffer_size", 0)),)), rows, dtype
    )
    to, out = into(e, f)
    if out != dtype:
        raise NccError("NCC912", "an IndirectCopy has one dtype")
    index, old = _index(e, lists), flat(to.array)

    def pick(x: Array) -> Array:
        return numerics_groups.local_gather(flat(x), index, each, count, old.shape[1])

    try:
        found = pick(data.array)
    except IndexError as error:
        raise NccError("NCC912", f"reads {error}") from None
    known, was = e.marks(data), to.element_marks().reshape(old.shape).copy()
    new, width = old.copy(), found.shape[1]
    new[:, :width] = found
    was[:, :width] = True if known is None else pick(known)
    e.write(to, new, None if was.all() else was)


def load_buffer(e: Engine, f: Fields) -> None:
    """The table that the next Gather reads."""
    e.table = read(e, f)


def gather(e: Engine, f: Fields) -> None:
    """One element of the row's table for each index."""
    if e.table is None:
        raise NccError("NCC912", "gathers from no table")
    index = _index(e, read(e, f)).astype(np.int64)
    to, dtype = into(e, f)
    data, known = flat(e.table.array), e.marks(e.table)
    bad = index[(index < 0) | (index >= data.shape[1])]
    if bad.size:
        raise NccError("NCC912", f"reads index {int(bad[0])} of {data.shape[1]} elements a row")
    if data.shape[0] != index.shape[0] or data.dtype != to.array.dtype:
        raise NccError("NCC912", f"gathers {data.dtype} of {data.shape[0]} rows as {dtype}")
    marks = None if known is None else np.take_along_axis(flat(known), index, axis=1)
    e.write(to, np.take_along_axis(data, index, axis=1), marks)


def sequence_bounds(e: Engine, f: Fields) -> None:
    ids = _index(e, read(e, f))
    to, dtype = into(e, f)
    found = numerics_groups.sequence_bounds(ids).reshape(1, -1)
    if ids.shape[0] != 1 or to.array.size != found.size:
        raise NccError("NCC912", f"bounds of {ids.size} ids go to {to.array.size} places")
    e.put(to, found, dtype)


def nonzero(e: Engine, f: Fields) -> None:
    """Places of what is not 0, and how many; the first partition of every core."""
    source, (to, _) = read(e, f), into(e, f)
    x, old = flat(source.array), flat(to.array)
    if old.shape[1] != x.shape[1] + 1:
        raise NccError("NCC912", f"counts {x.shape[1]} elements into {old.shape[1]} places")
    known, was = e.marks(source), to.element_marks().reshape(old.shape).copy()
    new = old.copy()
    offset, padding = (_signed(f.get(n, 0)) for n in ("index_offset", "pad_value"))
    for row in range(0, len(x), numerics_groups.CORE):
        new[row] = numerics_groups.nonzero_with_count(x[row], offset, padding)
        was[row] = True if known is None else flat(known)[row].all()
    e.write(to, new, None if was.all() else was)


def _signed(bits: int) -> int:
    return bits - (1 << 32) if bits >> 31 else bits


def begin_call(e: Engine, f: Fields) -> None:
    """A call of the built-in library: its tensors follow, one a bundle."""
    e.call = {**f, "given": []}


def call_operand(e: Engine, f: Fields) -> None:
    given = e.call.get("given")
    if given is None or f.get("number", 0) != len(given):
        raise NccError("NCC912", "is no operand of a call that has begun")
    given.append(f)
    if len(given) == e.call.get("tensors", 0):
        call, e.call = e.call, {}
        if call.get("function", 0) != TOPK or len(given) != 3:
            raise NccError("NCC900", f"library function {call.get('function', 0)} is not modelled")
        topk(e, call, given)


def topk(e: Engine, call: Fields, given: list[Fields]) -> None:
    """The k largest of each core's snake, ascending, and their numbers."""
    source, best, numbers = given
    rows = source.get("nchan", 0)
    data = e.source(source["tensor"], rows, e.dtype(source.get("dtype", 0)))
    values, places = (
        e.target(x["tensor"], rows, e.dtype(x.get("dtype", 0))) for x in (best, numbers)
    )
    x, known = flat(data.array), e.marks(data)
    n, k = call.get("n", 0), call.get("k", 0)
    found = flat(values.array).copy(), flat(places.array).copy()
    if rows % numerics_groups.CORE or not 0 < k <= n <= numerics_groups.CORE * x.shape[1]:
        raise NccError("NCC912", f"the {k} largest of {n} elements on {rows} partitions")
    for top in range(0, rows, numerics_groups.CORE):
        core = slice(top, top + numerics_groups.CORE)
        line, order = numerics_groups.topk(x[core], n, k)
        for new, part in zip(found, (line, order.astype(found[1].dtype)), strict=True):
            new[core] = numerics_groups.snake(part, new.shape[1], new[core])
    for to, new in zip((values, places), found, strict=True):
        marks = None
        if known is not None:
            row = np.logical_and.reduce(flat(known), axis=1)
            marks = np.repeat(row[:, None], new.shape[1], axis=1)
        e.write(to, new, marks)


# --- random numbers -------------------------------------------------------------------------------


def _generators(e: Engine) -> Array:
    if e.generators is None:
        e.generators = numerics_random.seeded(0, _count(e))
    return e.generators


def _count(e: Engine) -> int:
    """How many generators a lane of the engine has."""
    return 1 if e.name == "Pool" else 4


def _words(e: Engine, to: View) -> Array:
    rows = to.array.shape[0]
    return numerics_random.draw(_generators(e), rows, to.array.size // rows)


def rng(e: Engine, f: Fields) -> None:
    """The low bits of random words; a float gets numbers in [0, 1)."""
    to, dtype = into(e, f)
    words = _words(e, to)
    if dtype in FLOATS:
        e.put(to, numerics_random.uniform(words), dtype)
    else:
        e.write(to, words.astype(to.array.dtype))


def dropout(e: Engine, f: Fields) -> None:
    """0 with the probability of the threshold, or (mode 1) the element with it."""
    rows = f.get("nchan", 0)
    source, (to, dtype) = read(e, f), into(e, f)
    limit = e.scalar(f.get("threshold", 0), f.get("threshold_src", 0), rows)
    x, _ = together(source, to)
    u = numerics_random.uniform(_words(e, to))
    gone = u >= limit.value if f.get("mode", 0) == 1 else u < limit.value
    known = merged_marks(e.marks(source), u.shape[1], limit)
    e.put(to, np.where(gone, np.float32(0), flat(numerics.widen(x))), dtype, known)


def uniform(e: Engine, f: Fields) -> None:
    """Random numbers between two bounds."""
    rows, (to, dtype) = f.get("nchan", 0), into(e, f)
    low, high = (e.scalar(f.get(f"imm{i}", 0), f.get(f"imm{i}_src", 0), rows) for i in range(2))
    u = numerics_random.uniform(_words(e, to))
    span = numerics.alu("subtract", high.value, low.value)
    y = numerics.alu("add", numerics.alu("mult", u, span), low.value)
    e.put(to, y, dtype, merged_marks(None, u.shape[1], low, high))


def seed(e: Engine, f: Fields) -> None:
    x = _index(e, read(e, f))
    e.generators = numerics_random.seeded(int(x[0, 0]), _count(e))


def set_state(e: Engine, f: Fields) -> None:
    x = _index(e, read(e, f))
    words = _generators(e).reshape(numerics_random.LANES, -1)
    words[: len(x), : x.shape[1]] = x[:, : words.shape[1]].astype(np.uint32)


def get_state(e: Engine, f: Fields) -> None:
    to, _ = into(e, f)
    words = _generators(e).reshape(numerics_random.LANES, -1)
    rows, count = flat(to.array).shape
    if count > words.shape[1]:
        raise NccError("NCC912", f"reads {count} words of a lane that has {words.shape[1]}")
    e.write(to, words[:rows, :count].astype(to.array.dtype))


EFFECTS = {
    "IndirectCopy": indirect_copy,
    "PoolBufferLoad": load_buffer,
    "Gather": gather,
    "GetSequenceBounds": sequence_bounds,
    "NonzeroWithCount": nonzero,
    "CustomOpHeader": begin_call,
    "CustomOpPayload": call_operand,
    "Rng": rng,
    "Dropout": dropout,
    "Rand2": uniform,
    "SetRngSeed": seed,
    "RandSetState": set_state,
    "RandGetState": get_state,
}
