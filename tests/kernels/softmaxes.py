"""Softmax: whole rows, running over columns, masked, and as a loss."""

import nki
import nki.isa as nisa
import nki.language as nl

from kernels.common import P_MAX, div_ceil, kernel_assert, load, program_info, tiles_of

LEAST = -3.0e38


@nki.jit
def softmax(x):
    """Each row; the rows are split over the cores."""
    programs, me = program_info("softmax")
    rows, _width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    share = div_ceil(rows, programs)
    for row in tiles_of(min(share, rows - me * share), P_MAX):
        at = nl.ds(me * share + row.start, row.size)
        tile = load(x[at, :])
        low = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_reduce(dst=low, op=nl.maximum, data=tile, axis=1, negate=True)
        e = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(
            dst=e,
            op=nl.exp,
            data=tile,
            bias=low,
            reduce_op=nl.add,
            reduce_res=total,
            reduce_cmd=nisa.reduce_cmd.reset_reduce,
        )
        nisa.reciprocal(dst=total, data=total)
        nisa.activation(dst=tile, op=nl.copy, data=e, scale=total)
        nisa.dma_copy(dst=out[at, :], src=tile)
    return out


@nki.jit
def running_softmax(x, chunk=256):
    """Columns chunk by chunk with a running maximum and sum; a second walk divides."""
    rows, width = x.shape
    kernel_assert(rows <= P_MAX, f"{rows} rows")
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    top = nl.full((rows, 1), LEAST, dtype=nl.float32)
    total = nl.zeros((rows, 1), dtype=nl.float32)
    pieces = []
    for c in tiles_of(width, chunk):
        piece = load(x[:, c.start : c.end], nl.float32)
        pieces.append(piece)
        here = nl.max(piece, axis=1, keepdims=True)
        new = nl.maximum(top, here)
        shift = nl.subtract(top, new)
        alpha = nl.exp(shift)
        low = nl.negative(new)
        e, part = nl.empty_like(piece), nl.ndarray((rows, 1), dtype=nl.float32)
        nisa.activation_reduce(e, nl.exp, piece, nl.add, part, bias=low)
        nisa.scalar_tensor_tensor(
            dst=total, data=total, op0=nl.multiply, operand0=alpha, op1=nl.add, operand1=part
        )
        nisa.tensor_copy(dst=top, src=new)
    low, inverse = nl.negative(top), nl.reciprocal(total)
    for c, piece in zip(tiles_of(width, chunk), pieces, strict=True):
        e = nl.ndarray(piece.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=e, op=nl.exp, data=piece, bias=low)
        nisa.tensor_scalar(dst=e, data=e, op0=nl.multiply, operand0=inverse)
        nl.store(dst=out[:, c.start : c.end], value=e)
    return out


@nki.jit
def masked_softmax(scores, lengths, causal: bool = True):
    """Row i sees the columns below lengths[i], and up to its own number when causal."""
    rows, width = scores.shape
    out = nl.ndarray(scores.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    for row in tiles_of(rows, P_MAX):
        tile = load(scores[row.start : row.end], nl.float32)
        if causal:
            nisa.affine_select(
                dst=tile,
                pattern=[[-1, width]],
                offset=row.start,
                channel_multiplier=1,
                on_true_tile=tile,
                on_false_value=LEAST,
                cmp_op=nl.greater_equal,
            )
        zero = nl.zeros((row.size, 1), dtype=nl.float32)
        bound = load(lengths[row.start : row.end], nl.float32)
        top = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
        kept = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.range_select(
            dst=kept,
            on_true_tile=tile,
            comp_op0=nl.greater_equal,
            comp_op1=nl.less,
            bound0=zero,
            bound1=bound,
            reduce_res=top,
            reduce_op=nl.maximum,
            range_start=0,
            on_false_value=nl.fp32.min,
        )
        nisa.tensor_scalar(dst=top, data=top, op0=nl.multiply, operand0=-1.0)
        total = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation_reduce(
            dst=kept, op=nl.exp, data=kept, reduce_op=nl.add, reduce_res=total, bias=top
        )
        nisa.reciprocal(dst=total, data=total)
        nisa.tensor_scalar(dst=kept, data=kept, op0=nl.multiply, operand0=total)
        nisa.dma_copy(dst=out[row.start : row.end], src=kept)
    return out


@nki.jit
def cross_entropy(logits, labels, chunk: int = 512):
    """Loss of each row and its log-sum-exp; the label's logit is found by comparing with iota."""
    rows, width = logits.shape
    loss = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    lse = nl.ndarray((rows, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    for row in tiles_of(rows, P_MAX):
        label = load(labels[row.start : row.end], nl.float32)
        top = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
        mine = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(top, LEAST)
        nisa.memset(total, 0.0)
        nisa.memset(mine, 0)
        for c in tiles_of(width, chunk):
            x = load(logits[row.start : row.end, c.start : c.end], nl.float32)
            number = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
            nisa.iota(dst=number, pattern=[[1, c.size]], offset=c.start, channel_multiplier=0)
            hit = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.sbuf)
            nisa.scalar_tensor_tensor(
                dst=hit, data=number, op0=nl.equal, operand0=label, op1=nl.multiply, operand1=x
            )
            found = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_reduce(dst=found, op=nl.add, data=hit, axis=(1,))
            nisa.tensor_tensor(dst=mine, data1=mine, data2=found, op=nl.add)
            here = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_reduce(dst=here, op=nl.maximum, data=x, axis=[1])
            new = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor(dst=new, data1=top, data2=here, op=nl.maximum)
            alpha = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor(dst=alpha, data1=top, data2=new, op=nl.subtract)
            nisa.activation(dst=alpha, op=nl.exp, data=alpha)
            low = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_scalar(dst=low, data=new, op0=nl.multiply, operand0=-1.0)
            part = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation_reduce(
                dst=x, op=nl.exp, data=x, reduce_op=nl.add, reduce_res=part, bias=low
            )
            nisa.tensor_scalar(
                dst=total,
                data=total,
                op0=nl.multiply,
                operand0=alpha,
                op1=nl.add,
                operand1=part,
            )
            nisa.tensor_copy(dst=top, src=new)
        log = nl.ndarray((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
        nisa.activation(dst=log, op=nl.log, data=total)
        nisa.tensor_tensor(dst=log, data1=log, data2=top, op=nl.add)
        nisa.dma_copy(dst=lse[row.start : row.end], src=log)
        nisa.tensor_tensor(dst=log, data1=log, data2=mine, op=nl.subtract)
        nisa.dma_copy(dst=loss[row.start : row.end], src=log)
    return loss, lse
