"""Layers in the older API: norms, MLP, convolutions, losses, experts."""

import math
from enum import Enum
from typing import Any

import neuronxcc.nki as nki
import neuronxcc.nki.compiler as ncc
import neuronxcc.nki.isa as nisa
import neuronxcc.nki.language as nl
import neuronxcc.nki.typing as nt
import numpy as np
from neuronxcc.nki.compiler import psum, sbuf
from neuronxcc.nki.isa.constants import oob_mode
from neuronxcc.nki.language import par_dim


def div_ceil(n, d):
    return (n + d - 1) // d


@ncc.skip_middle_end_transformations
@nki.jit
def alloc_rmsnorm_qkv(hidden, weights, norm_dtype=nl.float32, eps=1e-06):
    assert len(hidden.shape) == 3, "Expecting input shape to be [batch, seqlen, dim]"
    batch, batchless_shape = (hidden.shape[0], hidden.shape[1:])
    seqlen, dim = batchless_shape
    _dim, head_dim = weights.shape
    assert dim <= 8192 and dim & 128 == 0, "Unsupported hidden dimension"
    assert _dim == dim
    assert head_dim <= 512
    out_tensor = nl.ndarray((batch, seqlen, head_dim), dtype=hidden.dtype, buffer=nl.shared_hbm)
    pmax, fmax = (nl.tile_size.pmax, nl.tile_size.psum_fmax)
    ix, iy = nl.mgrid[0:pmax, 0:dim]
    i_lhs = nl.mgrid[0:pmax, 0:pmax]
    i_rhs = nl.mgrid[0:pmax, 0:fmax]
    i_res = nl.mgrid[0:pmax, 0:fmax]
    M = math.ceil(dim / pmax)
    math.ceil(dim / fmax)
    NUM_TILES = math.ceil(seqlen / pmax)
    TILES_INT = math.ceil(NUM_TILES / 2)
    scale = 1 / dim
    iden_x, iden_y = nl.mgrid[0:pmax, 0:128]
    sbuf_base_addr = 0
    identity_a = nl.shared_constant(np.identity(n=128, dtype=np.int8), dtype=hidden.dtype)
    identity_tensor = nl.ndarray(
        (par_dim(128), 128), dtype=weights.dtype, buffer=sbuf.mod_alloc(base_addr=sbuf_base_addr)
    )
    sbuf_base_addr += 128 * 2
    identity_tensor[iden_x, iden_y] = nl.load(identity_a, dtype=weights.dtype)
    bias_placeholder = nl.ndarray(
        (par_dim(128), 1), dtype=np.float32, buffer=sbuf.mod_alloc(base_addr=sbuf_base_addr)
    )
    sbuf_base_addr += 4
    bias_placeholder[...] = 0
    weights_buffer = nl.ndarray(
        (M, par_dim(pmax), fmax),
        dtype=weights.dtype,
        buffer=sbuf.mod_alloc(base_addr=sbuf_base_addr, num_free_tiles=(M,)),
    )
    sbuf_base_addr += M * fmax * 2
    for m in nl.affine_range(M):
        weights_buffer[m, i_rhs.p, i_rhs.x] = nl.load(
            weights[m * pmax + i_rhs.p, i_rhs.x],
            mask=(m * pmax + i_rhs.p < dim) & (i_rhs.x < head_dim),
        )
    for b in nl.affine_range(batch):
        for i in nl.affine_range(TILES_INT):
            in_bufs = nl.ndarray(
                (2, par_dim(pmax), dim),
                dtype=hidden.dtype,
                buffer=sbuf.mod_alloc(base_addr=sbuf_base_addr, num_free_tiles=(2,)),
            )
            a1 = sbuf_base_addr + 2 * dim * 2
            act = nl.ndarray(
                (par_dim(pmax), dim), dtype=norm_dtype, buffer=sbuf.mod_alloc(base_addr=a1)
            )
            a2 = a1 + dim * 4
            sq = nl.ndarray(
                (2, par_dim(pmax), 1),
                dtype=norm_dtype,
                buffer=sbuf.mod_alloc(base_addr=a2, num_free_tiles=(2,)),
            )
            a3 = a2 + 8
            outn = nl.ndarray(
                (2, par_dim(pmax), dim),
                dtype=weights.dtype,
                buffer=sbuf.mod_alloc(base_addr=a3, num_free_tiles=(2,)),
            )
            a4 = a3 + 2 * dim * 2
            outT = nl.ndarray(
                (2, M, par_dim(pmax), 128),
                dtype=weights.dtype,
                buffer=sbuf.mod_alloc(base_addr=a4, num_free_tiles=(2, M)),
            )
            a5 = a4 + 2 * M * 128 * 2
            res = nl.ndarray(
                (2, par_dim(pmax), fmax),
                dtype=hidden.dtype,
                buffer=sbuf.mod_alloc(base_addr=a5, num_free_tiles=(2,)),
            )
            tp = nl.ndarray(
                (2, M, par_dim(pmax), 128),
                dtype=np.float32 if True else weights.dtype,
                buffer=psum.mod_alloc(base_bank=0, num_bank_tiles=(2, 1)),
            )
            rp = nl.ndarray(
                (2, par_dim(pmax), fmax),
                dtype=nl.float32,
                buffer=psum.mod_alloc(base_bank=4, num_bank_tiles=(2,)),
            )
            for j in nl.affine_range(2):
                row = (2 * i + j) * pmax + ix
                in_bufs[j, ix, iy] = nl.load(hidden[b, row, iy], mask=row < seqlen)
                act[ix, iy] = nisa.activation_reduce(
                    op=nl.square,
                    data=in_bufs[j, ix, iy],
                    reduce_op=np.add,
                    reduce_res=sq[j, ix, 0],
                    bias=bias_placeholder[ix, 0],
                    mask=row < seqlen,
                )
                sq[j, ix, 0] = nisa.tensor_scalar(
                    sq[j, ix, 0], np.multiply, scale, op1=np.add, operand1=eps, mask=row < seqlen
                )
                sq[j, ix, 0] = nisa.activation(
                    op=nl.rsqrt, data=sq[j, ix, 0], bias=bias_placeholder[ix, 0], mask=row < seqlen
                )
                outn[j, ix, iy] = nl.multiply(
                    in_bufs[j, ix, iy], sq[j, ix, 0], mask=row < seqlen, dtype=weights.dtype
                )
                for m in nl.affine_range(M):
                    tp[j, m, i_lhs.p, i_lhs.x] = nisa.nc_matmul(
                        outn[j, i_lhs.p, m * 128 + i_lhs.x],
                        identity_tensor[...],
                        is_moving_onezero=True,
                        mask=(2 * i + j) * pmax + i_lhs.p < seqlen,
                    )
                    outT[j, m, i_lhs.p, i_lhs.x] = nl.copy(
                        tp[j, m, i_lhs.p, i_lhs.x], dtype=weights.dtype
                    )
                for m in nl.affine_range(M):
                    rp[j, i_res.p, i_res.x] += nisa.nc_matmul(
                        outT[j, m, i_lhs.p, i_lhs.x],
                        weights_buffer[m, i_rhs.p, i_rhs.x],
                        mask=i_rhs.x < head_dim,
                    )
                res[j, i_res.p, i_res.x] = nl.copy(
                    rp[j, i_res.p, i_res.x], dtype=hidden.dtype, mask=i_res.x < head_dim
                )
                nl.store(
                    out_tensor[b, (2 * i + j) * pmax + i_res.p, i_res.x],
                    value=res[j, i_res.p, i_res.x],
                    mask=((2 * i + j) * pmax + i_res.p < seqlen) & (i_res.x < head_dim),
                )
    return out_tensor


class NormType(Enum):
    NO_NORM = 0
    RMS_NORM = 1
    LAYER_NORM = 2


class ActFn(Enum):
    SiLU = 0
    GELU = 1
    Swish = 2


@nki.jit
def layernorm_full(x, gamma, beta, eps=1e-05, out_dtype: Any | None = None):
    B, S, H = x.shape
    y = nl.ndarray(x.shape, dtype=out_dtype or x.dtype, buffer=nl.shared_hbm)
    mean_o = nl.ndarray((B, S, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    rstd_o = nl.ndarray((B, S, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    P = nl.tile_size.pmax
    FMAX = nl.tile_size.bn_stats_fmax
    ip = nl.arange(P)[:, None]
    ih = nl.arange(H)[None, :]
    i1 = nl.arange(1)[:, None]
    g = nl.load(gamma.reshape((1, H))[i1, ih]).broadcast_to((P, H))
    be = nl.broadcast_to(nl.load(beta.reshape((1, H))), shape=(P, H))
    for b in nl.affine_range(B):
        for t in nl.affine_range(math.ceil(S / P)):
            m = t * P + ip < S
            xt = nl.load(x[b, t * P + ip, ih], mask=m, dtype=nl.float32)
            nst = math.ceil(H / FMAX)
            st = nl.ndarray((P, 6 * nst), dtype=nl.float32)
            for f in nl.affine_range(nst):
                i_f = nl.arange(FMAX)[None, :]
                i_6 = nl.arange(6)[None, :]
                st[ip, f * 6 + i_6] = nisa.bn_stats(
                    xt[ip, f * FMAX + i_f], mask=m & (f * FMAX + i_f < H), dtype=nl.float32
                )
            agg = nisa.bn_aggr(st, mask=m)
            mean, var = (agg[ip, 0], agg[ip, 1])
            rstd = nl.rsqrt(nl.add(var, eps, mask=m), mask=m)
            shift = nl.multiply(mean, -1.0, mask=m)
            xn = nisa.tensor_scalar(
                data=xt, op0=nl.add, operand0=shift, op1=nl.multiply, operand1=rstd, mask=m
            )
            yt = nl.add(nl.multiply(xn, g, mask=m), be, mask=m, dtype=y.dtype)
            nl.store(y[b, t * P + ip, ih], yt, mask=m)
            nl.store(mean_o[b, t * P + ip, 0], mean, mask=m)
            nl.store(rstd_o[b, t * P + ip, nl.arange(1)[None, :]], value=rstd, mask=m)
    return (y, mean_o, rstd_o)


@nki.jit
def layernorm_bwd(dy, x, gamma, mean, rstd):
    S, H = x.shape
    dx = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    dg = nl.ndarray((1, H), dtype=nl.float32, buffer=nl.shared_hbm)
    db = nl.ndarray((1, H), dtype=nl.float32, buffer=nl.shared_hbm)
    g = nl.load(gamma).broadcast_to((128, H))
    ones = nl.ones((128, 1), dtype=nl.float32)
    nt_ = S // 128
    dg_ps = nl.zeros((par_dim(1), H), dtype=nl.float32, buffer=nl.psum)
    db_ps = nl.zeros((par_dim(1), H), dtype=nl.float32, buffer=nl.psum)
    for i in nl.affine_range(nt_):
        sl = slice(i * 128, (i + 1) * 128)
        dyt, xt, mt, rt = (nl.load(a[sl]) for a in (dy, x, mean, rstd))
        xhat = (xt - mt) * rt
        dg_ps += nl.matmul(ones, dyt * xhat, transpose_x=True)
        db_ps += nl.matmul(ones, dyt, transpose_x=True)
        wdy = dyt * g
        c1 = nl.mean(xhat * wdy, axis=1, keepdims=True)
        c2 = nl.mean(wdy, axis=[1])
        nl.store(dx[sl], (wdy - (xhat * c1 + c2)) * rt)
    nl.store(dg, dg_ps)
    nl.store(db, db_ps)
    return (dx, dg, db)


def _act(name, t, **kw):
    return {ActFn.SiLU: nl.silu, ActFn.GELU: nl.gelu, ActFn.Swish: nl.gelu_apprx_sigmoid}[name](
        t, **kw
    )


@nki.jit
def mlp_fused(
    hidden: nt.tensor,
    ln_w: nt.tensor | None,
    gate_w,
    up_w,
    down_w,
    norm_type: NormType = NormType.RMS_NORM,
    act: ActFn = ActFn.SiLU,
    eps: float = 1e-06,
    store_add=False,
):
    T, H = hidden.shape
    _, inner = gate_w.shape
    out = nl.ndarray((T, H), dtype=hidden.dtype, buffer=nl.shared_hbm, name="mlp_out")
    P = 128
    HT, IT, TT = (H // P, div_ceil(inner, P), div_ceil(T, P))
    gw = nl.ndarray((HT, par_dim(P), inner), dtype=gate_w.dtype, buffer=nl.sbuf)
    uw = nl.ndarray((HT, par_dim(P), inner), dtype=up_w.dtype, buffer=nl.sbuf)
    dw = nl.ndarray((IT, par_dim(P), H), dtype=down_w.dtype, buffer=nl.sbuf)
    for h in nl.affine_range(HT):
        gw[h] = nl.load(gate_w[h * P : (h + 1) * P, :])
        uw[h] = nl.load(up_w[nl.ds(h * P, P), :])
    ii = nl.arange(P)[:, None]
    hh = nl.arange(H)[None, :]
    for i in nl.static_range(IT):
        dw[i, ii, hh] = nl.load(down_w[i * P + ii, hh], mask=i * P + ii < inner)
    lw = nl.load(ln_w.reshape((1, H))) if norm_type != NormType.NO_NORM else None
    for t in nl.affine_range(TT):
        it = nl.arange(P)[:, None]
        mt = t * P + it < T
        x = nl.load(hidden[t * P + it, hh], mask=mt)
        if norm_type == NormType.RMS_NORM:
            n = nl.rms_norm(x, lw.broadcast_to((P, H)), axis=1, n=H, epsilon=eps, mask=mt)
        else:
            n = x
        nT = nl.ndarray((HT, par_dim(P), P), dtype=gate_w.dtype)
        for h in nl.affine_range(HT):
            f = nl.arange(P)[None, :]
            nT[h] = nisa.nc_transpose(n[it, h * P + f], mask=mt)
        inter = nl.ndarray((IT, par_dim(P), P), dtype=gate_w.dtype)
        for i in nl.affine_range(IT):
            isz = min(P, inner - i * P)
            gp = nl.zeros((par_dim(P), P), dtype=nl.float32, buffer=nl.psum)
            up = nl.zeros((par_dim(P), P), dtype=nl.float32, buffer=nl.psum)
            for h in nl.affine_range(HT):
                gp[0:isz, :] += nisa.nc_matmul(gw[h, :, i * P : i * P + isz], nT[h])
                up[0:isz, :] += nisa.nc_matmul(
                    stationary=uw[h, :, nl.ds(i * P, isz)], moving=nT[h, :, :]
                )
            a = _act(act, gp[0:isz, :])
            inter[i, 0:isz, :] = nl.multiply(a, up[0:isz, :], dtype=gate_w.dtype)
        NF = 512
        for c in nl.affine_range(div_ceil(H, NF)):
            w = min(NF, H - c * NF)
            op = nl.zeros((par_dim(P), w), dtype=nl.float32, buffer=nl.psum)
            for i in nl.affine_range(IT):
                isz = min(P, inner - i * P)
                op[...] += nisa.nc_matmul(inter[i, 0:isz], dw[i, 0:isz, nl.ds(c * NF, w)])
            cf = nl.arange(w)[None, :]
            r = nl.copy(op)
            if store_add:
                r = nl.add(r, x[it, c * NF + cf])
            nl.store(out[t * P + it, c * NF + cf], value=r[it, cf], mask=mt)
    return out


@nki.jit
def rms_quant_fp8(x, w, clip=240.0):
    T, H = x.shape
    q = nl.ndarray((T, H), dtype=nl.float8_e4m3, buffer=nl.shared_hbm)
    s = nl.ndarray((T, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    wt = nl.load(w.reshape((1, H)), dtype=nl.float32)
    for t in nl.affine_range(T // 128):
        xt = nl.load(x[t * 128 : (t + 1) * 128, :])
        ss = nl.sum(nl.square(xt, dtype=nl.float32), axis=-1, keepdims=True)
        r = nl.rsqrt(ss / H + 1e-06)
        y = nl.multiply(nl.multiply(xt, r, dtype=nl.float32), wt)
        a = nisa.tensor_reduce(nl.max, nl.abs(y), axis=[1], dtype=nl.float32)
        a = nl.maximum(a, 1e-05)
        sc = nl.divide(a, clip)
        yq = nisa.tensor_scalar(
            y, op0=np.multiply, operand0=nl.reciprocal(sc), dtype=nl.float8_e4m3
        )
        nl.store(q[nl.ds(t * 128, 128), :], yq)
        nl.store(s[nl.ds(t * 128, 128), :], sc)
    return (q, s)


@nki.jit
def conv1d_dw(img, filt, bias, padding=(3, 3), stride=1):
    Nb, C, W = img.shape
    _, _, K = filt.shape
    pl, pr = padding
    Wo = (W + pl + pr - K) // stride + 1
    out = nl.ndarray((Nb, C, Wo), dtype=img.dtype, buffer=nl.shared_hbm)
    for c in nl.affine_range(div_ceil(C, 128)):
        ic = nl.arange(128)[:, None]
        mk = c * 128 + ic < C
        f = nl.load(
            filt.reshape((C, K))[c * 128 + ic, nl.arange(K)[None, :]], mask=mk, dtype=nl.float32
        )
        b = nl.load(bias.reshape((C, 1))[c * 128 + ic, nl.arange(1)[None, :]], mask=mk)
        for n in nl.affine_range(Nb):
            pad = nl.zeros((par_dim(128), W + pl + pr), dtype=nl.float32)
            pad[ic, pl + nl.arange(W)[None, :]] = nl.load(
                img[n, c * 128 + ic, nl.arange(W)[None, :]], mask=mk
            )
            acc = nl.zeros((par_dim(128), Wo), dtype=nl.float32)
            for k in nl.sequential_range(K):
                iw = nl.arange(Wo)[None, :]
                acc[ic, iw] = nisa.scalar_tensor_tensor(
                    data=pad[ic, iw * stride + k],
                    op0=np.multiply,
                    operand0=f[ic, k],
                    op1=np.add,
                    operand1=acc[ic, iw],
                    mask=mk,
                )
            r = nisa.activation(op=nl.relu, data=acc, bias=b[ic, 0], scale=1.0, mask=mk)
            nl.store(out[n, c * 128 + ic, nl.arange(Wo)[None, :]], r, mask=mk)
    return out


@nki.jit
def conv2d(img, w, bias, stride=1):
    Nb, Ci, H, W = img.shape
    Co, _, R, S = w.shape
    Ho, Wo = ((H - R) // stride + 1, (W - S) // stride + 1)
    out = nl.ndarray((Nb, Co, Ho, Wo), dtype=img.dtype, buffer=nl.shared_hbm)
    wt = nl.ndarray((par_dim(Ci), R, S, Co), dtype=w.dtype)
    wl = nl.load(w.reshape((Co, Ci * R * S)))
    wv = wl.reshape((Co, Ci, R, S))
    for r in nl.affine_range(R):
        for s in nl.affine_range(S):
            wt[:, r, s, :] = nisa.nc_transpose(wv[:, :, r, s])
    bt = nl.load(bias.reshape((Co, 1)))
    for n in nl.affine_range(Nb):
        x = nl.load(img[n])
        acc = nl.zeros((par_dim(Co), Ho, Wo), dtype=nl.float32, buffer=nl.psum)
        i0, i1, i2 = nl.mgrid[0:Ci, 0:Ho, 0:Wo]
        for r in nl.affine_range(R):
            for s in nl.affine_range(S):
                acc += nisa.nc_matmul(wt[:, r, s, :], x[i0, i1 * stride + r, i2 * stride + s])
        y = nl.add(acc, bt)
        nl.store(out[n], y)
    return out


@nki.jit
def ce_fwd(logits, labels):
    R, V = logits.shape
    loss = nl.ndarray((R, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    lse = nl.ndarray((R, 1), dtype=nl.float32, buffer=nl.shared_hbm)
    VT = 256
    nv = div_ceil(V, VT)
    for t in nl.affine_range(div_ceil(R, 128)):
        ip = nl.arange(128)[:, None]
        rows = t * 128 + ip
        m_run = nl.full((128, 1), -3e38, dtype=nl.float32)
        l_run = nl.zeros((128, 1), dtype=nl.float32)
        tgt = nl.zeros((128, 1), dtype=nl.float32)
        lab = nl.load(labels.reshape((R, 1))[rows, nl.arange(1)[None, :]], mask=rows < R)
        labf = nl.copy(lab, dtype=nl.float32)
        for v in nl.sequential_range(nv):
            iv = nl.arange(VT)[None, :]
            mk = (rows < R) & (v * VT + iv < V)
            x = nl.full((128, VT), -3e38, dtype=nl.float32)
            x[ip, iv] = nl.load(logits[rows, v * VT + iv], mask=mk)
            mx = nl.max(x, axis=1)
            mn = nl.maximum(m_run, mx)
            corr = nl.exp(m_run - mn)
            e = nisa.activation(nl.exp, x, bias=-mn, scale=1.0)
            l_run[...] = l_run * corr + nl.sum(e, axis=1)
            m_run[...] = nl.copy(mn)
            cols = nisa.iota(v * VT + iv, dtype=nl.float32)
            hit = nl.equal(cols.broadcast_to((128, VT)), labf, dtype=nl.float32)
            tgt[...] += nl.sum(nl.where(hit, x, 0.0), axis=1)
        ls = nl.log(l_run) + m_run
        nl.store(lse[rows, 0], ls, mask=rows < R)
        nl.store(loss[rows, 0], nl.subtract(ls, tgt), mask=rows < R)
    return (loss, lse)


@nki.jit
def group_norm(x, g, b, groups=4, eps=1e-05):
    Nb, C, H, W = x.shape
    out = nl.ndarray(x.shape, dtype=x.dtype, buffer=nl.shared_hbm)
    cg = C // groups
    xs = x.reshape((Nb * groups, cg * H * W))
    os_ = out.reshape((Nb * groups, cg * H * W))
    ig = nl.arange(Nb * groups)[:, None]
    t = nl.load(xs[ig, nl.arange(cg * H * W)[None, :]])
    mu = nl.mean(t, axis=(1,))
    v = nl.var(t, axis=[1])
    n = (t - mu) * nl.rsqrt(v + eps)
    n3 = n.reshape((Nb * groups, cg, H * W))
    bl = nl.load(b.reshape((groups, cg)))
    gb = nl.ndarray((Nb * groups, cg), dtype=nl.float32)
    bb = nl.ndarray((Nb * groups, cg), dtype=nl.float32)
    for i in nl.affine_range(Nb):
        nisa.dma_copy(dst=gb[nl.ds(i * groups, groups), :], src=g.reshape((groups, cg)))
        nisa.dma_copy(dst=bb[nl.ds(i * groups, groups), :], src=bl)
    y = nl.ndarray((Nb * groups, cg, H * W), dtype=x.dtype)
    for c in nl.affine_range(cg):
        y[:, c, :] = nisa.tensor_scalar(
            n3[:, c, :], np.multiply, gb[:, c], op1=np.add, operand1=bb[:, c]
        )
    nl.store(os_, y.reshape((Nb * groups, cg * H * W)))
    return out


@nki.jit
def moe_blockwise(hidden, gate_up, down, token_pos, block_expert, aff, block_size=128):
    T, H = hidden.shape
    _E, _, _, inner = gate_up.shape
    NB = block_expert.shape[0]
    out = nl.ndarray((T, H), dtype=hidden.dtype, buffer=nl.shared_hbm)
    ih = nl.arange(H)[None, :]
    for t in nl.affine_range(div_ceil(T, 128)):
        it = nl.arange(128)[:, None]
        nl.store(
            out[t * 128 + it, ih], nl.zeros((128, H), dtype=hidden.dtype), mask=t * 128 + it < T
        )
    for b in nl.sequential_range(NB):
        tp = nl.load(
            token_pos[b * block_size + nl.arange(block_size)[:, None], nl.arange(1)[None, :]]
        )
        e = nl.load(block_expert[b : b + 1, 0:1])
        x = nl.load(hidden[tp[nl.arange(block_size)[:, None], 0], ih], mode=oob_mode.skip)
        hp = nl.arange(H)[:, None]
        gup = nl.ndarray((par_dim(H), 2, inner), dtype=gate_up.dtype)
        for g in range(2):
            gup[:, g, :] = nl.load(gate_up[e[0, 0], hp, g, nl.arange(inner)[None, :]])
        dwn = nl.load(down[e[0, 0], nl.arange(inner)[:, None], ih])
        xT = nisa.nc_transpose(x)
        xTs = nl.copy(xT, dtype=hidden.dtype)
        gT = nl.matmul(gup[:, 0, :], xTs, transpose_x=True)
        uT = nl.matmul(gup[:, 1, :], xTs, transpose_x=True)
        act = nl.multiply(nl.silu(gT), uT)
        y = nl.matmul(act, dwn, transpose_x=True)
        a = nl.load(aff[b * block_size + nl.arange(block_size)[:, None], nl.arange(1)[None, :]])
        ys = nl.multiply(y, a, dtype=hidden.dtype)
        old = nl.load(out[tp[nl.arange(block_size)[:, None], 0], ih], mode=oob_mode.skip)
        nl.store(out[tp[nl.arange(block_size)[:, None], 0], ih], value=old + ys, mode=oob_mode.skip)
    return out
