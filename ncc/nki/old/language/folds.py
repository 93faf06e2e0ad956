"""Reductions over free dimensions, and what is made of them: softmax and RMS norm."""

from __future__ import annotations

from typing import Any

from ncc.nki import isa
from ncc.nki.dtypes import bool_, dtype_of, float32
from ncc.nki.language import folds as today
from ncc.nki.language.base import host
from ncc.nki.old.masks import Box, folds_of, regions
from ncc.nki.old.results import (
    column,
    cut,
    fresh,
    from_start,
    function,
    is_column,
    joint,
    spread,
    tile,
)
from ncc.nki.old.tile import Tile, adopted
from ncc.nki.trace import wrong_shape

Axes = tuple[int, ...]


def axes_of(x: Tile, axis: Any, where: str) -> Axes:
    return today.axes_of(x, axis, where.removeprefix("nl."))


def rest_of(shape: tuple[int, ...], axes: Axes, keepdims: bool) -> tuple[int, ...]:
    """The shape of a fold; one value a partition is (P, 1)."""
    if keepdims:
        return tuple(1 if k in axes else n for k, n in enumerate(shape))
    left = tuple(n for k, n in enumerate(shape) if k not in axes)
    return left if len(left) > 1 else (*left, 1)


def trailing(x: Tile, axes: Axes) -> Tile:
    """The tile with the folded dimensions last."""
    order = (*[k for k in range(x.ndim) if k not in axes], *axes)
    return x if order == tuple(range(x.ndim)) else x.permute(order)


def one_box(mask: Any, x: Tile, where: str) -> Box | None:
    """What a mask leaves of the operand of a fold: one rectangle."""
    boxes = regions(mask, x.shape, where)
    if boxes is None:
        return None
    if not boxes:
        return tuple((0, 0) for _ in x.shape)
    if len(boxes) > 1:
        said = f"{where}: the mask leaves {len(boxes)} rectangles of {x.shape}, a fold takes one"
        raise wrong_shape("NCC373", said, "fill the rest with nisa.affine_select first")
    return from_start(boxes[0])


def folded(
    where: str,
    op: str,
    data: Tile,
    axes: Axes,
    dtype: Any,
    mask: Any = None,
    keepdims: bool = False,
    negate: bool = False,
) -> Tile:
    """The fold of what the mask leaves."""
    made = fresh(rest_of(data.shape, axes, keepdims), dtype)
    groups = folds_of(joint(mask, (data,)), data.shape, axes, where)
    if groups is None:
        fold_into(made, op, data, axes, negate)
        return made
    made.valid = []
    for _, boxes in groups:
        kept = kept_box(boxes[0], axes, keepdims)
        made.valid.append(kept)
        if len(boxes) == 1:
            box = from_start(boxes[0])
            target = made.cut(kept_box(box, axes, keepdims))
            fold_into(target, op, cut(data, box, data.shape, where), axes, negate)
        else:
            _several(made.cut(kept), op, [data.cut(b) for b in boxes], axes, negate)
    return made


def kept_box(box: Box, axes: Axes, keepdims: bool) -> Box:
    """The rectangle of a fold's result."""
    found = [
        (0, 1) if k in axes else span for k, span in enumerate(box) if keepdims or k not in axes
    ]
    return tuple(found if len(found) > 1 else [*found, (0, 1)])


def fold_into(to: Tile, op: str, source: Tile, axes: Axes, negate: bool = False) -> None:
    last = tuple(range(source.ndim - len(axes), source.ndim))
    isa.tensor_reduce(to, op, trailing(source, axes), last, negate=negate)


def _several(to: Tile, op: str, sources: list[Tile], axes: Axes, negate: bool) -> None:
    """The fold of several rectangles, one after the other."""
    total: Tile | None = None
    for source in sources:
        part = fresh(to.shape, float32)
        fold_into(part, op, source, axes)
        if total is not None:
            isa.tensor_tensor(part, total, part, op)
        total = part
    if total is not None:
        isa.tensor_scalar(to, total, "multiply", -1.0 if negate else 1.0)


def reduction(name: str, op: str, default: Any = None) -> Any:
    @function(name, op)
    def run(
        x: Any,
        axis: Any = None,
        *,
        dtype: Any = default,
        mask: Any = None,
        keepdims: bool = False,
        **ignored: Any,
    ) -> Any:
        if host(x) or isinstance(x, list):
            import numpy as np

            if name in ("max", "min") and isinstance(axis, int | float) and host(x):
                return getattr(np, f"{name}imum")(x, axis)
            return getattr(np, name)(x, axis=axis)
        where = f"nl.{name}"
        data = tile(x, where)
        axes = axes_of(data, axis, where)
        return folded(where, op, data, axes, dtype or data.dtype, mask, keepdims)

    run.__doc__ = f"The {name} over free dimensions."
    return run


sum_ = reduction("sum", "add")
max_ = reduction("max", "maximum")
min_ = reduction("min", "minimum")
prod = reduction("prod", "multiply")


@function("all", "logical_and")
def all_(x: Any, axis: Any = None, *, dtype: Any = bool_, mask: Any = None, **ignored: Any) -> Any:
    """1 where no element is 0."""
    from ncc.nki.old.language.elementwise import combined

    data = tile(x, "nl.all")
    axes = axes_of(data, axis, "nl.all")
    ones = combined("not_equal", data, 0, float32, mask)
    return folded("nl.all", "minimum", ones, axes, dtype, mask)


def count_of(data: Tile, axes: Axes, mask: Any, where: str) -> int:
    box = one_box(mask, data, where) or tuple((0, n) for n in data.shape)
    n = 1
    for k in axes:
        n *= box[k][1] - box[k][0]
    return n


def mean_of(data: Tile, axes: Axes, dtype: Any, mask: Any, keepdims: bool, where: str) -> Tile:
    total = folded(where, "add", data, axes, float32, mask, keepdims)
    made = fresh(total.shape, dtype)
    made.valid = total.valid
    count = count_of(data, axes, mask, where)
    for box in [None] if total.valid is None else total.valid:
        source, target = (total, made) if box is None else (total.cut(box), made.cut(box))
        isa.tensor_scalar(target, source, "multiply", 1.0 / count)
    return made


@function("mean", "average")
def mean(
    x: Any,
    axis: Any = None,
    *,
    dtype: Any = None,
    mask: Any = None,
    keepdims: bool = False,
    **ignored: Any,
) -> Any:
    """The sum over free dimensions, divided by their count."""
    data = tile(x, "nl.mean")
    kind = dtype or (data.dtype if data.dtype.is_float else float32)
    axes = axes_of(data, axis, "nl.mean")
    return mean_of(data, axes, kind, mask, keepdims, "nl.mean")


@function("var")
def var(
    x: Any,
    axis: Any = None,
    *,
    dtype: Any = None,
    mask: Any = None,
    keepdims: bool = False,
    **ignored: Any,
) -> Any:
    """The mean square distance from the mean."""
    from ncc.nki.old.language.elementwise import combined

    data = tile(x, "nl.var")
    axes = axes_of(data, axis, "nl.var")
    middle = mean_of(data, axes, float32, mask, True, "nl.var")
    away = combined("subtract", data, middle, float32, mask)
    square = combined("multiply", away, away, float32, mask)
    kind = dtype or (data.dtype if data.dtype.is_float else float32)
    return mean_of(square, axes, kind, mask, keepdims, "nl.var")


# --- composites -----------------------------------------------------------------------------------


@function("softmax")
def softmax(
    x: Any,
    axis: Any = -1,
    *,
    dtype: Any = None,
    compute_dtype: Any = None,
    mask: Any = None,
    **ignored: Any,
) -> Any:
    """e^(x − max) divided by its sum, along free dimensions."""
    from ncc.nki.old.language.elementwise import FUNCTIONS, combined

    where = "nl.softmax"
    data = tile(x, where)
    axes = axes_of(data, axis, where)
    high = folded(where, "maximum", data, axes, float32, mask, True)
    away = combined("subtract", data, high, float32, mask)
    power = FUNCTIONS["exp"](away, dtype=float32, mask=mask)
    total = folded(where, "add", power, axes, float32, mask, True)
    over = FUNCTIONS["reciprocal"](total)
    return combined("multiply", power, over, dtype or compute_dtype or data.dtype, mask)


@function("rms_norm")
def rms_norm(
    x: Any,
    w: Any,
    axis: Any,
    n: Any,
    epsilon: float = 1e-6,
    *,
    dtype: Any = None,
    compute_dtype: Any = None,
    mask: Any = None,
    **ignored: Any,
) -> Any:
    """x / √(Σ x² / n + epsilon) · w."""
    from ncc.nki.old.language.elementwise import FUNCTIONS, combined

    where = "nl.rms_norm"
    data = tile(x, where)
    axes = axes_of(data, axis, where)
    square = FUNCTIONS["square"](data, dtype=float32, mask=mask)
    total = folded(where, "add", square, axes, float32, mask, True)
    scale = fresh(total.shape, float32)
    isa.tensor_scalar(scale, total, "multiply", 1.0 / float(n), op1="add", operand1=float(epsilon))
    isa.activation(scale, "rsqrt", scale)
    even = combined("multiply", data, scale, float32, mask)
    kind = dtype_of(dtype or compute_dtype or data.dtype)
    return combined("multiply", even, w, kind, mask)


__all__ = ["adopted", "column", "is_column", "spread"]
