"""Kernels as people write them, for tests of what becomes of them."""

from __future__ import annotations

import math

from ncc import nki
from ncc.nki import isa as nisa
from ncc.nki import language as nl


@nki.jit
def rmsnorm(x, w, eps=1e-6):
    n, d = x.shape
    out = nl.ndarray((n, d), x.dtype, buffer=nl.shared_hbm)
    gamma = nl.ndarray((128, d), w.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=gamma, src=w.ap([[0, 128], [1, d]]))
    for i in nl.affine_range(math.ceil(n / 128)):
        rows = min(128, n - i * 128)
        tile = nl.ndarray((128, d), x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=tile[0:rows, :], src=x[i * 128 : i * 128 + rows, :])
        square = nl.ndarray((128, d), nl.float32, buffer=nl.sbuf)
        total = nl.ndarray((128, 1), nl.float32, buffer=nl.sbuf)
        nisa.activation_reduce(
            dst=square[0:rows],
            op=nl.square,
            data=tile[0:rows],
            reduce_op=nl.add,
            reduce_res=total[0:rows],
        )
        nisa.tensor_scalar(
            dst=total[0:rows],
            data=total[0:rows],
            op0=nl.multiply,
            operand0=1.0 / d,
            op1=nl.add,
            operand1=eps,
        )
        nisa.activation(dst=total[0:rows], op=nl.rsqrt, data=total[0:rows])
        y = nl.ndarray((128, d), x.dtype, buffer=nl.sbuf)
        nisa.scalar_tensor_tensor(
            dst=y[0:rows],
            data=tile[0:rows],
            op0=nl.multiply,
            operand0=total[0:rows],
            op1=nl.multiply,
            operand1=gamma[0:rows],
        )
        nisa.dma_copy(dst=out[i * 128 : i * 128 + rows, :], src=y[0:rows])
    return out


@nki.jit
def layernorm(x, gamma, beta):
    n, d = x.shape
    out = nl.ndarray((n, d), x.dtype, buffer=nl.shared_hbm)
    g = nl.ndarray((128, d), nl.float32, buffer=nl.sbuf)
    b = nl.ndarray((128, d), nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=g, src=gamma.reshape((1, d)).broadcast(0, 128))
    nisa.dma_copy(dst=b, src=beta.reshape((1, d)).broadcast(0, 128))
    chunk = min(d, nl.tile_size.bn_stats_fmax)
    k = d // chunk
    for i in range(n // 128):
        t = nl.ndarray((128, d), nl.float32, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x[nl.ds(i * 128, 128), :])
        stats = nl.ndarray((128, k, 6), nl.float32, buffer=nl.sbuf)
        for j in range(k):
            nisa.bn_stats(dst=stats[:, j, :], data=t[:, nl.ds(j * chunk, chunk)])
        mv = nl.ndarray((128, 2), nl.float32, buffer=nl.sbuf)
        nisa.bn_aggr(dst=mv, data=stats)
        inv = nl.ndarray((128, 1), nl.float32, buffer=nl.sbuf)
        nisa.tensor_scalar(dst=inv, data=mv[:, 1:2], op0=nl.add, operand0=1e-5)
        nisa.activation(dst=inv, op=nl.rsqrt, data=inv)
        nisa.tensor_scalar(
            dst=t, data=t, op0=nl.subtract, operand0=mv[:, 0:1], op1=nl.multiply, operand1=inv
        )
        nisa.tensor_tensor(dst=t, data1=t, data2=g, op=nl.multiply)
        nisa.tensor_tensor(dst=t, data1=t, data2=b, op=nl.add)
        nisa.dma_copy(dst=out[nl.ds(i * 128, 128), :], src=t)
    return out


@nki.jit
def rope(x, cos, sin):
    """Halves exchanged; columns in strides."""
    n, h, d = x.shape
    out = nl.ndarray((n, h, d), x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((n, h, d), x.dtype, buffer=nl.sbuf)
    y = nl.ndarray((n, h, d), x.dtype, buffer=nl.sbuf)
    c = nl.ndarray((n, d // 2), nl.float32, buffer=nl.sbuf)
    s = nl.ndarray((n, d // 2), nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    nisa.dma_copy(dst=c, src=cos)
    nisa.dma_copy(dst=s, src=sin)
    a = nl.ndarray((n, d // 2), nl.float32, buffer=nl.sbuf)
    b = nl.ndarray((n, d // 2), nl.float32, buffer=nl.sbuf)
    for i in range(h):
        even, odd = t[:, i, 0:d:2], t[:, i, 1:d:2]
        nisa.tensor_tensor(dst=a, data1=even, data2=c, op=nl.multiply)
        nisa.tensor_tensor(dst=b, data1=odd, data2=s, op=nl.multiply)
        nisa.tensor_tensor(dst=y[:, i, 0:d:2], data1=a, data2=b, op=nl.subtract)
        nisa.tensor_tensor(dst=a, data1=odd, data2=c, op=nl.multiply)
        nisa.tensor_tensor(dst=b, data1=even, data2=s, op=nl.multiply)
        nisa.tensor_tensor(dst=y[:, i, 1:d:2], data1=a, data2=b, op=nl.add)
    nisa.dma_copy(dst=out, src=y)
    return out


@nki.jit
def mlp(x, w1, w2):
    """x [n, d], w1 [d, f], w2 [f, d]: gelu(x·w1)·w2 with PE transposes."""
    n, d = x.shape
    _, f = w1.shape
    out = nl.ndarray((n, d), x.dtype, buffer=nl.shared_hbm)
    xt = nl.ndarray((128, d // 128, n), x.dtype, buffer=nl.sbuf)
    xs = nl.ndarray((n, d), x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=xs, src=x)
    for k in range(d // 128):
        p = nl.ndarray((128, n), x.dtype, buffer=nl.psum)
        nisa.nc_transpose(dst=p, data=xs[:, k * 128 : k * 128 + 128])
        nisa.tensor_copy(dst=xt[:, k, :], src=p)
    w1s = nl.ndarray((128, d // 128, f), w1.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=w1s, src=w1.reshape((d // 128, 128, f)).permute((1, 0, 2)))
    w2s = nl.ndarray((128, f // 128, d), w2.dtype, buffer=nl.sbuf)
    for k in range(f // 128):
        nisa.dma_copy(dst=w2s[:, k, :], src=w2[nl.ds(k * 128, 128), :])
    h = nl.ndarray((128, f // 128, n), x.dtype, buffer=nl.sbuf)
    for m in range(f // 128):
        acc = nl.ndarray((128, n), nl.float32, buffer=nl.psum)
        for k in range(d // 128):
            nisa.nc_matmul(dst=acc, stationary=w1s[:, k, nl.ds(m * 128, 128)], moving=xt[:, k, :])
        nisa.activation(dst=h[:, m, :], op=nl.gelu_apprx_tanh, data=acc)
    res = nl.ndarray((n, d), nl.float32, buffer=nl.psum)
    for k in range(f // 128):
        nisa.nc_matmul(dst=res, stationary=h[:, k, :], moving=w2s[:, k, :])
    y = nl.ndarray((n, d), x.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=y, src=res, engine=nisa.scalar_engine)
    nisa.dma_copy(dst=out, src=y)
    return out


@nki.jit
def placed_matmul(lhs_t, rhs):
    """Addresses by hand: double buffers in SBUF, two banks of PSUM in turn."""
    K, M = lhs_t.shape
    _, N = rhs.shape
    out = nl.ndarray((M, N), nl.float32, buffer=nl.shared_hbm)
    turn = 0
    for m in range(M // 128):
        for n in range(N // 512):
            acc = nl.ndarray((128, 512), nl.float32, buffer=nl.psum, address=(0, 2048 * (turn % 2)))
            for k in range(K // 128):
                base = (k % 2) * (256 + 1024)
                w = nl.ndarray((128, 128), lhs_t.dtype, buffer=nl.sbuf, address=(0, base))
                x = nl.ndarray((128, 512), rhs.dtype, buffer=nl.sbuf, address=(0, base + 256))
                nisa.dma_copy(dst=w, src=lhs_t[nl.ds(k * 128, 128), nl.ds(m * 128, 128)])
                nisa.dma_copy(dst=x, src=rhs[nl.ds(k * 128, 128), nl.ds(n * 512, 512)])
                nisa.nc_matmul(dst=acc, stationary=w, moving=x)
            y = nl.ndarray(
                (128, 512), nl.float32, buffer=nl.sbuf, address=(0, 4096 + 2048 * (turn % 2))
            )
            nisa.tensor_copy(dst=y, src=acc)
            nisa.dma_copy(dst=out[nl.ds(m * 128, 128), nl.ds(n * 512, 512)], src=y)
            turn += 1
    return out


@nki.jit
def gather_rows(table, index):
    n = index.shape[0]
    _, d = table.shape
    out = nl.ndarray((n, d), table.dtype, buffer=nl.shared_hbm)
    ix = nl.ndarray((n, 1), index.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=ix, src=index)
    rows = nl.ndarray((n, d), table.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=rows, src=table.ap([[d, n], [1, d]], vector_offset=ix, indirect_dim=0))
    nisa.dma_copy(dst=out, src=rows)
    return out


@nki.jit
def moving_start(x, start):
    """A window of x whose start is a number in HBM."""
    d = x.shape[1]
    out = nl.ndarray((128, d), x.dtype, buffer=nl.shared_hbm)
    at = nl.ndarray((1, 1), nl.int32, buffer=nl.sbuf)
    nisa.dma_copy(dst=at, src=start)
    t = nl.ndarray((128, d), x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x.ap([[d, 128], [1, d]], scalar_offset=at, indirect_dim=0))
    nisa.dma_copy(dst=out, src=t)
    return out


@nki.jit
def causal_softmax(s):
    n, m = s.shape
    out = nl.ndarray((n, m), s.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((n, m), nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=s)
    nisa.affine_select(
        dst=t,
        pattern=[[-1, m]],
        channel_multiplier=1,
        on_true_tile=t,
        on_false_value=-9984.0,
        cmp_op=nl.greater_equal,
    )
    top = nl.ndarray((n, 1), nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=top, op=nl.maximum, data=t, axis=1, negate=True)
    total = nl.ndarray((n, 1), nl.float32, buffer=nl.sbuf)
    nisa.activation(
        dst=t,
        op=nl.exp,
        data=t,
        bias=top,
        reduce_op=nl.add,
        reduce_res=total,
        reduce_cmd=nisa.reduce_cmd.reset_reduce,
    )
    nisa.reciprocal(dst=total, data=total)
    y = nl.ndarray((n, m), s.dtype, buffer=nl.sbuf)
    nisa.tensor_scalar(dst=y, data=t, op0=nl.multiply, operand0=total)
    nisa.dma_copy(dst=out, src=y)
    return out


@nki.jit
def top8(x):
    n, _ = x.shape
    vals = nl.ndarray((n, 8), nl.float32, buffer=nl.shared_hbm)
    places = nl.ndarray((n, 8), nl.uint32, buffer=nl.shared_hbm)
    rest = nl.ndarray(x.shape, nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    v = nl.ndarray((n, 8), nl.float32, buffer=nl.sbuf)
    i = nl.ndarray((n, 8), nl.uint32, buffer=nl.sbuf)
    r = nl.ndarray(x.shape, nl.float32, buffer=nl.sbuf)
    nisa.max8(dst=v, src=t)
    nisa.nc_find_index8(dst=i, data=t, vals=v)
    nisa.nc_match_replace8(dst=r, data=t, vals=v, imm=-1.0)
    nisa.dma_copy(dst=vals, src=v)
    nisa.dma_copy(dst=places, src=i)
    nisa.dma_copy(dst=rest, src=r)
    return vals, places, rest


@nki.jit
def max_pool(x, k=2):
    c, h, w = x.shape
    out = nl.ndarray((c, h // k, w // k), x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((c, h, w), x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    y = nl.ndarray((c, h // k, w // k), x.dtype, buffer=nl.sbuf)
    windows = t.ap([[h * w, c], [k * w, h // k], [k, w // k], [w, k], [1, k]])
    nisa.tensor_reduce(dst=y, op=nl.maximum, data=windows, axis=[3, 4])
    nisa.dma_copy(dst=out, src=y)
    return out


@nki.jit
def scan(a, b, h0):
    n, t = a.shape
    out = nl.ndarray((n, t), nl.float32, buffer=nl.shared_hbm)
    x = nl.ndarray((n, t), nl.float32, buffer=nl.sbuf)
    y = nl.ndarray((n, t), nl.float32, buffer=nl.sbuf)
    first = nl.ndarray((n, 1), nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=x, src=a)
    nisa.dma_copy(dst=y, src=b)
    nisa.dma_copy(dst=first, src=h0)
    z = nl.ndarray((n, t), nl.float32, buffer=nl.sbuf)
    half = t // 2
    nisa.tensor_tensor_scan(
        dst=z[:, :half],
        data0=x[:, :half],
        data1=y[:, :half],
        initial=first,
        op0=nl.multiply,
        op1=nl.add,
    )
    nisa.tensor_tensor_scan(
        dst=z[:, half:],
        data0=x[:, half:],
        data1=y[:, half:],
        initial=z[:, half - 1 : half],
        op0=nl.multiply,
        op1=nl.add,
    )
    nisa.dma_copy(dst=out, src=z)
    return out


@nki.jit
def quantise(x):
    """Rows scaled to what float8_e4m3 holds."""
    n, d = x.shape
    q = nl.ndarray((n, d), nl.float8_e4m3, buffer=nl.shared_hbm)
    scales = nl.ndarray((n, 1), nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((n, d), x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    big = nl.ndarray((n, d), nl.float32, buffer=nl.sbuf)
    nisa.activation(dst=big, op=nl.abs, data=t)
    top = nl.ndarray((n, 1), nl.float32, buffer=nl.sbuf)
    nisa.tensor_reduce(dst=top, op=nl.maximum, data=big, axis=1)
    nisa.tensor_scalar(
        dst=top, data=top, op0=nl.multiply, operand0=1 / 240.0, op1=nl.maximum, operand1=1e-12
    )
    inv = nl.ndarray((n, 1), nl.float32, buffer=nl.sbuf)
    nisa.reciprocal(dst=inv, data=top)
    y = nl.ndarray((n, d), nl.float8_e4m3, buffer=nl.sbuf)
    nisa.activation(dst=y, op=nl.copy, data=t, scale=inv)
    nisa.dma_copy(dst=q, src=y)
    nisa.dma_copy(dst=scales, src=top)
    return q, scales


@nki.jit
def turned(x):
    """A matrix by dma_transpose, and the same by PE in a 16-bit PSUM tile that has an address."""
    n, d = x.shape
    one = nl.ndarray((d, n), x.dtype, buffer=nl.shared_hbm)
    two = nl.ndarray((d, n), x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray((d, n), x.dtype, buffer=nl.sbuf)
    nisa.dma_transpose(dst=t, src=x)
    nisa.dma_copy(dst=one, src=t)
    s = nl.ndarray((n, d), x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=s, src=x)
    u = nl.ndarray((d, n), x.dtype, buffer=nl.sbuf)
    for i in range(n // 128):
        p = nl.ndarray((d, 128), x.dtype, buffer=nl.psum, address=(0, 256 * i))
        nisa.nc_transpose(dst=p, data=s[:, :] if n <= 128 else s)
        nisa.tensor_copy(dst=u[:, nl.ds(i * 128, 128)], src=p)
    nisa.dma_copy(dst=two, src=u)
    return one, two


@nki.jit
def in_place(x):
    """The caller's array is changed."""
    n, d = x.shape
    t = nl.ndarray((n, d), x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=x[:, 0 : d // 2], src=t[:, 0 : d // 2])
    return x


@nki.jit
def looped(x):
    """A device loop between numbers."""
    n, d = x.shape
    out = nl.ndarray((n, d), x.dtype, buffer=nl.shared_hbm)

    def body(i):
        t = nl.ndarray((128, d), x.dtype, buffer=nl.sbuf)
        nisa.dma_copy(dst=t, src=x.ap([[d, 128], [1, d]], scalar_offset=i, indirect_dim=0))
        nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=2.0)
        nisa.dma_copy(dst=out.ap([[d, 128], [1, d]], scalar_offset=i, indirect_dim=0), src=t)

    nl.fori_loop(0, n, body, 128)
    return out
