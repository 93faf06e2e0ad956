"""On-chip views that begin where the machine says: gathered, or stored by way of HBM.

The engines' instructions begin at places that are known while tracing. A view that is read becomes
a tile that `nc_n_gather` fills, by indices that the run-time number and an iota make; one that is
written goes through a tensor in HBM, where a DMA may begin anywhere.
"""

from __future__ import annotations

import math
from typing import Any

from ncc.ir.kernel import Access, Scalar
from ncc.nki import isa
from ncc.nki.dtypes import int32, uint32
from ncc.nki.memory import allocate
from ncc.nki.old.tile import Tile, adopted
from ncc.nki.regions import hbm, psum, sbuf
from ncc.nki.trace import current


def moves_on_chip(x: Any) -> bool:
    """Whether a tile on chip begins at a run-time index."""
    return isinstance(x, Tile) and x.row > 0 and any(isinstance(m, Scalar) for m in x.moves)


def _fresh(shape: tuple[int, ...], dtype: Any) -> Tile:
    made = adopted(allocate(shape, dtype, sbuf))
    current().temporary.add(made.name)
    return made


def gathered(x: Tile) -> Tile:
    """What a view holds that begins at a run-time index, in a tile of its own."""
    x.inside()
    rows, free = x.shape[0], x.shape[1:]
    whole = _rows_of(x)
    if x.buffer == psum:
        held = _fresh(whole.shape, whole.dtype)
        isa.tensor_copy(held, whole)
        whole = held
    pairs = [[s, n] for s, n in zip(x.strides[1:], free, strict=True) if n > 1] or [[0, 1]]
    index = _fresh((rows, math.prod(free)), int32)
    isa.iota(index, pairs, offset=x.offset % x.row)
    for move in x.moves:
        if isinstance(move, Scalar):
            start = _number(move, rows)
            isa.tensor_tensor(index, index, _repeated(start, index.shape), "add")
    made = _fresh(x.shape, x.dtype)
    isa.nc_n_gather(made, whole, index.view(uint32))
    return made


def _rows_of(x: Tile) -> Tile:
    """The partitions of a view, whole."""
    first = x.offset // x.row
    return x.derived((x.shape[0], x.row), (x.row, 1), first * x.row, ())


def _number(move: Scalar, rows: int) -> Tile:
    """The run-time number times its scale, in each of `rows` partitions, as exact integers."""
    source = move.source
    assert isinstance(source, Access)
    one = _fresh((1, 1), int32)
    dst = one.access("dst", write=True)
    current().emit("tensor_copy", {"dst": dst, "src": source})
    spread = _fresh((rows, 1), int32)
    for start in range(0, rows, 32):
        isa.nc_stream_shuffle(spread[start : min(start + 32, rows)], one, [0] * 32)
    if move.scale == 1:
        return spread
    scale = _fresh((rows, 1), int32)
    isa.memset(scale, move.scale)
    made = _fresh((rows, 1), int32)
    isa.tensor_tensor(made, spread, scale, "multiply")
    return made


def _repeated(x: Tile, shape: tuple[int, ...]) -> Tile:
    return x.derived(shape, (x.strides[0], 0))


def scattered(to: Tile, value: Tile) -> None:
    """`value` into a view that begins at a run-time index."""
    whole = _rows_of(to)
    memory = adopted(allocate(whole.shape, to.dtype, hbm))
    held = whole
    if to.buffer == psum:
        held = _fresh(whole.shape, to.dtype)
        isa.tensor_copy(held, whole)
    isa.dma_copy(memory, held)
    strides = (to.row, *to.strides[1:])
    isa.dma_copy(memory.derived(to.shape, strides, to.offset % to.row, to.moves), value)
    isa.dma_copy(held, memory)
    if to.buffer == psum:
        isa.tensor_copy(whole, held)
