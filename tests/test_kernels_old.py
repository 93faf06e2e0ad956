"""Kernels of the older API as authors wrote them, simulated and compiled, against float64 numpy."""

from __future__ import annotations

from functools import cache
from importlib import import_module

import attrs
import ml_dtypes
import numpy as np
import pytest

from ncc import nki
from ncc.nki import old

BF16, F32, INT = ml_dtypes.bfloat16, np.float32, np.int32


@attrs.frozen
class Case:
    """`kernel` is file.name; `make(rng)` gives its arguments, `true` the float64 results of them.
    `limit` bounds the error relative to the largest true value."""

    kernel: str
    make: object
    true: object
    limit: float = 2e-5
    grid: tuple[int, ...] = ()
    keys: dict = attrs.field(factory=dict)

    @property
    def id(self) -> str:
        return "-".join([self.kernel, *(f"{k}={v}" for k, v in self.keys.items())])


def normal(*shapes, dtype=F32, scale=1.0):
    return lambda rng: [(rng.standard_normal(s) * scale).astype(dtype) for s in shapes]


# --- float64 definitions --------------------------------------------------------------------------


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def soft(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def causal(x):
    return np.where(np.tri(*x.shape[-2:], dtype=bool), x, -1e30)


def gradients(q, k, v, o, dy, lse, seed):
    scale = q.shape[2] ** -0.5
    p = soft(causal(np.einsum("bhdq,bhdk->bhqk", q, k) * scale))
    dp = np.einsum("bhdq,bhdk->bhqk", dy, v)
    ds = p * (dp - (dp * p).sum(-1, keepdims=True)) * scale
    return (
        np.einsum("bhqk,bhdk->bhdq", ds, k),
        np.einsum("bhqk,bhdq->bhdk", ds, q),
        np.einsum("bhqk,bhdq->bhdk", p, dy),
    )


def forward(rng):
    q, k, v, dy = normal(*[(1, 1, 32, 256)] * 4)(rng)
    s = causal(np.einsum("bhdq,bhdk->bhqk", q, k).astype(np.float64) * 32**-0.5)
    lse = np.log(np.exp(s).sum(-1)).reshape(1, 1, 2, 128).transpose(0, 1, 3, 2)
    o = np.einsum("bhqk,bhdk->bhdq", soft(s), v)
    return [q, k, v, o.astype(F32), dy, lse.astype(F32), np.zeros(1, INT)]


def paged(q, keys, values, blocks, lengths):
    found = np.zeros(q.shape)
    for b, table in enumerate(blocks):
        k, v = (c[table].reshape(-1, q.shape[2]) for c in (keys, values))
        s = q[b] @ k.T / np.sqrt(q.shape[2])
        s[:, lengths[b] :] = -1e9
        found[b] = soft(s) @ v
    return found


def norm(x, g, b):
    mean, scale = x.mean(-1, keepdims=True), 1 / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    return (x - mean) * scale * g + b, mean, scale


def norm_gradients(dy, x, g, mean, scale):
    y, w = (x - mean) * scale, dy * g
    dx = w - y * (y * w).mean(-1, keepdims=True) - w.mean(-1, keepdims=True)
    return dx * scale, (dy * y).sum(0, keepdims=True), dy.sum(0, keepdims=True)


def rms(x):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-6)


def mlp(x, w, gate, up, down):
    y = rms(x) * w
    return ((y @ gate) * sigmoid(y @ gate) * (y @ up)) @ down


def conv1d(x, w, b):
    wide = np.pad(x, ((0, 0), (0, 0), (3, 3)))
    parts = (wide[:, :, k : k + x.shape[2]] * w[:, 0, k][None, :, None] for k in range(7))
    return np.maximum(sum(parts) + b[None, :, None], 0)


def windows(x, shape, step):
    seen = np.lib.stride_tricks.sliding_window_view(x, shape, (-2, -1))
    return seen[..., ::step, ::step, :, :]


def entropy(x, labels):
    lse = np.log(np.exp(x).sum(-1, keepdims=True))
    return lse - x[np.arange(len(x)), labels][:, None], lse


def experts(x, gate_up, down, places, chosen, weight):
    found = np.zeros_like(x)
    for i, t in enumerate(places[:, 0]):
        if t < len(x):
            e = chosen[i // 128, 0]
            g, u = x[t] @ gate_up[e, :, 0], x[t] @ gate_up[e, :, 1]
            found[t] += (g * sigmoid(g) * u) @ down[e] * weight[i]
    return found


def routed(rng):
    spare = np.full(28, 1000)
    places = np.concatenate([rng.permutation(100), spare, rng.permutation(100), spare])
    x, gate_up, down = normal((100, 64), (3, 64, 2, 48), (3, 48, 64), scale=0.3)(rng)
    chosen, weight = np.array([[2], [0]], INT), rng.random((256, 1)).astype(F32)
    return [x, gate_up, down, places.astype(INT)[:, None], chosen, weight]


def twice(n):
    """The matrix that interpolates n numbers at 2n places."""
    found = np.zeros((2 * n, n))
    for o in range(2 * n):
        at = max((o + 0.5) / 2 - 0.5, 0)
        found[o, int(at)] += 1 - at % 1
        found[o, min(int(at) + 1, n - 1)] += at % 1
    return found


def scattered(x, source):
    wide = np.pad(x, ((0, 0), (0, 0), (1, 1), (1, 1)), constant_values=-3e30)
    found = np.zeros_like(wide)
    for n, c, i, j in np.ndindex(source.shape):
        a, b = divmod(wide[n, c, 2 * i : 2 * i + 3, 2 * j : 2 * j + 3].argmax(), 3)
        found[n, c, 2 * i + a, 2 * j + b] += source[n, c, i, j]
    return found[:, :, 1:-1, 1:-1]


def cached(cache, new, at):
    found = cache.copy()
    for b, row in enumerate(at):
        found[b, :, row] = new[b, :, 0]
    return found


def recurrent(x, w, u, b):
    h = c = np.zeros((x.shape[1], u.shape[0]))
    found = []
    for one in x:
        i, f, g, o = np.split(one @ w + h @ u + b, 4, 1)
        c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
        h = sigmoid(o) * np.tanh(c)
        found.append(h)
    return np.stack(found), c


def relaxed(x):
    for _ in range(3):
        y = x.copy()
        y[1:-1, 1:-1] = (x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:]) / 4
        x = y
    return x


def spread(x, w):
    found = np.zeros((x.shape[0], 2 * x.shape[1] + 2))
    for k in range(4):
        found[:, k : k + 2 * x.shape[1] : 2] += x * w[:, k : k + 1]
    return found


def picked(x, at):
    return np.stack([x[k] if 0 <= k < len(x) else 0 * x[0] for k in at[:, 0]])


def rows(x):
    kept = {"axis": 1, "keepdims": True}
    return x.max(**kept), x.sum(**kept), x.mean(**kept), np.sqrt((x * x).mean(**kept))


def ints(high, *shape):
    return lambda rng: rng.integers(0, high, shape).astype(INT)


def also(make, *more):
    return lambda rng: [*make(rng), *(one(rng) for one in more)]


OUT = np.array([5, -1, 63, 64, 9, -1, 1000, 0], INT)[:, None]
CASES = [
    Case(
        "old_attention.flash_attn_bwd", forward, gradients, 1e-4, (1, 1), {"use_causal_mask": True}
    ),
    Case(
        "old_attention.alloc_self_attn",
        normal((1, 256, 64), (1, 256, 64), (1, 256, 64)),
        lambda q, k, v: soft(causal(q @ k.transpose(0, 2, 1) / 8)) @ v,
        2e-2,
        (1,),
        {"use_causal_mask": True},
    ),
    Case(
        "old_attention.paged_decode",
        also(
            normal((2, 8, 32), (20, 512), (20, 512)),
            lambda rng: rng.permutation(20)[:16].reshape(2, 8).astype(INT),
            lambda rng: np.array([100, 33], INT),
        ),
        paged,
    ),
    Case(
        "old_layers.alloc_rmsnorm_qkv",
        normal((1, 200, 512), (512, 192), dtype=BF16, scale=0.3),
        lambda x, w: rms(x) @ w,
        2e-2,
    ),
    Case("old_layers.layernorm_full", normal((1, 150, 700), (700,), (700,)), norm, 5e-5),
    Case(
        "old_layers.layernorm_bwd",
        normal((256, 96), (256, 96), (1, 96), (256, 1), (256, 1)),
        norm_gradients,
    ),
    Case(
        "old_layers.mlp_fused",
        normal((150, 256), (256,), (256, 300), (256, 300), (300, 256), scale=0.2),
        mlp,
        5e-5,
    ),
    Case(
        "old_layers.rms_quant_fp8",
        normal((128, 200), (200,)),
        lambda x, w: (
            rms(x) * w * 240 / np.abs(rms(x) * w).max(-1, keepdims=True),
            np.abs(rms(x) * w).max(-1, keepdims=True) / 240,
        ),
        5e-2,
    ),
    Case("old_layers.conv1d_dw", normal((1, 150, 40), (150, 1, 7), (150,)), conv1d),
    Case(
        "old_layers.conv2d",
        normal((1, 20, 12, 13), (70, 20, 3, 2), (70,)),
        lambda x, w, b: (
            np.einsum("nchwij,ocij->nohw", windows(x, (3, 2), 2), w) + b[None, :, None, None]
        ),
        keys={"stride": 2},
    ),
    Case("old_layers.ce_fwd", also(normal((200, 600)), ints(600, 200)), entropy),
    Case(
        "old_layers.group_norm",
        normal((3, 24, 5, 6), (24,), (24,)),
        lambda x, g, b: (
            norm(x.reshape(3, 4, -1), 1, 0)[0].reshape(x.shape) * g[:, None, None]
            + b[:, None, None]
        ),
    ),
    Case("old_layers.moe_blockwise", routed, experts),
    Case(
        "old_pieces.trilinear2x",
        normal((20, 3, 4, 2)),
        lambda x: np.einsum("ad,be,cf,kdef->kabc", twice(3), twice(4), twice(2), x),
    ),
    Case("old_pieces.select_and_scatter", normal((1, 150, 8, 10), (1, 150, 4, 5)), scattered),
    Case("old_pieces.cumsum_matmul", normal((256, 40)), lambda x: x.cumsum(0)),
    Case(
        "old_pieces.kv_update",
        also(normal((2, 4, 16, 32), (2, 4, 1, 32)), lambda rng: np.array([3, 9], INT)),
        cached,
    ),
    Case("old_pieces.argmax_rows", normal((40, 200)), lambda x: x.argmax(1)[:, None]),
    Case("old_pieces.bitonic", normal((30, 16)), lambda x: np.sort(x, 1)),
    Case("old_pieces.lstm", normal((3, 16, 24), (24, 80), (20, 80), (1, 80), scale=0.5), recurrent),
    Case("old_pieces.jacobi", normal((150, 60)), relaxed),
    Case("old_pieces.gather_skip", also(normal((64, 8)), lambda rng: OUT), picked),
    Case("old_pieces.convT", normal((32, 20), (32, 4)), spread),
    Case("old_pieces.row_stats", normal((200, 300)), rows),
    Case("old_pieces.mask3d", normal((1, 100, 7, 9)), lambda x: 2 * np.maximum(x, 0)),
    Case("old_pieces.t_masks", normal((70, 90)), lambda x: (x.T, x.T, x.T)),
]


@cache
def module(name: str):
    nki.install()
    return import_module(f"kernels.{name}")


def wide(x):
    return x if x.dtype.kind in "iu" else x.astype(np.float64)


@pytest.mark.filterwarnings("ignore:NCC")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_kernel_gives_the_numbers_of_float64(case: Case):
    file, _, name = case.kernel.partition(".")
    kernel = getattr(module(file), name)
    kernel = kernel[case.grid] if case.grid else kernel
    arrays = case.make(np.random.default_rng(3))
    want = case.true(*[wide(a) for a in arrays])
    want = want if isinstance(want, tuple) else (want,)
    for got in (
        old.simulate_kernel(kernel, *arrays, **case.keys),
        kernel(*arrays, **case.keys),
    ):
        got = tuple(got) if isinstance(got, list | tuple) else (got,)
        assert [g.shape for g in got] == [w.shape for w in want]
        for one, true in zip(got, want, strict=True):
            error = np.abs(one.astype(np.float64) - true).max()
            assert error <= case.limit * np.abs(true).max()
