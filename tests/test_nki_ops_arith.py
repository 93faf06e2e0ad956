"""Every operator and every arithmetic op of NKI against float64 definitions of its own."""

from __future__ import annotations

import math

import numpy as np
import pytest
from nki_ops import FLOATS, Bench, close, covers, f64

f32 = np.float32
ERF = np.vectorize(math.erf)


def sig(x):
    return 1 / (1 + np.exp(-x))


BINARY = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - b,
    "multiply": lambda a, b: a * b,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "logical_and": lambda a, b: (a != 0) & (b != 0),
    "logical_or": lambda a, b: (a != 0) | (b != 0),
    "logical_xor": lambda a, b: (a != 0) != (b != 0),
    "abs_max": lambda a, b: np.where(abs(a) > abs(b), a, b),
    "abs_min": lambda a, b: np.where(abs(a) < abs(b), a, b),
    "divide": lambda a, b: a / b,
}
UNARY = {
    "abs": abs,
    "reciprocal": lambda x: 1 / x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sqrt": np.sqrt,
    "square": lambda x: x * x,
    "relu": lambda x: np.maximum(x, 0),
    "logical_not": lambda x: x == 0,
    "bypass": lambda x: x,
}
BITS = {
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
}
FUNCTIONS = {
    "copy": lambda x: x,
    "square": lambda x: x * x,
    "abs": abs,
    "sign": np.sign,
    "relu": lambda x: np.maximum(x, 0),
    "sigmoid": sig,
    "tanh": np.tanh,
    "exp": np.exp,
    "erf": ERF,
    "softplus": lambda x: np.log1p(np.exp(x)),
    "mish": lambda x: x * np.tanh(np.log1p(np.exp(x))),
    "silu": lambda x: x * sig(x),
    "silu_dx": lambda x: sig(x) * (1 + x * (1 - sig(x))),
    "gelu": lambda x: x / 2 * (1 + ERF(x / math.sqrt(2))),
    "gelu_dx": lambda x: (
        (1 + ERF(x / math.sqrt(2))) / 2 + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)
    ),
    "gelu_apprx_tanh": lambda x: (
        x / 2 * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    ),
    "gelu_apprx_sigmoid": lambda x: x * sig(1.702 * x),
    "gelu_apprx_sigmoid_dx": lambda x: sig(1.702 * x) * (1 + 1.702 * x * (1 - sig(1.702 * x))),
    "erf_dx": lambda x: 2 / math.sqrt(math.pi) * np.exp(-x * x),
    "log": np.log,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: x**-0.5,
    "reciprocal": lambda x: 1 / x,
    "sin": np.sin,
    "arctan": np.arctan,
}
POSITIVE = {"log", "sqrt", "rsqrt"}
SHAPES = [(3, 5), (32, 7), (128, 2, 3), (17, 4, 1), (64, 2, 2, 3)]


def test_the_tables_here_are_the_ones_of_the_api():
    from ncc.nki import operators as o

    assert set(FUNCTIONS) | {"prelu"} == o.ACTIVATIONS
    assert o.ARITHMETIC | {"copy"} == (set(BINARY) | set(UNARY) | {"power", "mod", "fmod", "copy"})
    assert set(BITS) | {"invert", "left_shift", "right_shift"} == o.BITVEC


def quantised(b, x):
    """Small whole numbers, so that equalities occur."""
    return np.rint(f64(x))


@covers("tensor_tensor")
@pytest.mark.parametrize("op", sorted(BINARY))
@pytest.mark.parametrize("seed", range(3))
def test_two_tensors(op, seed):
    b = Bench(seed)
    shape = SHAPES[(seed * 2 + len(op)) % len(SHAPES)]
    kinds = [FLOATS[b.rng.integers(3)] for _ in range(3)]
    x = b.view("x", shape, kinds[0])
    y = b.view("y", shape, kinds[1], "psum" if seed == 1 else "sbuf")
    if op not in ("add", "subtract", "multiply", "divide"):
        b.fill(x, quantised(b, x.values()))
        b.fill(y, quantised(b, y.values()))
    if op == "divide":
        b.fill(y, abs(f64(y.values())) + 1)
    b.view("d", shape, kinds[2])
    b.op("tensor_tensor", {"dst": "d", "data1": "x", "data2": "y"}, op=op)
    with np.errstate(all="ignore"):
        want = BINARY[op](f64(x.values()), f64(y.values()))
    close(b.run("d"), want, kinds[2])


@covers("tensor_tensor")
def test_shapes_may_differ_as_long_as_rows_hold_as_many_elements():
    b = Bench(5)
    x, y = b.view("x", (8, 2, 3)), b.view("y", (8, 6))
    b.view("d", (8, 3, 2), "bfloat16")
    b.op("tensor_tensor", {"dst": "d", "data1": "x", "data2": "y"}, op="subtract")
    close(b.run("d"), f64(x.values()).reshape(8, 6) - f64(y.values()), "bfloat16")


@covers("tensor_tensor")
def test_a_view_of_stride_zero_repeats():
    b = Bench(6)
    x, y = b.view("x", (8, 4, 3)), b.view("y", (8, 4, 3), repeat=True)
    b.view("d", (8, 4, 3))
    b.op("tensor_tensor", {"dst": "d", "data1": "x", "data2": "y"}, op="multiply")
    assert (y.values() == y.values()[..., :1]).all()
    close(b.run("d"), f64(x.values()) * f64(y.values()), "float32")


@covers("tensor_tensor")
@pytest.mark.parametrize("op", sorted(BITS))
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "uint32"])
def test_bits_of_two_tensors(op, dtype):
    b = Bench(len(op))
    x = b.view("x", (9, 6), dtype, low=-120, high=120)
    y = b.view("y", (9, 2, 3), dtype, low=-120, high=120)
    b.view("d", (9, 6), dtype)
    b.op("tensor_tensor", {"dst": "d", "data1": "x", "data2": "y"}, op=op)
    want = BITS[op](x.values(), y.values().reshape(9, 6))
    np.testing.assert_array_equal(b.run("d"), want)


@covers("tensor_tensor", "tensor_scalar")
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "uint32"])
def test_shifts_are_logical(dtype):
    width = np.dtype(dtype).itemsize * 8
    b = Bench(3)
    x = b.view("x", (5, 8), dtype, low=-100, high=100)
    n = b.view("n", (5, 8), dtype, low=0, high=width)
    for name in "lrst":
        b.view(name, (5, 8), dtype)
    b.op("tensor_tensor", {"dst": "l", "data1": "x", "data2": "n"}, op="left_shift")
    b.op("tensor_tensor", {"dst": "r", "data1": "x", "data2": "n"}, op="right_shift")
    args = {"data": "x", "operand0": 3, "operand1": 5}
    b.op("tensor_scalar", {"dst": "s", **args}, op0="right_shift", op1="bitwise_and")
    args = {"data": "n", "operand0": 1}
    b.op("tensor_scalar", {"dst": "t", **args}, op0="left_shift", reverse0=True)
    mask = (1 << width) - 1
    left, right, both, power = b.run("l", "r", "s", "t")
    for i, (value, by) in enumerate(zip(x.values().flat, n.values().flat, strict=True)):
        bits, by = int(value) & mask, int(by)
        assert int(left.reshape(-1)[i]) & mask == bits << by & mask
        assert int(right.reshape(-1)[i]) & mask == bits >> by
        assert int(both.reshape(-1)[i]) == (bits >> 3) & 5
        assert int(power.reshape(-1)[i]) & mask == 1 << by & mask


@covers("tensor_scalar")
def test_invert():
    b = Bench(3)
    x = b.view("x", (5, 8), "int16", low=-100, high=100)
    b.view("d", (5, 8), "int16")
    b.op("tensor_scalar", {"dst": "d", "data": "x"}, op0="invert")
    np.testing.assert_array_equal(b.run("d"), ~x.values())


@covers("tensor_tensor")
@pytest.mark.parametrize("engine", ["gpsimd", "unknown", "vector"])
@pytest.mark.parametrize("op", ["add", "subtract", "multiply"])
def test_32_bit_integers_are_exact_on_gpsimd_only(op, engine):
    b = Bench(1)
    kinds = "int32", "uint32"
    x = b.view("x", (6, 5), kinds[0], low=-(2**31), high=2**31 - 1)
    y = b.view("y", (6, 5), kinds[0], low=-(2**31), high=2**31 - 1)
    b.view("d", (6, 5), kinds[0])
    b.op("tensor_tensor", {"dst": "d", "data1": "x", "data2": "y"}, engine, op=op)
    p, q = x.values().astype(object), y.values().astype(object)
    exact = {"add": p + q, "subtract": p - q, "multiply": p * q}[op]
    if engine == "vector":
        a, c = f64(x.values().astype(f32)), f64(y.values().astype(f32))
        want = {"add": a + c, "subtract": a - c, "multiply": a * c}[op].astype(f32)
        want = np.clip(f64(want), -(2.0**31), 2.0**31 - 1).astype(np.int64)
    else:
        want = np.array((exact + 2**31) % 2**32 - 2**31, np.int64)
    np.testing.assert_array_equal(b.run("d").astype(np.int64), want)


@covers("tensor_tensor")
def test_integers_from_psum_go_through_float32():
    b = Bench(1)
    x = b.view("x", (2, 3), "int32", "psum", values=np.full((2, 3), 2**24 + 1))
    y = b.view("y", (2, 3), "int32", values=np.zeros((2, 3)))
    b.view("d", (2, 3), "int32")
    b.op("tensor_tensor", {"dst": "d", "data1": x, "data2": y}, op="add")
    assert (b.run("d") == 2**24).all()


@covers("tensor_tensor", "tensor_scalar")
def test_power_and_remainders():
    b = Bench(2)
    x, y = b.view("x", (4, 6), low=0.5, high=3), b.view("y", (4, 6), low=-2, high=2)
    for name in "dmf":
        b.view(name, (4, 6))
    b.op("tensor_tensor", {"dst": "d", "data1": "x", "data2": "y"}, op="power")
    b.op("tensor_scalar", {"dst": "m", "data": "y", "operand0": 0.75}, op0="mod")
    b.op("tensor_scalar", {"dst": "f", "data": "y", "operand0": 0.75}, op0="fmod")
    p, m, f = b.run("d", "m", "f")
    close(p, f64(x.values()) ** f64(y.values()), "float32")
    wide = f64(y.values())
    close(m, wide - 0.75 * np.floor(wide / 0.75), "float32")
    close(f, wide - 0.75 * np.trunc(wide / 0.75), "float32")


@covers("tensor_scalar")
@pytest.mark.parametrize("op0", ["add", "subtract", "multiply", "maximum", "divide", "greater"])
@pytest.mark.parametrize("seed", range(4))
def test_a_tensor_and_scalars(op0, seed):
    b = Bench(seed + 10 * len(op0))
    shape = SHAPES[seed]
    op1 = ["subtract", "", "multiply", "minimum"][seed]
    reverse = bool(seed % 2), bool(seed // 2)
    kind = FLOATS[seed % 3]
    x = b.view("x", shape, kind, low=1, high=4)
    column = b.view("c", (shape[0], 1), low=1, high=2)
    b.view("d", shape, FLOATS[(seed + 1) % 3])
    args = {"dst": "d", "data": "x", "operand0": "c" if seed % 2 else 1.25}
    if op1:
        args["operand1"] = 0.5 if seed % 2 else "c"
    b.op("tensor_scalar", args, op0=op0, op1=op1, reverse0=reverse[0], reverse1=reverse[1])
    wide = f64(x.values()).reshape(shape[0], -1)
    one = f64(column.values())
    first = one if seed % 2 else 1.25
    t = BINARY[op0](first, wide) if reverse[0] else BINARY[op0](wide, first)
    t = f64(np.asarray(t, f32))
    if op1:
        second = 0.5 if seed % 2 else one
        t = BINARY[op1](second, t) if reverse[1] else BINARY[op1](t, second)
    close(b.run("d"), t, FLOATS[(seed + 1) % 3])


@covers("tensor_scalar")
@pytest.mark.parametrize("op", sorted(UNARY))
def test_operators_of_one_operand(op):
    b = Bench(4)
    x = b.view("x", (6, 2, 3), "bfloat16", low=0.5, high=4)
    if op in ("abs", "relu", "logical_not", "square"):
        b.fill(x, np.rint(b.rng.uniform(-2, 2, (6, 2, 3))))
    b.view("d", (6, 6))
    b.view("e", (6, 6))
    b.op("tensor_scalar", {"dst": "d", "data": "x"}, op0=op)
    args = {"dst": "e", "data": "x", "operand0": 2.0}
    b.op("tensor_scalar", args, op0="multiply", op1=op)
    one, two = b.run("d", "e")
    close(one, UNARY[op](f64(x.values())), "float32")
    close(two, UNARY[op](2 * f64(x.values())), "float32")


@covers("tensor_scalar")
def test_integers_lose_bits_and_saturate():
    b = Bench(4)
    x = b.view("x", (1, 2), "int32", values=[[2**24 + 1, 300]])
    b.view("d", (1, 2), "int32")
    b.view("u", (1, 2), "uint8")
    b.op("tensor_scalar", {"dst": "d", "data": x, "operand0": 0.0}, op0="add")
    b.op("tensor_scalar", {"dst": "u", "data": x, "operand0": 0.5}, op0="subtract")
    exact, small = b.run("d", "u")
    assert exact.tolist() == [[2**24, 300]]
    assert small.tolist() == [[255, 255]]


@covers("tensor_scalar")
def test_to_integers_the_nearest_even():
    b = Bench(4)
    x = b.view("x", (1, 5), values=[[0.5, 1.5, 2.5, -0.5, -300]])
    b.view("d", (1, 5), "int8")
    b.op("tensor_scalar", {"dst": "d", "data": x, "operand0": 1.0}, op0="multiply")
    assert b.run("d").tolist() == [[0, 2, 2, 0, -128]]


@covers("scalar_tensor_tensor")
@pytest.mark.parametrize("seed", range(6))
def test_scalar_tensor_tensor(seed):
    b = Bench(seed)
    shape = SHAPES[seed % len(SHAPES)]
    op0, op1 = (["subtract", "multiply", "add"][seed % 3], ["multiply", "subtract"][seed % 2])
    reverse = bool(seed & 1), bool(seed & 2)
    x = b.view("x", shape, FLOATS[seed % 3])
    y = b.view("y", shape, FLOATS[(seed + 1) % 3], "psum")
    column = b.view("c", (shape[0], 1))
    b.view("d", shape, FLOATS[(seed + 2) % 3])
    args = {"dst": "d", "data": "x", "operand0": "c" if seed % 2 else -1.5, "operand1": "y"}
    b.op("scalar_tensor_tensor", args, op0=op0, op1=op1, reverse0=reverse[0], reverse1=reverse[1])
    wide, other = (f64(v.values()).reshape(shape[0], -1) for v in (x, y))
    one = f64(column.values()) if seed % 2 else -1.5
    t = BINARY[op0](one, wide) if reverse[0] else BINARY[op0](wide, one)
    want = BINARY[op1](other, t) if reverse[1] else BINARY[op1](t, other)
    close(b.run("d"), want, FLOATS[(seed + 2) % 3], scale=4)


@covers("reciprocal")
def test_reciprocal():
    b = Bench(1)
    x = b.view("x", (7, 3, 2), "float16", low=0.25, high=8)
    b.view("d", (7, 6), "bfloat16")
    b.op("reciprocal", {"dst": "d", "data": "x"})
    close(b.run("d"), 1 / f64(x.values()), "bfloat16")


# --- folds ----------------------------------------------------------------------------------------

FOLDS = {
    "add": lambda x, n: x.sum(-1),
    "multiply": lambda x, n: x.prod(-1),
    "maximum": lambda x, n: x.max(-1),
    "minimum": lambda x, n: x.min(-1),
    "subtract": lambda x, n: x[..., 0] - x[..., 1:].sum(-1),
    "logical_or": lambda x, n: (x != 0).any(-1),
    "logical_and": lambda x, n: (x != 0).all(-1),
    "logical_xor": lambda x, n: (x != 0).sum(-1) % 2,
}


@covers("tensor_reduce")
@pytest.mark.parametrize("op", sorted(FOLDS))
@pytest.mark.parametrize("axes", [(1,), (2,), (1, 2), (3,), (2, 3), (1, 2, 3)])
def test_folds_over_the_last_axes(op, axes):
    b = Bench(len(op) + len(axes))
    shape = (5, 3, 4, 2)[: axes[-1] + 1]
    x = b.view("x", shape, FLOATS[len(axes) % 3])
    if op.startswith("logical"):
        b.fill(x, b.rng.integers(0, 2, shape))
    kept = shape[: axes[0]] if len(shape[: axes[0]]) > 1 else (5, 1)
    b.view("d", kept)
    negate = op in ("add", "maximum")
    axis = axes[0] if len(axes) == 1 else axes
    b.op("tensor_reduce", {"dst": "d", "data": "x"}, op=op, axis=axis, negate=negate)
    flat = f64(x.values()).reshape(*shape[: axes[0]], -1)
    want = FOLDS[op](flat, 0)
    close(b.run("d"), -want if negate else want, "float32", scale=8)


@covers("tensor_reduce")
@pytest.mark.parametrize("op", sorted(BITS))
def test_folds_of_bits(op):
    b = Bench(2)
    x = b.view("x", (4, 5), "uint16", low=0, high=60000)
    b.view("d", (4, 1), "uint16")
    b.op("tensor_reduce", {"dst": "d", "data": "x"}, op=op, axis=(1,))
    f = {"bitwise_and": np.bitwise_and, "bitwise_or": np.bitwise_or, "bitwise_xor": np.bitwise_xor}
    np.testing.assert_array_equal(b.run("d")[:, 0], f[op].reduce(x.values(), axis=1))


@covers("tensor_partition_reduce")
@pytest.mark.parametrize("op", ["add", "average", "maximum", "bitwise_or", "bitwise_and"])
def test_folds_over_partitions(op):
    b = Bench(2)
    dtype = "int32" if op.startswith("bit") else "bfloat16"
    x = b.view("x", (24, 5), dtype, low=-9, high=9)
    tall = b.view("d", (4, 5), "int32" if op.startswith("bit") else "float32")
    b.op("tensor_partition_reduce", {"dst": "d", "data": "x"}, op=op)
    found, wide = b.run("d"), x.values() if op.startswith("bit") else f64(x.values())
    want = {
        "add": lambda: wide.sum(0),
        "average": lambda: wide.sum(0) / 24,
        "maximum": lambda: wide.max(0),
        "bitwise_or": lambda: np.bitwise_or.reduce(wide, 0),
        "bitwise_and": lambda: np.bitwise_and.reduce(wide, 0),
    }[op]()
    np.testing.assert_allclose(f64(found[0]), f64(want), rtol=1e-6)
    np.testing.assert_array_equal(found[1:], tall.values()[1:])


# --- activations and accumulators -----------------------------------------------------------------


@covers("activation")
@pytest.mark.parametrize("op", sorted(FUNCTIONS))
@pytest.mark.parametrize("seed", range(2))
def test_activation_functions(op, seed):
    b = Bench(seed)
    shape = SHAPES[(seed + len(op)) % len(SHAPES)]
    low, high = (1, 4) if op in POSITIVE | {"reciprocal"} else (-3, 3)
    if op in ("sin", "arctan"):
        low, high = -1.4, 1.4
    x = b.view("x", shape, FLOATS[(seed + 1) % 3], low=low, high=high)
    bias = b.view("b", (shape[0], 1), "bfloat16", low=0, high=0.5)
    scale = b.view("s", (shape[0], 1), low=0.5, high=1)
    b.view("d", shape, FLOATS[seed])
    args = {"dst": "d", "data": "x"}
    arg = f64(x.values()).reshape(shape[0], -1)
    if seed:
        args |= {"bias": "b", "scale": "s"}
        arg = f64((arg * f64(scale.values())).astype(f32)) + f64(bias.values())
    elif op != "reciprocal":
        args |= {"scale": 0.75}
        arg = arg * 0.75
    b.op("activation", args, op=op)
    close(b.run("d"), FUNCTIONS[op](arg), FLOATS[seed], scale=4)


@covers("activation")
def test_sin_outside_its_range_goes_on_as_a_cubic():
    b = Bench(0)
    x = b.view("x", (1, 3), values=[[9.0, -9.0, math.pi / 2]])
    b.view("d", (1, 3))
    b.op("activation", {"dst": "d", "data": x}, op="sin")
    found = b.run("d")[0]
    assert abs(found[0] - 27.65) < 0.01 and found[1] == -found[0] and abs(found[2] - 1) < 1e-6


@covers("activation")
def test_the_sum_takes_values_before_they_are_rounded():
    b = Bench(3)
    x = b.view("x", (6, 2, 50), low=0, high=2)
    bias = b.view("b", (6, 1))
    b.view("d", (6, 100), "float8e4")
    b.view("r", (6, 1))
    args = {"dst": "d", "reduce_res": "r", "data": "x", "bias": "b", "scale": 0.5}
    b.op("activation", args, op="exp", reduce_op="add", reduce_cmd="reset_reduce")
    y = np.exp(f64(x.values()).reshape(6, -1) * 0.5 + f64(bias.values()))
    close(b.run("r")[:, 0], y.sum(1), "float32")


@covers("activation")
def test_accumulators_of_act_chain_over_calls():
    b = Bench(3)
    x, y = b.view("x", (6, 4)), b.view("y", (6, 3))
    for name, width in (("d", 4), ("e", 3), ("f", 4)):
        b.view(name, (6, width))
    for name in ("r", "s", "t"):
        b.view(name, (6, 1))
    first = {"dst": "d", "data": "x"}
    b.op("activation", first, op="square", reduce_op="add", reduce_cmd="reset_reduce")
    b.op("activation", {"dst": "f", "data": "x"}, op="exp")  # idle: leaves them
    more = {"dst": "e", "data": "y", "reduce_res": "r"}
    b.op("activation", more, op="square", reduce_op="add", reduce_cmd="reduce")
    b.op("activation", {"dst": "e", "data": "y", "reduce_res": "s"}, op="copy")
    last = {"dst": "e", "data": "y", "reduce_res": "t"}
    b.op("activation", last, op="copy", reduce_op="add", reduce_cmd="reset")
    both, kept, zero = b.run("r", "s", "t")
    want = (f64(x.values()) ** 2).sum(1) + (f64(y.values()) ** 2).sum(1)
    close(both[:, 0], want, "float32")
    np.testing.assert_array_equal(both, kept)
    assert not zero.any()


@covers("activation")
def test_a_result_may_replace_what_was_just_written():
    b = Bench(3)
    x = b.view("x", (6, 4))
    d = b.view("d", (6, 4), plain=True)
    from ncc.ir.kernel import Access

    column = Access("d", "float32", ((4, 6), (1, 1)), 0)
    b.op(
        "activation",
        {"dst": d, "reduce_res": column, "data": "x"},
        op="copy",
        reduce_op="add",
        reduce_cmd="reset_reduce",
    )
    want = f64(x.values())
    close(b.run("d")[:, 0], want.sum(1), "float32")


@covers("activate2")
@pytest.mark.parametrize(
    "pair", [("multiply", "add"), ("multiply", "subtract"), ("subtract", "bypass"), ("bypass",) * 2]
)
@pytest.mark.parametrize("reduce_op", ["add", "maximum", "minimum", "abs_max", "abs_min"])
def test_activate2(pair, reduce_op):
    b = Bench(len(reduce_op))
    x = b.view("x", (9, 2, 4), "bfloat16")
    column = b.view("c", (9, 1))
    b.view("d", (9, 8), "bfloat16")
    b.view("r", (9, 1))
    args = {"dst": "d", "reduce_res": "r", "data": "x", "imm0": "c", "imm1": 0.25}
    b.op(
        "activate2",
        args,
        op="prelu",
        op0=pair[0],
        op1=pair[1],
        relu_param=0.2,
        reverse0=pair[0] == "subtract",
        reduce_op=reduce_op,
        reduce_cmd="reset_reduce",
    )
    t = f64(x.values()).reshape(9, -1)
    one = f64(column.values())
    t = {"multiply": t * one, "subtract": one - t, "bypass": t}[pair[0]]
    t = {"add": t + 0.25, "subtract": t - 0.25, "bypass": t}[pair[1]]
    y = np.where(t >= 0, t, 0.2 * t)
    found, acc = b.run("d", "r")
    close(found, y, "bfloat16")
    rows = np.arange(9)
    want = {
        "add": y.sum(1),
        "maximum": y.max(1),
        "minimum": y.min(1),
        "abs_max": y[rows, abs(y).argmax(1)],
        "abs_min": y[rows, abs(y).argmin(1)],
    }[reduce_op]
    close(acc[:, 0], want, "float32", scale=8)


@covers("exponential")
@pytest.mark.parametrize("command", ["idle", "reset_reduce", "load_reduce"])
def test_exponential(command):
    b = Bench(1)
    x = b.view("x", (5, 3, 2), "bfloat16")
    most, seed = b.view("m", (5, 1)), b.view("i", (5, 1))
    b.view("d", (5, 6), "bfloat16")
    b.view("r", (5, 1))
    args = {"dst": "d", "src": "x", "max_value": "m", "reduce_init": "i"}
    if command != "idle":
        args["reduce_res"] = "r"
    b.op("exponential", args, reduce_cmd=command)
    y = np.exp(f64(x.values()).reshape(5, -1) - f64(most.values()))
    found, acc = b.run("d", "r")
    close(found, y, "bfloat16")
    if command != "idle":
        first = f64(seed.values())[:, 0] if command == "load_reduce" else 0
        close(acc[:, 0], y.sum(1) + first, "float32", scale=4)


@covers("tensor_scalar_reduce")
@pytest.mark.parametrize("reduce_op", ["add", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("command", ["reset_reduce", "load_reduce", "reduce"])
def test_tensor_scalar_reduce(reduce_op, command):
    b = Bench(len(reduce_op))
    x = b.view("x", (8, 2, 3), "bfloat16", low=-2, high=2)
    column, seed = b.view("c", (8, 1)), b.view("i", (8, 1), low=1, high=3)
    b.view("d", (8, 6), "float16")
    b.view("r", (8, 1))
    args = {"dst": "d", "reduce_res": "r", "data": "x", "operand0": "c", "reduce_init": "i"}
    keys = {"op0": "multiply", "reduce_op": reduce_op, "reduce_res_negate": True}
    if command == "reduce":
        b.op("tensor_scalar_reduce", args, **keys)  # gives the first half
    b.op("tensor_scalar_reduce", args, reduce_cmd=command, **keys)
    y = f64((f64(x.values()).reshape(8, -1) * f64(column.values())).astype(f32))
    first = {"add": 0, "multiply": 1, "maximum": -np.inf, "minimum": np.inf}[reduce_op]
    lead = np.full((8, 1), first, float)
    if command == "load_reduce":
        lead = f64(seed.values())
    both = np.concatenate([lead, y, y] if command == "reduce" else [lead, y], axis=1)
    found, acc = b.run("d", "r")
    close(found, y, "float16")
    close(acc[:, 0], -FOLDS[reduce_op](both, 0), "float32", scale=4)


@covers("tensor_scalar_reduce")
def test_reset_folds_nothing():
    b = Bench(2)
    b.view("x", (3, 4))
    b.view("d", (3, 4))
    b.view("r", (3, 1))
    args = {"dst": "d", "reduce_res": "r", "data": "x", "operand0": 0.0}
    b.op("tensor_scalar_reduce", args, op0="add", reduce_op="maximum", reduce_cmd="reset")
    assert np.isneginf(b.run("r")).all()


@covers("tensor_scalar_cumulative")
@pytest.mark.parametrize("op1", ["add", "subtract", "multiply", "maximum", "minimum"])
@pytest.mark.parametrize("command", ["reset_reduce", "load_reduce", "reduce"])
def test_running_values(op1, command):
    b = Bench(len(op1))
    x = b.view("x", (6, 2, 5), "bfloat16", low=-2, high=2)
    seed = b.view("i", (6, 1))
    b.view("d", (6, 10))
    args = {"dst": "d", "src": "x", "imm0": 0.5, "imm1": "i" if command == "load_reduce" else None}
    keys = {"op0": "add", "op1": op1}
    if command == "reduce":
        b.op("tensor_scalar_cumulative", args, **keys)
    b.op("tensor_scalar_cumulative", args, reduce_cmd=command, **keys)
    t = f64(x.values()).reshape(6, -1) + 0.5
    first = {"add": 0, "subtract": 0, "multiply": 1, "maximum": -np.inf, "minimum": np.inf}[op1]
    r = f64(seed.values())[:, 0] if command == "load_reduce" else np.full(6, first, float)
    want = []
    for _ in range(2 if command == "reduce" else 1):
        want = []
        for i in range(10):
            r = BINARY[op1](t[:, i], r)  # the element first: subtraction alternates
            want.append(r)
    close(b.run("d"), np.stack(want, 1), "float32", scale=8)


@covers("tensor_tensor_scan")
@pytest.mark.parametrize("ops", [("multiply", "add"), ("subtract", "multiply"), ("add", "maximum")])
@pytest.mark.parametrize("reverse", [(False, False), (True, False), (False, True)])
def test_scans(ops, reverse):
    b = Bench(4)
    x = b.view("x", (7, 2, 6), low=-1, high=1)
    y = b.view("y", (7, 12), "bfloat16", low=-1, high=1)
    first = b.view("i", (7, 1))
    b.view("d", (7, 12), "bfloat16")
    args = {"dst": "d", "data0": "x", "data1": "y", "initial": "i"}
    b.op(
        "tensor_tensor_scan",
        args,
        op0=ops[0],
        op1=ops[1],
        reverse0=reverse[0],
        reverse1=reverse[1],
    )
    a, c, r = f64(x.values()).reshape(7, -1), f64(y.values()), f64(first.values())[:, 0]
    want = []
    for i in range(12):
        t = BINARY[ops[0]](r, a[:, i]) if reverse[0] else BINARY[ops[0]](a[:, i], r)
        r = BINARY[ops[1]](c[:, i], t) if reverse[1] else BINARY[ops[1]](t, c[:, i])
        want.append(r)
    close(b.run("d"), np.stack(want, 1), "bfloat16")


@covers("tensor_tensor_scan")
def test_the_rounding_of_dst_does_not_feed_back():
    b = Bench(4)
    b.view("x", (1, 9), values=np.ones((1, 9)))
    b.view("y", (1, 9), values=np.full((1, 9), 2.0**-9))
    b.view("d", (1, 9), "bfloat16")
    args = {"dst": "d", "data0": "x", "data1": "y", "initial": 1.0}
    b.op("tensor_tensor_scan", args, op0="multiply", op1="add")
    assert float(b.run("d")[0, 8]) == 1 + 2**-6  # 1 + 9·2⁻⁹; bf16 alone would stay at 1


@covers("select_reduce")
@pytest.mark.parametrize("reverse", [False, True])
def test_select_reduce(reverse):
    b = Bench(3)
    p = b.view("p", (5, 6), "uint8", low=0, high=1)
    x = b.view("x", (5, 2, 3), "bfloat16")
    column = b.view("c", (5, 1))
    b.view("d", (5, 6), "bfloat16")
    b.view("r", (5, 1))
    args = {"dst": "d", "reduce_res": "r", "predicate": "p", "on_true": "x", "on_false": "c"}
    b.op("select_reduce", args, reverse_pred=reverse, reduce_cmd="reset_reduce")
    keep = (p.values() != 0) != reverse
    want = np.where(keep, f64(x.values()).reshape(5, 6), f64(column.values()))
    found, most = b.run("d", "r")
    close(found, want, "bfloat16")
    close(most[:, 0], want.max(1), "float32")


@covers("range_select")
@pytest.mark.parametrize(
    "ops", [("greater_equal", "less"), ("greater", "less_equal"), ("equal",) * 2]
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_range_select(ops, dtype):
    b = Bench(3)
    x = b.view("x", (6, 10), "bfloat16")
    low = b.view("l", (6, 1), values=np.arange(6)[:, None] + 20)
    high = b.view("h", (6, 1), values=np.arange(6)[:, None] + (20 if ops[0] == "equal" else 24))
    b.view("d", (6, 10), dtype)
    b.view("r", (6, 1))
    args = {"dst": "d", "reduce_res": "r", "on_true_tile": "x", "bound0": "l", "bound1": "h"}
    b.op("range_select", args, comp_op0=ops[0], comp_op1=ops[1], range_start=18)
    place = np.arange(10)[None, :] + 18
    keep = BINARY[ops[0]](place, f64(low.values())) & BINARY[ops[1]](place, f64(high.values()))
    found, most = b.run("d", "r")
    assert keep.any() and not keep.all()
    np.testing.assert_array_equal(f64(found)[keep], f64(x.values())[keep])
    if dtype == "bfloat16":
        assert np.isneginf(f64(found)[~keep]).all()  # the cast of -FLT_MAX
    else:
        assert (found[~keep] == np.float32(-3.4028235e38)).all()
    want = np.where(keep, f64(x.values()), -3.4028235e38).max(1)
    close(most[:, 0], want, "float32")
