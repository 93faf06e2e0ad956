"""Arithmetic, functions and folds of `neuronxcc.nki.isa`: each call returns a new tile."""

from __future__ import annotations

from typing import Any

from ncc.nki import isa
from ncc.nki.dtypes import dtype_of, float32
from ncc.nki.isa import constants as c
from ncc.nki.isa.operands import generation
from ncc.nki.old.folding import axes_given
from ncc.nki.old.isa.moving import engine_of
from ncc.nki.old.language.folds import folded
from ncc.nki.old.promote import result_type
from ncc.nki.old.results import (
    cast_to,
    column,
    filled,
    fresh,
    function,
    in_sbuf,
    is_column,
    is_tile,
    spread,
    tile,
    written,
)
from ncc.nki.old.tile import Tile
from ncc.nki.operators import BITVEC, UNARY, spelled
from ncc.nki.trace import current


def vector_or_number(x: Any, where: str, role: str) -> Any:
    """A column (P, 1) or a number."""
    if not is_tile(x):
        return x
    found = tile(x, where, role)
    return column(found) if is_column(found) else found


def _bias(value: Any, data: Tile, where: str) -> Any:
    """trn1 takes a bias only as a column."""
    if is_tile(value) or value is None or not value:
        return vector_or_number(value, where, "bias")
    if generation(current(where)) < 3:
        return filled((data.shape[0], 1), float32, float(value))
    return float(value)


@function("activation")
def activation(
    op: Any,
    data: Any,
    *,
    bias: Any = None,
    scale: Any = 1.0,
    reduce_op: Any = None,
    reduce_res: Any = None,
    reduce_cmd: Any = c.reduce_cmd.idle,
    mask: Any = None,
    dtype: Any = None,
    **ignored: Any,
) -> Any:
    """op(data × scale + bias)."""
    where = "activation"
    source = tile(data, where, "data")
    added = _bias(bias, source, where)
    factor = vector_or_number(scale, where, "scale")
    result = None if reduce_res is None else column(tile(reduce_res, where, "reduce_res"))

    def write(dst: Tile, one: Tile, plus: Any, times: Any, total: Any) -> None:
        isa.activation(
            dst,
            op,
            one,
            bias=plus,
            scale=times,
            reduce_op=reduce_op,
            reduce_res=total,
            reduce_cmd=reduce_cmd,
        )

    operands, kind = (source, added, factor, result), dtype or source.dtype
    once = result is not None
    return written(where, source.shape, kind, mask, write, operands, once=once)


@function("activation_reduce")
def activation_reduce(
    op: Any,
    data: Any,
    *,
    reduce_op: Any,
    reduce_res: Any,
    bias: Any = None,
    scale: Any = 1.0,
    mask: Any = None,
    dtype: Any = None,
    **ignored: Any,
) -> Any:
    """`activation`, and the sum of its values in `reduce_res`."""
    cmd = c.reduce_cmd.reset_reduce
    return activation(
        op,
        data,
        bias=bias,
        scale=scale,
        reduce_op=reduce_op,
        reduce_res=reduce_res,
        reduce_cmd=cmd,
        mask=mask,
        dtype=dtype,
    )


@function("tensor_tensor")
def tensor_tensor(
    data1: Any,
    data2: Any,
    op: Any,
    *,
    dtype: Any = None,
    mask: Any = None,
    engine: Any = 0,
    **ignored: Any,
) -> Any:
    """data1 op data2."""
    where = "tensor_tensor"
    one, two = tile(data1, where, "data1"), tile(data2, where, "data2")
    kind = result_type([one, two], dtype)
    if one.size != two.size or one.shape[0] != two.shape[0]:
        from ncc.nki.old.results import joined

        shape = joined(where, one.shape, two.shape)
        one, two = spread(one, shape, where), spread(two, shape, where)
    word = spelled(op)
    if word == "power":
        one, two = in_sbuf(one), in_sbuf(two)
    if word in BITVEC and not kind.is_float:
        one, two = cast_to(one, kind), cast_to(two, kind)

    def write(dst: Tile, a: Tile, b: Tile) -> None:
        if word in ("divide", "mod"):
            from ncc.nki.old.language.elementwise import tiles_into

            tiles_into(word, dst, a, b)
        else:
            isa.tensor_tensor(dst, a, b, op, engine=engine_of(engine))

    return written(where, one.shape, kind, mask, write, (one, two))


@function("tensor_scalar")
def tensor_scalar(
    data: Any,
    op0: Any,
    operand0: Any = None,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Any = None,
    reverse1: bool = False,
    *,
    dtype: Any = None,
    mask: Any = None,
    engine: Any = 0,
    **ignored: Any,
) -> Any:
    """(data op0 operand0) op1 operand1."""
    where = "tensor_scalar"
    source = tile(data, where, "data")
    left = vector_or_number(operand0, where, "operand0")
    right = vector_or_number(operand1, where, "operand1")

    def write(dst: Tile, one: Tile, first: Any, second: Any) -> None:
        isa.tensor_scalar(
            dst, one, op0, first, reverse0, op1, second, reverse1, engine=engine_of(engine)
        )

    kind = dtype or source.dtype
    return written(where, source.shape, kind, mask, write, (source, left, right))


@function("tensor_scalar_reduce")
def tensor_scalar_reduce(
    *,
    data: Any,
    op0: Any,
    operand0: Any,
    reduce_op: Any,
    reduce_res: Any,
    reverse0: bool = False,
    dtype: Any = None,
    mask: Any = None,
    **ignored: Any,
) -> Any:
    """data op0 operand0, and the fold of that in `reduce_res`."""
    where = "tensor_scalar_reduce"
    source = tile(data, where, "data")
    operand = vector_or_number(operand0, where, "operand0")
    result = column(tile(reduce_res, where, "reduce_res"))

    single = spelled(op0) in UNARY

    def write(dst: Tile, one: Tile, value: Any, total: Tile) -> None:
        if single:
            wide = fresh(one.shape, float32)
            isa.tensor_scalar(wide, one, op0, None)
            isa.tensor_reduce(total, reduce_op, wide, tuple(range(1, wide.ndim)))
            isa.tensor_copy(dst, wide)
        else:
            isa.tensor_scalar_reduce(dst, one, op0, value, reduce_op, total, reverse0)

    operands, kind = (source, operand, result), dtype or source.dtype
    return written(where, source.shape, kind, mask, write, operands, once=True)


@function("scalar_tensor_tensor")
def scalar_tensor_tensor(
    *,
    data: Any,
    op0: Any,
    operand0: Any,
    op1: Any,
    operand1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    dtype: Any = None,
    mask: Any = None,
    **ignored: Any,
) -> Any:
    """(data op0 operand0) op1 operand1, a tile last."""
    where = "scalar_tensor_tensor"
    source = tile(data, where, "data")
    left = vector_or_number(operand0, where, "operand0")
    right = tile(operand1, where, "operand1")

    def write(dst: Tile, one: Tile, value: Any, two: Tile) -> None:
        isa.scalar_tensor_tensor(dst, one, op0, value, op1, two, reverse0, reverse1)

    kind = dtype or source.dtype
    return written(where, source.shape, kind, mask, write, (source, left, right))


@function("tensor_tensor_scan")
def tensor_tensor_scan(
    data0: Any,
    data1: Any,
    initial: Any,
    op0: Any,
    op1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    *,
    dtype: Any = None,
    mask: Any = None,
    **ignored: Any,
) -> Any:
    """r = (data0[i] op0 r) op1 data1[i], element after element from `initial`."""
    where = "tensor_tensor_scan"
    one, two = tile(data0, where, "data0"), tile(data1, where, "data1")
    start = vector_or_number(initial, where, "initial")

    def write(dst: Tile, a: Tile, b: Tile, first: Any) -> None:
        isa.tensor_tensor_scan(dst, a, b, first, op0, op1, reverse0, reverse1)

    kind = result_type([one, two], dtype)
    return written(where, one.shape, kind, mask, write, (one, two, start))


@function("tensor_reduce")
def tensor_reduce(
    op: Any,
    data: Any,
    axis: Any,
    *,
    mask: Any = None,
    dtype: Any = None,
    negate: bool = False,
    keepdims: bool = False,
    **ignored: Any,
) -> Any:
    """The fold of data over free dimensions."""
    where = "tensor_reduce"
    source = tile(data, where, "data")
    axes = axes_given(source, axis, where)
    return folded(where, op, source, axes, dtype or source.dtype, mask, keepdims, negate)


@function("tensor_partition_reduce")
def tensor_partition_reduce(
    op: Any, data: Any, *, mask: Any = None, dtype: Any = None, **ignored: Any
) -> Any:
    """The fold of data over its partitions: one partition."""
    where = "tensor_partition_reduce"
    source = in_sbuf(tile(data, where, "data"))
    from ncc.nki.old.language.folds import one_box

    box = one_box(mask, source, where)
    kind = dtype_of(dtype or source.dtype)
    made = fresh((1, *source.shape[1:]), kind)
    target = made
    if box is not None:
        target = made.cut(((0, 1), *box[1:]))
        source, made.valid = source.cut(box), [((0, 1), *box[1:])]
    isa.tensor_partition_reduce(target, op, source)
    return made


@function("reciprocal")
def reciprocal(
    data: Any, *, dtype: Any = None, mask: Any = None, engine: Any = 0, **ignored: Any
) -> Any:
    """1/data."""
    source = tile(data, "reciprocal", "data")
    scalar = str(getattr(engine, "name", engine)) == "scalar"

    def write(dst: Tile, one: Tile) -> None:
        if scalar:
            isa.activation(dst, "reciprocal", one)
        else:
            isa.reciprocal(dst, one)

    return written("reciprocal", source.shape, dtype or source.dtype, mask, write, (source,))


@function("dropout")
def dropout(data: Any, prob: Any, *, mask: Any = None, dtype: Any = None, **ignored: Any) -> Any:
    """data, with each element 0 with probability prob."""
    source = tile(data, "dropout", "data")
    rate = vector_or_number(prob, "dropout", "prob")
    if isinstance(rate, Tile) and rate.shape[0] == 1 and source.shape[0] > 1:
        rate = spread(rate, (source.shape[0], 1), "dropout")

    def write(dst: Tile, one: Tile, value: Any) -> None:
        isa.dropout(dst, one, value)

    made = written("dropout", source.shape, source.dtype, mask, write, (source, rate))
    if dtype is None or dtype_of(dtype) == made.dtype:
        return made
    return written("dropout", made.shape, dtype, mask, isa.tensor_copy, (made,))
