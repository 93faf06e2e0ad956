"""Experts: the router, and moving tokens to and from the rows of experts."""

import nki
import nki.isa as nisa
import nki.language as nl

from kernels.common import P_MAX, kernel_assert, load, tiles_of


@nki.jit
def router(logits, k: int = 4, normalise: bool = True):
    """The k best experts of each token: their numbers, their affinities, and all as a dense row."""
    tokens, experts = logits.shape
    kernel_assert(k <= 8, f"k is {k}, and one max8 finds 8")
    index = nl.ndarray((tokens, k), dtype=nl.uint32, buffer=nl.shared_hbm, name="index")
    affinity = nl.ndarray((tokens, k), dtype=nl.float32, buffer=nl.shared_hbm, name="affinity")
    dense = nl.ndarray((tokens, experts), dtype=nl.float32, buffer=nl.shared_hbm, name="dense")
    for row in tiles_of(tokens, P_MAX):
        x = load(logits[row.start : row.end], nl.float32)
        best = nl.ndarray((row.size, 8), dtype=nl.float32, buffer=nl.sbuf)
        nisa.max8(dst=best, src=x)
        where = nl.ndarray((row.size, 8), dtype=nl.uint32, buffer=nl.sbuf)
        nisa.nc_find_index8(dst=where, data=x, vals=best)
        low = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(low, best[:, 0:1], op0=nl.multiply, operand0=-1.0)
        e = nl.ndarray((row.size, k), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation_reduce(e, nl.exp, best[:, 0:k], nl.add, total, bias=low)
        if normalise:
            nisa.reciprocal(total, total)
            nisa.tensor_scalar(e, e, op0=nl.multiply, operand0=total)
        number = nl.ndarray((row.size, experts), dtype=nl.float32, buffer=nl.sbuf)
        nisa.iota(number, [[1, experts]], offset=0, channel_multiplier=0)
        as_float = nl.ndarray((row.size, k), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_copy(as_float, where[:, :k])
        line = nl.zeros((row.size, experts), dtype=nl.float32)
        for j in range(k):
            hit = nl.ndarray((row.size, experts), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(
                hit,
                number,
                op0=nl.equal,
                operand0=as_float[:, j : j + 1],
                op1=nl.multiply,
                operand1=e[:, j],
            )
            nisa.tensor_tensor(line, line, hit, op=nl.add)
        nisa.dma_copy(index[row.start : row.end], where[:, 0:k])
        nisa.dma_copy(affinity[row.start : row.end], e)
        nisa.dma_copy(dense[row.start : row.end], line)
    return index, affinity, dense


@nki.jit
def top_sixteen(x):
    """Two rounds of max8; what the first found is replaced before the second."""
    rows, _width = x.shape
    values = nl.ndarray((rows, 16), dtype=nl.float32, buffer=nl.shared_hbm)
    places = nl.ndarray((rows, 16), dtype=nl.int32, buffer=nl.shared_hbm)
    data = load(x)
    for turn in range(2):
        best = nl.ndarray((rows, 8), dtype=nl.float32, buffer=nl.sbuf)
        at = nl.ndarray((rows, 8), dtype=nl.uint32, buffer=nl.sbuf)
        nisa.max8(dst=best, src=data)
        nisa.nc_match_replace8(dst=data, data=data, vals=best, imm=-1e30, dst_idx=at)
        signed = nl.ndarray((rows, 8), dtype=nl.int32, buffer=nl.sbuf)
        nisa.tensor_copy(dst=signed, src=at)
        nisa.dma_copy(dst=values[:, 8 * turn : 8 * turn + 8], src=best)
        nisa.dma_copy(dst=places[:, nl.ds(8 * turn, 8)], src=signed)
    return values, places


@nki.jit
def gather_tokens(hidden, rows):
    """The rows of hidden that `rows` (n, 1) names; a row of -1 stays zero."""
    n, width = rows.shape[0], hidden.shape[1]
    out = nl.ndarray((n, width), dtype=hidden.dtype, buffer=nl.shared_hbm)
    for t in tiles_of(n, P_MAX):
        index = load(rows[t.start : t.end])
        held = nl.zeros((t.size, width), dtype=hidden.dtype, buffer=nl.sbuf)
        nisa.dma_copy(
            dst=held,
            src=hidden.ap([[width, t.size], [1, width]], vector_offset=index),
            oob_mode=nisa.oob_mode.skip,
        )
        nisa.dma_copy(dst=out[t.start : t.end], src=held)
    return out


@nki.jit
def scatter_tokens(updates, rows, base):
    """base with updates[i] added to its row rows[i], each row named at most once in a tile."""
    n, width = updates.shape
    total = base.shape[0]
    out = nl.ndarray(base.shape, dtype=base.dtype, buffer=nl.shared_hbm)
    for t in tiles_of(total, P_MAX):
        nisa.dma_copy(dst=out[t.start : t.end], src=load(base[t.start : t.end]))
    for t in tiles_of(n, P_MAX):
        index = load(rows[t.start : t.end])
        place = out.ap(pattern=[[width, t.size], [1, width]], vector_offset=index)
        nisa.dma_compute(
            dst=place,
            srcs=[place, load(updates[t.start : t.end])],
            reduce_op=nl.add,
            unique_indices=True,
        )
    return out


@nki.jit
def embedding(table, ids):
    """Rows of a table by number, 128 tokens a time, for ids (batch, seq)."""
    batch, seq = ids.shape
    width = table.shape[1]
    out = nl.ndarray((batch, seq, width), dtype=table.dtype, buffer=nl.shared_hbm)
    flat, rows = out.reshape((batch * seq, width)), ids.reshape((batch * seq, 1))
    for t in tiles_of(batch * seq, P_MAX):
        index = load(rows[t.start : t.end])
        held = nl.ndarray((t.size, width), dtype=table.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=held, src=table.vector_select(0, index))
        nisa.dma_copy(dst=flat[t.start : t.end], src=held)
    return out
