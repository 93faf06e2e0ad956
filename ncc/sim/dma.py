"""Direct DMAs: D4 alone, or with the extension DA that follows it (ISA reference 5.25)."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from ncc import numerics
from ncc.encode.codes import TAG_SIZE
from ncc.errors import NccError
from ncc.ir.isa import At, Dram
from ncc.sim.engine import Engine, Fields, Flight
from ncc.sim.memory import SBUF_PITCH, Memory
from ncc.sim.race import START
from ncc.sim.views import Dims, View, dma_view

COPY, TRANSPOSE = 0, 2
RUN_TYPES = {1: "uint8", 2: "uint16", 4: "uint32"}
QUEUE_STEP = 16  # what a completion adds


def issue(e: Engine, f: Fields, extension: Fields | None) -> Flight:
    """Checks a DMA, tells the race check what it will touch, and gives what is to happen later."""
    _may_trigger(e, f)
    operation = f.get("dge_op", 0)
    if operation == TRANSPOSE and extension is not None:
        source, to = _transposing(e, f, extension)
        move = _mover(e, source, to, True)
    elif operation == COPY and extension is None:
        source, to, dtype = _copying(e, f)
        move = _mover(e, source, to, False, dtype)
    else:
        raise NccError("NCC900", f"dge_op {operation} is not modelled")
    e.issued += 1
    for one, writes in ((source, False), (to, True)):
        if one.space.known is not None:
            e.race.access(one.box, writes, e.clock, e.queue, e.issued, e.by)
    return Flight(move, f["semaphore"], f["sem_increment"], START, e.by)


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
    return dma_view(mem, address, tuple((s, n) for s, n in walk if n > 1) or ((0, 1),), dtype)


def _no_repeats(f: Fields) -> None:
    pairs = zip(f.get("dst_step", (0, 0)), f.get("dst_num", (1, 1)), strict=True)
    if any(num > 1 and not step for step, num in pairs):
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


def _mover(e: Engine, source: View, to: View, swap: bool, dtype: tuple[str, str] | None = None):
    """What moves the data, when the queue gets to it."""
    mem, by = e.mem, e.by
    if to.space.known is None:
        raise NccError("NCC921", f"writes to {to.space.name}, which is read only")
    output = to.space.key > 0

    def move() -> None:
        values = source.array.swapaxes(-1, -2) if swap else source.array
        if dtype is not None:
            values = numerics.cast(numerics.widen(values), dtype[1])
        to.array[...] = values if values.shape == to.array.shape else values.reshape(to.array.shape)
        if source.written(mem):
            to.mark(mem)
            return
        known = source.element_marks()
        if output:
            bad = int(known.size - np.count_nonzero(known))
            raise NccError(
                "NCC903",
                f"carries {bad} elements that nobody wrote to output {to.space.name}",
            ).at(value=by)
        known = known.swapaxes(-1, -2) if swap else known
        to.mark(mem, known.reshape(to.array.shape))

    return move


def descriptors(f: Fields) -> int:
    """How many runs a D4 moves: what a report counts."""
    return prod(f.get("src_num", (1, 1)))
