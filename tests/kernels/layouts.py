"""Moving data: transposes three ways, shuffles, copies by predicate, views."""

import nki
import nki.isa as nisa
import nki.language as nl

from kernels.common import P_MAX, load, pe_transpose, tiles_of


@nki.jit
def transpose(x, how: str = "pe"):
    """x (m, n) to (n, m)."""
    m, n = x.shape
    out = nl.ndarray((n, m), dtype=x.dtype, buffer=nl.shared_hbm)
    for a in tiles_of(m, P_MAX):
        for b in tiles_of(n, P_MAX):
            block = x[a.start : a.end, b.start : b.end]
            if how == "pe":
                across = pe_transpose(load(block))
            elif how == "dma":
                across = nl.ndarray((b.size, a.size), dtype=x.dtype, buffer=nl.sbuf)
                nisa.dma_transpose(dst=across, src=block, axes=(1, 0))
            else:
                tile = load(block)
                across = nl.ndarray((b.size, a.size), dtype=x.dtype, buffer=nl.sbuf)
                for p in tiles_of(a.size, 32):
                    for f in tiles_of(b.size, 32):
                        nisa.nc_transpose(
                            dst=across[f.start : f.end, p.start : p.end],
                            data=tile[p.start : p.end, f.start : f.end],
                            engine=nisa.engine.vector,
                        )
            nisa.dma_copy(dst=out[b.start : b.end, a.start : a.end], src=across)
    return out


@nki.jit
def heads_first(x, heads: int):
    """x (s, heads * d) as (heads, d, s)."""
    s, width = x.shape
    d = width // heads
    out = nl.ndarray((heads, d, s), dtype=x.dtype, buffer=nl.shared_hbm, name="heads_first")
    for t in tiles_of(s, P_MAX):
        rows = load(x[t.start : t.end]).reshape_dim(1, (heads, d))
        for h in range(heads):
            nisa.dma_copy(dst=out[h, :, t.start : t.end], src=pe_transpose(rows.select(1, h)))
    return out


@nki.jit
def spread_and_fold(x):
    """Row 0 on all partitions, row sums over partitions, and rows in reverse in each quadrant."""
    rows, width = x.shape
    first = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
    sums = nl.ndarray((1, width), dtype=nl.float32, buffer=nl.shared_hbm)
    back = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = load(x)
    spread = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf)
    for start in range(0, rows, 32):
        nisa.nc_stream_shuffle(
            dst=spread[start : start + 32, :], src=tile[0:1, :], shuffle_mask=[0] * 32
        )
    nisa.dma_copy(first, spread)
    # the sum over partitions, by a product with ones
    ones = nl.ones((rows, 1), dtype=nl.float32)
    acc = nl.ndarray((1, width), dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(acc, ones, tile)
    nl.store(sums, nl.copy(acc))
    turned = nl.ndarray((rows, width), dtype=x.dtype, buffer=nl.sbuf)
    nisa.nc_stream_shuffle(dst=turned, src=tile, shuffle_mask=list(range(31, -1, -1)))
    nisa.dma_copy(back, turned)
    return [first, sums, back]


@nki.jit
def clamp_negative(x, floor: float):
    """Where x < 0: floor, by predicate; the count of those in each row."""
    rows, _width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    count = nl.ndarray((rows, 1), dtype=nl.int32, buffer=nl.shared_hbm)
    tile = load(x)
    below = nl.ndarray(x.shape, dtype=nl.uint8, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=below, data=tile, op0=nl.less, operand0=0.0)
    least = nl.full(x.shape, floor, dtype=x.dtype)
    nisa.tensor_copy_predicated(dst=tile, src=least, predicate=below)
    total = nl.ndarray((rows, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=total, op=nl.add, data=below, axis=1)
    nisa.dma_copy(dst=out, src=tile)
    nisa.dma_copy(dst=count, src=total)
    return out, count
