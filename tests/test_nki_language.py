"""Every function of nki.language: random shapes and dtypes against float64 numpy definitions."""

from __future__ import annotations

import dataclasses
import math
import re
import zlib
from collections.abc import Callable
from enum import Enum
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ncc.nki.isa as nisa
import ncc.nki.language as nl
from ncc import nki
from ncc.errors import NccError
from ncc.ir.kernel import DeviceFor, DeviceWhile, Kernel, KernelOp, ops_of
from ncc.nki.operators import spelled
from ncc.nki.trace import NkiTypeError, Trace, tracing
from ncc.rules import rules
from ncc.target import TARGETS

BF16 = np.dtype(ml_dtypes.bfloat16)
TYPES: dict[str, Any] = {
    "float32": np.dtype("float32"),
    "bfloat16": BF16,
    "float16": np.dtype("float16"),
}
# relative and absolute error of one rounding to the type, with some room for float32 steps before it
EPS = {"float32": 4e-6, "bfloat16": 5e-3, "float16": 7e-4}
SHAPES = [(32, 5), (7, 3, 4), (128, 2, 3, 2), (1, 9)]
TARGET = TARGETS["trn2"]


def rng_for(*words: Any) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32("/".join(map(str, words)).encode()))


def run(
    body: Callable[..., Any], *arrays: Any, shape: Any = None, dtype: Any = None, target: Any = None
) -> Any:
    """`body` on tiles that were loaded from the arrays; its tile, stored, as an array."""

    def kernel(*args: Any) -> Any:
        tiles = [nl.load(a) for a in args]
        made = body(*tiles)
        if made.buffer == nl.psum:
            made = nl.copy(made)
        out = nl.ndarray(made.shape, made.dtype, buffer=nl.shared_hbm)
        nl.store(out, made)
        return out

    got = nki.simulate(kernel)(*arrays)
    if shape is not None:
        assert got.shape == shape
    if dtype is not None:
        assert got.dtype == dtype
    return got


def swapped(call: Any, second: Any, first: Any) -> Any:
    return call(first, second)


def close(got: Any, want: Any, kind: str, scale: float = 1.0) -> None:
    got, want = got.astype(np.float64), np.asarray(want, np.float64)
    assert got.shape == want.shape
    np.testing.assert_allclose(got, want, rtol=EPS[kind] * scale, atol=EPS[kind] * scale)


def erf(x: Any) -> Any:
    return np.vectorize(math.erf)(x)


def sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def phi(x: Any) -> Any:
    return (1 + erf(x / math.sqrt(2))) / 2


ANY, POSITIVE = (-3.0, 3.0), (0.05, 8.0)
UNARY: dict[str, tuple[Callable[[Any], Any], tuple[float, float]]] = {
    "abs": (np.abs, ANY),
    "square": (lambda x: x * x, ANY),
    "exp": (np.exp, ANY),
    "log": (np.log, POSITIVE),
    "sqrt": (np.sqrt, POSITIVE),
    "rsqrt": (lambda x: x**-0.5, POSITIVE),
    "tanh": (np.tanh, ANY),
    "sigmoid": (sigmoid, ANY),
    "relu": (lambda x: np.maximum(x, 0), ANY),
    "gelu": (lambda x: x * phi(x), ANY),
    "gelu_dx": (lambda x: phi(x) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi), ANY),
    "gelu_apprx_tanh": (
        lambda x: x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
        ANY,
    ),
    "gelu_apprx_sigmoid": (lambda x: x * sigmoid(1.702 * x), ANY),
    "gelu_apprx_sigmoid_dx": (
        lambda x: sigmoid(1.702 * x) * (1 + 1.702 * x * (1 - sigmoid(1.702 * x))),
        ANY,
    ),
    "silu": (lambda x: x * sigmoid(x), ANY),
    "silu_dx": (lambda x: sigmoid(x) * (1 + x * (1 - sigmoid(x))), ANY),
    "softplus": (lambda x: np.log1p(np.exp(x)), ANY),
    "mish": (lambda x: x * np.tanh(np.log1p(np.exp(x))), ANY),
    "erf": (erf, ANY),
    "erf_dx": (lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x), ANY),
    "reciprocal": (lambda x: 1 / x, POSITIVE),
    "arctan": (np.arctan, (-1.5, 1.5)),
    "sign": (np.sign, ANY),
    "negative": (lambda x: -x, ANY),
    "sin": (np.sin, (-200.0, 200.0)),
    "cos": (np.cos, (-200.0, 200.0)),
    "tan": (np.tan, (-1.3, 1.3)),
    "ceil": (np.ceil, (-9.0, 9.0)),
    "floor": (np.floor, (-9.0, 9.0)),
    "trunc": (np.trunc, (-9.0, 9.0)),
    "logical_not": (lambda x: (x == 0).astype(float), ANY),
    "copy": (lambda x: x, ANY),
    "bypass": (lambda x: x, ANY),
}


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", UNARY)
def test_unary(name: str, kind: str) -> None:
    want, (low, high) = UNARY[name]
    rng = rng_for(name, kind)
    for shape in SHAPES[:2] if kind != "float32" else SHAPES:
        x = rng.uniform(low, high, shape).astype(TYPES[kind])
        x.reshape(-1)[0] = low if name in ("log", "sqrt", "rsqrt", "reciprocal") else 0
        got = run(lambda t: getattr(nl, name)(t), x, shape=shape, dtype=x.dtype)
        close(got, want(x.astype(np.float64)), kind)


@pytest.mark.parametrize(
    "name", ["exp", "floor", "sin", "negative", "reciprocal", "logical_not", "copy"]
)
def test_unary_into_another_type(name: str) -> None:
    want, (low, high) = UNARY[name]
    x = rng_for(name, "to").uniform(low, high, (33, 6)).astype(BF16)
    got = run(lambda t: getattr(nl, name)(t, dtype=nl.float32), x, dtype=np.float32)
    close(got, want(x.astype(np.float64)), "float32")


BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "mod": np.mod,
    "fmod": np.fmod,
    "equal": np.equal,
    "not_equal": np.not_equal,
    "greater": np.greater,
    "greater_equal": np.greater_equal,
    "less": np.less,
    "less_equal": np.less_equal,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_xor": np.logical_xor,
}
WHOLE = {"mod", "fmod", "equal", "not_equal", "greater", "greater_equal", "less", "less_equal"}


def operand(rng: Any, name: str, shape: Any, dtype: Any) -> Any:
    if name in WHOLE or name.startswith("logical"):  # equal values, and zeros, must occur
        x = rng.integers(-3, 4, shape).astype(np.float64)
        if name in ("mod", "fmod"):
            x = x * 0.5 + np.where(x >= 0, 1, -1)
    else:
        x = rng.uniform(0.3, 3, shape) * rng.choice([-1, 1], shape)
    return x.astype(dtype)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", BINARY)
def test_binary(name: str, kind: str) -> None:
    """Two tiles; a tile and a number on either side; a tile and a column on either side."""
    rng, f = rng_for(name, kind), BINARY[name]
    call = getattr(nl, name)
    for shape in SHAPES[:2] if kind != "float32" else SHAPES:
        x, y = (operand(rng, name, shape, TYPES[kind]) for _ in range(2))
        column = operand(rng, name, (shape[0], 1), TYPES[kind])
        wide = column.reshape((shape[0], *[1] * (len(shape) - 1))).astype(np.float64)
        a, b = x.astype(np.float64), y.astype(np.float64)
        number = float(operand(rng, name, (1,), np.float32)[0])
        close(run(call, x, y, dtype=x.dtype, shape=shape), f(a, b), kind)
        close(run(partial(swapped, call, number), x, shape=shape), f(a, number), kind)
        close(run(partial(call, number), x, shape=shape), f(number, a), kind)
        close(run(call, x, column, shape=shape), f(a, wide), kind)
        close(run(call, column, x, shape=shape), f(wide, a), kind)


def test_two_tiles_in_psum_and_sbuf() -> None:
    x, y = (rng_for("psum", i).normal(size=(16, 8)).astype(np.float32) for i in (0, 1))

    def body(a: Any, b: Any) -> Any:
        held = nl.ndarray(a.shape, nl.float32, buffer=nl.psum)
        nisa.tensor_copy(held, a)
        return nl.add(
            nl.power(nl.abs(held), nl.full(a.shape, 2.0, nl.float32)), nl.subtract(b, held)
        )

    close(run(body, x, y), np.abs(x.astype(np.float64)) ** 2 + y - x.astype(np.float64), "float32")


def test_power() -> None:
    rng = rng_for("power")
    x, y = (
        rng.uniform(0.2, 3, (8, 6)).astype(np.float32),
        rng.uniform(-2, 2, (8, 6)).astype(np.float32),
    )
    a, b = x.astype(np.float64), y.astype(np.float64)
    close(run(nl.power, x, y), a**b, "float32")
    close(run(lambda t: nl.power(t, 3), x), a**3, "float32", 4)
    close(run(lambda t: nl.power(2.0, t), y), 2.0**b, "float32")


def test_absolute_extremes_come_with_trn3() -> None:
    x, y = (np.array([[3, -4, 2, -2]], np.float32), np.array([[-5, 1, -2, 2]], np.float32))

    def kernel(a: Any, b: Any) -> Any:
        out = nl.ndarray((2, 4), nl.float32, buffer=nl.shared_hbm)
        nl.store(out[0:1], nl.abs_max(nl.load(a), nl.load(b)))
        nl.store(out[1:2], nl.abs_min(nl.load(a), nl.load(b)))
        return out

    with pytest.raises(NccError, match=r"NCC347.*abs_max comes with trn3"):
        nki.simulate(kernel)(x, y)


INT_TYPES = ["int8", "uint8", "int16", "uint16", "int32", "uint32"]


@pytest.mark.parametrize("kind", INT_TYPES)
@pytest.mark.parametrize(
    "name", ["bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"]
)
def test_bits(name: str, kind: str) -> None:
    rng, info = rng_for(name, kind), np.iinfo(kind)
    x = rng.integers(info.min, info.max, (40, 6), dtype=kind, endpoint=True)
    shift, wide = name.endswith("shift"), f"u{kind.removeprefix('u')}"
    top = info.bits if shift else int(info.max)
    y = rng.integers(0, top, (40, 6), endpoint=not shift).astype(kind)
    column = y[:, :1].copy()
    number = int(y[0, 0])

    def want(a: Any, b: Any) -> Any:
        a, b = np.asarray(a, kind).view(wide), np.asarray(b, kind).view(wide)
        return np.asarray(getattr(np, name)(a, b), wide).view(kind)

    call = getattr(nl, name)
    np.testing.assert_array_equal(run(call, x, y, dtype=np.dtype(kind)), want(x, y))
    np.testing.assert_array_equal(run(lambda t: call(t, number), x), want(x, number))
    np.testing.assert_array_equal(run(call, x, column), want(x, column))


@pytest.mark.parametrize("kind", INT_TYPES)
def test_invert(kind: str) -> None:
    info = np.iinfo(kind)
    x = rng_for("invert", kind).integers(info.min, info.max, (5, 7), dtype=kind)
    np.testing.assert_array_equal(run(nl.invert, x, dtype=x.dtype), ~x)


def test_whole_numbers_are_exact() -> None:
    """Two int32 tiles do not pass through float32, and a write rounds to nearest and saturates."""
    x, y = (rng_for("exact", i).integers(-(2**30), 2**30, (9, 5), dtype=np.int32) for i in (0, 1))
    np.testing.assert_array_equal(run(nl.add, x, y, dtype=np.int32), x + y)
    np.testing.assert_array_equal(run(nl.subtract, x, y[:, :1].copy()), x - y[:, :1])
    floats = np.array([[0.5, 1.5, -2.5, 3e9, -3e9, 7.49]], np.float32)
    got = run(lambda t: nl.copy(t, dtype=nl.int32), floats)
    np.testing.assert_array_equal(got, [[0, 2, -2, 2**31 - 1, -(2**31), 7]])


@pytest.mark.parametrize("name", ["floor", "ceil", "trunc"])
def test_rounding_of_what_is_whole_large_or_no_number(name: str) -> None:
    x = np.array([[-0.5, 0.5, 1.5, 2.5, -1.0, 8388607.5, -8388608.0, 1e20, -3e38]], np.float32)
    x = np.concatenate([x, [[np.inf, -np.inf, np.nan, 2147483648.0, 1e-30, -1e-30]]], 1).astype(
        np.float32
    )
    np.testing.assert_array_equal(run(getattr(nl, name), x), getattr(np, name)(x))
    whole = np.array([[3, -4, 2**20]], np.int32)
    np.testing.assert_array_equal(run(getattr(nl, name), whole, dtype=np.int32), whole)


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_sine_far_from_zero(name: str) -> None:
    x = rng_for(name, "far").uniform(-1e5, 1e5, (64, 32)).astype(np.float32)
    x[0, :4] = [0, math.pi, -math.pi, math.pi / 2]
    got = run(getattr(nl, name), x)
    np.testing.assert_allclose(got, getattr(np, name)(x.astype(np.float64)), atol=3e-7)


REDUCE: dict[str, Callable[..., Any]] = {
    "sum": np.sum,
    "max": np.max,
    "min": np.min,
    "prod": np.prod,
    "mean": np.mean,
    "average": np.mean,
    "var": np.var,
    "all": np.all,
}


def dropped(want: Any, axes: Any, shape: Any) -> Any:
    rest = tuple(n for k, n in enumerate(shape) if k not in axes)
    return want.reshape(rest if len(rest) > 1 else (*rest, 1))


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", REDUCE)
def test_reductions(name: str, kind: str) -> None:
    rng, call = rng_for(name, kind), getattr(nl, name)
    cases: list[tuple[Any, Any]] = [
        ((33, 6), 1),
        ((5, 3, 4), 2),
        ((5, 3, 4), (1, 2)),
        ((5, 3, 4), -2),
    ]
    for shape, axis in [*cases, ((6, 2, 3, 4), (2, 3)), ((6, 2, 3, 4), [1, 3])]:
        x = rng.uniform(0.5, 1.5, shape) * (1 if name == "prod" else rng.choice([-1, 1], shape))
        if name == "all":
            x = x * (rng.uniform(size=shape) > 0.15)
        x = x.astype(TYPES[kind])
        axes = tuple(k % x.ndim for k in ([axis] if isinstance(axis, int) else axis))
        want = REDUCE[name](x.astype(np.float64), axis=axes, keepdims=True).astype(np.float64)
        got = run(partial(call, axis=axis), x, dtype=x.dtype)
        close(got, dropped(want, axes, shape), kind, 2)
        if name != "var":
            close(run(partial(call, axis=axis, keepdims=True), x), want, kind, 2)
        wide = run(partial(call, axis=axis, dtype=nl.float32), x, dtype=np.float32)
        close(wide, dropped(want, axes, shape), "float32", 4)


@pytest.mark.parametrize("kind", TYPES)
def test_softmax(kind: str) -> None:
    for shape, axis in [
        ((20, 9), -1),
        ((20, 9), 1),
        ((8, 3, 5), (1, 2)),
        ((8, 3, 5), 2),
        ((8, 3, 5), 1),
    ]:
        x = (rng_for("softmax", kind, shape).normal(size=shape) * 5).astype(TYPES[kind])
        a = x.astype(np.float64)
        e = np.exp(a - a.max(axis, keepdims=True))
        close(
            run(partial(nl.softmax, axis=axis), x, dtype=x.dtype),
            e / e.sum(axis, keepdims=True),
            kind,
        )


@pytest.mark.parametrize("kind", TYPES)
def test_rms_norm(kind: str) -> None:
    for shape, weight in [
        ((20, 9), (20, 9)),
        ((70, 9), (1, 9)),
        ((20, 9), (20, 1)),
        ((6, 3, 5), (6, 3, 5)),
    ]:
        rng = rng_for("rms", kind, shape, weight)
        x, w = (
            rng.normal(size=shape).astype(TYPES[kind]),
            rng.normal(size=weight).astype(TYPES[kind]),
        )
        axes = tuple(range(1, len(shape)))
        a, n = x.astype(np.float64), math.prod(shape[1:])
        want = a / np.sqrt((a * a).sum(axes, keepdims=True) / n + 1e-5) * w.astype(np.float64)
        got = run(partial(nl.rms_norm, axis=axes, n=n, epsilon=1e-5), x, w, dtype=x.dtype)
        close(got, want, kind, 2)


@pytest.mark.parametrize("kind", TYPES)
def test_matmul(kind: str) -> None:
    rng = rng_for("matmul", kind)
    x, y = (
        rng.normal(size=(24, 40)).astype(TYPES[kind]),
        rng.normal(size=(40, 33)).astype(TYPES[kind]),
    )
    want = x.astype(np.float64) @ y.astype(np.float64)
    close(run(nl.matmul, x, y, dtype=np.float32), want, "float32", 4)
    turned = np.ascontiguousarray(x.T)
    close(run(lambda a, b: nl.matmul(a, b, transpose_x=True), turned, y), want, "float32", 4)


@pytest.mark.parametrize(
    "kind", ["float32", "bfloat16", "float16", "int8", "uint8", "int16", "int32", "uint32"]
)
def test_transposes(kind: str) -> None:
    rng = rng_for("transpose", kind)
    x = rng.normal(size=(24, 100)) * 50
    x = np.clip(x, 0, 100).astype(kind) if "int" in kind else x.astype(TYPES[kind])
    if kind.endswith("int32"):
        x = rng.integers(0, 2**31 - 1, (24, 100), dtype=kind)
    for target in ("trn1", "trn2"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", target)
            np.testing.assert_array_equal(run(nl.transpose, x, dtype=x.dtype), x.T)

            def turned(a: Any) -> Any:
                out = nl.ndarray((a.shape[1], a.shape[0]), a.dtype, buffer=nl.shared_hbm)
                nl.store(out, nl.load_transpose2d(a))
                return out

            np.testing.assert_array_equal(nki.simulate(turned)(x), x.T)


@pytest.mark.parametrize("kind", [*TYPES, "int32"])
def test_where(kind: str) -> None:
    rng = rng_for("where", kind)
    x, y = ((rng.normal(size=(17, 6)) * 9).astype(TYPES.get(kind, kind)) for _ in range(2))
    for condition in (np.uint8, np.float32, np.int32, np.int8):
        c = rng.integers(0, 2, (17, 6)).astype(condition)
        np.testing.assert_array_equal(run(nl.where, c, x, y, dtype=x.dtype), np.where(c, x, y))
        np.testing.assert_array_equal(run(lambda p, a: nl.where(p, a, 2), c, x), np.where(c, x, 2))
        np.testing.assert_array_equal(run(lambda p, b: nl.where(p, 3, b), c, y), np.where(c, 3, y))
        column = c[:, :1].copy()
        np.testing.assert_array_equal(run(nl.where, column, x, y), np.where(column, x, y))


def test_where_keeps_what_it_does_not_choose() -> None:
    c, x = np.array([[1, 0]], np.uint8), np.array([[np.nan, np.inf]], np.float32)
    np.testing.assert_array_equal(run(lambda p, a: nl.where(p, 1.5, a), c, x), [[1.5, np.inf]])


def test_stores_of_numbers_and_vectors() -> None:
    x = rng_for("vector").normal(size=(100,)).astype(np.float32)

    def kernel(a: Any) -> Any:
        out, filled = (nl.ndarray(s, nl.float32, buffer=nl.shared_hbm) for s in ((100,), (3, 4, 5)))
        nl.store(out, nl.negative(nl.load(a)))
        nl.store(filled, 2.5)
        return out, filled

    got, filled = nki.simulate(kernel)(x)
    np.testing.assert_array_equal(got, -x)
    np.testing.assert_array_equal(filled, np.full((3, 4, 5), 2.5))


def test_gather_flattened() -> None:
    rng = rng_for("gather")
    x = rng.normal(size=(9, 4, 3)).astype(np.float32)
    index = rng.integers(0, 12, (9, 7)).astype(np.int32)
    want = np.take_along_axis(x.reshape(9, 12), index, 1)
    np.testing.assert_array_equal(run(nl.gather_flattened, x, index), want)


def test_views() -> None:
    x = rng_for("views").normal(size=(5, 1, 3)).astype(np.float32)
    row = x[:1, :, :].copy()
    got = run(lambda t: nl.copy(nl.broadcast_to(t, (5, 4, 3))), x)
    np.testing.assert_array_equal(got, np.broadcast_to(x, (5, 4, 3)))
    got = run(lambda t: nl.copy(nl.broadcast_to(t, (70, 2, 3))), row)
    np.testing.assert_array_equal(got, np.broadcast_to(row, (70, 2, 3)))
    np.testing.assert_array_equal(run(lambda t: nl.copy(nl.expand_dims(t, 2)), x), x[:, :, None])


def test_filled_tensors() -> None:
    def kernel() -> Any:
        outs: list[Any] = []
        for buffer in (nl.shared_hbm, nl.sbuf):
            for made in (
                nl.zeros((3, 5), nl.int32, buffer=buffer),
                nl.ones((3, 5), nl.bfloat16, buffer=buffer),
                nl.full((3, 5), -2.5, nl.float32, buffer=buffer),
            ):
                if buffer == nl.sbuf:
                    held = nl.ndarray(made.shape, made.dtype, buffer=nl.shared_hbm)
                    nl.store(held, nl.zeros_like(made) if made.dtype == nl.bfloat16 else made)
                    made = held
                outs.append(made)
        return tuple(outs)

    got = [np.unique(x.astype(np.float64)).tolist() for x in nki.simulate(kernel)()]
    assert got == [[0], [1], [-2.5], [0], [0], [-2.5]]


def test_chance() -> None:
    def kernel() -> Any:
        nl.random_seed(nl.full((1, 1), 7, nl.uint32))
        outs: list[Any] = []
        for made in (
            nl.rand((128, 400), nl.float32),
            nl.dropout(nl.ones((128, 400), nl.float32), 0.25),
        ):
            out = nl.ndarray(made.shape, made.dtype, buffer=nl.shared_hbm)
            nl.store(out, made)
            outs.append(out)
        return tuple(outs)

    uniform, thinned = nki.simulate(kernel)()
    assert 0 <= uniform.min() < 0.01 and 0.99 < uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.01 and abs(uniform.var() - 1 / 12) < 0.005
    assert set(np.unique(thinned)) <= {0.0, 1.0} and 0.2 < (thinned == 0).mean() < 0.3
    again, _ = nki.simulate(kernel)()
    np.testing.assert_array_equal(uniform, again)


def test_operators_are_functions_with_a_name() -> None:
    names = [*BINARY, *UNARY, "power", "abs_max", "abs_min", "invert", "prelu", "bypass"]
    without = {"floor", "ceil", "trunc", "negative", "cos", "tan", "fmod", "arctan"}
    for name in set(names) - without:
        assert getattr(nl, name).nki_op == name == spelled(getattr(nl, name)), name
        assert getattr(nl, name).__name__ == name
    folds = {"max": "maximum", "min": "minimum", "sum": "add", "prod": "multiply"}
    for name, op in folds.items():
        assert spelled(getattr(nl, name)) == op
    assert spelled(nl.average) == "average" and spelled(nl.arctan) == "arctan"


def test_numbers_are_computed_at_once() -> None:
    assert nl.add(2, 3) == 5 and isinstance(nl.add(2, 3), int)
    assert nl.exp(0.0) == 1.0 and nl.maximum(2, 7.5) == 7.5 and nl.floor(-1.5) == -2
    assert nl.max(np.array([[1, 4], [3, 2]]), axis=1).tolist() == [4, 3]
    assert nl.max(3, 5) == 5 and nl.min(3, 5.5) == 3
    assert nl.rsqrt(4.0) == 0.5 and nl.sigmoid(0.0) == 0.5 and nl.negative(2) == -2


def test_names_outside_a_kernel() -> None:
    assert nl.tile_size.pmax == 128 and nl.bool is nl.bool_
    assert str(nl.bfloat16) == "bfloat16" and nl.affine_range(3) == range(3)
    missing = [name for name in nl.__all__ if not hasattr(nl, name)]
    assert not missing
    assert not hasattr(nl, "arange") and not hasattr(nl, "no_such_name")


# --- loops ----------------------------------------------------------------------------------------


def traced(body: Callable[[], Any], **more: Any) -> Kernel:
    trace = Trace("k", TARGET, simulated=True, **more)
    with tracing(trace):
        body()
    return trace.kernel((), ())


@pytest.mark.parametrize("name", ["range", "static_range", "affine_range", "sequential_range"])
def test_ranges_are_python(name: str) -> None:
    call = getattr(nl, name)
    assert list(call(3)) == [0, 1, 2] and list(call(1, 7, 3)) == [1, 4]
    assert list(call(np.int64(2), multi_buffer=2, precise_schedule=True)) == [0, 1]
    assert all(type(i) is int for i in call(np.int32(2)))
    with pytest.raises(
        NkiTypeError, match=rf"NCC363.*nl.{name} takes whole numbers, was given 4.0.*//"
    ):
        call(4.0)


def test_a_range_is_an_index() -> None:
    x = rng_for("index").normal(size=(40, 12)).astype(np.float32)

    def kernel(a: Any) -> Any:
        out = nl.ndarray((40, 6), nl.float32, buffer=nl.shared_hbm)
        tile = nl.load(a[nl.affine_range(40), nl.affine_range(0, 12, 2)])
        nl.store(out, tile)
        return out

    np.testing.assert_array_equal(nki.simulate(kernel)(x), x[:, ::2])


def test_fori_loop() -> None:
    x = rng_for("fori").normal(size=(12, 8, 5)).astype(np.float32)
    bound = np.array([[5]], np.int32)

    def kernel(a: Any, n: Any) -> Any:
        out = nl.zeros((12, 8, 5), nl.float32, buffer=nl.shared_hbm)
        total = nl.zeros((8, 5), nl.float32)
        upper = nisa.scalar_load(nl.load(n))

        def body(i: Any) -> None:
            tile = nl.load(a.select(0, i * 2 + 1))
            nisa.tensor_tensor(total, total, tile, nl.add)
            nl.store(out.select(0, i + 1), total)

        nl.fori_loop(1, upper, body, step=2)
        return out

    want = np.zeros((12, 8, 5))
    total = np.zeros((8, 5))
    for i in range(1, 5, 2):
        total = total + x[i * 2 + 1]
        want[i + 1] = total
    close(nki.simulate(kernel)(x, bound), want, "float32")


def test_while_loop() -> None:
    def kernel(n: Any) -> Any:
        out = nl.zeros((1, 8), nl.int32, buffer=nl.shared_hbm)
        count, one = nl.load(n), nl.full((1, 1), 1, nl.int32)
        start = nisa.register_alloc()
        nisa.register_load(start, count)

        def body(r: Any) -> Any:
            nl.store(out.select(1, r), count)
            nisa.tensor_tensor(count, count, one, nl.subtract)
            nisa.register_load(r, count)
            return r

        nl.while_loop(start, body)
        return out

    got = nki.simulate(kernel)(np.array([[4]], np.int32))
    np.testing.assert_array_equal(got, [[0, 1, 2, 3, 4, 0, 0, 0]])
    np.testing.assert_array_equal(nki.simulate(kernel)(np.array([[0]], np.int32)), [[0] * 8])


def test_dynamic_range() -> None:
    x = rng_for("dynamic").normal(size=(6, 4, 3)).astype(np.float32)

    def kernel(a: Any, n: Any) -> Any:
        out = nl.zeros((6, 4, 3), nl.float32, buffer=nl.shared_hbm)
        upper = nisa.register_alloc(nl.load(n))
        for i in nl.dynamic_range(1, upper):
            for j in nl.dynamic_range(2):
                del j
                nl.store(out.select(0, i), nl.multiply(nl.load(a.select(0, i)), 3.0))
        return out

    want = np.where(np.isin(np.arange(6), range(1, 5))[:, None, None], x * 3.0, 0)
    close(nki.simulate(kernel)(x, np.array([[5]], np.int32)), want, "float32")


def test_device_loops_are_statements() -> None:
    def body() -> None:
        nl.fori_loop(0, 3, lambda i: nl.zeros((2, 2), nl.float32))
        nl.while_loop(nisa.register_alloc(1), lambda r: r)

    kinds = [type(s) for s in traced(body).body]
    assert kinds.count(DeviceFor) == 1 and kinds.count(DeviceWhile) == 1
    loop = next(s for s in traced(body).body if isinstance(s, DeviceFor))
    assert [op.op for op in loop.body if isinstance(op, KernelOp)] == ["memset"]
    assert loop.origin.file == "test_nki_language.py" and loop.origin.line


def test_no_reorder_chains_its_ops() -> None:
    def more(tile: Any) -> None:
        nisa.memset(tile, 1.0)

    def body() -> None:
        tile = nl.zeros((2, 2), nl.float32)
        with nl.no_reorder():
            more(tile)
            with nl.no_reorder():
                more(tile)
            more(tile)
        nisa.memset(tile, 2.0)

    afters = [op.after for op in ops_of(traced(body).body)]
    names = [op.name for op in ops_of(traced(body).body)]
    assert afters == [(), (), (names[1],), (names[2],), ()]


def test_programs() -> None:
    seen: list[Any] = []

    def kernel() -> Any:
        seen.append((nl.program_ndim(), nl.program_id(0), nl.num_programs(0), nl.num_programs([0])))
        return nl.zeros((1, 1), nl.float32, buffer=nl.shared_hbm)

    nki.simulate(kernel)()
    nki.simulate(kernel)[1]()
    nki.simulate(kernel)[2]()
    assert seen == [(0, 0, 1, 1), (1, 0, 1, 1), (1, 0, 2, 2), (1, 1, 2, 2)]
    trace = Trace("k", TARGET, grid=(3, 4), program=(2, 1), old=True)
    with tracing(trace):
        assert (nl.program_id(0), nl.program_id(1), nl.num_programs(None)) == (2, 1, 12)
        with pytest.raises(
            NccError, match=r"NCC366.*nl.program_id\(2\): the kernel was launched with 2 axes"
        ):
            nl.program_id(2)


def test_device_print(capsys: pytest.CaptureFixture[str]) -> None:
    def kernel(a: Any) -> Any:
        out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
        tile = nl.load(a)
        nl.device_print("tile:", tile[:, 1:3])
        nl.device_print("turn", nisa.register_alloc(3))
        nl.store(out, tile)
        return out

    nki.simulate(kernel)(np.array([[1.5, 2.5, -3.0]], np.float32))
    assert capsys.readouterr().out == "tile: [[ 2.5, -3. ]]\nturn 3\n"


# --- registers ------------------------------------------------------------------------------------


def test_scalars_compute() -> None:
    def kernel(n: Any) -> Any:
        out = nl.ndarray((1, 6), nl.int32, buffer=nl.shared_hbm)
        held = nl.ndarray((1, 6), nl.int32)
        x = nisa.scalar_load(nl.load(n))
        for k, y in enumerate((x + 1, 1 - x, x * x * x, -x, 3 * (x - 2), +x)):
            nisa.scalar_store(held[0:1, k : k + 1], y)
        nl.store(out, held)
        return out

    n = 2000
    got = nki.simulate(kernel)(np.array([[n]], np.int32))[0].tolist()
    cube = (n**3 + 2**31) % 2**32 - 2**31
    assert got == [n + 1, 1 - n, cube, -n, 3 * (n - 2), n]


def test_a_scalar_starts_a_slice() -> None:
    x = rng_for("slice").normal(size=(4, 32)).astype(np.float32)

    def kernel(a: Any) -> Any:
        out = nl.ndarray((4, 32), nl.float32, buffer=nl.shared_hbm)
        tile = nl.load(a)

        def body(i: Any) -> None:
            nl.store(out[:, i * 8 : i * 8 + 8], nl.negative(tile[:, nl.ds(i * 8, 8)]))

        nl.fori_loop(0, 4, body)
        return out

    np.testing.assert_array_equal(nki.simulate(kernel)(x), -x)


def raised(body: Callable[[], Any]) -> str:
    with tracing(Trace("k", TARGET, simulated=True)), pytest.raises(NccError) as found:
        body()
    return str(found.value)


def reg() -> Any:
    return nisa.register_alloc(1)


def number() -> Any:
    return nisa.scalar_load(nl.zeros((1, 1), nl.int32))


def small(*shape: int) -> Any:
    return nl.zeros(shape or (4, 4), nl.float32)


def broken() -> None:
    for _ in nl.dynamic_range(3):
        break


SAID: dict[str, tuple[Callable[[], Any], str]] = {
    "if": (
        lambda: 1 if reg() else 0,
        "NCC364.*the truth value of a VirtualRegister is known only to the machine .*nl.while_loop",
    ),
    "int": (lambda: int(reg()), "NCC364.*the value of a VirtualRegister.*nl.fori_loop"),
    "index": (lambda: [1, 2][reg()], "NCC364.*the value of a VirtualRegister"),
    "range": (lambda: range(reg()), "NCC364.*the value of a VirtualRegister"),
    "sum": (
        lambda: reg() + 1,
        "NCC364.*a sum, difference or product of a VirtualRegister.*nisa.scalar_load",
    ),
    "compare": (lambda: reg() < 3, "NCC364.*a comparison of a VirtualRegister"),
    "equal": (lambda: number() == 3, "NCC364.*a comparison of a NkiScalar"),
    "quotient": (
        lambda: number() // 2,
        "NCC364.*a quotient, remainder, power or bit pattern of a NkiScalar",
    ),
    "float": (lambda: number() + 0.5, "NCC364.*computes with whole numbers, not with 0.5"),
    "register bound": (
        lambda: nl.affine_range(reg()),
        "NCC363.*nl.affine_range runs while the kernel is traced, its bound is a register .*nl.fori_loop",
    ),
    "tensor bound": (
        lambda: nl.static_range(small()),
        "NCC363.*its bound is the tensor t0 .*register_load",
    ),
    "step": (
        lambda: nl.fori_loop(0, 4, print, step=0),
        "NCC363.*nl.fori_loop takes a step of 1 or more .*, not 0",
    ),
    "register step": (
        lambda: nl.dynamic_range(0, 4, reg()),
        "NCC363.*takes a step of 1 or more .*, not a register",
    ),
    "tensor in a loop": (
        lambda: nl.fori_loop(0, small(), print),
        "NCC363.*takes a number or a register as upper, was given t0",
    ),
    "no body": (lambda: nl.fori_loop(0, 4, 3), "NCC363.*takes a function as its body, was given 3"),
    "no condition": (
        lambda: nl.while_loop(reg(), lambda r: None),
        "NCC363.*returns None, and must return the next condition",
    ),
    "frozen": (
        lambda: nl.fori_loop(0, reg(), lambda i: nisa.register_move(i, 3)),
        "NCC357.*cannot write dst",
    ),
    "no tile": (
        lambda: nl.exp([small()]),
        r"NCC361.*nl.exp takes a tile, was given \[.* of type list .*index the list",
    ),
    "register as tile": (
        lambda: nl.add(small(), reg()),
        "NCC361.*nl.add takes a tile, was given VirtualRegister.*register_store",
    ),
    "array": (
        lambda: nl.softmax(np.zeros((2, 2))),
        "NCC361.*nl.softmax takes a tile, was given .* of type ndarray .*shared_constant",
    ),
    "shapes": (
        lambda: nl.add(small(4, 6), small(4, 3)),
        r"NCC362.*nl.add takes tiles of one shape, was given t0 \(4, 6\) and t1 \(4, 3\) .*broadcast",
    ),
    "rows": (
        lambda: nl.multiply(small(4, 6), small(1, 6)),
        "NCC362.*nl.multiply takes tiles of one shape",
    ),
    "contraction": (
        lambda: nl.matmul(small(4, 6), small(4, 6)),
        "NCC362.*nl.matmul contracts 6 with 4",
    ),
    "transpose": (lambda: nl.transpose(small(4, 200)), "NCC362.*at most 128 x 128"),
    "broadcast": (
        lambda: nl.broadcast_to(small(4, 6), (4, 12)),
        r"NCC362.*cannot read t0 \(4, 6\) as \(4, 12\)",
    ),
    "axis 0": (
        lambda: nl.sum(small(), axis=0),
        r"NCC365.*nl.sum over axis 0 of t0 \(4, 4\), its partitions .*tensor_partition_reduce",
    ),
    "axis": (lambda: nl.max(small(), axis=2), "NCC365.*over axis 2 .* which has 2 dimensions"),
    "axis twice": (lambda: nl.mean(small(), axis=(1, -1)), "NCC365.*was given axis 1 twice"),
    "keyword": (
        lambda: nl.exp(small(), dtyp=nl.float32),
        "NCC330.*exp takes no argument 'dtyp' .did you mean dtype",
    ),
    "older name": (lambda: nl.arange(4), "NCC360.*nl.arange is of the older API .*write slices"),
    "nearest name": (lambda: nl.tensr_copy, "NCC360.*nki.language has no tensr_copy"),
    "misspelled": (lambda: nl.softmx, "NCC360.*no softmx .did you mean softmax"),
    "axis of the grid": (
        lambda: nl.program_id(1),
        "NCC366.*nl.program_id.1.: the kernel was launched with 0 axes",
    ),
}


@pytest.mark.parametrize("case", SAID)
def test_sentences(case: str) -> None:
    body, pattern = SAID[case]
    said = raised(body)
    assert re.search(pattern, said), said
    assert "test_nki_language.py:" in said, said
    assert said.split()[0].rstrip(":") in rules()


def test_a_device_loop_has_no_early_end() -> None:
    with pytest.raises(
        NccError,
        match=r"NCC363 test_nki_language.py.*Python left the loop of nl.dynamic_range",
    ):
        traced(broken)


def test_no_device_loop_in_fixed_order() -> None:
    def body() -> None:
        with nl.no_reorder():
            nl.fori_loop(0, 3, print)

    assert "NCC363" in raised(body) and "inside nl.no_reorder" in raised(body)


def test_outside_a_kernel() -> None:
    for call in (nl.program_id, nl.program_ndim, lambda: nl.zeros((2, 2), nl.float32)):
        with pytest.raises(NccError, match=r"NCC301.*runs only inside a kernel"):
            call()


# --- NKIObject ------------------------------------------------------------------------------------


class Mode(Enum):
    A = 1


class Plain(nl.NKIObject):
    rows: int
    columns: int = 3
    free = 7
    mode = Mode.A

    def area(self) -> int:
        return self.rows * self.columns


def test_a_class_with_annotations_takes_keywords() -> None:
    made = Plain(rows=2)
    assert (made.rows, made.columns, made.free, made.mode, made.area()) == (2, 3, 7, Mode.A, 6)
    assert Plain(4, 5).area() == 20 and Plain().rows is None
    assert made == Plain(rows=2) and made != Plain(rows=3) and hash(made) == hash(Plain(2))
    assert repr(made).startswith("Plain(rows=2, columns=3")
    with pytest.raises(NkiTypeError, match=r"NCC369.*Plain has no field 'row' .did you mean rows"):
        Plain(row=2)
    with pytest.raises(NkiTypeError, match=r"NCC369.*has 4 fields, was given 5 values"):
        Plain(1, 2, 3, 4, 5)


@dataclasses.dataclass
class Decorated(nl.NKIObject):
    rows: int
    names: list[str] = dataclasses.field(default_factory=list)
    loose = 5
    others: Any = None
    total: int = dataclasses.field(init=False)

    def __post_init__(self) -> None:
        self.total = (self.rows or 0) + self.loose

    @property
    def double(self) -> int:
        return 2 * self.total

    @staticmethod
    def helper(x: int) -> int:
        return x + 1


def test_beneath_dataclass() -> None:
    made = Decorated(rows=2, loose=9)
    assert (made.total, made.names, made.double, made.helper(1)) == (11, [], 22, 2)
    assert Decorated().rows is None and Decorated().total == 5
    assert made == Decorated(rows=2, loose=9) and made != Decorated(rows=2)
    assert made.names is not Decorated().names
    assert [f.name for f in dataclasses.fields(Decorated)] == [
        "rows",
        "names",
        "others",
        "total",
        "loose",
    ]


@dataclasses.dataclass(frozen=True)
class Frozen(nl.NKIObject):
    rows: int
    columns: int = None
    scale = 0.5


def test_frozen() -> None:
    made = Frozen(rows=2)
    assert made == Frozen(2) and hash(made) == hash(Frozen(2)) and made.scale == 0.5
    assert Frozen(rows=2, scale=1.0) != made and {made: 1}[Frozen(2)] == 1
    with pytest.raises(dataclasses.FrozenInstanceError):
        made.rows = 3
    assert dataclasses.replace(made, rows=5).rows == 5


# the body of a class that a linter would not have in this file
body = {"__annotations__": {"a": int}, "__module__": __name__, "a": 1, "items": []}
Base: Any = type("Base", (nl.NKIObject,), body)


class Derived(Base):
    b: int
    act = nl.silu


class Own(nl.NKIObject):
    def __init__(self, x: int) -> None:
        self.x = x

    def __call__(self, y: int) -> int:
        return self.x + y


def test_inheritance_methods_and_mutable_defaults() -> None:
    made = Derived(b=4)
    assert (made.a, made.b, made.items) == (1, 4, []) and made.act.nki_op == "silu"
    made.items.append(3)
    assert Derived().items == [] and Base().items == []
    assert Own(3)(4) == 7 and Own(3) != Own(4) and Own(3) == Own(3)


# --- collectives, typing, meta --------------------------------------------------------------------


def test_replica_groups_hash() -> None:
    cc = nki.collectives
    made = cc.ReplicaGroup([[0, 1], [2, 3]])
    assert made == cc.ReplicaGroup(((0, 1), (2, 3))) and hash(made) == hash(
        cc.ReplicaGroup([(0, 1), (2, 3)])
    )
    assert cc.ReplicaGroup(()) == cc.ReplicaGroup([]) != made
    with pytest.raises(
        NkiTypeError, match=r"NCC367.*groups of different ranks, 1 stands in it twice"
    ):
        cc.ReplicaGroup([[0, 1], [1]])
    with pytest.raises(
        NkiTypeError, match=r"NCC367 .*ReplicaGroup takes lists of ranks, was given 3"
    ):
        cc.ReplicaGroup(3)


def shared(*shape: int, dtype: Any = nl.float32) -> Any:
    return nl.ndarray(shape, dtype, buffer=nl.shared_hbm)


def group(n: int = 2) -> Any:
    return nki.collectives.ReplicaGroup([list(range(n))])


CALLS: dict[str, Callable[[Any], Any]] = {
    "all_reduce": lambda c: c.all_reduce([shared(4, 4)], [shared(4, 4)], group(), nl.add),
    "all_gather": lambda c: c.all_gather(
        srcs=[shared(4, 4)], dsts=[shared(8, 4)], replica_group=group(), collective_dim=0
    ),
    "reduce_scatter": lambda c: c.reduce_scatter(
        [shared(8, 4)], [shared(4, 4)], group(), 0, np.add
    ),
    "all_to_all": lambda c: c.all_to_all([shared(8, 4)], [shared(8, 4)], [[0, 1]], 0),
    "all_gather_v": lambda c: c.all_gather_v(
        [shared(8, 4)], [shared(8, 4)], group(), shared(3, 2, dtype=nl.uint32)
    ),
    "all_to_all_v": lambda c: c.all_to_all_v(
        [shared(8, 4)], [shared(8, 4)], group(), shared(3, 2, dtype=nl.uint32)
    ),
    "collective_permute": lambda c: c.collective_permute(
        [shared(8, 4)], [shared(8, 4)], [[0, 1], [1, 0]]
    ),
    "collective_permute_implicit": lambda c: c.collective_permute_implicit(
        [[shared(8, 4)], [shared(8, 4)]],
        [[shared(8, 4)], [shared(8, 4)]],
        group(),
        channel_ids=[0, 1],
    ),
    "collective_permute_implicit_reduce": lambda c: c.collective_permute_implicit_reduce(
        [shared(8, 4)], [shared(8, 4)], [shared(8, 4)], group(), nl.maximum, [0]
    ),
    "collective_permute_implicit_current_processing_rank_id": lambda c: (
        c.collective_permute_implicit_current_processing_rank_id(0, group(), channel_id=0)
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_transfer_is_refused_after_its_checks(name: str) -> None:
    said = raised(lambda: CALLS[name](nki.collectives))
    assert f"{name} moves data between ranks, and this release runs one rank" in said
    assert said.startswith("NCC368 test_nki_language.py:")


WRONG: dict[str, tuple[Callable[[Any], Any], str]] = {
    "size": (
        lambda c: c.all_gather(shared(4, 4), shared(4, 4), group(), 0),
        "of t0 .16 elements. gives 32, t1 has 16",
    ),
    "dim": (
        lambda c: c.all_gather(shared(4, 4), shared(8, 4), group(), 1),
        "works on dimension 0 in HBM, was given 1",
    ),
    "memory": (
        lambda c: c.all_reduce(shared(4, 4), small(), group(), nl.add),
        "all in HBM or all in SBUF",
    ),
    "sbuf": (lambda c: c.all_to_all(small(), small(), group(), 0), "takes tensors in HBM"),
    "count": (
        lambda c: c.all_reduce([shared(4, 4)], [shared(4, 4)] * 2, group(), nl.add),
        "1 sources and 2 destinations",
    ),
    "dtype": (
        lambda c: c.all_reduce(shared(4, 4), shared(4, 4, dtype=nl.bfloat16), group(), nl.add),
        "converts nothing",
    ),
    "pairs": (
        lambda c: c.collective_permute(shared(4, 4), shared(4, 4), [(0, 1, 2)]),
        "pairs .source, target.",
    ),
    "channels": (
        lambda c: c.collective_permute_implicit([shared(4, 4)], [shared(4, 4)], group(), [1]),
        "channels 0 to at most 3",
    ),
    "tensors": (
        lambda c: c.all_reduce(3, shared(4, 4), group(), nl.add),
        "takes tensors as srcs, was given 3",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_a_collective_does_not_take(case: str) -> None:
    body, pattern = WRONG[case]
    said = raised(lambda: body(nki.collectives))
    assert said.startswith("NCC367 test_nki_language.py:") and re.search(pattern, said), said


def test_collectives_check_keywords_and_operators() -> None:
    c = nki.collectives
    said = raised(lambda: c.all_reduce(shared(4, 4), shared(4, 4), group(), nl.subtract))
    assert "NCC341" in said and "subtract" in said
    said = raised(
        lambda: c.all_reduce(shared(4, 4), shared(4, 4), replica_groups=group(), op=nl.add)
    )
    assert "NCC330" in said and "did you mean replica_group?" in said


def test_rank_id_is_a_register() -> None:
    def kernel() -> Any:
        out = nl.ndarray((1, 1), nl.int32, buffer=nl.shared_hbm)
        held = nl.full((1, 1), 5, nl.int32)
        nisa.register_store(held, nki.collectives.rank_id())
        nl.store(out, held)
        return out

    assert nki.simulate(kernel)().tolist() == [[0]]


def test_typing_and_meta() -> None:
    shown = nki.typing.tensor[128, 512]
    assert repr(shown) == "nki.typing.tensor[128, 512]" and shown.shape == (128, 512)
    assert nki.typing.mutable_tensor.mutable and nki.typing.tensor(4) is nki.typing.tensor
    described = nki.meta.tensor((4, 8), "bfloat16")
    assert described.shape == (4, 8) and described.dtype == nl.bfloat16 and described.ndim == 2
    assert described == nki.meta.tensor([4, 8], nl.bfloat16)
