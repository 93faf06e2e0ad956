"""Along a sequence: sums, recurrences, convolutions, rotations."""

import nki
import nki.isa as nisa
import nki.language as nl

from kernels.common import P_MAX, kernel_assert, load, tiles_of


@nki.jit
def cumsum(x, chunk: int = 300):
    """Along the last axis, chunk by chunk; the last column of one starts the next."""
    rows, width = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for row in tiles_of(rows, P_MAX):
        carry = nl.zeros((row.size, 1), dtype=nl.float32, buffer=nl.sbuf)
        ones = nl.ones((row.size, chunk), dtype=nl.float32, buffer=nl.sbuf)
        for c in tiles_of(width, chunk):
            tile = load(x[row.start : row.end, c.start : c.end])
            sums = nl.ndarray(tile.shape, dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor_scan(
                dst=sums,
                data0=ones[:, : c.size],
                data1=tile,
                initial=carry,
                op0=nl.multiply,
                op1=nl.add,
            )
            nisa.tensor_copy(dst=carry, src=sums[:, c.size - 1 : c.size])
            done = nl.ndarray(tile.shape, dtype=out.dtype, buffer=nl.sbuf)
            nisa.tensor_copy(dst=done, src=sums)
            nisa.dma_copy(dst=out[row.start : row.end, c.start : c.end], src=done)
    return out


@nki.jit
def selective_scan(delta, u, a, b, c):
    """The recurrence of a state-space layer: (channels, length), states one after the other."""
    channels, length = delta.shape
    states = a.shape[1]
    out = nl.ndarray(delta.shape, dtype=delta.dtype, buffer=nl.shared_hbm)
    for ch in tiles_of(channels, P_MAX):
        d, x = load(delta[ch.start : ch.end]), load(u[ch.start : ch.end])
        rates = load(a[ch.start : ch.end])
        du = nl.ndarray(d.shape, dtype=nl.float32, buffer=nl.sbuf)
        nisa.tensor_tensor(du, d, x, op=nl.multiply, engine=nisa.engine.gpsimd)
        total = nl.zeros(d.shape, dtype=nl.float32)
        for s in range(states):
            decay = nl.ndarray(d.shape, dtype=nl.float32, buffer=nl.sbuf)
            nisa.activation(dst=decay, op=nl.exp, data=d, scale=rates[:, s : s + 1])
            row = nl.ndarray(d.shape, dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=row, src=b.ap([[0, ch.size], [1, length]], offset=s * length))
            nisa.tensor_tensor(dst=row, data1=row, data2=du, op=nl.multiply)
            state = nl.ndarray(d.shape, dtype=nl.float32, buffer=nl.sbuf)
            nisa.tensor_tensor_scan(state, decay, row, 0.0, op0=nl.multiply, op1=nl.add)
            nisa.dma_copy(dst=row, src=c[s : s + 1, :].ap([[0, ch.size], [1, length]]))
            nisa.tensor_tensor(state, state, row, op=nl.multiply)
            nisa.tensor_tensor(total, total, state, op=nl.add)
        nisa.dma_copy(out[ch.start : ch.end], total)
    return out


@nki.jit
def depthwise_conv1d(x, taps, bias=None):
    """x (channels, length), taps (channels, k): causal, by shifted views of a padded row."""
    channels, length = x.shape
    k = taps.shape[1]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for ch in tiles_of(channels, P_MAX):
        width = length + k - 1
        padded = nl.ndarray((ch.size, width), dtype=nl.float32, buffer=nl.sbuf)
        nisa.memset(padded[:, : k - 1], 0.0)
        nisa.dma_copy(dst=padded[:, nl.ds(k - 1, length)], src=x[ch.start : ch.end])
        w = load(taps[ch.start : ch.end], nl.float32)
        acc = nl.ndarray((ch.size, length), dtype=nl.float32, buffer=nl.sbuf)
        for tap in nl.static_range(k):
            view = padded.ap(pattern=[[width, ch.size], [1, length]], offset=tap)
            if tap == 0:
                nisa.tensor_scalar(acc, view, op0=nl.multiply, operand0=w[:, 0:1])
            else:
                nisa.scalar_tensor_tensor(
                    acc, view, op0=nl.multiply, operand0=w[:, tap], op1=nl.add, operand1=acc
                )
        if bias is not None:
            shift = load(bias.reshape((channels, 1))[ch.start : ch.end], nl.float32)
            nisa.activation(dst=acc, op=nl.silu, data=acc, bias=shift)
        nl.store(out[ch.start : ch.end], acc)
    return out


@nki.jit
def conv2d(image, filters):
    """image (ci, h, w), filters (ci, kh, kw, co): valid, one product for each tap."""
    ci, h, w = image.shape
    ci_again, kh, kw, co = filters.shape
    kernel_assert(ci == ci_again and ci <= P_MAX and co <= P_MAX, "channels do not fit")
    ho, wo = h - kh + 1, w - kw + 1
    out = nl.ndarray((co, ho, wo), dtype=image.dtype, buffer=nl.shared_hbm)
    x, taps = load(image), load(filters)
    rows = max(1, 512 // wo)
    for band in tiles_of(ho, rows):
        acc = nl.ndarray((co, band.size, wo), dtype=nl.float32, buffer=nl.psum)
        for i in range(kh):
            for j in range(kw):
                nisa.nc_matmul(
                    dst=acc,
                    stationary=taps[:, i, j, :],
                    moving=x[:, band.start + i : band.end + i, j : j + wo],
                )
        done = nl.ndarray(acc.shape, dtype=out.dtype, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=done, data=acc, op0=nl.maximum, operand0=0.0)
        nisa.dma_copy(dst=out[:, band.start : band.end, :], src=done)
    return out


@nki.jit
def pool2d(x, size: int, kind: str = "average"):
    """Windows as a five-axis view; the last two are folded."""
    c, h, w = x.shape
    out = nl.ndarray((c, h // size, w // size), dtype=x.dtype, buffer=nl.shared_hbm)
    tile = load(x)
    windows = tile.ap([[h * w, c], [size * w, h // size], [size, w // size], [w, size], [1, size]])
    folded = nl.ndarray(out.shape, dtype=nl.float32, buffer=nl.sbuf)
    op = {"average": nl.add, "max": nl.maximum}[kind]
    nisa.tensor_reduce(dst=folded, op=op, data=windows, axis=(3, 4))
    if kind == "average":
        nisa.tensor_scalar(folded, folded, op0=nl.multiply, operand0=1.0 / size**2)
    nisa.dma_copy(dst=out, src=folded)
    return out


@nki.jit
def rope(x, cos, sin, interleaved: bool = False):
    """x (batch, heads, s, d), cos and sin (s, d / 2); pairs are halves or neighbours."""
    batch, heads, s, d = x.shape
    half = d // 2
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    for t in tiles_of(s, P_MAX):
        c, sn = load(cos[t.start : t.end], nl.float32), load(sin[t.start : t.end], nl.float32)
        for b in range(batch):
            # all heads of these positions lie behind each other: (positions, heads, d)
            tile = nl.ndarray((t.size, heads, d), dtype=nl.float32, buffer=nl.sbuf)
            nisa.dma_copy(dst=tile, src=x[b, :, t.start : t.end, :].permute((1, 0, 2)))
            turned = nl.ndarray(tile.shape, dtype=x.dtype, buffer=nl.sbuf)
            if interleaved:
                even, odd = tile[:, :, 0::2], tile[:, :, 1::2]
                to_even, to_odd = turned[:, :, 0::2], turned[:, :, 1::2]
            else:
                even, odd = tile[:, :, :half], tile[:, :, half:]
                to_even, to_odd = turned[:, :, :half], turned[:, :, half:]
            wide_c = c.expand_dim(1).broadcast(1, heads)
            wide_s = sn.reshape((t.size, 1, half)).broadcast(1, heads)
            shape = (t.size, heads, half)
            ec, os, oc, es = [nl.ndarray(shape, dtype=nl.float32, buffer=nl.sbuf) for _ in range(4)]
            nisa.tensor_tensor(ec, even, wide_c, op=nl.multiply)
            nisa.tensor_tensor(os, odd, wide_s, op=nl.multiply)
            nisa.tensor_tensor(oc, odd, wide_c, op=nl.multiply)
            nisa.tensor_tensor(es, even, wide_s, op=nl.multiply)
            nisa.tensor_tensor(to_even, ec, os, op=nl.subtract)
            nisa.tensor_tensor(to_odd, oc, es, op=nl.add)
            nisa.dma_copy(dst=out[b, :, t.start : t.end, :].permute((1, 0, 2)), src=turned)
    return out
