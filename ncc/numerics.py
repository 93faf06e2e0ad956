"""What a number is on the machine: one function per operation, for interpreters, machine and NKI.

The rules are those of the hardware reference, part 12, and of the ISA reference, 5.1 to 5.3:

- a value is rounded to the nearest, ties to even, once, when it is written (`cast`);
- engines compute in float32 on operands that were widened to it (`widen`, `alu`, `activation`);
- a matmul's products and its sum over at most 128 partitions are taken in float64 and rounded to
  float32 once per pass; each pass is then one float32 addition into PSUM (`matmul_passes`);
- nothing flushes subnormals.

Everything works on whole arrays. Floating exceptions are results here (Inf, NaN), never warnings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any
from typing import cast as typed

import numpy as np
from numpy.typing import NDArray

from ncc.ir.data import FLOATS, numpy_type
from ncc.numerics_erf import erf

Array = NDArray[Any]
F32 = NDArray[np.float32]
F64 = NDArray[np.float64]

FP32_MIN = -3.4028234663852886e38  # what masking writes, `-FLT_MAX`

# Largest finite value of the 8-bit floats, and whether the type has an infinity
_FP8: dict[str, tuple[float, bool]] = {
    "float8e4": (240.0, True),
    "float8e5": (57344.0, True),
    "float8e3": (15.5, True),
    "float8_e4m3fn": (448.0, False),
}
# The values of all 256 codes of the 8-bit floats
_BYTES = {
    numpy_type(name): np.arange(256, dtype=np.uint8).view(numpy_type(name)).astype(np.float32)
    for name in _FP8
}
_TYPES = {name: numpy_type(name) for name in (*sorted(FLOATS),)}


def dtype_name(x: Array) -> str:
    """BIR's name of an array's type: `bfloat16`, `float8e4`, `int32`."""
    return next((n for n, t in _TYPES.items() if t == x.dtype), x.dtype.name)


def cast(x: Array, dtype: str) -> Array:
    """`x` rounded once to `dtype`: to the nearest even for floats and integers alike.

    Integers and 8-bit floats saturate; an infinity stays one where the type has it. NaN becomes the
    largest integer, a negative NaN the smallest (hardware reference 12.2, rules 5 to 7).
    """
    want = numpy_type(dtype)
    if x.dtype == want:
        return x
    with np.errstate(all="ignore"):
        if dtype not in FLOATS:
            return _to_int(x, want)
        if x.dtype == np.float64 and want.itemsize < 4 and dtype != "float16":
            x = _odd(typed(F64, x))
        if dtype in _FP8:
            top, has_inf = _FP8[dtype]
            small = x.astype(np.float32)
            clipped = np.clip(small, -top, top)
            x = np.where(np.isinf(small), small, clipped) if has_inf else clipped
        return x.astype(want)


def _odd(x: F64) -> F32:
    """`x` in float32 with its last bit set where that was inexact, so that a second rounding, to a
    much narrower type, gives what one rounding of `x` would."""
    near = x.astype(np.float32)
    bits = near.view(np.int32)
    toward = np.where(np.abs(near.astype(np.float64)) > np.abs(x), bits - 1, bits)
    exact = (near == x) | ~np.isfinite(x)
    return np.where(exact, bits, toward | 1).astype(np.int32).view(np.float32)


def _to_int(x: Array, want: np.dtype[Any]) -> Array:
    if want == np.bool_ or x.dtype == np.bool_:
        return x.astype(want)
    info = np.iinfo(want)
    if x.dtype.kind in "iu":
        low = x < info.min if x.dtype.kind == "i" else np.zeros(x.shape, np.bool_)
        high = x > info.max
        return np.where(high, info.max, np.where(low, info.min, x.astype(want))).astype(want)
    wide = x.astype(np.float64)
    whole = np.rint(wide)
    none = np.isnan(wide)
    high = (whole >= float(info.max)) | (none & ~np.signbit(wide))
    low = (whole <= float(info.min)) | (none & np.signbit(wide))
    safe = np.where(high | low, 0.0, whole).astype(want)
    safe[high] = info.max
    safe[low] = info.min
    return safe


def widen(x: Array) -> F32:
    """`x` as the engines see it. Exact for floats and up to 2^24; larger integers are rounded."""
    if x.dtype == np.float32:
        return x
    if x.dtype in _BYTES:
        return _BYTES[x.dtype][x.view(np.uint8)]
    with np.errstate(all="ignore"):
        return x.astype(np.float32)


def weight_halves(stationary: Array) -> tuple[F32, F32]:
    """float32 weights as two parts: the low 16 mantissa bits cleared, and the exact remainder.

    A NaN or an infinity stays whole in the first part.
    """
    bits = np.ascontiguousarray(stationary, np.float32).view(np.uint32)
    high = (bits & np.uint32(0xFFFF0000)).view(np.float32)
    full = bits.view(np.float32)
    with np.errstate(all="ignore"):
        finite = np.isfinite(full)
        high = np.where(finite, high, full)
        return high, np.where(finite, full - high, np.float32(0))


def product(stationary: Array, moving: Array, room: tuple[F64, F64, F32] | None = None) -> F32:
    """One pass: stationary[K, M]ᵀ · moving[K, N] in float64, rounded to float32.

    `room` is memory to work in, [K, N], [M, N] and [M, N], for who multiplies often; the result is
    then in it.
    """
    with np.errstate(all="ignore"):
        left = stationary if stationary.itemsize > 1 else widen(stationary)
        left = left.astype(np.float64, copy=False).T
        if room is None:
            right = moving if moving.itemsize > 1 else widen(moving)
            return np.dot(left, right.astype(np.float64, copy=False)).astype(np.float32)
        wide, total, narrow = room
        np.copyto(wide, moving)
        np.dot(left, wide, out=total)
        np.copyto(narrow, total, casting="same_kind")
        return narrow


def matmul_passes(stationary: Array, moving: Array) -> list[F32]:
    """What stationary[K, M] and moving[K, N] add to PSUM, one after the other: 1 or 2 of [M, N].

    float32 operands take two passes: the weights' high half, then their remainder.
    """
    if stationary.dtype != np.float32:
        return [product(stationary, moving)]
    high, low = weight_halves(stationary)
    return [product(high, moving), product(low, moving)]


def add(a: F32, b: F32) -> F32:
    """One float32 addition: what PSUM does with a pass."""
    with np.errstate(all="ignore"):
        return a + b


def add_to(cells: F32, result: F32) -> None:
    """The same in place."""
    with np.errstate(all="ignore"):
        np.add(cells, result, out=cells)


# --- the ALU of the vector engines ----------------------------------------------------------------


def _truth(x: Array) -> F32:
    return x.astype(np.float32)


def _pick(keep_first: Array, a: Array, b: Array) -> Array:
    return np.where(keep_first, a, b)


# Two operands in float32. max and min return the second when either is NaN, as the x86 scalar
# instruction does; comparisons and logic give 1.0 and 0.0.
ALU: dict[str, Callable[[Array, Array], Array]] = {
    "bypass": lambda a, b: np.broadcast_arrays(a, b)[0],
    "add": np.add,
    "subtract": np.subtract,
    "mult": np.multiply,
    "divide": np.divide,
    "max": lambda a, b: _pick(a > b, a, b),
    "min": lambda a, b: _pick(a < b, a, b),
    "is_equal": lambda a, b: _truth(a == b),
    "not_equal": lambda a, b: _truth(a != b),
    "is_gt": lambda a, b: _truth(a > b),
    "is_ge": lambda a, b: _truth(a >= b),
    "is_lt": lambda a, b: _truth(a < b),
    "is_le": lambda a, b: _truth(a <= b),
    "logical_and": lambda a, b: _truth((a != 0) & (b != 0)),
    "logical_or": lambda a, b: _truth((a != 0) | (b != 0)),
    "logical_xor": lambda a, b: _truth((a != 0) ^ (b != 0)),
    "abs": lambda a, b: np.broadcast_arrays(np.abs(a), b)[0],
    "abs_diff": lambda a, b: np.abs(a - b),
    "abs_max": lambda a, b: _pick(np.abs(a) > np.abs(b), a, b),
    "abs_min": lambda a, b: _pick(np.abs(a) < np.abs(b), a, b),
    "pow": lambda a, b: np.power(a.astype(np.float64), b.astype(np.float64)),
    "mod": lambda a, b: np.mod(a, b),
    "rsqrt": lambda a, b: np.broadcast_arrays(1.0 / np.sqrt(a.astype(np.float64)), b)[0],
}


def _shift(by: Callable[..., Array]) -> Callable[[Array, Array], Array]:
    """A shift whose count may reach the width, where nothing is left."""

    def shifted(a: Array, b: Array) -> Array:
        count = np.minimum(b.astype(np.uint64), a.dtype.itemsize * 8 - 1).astype(a.dtype)
        gone = (b.astype(np.uint64) >= a.dtype.itemsize * 8) & (a.dtype.kind == "u")
        return np.where(gone, a.dtype.type(0), by(a, count))

    return shifted


def _logical_right(a: Array, b: Array) -> Array:
    plain = np.dtype(f"u{a.dtype.itemsize}")
    return _shift(np.right_shift)(a.view(plain), b.astype(plain)).view(a.dtype)


def _left(a: Array, b: Array) -> Array:
    plain = np.dtype(f"u{a.dtype.itemsize}")
    return _shift(np.left_shift)(a.view(plain), b.astype(plain)).view(a.dtype)


# Two operands of one integer type, bit by bit; no conversion on the way.
BITVEC: dict[str, Callable[[Array, Array], Array]] = {
    "bitwise_not": lambda a, b: np.broadcast_arrays(np.invert(a), b)[0],
    "bitwise_and": np.bitwise_and,
    "bitwise_or": np.bitwise_or,
    "bitwise_xor": np.bitwise_xor,
    "arith_shift_left": _left,
    "logical_shift_left": _left,
    "arith_shift_right": _shift(np.right_shift),
    "logical_shift_right": _logical_right,
}


def alu(op: str, a: Array, b: Array) -> F32:
    """`a op b` in float32, rounded once; `a` and `b` broadcast. `op` is a key of `ALU`."""
    with np.errstate(all="ignore"):
        return np.asarray(ALU[op](widen(a), widen(b)), np.float32)


def bitvec(op: str, a: Array, b: Array) -> Array:
    """`a op b` on the bits of one integer type. `op` is a key of `BITVEC`."""
    with np.errstate(all="ignore"):
        return BITVEC[op](a, b.astype(a.dtype))


# Two operands of 32-bit integers, as Pool's integer unit has them; sums and products wrap around.
INTEGER: dict[str, Callable[[Array, Array], Array]] = {
    "add": np.add,
    "subtract": np.subtract,
    "mult": np.multiply,
    "max": np.maximum,
    "min": np.minimum,
    "is_equal": np.equal,
    "not_equal": np.not_equal,
    "is_gt": np.greater,
    "is_ge": np.greater_equal,
    "is_lt": np.less,
    "is_le": np.less_equal,
}


def integer(op: str, a: Array, b: Array, dtype: str) -> Array:
    """`a op b` in the integers of `dtype`. `op` is a key of `INTEGER`."""
    with np.errstate(all="ignore"):
        return INTEGER[op](a.astype(np.int64), b.astype(np.int64)).astype(numpy_type(dtype))


_FOLDS: dict[str, Callable[[Array, tuple[int, ...]], Array]] = {
    "add": lambda x, axes: x.sum(axis=axes),
    "mult": lambda x, axes: x.prod(axis=axes),
    "max": lambda x, axes: x.max(axis=axes),
    "min": lambda x, axes: x.min(axis=axes),
}


def reduce(op: str, x: Array, axes: tuple[int, ...]) -> F32:
    """`x` folded over `axes` from its first element on; a sum or product in float64, rounded once.

    Simplified: the real units fold in an order of their own; one rounding is independent of it.
    """
    with np.errstate(all="ignore"):
        if op in _FOLDS:
            extreme = op in ("max", "min")
            found = _FOLDS[op](widen(x) if extreme else x.astype(np.float64), axes)
            if not (extreme and np.isnan(found).any()):
                return np.asarray(found, np.float32)
        flat = _folded(x, axes)
        out = widen(flat[..., 0])
        for i in range(1, flat.shape[-1]):
            out = alu(op, out, flat[..., i])
        return out


def _folded(x: Array, axes: tuple[int, ...]) -> Array:
    """`x` with `axes` moved to the end and made one."""
    kept = [i for i in range(x.ndim) if i not in axes]
    shape = tuple(x.shape[i] for i in kept)
    return x.transpose(*kept, *axes).reshape(*shape, -1)


# --- activation functions -------------------------------------------------------------------------


def _sigmoid(x: F64) -> F64:
    return np.where(x >= 0, 1 / (1 + np.exp(-x)), np.exp(x) / (1 + np.exp(x)))


def _softplus(x: F64) -> F64:
    return np.logaddexp(x, 0.0)


def _normal(x: F64) -> F64:
    """The standard normal distribution's function."""
    return 0.5 * (1 + erf(x / math.sqrt(2)))


def _d_silu(x: F64) -> F64:
    s = _sigmoid(x)
    return s * (1 + x * (1 - s))


def _d_gelu_sigmoid(x: F64) -> F64:
    s = _sigmoid(1.702 * x)
    return s + 1.702 * x * s * (1 - s)


def _d_gelu(x: F64) -> F64:
    return _normal(x) + x * np.exp(-x * x / 2) / math.sqrt(2 * math.pi)


def _gelu_tanh(x: F64) -> F64:
    return 0.5 * x * (1 + np.tanh(0.7978845608028654 * (x + 0.044715 * x**3)))


def _sin(x: F64) -> F64:
    """The tables end at ±π and nothing brings an argument back there: beyond, the last cubic goes
    on (hardware reference 12.3)."""
    beyond = np.abs(x) - math.pi
    return np.where(beyond > 0, np.sign(x) * (beyond**3 / 6 - beyond), np.sin(x))


def _slope(x: F64, alpha: float) -> F64:
    return np.where(x >= 0, x, alpha * x)


# By BIR's name, in float64, of the argument and the parametric immediate. Constants of the GELU
# family and the slope 0.01 of Lrelu as the vendor's simulator has them (hardware reference 12.3).
FUNCTIONS: dict[str, Callable[[F64, float], F64]] = {
    "Identity": lambda x, a: x,
    "Copy": lambda x, a: x,
    "Square": lambda x, a: x * x,
    "Relu": lambda x, a: np.where(x > 0, x, 0.0),
    "Lrelu": lambda x, a: _slope(x, a),
    "Prelu": lambda x, a: _slope(x, a),
    "Sigmoid": lambda x, a: _sigmoid(x),
    "Tanh": lambda x, a: np.tanh(x),
    "Exp": lambda x, a: np.exp(x),
    "Softplus": lambda x, a: _softplus(x),
    "Sqrt": lambda x, a: np.sqrt(x),
    "Rsqrt": lambda x, a: 1 / np.sqrt(x),
    "Ln": lambda x, a: np.log(x),
    "Erf": lambda x, a: erf(x),
    "Sin": lambda x, a: _sin(x),
    "Arctan": lambda x, a: np.arctan(x),
    "Sign": lambda x, a: np.sign(x),
    "Gelu": lambda x, a: x * _normal(x),
    "Mish": lambda x, a: x * np.tanh(_softplus(x)),
    "Gelu_apprx_tanh": lambda x, a: _gelu_tanh(x),
    "Gelu_apprx_sigmoid": lambda x, a: x * _sigmoid(1.702 * x),
    "Derivative_Gelu_apprx_sigmoid": lambda x, a: _d_gelu_sigmoid(x),
    "Derivative_Gelu": lambda x, a: _d_gelu(x),
    "Derivative_Erf": lambda x, a: 2 / math.sqrt(math.pi) * np.exp(-x * x),
    "Abs": lambda x, a: np.abs(x),
    "Reciprocal": lambda x, a: 1 / x,
    "Abs_reciprocal_sqrt": lambda x, a: 1 / np.sqrt(np.abs(x)),
    "Silu": lambda x, a: x * _sigmoid(x),
    "Derivative_silu": lambda x, a: _d_silu(x),
    "Is_finite": lambda x, a: np.isfinite(x).astype(np.float64),
}
_STRAIGHT = {"Relu": "max", "Abs": "abs"}  # the vector engines have the same function


def activation(
    func: str, x: Array, scale: Array | float = 1.0, bias: Array | float = 0.0, alpha: float = 0.01
) -> F32:
    """`func(scale * x + bias)`: the argument in float32, the function in float64, rounded once.

    The argument is a product and a sum, each rounded, exactly as the vector engines would do it, so
    that moving a computation between engines changes nothing. `func` is a key of `FUNCTIONS`.
    """
    if func == "Copy":
        return widen(x)  # no multiplier on its way: the sign of a zero stays
    with np.errstate(all="ignore"):
        arg = widen(x) * np.asarray(scale, np.float32) + np.asarray(bias, np.float32)
        if func == "Identity":
            return arg
        if func in _STRAIGHT:
            return alu(_STRAIGHT[func], arg, np.zeros((), np.float32))
        return FUNCTIONS[func](arg.astype(np.float64), alpha).astype(np.float32)
