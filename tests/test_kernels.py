"""Kernels as authors write them, simulated and compiled, against float64 numpy."""

from __future__ import annotations

from functools import cache
from importlib import import_module

import attrs
import ml_dtypes
import numpy as np
import pytest

from ncc import nki
from ncc.errors import NccError

nki.install()

BF16, FP8, F32 = ml_dtypes.bfloat16, ml_dtypes.float8_e4m3, np.float32


@attrs.frozen
class Case:
    """`kernel` is file.name; `make(rng)` gives its arguments, `true` the float64 results of them.

    `limit` bounds the error relative to the largest true value; `inout` names arguments that must
    then equal the results behind the returned ones.
    """

    kernel: str
    make: object
    true: object
    limit: float = 3e-6
    lnc: int = 0
    keys: dict = attrs.field(factory=dict)
    inout: tuple[int, ...] = ()
    target: str = "trn2"
    refused: str = ""  # the code with which it is not compiled

    @property
    def id(self) -> str:
        said = [self.kernel, *(f"{k}={v}" for k, v in self.keys.items() if not callable(v))]
        return "-".join([*said, *([f"lnc{self.lnc}"] if self.lnc else [])])


def normal(*shapes, dtype=F32, scale=1.0):
    def make(rng):
        kinds = dtype if isinstance(dtype, tuple) else (dtype,) * len(shapes)
        return [
            (rng.standard_normal(s) * scale).astype(t) for s, t in zip(shapes, kinds, strict=True)
        ]

    return make


# --- float64 definitions --------------------------------------------------------------------------


def soft(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def rms(x, gamma, eps=1e-6):
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + eps) * gamma


def layer(x, gamma, beta, eps=1e-5):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gamma + beta


def quantised(x, gamma):
    y = rms(x, gamma)
    scale = np.maximum(np.abs(y).max(-1, keepdims=True), 1e-4) / 240.0
    return y / scale, scale


def masked(scores, lengths):
    rows, width = scores.shape
    column = np.arange(width)
    seen = (column <= np.arange(rows)[:, None]) & (column < lengths)
    return soft(np.where(seen, scores, -np.inf))


def losses(logits, labels):
    top = logits.max(1, keepdims=True)
    lse = np.log(np.exp(logits - top).sum(1, keepdims=True)) + top
    return lse - np.take_along_axis(logits, labels.astype(int), 1), lse


def silu(x):
    return x / (1 + np.exp(-x))


def gelu(x):
    return 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))


def attended(q, k, v, causal=True):
    group = len(q) // len(k)
    k, v = np.repeat(k, group, 0), np.repeat(v, group, 0)
    scores = q @ k.transpose(0, 2, 1) / np.sqrt(q.shape[-1])
    if causal:
        scores = np.where(np.tri(q.shape[1], dtype=bool), scores, -np.inf)
    return soft(scores) @ v


def decoded(q, k_new, v_new, k_cache, v_cache, position):
    at = int(position[0, 0])
    k, v = k_cache.copy(), v_cache.copy()
    k[:, at], v[:, at] = k_new, v_new
    scores = np.einsum("hgd,hld->hgl", q, k[:, : at + 1]) / np.sqrt(q.shape[-1])
    return np.einsum("hgl,hld->hgd", soft(scores), v[:, : at + 1]), k, v


def routed(logits, k):
    order = np.argsort(-logits, 1, kind="stable")[:, :k]
    best = soft(np.take_along_axis(logits, order, 1))
    dense = np.zeros_like(logits)
    np.put_along_axis(dense, order, best, 1)
    return order, best, dense


def sixteen(x):
    order = np.argsort(-x, 1, kind="stable")[:, :16]
    return np.take_along_axis(x, order, 1), order


def gathered(hidden, rows):
    at = rows[:, 0].astype(int)
    return np.where((at >= 0)[:, None], hidden[np.maximum(at, 0)], 0.0)


def scattered(updates, rows, base):
    out = base.copy()
    np.add.at(out, rows[:, 0].astype(int), updates)
    return out


def scanned(delta, u, a, b, c):
    state, out = np.zeros(a.shape), np.empty(delta.shape)
    for t in range(delta.shape[1]):
        state = np.exp(delta[:, t, None] * a) * state + (delta * u)[:, t, None] * b[None, :, t]
        out[:, t] = state @ c[:, t]
    return out


def convolved(x, taps, bias):
    k = taps.shape[1]
    padded = np.pad(x, ((0, 0), (k - 1, 0)))
    return silu(
        sum(padded[:, i : i + x.shape[1]] * taps[:, i : i + 1] for i in range(k)) + bias[:, None]
    )


def convolved_2d(image, filters):
    _, kh, kw, _ = filters.shape
    windows = np.lib.stride_tricks.sliding_window_view(image, (kh, kw), (1, 2))
    return np.maximum(np.einsum("chwij,cijo->ohw", windows, filters), 0)


def pooled(x, size, fold):
    c, h, w = x.shape
    return fold(x.reshape(c, h // size, size, w // size, size), (2, 4))


def turned(x, cos, sin, interleaved=False):
    half = x.shape[-1] // 2
    a, b = (x[..., ::2], x[..., 1::2]) if interleaved else (x[..., :half], x[..., half:])
    one, two = a * cos - b * sin, b * cos + a * sin
    return (
        np.stack([one, two], -1).reshape(x.shape) if interleaved else np.concatenate([one, two], -1)
    )


def windowed(x, starts):
    out = np.zeros_like(x)
    for at in starts[0].astype(int):
        out[:, at : at + 8] = 2 * x[:, at : at + 8]
    return out


def packed(x):
    words = x.astype(np.uint8).view(np.uint32)
    return words.astype(np.float64), x.reshape(len(x), -1, 4)[:, :, ::-1].reshape(x.shape)


def local(x, index):
    at = index.astype(int).T.reshape(-1)
    return x[:, (at[:, None] + np.arange(4)).reshape(-1)]


def band(x, below, above):
    gap = np.arange(x.shape[1]) - np.arange(len(x))[:, None]
    return (gap >= -below) & (gap <= above)


def integers(a, b):
    x, y = a.astype(np.int64), b.astype(np.int64)
    shifted = ((x << 3) & 0xFFFFFFFF).astype(np.uint32).view(np.int32) | 5
    return np.stack([x + y, shifted, x < y])


def qkv(x, wq, wk, wv, norm):
    y = rms(x, norm)
    return np.concatenate(
        [(y @ w).reshape(len(x), -1, 32).transpose(1, 0, 2) for w in (wq, wk, wv)]
    )


# --- inputs ---------------------------------------------------------------------------------------


def decode_inputs(rng):
    kv, group, d, length = 3, 4, 64, 256
    new = [rng.standard_normal(s).astype(F32) for s in ((kv, group, d), (kv, d), (kv, d))]
    caches = [rng.standard_normal((kv, length, d)).astype(F32) for _ in range(2)]
    return [*new, *caches, np.array([[150]], np.int32)]


def mask_inputs(rng):
    return [
        rng.standard_normal((160, 160)).astype(F32),
        rng.integers(1, 160, (160, 1)).astype(np.int32),
    ]


def angles(rng):
    table = np.outer(np.arange(150), 10000.0 ** (-np.arange(32) / 32))
    return [
        rng.standard_normal((2, 3, 150, 64)).astype(F32),
        np.cos(table).astype(F32),
        np.sin(table).astype(F32),
    ]


def numbered(rows, width, count, least=0):
    def make(rng):
        table = rng.standard_normal((rows, width)).astype(F32)
        return [table, rng.integers(least, rows, (count, 1)).astype(np.int32)]

    return make


def scatter_inputs(rng):
    rows = np.concatenate([rng.permutation(200)[:128], rng.permutation(200)[:30]])
    return [
        rng.standard_normal((158, 48)).astype(F32),
        rows[:, None].astype(np.int32),
        rng.standard_normal((200, 48)).astype(F32),
    ]


def table_inputs(rng):
    return [
        rng.standard_normal((500, 96)).astype(F32),
        rng.integers(0, 500, (3, 70)).astype(np.int32),
    ]


def state_inputs(rng):
    delta, u = rng.random((2, 150, 64))
    rates = -rng.random((150, 4))
    b, c = rng.standard_normal((2, 4, 64))
    return [x.astype(F32) for x in (delta, u, rates, b, c)]


def int8_inputs(rng):
    return [
        rng.standard_normal((200, 60)).astype(BF16),
        rng.integers(-127, 128, (200, 300)).astype(np.int8),
        rng.random(300).astype(F32),
    ]


def fp8_inputs(rng):
    return [
        rng.standard_normal((512, 70)).astype(FP8),
        rng.standard_normal((512, 300)).astype(FP8),
        rng.random((70, 1)).astype(F32),
        np.array([[0.25]], F32),
    ]


def lambda_first(x, *_):
    return x


def config(**changed):
    return import_module("kernels.matmul").MatmulConfig(**changed)


CASES = (
    Case("matmul.blocked_matmul", normal((300, 200), (300, 1100)), lambda a, b: a.T @ b),
    Case(
        "matmul.blocked_matmul",
        normal((256, 129), (256, 513), dtype=BF16),
        lambda a, b: a.T @ b,
        keys={"m_tiles_in_block": 1},
    ),
    Case(
        "matmul.matmul_with_config",
        normal((150, 260), (260, 700), dtype=BF16),
        lambda a, b: a @ b,
        1e-2,
    ),
    Case(
        "matmul.matmul_with_config",
        normal((144, 256), (256, 300), dtype=BF16),
        lambda a, b: a @ b,
        1e-5,
        keys={"config": lambda: config(transposed_on="dma", tile_n=128, out_dtype="float32")},
    ),
    Case("matmul.fp8_matmul", fp8_inputs, lambda a, b, s, t: a.T @ b * s * t, 1e-2),
    *(
        Case(
            "matmul.two_core_matmul",
            normal((64, 200), (200, 330), (330,), dtype=(BF16, BF16, F32)),
            lambda x, w, b: x @ w + b,
            1e-2,
            lnc=n,
        )
        for n in (0, 1, 2)
    ),
    Case(
        "norms.rmsnorm_linear",
        normal((2, 100, 256), (256,), (256, 600), dtype=BF16),
        lambda x, g, w: rms(x, g) @ w,
        2e-2,
    ),
    Case(
        "norms.rmsnorm_linear",
        normal((1, 130, 256), (256,), (256, 96)),
        lambda x, g, w: rms(x, g) @ w,
    ),
    Case("norms.layernorm", normal((200, 1280), (1280,), (1280,)), layer),
    Case("norms.layernorm", normal((50, 96), (96,), (96,)), layer),
    Case(
        "norms.add_rmsnorm_in_place",
        normal((200, 320), (200, 320), (320,)),
        lambda r, x, g: (rms(r + x, g), r + x),
        inout=(0,),
    ),
    Case("norms.rmsnorm_quant", normal((150, 256), (256,), dtype=BF16), quantised, 4e-2),
    Case("norms.dequant_matmul", int8_inputs, lambda x, w, s: x.T @ w * s),
    *(Case("softmaxes.softmax", normal((300, 500)), soft, lnc=n) for n in (0, 2)),
    Case("softmaxes.softmax", normal((140, 64), dtype=BF16), soft, 1e-2),
    Case("softmaxes.running_softmax", normal((100, 900), scale=5), soft),
    Case("softmaxes.masked_softmax", mask_inputs, masked),
    Case(
        "softmaxes.cross_entropy",
        lambda rng: [*normal((150, 1200))(rng), rng.integers(0, 1200, (150, 1)).astype(np.int32)],
        losses,
    ),
    Case(
        "mlps.gated_mlp",
        normal((150, 256), (256, 384), (256, 384), (384, 256), scale=0.1),
        lambda x, g, u, d: (silu(x @ g) * (x @ u)) @ d,
        1e-5,
    ),
    Case(
        "mlps.gated_mlp",
        normal((32, 128), (128, 200), (128, 200), (200, 128), dtype=BF16, scale=0.3),
        lambda x, g, u, d: (silu(x @ g) * (x @ u)) @ d,
        2e-2,
    ),
    Case(
        "mlps.few_token_mlp",
        normal(
            (48, 256),
            (256, 384),
            (384,),
            (384, 256),
            (256,),
            dtype=(BF16, BF16, F32, BF16, F32),
            scale=0.3,
        ),
        lambda x, w1, b1, w2, b2: gelu(x @ w1 + b1) @ w2 + b2,
        2e-2,
    ),
    *(
        Case(
            "attentions.flash_attention",
            normal((4, 300, 64), (2, 300, 64), (2, 300, 64)),
            attended,
            1e-5,
            lnc=n,
        )
        for n in (0, 2)
    ),
    Case(
        "attentions.flash_attention",
        normal((2, 200, 128), (1, 200, 128), (1, 200, 128), dtype=BF16),
        lambda q, k, v: attended(q, k, v, False),
        2e-2,
        keys={"causal": False},
    ),
    Case("attentions.decode_attention", decode_inputs, decoded, 1e-5, inout=(3, 4)),
    Case(
        "attentions.paged_keys",
        numbered(40, 64, 150),
        lambda c, t: c[t[:, 0].astype(int)].reshape(150, 8, 8),
        0.0,
        keys={"block": 8},
    ),
    Case("routing.router", normal((150, 64)), lambda x: routed(x, 4)),
    Case("routing.router", normal((30, 16)), lambda x: routed(x, 8), keys={"k": 8}),
    Case("routing.top_sixteen", normal((100, 300)), sixteen, 0.0),
    Case("routing.gather_tokens", numbered(90, 72, 150, least=-1), gathered, 0.0),
    Case("routing.scatter_tokens", scatter_inputs, scattered),
    Case("routing.embedding", table_inputs, lambda t, ids: t[ids.astype(int)], 0.0),
    Case("sequences.cumsum", normal((140, 1000)), lambda x: x.cumsum(1), 1e-5),
    Case("sequences.selective_scan", state_inputs, scanned, 1e-5),
    Case("sequences.depthwise_conv1d", normal((150, 200), (150, 4), (150,)), convolved),
    Case("sequences.conv2d", normal((20, 18, 30), (20, 3, 3, 40), scale=0.3), convolved_2d),
    Case(
        "sequences.pool2d", normal((30, 12, 9)), lambda x: pooled(x, 3, np.mean), keys={"size": 3}
    ),
    Case(
        "sequences.pool2d",
        normal((30, 12, 8)),
        lambda x: pooled(x, 2, np.max),
        0.0,
        keys={"size": 2, "kind": "max"},
    ),
    Case("sequences.rope", angles, turned),
    Case(
        "sequences.rope", angles, lambda x, c, s: turned(x, c, s, True), keys={"interleaved": True}
    ),
    *(
        Case(
            "layouts.transpose", normal((160, 144), dtype=t), lambda x: x.T, 0.0, keys={"how": how}
        )
        for how, t in (("pe", F32), ("pe", BF16), ("dma", BF16), ("dma", F32), ("vector", F32))
    ),
    Case(
        "layouts.heads_first",
        normal((200, 192)),
        lambda x: x.reshape(200, 3, 64).transpose(1, 2, 0),
        0.0,
        keys={"heads": 3},
    ),
    Case(
        "layouts.spread_and_fold",
        normal((96, 50)),
        lambda x: (
            np.repeat(x[:1], 96, 0),
            x.sum(0, keepdims=True),
            x.reshape(3, 32, 50)[:, ::-1].reshape(96, 50),
        ),
    ),
    Case(
        "layouts.clamp_negative",
        normal((60, 90)),
        lambda x: (np.where(x < 0, -0.5, x), (x < 0).sum(1, keepdims=True)),
        0.0,
        keys={"floor": -0.5},
    ),
    Case(
        "control.scaled_blocks",
        normal((384, 70)),
        lambda x: (x * 1.5, (x * 1.5).reshape(3, 128, 70).sum((0, 2))[:, None]),
        keys={"factor": 1.5},
    ),
    *(
        Case(
            "control.sum_of_first",
            lambda rng, n=n: [*normal((5, 128, 40))(rng), np.array([[n]], np.int32)],
            lambda x, n: x[: int(n[0, 0])].sum(0),
        )
        for n in (1, 4)
    ),
    Case(
        "control.halve_until",
        lambda rng: [*normal((100, 40))(rng), np.array([[3]], np.int32)],
        lambda x, n: x / 8,
        0.0,
    ),
    *(
        Case(
            "control.sum_on_both", normal((512, 60)), lambda x: x.reshape(4, 128, 60).sum(0), lnc=n
        )
        for n in (1, 2)
    ),
    Case(
        "control.through_shared_memory",
        normal((200, 60)),
        lambda x: np.concatenate([2 * x[100:], 2 * x[:100]]),
        0.0,
        lnc=2,
    ),
    Case(
        "views.through_views",
        normal((2, 50, 3, 40), (3,)),
        lambda x, w: (x * w[:, None]).transpose(2, 3, 0, 1).reshape(3, 40, 100),
    ),
    Case(
        "views.bits_of", normal((60, 70)), lambda x: (np.floor(np.log2(np.abs(x))), np.abs(x)), 0.0
    ),
    Case(
        "views.packed_bytes",
        lambda rng: [rng.integers(0, 256, (40, 64)).astype(np.uint8)],
        packed,
        0.0,
    ),
    Case(
        "views.permuted_by_constant",
        normal((150, 100)),
        lambda x: x[:, np.random.default_rng(3).permutation(100)],
        1e-6,
    ),
    Case(
        "views.pick_columns",
        lambda rng: [*normal((150, 200))(rng), rng.integers(0, 200, (150, 30)).astype(np.int32)],
        lambda x, i: np.take_along_axis(x, i.astype(int), 1),
        0.0,
    ),
    Case(
        "views.local_columns",
        lambda rng: [*normal((64, 200))(rng), (4 * rng.integers(0, 50, (16, 3))).astype(np.uint16)],
        local,
        0.0,
    ),
    Case(
        "views.permuted_axes",
        normal((48, 6, 64), dtype=BF16),
        lambda x: (x.transpose(2, 1, 0), x.transpose(1, 0, 2)),
        0.0,
    ),
    Case(
        "views.returned_views",
        normal((50, 60)),
        lambda x: (np.concatenate([x, x * x]), (x * x)[:, :30], x),
    ),
    *(
        Case(
            "pieces.all_experts",
            normal((64, 256), (4, 256, 160), (4, 160, 256), (64, 4), scale=0.3),
            lambda x, a, b, w: sum(w[:, e : e + 1] * (silu(x @ a[e]) @ b[e]) for e in range(4)),
            1e-5,
            lnc=n,
        )
        for n in (0, 2)
    ),
    Case(
        "pieces.all_experts",
        normal((64, 128), (2, 128, 160), (2, 160, 128), (64, 2), scale=0.3),
        lambda x, a, b, w: sum(
            w[:, e : e + 1] * (np.maximum(x @ a[e], 0) @ b[e]) for e in range(2)
        ),
        1e-5,
        keys={"act": lambda: import_module("kernels.pieces").Act.RELU},
    ),
    Case(
        "pieces.banked_scores",
        normal((64, 100), (64, 5120)),
        lambda q, k: (0.5 * q.T @ k, (0.5 * q.T @ k).max(1, keepdims=True)),
    ),
    Case(
        "pieces.quarters",
        normal((128, 30), (128, 200)),
        lambda a, b: np.einsum("ikm,ikn->imn", a.reshape(4, 32, 30), b.reshape(4, 32, 200)),
    ),
    Case(
        "pieces.memset_then_add",
        normal((200, 60), (200, 150)),
        lambda a, b: np.stack([a.T @ b, 2 * a.T @ b]),
    ),
    Case(
        "pieces.banded",
        normal((160, 120)),
        lambda x: np.where(band(x, 7, 30), x, -5.0),
        0.0,
        keys={"below": 7, "above": 30, "fill": -5.0},
    ),
    Case(
        "pieces.segment_bounds",
        lambda rng: [np.array([[1, 1, 2, 2, 2, 3, 0, 0]], np.float32)],
        lambda ids: np.array([[0, 0, 2, 2, 2, 5, 8, 8], [2, 2, 5, 5, 5, 6, -1, -1]]),
        0.0,
    ),
    Case(
        "pieces.selected_max",
        lambda rng: [*normal((90, 70))(rng), rng.integers(0, 2, (90, 70)).astype(np.uint8)],
        lambda x, m: (np.where(m != 0, x, -1.0), np.where(m != 0, x, -1.0).max(1, keepdims=True)),
        0.0,
        keys={"other": -1.0},
    ),
    Case(
        "pieces.running_products",
        normal((60, 100)),
        lambda x: np.stack([(2 * x).cumsum(1), np.maximum.accumulate(x + 1, 1)]),
        1e-5,
    ),
    Case("pieces.partition_sums", normal((100, 60)), lambda x: np.stack([x.sum(0), x.max(0)])),
    Case(
        "pieces.exact_integers",
        lambda rng: list(rng.integers(-(2**29), 2**29, (2, 50, 40)).astype(np.int32)),
        integers,
        0.0,
    ),
    Case(
        "pieces.biased_qkv", normal((150, 256), (256, 128), (256, 64), (256, 64), (256,)), qkv, 1e-5
    ),
    Case(
        "control.windows",
        lambda rng: [*normal((40, 60))(rng), np.array([[3, 20, 51]], np.int32)],
        windowed,
    ),
    Case(
        "control.chosen_block_product",
        lambda rng: [*normal((64, 30), (64, 50))(rng), np.array([[3]], np.int32)],
        lambda a, b, i: a.T @ b[:, 30:40],
    ),
)


def both(a, b):
    order = [a < b, a <= b, a > b, a >= b, a == b, a != b]
    return np.stack([a + b, a - b, a * b, np.maximum(a, b), np.minimum(a, b), *order])


def small(*lows_and_types):
    def make(rng):
        return [rng.integers(low, 4, (32, 24)).astype(kind) for low, kind in lows_and_types]

    return make


CASES += (
    Case("words.signed_and_unsigned", small((-3, np.int32), (0, np.uint32)), both, 0.0),
    Case("words.signed_and_unsigned", small((0, np.uint32), (-3, np.int32)), both, 0.0),
    Case(
        "words.counted_from",
        lambda rng: [np.array([[7]], np.int32)],
        lambda n: n + np.arange(20) + 2 * np.arange(8)[:, None],
        0.0,
        keys={"rows": 8, "width": 20},
    ),
    Case(
        "words.counted_in_turns",
        lambda rng: [np.array([[3]], np.int32)],
        lambda n: np.stack(
            [(i < n) * (i + np.arange(20) + 2 * np.arange(8)[:, None]) for i in range(4)]
        ),
        0.0,
        keys={"rows": 8, "width": 20},
    ),
    Case(
        "views.four_axes_copied",
        normal((8, 2, 4, 3, 5)),
        lambda x: x.transpose(0, 4, 2, 3, 1),
        0.0,
    ),
    Case(
        "views.added_through_views",
        normal((6, 3, 4, 5), (6, 5, 4, 10)),
        lambda x, y: x + y[:, 0::2, :, 0::2],
    ),
    Case("views.transposed_anywhere", normal((64, 32), dtype=BF16), np.transpose, 0.0),
    Case(
        "words.quotients",
        normal((40, 30), (40, 30)),
        lambda a, b: np.stack([a / b + 1, np.mod(a, b) + 1]),
        1e-5,
    ),
)


def paged(q, k_new, v_new, k_cache, v_cache, table, position, sink):
    d, block = q.shape[2], k_cache.shape[1]
    table, position = table.astype(int), position.astype(int)
    for b, at in enumerate(position[:, 0]):
        k_cache[table[b, at // block], at % block] = k_new[b, 0]
        v_cache[table[b, at // block], at % block] = v_new[b, 0]
    out = np.zeros_like(q)
    for b, at in enumerate(position[:, 0]):
        k, v = (c[table[b]].reshape(-1, d) for c in (k_cache, v_cache))
        scores = q[b] @ k.T / np.sqrt(d)
        scores[:, at + 1 :] = -np.inf
        out[b] = soft(np.concatenate([scores, sink.T], 1))[:, :-1] @ v
    return out, k_cache, v_cache


def paged_arguments(rng):
    shapes = (2, 4, 32), (2, 1, 32), (2, 1, 32), (9, 4, 32), (9, 4, 32)
    table = np.stack([np.roll(rng.permutation(9), n)[:4] for n in range(2)]).astype(np.int32)
    table[1] = np.setdiff1d(np.arange(9), table[0])[:4]
    position = np.array([[5], [15]], np.int32)
    return [*normal(*shapes, dtype=BF16)(rng), table, position, *normal((1, 4))(rng)]


def through_experts(x, w, tokens, experts, affinity):
    out = np.zeros((len(x), w.shape[2]))
    for rows, expert in zip(tokens.astype(int), experts[:, 0].astype(int), strict=True):
        for t in rows[rows >= 0]:
            out[t] += x[t] @ w[expert] * affinity[t, expert]
    return out


def expert_arguments(rng):
    tokens = -np.ones((4, 16), np.int32)
    order = rng.permutation(40)
    for n, part in enumerate((order[:16], order[16:26], order[26:40], order[5:17])):
        tokens[n, : len(part)] = part
    experts = np.array([[0], [2], [2], [1]], np.int32)
    x, w, affinity = normal((40, 64), (3, 64, 48), (40, 3), scale=0.5)(rng)
    return [x, w, tokens, experts, affinity]


def grouped(logits, bias, groups=4, kept=2, k=4, scale=2.5):
    score = 1 / (1 + np.exp(-logits))
    choice = (score + bias).reshape(len(logits), groups, -1)
    best = np.argsort(-np.sort(choice, -1)[..., -2:].sum(-1), 1)[:, :kept]
    left = np.full_like(choice, -1e9)
    np.put_along_axis(left, best[..., None], np.take_along_axis(choice, best[..., None], 1), 1)
    index = np.argsort(-left.reshape(score.shape), 1)[:, :k]
    found = np.take_along_axis(score, index, 1)
    return index, found / found.sum(1, keepdims=True) * scale


def packed(scores, ids):
    seen = (ids == ids.T) & np.tri(len(scores), dtype=bool)
    return soft(np.where(seen, scores, -np.inf))


CASES += (
    Case("production.paged_decode", paged_arguments, paged, 2e-2, inout=(3, 4)),
    Case("production.blocks_of_experts", expert_arguments, through_experts, 1e-5),
    Case("production.grouped_router", normal((40, 64), (1, 64), scale=0.5), grouped, 1e-5),
    Case(
        "production.packed_softmax",
        lambda rng: [*normal((48, 48))(rng), np.repeat([[1.0, 2, 3]], [12, 26, 10], 1).astype(F32)],
        packed,
        1e-5,
    ),
    Case(
        "production.eighths",
        normal((40, 64), (64, 50), dtype=(F32, ml_dtypes.float8_e4m3fn)),
        np.matmul,
        4e-2,
    ),
)


@cache
def kernel_of(name: str):
    file, _, function = name.partition(".")
    return getattr(import_module(f"kernels.{file}"), function)


def difference(got, true) -> float:
    got, true = np.asarray(got).astype(np.float64), np.asarray(true)
    assert got.shape == true.shape
    gap = np.abs(got - true).max() / np.abs(true).max()
    return gap if np.isfinite(gap) else np.inf


@pytest.mark.parametrize("way", ["simulated", "compiled"])
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_kernel(case: Case, way: str, monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", case.target)
    kernel = kernel_of(case.kernel)
    kernel = kernel[case.lnc] if case.lnc else kernel
    args = case.make(np.random.default_rng(11))
    keys = {k: v() if callable(v) else v for k, v in case.keys.items()}
    true = case.true(*[a.astype(np.float64) for a in args])
    true = true if isinstance(true, tuple) else (true,)
    if case.refused and way == "compiled":
        with pytest.raises(NccError) as told:
            kernel(*args, **keys)
        assert told.value.code == case.refused
        return
    got = (nki.simulate(kernel) if way == "simulated" else kernel)(*args, **keys)
    got = got if isinstance(got, tuple | list) else (got,)
    assert len(got) == len(true)
    errors = [difference(a, b) for a, b in zip(got, true, strict=True)]
    assert max(errors) <= case.limit, errors
    for place, result in zip(case.inout, true[len(true) - len(case.inout) :], strict=True):
        assert difference(args[place], result) <= case.limit
