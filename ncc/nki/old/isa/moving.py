"""Copies, fills, gathers and DMA in the older API."""

from __future__ import annotations

from functools import partial
from typing import Any

from ncc.nki import isa
from ncc.nki.isa import constants as c
from ncc.nki.isa.calls import member
from ncc.nki.isa.operands import record
from ncc.nki.isa.operands import tile as operand
from ncc.nki.memory import is_hbm
from ncc.nki.old.assign import assign, shaped
from ncc.nki.old.dynamic import moves_on_chip
from ncc.nki.old.results import (
    cast_to,
    fresh,
    function,
    in_sbuf,
    into,
    is_tile,
    tile,
    written,
)
from ncc.nki.old.tile import Tile
from ncc.nki.operators import symbol
from ncc.nki.trace import invalid
from ncc.nki.views import ints


def engine_of(value: Any) -> Any:
    """An engine as today's calls take it; 0 and None leave the choice."""
    return c.engine.unknown if value in (None, 0) else value


@function("tensor_copy")
def tensor_copy(
    src: Any, *, mask: Any = None, dtype: Any = None, engine: Any = 0, **ignored: Any
) -> Any:
    """A tile with the content of `src`."""
    source = tile(src, "tensor_copy", "src")

    def write(dst: Tile, one: Tile) -> None:
        isa.tensor_copy(dst, one, engine=engine_of(engine))

    return written("tensor_copy", source.shape, dtype or source.dtype, mask, write, (source,))


@function("tensor_copy_dynamic_src")
def tensor_copy_dynamic_src(
    src: Any, *, mask: Any = None, dtype: Any = None, engine: Any = 0, **ignored: Any
) -> Any:
    """`tensor_copy` of a view that starts at a run-time index."""
    return tensor_copy(src, mask=mask, dtype=dtype, engine=engine)


@function("tensor_copy_dynamic_dst")
def tensor_copy_dynamic_dst(
    *, dst: Any, src: Any, mask: Any = None, dtype: Any = None, engine: Any = 0, **ignored: Any
) -> None:
    """`tensor_copy` into a view that starts at a run-time index."""
    to, source = tile(dst, "tensor_copy_dynamic_dst"), tile(src, "tensor_copy_dynamic_dst")

    def write(target: Tile, one: Tile) -> None:
        isa.tensor_copy(target, one, engine=engine_of(engine))

    if moves_on_chip(to) and mask is None:
        assign(to, source)
        return
    into("tensor_copy_dynamic_dst", to, mask, write, (shaped(source, to),))


@function("tensor_copy_predicated")
def tensor_copy_predicated(
    *,
    src: Any,
    dst: Any,
    predicate: Any,
    mask: Any = None,
    dtype: Any = None,
    reverse_pred: bool = False,
    **ignored: Any,
) -> None:
    """dst = src where the predicate is not 0."""
    where = "tensor_copy_predicated"
    to, chosen = tile(dst, where, "dst"), tile(predicate, where, "predicate")
    source = tile(src, where, "src") if is_tile(src) else src
    if isinstance(source, Tile) and source.dtype != to.dtype:
        source = cast_to(source, to.dtype)

    def write(target: Tile, one: Any, test: Tile) -> None:
        isa.tensor_copy_predicated(target, one, test, reverse_pred=reverse_pred)

    into(where, to, mask, write, (source, chosen))


@function("memset")
def memset(
    shape: Any, value: Any, dtype: Any, *, mask: Any = None, engine: Any = 0, **ignored: Any
) -> Any:
    """A tile of one value."""
    sizes = ints((shape,), "memset: a size")
    fill = partial(isa.memset, value=value, engine=engine_of(engine))
    return written("memset", sizes, dtype, mask, fill)


@function("dma_copy")
def dma_copy(
    *positional: Any,
    dst: Any = None,
    src: Any = None,
    mask: Any = None,
    dst_rmw_op: Any = None,
    oob_mode: Any = c.oob_mode.error,
    dge_mode: Any = 0,
    **ignored: Any,
) -> None:
    """dst = src, between HBM and SBUF; with `dst_rmw_op` the sum of both."""
    if len(positional) == 2:  # the first releases: source, then destination
        src, dst = positional
    to, source = tile(dst, "dma_copy", "dst"), tile(src, "dma_copy", "src")
    rmw = "" if dst_rmw_op is None else symbol(dst_rmw_op, "dma_copy", "dst_rmw_op", ADDS)
    outside = member(c.oob_mode, oob_mode, "dma_copy", "oob_mode")

    def write(target: Tile, one: Tile) -> None:
        if rmw:
            args = {
                "dst": operand(target, "dma_copy", "dst", ALL),
                "src": operand(one, "dma_copy", "src", ALL),
            }
            record("dma_copy", args, {"rmw": rmw, "oob_mode": outside.name})
        else:
            isa.dma_copy(target, one, oob_mode=outside)

    source = in_sbuf(source)
    if not is_hbm(to) and to.buffer != source.buffer and not is_hbm(source):
        assign(to, source)
        return
    into("dma_copy", to, mask, write, (shaped(source, to),))


ADDS = frozenset({"add"})
ALL = ("sbuf", "hbm", "shared_hbm")


@function("dma_transpose")
def dma_transpose(
    src: Any, *, axes: Any = None, mask: Any = None, dtype: Any = None, **ignored: Any
) -> Any:
    """src with its first and last dimension swapped."""
    source = tile(src, "dma_transpose", "src")
    order = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}.get(source.ndim)
    if order is None:
        said = f"dma_transpose takes 2 to 4 dimensions, was given {source.shape}"
        raise invalid("NCC353", said, "reshape src")
    made = fresh(tuple(source.shape[k] for k in order), source.dtype)
    if mask is not None:
        from ncc.nki.old.language.tiles import load_transpose2d

        return load_transpose2d(source, mask=mask, dtype=dtype)
    if source.ndim == 2 and is_hbm(source) and source.dtype.size != 2:
        isa.dma_copy(made, source.permute((1, 0)))
    else:
        isa.dma_transpose(made, source, axes=axes)
    return made if dtype is None else cast_to(made, dtype)


@function("nc_stream_shuffle")
def nc_stream_shuffle(src: Any, dst: Any, shuffle_mask: Any, **ignored: Any) -> None:
    """In each quadrant of 32 partitions: row i of dst is row shuffle_mask[i] of src."""
    to = tile(dst, "nc_stream_shuffle", "dst")
    isa.nc_stream_shuffle(to, tile(src, "nc_stream_shuffle", "src"), shuffle_mask)


@function("local_gather")
def local_gather(
    src_buffer: Any,
    index: Any,
    num_elem_per_idx: int = 1,
    num_valid_indices: int | None = None,
    *,
    mask: Any = None,
    **ignored: Any,
) -> Any:
    """In each group of 16 partitions: the group's indices pick runs of elements."""
    source, picks = tile(src_buffer, "local_gather"), tile(index, "local_gather")
    count = num_valid_indices or 16 * (picks.size // picks.shape[0])
    free = (count, num_elem_per_idx) if num_elem_per_idx > 1 else (count,)
    made = fresh((source.shape[0], *free), source.dtype)
    isa.local_gather(made, in_sbuf(source), picks, num_elem_per_idx, num_valid_indices)
    return made


@function("builtin_custom_op")
def builtin_custom_op(*args: Any, **more: Any) -> None:
    """A function of a library for the gpsimd engine: refused."""
    hint = "write it with instructions of nki.isa"
    raise invalid("NCC377", "builtin_custom_op runs a library that ncc does not have", hint)
