"""Selections, index tiles, statistics and searches of `neuronxcc.nki.isa`."""

from __future__ import annotations

from typing import Any

from ncc.nki import isa
from ncc.nki.dtypes import dtype_of, int32, uint8, uint32
from ncc.nki.isa import constants as c
from ncc.nki.old.index import Index, Mask
from ncc.nki.old.isa.computing import vector_or_number
from ncc.nki.old.language.folds import one_box
from ncc.nki.old.masks import aligned, holds, regions
from ncc.nki.old.results import (
    cast_to,
    column,
    cut,
    fresh,
    from_start,
    function,
    in_sbuf,
    into,
    tile,
    written,
)
from ncc.nki.old.tile import Tile
from ncc.nki.trace import wrong_shape, wrong_type

FP32_MIN = -3.4028234663852886e38


def pattern(term: Index, box: Any = None) -> tuple[list[list[int]], int, int]:
    """Pattern of the free dimensions, channel multiplier and offset of an affine expression."""
    spans = box or tuple((0, n) for n in term.shape)
    offset = term.offset + sum(a * s for (a, _), s in zip(spans, term.steps, strict=True))
    pairs = [[s, b - a] for (a, b), s in zip(spans[1:], term.steps[1:], strict=True)]
    kept: list[list[int]] = []
    for step, n in pairs:
        if n == 1:
            continue
        if kept and kept[-1][0] == step * n:
            kept[-1] = [step, kept[-1][1] * n]
        else:
            kept.append([step, n])
    return kept or [[0, 1]], term.steps[0] if term.steps else 0, offset


@function("iota")
def iota(expr: Any, dtype: Any = int32, *, mask: Any = None, **ignored: Any) -> Any:
    """A tile with the values of an index expression."""
    if not isinstance(expr, Index):
        said = f"iota takes an expression of nl.arange, was given {expr!r:.40}"
        raise wrong_type("NCC371", said, "nisa.iota(nl.arange(n)[None, :], dtype=...)")
    if expr.ndim < 2:
        said = "iota takes an expression of two dimensions or more"
        raise wrong_shape("NCC370", said, "nl.arange(n)[None, :] or nl.arange(n)[:, None]")
    made = fresh(expr.shape, dtype)
    boxes = regions(mask, expr.shape, "iota")
    if boxes is not None:
        made.valid = boxes
    for box in [None] if boxes is None else [from_start(b) for b in boxes]:
        pairs, multiplier, offset = pattern(expr, box)
        target = made if box is None else made.cut(box)
        isa.iota(target, pairs, offset=offset, channel_multiplier=multiplier)
    return made


@function("affine_select")
def affine_select(
    pred: Any,
    on_true_tile: Any,
    on_false_value: Any,
    *,
    mask: Any = None,
    dtype: Any = None,
    **ignored: Any,
) -> Any:
    """on_true_tile where a comparison of index expressions holds, else a number."""
    where = "affine_select"
    source = tile(on_true_tile, where, "on_true_tile")
    kind = dtype_of(dtype or source.dtype)
    made = fresh(source.shape, kind)
    boxes = regions(mask, source.shape, where)
    if boxes is not None:
        made.valid = boxes
    for box in [None] if boxes is None else [from_start(b) for b in boxes]:
        target, one = made, source
        if box is not None:
            target, one = made.cut(box), cut(source, box, source.shape, where)
        _selected(target, in_sbuf(one), pred, on_false_value, source.shape, box)
    return made


def _selected(to: Tile, source: Tile, pred: Any, other: Any, shape: Any, box: Any) -> None:
    if not isinstance(pred, Mask):
        if hasattr(pred, "storage"):
            said = "affine_select takes a comparison of index expressions, was given a tile"
            raise wrong_type("NCC372", said, "nl.where chooses by data")
        if bool(pred):
            isa.tensor_copy(to, source)
        else:
            isa.memset(to, other)
        return
    for term, op in pred.terms:
        one = aligned(term, shape, "affine_select")
        pairs, multiplier, offset = pattern(one, box)
        if not any(one.steps):
            if holds(one.offset, op):
                isa.tensor_copy(to, source)
            else:
                isa.memset(to, other)
        else:
            isa.affine_select(to, pairs, multiplier, source, other, cmp_op=op, offset=offset)
        source = to


@function("range_select")
def range_select(
    *,
    on_true_tile: Any,
    comp_op0: Any,
    comp_op1: Any,
    bound0: Any,
    bound1: Any,
    reduce_cmd: Any = c.reduce_cmd.idle,
    reduce_res: Any = None,
    reduce_op: Any = "maximum",
    range_start: Any = 0,
    on_false_value: Any = FP32_MIN,
    mask: Any = None,
    dtype: Any = None,
    **ignored: Any,
) -> Any:
    """on_true_tile where the free index is inside both bounds, else the least float32."""
    where = "range_select"
    source = tile(on_true_tile, where, "on_true_tile")
    bounds = [column(tile(b, where, "a bound")) for b in (bound0, bound1)]
    result = None if reduce_res is None else column(tile(reduce_res, where, "reduce_res"))

    def write(dst: Tile, one: Tile, low: Tile, high: Tile, total: Any) -> None:
        isa.range_select(
            dst,
            one,
            comp_op0,
            comp_op1,
            low,
            high,
            reduce_cmd=reduce_cmd,
            reduce_res=total,
            reduce_op=reduce_op,
            range_start=range_start,
            on_false_value=on_false_value,
        )

    operands = (source, *bounds, result)
    return written(where, source.shape, dtype or source.dtype, mask, write, operands)


@function("select_reduce")
def select_reduce(
    *,
    dst: Any,
    predicate: Any,
    on_true: Any,
    on_false: Any,
    reduce_res: Any = None,
    reduce_cmd: Any = c.reduce_cmd.idle,
    reduce_op: Any = "maximum",
    reverse_pred: bool = False,
    mask: Any = None,
    dtype: Any = None,
    **ignored: Any,
) -> None:
    """dst = on_true where the predicate is not 0, else on_false."""
    where = "select_reduce"
    to = tile(dst, where, "dst")
    result = None if reduce_res is None else column(tile(reduce_res, where, "reduce_res"))
    chosen, data = tile(predicate, where, "predicate"), tile(on_true, where, "on_true")
    if chosen.dtype.size == 4:
        chosen = cast_to(chosen, uint8)
    other = vector_or_number(on_false, where, "on_false")

    def write(target: Tile, test: Tile, one: Tile, false: Any, total: Any) -> None:
        isa.select_reduce(
            target,
            test,
            one,
            false,
            reduce_res=total,
            reduce_cmd=reduce_cmd,
            reduce_op=reduce_op,
            reverse_pred=reverse_pred,
        )

    into(where, to, mask, write, (chosen, data, other, result))


# --- statistics and searches ----------------------------------------------------------------------


def _shortened(where: str, data: Any, mask: Any) -> tuple[Tile, Any]:
    """The operand and, under a mask, the rectangle of it that counts."""
    source = tile(data, where, "data")
    box = one_box(mask, source, where)
    return source, box


def _rows(made: Tile, box: Any) -> Tile:
    if box is None:
        return made
    part = (box[0], *((0, n) for n in made.shape[1:]))
    made.valid = [part]
    return made.cut(part)


@function("bn_stats")
def bn_stats(data: Any, *, mask: Any = None, dtype: Any = None, **ignored: Any) -> Any:
    """(P, 6): count, mean, variance × count of the even elements, then of the odd ones."""
    source, box = _shortened("bn_stats", data, mask)
    made = fresh((source.shape[0], 6), dtype or source.dtype)
    isa.bn_stats(_rows(made, box), source if box is None else source.cut(box))
    return made


@function("bn_aggr")
def bn_aggr(data: Any, *, mask: Any = None, dtype: Any = None, **ignored: Any) -> Any:
    """(P, 2): mean and variance of groups of triples."""
    source, box = _shortened("bn_aggr", data, mask)
    made = fresh((source.shape[0], 2), dtype or source.dtype)
    isa.bn_aggr(_rows(made, box), source if box is None else source.cut(box))
    return made


@function("max8")
def max8(*args: Any, src: Any = None, mask: Any = None, dtype: Any = None, **ignored: Any) -> Any:
    """(P, 8): the eight largest elements, descending."""
    source, box = _shortened("max8", args[0] if args else src, mask)
    made = fresh((source.shape[0], 8), dtype or source.dtype)
    isa.max8(_rows(made, box), source if box is None else source.cut(box))
    return made


@function("nc_find_index8")
def nc_find_index8(
    *, data: Any, vals: Any, mask: Any = None, dtype: Any = None, **ignored: Any
) -> Any:
    """(P, 8): the first position of each of the eight values."""
    source, box = _shortened("nc_find_index8", data, mask)
    sought = tile(vals, "nc_find_index8", "vals")
    made = fresh((source.shape[0], 8), dtype or uint32)
    if box is not None:
        sought = sought.cut((box[0], (0, 8)))
    isa.nc_find_index8(_rows(made, box), source if box is None else source.cut(box), sought)
    return made


@function("nc_match_replace8")
def nc_match_replace8(
    *,
    data: Any,
    vals: Any,
    imm: Any,
    dst_idx: Any = None,
    mask: Any = None,
    dtype: Any = None,
    **ignored: Any,
) -> Any:
    """data with the first match of each of the eight values replaced by imm."""
    where = "nc_match_replace8"
    source, sought = tile(data, where, "data"), tile(vals, where, "vals")
    places = None if dst_idx is None else tile(dst_idx, where, "dst_idx")

    def write(dst: Tile, one: Tile) -> None:
        isa.nc_match_replace8(dst, one, sought, imm, dst_idx=places)

    return written(where, source.shape, dtype or source.dtype, mask, write, (source,))


@function("sequence_bounds")
def sequence_bounds(*, segment_ids: Any, dtype: Any = None, **ignored: Any) -> Any:
    """(1, 2, n): first index and end of the segment that each of n elements belongs to."""
    source = tile(segment_ids, "sequence_bounds", "segment_ids")
    n = source.size // source.shape[0]
    made = fresh((source.shape[0], 2, n), dtype or source.dtype)
    isa.sequence_bounds(made, in_sbuf(source))
    return made
