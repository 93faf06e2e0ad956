"""Normalisations, alone and fused with what follows them."""

import math

import nki
import nki.isa as nisa
import nki.language as nl
import numpy as np

from kernels.common import P_MAX, broadcast_load, kernel_assert, load, pe_transpose, tiles_of


def inverse_rms(x, eps: float, width: int):
    """1 / sqrt(mean of squares + eps) of each row."""
    rows = x.shape[0]
    squares = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    total = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.activation_reduce(dst=squares, op=nl.square, data=x, reduce_op=nl.add, reduce_res=total)
    eps_tile = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.memset(dst=eps_tile, value=eps)
    nisa.activation(dst=total, op=nl.rsqrt, data=total, scale=1.0 / width, bias=eps_tile)
    return total


@nki.jit
def rmsnorm_linear(hidden, gamma, weight, eps=1e-6):
    """(batch, seq, h) normalised, times (h, o)."""
    batch, seq, h = hidden.shape
    o = weight.shape[1]
    kernel_assert(h % P_MAX == 0, f"the hidden size {h} is no multiple of {P_MAX}")
    flat = hidden.reshape((batch * seq, h))
    out = nl.ndarray((batch, seq, o), dtype=hidden.dtype, buffer=nl.shared_hbm)
    out_flat = out.reshape((batch * seq, o))
    g = broadcast_load(gamma, P_MAX, nl.float32)
    steps = h // P_MAX
    w = nl.ndarray((P_MAX, steps, o), dtype=weight.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=w, src=weight.reshape((steps, P_MAX, o)).permute((1, 0, 2)))
    for row in tiles_of(batch * seq, P_MAX):
        x = load(flat[row.start : row.end])
        scale = inverse_rms(x, eps, h)
        normed = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
        nisa.scalar_tensor_tensor(
            dst=normed,
            data=x,
            op0=nl.multiply,
            operand0=scale,
            op1=nl.multiply,
            operand1=g[0 : row.size, :],
        )
        across = [pe_transpose(normed[:, k * P_MAX : (k + 1) * P_MAX]) for k in range(steps)]
        for n in tiles_of(o, 512):
            acc = nl.ndarray((row.size, n.size), dtype=nl.float32, buffer=nl.psum)
            for k in range(steps):
                nisa.nc_matmul(acc, across[k], w[:, k, n.start : n.end])
            result = nl.ndarray(acc.shape, dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(result, acc)
            nisa.dma_copy(dst=out_flat[row.start : row.end, n.start : n.end], src=result)
    return out


@nki.jit
def layernorm(x, gamma, beta, eps: float = 1e-5):
    """By bn_stats and bn_aggr, rows in tiles of 128 with a tail."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    chunk = min(nl.tile_size.bn_stats_fmax, math.gcd(512, width))
    chunks = width // chunk
    g, b = broadcast_load(gamma, P_MAX), broadcast_load(beta, P_MAX)
    for row in tiles_of(rows, P_MAX):
        tile = load(x[row.start : row.end])
        stats = nl.ndarray((row.size, 6 * chunks), dtype=nl.float32, buffer=nl.sbuf)
        for c in range(chunks):
            nisa.bn_stats(
                dst=stats[:, 6 * c : 6 * c + 6], data=tile[:, c * chunk : (c + 1) * chunk]
            )
        both = nl.ndarray((row.size, 2), dtype=nl.float32, buffer=nl.sbuf)
        nisa.bn_aggr(dst=both, data=stats)
        spread = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(
            dst=spread, data=both[:, 1:2], op0=nl.add, operand0=eps, op1=nl.rsqrt, operand1=0.0
        )
        tmp = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(
            dst=tmp,
            data=tile,
            op0=nl.subtract,
            operand0=both[:, 0:1],
            op1=nl.multiply,
            operand1=spread,
        )
        nisa.tensor_tensor(dst=tmp, data1=tmp, data2=g[0 : row.size], op=nl.multiply)
        done = nl.ndarray(tile.shape, dtype=out.dtype, buffer=nl.sbuf)
        nisa.tensor_tensor(dst=done, data1=tmp, data2=b[: row.size], op=nl.add)
        nisa.dma_copy(dst=out[row.start : row.end], src=done)
    return out


@nki.jit
def add_rmsnorm_in_place(residual, x, gamma, eps=1e-6):
    """residual += x, written into the argument; returns the norm of it."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    g = broadcast_load(gamma, P_MAX)
    for row in tiles_of(rows, P_MAX):
        a, b = load(residual[row.start : row.end]), load(x[row.start : row.end])
        nisa.tensor_tensor(dst=a, data1=a, data2=b, op=nl.add)
        nisa.dma_copy(dst=residual[row.start : row.end], src=a)
        scale = inverse_rms(a, eps, width)
        nisa.tensor_scalar(dst=b, data=a, op0=nl.multiply, operand0=scale)
        nisa.tensor_tensor(dst=b, data1=b, data2=g[: row.size], op=nl.multiply)
        nisa.dma_copy(dst=out[row.start : row.end], src=b)
    return out, residual


FP8_MAX = 240.0


@nki.jit
def rmsnorm_quant(x, gamma, lower_bound: float = 1e-4):
    """The norm in fp8 and the scale of each row: norm = quantised * scale."""
    rows, width = x.shape
    quantised = nl.ndarray(x.shape, dtype=nl.float8_e4m3, buffer=nl.shared_hbm, name="quantised")
    scales = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm, name="scales")
    g = broadcast_load(gamma, P_MAX, nl.float32)
    for row in tiles_of(rows, P_MAX):
        tile = load(x[row.start : row.end], nl.float32)
        scale = inverse_rms(tile, 1e-6, width)
        normed = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.scalar_tensor_tensor(
            dst=normed,
            data=tile,
            op0=np.multiply,
            operand0=scale,
            op1=np.multiply,
            operand1=g[: row.size],
        )
        sizes = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=sizes, op=nl.abs, data=normed)
        largest = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=largest, op=nl.max, data=sizes, axis=1)
        nisa.tensor_scalar(
            dst=largest,
            data=largest,
            op0=nl.maximum,
            operand0=lower_bound,
            op1=nl.multiply,
            operand1=1.0 / FP8_MAX,
        )
        nisa.dma_copy(dst=scales[row.start : row.end], src=largest)
        inverse = nl.ndarray(largest.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.reciprocal(dst=inverse, data=largest)
        nisa.tensor_scalar(
            dst=normed,
            data=normed,
            op0=nl.multiply,
            operand0=inverse,
            op1=nl.minimum,
            operand1=FP8_MAX,
        )
        small = nl.ndarray(tile.shape, dtype=nl.float8_e4m3, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=small, data=normed, op0=nl.maximum, operand0=-FP8_MAX)
        nisa.dma_copy(dst=quantised[row.start : row.end], src=small)
    return quantised, scales


@nki.jit
def dequant_matmul(x_t, weight, scale):
    """x_t (k, m) in bf16, int8 weights (k, n) with one scale a column."""
    k_size, m = x_t.shape
    n = weight.shape[1]
    out = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    acc = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.psum)
    for k in tiles_of(k_size, P_MAX):
        raw = load(weight[k.start : k.end])
        wide = nl.ndarray(raw.shape, dtype=nl.bfloat16, buffer=nl.sbuf)
        nisa.tensor_copy(dst=wide, src=raw, engine=nisa.vector_engine)
        nisa.nc_matmul(dst=acc, stationary=load(x_t[k.start : k.end]), moving=wide)
    s = broadcast_load(scale, m)
    done = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_tensor(done, acc, s, op=nl.multiply)
    nisa.dma_copy(out, done)
    return out
