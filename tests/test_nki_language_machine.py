"""Functions of nki.language, compiled: the machine gives what the simulation gives, bit for bit."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import ncc.nki.isa as nisa
import ncc.nki.language as nl
from ncc import nki

BF16 = np.dtype(ml_dtypes.bfloat16)
F32 = np.dtype(np.float32)
TARGETS = ("trn1", "trn2", "trn3")
ONE = (
    *("abs", "square", "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "relu", "sign", "arctan"),
    *("gelu", "gelu_dx", "gelu_apprx_tanh", "gelu_apprx_sigmoid", "gelu_apprx_sigmoid_dx", "mish"),
    *("silu", "silu_dx", "softplus", "erf", "erf_dx", "reciprocal", "negative", "logical_not"),
    *("sin", "cos", "tan", "floor", "ceil", "trunc", "copy", "bypass"),
)
TWO = (
    *("add", "subtract", "multiply", "divide", "maximum", "minimum", "power", "mod", "fmod"),
    *("equal", "not_equal", "greater", "greater_equal", "less", "less_equal"),
    *("logical_and", "logical_or", "logical_xor"),
)
BITS = ("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift")


def same(parts: list[Callable[..., Any]], *arrays: Any, target: str = "trn2") -> None:
    """Each part, of the loaded arrays, simulated and on the machine."""

    def kernel(*given: Any) -> Any:
        tiles = [nl.load(a) for a in given]
        outs: list[Any] = []
        for part in parts:
            made = part(*tiles)
            made = nl.copy(made) if made.buffer == nl.psum else made
            outs.append(nl.ndarray(made.shape, made.dtype, buffer=nl.shared_hbm))
            nl.store(outs[-1], made)
        return tuple(outs)

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", target)
        want, got = nki.simulate(kernel)(*arrays), nki.jit(kernel)(*arrays)
    for k, (a, b) in enumerate(zip(want, got, strict=True)):
        np.testing.assert_array_equal(np.asarray(b), np.asarray(a), err_msg=f"part {k}")


def swapped(call: Any, second: Any, first: Any) -> Any:
    return call(first, second)


def random(*words: Any) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32("/".join(map(str, words)).encode()))


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
def test_one_operand(dtype: Any, target: str) -> None:
    x = random("one", dtype).uniform(0.1, 3, (33, 2, 5)).astype(dtype)
    same([getattr(nl, name) for name in ONE], x, target=target)
    signed = {
        "abs",
        "relu",
        "sign",
        "sin",
        "cos",
        "floor",
        "ceil",
        "trunc",
        "negative",
        "exp",
        "silu",
    }
    x = random("signed", dtype).uniform(-20, 20, (7, 9)).astype(dtype)
    same([getattr(nl, name) for name in sorted(signed)], x, target=target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", [F32, BF16], ids=str)
def test_two_operands(dtype: Any, target: str) -> None:
    x, y = (random("two", dtype, i).uniform(0.5, 2, (33, 6)).astype(dtype) for i in (0, 1))
    calls = [getattr(nl, name) for name in TWO]
    same(calls, x, y, target=target)
    same([partial(swapped, call, 1.5) for call in calls], x, target=target)
    same([partial(call, 1.5) for call in calls], x, target=target)
    same(calls, x, y[:, :1].copy(), target=target)
    same(calls, y[:, :1].copy(), x, target=target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int16", "uint8"])
def test_integers(dtype: str, target: str) -> None:
    rng = random("bits", dtype)
    x, y = rng.integers(0, 120, (33, 6)).astype(dtype), rng.integers(0, 8, (33, 6)).astype(dtype)
    names = [*BITS, "add", "subtract", "multiply"]
    if target != "trn1" or not dtype.endswith("32"):  # its exact integers have no comparison
        names += ["maximum", "equal"]
    calls = [getattr(nl, name) for name in names]
    same(calls, x, y, target=target)
    same([partial(swapped, call, 3) for call in calls], x, target=target)
    same(calls, x, y[:, :1].copy(), target=target)
    same([nl.invert, nl.negative, nl.floor, partial(nl.copy, dtype=nl.float32)], x, target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_folds(target: str) -> None:
    x = random("folds").uniform(0.5, 1.5, (6, 2, 3, 4)).astype(F32)
    names = ("sum", "max", "min", "prod", "mean", "var", "all", "softmax")
    for axis in (3, (1, 3), (1, 2, 3)):
        same([partial(getattr(nl, name), axis=axis) for name in names], x, target=target)
    w = random("weight").normal(size=(1, 2, 3, 4)).astype(F32)
    same([partial(nl.rms_norm, axis=(1, 2, 3), n=24)], x, w, target=target)


@pytest.mark.parametrize("target", TARGETS)
def test_tensor_engine(target: str) -> None:
    rng = random("pe")
    for dtype in (F32, BF16):
        x, y = rng.normal(size=(24, 40)).astype(dtype), rng.normal(size=(40, 33)).astype(dtype)
        same([nl.matmul], x, y, target=target)
    for dtype in ("float32", BF16, "float16", "int8", "uint8", "int16", "int32", "uint32"):
        x = (rng.normal(size=(24, 100)) * 20).astype(dtype)
        same([nl.transpose], x, target=target)

        def turned(a: Any) -> Any:
            out = nl.ndarray((100, 24), a.dtype, buffer=nl.shared_hbm)
            nl.store(out, nl.load_transpose2d(a))
            return out

        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", target)
            np.testing.assert_array_equal(nki.jit(turned)(x), x.T)


@pytest.mark.parametrize("target", TARGETS)
def test_picking(target: str) -> None:
    rng = random("pick")
    x, y = rng.normal(size=(17, 12)).astype(F32), rng.normal(size=(17, 12)).astype(F32)
    for dtype in (np.uint8, np.float32, np.int32):
        c = rng.integers(0, 2, (17, 12)).astype(dtype)
        parts: list[Any] = [
            nl.where,
            lambda p, a, b: nl.where(p, 2, b),
            lambda p, a, b: nl.where(p, a, -1),
        ]
        same([*parts, lambda p, a, b: nl.where(p[:, 0:1], a, b)], c, x, y, target=target)
    index = rng.integers(0, 12, (17, 7)).astype(np.int32)
    same([nl.gather_flattened], x, index, target=target)
    row = x[:1].copy()
    same([lambda r: nl.copy(nl.broadcast_to(r, (70, 12)))], row, target=target)


def looped(a: Any, n: Any) -> Any:
    out = nl.zeros((8, 16, 5), nl.float32, buffer=nl.shared_hbm)
    total = nl.zeros((16, 5), nl.float32)
    upper = nisa.scalar_load(nl.load(n))

    def body(i: Any) -> None:
        nisa.tensor_tensor(total, total, nl.load(a.select(0, i + 1)), nl.add)
        nl.store(out.select(0, i), total)

    nl.fori_loop(0, upper, body)
    return out


def counted(a: Any) -> Any:
    out = nl.zeros((8, 16, 5), nl.float32, buffer=nl.shared_hbm)

    def body(i: Any) -> None:
        nl.store(out.select(0, i * 2 + 1), nl.negative(nl.load(a.select(0, i + 2))))

    nl.fori_loop(0, 4, body)
    return out


def test_a_counted_loop() -> None:
    x = random("loop").normal(size=(8, 16, 5)).astype(F32)
    np.testing.assert_array_equal(nki.jit(counted)(x), nki.simulate(counted)(x))
