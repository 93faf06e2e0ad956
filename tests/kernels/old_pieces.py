"""Pieces in the older API: windows, scans, sorts, recurrences, masks at every tail."""

import math

import neuronxcc.nki as nki
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import numpy as np
from neuronxcc.nki.language import par_dim


def div_ceil(n, d):
    return (n + d - 1) // d


@nki.jit
def trilinear2x(x):
    """[C, D, H, W] by a matmul per axis with weights built on host"""
    C, D, H, W = x.shape
    out = nl.ndarray((C, 2 * D, 2 * H, 2 * W), dtype=x.dtype, buffer=nl.shared_hbm)

    def taps(o, i):
        src = max((o + 0.5) / 2 - 0.5, 0.0)
        low = int(src)
        h = min(low + 1, i - 1)
        return (low, h, src - low)

    t = nl.load(x)
    a = nl.ndarray((par_dim(C), 2 * D, H, W), dtype=x.dtype)
    b = nl.ndarray((par_dim(C), 2 * D, 2 * H, W), dtype=x.dtype)
    c = nl.ndarray((par_dim(C), 2 * D, 2 * H, 2 * W), dtype=x.dtype)
    for axis, (src, dst, n) in enumerate(((t, a, D), (a, b, H), (b, c, W))):
        for o in range(2 * n):
            low, h, f = taps(o, n)
            pre = (slice(None),) * (axis + 1)
            lo, hi = (src[*pre, low], src[*pre, h])
            dst[*pre, o] = nl.add(nl.multiply(lo, 1.0 - f), nl.multiply(hi, f))
    nl.store(out, value=c)
    return out


@nki.jit
def select_and_scatter(operand, source):
    """3x3 stride2 pad1 max pool backward"""
    Nb, C, H, W = operand.shape
    _, _, h, w = source.shape
    out = nl.ndarray(operand.shape, dtype=operand.dtype, buffer=nl.shared_hbm)
    _kernel_size, _stride, _padding = ((3, 3), (2, 2), (1, 1))
    for n in nl.affine_range(Nb):
        for ct in nl.affine_range(div_ceil(C, 128)):
            i_p = nl.arange(128)[:, None, None]
            mk = ct * 128 + i_p < C
            i_h, i_w = (nl.arange(H)[None, :, None], nl.arange(W)[None, None, :])
            j_h, j_w = (nl.arange(h)[None, :, None], nl.arange(w)[None, None, :])
            pad = nl.full((par_dim(128), H + 2, W + 2), -3e30, dtype=operand.dtype)
            acc = nl.zeros((par_dim(128), H + 2, W + 2), dtype=operand.dtype)
            pad[i_p, 1 + i_h, 1 + i_w] = nl.load(operand[n, ct * 128 + i_p, i_h, i_w], mask=mk)
            src = nl.load(source[n, ct * 128 + i_p, j_h, j_w], mask=mk)
            mx = nl.full((par_dim(128), h, w), -3e38, dtype=operand.dtype)
            done = nl.zeros((par_dim(128), h, w), dtype=nl.float32)
            for a in nl.static_range(3):
                for b in nl.static_range(3):
                    mx[i_p, j_h, j_w] = nl.maximum(
                        mx[i_p, j_h, j_w], pad[i_p, j_h * 2 + a, j_w * 2 + b], mask=mk
                    )
            for a in nl.static_range(3):
                for b in nl.static_range(3):
                    v = pad[i_p, j_h * 2 + a, j_w * 2 + b]
                    eq = nl.equal(v, mx, mask=mk, dtype=nl.float32)
                    free = nl.equal(done, 0.0, mask=mk, dtype=nl.float32)
                    take = nl.multiply(eq, free, mask=mk)
                    done[i_p, j_h, j_w] = nl.add(done, take, mask=mk)
                    acc[i_p, j_h * 2 + a, j_w * 2 + b] = nl.add(
                        acc[i_p, j_h * 2 + a, j_w * 2 + b], nl.multiply(take, src, mask=mk), mask=mk
                    )
            nl.store(out[n, ct * 128 + i_p, i_h, i_w], value=acc[i_p, 1 + i_h, 1 + i_w], mask=mk)
    return out


@nki.jit
def cumsum_matmul(x):
    R, C = x.shape
    out = nl.ndarray(x.shape, dtype=nl.float32, buffer=nl.shared_hbm)
    i, j = nl.mgrid[0:128, 0:128]
    tri = nisa.affine_select(
        pred=j >= i, on_true_tile=nl.ones((128, 128), dtype=nl.float32), on_false_value=0.0
    )
    carry = nl.zeros((par_dim(1), C), dtype=nl.float32)
    one_row = nl.ones((1, 128), dtype=nl.float32)
    nl.zeros((128, 1), dtype=nl.float32)
    for t in nl.sequential_range(R // 128):
        xt = nl.load(x[nl.ds(t * 128, 128), :], dtype=nl.float32)
        ps = nl.ndarray((par_dim(128), C), dtype=nl.float32, buffer=nl.psum)
        ps[...] = nisa.nc_matmul(tri, xt)
        ps[...] += nisa.nc_matmul(one_row, carry)
        r = nl.copy(ps)
        nl.store(out[nl.ds(t * 128, 128), :], r)
        nisa.dma_copy(dst=carry, src=r[127:128, :])
    return out


@nki.jit
def kv_update(cache, new, pos):
    """cache (B,H,S,D) updated in place at pos[b]"""
    B, H, S, D = cache.shape
    out = nl.ndarray(cache.shape, dtype=cache.dtype, buffer=nl.shared_hbm)
    for b in nl.affine_range(B):
        for h in nl.affine_range(H):
            nisa.dma_copy(dst=out[b, h], src=cache[b, h])
    nl.load(pos.reshape((B, 1)))
    co = out.reshape((B * H * S, D))
    for b in nl.affine_range(B):
        row = nl.ndarray((par_dim(H), 1), dtype=nl.int32)
        off = nisa.iota(
            nl.arange(H)[:, None] * S + b * H * S + nl.arange(1)[None, :], dtype=nl.int32
        )
        p1 = nl.load(pos.reshape((B, 1))[b + 0 * nl.arange(H)[:, None], nl.arange(1)[None, :]])
        row[...] = nl.add(off, p1, dtype=nl.int32)
        t = nl.load(new[b, :, 0, :])
        nl.store(co[row[nl.arange(H)[:, None], 0], nl.arange(D)[None, :]], t)
    return out


@nki.jit
def argmax_rows(x):
    P, F = x.shape
    out = nl.ndarray((P, 1), dtype=nl.int32, buffer=nl.shared_hbm)
    t = nl.load(x)
    m = nl.max(t, axis=1, keepdims=True)
    idx = nisa.iota(nl.arange(F)[None, :], dtype=nl.float32)
    c = nl.where(nl.greater_equal(t, m), idx.broadcast_to((P, F)), float(F))
    nl.store(out, nl.min(c, axis=[1], dtype=nl.int32))
    return out


@nki.jit
def convT(x, w):
    C, L = x.shape
    K = w.shape[1]
    o = nl.ndarray((C, 2 * L + K - 2), dtype=x.dtype, buffer=nl.shared_hbm)
    t, f = (nl.load(x), nl.load(w))
    acc = nl.zeros((C, 2 * L + K - 2), dtype=nl.float32)
    ip, jl = (nl.arange(C)[:, None], nl.arange(L)[None, :])
    for k in nl.sequential_range(K):
        acc[ip, 2 * jl + k] += t * f[:, k]
    nl.store(o, acc)
    return o


@nki.jit
def jacobi(x):
    H, W = x.shape
    bufs = [nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.private_hbm) for _ in range(2)]
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    ip, jw = (nl.arange(128)[:, None], nl.arange(W - 2)[None, :])
    for b in [*bufs, out]:
        for i in nl.affine_range(math.ceil(H / 128)):
            jf = nl.arange(W)[None, :]
            nl.store(
                b[i * 128 + ip, jf],
                nl.load(x[i * 128 + ip, jf], mask=i * 128 + ip < H),
                mask=i * 128 + ip < H,
            )
    for s in nl.sequential_range(3):
        src = x if s == 0 else bufs[(s - 1) % 2]
        dst = out if s == 2 else bufs[s % 2]
        for i in nl.affine_range(math.ceil((H - 2) / 128)):
            r = i * 128 + ip
            m = r < H - 2
            up = nl.load(src[r, 1 + jw], mask=m)
            dn = nl.load(src[r + 2, 1 + jw], mask=m)
            lf = nl.load(src[r + 1, jw], mask=m)
            rt = nl.load(src[r + 1, 2 + jw], mask=m)
            y = nl.multiply(
                nl.add(nl.add(up, dn, mask=m), nl.add(lf, rt, mask=m), mask=m), 0.25, mask=m
            )
            nl.store(dst[r + 1, 1 + jw], y, mask=m)
    return out


@nki.jit
def bitonic(x):
    P, n = x.shape
    o = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    t = nl.load(x)
    k = 2
    while k <= n:
        j = k // 2
        while j > 0:
            nxt = nl.ndarray((P, n), dtype=x.dtype)
            if j == k // 2:
                ip, b, e = (
                    nl.arange(P)[:, None, None],
                    nl.arange(n // k)[None, :, None],
                    nl.arange(j)[None, None, :],
                )
                lo, hi = (b * k + e, b * k + (k - 1) - e)
            else:
                ip, b, e = nl.mgrid[0:P, 0 : n // (2 * j), 0:j]
                lo, hi = (b * 2 * j + e, b * 2 * j + j + e)
            nxt[ip, lo] = nl.minimum(t[ip, lo], t[ip, hi])
            nxt[ip, hi] = nl.maximum(t[ip, lo], t[ip, hi])
            t = nxt
            j //= 2
        k *= 2
    nl.store(o, t)
    return o


@nki.jit
def lstm(x, w, u, b):
    T, B, _D = x.shape
    H = u.shape[0]
    o = nl.ndarray((T, B, H), dtype=x.dtype, buffer=nl.shared_hbm)
    co = nl.ndarray((B, H), dtype=x.dtype, buffer=nl.shared_hbm)
    wt, ut = (nl.load(w), nl.load(u))
    bb = nl.load(b).broadcast_to((B, 4 * H))
    hT = nl.zeros((par_dim(H), B), dtype=nl.float32)
    c = nl.zeros((B, H), dtype=nl.float32)
    for t in nl.sequential_range(T):
        xT = nl.load_transpose2d(x[t])
        z = nl.zeros((B, 4 * H), dtype=nl.float32, buffer=nl.psum)
        z[...] += nisa.nc_matmul(xT, wt)
        z[...] += nisa.nc_matmul(hT, ut)
        zz = nl.add(z, bb)
        gates = zz.reshape((B, 4, H))
        i, f, g, q = (gates[:, k, :] for k in range(4))
        c[...] = nl.add(nl.sigmoid(f) * c, nl.sigmoid(i) * nl.tanh(g))
        h = nl.multiply(nl.sigmoid(q), nl.tanh(c))
        hT[...] = nisa.nc_transpose(h)
        nl.store(o[t], h)
    nl.store(co, c)
    return (o, co)


@nki.jit
def gather_skip(x, i):
    o = nl.ndarray((8, 8), dtype=x.dtype, buffer=nl.shared_hbm)
    it = nl.load(i)
    t = nl.zeros((8, 8), dtype=x.dtype)
    p, f = nl.mgrid[0:8, 0:8]
    nisa.dma_copy(dst=t[p, f], src=x[it[p, 0], f], oob_mode=nisa.oob_mode.skip, mask=p < 8)
    nl.store(o, t)
    return o


@nki.jit
def row_stats(x):
    R, C = x.shape
    outs = [nl.ndarray((R, 1), dtype=x.dtype, buffer=nl.shared_hbm) for _ in range(4)]
    CT = 128
    for i in nl.affine_range(math.ceil(R / 128)):
        ip = nl.arange(128)[:, None]
        j1 = nl.arange(1)[None, :]
        mx = nl.full((128, 1), -1e30, dtype=nl.float32)
        sm = nl.zeros((128, 1), dtype=nl.float32)
        sq = nl.zeros((128, 1), dtype=nl.float32)
        for c in nl.sequential_range(math.ceil(C / CT)):
            jf = nl.arange(CT)[None, :]
            m = (i * 128 + ip < R) & (c * CT + jf < C)
            t = nl.load(x[i * 128 + ip, c * CT + jf], mask=m)
            a = nisa.tensor_reduce(np.max, t[ip, jf], axis=(1,), mask=m)
            mx[ip, j1] = nl.maximum(mx[ip, j1], a, mask=i * 128 + ip < R)
            sm[ip, j1] += nl.sum(t, axis=[1], mask=m)
            s2 = nl.ndarray((128, 1), dtype=nl.float32)
            nisa.activation_reduce(nl.square, t, reduce_op=np.add, reduce_res=s2, mask=m)
            sq[ip, j1] = nl.add(sq[ip, j1], s2, mask=i * 128 + ip < R)
        r = i * 128 + ip
        nl.store(outs[0][r, j1], mx, mask=r < R)
        nl.store(outs[1][r, 0], sm, mask=r < R)
        nl.store(outs[2][r, j1], nl.divide(sm, C), mask=r < R)
        nl.store(outs[3][r, j1], nl.sqrt(nl.multiply(sq, 1.0 / C)), mask=r < R)
    return tuple(outs)


@nki.jit
def mask3d(x):
    B, C, H, W = x.shape
    o = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    ip, ih, iw = nl.mgrid[0:64, 0:4, 0:16]
    for b in nl.affine_range(B):
        for c in nl.affine_range(math.ceil(C / 64)):
            for h in nl.affine_range(math.ceil(H / 4)):
                m = (c * 64 + ip < C) & (h * 4 + ih < H) & (iw < W)
                t = nl.load(x[b, c * 64 + ip, h * 4 + ih, iw], mask=m)
                r = nisa.tensor_scalar(t, np.maximum, 0.0, op1=np.multiply, operand1=2.0, mask=m)
                nl.store(o[b, c * 64 + ip, h * 4 + ih, iw], r, mask=m)
    return o


@nki.jit
def t_masks(x):
    R, C = x.shape
    outs = [nl.ndarray((C, R), dtype=x.dtype, buffer=nl.shared_hbm) for _ in range(3)]
    ip, jf = (nl.arange(128)[:, None], nl.arange(128)[None, :])
    m = (ip < R) & (jf < C)
    t = nl.load(x[ip, jf], mask=m)
    mt = (ip < C) & (jf < R)
    nl.store(outs[0][ip, jf], nl.transpose(t, mask=m), mask=mt)
    nl.store(outs[1][ip, jf], nl.load_transpose2d(x[ip, jf], mask=m), mask=mt)
    nl.store(outs[2][ip, jf], nl.copy(nisa.nc_transpose(t[ip, jf], mask=m)), mask=mt)
    return outs
