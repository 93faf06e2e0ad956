"""Whole numbers: both kinds of 32-bit integers together, bits, counters that begin at a register."""

import nki
import nki.isa as nisa
import nki.language as nl

from kernels.common import load

OPS = (
    *(nl.add, nl.subtract, nl.multiply, nl.maximum, nl.minimum),
    *(nl.less, nl.less_equal, nl.greater, nl.greater_equal, nl.equal, nl.not_equal),
)


@nki.jit
def signed_and_unsigned(a, b):
    """One of a and b is int32, the other uint32; each operator's result as int32."""
    rows, width = a.shape
    out = nl.ndarray((len(OPS), rows, width), dtype=nl.int32, buffer=nl.shared_hbm)
    x, y = load(a), load(b)
    for i, op in enumerate(OPS):
        tile = nl.ndarray((rows, width), dtype=nl.int32, buffer=nl.sbuf)
        nisa.tensor_tensor(tile, x, y, op=op)
        nisa.dma_copy(dst=out[i], src=tile)
    return out


@nki.jit
def counted_from(first, rows: int, width: int):
    """first + column + 2 · row, where `first` is known when the kernel runs."""
    out = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.shared_hbm)
    begin = nisa.register_alloc(load(first))
    tile = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.sbuf)
    nisa.iota(tile, [[1, width]], offset=begin, channel_multiplier=2)
    nisa.dma_copy(out, tile)
    return out


@nki.jit
def quotients(a, b):
    """a / b and the remainder, by the vector engine; both are added to what the output held."""
    out = nl.ndarray((2, *a.shape), dtype=nl.float32, buffer=nl.shared_hbm)
    x, y = load(a), load(b)
    ones = nl.ones(a.shape, dtype=nl.float32, buffer=nl.sbuf)
    for i, op in enumerate((nl.divide, nl.mod)):
        tile = nl.ndarray(a.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(tile, x, y, op=op)
        nisa.dma_copy(out[i], ones)
        nisa.dma_copy(dst=out[i], src=tile, dst_rmw_op=nl.add)
    return out


@nki.jit
def counted_in_turns(turns, rows: int, width: int):
    """(4, rows, width): the same, begun at each turn of a loop that ends where `turns` says."""
    out = nl.ndarray((4, rows, width), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(out.permute((1, 0, 2)), nl.zeros((rows, 4, width), dtype=nl.float32))

    def turn(i):
        tile = nl.ndarray((rows, width), dtype=nl.float32, buffer=nl.sbuf)
        nisa.iota(tile, [[1, width]], offset=i, channel_multiplier=2)
        nisa.dma_copy(out.select(0, i), tile)

    nl.fori_loop(0, nisa.register_alloc(load(turns)), turn)
    return out
