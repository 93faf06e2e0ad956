"""Every rule of `ncc.numerics` against a definition of its own: bits, tables, or exact fractions."""

from __future__ import annotations

import math
from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncc import numerics as n
from ncc import numerics_registers
from ncc.ir.data import numpy_type

NARROW = ["bfloat16", "float16", "float8e4", "float8e5", "float8_e4m3fn", "float8e3"]
TOP = {"float8e4": 240, "float8e5": 57344, "float8_e4m3fn": 448, "float8e3": 15.5}


def grid(dtype: str) -> np.ndarray:
    """Every finite value of a narrow type, in order."""
    size = numpy_type(dtype).itemsize
    raw = np.arange(1 << 8 * size, dtype=f"u{size}").view(numpy_type(dtype))
    with np.errstate(all="ignore"):
        bits = raw.astype(np.float64)
    return np.unique(bits[np.isfinite(bits)])


GRIDS = {dtype: grid(dtype) for dtype in NARROW}
EVEN = {
    "bfloat16": 7,
    "float16": 10,
    "float8e4": 3,
    "float8e5": 2,
    "float8_e4m3fn": 3,
    "float8e3": 4,
}


def nearest(x: float, dtype: str) -> float:
    """The value of the type closest to x, the one with an even last bit when two are."""
    values = GRIDS[dtype]
    at = int(np.searchsorted(values, x))
    if at in (0, len(values)):
        return float(values[min(at, len(values) - 1)])
    low, high = Fraction(float(values[at - 1])), Fraction(float(values[at]))
    down, up = Fraction(x) - low, high - Fraction(x)
    if down != up:
        return float(low if down < up else high)
    raw = np.array([float(low)]).astype(numpy_type(dtype))
    odd = int(raw.view(f"u{raw.itemsize}")[0]) & 1
    return float(high if odd else low)


@pytest.mark.parametrize("dtype", NARROW)
@settings(derandomize=True, max_examples=150, deadline=None)
@given(st.floats(-500, 500), st.integers(-40, 40))
def test_a_cast_rounds_once_even_from_float64(dtype, x, exponent):
    x = math.ldexp(x, exponent)
    if abs(x) > GRIDS[dtype][-1]:
        return
    got = float(n.cast(np.array([x], np.float64), dtype).astype(np.float64)[0])
    assert got == nearest(x, dtype)


@pytest.mark.parametrize("dtype", NARROW)
def test_halfway_and_just_beside_it(dtype):
    """Where rounding to float32 first would go wrong: next to the middle of two neighbours."""
    values = GRIDS[dtype][:: max(1, len(GRIDS[dtype]) // 400)]
    full = GRIDS[dtype]
    at = np.searchsorted(full, values[:-1])
    middle = (full[at] + full[at + 1]) / 2
    for x in (middle, np.nextafter(middle, np.inf), np.nextafter(middle, -np.inf)):
        want = np.array([nearest(float(v), dtype) for v in x])
        np.testing.assert_array_equal(n.cast(x, dtype).astype(np.float64), want)


@pytest.mark.parametrize("dtype", sorted(TOP))
def test_eight_bit_floats_saturate(dtype):
    x = np.array([1e6, -1e6, np.inf, -np.inf, np.nan], np.float32)
    got = n.cast(x, dtype).astype(np.float64)
    np.testing.assert_array_equal(got[:2], [TOP[dtype], -TOP[dtype]])
    end = TOP[dtype] if dtype == "float8_e4m3fn" else np.inf
    np.testing.assert_array_equal(got[2:4], [end, -end])
    assert np.isnan(got[4])


def test_sixteen_bit_floats_overflow_to_infinity():
    x = np.array([65519.9, 65520.0, 3.4e38], np.float32)
    np.testing.assert_array_equal(n.cast(x, "float16").astype(np.float32), [65504, np.inf, np.inf])
    assert np.isinf(n.cast(np.array([n.FP32_MIN]), "bfloat16").astype(np.float32))[0]


def test_integers_round_to_even_and_saturate():
    x = np.array([0.5, 1.5, -2.5, 127.4, 127.5, -1e9, np.inf, np.nan, -np.nan], np.float32)
    x[8] = np.copysign(np.float32(np.nan), np.float32(-1))
    np.testing.assert_array_equal(n.cast(x, "int8"), [0, 2, -2, 127, 127, -128, 127, 127, -128])
    np.testing.assert_array_equal(n.cast(x, "uint8"), [0, 2, 0, 127, 128, 0, 255, 255, 0])
    big = np.array([2.0**31, -(2.0**31), 2.0**40])
    np.testing.assert_array_equal(n.cast(big, "int32"), [2**31 - 1, -(2**31), 2**31 - 1])
    np.testing.assert_array_equal(n.cast(np.array([300, -7]), "uint8"), [255, 0])


def test_a_cast_to_the_same_type_keeps_every_bit():
    bits = np.array([0x7FA1, 0xFFC1, 0x8000, 0x0001], np.uint16)
    same = n.cast(bits.view(ml_dtypes.bfloat16), "bfloat16")
    np.testing.assert_array_equal(same.view(np.uint16), bits)


def test_subnormals_are_kept():
    tiny = np.array([2.0**-149, -(2.0**-140)], np.float32)
    np.testing.assert_array_equal(n.alu("mult", tiny, np.ones(2, np.float32)), tiny)
    np.testing.assert_array_equal(
        n.cast(tiny, "bfloat16").astype(np.float32), [0, -(2.0**-133) * 0]
    )
    np.testing.assert_array_equal(n.cast(np.array([2.0**-9]), "float8e4").astype(float), [2.0**-9])


@pytest.mark.parametrize("dtype", ["bfloat16", "float16", "float8e4", "float8e5"])
def test_a_product_is_the_exact_sum_rounded_once(dtype):
    draw = np.random.default_rng(1)
    w = draw.normal(size=(100, 3)).astype(numpy_type(dtype))
    x = draw.normal(size=(100, 2)).astype(numpy_type(dtype))
    (got,) = n.matmul_passes(w, x)
    for i in range(3):
        for j in range(2):
            exact = sum(
                Fraction(float(a)) * Fraction(float(b))
                for a, b in zip(w[:, i], x[:, j], strict=True)
            )
            assert got[i, j] == np.float32(float(exact))


def test_fp32_weights_split_into_two_halves():
    w = np.array([1.2345678, -9e-39, 3e38, np.inf, np.nan, 0.0, 2.0**-149], np.float32)
    high, low = n.weight_halves(w)
    assert not (high.view(np.uint32)[:3] & 0xFFFF).any()
    np.testing.assert_array_equal(
        high[:4].astype(float) + low[:4].astype(float), w[:4].astype(float)
    )
    assert np.isnan(high[4]) and low[4] == 0
    draw = np.random.default_rng(2)
    a = draw.normal(size=(40, 5)).astype(np.float32)
    b = draw.normal(size=(40, 6)).astype(np.float32)
    one, two = n.matmul_passes(a, b)
    np.testing.assert_allclose(n.add(one, two), a.T.astype(float) @ b, atol=2e-6)


def test_the_room_of_a_product_changes_nothing():
    draw = np.random.default_rng(3)
    w, x = draw.normal(size=(20, 5)), draw.normal(size=(20, 7)).astype(ml_dtypes.bfloat16)
    room = np.empty((20, 7)), np.empty((5, 7)), np.empty((5, 7), np.float32)
    np.testing.assert_array_equal(n.product(w, x), n.product(w, x, room))


def test_max_and_min_return_the_second_operand_for_nan():
    nan = np.float32(np.nan)
    a = np.array([nan, 1, 2, -0.0, 0.0], np.float32)
    b = np.array([5, nan, 1, 0.0, -0.0], np.float32)
    for op, third in (("max", 2), ("min", 1)):
        got = n.alu(op, a, b)
        assert got[0] == 5 and np.isnan(got[1]) and got[2] == third
        np.testing.assert_array_equal(np.signbit(got[3:]), [False, True])


def test_a_reduction_keeps_that_rule():
    nan = np.nan
    x = np.array([[1, nan, 3, 2], [9, 1, 2, nan], [4, 5, 6, 1]], np.float32)
    got = n.reduce("max", x, (1,))
    assert got[0] == 3 and np.isnan(got[1]) and got[2] == 6
    np.testing.assert_array_equal(n.reduce("subtract", x[2:], (1,)), [4 - 5 - 6 - 1])
    y = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
    np.testing.assert_array_equal(n.reduce("add", y, (1, 2)), y.sum((1, 2)))


@pytest.mark.parametrize("op", sorted(n.ALU))
def test_every_operation_broadcasts_and_gives_float32(op):
    a = np.arange(1, 7, dtype=np.float32).reshape(2, 3)
    got = n.alu(op, a.astype(ml_dtypes.bfloat16), np.float32(2) * np.ones((2, 1), np.float32))
    assert got.shape == (2, 3) and got.dtype == np.float32


def test_arithmetic_is_in_float32():
    a, b = np.float32(16777216) * np.ones(1, np.float32), np.ones(1, np.float32)
    assert n.alu("add", a, b)[0] == 16777216
    assert n.alu("add", np.array([2**24 + 1], np.int32), np.zeros(1, np.float32))[0] == 2**24
    assert n.alu("mod", np.array([-7.0], np.float32), np.array([3.0], np.float32))[0] == 2


@pytest.mark.parametrize("op", sorted(n.BITVEC))
def test_bits_stay_in_their_type(op):
    a = np.array([-8, 5, 2**31 - 1], np.int32)
    got = n.bitvec(op, a, np.array([1, 2, 3], np.int32))
    plain = {
        "bitwise_not": ~a,
        "bitwise_and": [-8 & 1, 5 & 2, 3],
        "bitwise_or": [-8 | 1, 7, 2**31 - 1],
        "bitwise_xor": [-8 ^ 1, 7, (2**31 - 1) ^ 3],
        "arith_shift_left": [-16, 20, -8],
        "logical_shift_left": [-16, 20, -8],
        "arith_shift_right": [-4, 1, (2**31 - 1) >> 3],
        "logical_shift_right": [(2**32 - 8) >> 1, 1, (2**31 - 1) >> 3],
    }[op]
    np.testing.assert_array_equal(got, np.array(plain, np.int64).astype(np.int32))
    assert got.dtype == np.int32


def test_a_shift_by_the_width_leaves_nothing():
    a = np.array([5, -5], np.int32)
    wide = np.array([32, 40], np.int32)
    np.testing.assert_array_equal(n.bitvec("logical_shift_right", a, wide), [0, 0])
    np.testing.assert_array_equal(n.bitvec("logical_shift_left", a, wide), [0, 0])
    np.testing.assert_array_equal(n.bitvec("arith_shift_right", a, wide), [0, -1])


EXACT = {
    "Exp": math.exp,
    "Tanh": math.tanh,
    "Sqrt": lambda x: math.sqrt(abs(x)),
    "Erf": math.erf,
    "Sin": math.sin,
    "Arctan": math.atan,
    "Square": lambda x: x * x,
    "Softplus": lambda x: math.log1p(math.exp(x)),
    "Sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "Silu": lambda x: x / (1 + math.exp(-x)),
    "Gelu": lambda x: 0.5 * x * math.erfc(-x / math.sqrt(2)),
    "Mish": lambda x: x * math.tanh(math.log1p(math.exp(x))),
    "Derivative_Erf": lambda x: 2 / math.sqrt(math.pi) * math.exp(-x * x),
    "Reciprocal": lambda x: 1 / x,
}


@pytest.mark.parametrize("func", sorted(EXACT))
def test_functions_are_rounded_once(func):
    x = np.random.default_rng(4).normal(size=200).astype(np.float32)
    x = np.abs(x) if func == "Sqrt" else x
    want = np.array([EXACT[func](float(v)) for v in x])
    np.testing.assert_allclose(n.activation(func, x), want, rtol=1.2e-7, atol=1e-44)


@pytest.mark.parametrize("func", ["Gelu", "Silu", "Softplus", "Sigmoid"])
def test_derivatives_and_saturated_ends(func):
    ends = n.activation(func, np.array([-1000, 1000], np.float32))
    assert np.isfinite(ends).all()
    pairs = {"Gelu": "Derivative_Gelu", "Silu": "Derivative_silu"}
    if func in pairs:
        x, h = np.linspace(-3, 3, 50), 1e-4
        slope = (n.FUNCTIONS[func](x + h, 0.0) - n.FUNCTIONS[func](x - h, 0.0)) / (2 * h)
        np.testing.assert_allclose(n.FUNCTIONS[pairs[func]](x, 0.0), slope, atol=1e-6)


def test_an_activation_is_a_product_a_sum_and_a_function():
    draw = np.random.default_rng(5)
    x = draw.normal(size=(6, 7)).astype(ml_dtypes.bfloat16)
    s, b = np.float32(0.3), draw.normal(size=(6, 1)).astype(np.float32)
    plain = n.alu("add", n.alu("mult", x, s), b)
    np.testing.assert_array_equal(n.activation("Identity", x, s, b), plain)
    np.testing.assert_array_equal(
        n.activation("Relu", x, s, b), n.alu("max", plain, np.zeros((), np.float32))
    )
    np.testing.assert_array_equal(
        n.activation("Lrelu", plain, alpha=0.5), np.where(plain >= 0, plain, plain * 0.5)
    )
    assert np.signbit(n.activation("Copy", np.array([-0.0], np.float32)))[0]


@pytest.mark.parametrize("count", [32, 33, -1])
def test_a_register_shifts_all_its_bits_out(count):
    shifts = ("logical_shift_left", "logical_shift_right", "arith_shift_right")
    assert [numerics_registers.apply(op, 0x7FFFFFFF, count) for op in shifts] == [0, 0, 0]
