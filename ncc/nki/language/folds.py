"""Reductions over free dimensions, and what is made of them: mean, variance, softmax, RMS norm."""

from __future__ import annotations

import math
from typing import Any

from ncc.nki.language.base import (
    NkiTensor,
    cast_to,
    column,
    dims,
    dtype_of,
    filled,
    float32,
    function,
    isa,
    items,
    new,
    spread,
    tile,
)
from ncc.nki.language.elementwise import at_once
from ncc.nki.trace import wrong_shape
from ncc.nki.views import whole_number

Axes = tuple[int, ...]


def axes_of(x: NkiTensor, axis: Any, name: str) -> Axes:
    """The free dimensions that are folded, ascending (NCC365)."""
    given = list(range(1, x.ndim)) if axis is None else items(axis) or [axis]
    found: list[int] = []
    for one in given:
        k = whole_number(one, f"nl.{name}: the axis")
        if not -x.ndim <= k < x.ndim:
            said = f"nl.{name} over axis {k} of {dims(x)}, which has {x.ndim} dimensions"
            raise wrong_shape("NCC365", said, f"an axis from 1 to {x.ndim - 1}")
        k %= x.ndim
        if k == 0:
            said = f"nl.{name} over axis 0 of {dims(x)}, its partitions"
            hint = "nisa.tensor_partition_reduce, nisa.nc_matmul with ones, or transpose first"
            raise wrong_shape("NCC365", said, hint)
        if k in found:
            said = f"nl.{name} was given axis {k} twice"
            raise wrong_shape("NCC365", said, "name each axis once")
        found.append(k)
    if not found:
        raise wrong_shape("NCC365", f"nl.{name} was given no axis", "an axis from 1 on")
    return tuple(sorted(found))


def kept(x: NkiTensor, axes: Axes) -> tuple[int, ...]:
    return tuple(n for k, n in enumerate(x.shape) if k not in axes)


def ones_for(x: NkiTensor, axes: Axes) -> tuple[int, ...]:
    return tuple(1 if k in axes else n for k, n in enumerate(x.shape))


def folded(x: NkiTensor, op: str, axes: Axes, dtype: Any, negate: bool = False) -> NkiTensor:
    """The fold with its dimensions kept as 1."""
    order = (*[k for k in range(x.ndim) if k not in axes], *axes)
    view = x if order == tuple(range(x.ndim)) else x.permute(order)
    made = new(kept(x, axes), dtype)
    trailing = tuple(range(x.ndim - len(axes), x.ndim))
    isa.tensor_reduce(made, op, view, trailing, negate=negate)
    return made.reshape(ones_for(x, axes))


def shaped(made: NkiTensor, x: NkiTensor, axes: Axes, keepdims: bool) -> NkiTensor:
    if keepdims:
        return made
    rest = kept(x, axes)
    return made.reshape(rest if len(rest) > 1 else (*rest, 1))


def _reduction(name: str, op: str) -> Any:
    @function(name, op)
    def run(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
        if not isinstance(x, NkiTensor):
            return _at_once(name, x, axis, keepdims)
        axes = axes_of(x, axis, name)
        return shaped(folded(x, op, axes, dtype or x.dtype), x, axes, keepdims)

    run.__doc__ = f"The {name} over free dimensions."
    return run


def _at_once(name: str, x: Any, axis: Any, keepdims: bool) -> Any:
    """As numpy: of an array; `nl.max(a, b)` of two numbers is the larger."""
    if name in ("max", "min") and isinstance(x, int | float) and axis is not None:
        return at_once(f"{name}imum", x, axis)
    import functools

    import numpy as np

    at_once("positive", x)
    return functools.partial(getattr(np, name), axis=axis, keepdims=keepdims)(x)


sum_ = _reduction("sum", "add")
max_ = _reduction("max", "maximum")
min_ = _reduction("min", "minimum")
prod = _reduction("prod", "multiply")


@function("all", "logical_and")
def all_(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """1 where no element is 0."""
    if not isinstance(x, NkiTensor):
        return _at_once("all", x, axis, keepdims)
    axes = axes_of(x, axis, "all")
    truth = new(x.shape, float32)
    isa.tensor_scalar(truth, x, "not_equal", 0.0)
    return shaped(folded(truth, "minimum", axes, dtype or x.dtype), x, axes, keepdims)


def _mean(x: NkiTensor, axes: Axes, dtype: Any) -> NkiTensor:
    total = folded(x, "add", axes, float32)
    made = new(total.shape, dtype)
    isa.tensor_scalar(made, total, "multiply", 1.0 / math.prod(x.shape[k] for k in axes))
    return made


@function("mean", "average")
def mean(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The mean over free dimensions."""
    if not isinstance(x, NkiTensor):
        return _at_once("mean", x, axis, keepdims)
    axes = axes_of(x, axis, "mean")
    return shaped(_mean(x, axes, dtype or x.dtype), x, axes, keepdims)


@function("average", "average")
def average(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The mean; as `op=` of nisa.tensor_partition_reduce that over the partitions."""
    return mean(x, axis, dtype, keepdims)


@function("var")
def var(x: Any, axis: Any = None, dtype: Any = None, keepdims: bool = False) -> Any:
    """The mean square distance from the mean; the folded dimensions are always dropped."""
    if not isinstance(x, NkiTensor):
        return _at_once("var", x, axis, False)
    axes = axes_of(x, axis, "var")
    away = _with(x, _mean(x, axes, float32), "subtract")
    square = new(x.shape, float32)
    isa.tensor_tensor(square, away, away, "multiply")
    return shaped(_mean(square, axes, dtype or x.dtype), x, axes, False)


def _with(x: NkiTensor, y: NkiTensor, op: str, dtype: Any = float32) -> NkiTensor:
    """`x op y` for a y whose dimensions of size 1 repeat."""
    made = new(x.shape, dtype)
    if column(y) and x.shape[0] == y.shape[0]:
        isa.tensor_scalar(made, x, op, y.reshape((y.shape[0], 1)))
    else:
        isa.tensor_tensor(made, x, spread(y, x.shape, op), op)
    return made


@function("softmax")
def softmax(x: Any, axis: Any = -1, dtype: Any = None, **older: Any) -> Any:
    """e^(x − max) divided by its sum, along free dimensions."""
    x = tile(x, "softmax")
    axes = axes_of(x, axis, "softmax")
    made = new(x.shape, dtype or x.dtype)
    if len(axes) == x.ndim - 1:  # one value a partition: bias and sum of one activation
        high = folded(x, "maximum", axes, float32, negate=True).reshape((x.shape[0], 1))
        total, power = new((x.shape[0], 1), float32), new(x.shape, float32)
        isa.activation_reduce(power, "exp", x, "add", total, bias=high)
    else:
        away = _with(x, folded(x, "maximum", axes, float32), "subtract")
        power = new(x.shape, float32)
        isa.activation(power, "exp", away)
        total = folded(power, "add", axes, float32)
    over = new(total.shape, float32)
    isa.reciprocal(over, total)
    if column(over):
        isa.tensor_scalar(made, power, "multiply", over.reshape((x.shape[0], 1)))
    else:
        isa.tensor_tensor(made, power, spread(over, x.shape, "softmax"), "multiply")
    return made


@function("rms_norm")
def rms_norm(
    x: Any,
    w: Any,
    axis: Any,
    n: Any,
    epsilon: float = 1e-6,
    dtype: Any = None,
    compute_dtype: Any = None,
) -> Any:
    """x / √(Σ x² / n + epsilon) · w. `w` has the shape of x, or dimensions of 1 that repeat."""
    x = tile(x, "rms_norm")
    axes = axes_of(x, axis, "rms_norm")
    work = float32 if compute_dtype is None else dtype_of(compute_dtype)
    square = new(x.shape, float32)
    isa.activation(square, "square", x)
    total = folded(square, "add", axes, float32)
    scale = new(total.shape, float32)
    isa.tensor_scalar(scale, total, "multiply", 1.0 / float(n), op1="add", operand1=float(epsilon))
    isa.activation(scale, "rsqrt", scale)
    even = _with(x, scale, "multiply", work)
    if isinstance(w, int | float):
        w = filled((x.shape[0], 1), float32, w)
    weight = tile(w, "rms_norm")
    made = new(x.shape, dtype or x.dtype)
    if column(weight) and weight.shape[0] == x.shape[0]:
        factor = cast_to(weight, float32).reshape((x.shape[0], 1))
        isa.tensor_scalar(made, even, "multiply", factor)
    else:
        isa.tensor_tensor(made, even, spread(weight, x.shape, "rms_norm"), "multiply")
    return made
