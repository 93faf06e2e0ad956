"""Pieces of larger kernels: banks of PSUM by hand, sub-arrays, masks, segments, dropped values."""

from enum import Enum
from typing import NamedTuple

import nki
import nki.isa as nisa
import nki.language as nl

from kernels.common import (
    P_MAX,
    broadcast_load,
    kernel_assert,
    load,
    pe_transpose,
    program_info,
    tiles_of,
)


class Act(Enum):
    SILU = 0
    GELU = 1
    RELU = 2


ACTS = {Act.SILU: nl.silu, Act.GELU: nl.gelu, Act.RELU: nl.relu}


class Shapes(nl.NKIObject):
    rows: int
    hidden: int
    experts: int
    inner: int

    def check(self):
        kernel_assert(self.rows <= P_MAX, f"{self.rows=}")
        kernel_assert(self.hidden % P_MAX == 0, f"{self.hidden=}")
        return self


class Lane(NamedTuple):
    number: int
    weights: object


@nki.jit
def all_experts(x, w_in, w_out, affinity, act: Act = Act.SILU):
    """Each expert on all tokens: sum over e of affinity[:, e] * (act(x @ w_in[e]) @ w_out[e]).

    The experts are split over the cores; the sums of both are added through shared memory.
    """
    programs, me = program_info("all_experts")
    s = Shapes(x.shape[0], x.shape[1], w_in.shape[0], w_in.shape[2]).check()
    out = nl.ndarray((s.rows, s.hidden), dtype=nl.float32, buffer=nl.shared_hbm, name="mixed")
    parts = nl.ndarray((2, s.rows, s.hidden), dtype=nl.float32, buffer=nl.shared_hbm, name="parts")
    tile = load(x)
    steps = s.hidden // P_MAX
    across = [pe_transpose(tile[:, k * P_MAX : k * P_MAX + P_MAX]) for k in range(steps)]
    weight = load(affinity, nl.float32)
    total = nl.zeros((s.rows, s.hidden), dtype=nl.float32)
    lanes = [Lane(e, w_in[e]) for e in range(s.experts)]
    for lane in lanes[me::programs]:
        hidden = []
        for inner in tiles_of(s.inner, P_MAX):
            acc = nl.ndarray((inner.size, s.rows), dtype=nl.float32, buffer=nl.psum)
            for k in range(steps):
                w = load(lane.weights[k * P_MAX : (k + 1) * P_MAX, inner.start : inner.end])
                nisa.nc_matmul(acc, w, across[k])
            made = nl.ndarray(acc.shape, dtype=x.dtype, buffer=nl.sbuf)
            nisa.activation(made, ACTS[act], acc)
            hidden.append((inner, made))
        acc = nl.ndarray((s.rows, s.hidden), dtype=nl.float32, buffer=nl.psum)
        for inner, made in hidden:
            w = load(w_out[lane.number, inner.start : inner.end, :])
            nisa.nc_matmul(acc, made, w)
        nisa.scalar_tensor_tensor(
            total,
            acc,
            op0=nl.multiply,
            operand0=weight[:, lane.number],
            op1=nl.add,
            operand1=total,
        )
    if programs == 1:
        nisa.dma_copy(out, total)
        return out
    nisa.dma_copy(parts[me], total)
    nisa.core_barrier(parts, (0, 1))
    half = s.hidden // 2
    mine = nl.ds(me * half, half)
    a, b = load(parts[0, :, mine]), load(parts[1, :, mine])
    nisa.tensor_tensor(a, a, b, op=nl.add)
    nisa.dma_copy(out[:, mine], a)
    return out


@nki.jit
def banked_scores(q_t, k_t):
    """(d, s) and (d, n): all of PSUM as one tensor of eight banks, walked twice."""
    _d, s = q_t.shape
    n = k_t.shape[1]
    out = nl.ndarray((s, n), dtype=nl.float32, buffer=nl.shared_hbm)
    top = nl.ndarray((s, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    q, k = load(q_t), load(k_t)
    banks = nl.ndarray((s, 8, 512), dtype=nl.float32, buffer=nl.psum)
    parts = nl.ndarray((s, n // 512), dtype=nl.float32, buffer=nl.sbuf)
    for t in tiles_of(n, 512):
        bank = t.index % 8
        nisa.nc_matmul(banks[:, bank, :], q, k[:, t.start : t.end], accumulate=False)
        tile = nl.ndarray((s, 512), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar_reduce(
            dst=tile,
            data=banks[:, bank, :],
            op0=nl.multiply,
            operand0=0.5,
            reduce_op=nl.maximum,
            reduce_res=parts[:, t.index],
        )
        nisa.dma_copy(out[:, t.start : t.end], tile)
    best = nl.ndarray((s, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(best, nl.max, parts, axis=1)
    nisa.dma_copy(top, best)
    return out, top


@nki.jit
def quarters(a, b):
    """Four products of 32 rows each on the four row groups of the array, into columns."""
    k, m = a.shape
    n = b.shape[1]
    kernel_assert(k == 128 and m <= 32, f"{a.shape}")
    out = nl.ndarray((4, m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    left, right = load(a), load(b)
    for i in range(4):
        acc = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.psum)
        rows = slice(32 * i, 32 * i + 32)
        nisa.nc_matmul(
            acc, left[rows, :], right[rows, :], tile_position=(32 * i, 0), tile_size=(32, 32)
        )
        nl.store(out[i], nl.copy(acc))
    return out


@nki.jit
def memset_then_add(a, b):
    """PSUM is cleared by hand before each group of one tensor that is used over and over."""
    k, m = a.shape
    n = b.shape[1]
    out = nl.ndarray((2, m, n), dtype=nl.float32, buffer=nl.shared_hbm)
    acc = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.psum)
    for turn in range(2):
        nisa.memset(acc, 0.0)
        for t in tiles_of(k, P_MAX):
            nisa.nc_matmul(acc, load(a[t.start : t.end]), load(b[t.start : t.end]))
        done = nl.ndarray((m, n), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(done, nl.copy, acc, scale=float(turn + 1))
        nisa.dma_copy(out[turn], done)
    return out


@nki.jit
def banded(x, below: int, above: int, fill: float):
    """x where -below <= column - row <= above, else fill: two selects, several axes in one."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for t in tiles_of(rows, P_MAX):
        tile = load(x[t.start : t.end]).reshape((t.size, width // 4, 4))
        for step, offset in ((-1, above + t.start), (1, below - t.start)):
            nisa.affine_select(
                dst=tile,
                pattern=[[4 * step, width // 4], [step, 4]],
                channel_multiplier=-step,
                on_true_tile=tile,
                on_false_value=fill,
                cmp_op=nl.greater_equal,
                offset=offset,
            )
        nisa.dma_copy(out[t.start : t.end], tile.reshape((t.size, width)))
    return out


@nki.jit
def segment_bounds(ids):
    """Start and end of each element's segment, as int32 (2, n)."""
    n = ids.shape[1]
    out = nl.ndarray((2, n), dtype=nl.int32, buffer=nl.shared_hbm)
    tile = load(ids)
    bounds = nl.ndarray((1, 2, n), dtype=nl.int32, buffer=nl.sbuf)
    nisa.sequence_bounds(dst=bounds, segment_ids=tile)
    nisa.dma_copy(out.reshape((1, 2, n)), bounds)
    return out


@nki.jit
def selected_max(x, mask, other: float):
    """where(mask, x, other), and the maximum of each row."""
    rows, _width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    top = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    best = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.sbuf)
    tile = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.sbuf)
    nisa.select_reduce(
        dst=tile,
        predicate=load(mask),
        on_true=load(x),
        on_false=other,
        reduce_res=best,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
        reduce_op=nl.maximum,
    )
    nisa.dma_copy(out, tile)
    nisa.dma_copy(top, best)
    return out, top


@nki.jit
def running_products(x):
    """Sums and maxima so far along a row."""
    out = nl.ndarray((2, *x.shape), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = load(x)
    sums = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar_cumulative(
        dst=sums,
        src=tile,
        op0=nl.multiply,
        op1=nl.add,
        imm0=2.0,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )
    nisa.dma_copy(out[0], sums)
    tops = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
    nisa.tensor_scalar_cumulative(
        dst=tops,
        src=tile,
        op0=nl.add,
        op1=nl.maximum,
        imm0=1.0,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )
    nisa.dma_copy(out[1], tops)
    return out


@nki.jit
def partition_sums(x):
    """Sum and maximum over the rows, on the engine that crosses partitions."""
    _rows, width = x.shape
    out = nl.ndarray((2, width), dtype=nl.float32, buffer=nl.shared_hbm)
    tile = load(x)
    for i, op in enumerate((nl.add, nl.max)):
        one = nl.ndarray((1, width), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_partition_reduce(dst=one, op=op, data=tile)
        nisa.dma_copy(out[i : i + 1, :], one)
    return out


@nki.jit
def exact_integers(a, b):
    """int32 sums that float32 cannot hold, products by shifts, and a comparison."""
    rows, width = a.shape
    out = nl.ndarray((3, rows, width), dtype=nl.int32, buffer=nl.shared_hbm)
    x, y = load(a), load(b)
    sums = nl.ndarray((rows, width), dtype=nl.int32, buffer=nl.sbuf)
    nisa.tensor_tensor(sums, x, y, op=nl.add)
    nisa.dma_copy(out[0], sums)
    nisa.tensor_scalar(sums, x, op0=nl.left_shift, operand0=3, op1=nl.bitwise_or, operand1=5)
    nisa.dma_copy(out[1], sums)
    nisa.tensor_tensor(sums, x, y, op=nl.less)
    nisa.dma_copy(out[2], sums)
    return out


@nki.jit
def biased_qkv(x, wq, wk, wv, norm=None, heads=(4, 2, 2)):
    """The three projections of normalised rows in one output, heads first: (heads, rows, d)."""
    rows, hidden = x.shape
    d = wq.shape[1] // heads[0]
    out = nl.ndarray((sum(heads), rows, d), dtype=x.dtype, buffer=nl.shared_hbm)
    g = broadcast_load(norm, P_MAX) if norm is not None else None
    steps = hidden // P_MAX
    held = {}
    for name, w in zip(("q", "k", "v"), (wq, wk, wv), strict=True):
        held[name] = nl.ndarray(
            (P_MAX, steps, w.shape[1]), dtype=w.dtype, buffer=nl.sbuf, name=f"w_{name}"
        )
        nisa.dma_copy(
            dst=held[name], src=w.rearrange((("k", "p"), "n"), ("p", "k", "n"), {"p": P_MAX})
        )
    for t in tiles_of(rows, P_MAX):
        tile = load(x[t.start : t.end])
        if norm is not None:
            squares = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
            total = nl.ndarray((t.size, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(
                squares,
                nl.square,
                tile,
                reduce_op=nl.add,
                reduce_res=total,
                reduce_cmd=nisa.reduce_cmd.reset_reduce,
            )
            nisa.tensor_scalar(total, total, nl.multiply, 1.0 / hidden, op1=nl.add, operand1=1e-6)
            nisa.activation(total, nl.rsqrt, total)
            nisa.tensor_scalar(tile, tile, nl.multiply, total)
            nisa.tensor_tensor(tile, tile, g[: t.size], nl.multiply)
        across = [pe_transpose(tile[:, k * P_MAX : (k + 1) * P_MAX]) for k in range(steps)]
        head = 0
        for name, count in zip(held, heads, strict=True):
            acc = nl.ndarray((t.size, count, d), dtype=nl.float32, buffer=nl.psum)
            for k in range(steps):
                nisa.nc_matmul(acc, across[k], held[name][:, k, :])
            done = nl.ndarray(acc.shape, dtype=x.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(done, acc, engine=nisa.engine.vector if head else nisa.engine.scalar)
            nisa.dma_copy(
                dst=out[head : head + count, t.start : t.end, :].permute((1, 0, 2)), src=done
            )
            head += count
    return out
