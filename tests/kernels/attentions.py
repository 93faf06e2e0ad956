"""Attention: for a whole prompt, for one new token with a cache, and over a paged cache."""

from dataclasses import dataclass, field

import nki
import nki.isa as nisa
import nki.language as nl

from kernels.common import P_MAX, kernel_assert, load, pe_transpose, program_info, tiles_of

LEAST = -30000.0


@dataclass
class Running(nl.NKIObject):
    """The state of one group of queries: negated maximum, sum, output before division."""

    size: int
    d: int
    low: nl.ndarray = field(default=None)
    total = None
    out = None

    def __post_init__(self):
        self.low = nl.ndarray((self.size, 1), dtype=nl.float32, buffer=nl.sbuf)
        self.total = nl.ndarray((self.size, 1), dtype=nl.float32, buffer=nl.sbuf)
        self.out = nl.ndarray((self.size, self.d), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(self.low, -LEAST)
        nisa.memset(self.total, 0.0)
        nisa.memset(self.out, 0.0)

    def step(self, scores, values, dtype):
        """Take in a tile of scores (size, n) and its values (n, d)."""
        size = self.size
        here = nl.ndarray((size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(here, nl.maximum, scores, axis=1, negate=True)
        new = nl.ndarray((size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(new, self.low, here, op=nl.minimum)
        alpha = nl.ndarray((size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(alpha, nl.exp, self.low, bias=new, scale=-1.0)
        p = nl.ndarray(scores.shape, dtype=dtype, buffer=nl.sbuf)
        part = nl.ndarray((size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation_reduce(p, nl.exp, scores, nl.add, part, bias=new)
        nisa.scalar_tensor_tensor(
            self.total, self.total, op0=nl.multiply, operand0=alpha, op1=nl.add, operand1=part
        )
        acc = nl.ndarray((size, self.d), dtype=nl.float32, buffer=nl.psum)
        for n in tiles_of(scores.shape[1], P_MAX):
            nisa.nc_matmul(acc, pe_transpose(p[:, n.start : n.end]), values(n))
        nisa.scalar_tensor_tensor(
            self.out, self.out, op0=nl.multiply, operand0=alpha, op1=nl.add, operand1=acc
        )
        self.low = new


@nki.jit
def flash_attention(q, k, v, scale=None, causal=True):
    """q (heads, s, d), k and v (kv heads, s, d); heads are split over the cores."""
    heads, s, d = q.shape
    kv_heads = k.shape[0]
    programs, me = program_info("flash_attention")
    kernel_assert(heads % programs == 0, f"{heads} heads on {programs} cores")
    scale = d**-0.5 if scale is None else scale
    out = nl.ndarray(q.shape, dtype=q.dtype, buffer=nl.shared_hbm)
    for head in range(me * heads // programs, (me + 1) * heads // programs):
        kv = head // (heads // kv_heads)
        k_t = nl.ndarray((d, s), dtype=k.dtype, buffer=nl.sbuf, name=f"k_t_{head}")
        for t in tiles_of(s, P_MAX):
            nisa.tensor_copy(k_t[:, t.start : t.end], pe_transpose(load(k[kv, t.start : t.end])))
        for row in tiles_of(s, P_MAX):
            tile = load(q[head, row.start : row.end, :])
            nisa.tensor_scalar(tile, tile, op0=nl.multiply, operand0=scale)
            q_t = pe_transpose(tile)
            state = Running(row.size, d)
            for col in tiles_of(s, 512):
                if causal and col.start >= row.end:
                    break
                size = min(col.size, row.end - col.start) if causal else col.size
                acc = nl.ndarray((row.size, size), dtype=nl.float32, buffer=nl.psum)
                nisa.nc_matmul(acc, q_t, k_t[:, nl.ds(col.start, size)])
                scores = nl.ndarray((row.size, size), dtype=nl.float32, buffer=nl.sbuf)
                nisa.tensor_copy(scores, acc)
                if causal and col.start + size > row.start:
                    nisa.affine_select(
                        dst=scores,
                        pattern=[[-1, size]],
                        channel_multiplier=1,
                        offset=row.start - col.start,
                        on_true_tile=scores,
                        on_false_value=LEAST,
                        cmp_op=nl.greater_equal,
                    )
                state.step(
                    scores,
                    lambda n, at=col.start, kv=kv: load(v[kv, at + n.start : at + n.end, :]),
                    v.dtype,
                )
            inverse = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.reciprocal(inverse, state.total)
            done = nl.ndarray((row.size, d), dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_scalar(done, state.out, op0=nl.multiply, operand0=inverse)
            nisa.dma_copy(dst=out[head, row.start : row.end, :], src=done)
    return out


@nki.jit
def decode_attention(q, k_new, v_new, k_cache, v_cache, position):
    """One token: its key and value go to `position` of the caches, then it attends to the prefix.

    q (kv, group, d); k_cache and v_cache (kv, length, d), written in place; position (1, 1).
    """
    kv, group, d = q.shape
    length = k_cache.shape[1]
    out = nl.ndarray(q.shape, dtype=q.dtype, buffer=nl.shared_hbm)
    at = nl.ndarray((1, 1), dtype=nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=at, src=position)
    for cache, new in ((k_cache, k_new), (v_cache, v_new)):
        nisa.dma_copy(
            dst=cache.ap(
                pattern=[[length * d, kv], [1, 1], [1, d]], scalar_offset=at, indirect_dim=1
            ),
            src=new.reshape((kv, 1, d)),
        )
    # The number of visible columns, on every partition of a group.
    limit = nl.ndarray((group, 1), dtype=nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=limit, src=position.ap([[0, group], [1, 1]]))
    zero = nl.zeros((group, 1), dtype=nl.float32, buffer=nl.sbuf)
    for h in range(kv):
        q_t = pe_transpose(load(q[h]))
        scores = nl.ndarray((group, length), dtype=nl.float32, buffer=nl.sbuf)
        for t in tiles_of(length, P_MAX):
            k_t = nl.ndarray((d, t.size), dtype=k_cache.dtype, buffer=nl.sbuf)
            nisa.dma_transpose(dst=k_t, src=k_cache[h, t.start : t.end, :])
            acc = nl.ndarray((group, t.size), dtype=nl.float32, buffer=nl.psum)
            nisa.nc_matmul(acc, q_t, k_t)
            nisa.activation(scores[:, t.start : t.end], nl.copy, acc, scale=float(d) ** -0.5)
        top = nl.ndarray((group, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.range_select(
            scores,
            scores,
            nl.greater_equal,
            nl.less_equal,
            zero,
            limit,
            reduce_res=top,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        nisa.tensor_scalar(top, top, op0=nl.multiply, operand0=-1.0)
        p = nl.ndarray((group, length), dtype=v_cache.dtype, buffer=nl.sbuf)
        total = nl.ndarray((group, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(
            p,
            nl.exp,
            scores,
            bias=top,
            reduce_op=nl.add,
            reduce_res=total,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        acc = nl.ndarray((group, d), dtype=nl.float32, buffer=nl.psum)
        for t in tiles_of(length, P_MAX):
            nisa.nc_matmul(
                acc, pe_transpose(p[:, t.start : t.end]), load(v_cache[h, t.start : t.end])
            )
        nisa.reciprocal(total, total)
        done = nl.ndarray((group, d), dtype=out.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(done, acc, op0=nl.multiply, operand0=total)
        nisa.dma_copy(out[h], done)
    return out, k_cache, v_cache


@nki.jit
def paged_keys(cache, table, block: int):
    """The blocks of a paged cache (blocks, block * d) that a table (n, 1) names, in its order."""
    n = table.shape[0]
    width = cache.shape[1]
    out = nl.ndarray((n, block, width // block), dtype=cache.dtype, buffer=nl.shared_hbm)
    for t in tiles_of(n, P_MAX):
        rows = load(table[t.start : t.end])
        held = nl.ndarray((t.size, width), dtype=cache.dtype, buffer=nl.sbuf)
        nisa.dma_copy(
            dst=held,
            src=cache.ap(pattern=[[width, t.size], [1, width]], vector_offset=rows, indirect_dim=0),
        )
        nisa.dma_copy(dst=out[t.start : t.end], src=held.reshape((t.size, block, width // block)))
    return out
