"""Direct DMAs: D4 alone, or with the extension DA that follows it (ISA reference 5.25)."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import numpy as np

from ncc import numerics
from ncc.encode.codes import TAG_SIZE
from ncc.encode.values import at as address_of
from ncc.errors import NccError
from ncc.ir.data import size_of
from ncc.ir.isa import At, Dram
from ncc.sim.engine import Engine, Fields, Flight
from ncc.sim.memory import SBUF_PITCH, Memory
from ncc.sim.race import START
from ncc.sim.twins import Bytes, kept
from ncc.sim.views import Dims, View, dma_view

COPY, INDEXED, TRANSPOSE = 0, 1, 2
FROM, TO, SKIPS = 1, 2, 4  # bits of an Extension's indirect_flags
RUN_TYPES = {1: "uint8", 2: "uint16", 4: "uint32"}
QUEUE_STEP = 16  # what a completion adds


def issue(e: Engine, f: Fields, extension: Fields | None) -> Flight:
    """Checks a DMA, tells the race check what it will touch, and gives what is to happen later."""
    _may_trigger(e, f)
    operation = f.get("dge_op", 0)
    dtype: tuple[str, str] | None = None
    if operation == TRANSPOSE and extension is not None:
        source, to = _transposing(e, f, extension)
        move = _mover(e, source, to, True)
    elif operation == COPY and extension is None:
        source, to, dtype = _copying(e, f)
        move = _mover(e, source, to, False, dtype)
    elif operation == INDEXED and extension is not None:
        return indexed(e, f, extension)
    else:
        raise NccError("NCC900", f"dge_op {operation} is not modelled")
    e.issued += 1
    touch(e, source, to, values=kept(e.mem, source, to, dtype))
    return Flight(move, f["semaphore"], f["sem_increment"], START, e.by)


def touch(
    e: Engine, source: View, to: View, serial: bool = False, values: Bytes | None = None
) -> None:
    """Tells the race check what a DMA reads and writes."""
    by = (e.clock, e.queue, e.issued, e.by)
    if source.space.known is not None:
        e.race.access(source.box, False, *by, serial)
    if to.space.known is not None:
        e.race.access(to.box, True, *by, serial, values)


def indexed(e: Engine, f: Fields, x: Fields) -> Flight:
    """Rows that begin where an index says, or a destination that is added to."""
    flags, adds = x.get("indirect_flags", 0), bool(x.get("compute_op", 0))
    pairs: list[tuple[View, View]] = []
    dtype = e.dtype(f.get("dst_dtype", 0))
    if flags & (FROM | TO):
        if e.name != "Pool":
            raise NccError("NCC914", f"{e.name} makes no descriptors from an index; Pool does")
        starts = _starts(e, x, flags)
    else:
        starts = [None]
    e.issued += 1
    for number, start in enumerate(starts):
        if flags & (FROM | TO) and start is None:
            continue
        row = f if start is None else _row(f, number, start, flags)
        source, to = _typed_sides(e, row)
        values = None if adds else kept(e.mem, source, to, (dtype, dtype))
        touch(e, source, to, serial=True, values=values)
        if adds:
            touch(e, to, to, serial=True)
        pairs.append((source, to))
    moves = [_mover(e, a, b, False, (dtype, dtype), adds) for a, b in pairs]

    def move() -> None:
        for one in moves:
            one()

    return Flight(move, f["semaphore"], f["sem_increment"], START, e.by)


def _starts(e: Engine, x: Fields, flags: int) -> list[int | None]:
    """For each row the bytes from the table's start; None for a row that is outside and skipped."""
    side = "src" if flags & FROM else "dst"
    rows, step = x.get("index_channels", 0), x.get("tile_src_row_step", 0)
    at = address_of(x.get(f"{side}_index", 0))
    if at.space != "sb" or not 0 < rows <= 128:
        raise NccError("NCC912", f"has {rows} indices in {at.space}")
    found = dma_view(e.mem, At("sb", at.partition, at.byte), ((SBUF_PITCH, rows),), "int32")
    e.race.access(found.box, False, e.clock, e.queue, e.issued + 1, e.by)
    if not found.written(e.mem):
        raise NccError("NCC903", "takes rows by an index that nobody wrote")
    bound = x.get(f"{side}_bound_lo", 0) | x.get(f"{side}_bound_hi", 0) << 32
    starts: list[int | None] = []
    for index in found.array.reshape(-1):
        start = int(index) * step
        if 0 <= start < bound:
            starts.append(start)
        elif flags & SKIPS:
            starts.append(None)
        else:
            said = f"takes row {int(index)} of {bound // max(step, 1)}"
            raise NccError("NCC905", said, hint="clamp the index, or pass oob_mode.skip")
    return starts


def _row(f: Fields, number: int, start: int, flags: int) -> Fields:
    """The copy of one row: the slowest step taken once."""
    row = dict(f)
    for side, jumps in (("src", flags & FROM), ("dst", flags & TO)):
        steps, nums = f.get(f"{side}_step", (0, 0)), f.get(f"{side}_num", (1, 1))
        row[side] = _further(f[side], start if jumps else number * steps[1])
        row[f"{side}_step"], row[f"{side}_num"] = (steps[0], 0), (nums[0], 1)
    return row


def _further(address: Any, step: int) -> Dram | At:
    """An address some bytes on; on chip a partition is SBUF_PITCH bytes."""
    if isinstance(address, Dram):
        return Dram(address.var, address.byte + step)
    if not isinstance(address, At):
        raise NccError("NCC900", "an address needs a generated descriptor")
    down, inside = divmod(step, SBUF_PITCH)
    return At(address.space, address.partition + down, address.byte + inside)


def _typed_sides(e: Engine, f: Fields) -> tuple[View, View]:
    """Both sides of a copy as the numbers that they are."""
    sides: list[View] = []
    for side in ("src", "dst"):
        address, walk, run = _side(f, side)
        dtype = e.dtype(f.get(f"{side}_dtype", 0))
        size = size_of(dtype)
        if run % size:
            raise NccError("NCC912", f"a run of {run} bytes holds no whole elements of {size}")
        sides.append(_sided(e.mem, address, (*walk, (size, run // size)), dtype))
    source, to = sides
    if source.array.size != to.array.size:
        raise NccError("NCC912", f"{source.array.size} elements leave, {to.array.size} arrive")
    return source, to


def _may_trigger(e: Engine, f: Fields) -> None:
    if e.name not in e.mem.target.dma_engines:
        raise NccError("NCC914", f"{e.name} triggers no DMA")
    own = 8 + e.number
    had = f.get("semaphore", 0), f.get("sem_increment", 0)
    if had != (own, QUEUE_STEP):
        said = f"raises S[{had[0]}] by {had[1]}, and the queue of {e.name} raises S[{own}] by 16"
        raise NccError("NCC914", said)
    if f.get("bound_reg", 0) or f.get("offset_reg", 0):
        raise NccError("NCC900", "a DMA with bound or offset registers is not modelled")


def _side(f: Fields, side: str) -> tuple[Dram | At, Dims, int]:
    address: Any = f[side]
    if isinstance(address, int):
        raise NccError("NCC900", f"the {side} address needs a generated descriptor")
    steps, nums = f.get(f"{side}_step", (0, 0)), f.get(f"{side}_num", (1, 1))
    if 0 in nums:
        raise NccError("NCC912", "a DMA of no run")
    return address, ((steps[1], nums[1]), (steps[0], nums[0])), f.get(f"{side}_size", 1 << 16)


def _copying(e: Engine, f: Fields) -> tuple[View, View, tuple[str, str] | None]:
    """Both sides of a copy; of one dtype it moves bits, else it converts through float32."""
    tags = f.get("src_dtype", 0), f.get("dst_dtype", 0)
    for tag in tags:
        if TAG_SIZE.get(tag, 8) > 4 or tag == 0xB:
            raise NccError("NCC912", f"a DMA does not carry dtype tag {tag:#x}")
    cast = tags[0] != tags[1]
    sides: list[View] = []
    for side, tag in zip(("src", "dst"), tags, strict=True):
        address, walk, run = _side(f, side)
        size = TAG_SIZE[tag]
        if run % size:
            raise NccError("NCC912", f"a run of {run} bytes holds no whole elements of {size}")
        dtype = e.dtype(tag) if cast else RUN_TYPES[size]
        sides.append(_sided(e.mem, address, (*walk, (size, run // size)), dtype))
    source, to = sides
    if source.array.size != to.array.size:
        said = f"{source.array.size} elements leave and {to.array.size} arrive"
        raise NccError("NCC912", said)
    _no_repeats(f)
    return source, to, (e.dtype(tags[0]), e.dtype(tags[1])) if cast else None


def _sided(mem: Memory, address: Dram | At, walk: Dims, dtype: str) -> View:
    return dma_view(mem, address, tuple([x for x in walk if x[1] > 1]) or ((0, 1),), dtype)


def _no_repeats(f: Fields) -> None:
    steps, nums = f.get("dst_step", (0, 0)), f.get("dst_num", (1, 1))
    if (nums[0] > 1 and not steps[0]) or (nums[1] > 1 and not steps[1]):
        raise NccError("NCC912", "a DMA writes one place several times (step 0)")


def _transposing(e: Engine, f: Fields, x: Fields) -> tuple[View, View]:
    """A grid of tiles, 16 rows × columns each, landing with rows and columns exchanged."""
    if not e.mem.target.transposing_dma:
        raise NccError("NCC900", f"{e.mem.target.name} has no transposing DMA")
    rows, cols = x.get("tile_src_rows", 0), x.get("tile_src_cols", 0)
    tags = f.get("src_dtype", 0), f.get("dst_dtype", 0)
    if tags[0] != tags[1] or TAG_SIZE.get(tags[0]) != 2:
        raise NccError("NCC912", "a transposing DMA has one dtype, of 2 bytes")
    source, walk, run = _side(f, "src")
    to, steps, landed = _side(f, "dst")
    nums = [n for _, n in walk]
    if rows != 16 or not 1 <= cols <= 128 or run != cols * 2 or landed != 32:
        said = f"a tile of {rows}×{cols} in runs of {run} and {landed} bytes"
        raise NccError("NCC912", said, hint="16 rows, runs of 2 × columns and of 32 bytes")
    if nums != [n for _, n in steps] or not isinstance(to, At):
        raise NccError("NCC912", "a transposing DMA has one grid, and lands in SBUF")
    if to.byte % 32 or any(s % 32 for s, n in steps if n > 1):
        raise NccError("NCC912", "a transposing DMA lands on multiples of 32 bytes")
    row = x.get("tile_src_row_step", 0)
    read = dma_view(e.mem, source, (*walk, (row, rows), (2, cols)), "uint16")
    write = dma_view(e.mem, to, (*steps, (SBUF_PITCH, cols), (2, rows)), "uint16")
    return read, write


def _mover(
    e: Engine,
    source: View,
    to: View,
    swap: bool,
    dtype: tuple[str, str] | None = None,
    adds: bool = False,
) -> Callable[[], None]:
    """What moves the data, when the queue gets to it."""
    mem, by = e.mem, e.by
    if to.space.known is None:
        raise NccError("NCC921", f"writes to {to.space.name}, which is read only")
    output = to.space.key > 0

    def move() -> None:
        values = source.array.swapaxes(-1, -2) if swap else source.array
        fresh = adds and not to.written(mem)
        known = to.element_marks() if fresh else None
        if adds:
            old = to.array.reshape(values.shape)
            values = numerics.cast(numerics.alu("add", old, values), dtype[1] if dtype else "")
        elif dtype is not None and values.dtype != to.array.dtype:
            values = numerics.cast(numerics.widen(values), dtype[1])
        to.array[...] = values if values.shape == to.array.shape else values.reshape(to.array.shape)
        if source.written(mem) and known is None:
            to.mark(mem)
            return
        mine = source.element_marks()
        known = mine if known is None else known.reshape(mine.shape) & mine
        if output:
            bad = int(known.size - np.count_nonzero(known))
            raise NccError(
                "NCC903",
                f"carries {bad} elements that nobody wrote to output {to.space.name}",
                hint="write them first (a load, a memset), or copy fewer",
            ).at(value=by)
        known = known.swapaxes(-1, -2) if swap else known
        to.mark(mem, known.reshape(to.array.shape))

    return move


def descriptors(f: Fields) -> int:
    """How many runs a D4 moves: what a report counts."""
    return prod(f.get("src_num", (1, 1)))
