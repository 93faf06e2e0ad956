"""Kernels in the manner of production libraries: paged decoding, blocks of experts, packed rows."""

import math
from dataclasses import dataclass
from enum import Enum

import nki
import nki.isa as nisa
import nki.language as nl
from nki.isa.constants import dge_mode, oob_mode, reduce_cmd

from kernels.common import kernel_assert, load, pe_transpose

LEAST = -1e30


class Skip(Enum):
    NONE = 0
    PADDING = 1


@dataclass(frozen=True)
class Paged(nl.NKIObject):
    """The sizes of a cache in blocks, and of the table that lists each sequence's blocks."""

    batch: int
    heads: int
    d: int
    blocks: int
    block: int
    listed: int

    def __post_init__(self):
        kernel_assert(2 ** int(math.log2(self.block)) == self.block, f"{self.block=} is no power")
        kernel_assert(self.listed <= nl.tile_size.pmax, f"{self.listed} blocks on partitions")

    @property
    def length(self) -> int:
        return self.listed * self.block


def new_tile(shape, dtype=nl.float32, name: str = ""):
    return nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf, name=name)


def slots(cfg: Paged, position, table):
    """The row of the flat cache that each sequence's new token takes: by shifts and a one-hot."""
    at = load(position, name="position_sb")
    number, inside = new_tile((cfg.batch, 1), nl.int32), new_tile((cfg.batch, 1), nl.int32)
    shift = int(math.log2(cfg.block))
    nisa.tensor_scalar(number, at, op0=nl.right_shift, operand0=shift)
    nisa.tensor_scalar(inside, at, op0=nl.bitwise_and, operand0=cfg.block - 1)
    columns = new_tile((cfg.batch, cfg.listed), nl.int32)
    nisa.iota(dst=columns, pattern=[[1, cfg.listed]], offset=0, channel_multiplier=0)
    wanted = new_tile((cfg.batch, 1))
    nisa.tensor_copy(dst=wanted, src=number)
    hit = new_tile((cfg.batch, cfg.listed))
    nisa.scalar_tensor_tensor(
        dst=hit, data=columns, op0=nl.equal, operand0=wanted, op1=nl.multiply, operand1=load(table)
    )
    block = new_tile((cfg.batch, 1))
    nisa.tensor_reduce(dst=block, op=nl.add, data=hit, axis=1)
    slot = new_tile((cfg.batch, 1), nl.int32, name="slot")
    nisa.scalar_tensor_tensor(
        slot, data=block, op0=nl.multiply, operand0=float(cfg.block), op1=nl.add, operand1=inside
    )
    return slot


@nki.jit
def paged_decode(q, k_new, v_new, k_cache, v_cache, table, position, sink):
    """One token of each sequence against its blocks: q (b, heads, d), caches (blocks, block, d)."""
    cfg = Paged(*q.shape, *k_cache.shape[:2], table.shape[1])
    out = nl.ndarray(q.shape, dtype=q.dtype, buffer=nl.shared_hbm, name="attended")
    slot = slots(cfg, position, table)
    width = cfg.block * cfg.d
    for cache, new in ((k_cache, k_new), (v_cache, v_new)):
        nisa.dma_copy(
            dst=cache.reshape((cfg.blocks * cfg.block, cfg.d)).ap(
                pattern=[[cfg.d, cfg.batch], [1, cfg.d]],
                offset=0,
                vector_offset=slot.ap([[1, cfg.batch], [1, 1]], offset=0),
                indirect_dim=0,
            ),
            src=load(new.reshape((cfg.batch, cfg.d))),
            dge_mode=dge_mode.swdge,
            oob_mode=oob_mode.skip,
        )
    sinks = new_tile((cfg.heads, 1), name="sinks")
    nisa.dma_copy(dst=sinks, src=sink.ap([[1, cfg.heads], [1, 1]]))
    column = new_tile((cfg.heads, cfg.length), name="column")
    nisa.iota(column, [[1, cfg.length]])
    for b in nl.sequential_range(cfg.batch):
        rows = load(table[b].reshape((cfg.listed, 1)), name=f"rows_{b}")
        held = {}
        for name, cache in (("k", k_cache), ("v", v_cache)):
            held[name] = new_tile((cfg.listed, cfg.block, cfg.d), cache.dtype, f"{name}_{b}")
            nisa.dma_copy(
                dst=held[name].reshape((cfg.listed, width)),
                src=cache.reshape((cfg.blocks, width)).ap(
                    [[width, cfg.listed], [1, width]], vector_offset=rows, indirect_dim=0
                ),
            )
        q_t = pe_transpose(load(q[b]))
        nisa.activation(dst=q_t, op=nl.copy, data=q_t, scale=cfg.d**-0.5)
        scores = new_tile((cfg.heads, cfg.listed, cfg.block))
        for j in range(cfg.block):
            part = nl.ndarray((cfg.heads, cfg.listed), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(part, q_t, pe_transpose(held["k"][:, j, :]))
            nisa.tensor_copy(scores[:, :, j], part)
        limit = new_tile((cfg.heads, 1), nl.int32)
        nisa.dma_copy(dst=limit, src=position.ap([[0, cfg.heads], [1, 1]], offset=b))
        seen = new_tile((cfg.heads, cfg.length), nl.uint8)
        nisa.tensor_scalar(seen, column, op0=nl.less_equal, operand0=nl.copy(limit, nl.float32))
        masked = nl.full((cfg.heads, cfg.length), LEAST, dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy_predicated(masked, scores.reshape((cfg.heads, cfg.length)), seen)
        low = new_tile((cfg.heads, 1))
        nisa.tensor_reduce(low, nl.maximum, masked, axis=(1,))
        nisa.tensor_tensor(low, low, sinks, op=nl.maximum)
        nisa.tensor_scalar(low, low, op0=nl.multiply, operand0=-1)
        p, total = new_tile(scores.shape, q.dtype), new_tile((cfg.heads, 1))
        nisa.activation(
            dst=p.reshape((cfg.heads, cfg.length)),
            op=nl.exp,
            data=masked,
            bias=low,
            reduce_op=nl.add,
            reduce_res=total,
            reduce_cmd=reduce_cmd.reset_reduce,
        )
        rest = new_tile((cfg.heads, 1))
        nisa.activation(rest, nl.exp, sinks, bias=low)
        nisa.tensor_tensor(total, total, rest, nl.add)
        nisa.reciprocal(total, total)
        acc = nl.ndarray((cfg.heads, cfg.d), dtype=nl.float32, buffer=nl.psum)
        for j in range(cfg.block):
            nisa.nc_matmul(acc, pe_transpose(p[:, :, j]), held["v"][:, j, :])
        done = new_tile((cfg.heads, cfg.d), q.dtype)
        nisa.activation(done, nl.copy, acc, scale=total)
        nisa.dma_copy(out[b, :, :], done)
    return out, k_cache, v_cache


@nki.jit
def blocks_of_experts(x, w, tokens, experts, affinity, skip: Skip = Skip.PADDING):
    """Each block of tokens (-1 is padding) goes through its expert; the products are summed."""
    count, hidden = x.shape
    number, _, inner = w.shape
    blocks, size = tokens.shape
    out = nl.ndarray((count, inner), dtype=nl.float32, buffer=nl.shared_hbm)
    nisa.dma_copy(out, nl.zeros((count, inner), dtype=nl.float32, buffer=nl.sbuf))
    mode = oob_mode.skip if skip is Skip.PADDING else oob_mode.error
    for b in nl.sequential_range(blocks):
        rows = new_tile((size, 1), nl.int32)
        nisa.dma_copy(rows, tokens.ap([[1, size], [1, 1]], offset=b * size))
        given, old = new_tile((size, hidden)), new_tile((size, inner))
        weight = new_tile((size, 1))
        for tile in (given, old, weight):
            nisa.memset(tile, 0)
        nisa.dma_copy(given, x.ap([[hidden, size], [1, hidden]], vector_offset=rows), oob_mode=mode)
        expert = load(experts[b : b + 1, :])
        w_sb = new_tile((hidden, inner))
        nisa.dma_copy(w_sb, w.ap([[inner, hidden], [1, inner]], scalar_offset=expert))
        every = new_tile((size, 1), nl.int32)
        nisa.dma_copy(every, experts.ap([[0, size], [1, 1]], offset=b))
        place = new_tile((size, 1), nl.int32)
        nisa.scalar_tensor_tensor(place, rows, nl.multiply, float(number), nl.add, every)
        flat = affinity.reshape((count * number, 1))
        nisa.dma_copy(weight, flat.ap([[1, size], [1, 1]], vector_offset=place), oob_mode=mode)
        acc = nl.ndarray((size, inner), dtype=nl.float32, buffer=nl.psum)
        nisa.nc_matmul(acc, pe_transpose(given), w_sb)
        there = out.ap([[inner, size], [1, inner]], vector_offset=rows)
        nisa.dma_copy(dst=old, src=there, oob_mode=mode)
        nisa.scalar_tensor_tensor(old, acc, nl.multiply, weight, nl.add, old)
        nisa.dma_copy(dst=there, src=old, oob_mode=mode)
    return out


@nki.jit
def grouped_router(logits, bias, groups: int = 4, kept: int = 2, k: int = 4, scale: float = 2.5):
    """The k best experts of the `kept` best groups; a group counts as much as its best two."""
    rows, experts = logits.shape
    inside = experts // groups
    index = nl.ndarray((rows, k), dtype=nl.uint32, buffer=nl.shared_hbm, name="experts")
    weights = nl.ndarray((rows, k), dtype=nl.float32, buffer=nl.shared_hbm, name="weights")
    score, choice, every = (new_tile((rows, experts)) for _ in range(3))
    nisa.activation(score, nl.sigmoid, load(logits))
    nisa.dma_copy(every, bias.broadcast(0, rows))
    nisa.tensor_tensor(choice, score, every, nl.add)
    of_group = nl.full((rows, 8), LEAST, dtype=nl.float32, buffer=nl.sbuf)
    best = new_tile((rows, 8))
    for g in range(groups):
        nisa.max8(best, choice[:, g * inside : (g + 1) * inside])
        nisa.tensor_tensor(of_group[:, g : g + 1], best[:, 0:1], best[:, 1:2], nl.add)
    nisa.max8(best, of_group)
    mask = new_tile((rows, groups))
    nisa.tensor_scalar(mask, of_group[:, :groups], nl.greater_equal, best[:, kept - 1 : kept])
    nisa.tensor_scalar(mask, mask, nl.subtract, 1.0, op1=nl.multiply, operand1=1e9)
    left = new_tile((rows, groups, inside))
    spread = mask.expand_dim(2).broadcast(2, inside)
    nisa.tensor_tensor(left, choice.reshape((rows, groups, inside)), spread, nl.add)
    left = left.reshape((rows, experts))
    at, found, total = new_tile((rows, 8), nl.uint32), new_tile((rows, k)), new_tile((rows, 1))
    nisa.max8(best, left)
    nisa.nc_find_index8(at, left, best)
    nisa.nc_n_gather(found, score, at[:, 0:k])
    nisa.tensor_reduce(total, nl.add, found, axis=1)
    nisa.reciprocal(total, total)
    nisa.tensor_scalar(found, found, nl.multiply, total, op1=nl.multiply, operand1=scale)
    nisa.dma_copy(index, at[:, :k])
    nisa.dma_copy(weights, found)
    return index, weights


@nki.jit
def packed_softmax(scores, ids):
    """Causal softmax inside each of several sequences in one row of ids (1, n)."""
    n = scores.shape[0]
    out = nl.ndarray(scores.shape, dtype=scores.dtype, buffer=nl.shared_hbm)
    bounds = new_tile((1, 2, n))
    nisa.sequence_bounds(dst=bounds, segment_ids=load(ids))
    across = nl.ndarray((2, n), dtype=nl.float32, buffer=nl.private_hbm)
    nisa.dma_copy(across, bounds.reshape((1, 2 * n)))
    first, own = load(across[0].reshape((n, 1))), new_tile((n, 1))
    nisa.iota(own, [[0, 1]], channel_multiplier=1)
    seen, top, total = new_tile((n, n)), new_tile((n, 1)), new_tile((n, 1))
    nisa.range_select(
        dst=seen,
        on_true_tile=load(scores),
        comp_op0=nl.greater_equal,
        comp_op1=nl.less_equal,
        bound0=first,
        bound1=own,
        reduce_cmd=reduce_cmd.reset_reduce,
        reduce_res=top,
        reduce_op=nl.maximum,
    )
    nisa.activation_reduce(seen, nl.exp, seen, nl.add, total, bias=nl.negative(top))
    nisa.reciprocal(total, total)
    nisa.activation(seen, nl.copy, seen, scale=total)
    nisa.dma_copy(out, seen)
    return out


@nki.jit
def eighths(x, w):
    """Rows quantised to the type float8_e4m3fn by name, their product with such weights."""
    rows, width = x.shape
    out = nl.ndarray((rows, w.shape[1]), dtype=nl.float32, buffer=nl.shared_hbm)
    tile, scale = load(x, nl.float32), new_tile((rows, 1))
    nisa.tensor_reduce(scale, nl.maximum, nl.abs(tile), axis=1)
    nisa.tensor_scalar(scale, scale, nl.maximum, 1e-5, op1=nl.multiply, operand1=1 / 224)
    small = new_tile((rows, width), nl.float8_e4m3fn)
    nisa.tensor_scalar(small, tile, nl.multiply, nl.reciprocal(scale))
    wide = new_tile((rows, width), nl.bfloat16)
    nisa.tensor_copy(wide, small)
    acc = nl.ndarray(out.shape, dtype=nl.float32, buffer=nl.psum)
    nisa.nc_matmul(acc, pe_transpose(wide), load(w))
    done = new_tile(out.shape)
    nisa.activation(done, nl.copy, acc, scale=scale)
    nisa.dma_copy(out, done)
    return out
