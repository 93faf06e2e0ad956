"""Products: tiled, blocked, configured, in fp8, and split over two cores."""

from dataclasses import dataclass

import nki
import nki.isa as nisa
import nki.language as nl

from kernels.common import (
    P_MAX,
    div_ceil,
    kernel_assert,
    load,
    pe_transpose,
    program_info,
    tiles_of,
)


@nki.jit
def blocked_matmul(lhs_t, rhs, m_tiles_in_block: int = 2, n_tiles_in_block: int = 2):
    """out[m, n] = sum over k of lhs_t[k, m] * rhs[k, n], any sizes; loads are hoisted by block."""
    k_size, m_size = lhs_t.shape
    k_again, n_size = rhs.shape
    kernel_assert(k_size == k_again, f"contraction sizes differ: {k_size} and {k_again}")
    tile_m, tile_n = nl.tile_size.gemm_stationary_fmax, nl.tile_size.gemm_moving_fmax
    out = nl.ndarray((m_size, n_size), dtype=nl.float32, buffer=nl.shared_hbm, name="product")
    k_tiles = tiles_of(k_size, nl.tile_size.pmax)
    for m_block in tiles_of(m_size, tile_m * m_tiles_in_block):
        lhs = [
            load(
                lhs_t[k.start : k.end, m_block.start : m_block.end],
                name=f"lhs_{m_block.index}_{k.index}",
            )
            for k in k_tiles
        ]
        for n_block in tiles_of(n_size, tile_n * n_tiles_in_block):
            right = [load(rhs[k.start : k.end, n_block.start : n_block.end]) for k in k_tiles]
            for m in tiles_of(m_block.size, tile_m):
                rows = nl.ndarray((m.size, n_block.size), dtype=out.dtype, buffer=nl.sbuf)
                for n in tiles_of(n_block.size, tile_n):
                    acc = nl.ndarray((m.size, n.size), dtype=nl.float32, buffer=nl.psum)
                    for k in k_tiles:
                        nisa.nc_matmul(
                            dst=acc[:, :],
                            stationary=lhs[k.index][:, m.start : m.end],
                            moving=right[k.index][:, nl.ds(n.start, n.size)],
                        )
                    nisa.tensor_copy(
                        dst=rows[:, n.start : n.end], src=acc, engine=nisa.engine.scalar
                    )
                at = m_block.start + m.start
                nisa.dma_copy(
                    dst=out[at : at + m.size, n_block.start : n_block.end],
                    src=rows,
                    dge_mode=nisa.dge_mode.hwdge,
                )
    return out


@dataclass(frozen=True)
class MatmulConfig(nl.NKIObject):
    tile_k: int = 128
    tile_n: int = 512
    out_dtype: object = nl.bfloat16
    transposed_on: str = "pe"
    psum_buffers: tuple[int, ...] = (0, 1, 2, 3)


@nki.jit
def matmul_with_config(lhs, rhs, config=None):
    """lhs as (m, k): transposed on chip, by the tensor engine or by DMA."""
    cfg = config or MatmulConfig()
    m_size, k_size = lhs.shape
    n_size = rhs.shape[1]
    out = nl.ndarray((m_size, n_size), dtype=cfg.out_dtype, buffer=nl.shared_hbm)
    k_tiles = tiles_of(k_size, cfg.tile_k)
    right = {}
    for k in k_tiles:
        right[f"rhs{k.index}"] = load(rhs[nl.ds(k.start, k.size)])
    for m in tiles_of(m_size, P_MAX):
        across = []
        rows = load(lhs[m.start : m.end, :])
        for k in k_tiles:
            if cfg.transposed_on == "pe":
                across.append(pe_transpose(rows[:, k.start : k.end]))
            else:
                tile = nl.ndarray((k.size, m.size), dtype=lhs.dtype, buffer=nl.sbuf)
                nisa.dma_transpose(dst=tile, src=lhs[m.start : m.end, k.start : k.end])
                across.append(tile)
        for i, n in enumerate(tiles_of(n_size, cfg.tile_n)):
            bank = cfg.psum_buffers[i % len(cfg.psum_buffers)]
            acc = nl.ndarray(
                (m.size, n.size), dtype=nl.float32, buffer=nl.psum, address=(0, bank * 2048)
            )
            for k in k_tiles:
                nisa.nc_matmul(acc, across[k.index], right[f"rhs{k.index}"][:, n.start : n.end])
            done = nl.ndarray((m.size, n.size), dtype=out.dtype, buffer=nl.sbuf)
            nisa.activation(dst=done, op=nl.copy, data=acc)
            nisa.dma_copy(out[m.start : m.end, n.start : n.end], done)
    return out


@nki.jit
def fp8_matmul(lhs_t, rhs, lhs_scale, rhs_scale):
    """Two rows of the contraction at a time; one scale for each row of lhs, one for the rhs."""
    k_size, m_size = lhs_t.shape
    n_size = rhs.shape[1]
    kernel_assert(k_size % 256 == 0, f"k must be a multiple of 256, is {k_size}")
    out = nl.ndarray((m_size, n_size), dtype=nl.bfloat16, buffer=nl.shared_hbm)
    pairs = k_size // 256
    left = nl.ndarray((128, pairs, 2, m_size), dtype=lhs_t.dtype, buffer=nl.sbuf)
    right = nl.ndarray((128, pairs, 2, n_size), dtype=rhs.dtype, buffer=nl.sbuf)
    for pair in range(pairs):
        for half in range(2):
            at = (2 * pair + half) * 128
            nisa.dma_copy(dst=left[:, pair, half, :], src=lhs_t[at : at + 128, :])
            nisa.dma_copy(dst=right[:, pair, half, :], src=rhs[at : at + 128, :])
    acc = nl.ndarray((m_size, n_size), dtype=nl.float32, buffer=nl.psum)
    for pair in range(pairs):
        nisa.nc_matmul(
            dst=acc,
            stationary=left[:, pair],
            moving=right[:, pair],
            perf_mode=nisa.matmul_perf_mode.double_row,
        )
    scale = load(lhs_scale)
    other = nl.ndarray((m_size, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=other, src=rhs_scale.ap([[0, m_size], [1, 1]]))
    done = nl.ndarray((m_size, n_size), dtype=nl.bfloat16, buffer=nl.sbuf)
    nisa.tensor_scalar(
        dst=done, data=acc, op0=nl.multiply, operand0=scale, op1=nl.multiply, operand1=other
    )
    nisa.dma_copy(dst=out, src=done)
    return out


@nki.jit
def two_core_matmul(x, w, bias=None):
    """x (m, k) @ w (k, n) + bias; the columns are split over the cores."""
    programs, me = program_info("two_core_matmul")
    m_size, k_size = x.shape
    n_size = w.shape[1]
    share = div_ceil(n_size, programs)
    first = me * share
    share = min(share, n_size - first)
    out = nl.ndarray((m_size, n_size), dtype=x.dtype, buffer=nl.shared_hbm)
    k_tiles = tiles_of(k_size, P_MAX)
    left = []
    for k in k_tiles:
        tile = nl.ndarray((k.size, m_size), dtype=x.dtype, buffer=nl.sbuf)
        nisa.dma_transpose(dst=tile, src=x[:, k.start : k.end])
        left.append(tile)
    for n in tiles_of(share, 512):
        acc = nl.zeros((m_size, n.size), dtype=nl.float32, buffer=nl.psum)
        for k in k_tiles:
            weights = load(w[k.start : k.end, nl.ds(first + n.start, n.size)])
            nisa.nc_matmul(acc, left[k.index], weights)
        done = nl.ndarray(acc.shape, dtype=out.dtype, buffer=nl.sbuf)
        if bias is not None:
            row = nl.ndarray((m_size, n.size), dtype=nl.float32, buffer=nl.sbuf)
            at = first + n.start
            nisa.dma_copy(dst=row, src=bias.ap([[0, m_size], [1, n.size]], offset=at))
            nisa.tensor_tensor(dst=done, data1=acc, data2=row, op=nl.add)
        else:
            nisa.tensor_copy(dst=done, src=acc)
        nisa.dma_copy(dst=out[:, nl.ds(first + n.start, n.size)], src=done)
    return out
