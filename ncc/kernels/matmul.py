"""A tiled matmul: out[M, N] = lhsT[K, M]ᵀ · rhs[K, N], for any sizes."""

from __future__ import annotations

from typing import Any

from ncc import nki
from ncc.nki import isa as nisa
from ncc.nki import language as nl

ROWS, COLUMNS, DEEP = 128, 512, 128  # one pass of the PE array, one PSUM bank wide
Tensor = Any  # a tensor of the kernel


def tiles(size: int, tile: int) -> list[tuple[int, int]]:
    """(start, length) of each tile of an axis; the last may be shorter."""
    return [(at, min(tile, size - at)) for at in range(0, size, tile)]


@nki.jit
def matmul(lhsT: Tensor, rhs: Tensor, out_dtype: Any = None) -> Tensor:
    """lhsT is [K, M], as the PE array wants its weights; the sums are float32, rounded once.

    The stationary operand stays in SBUF for a whole row of results, so each element of lhsT is
    loaded once and each of rhs once for every 128 rows of the result. Two cores share those rows.
    """
    (K, M), (_, N) = lhsT.shape, rhs.shape
    assert rhs.shape[0] == K, f"lhsT has {K} rows and rhs {rhs.shape[0]}; both are the sum's axis"
    out = nl.ndarray((M, N), out_dtype or lhsT.dtype, buffer=nl.shared_hbm, name="out")
    for m, height in tiles(M, ROWS)[nl.program_id(0) :: nl.num_programs(0)]:
        weights: list[Tensor] = []
        for k, deep in tiles(K, DEEP):
            tile = nl.ndarray((deep, height), lhsT.dtype, buffer=nl.sbuf)
            nisa.dma_copy(tile, lhsT[k : k + deep, m : m + height])
            weights.append(tile)
        for n, width in tiles(N, COLUMNS):
            total = nl.ndarray((height, width), nl.float32, buffer=nl.psum)
            for (k, deep), stationary in zip(tiles(K, DEEP), weights, strict=True):
                moving = nl.ndarray((deep, width), rhs.dtype, buffer=nl.sbuf)
                nisa.dma_copy(moving, rhs[k : k + deep, n : n + width])
                nisa.nc_matmul(total, stationary, moving)
            result = nl.ndarray((height, width), out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(result, total)
            nisa.dma_copy(out[m : m + height, n : n + width], result)
    return out
