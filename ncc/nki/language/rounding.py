"""`floor`, `ceil`, `trunc`, and the periodic functions: sequences of instructions.

The machine has no rounding instruction but every write: a float written into an int32 tile is
rounded to the nearest integer. And its sine is right only from −π to π.
"""

from __future__ import annotations

from typing import Any

from ncc.nki.dtypes import int32
from ncc.nki.language.base import (
    NkiTensor,
    cast_to,
    float32,
    function,
    is_float,
    isa,
    new,
    uint8,
)
from ncc.nki.language.elementwise import FUNCTIONS, at_once

WHOLE = float(1 << 23)  # every float32 from here on is a whole number

# π in parts whose products with a whole number below 2^16 are exact in float32, and the rest
PI_PARTS = (3.140625, 0.000965118408203125, 2.5331974029541016e-06, 1.984187258941006e-09)
OVER_PI = 0.3183098861837907


def _rounded(x: NkiTensor) -> NkiTensor:
    """The nearest whole number, in float32."""
    whole = new(x.shape, int32)
    isa.tensor_copy(whole, x)
    return cast_to(whole, float32)


def _stepped(name: str, x: Any, dtype: Any, step: str, by: str) -> Any:
    """The nearest whole number, one further where it lies on the wrong side of x; x itself where
    it is whole anyway (or no number)."""
    if not isinstance(x, NkiTensor):
        return at_once(name, x)
    made = new(x.shape, dtype or x.dtype)
    if not is_float(x.dtype):
        isa.tensor_copy(made, x)
        return made
    near = _rounded(x)
    wrong = new(x.shape, float32)
    isa.tensor_tensor(wrong, near, x, step)
    isa.tensor_tensor(near, near, wrong, by)
    size = new(x.shape, float32)
    isa.activation(size, "abs", x)
    return _chosen(made, x, near, size)


def _chosen(made: NkiTensor, x: NkiTensor, near: NkiTensor, size: NkiTensor) -> NkiTensor:
    """`near` where `size` is below 2^23, else x."""
    small = new(x.shape, uint8)
    isa.tensor_scalar(small, size, "less", WHOLE)
    kept = new(x.shape, float32)
    isa.tensor_copy(kept, x)
    isa.tensor_copy_predicated(kept, near, small)
    isa.tensor_copy(made, kept)
    return made


@function("floor")
def floor(x: Any, dtype: Any = None) -> Any:
    """The largest whole number that is not above x."""
    return _stepped("floor", x, dtype, "greater", "subtract")


@function("ceil")
def ceil(x: Any, dtype: Any = None) -> Any:
    """The smallest whole number that is not below x."""
    return _stepped("ceil", x, dtype, "less", "add")


@function("trunc")
def trunc(x: Any, dtype: Any = None) -> Any:
    """x without its fraction: the floor of its magnitude, with its sign."""
    if not isinstance(x, NkiTensor):
        return at_once("trunc", x)
    made = new(x.shape, dtype or x.dtype)
    if not is_float(x.dtype):
        isa.tensor_copy(made, x)
        return made
    size = FUNCTIONS["abs"](x, float32)
    near = _rounded(size)
    wrong = new(x.shape, float32)
    isa.tensor_tensor(wrong, near, size, "greater")
    isa.tensor_tensor(near, near, wrong, "subtract")
    isa.tensor_tensor(near, near, FUNCTIONS["sign"](x, float32), "multiply")
    return _chosen(made, x, near, size)


# --- periodic functions ---------------------------------------------------------------------------


def _wave(x: NkiTensor, half: float) -> NkiTensor:
    """sin x (`half` 0) or cos x (`half` 0.5) in float32.

    With k the whole number nearest x/π + half, the rest r = x − (k − half)·π lies within ±π/2, and
    the result is sin r, with the other sign where k is odd.
    """
    k = new(x.shape, int32)
    isa.tensor_scalar(k, x, "multiply", OVER_PI, op1="add", operand1=half)
    turns = new(x.shape, float32)
    isa.tensor_scalar(turns, k, "subtract", half)
    rest = x
    for part in PI_PARTS:
        less = new(x.shape, float32)
        isa.scalar_tensor_tensor(less, turns, "multiply", -part, "add", rest)
        rest = less
    odd = new(x.shape, int32)
    isa.tensor_scalar(odd, k, "bitwise_and", 1)
    sign = new(x.shape, float32)
    isa.tensor_scalar(sign, odd, "multiply", -2.0, op1="add", operand1=1.0)
    wave = new(x.shape, float32)
    isa.activation(wave, "sin", rest)
    isa.tensor_tensor(wave, wave, sign, "multiply")
    return wave


@function("sin", "sin")
def sin(x: Any, dtype: Any = None) -> Any:
    """The sine of any x; as `op=` of an instruction it is right from −π to π."""
    if not isinstance(x, NkiTensor):
        return at_once("sin", x)
    return cast_to(_wave(x, 0.0), dtype or x.dtype)


@function("cos", "cos")
def cos(x: Any, dtype: Any = None) -> Any:
    """The cosine of any x."""
    if not isinstance(x, NkiTensor):
        return at_once("cos", x)
    return cast_to(_wave(x, 0.5), dtype or x.dtype)


@function("tan", "tan")
def tan(x: Any, dtype: Any = None) -> Any:
    """sin x / cos x."""
    if not isinstance(x, NkiTensor):
        return at_once("tan", x)
    over = new(x.shape, float32)
    isa.reciprocal(over, _wave(x, 0.5))
    made = new(x.shape, dtype or x.dtype)
    isa.tensor_tensor(made, _wave(x, 0.0), over, "multiply")
    return made
