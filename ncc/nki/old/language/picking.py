"""Choosing between values: `nl.where`, gathers, predicates."""

from __future__ import annotations

from typing import Any

from ncc.nki import isa
from ncc.nki.dtypes import dtype_of, float32, uint8, uint32
from ncc.nki.language.base import host
from ncc.nki.language.tiles import PREDICATES
from ncc.nki.old.index import Mask
from ncc.nki.old.promote import result_type
from ncc.nki.old.results import (
    cast_to,
    filled,
    fresh,
    function,
    in_sbuf,
    is_tile,
    joined,
    spread,
    tile,
    written,
)
from ncc.nki.old.tile import Tile


def predicate_of(mask: Mask) -> Tile:
    """A tile of ones where a comparison of index tensors holds, of zeros elsewhere."""
    from ncc.nki.old.isa import affine_select

    ones = filled(mask.shape, float32, 1.0)
    return cast_to(affine_select(mask, ones, 0.0), uint8)


@function("where")
def where(
    condition: Any, x: Any, y: Any, *, dtype: Any = None, mask: Any = None, **ignored: Any
) -> Any:
    """x where the condition is not 0, else y."""
    name = "nl.where"
    if isinstance(condition, bool):
        return x if condition else y
    chosen = predicate_of(condition) if isinstance(condition, Mask) else tile(condition, name)
    x, y = (v if host(v) else tile(v, name) for v in (x, y))
    kind = result_type([x, y], dtype)
    shape = joined(name, *[v.shape for v in (chosen, x, y) if is_tile(v)])
    operands = [chosen, *[v for v in (x, y) if is_tile(v)]]
    operands = [v if v.shape == shape else spread(v, shape, name) for v in operands]

    def write(dst: Tile, test: Tile, *tiles: Tile) -> None:
        given = iter(tiles)
        true = next(given) if is_tile(x) else x
        if is_tile(y):
            isa.tensor_copy(dst, next(given))
        else:
            isa.memset(dst, y)
        isa.tensor_copy_predicated(dst, _ready(true, dst), _predicate(test))

    return written(name, shape, kind, mask, write, operands)


def _ready(value: Any, dst: Tile) -> Any:
    """What a predicated copy takes: a tile of the target's dtype, in SBUF."""
    if is_tile(value):
        return cast_to(value, dst.dtype)
    return spread(filled((dst.shape[0], 1), dst.dtype, value), dst.shape, "nl.where")


def _predicate(test: Tile) -> Tile:
    """Ones and zeros of one byte."""
    if test.dtype.bir in PREDICATES:
        return test
    made = fresh(test.shape, uint8)
    isa.tensor_scalar(made, test, "not_equal", 0.0)
    return made


@function("gather_flattened")
def gather_flattened(
    data: Any, indices: Any, *, mask: Any = None, dtype: Any = None, **ignored: Any
) -> Any:
    """In each partition: the elements of `data`, flattened, that `indices` name."""
    name = "nl.gather_flattened"
    source, picks = in_sbuf(tile(data, name)), cast_to(tile(indices, name), uint32)

    def write(dst: Tile, chosen: Tile) -> None:
        rows = source if source.shape[0] == dst.shape[0] else source[: dst.shape[0]]
        isa.nc_n_gather(dst, rows, chosen)

    made = written(name, picks.shape, source.dtype, mask, write, (picks,))
    return made if dtype is None or dtype_of(dtype) == made.dtype else cast_to(made, dtype)
