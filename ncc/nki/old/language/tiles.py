"""Tiles in and out of memory, turned, multiplied; and random numbers."""

from __future__ import annotations

from functools import partial
from typing import Any

from ncc.nki import isa
from ncc.nki.dtypes import bfloat16, dtype_of, float32, uint32
from ncc.nki.language.base import host
from ncc.nki.memory import is_hbm
from ncc.nki.old.assign import assign, shaped
from ncc.nki.old.index import Index
from ncc.nki.old.isa.matmul import nc_matmul, nc_transpose, turned
from ncc.nki.old.masks import regions
from ncc.nki.old.results import (
    cast_to,
    cut,
    filled,
    fresh,
    function,
    held,
    in_sbuf,
    is_tile,
    joint,
    spread,
    tile,
    written,
)
from ncc.nki.old.sequences import items
from ncc.nki.old.tile import Tile
from ncc.nki.operators import symbol
from ncc.nki.regions import psum
from ncc.nki.trace import current, invalid, wrong_shape
from ncc.nki.views import ints


@function("load")
def load(src: Any, *, mask: Any = None, dtype: Any = None, mode: Any = None, **ignored: Any) -> Any:
    """A tile in SBUF with what `src` holds; `mode` says what a row outside of it does."""
    source = tile(src, "nl.load", "src")
    if len(source.shape) == 1:
        n = source.shape[0]
        source = source.derived((n, 1), (source.strides[0], 1))
    if source.buffer == psum:
        return copy(source, mask=mask, dtype=dtype)
    copied = isa.dma_copy if mode is None else partial(isa.dma_copy, oob_mode=mode)
    return written("nl.load", source.shape, dtype or source.dtype, mask, copied, (source,))


@function("store")
def store(dst: Any, value: Any, *, mask: Any = None, mode: Any = None, **ignored: Any) -> None:
    """What the tile `value` holds, into HBM."""
    to = tile(dst, "nl.store", "dst")
    if not is_hbm(to):
        _into_chip(to, value, mask)
        return
    if isinstance(value, Index):
        value = isa_iota(value, to.dtype)
    if host(value):
        value = filled((min(to.shape[0], 128), 1), to.dtype, _number(value, to))
        if to.shape[0] > 128 or to.ndim == 1:
            value = value[0:1, 0:1].ap([[1, 1], *[[0, n] for n in to.shape]])
            value = tile(value, "nl.store")
    given = shaped(tile(value, "nl.store", "value"), to)
    boxes = regions(joint(mask, (to, given)), to.shape, "nl.store")
    copied = isa.dma_copy if mode is None else partial(isa.dma_copy, oob_mode=mode)
    if boxes is None:
        copied(to, in_sbuf(given))
        return
    same = given.shape == to.shape
    for box in boxes:
        part = cut(given, box, to.shape, "nl.store") if same else _other(given, to, box)
        copied(to.cut(box), in_sbuf(part))


def _other(given: Tile, to: Tile, box: Any) -> Tile:
    """The rectangle of a value whose dimensions differ from the target's by ones."""
    rest = [b for b, n in zip(box, to.shape, strict=True) if n != 1]
    found: list[tuple[int, int]] = []
    for n in given.shape:
        if n == 1:
            found.append((0, 1))
            continue
        if not rest:
            said = f"nl.store: a mask over {to.shape} does not cut a value of {given.shape}"
            raise wrong_shape("NCC373", said, "give both one shape")
        found.append(rest.pop(0))
    return given.cut(tuple(found))


def _number(value: Any, like: Tile) -> Any:
    value = value.item() if hasattr(value, "item") else value
    return value if like.dtype.is_float else int(value)


def _into_chip(to: Tile, value: Any, mask: Any) -> None:
    boxes = regions(mask, to.shape, "nl.store")
    if boxes is None:
        assign(to, value)
        return
    given = shaped(tile(value, "nl.store", "value"), to)
    for box in boxes:
        isa.tensor_copy(to.cut(box), cut(given, box, to.shape, "nl.store"))


def isa_iota(value: Index, dtype: Any) -> Tile:
    from ncc.nki.old.isa import iota

    made: Tile = iota(value, dtype=dtype)
    return made


@function("load_transpose2d")
def load_transpose2d(src: Any, *, mask: Any = None, dtype: Any = None, **ignored: Any) -> Any:
    """A tile in SBUF with the transpose of `src` (rows, columns)."""
    where = "nl.load_transpose2d"
    source = tile(src, where, "src")
    if source.ndim != 2:
        said = f"{where} takes two dimensions, was given {source.shape}"
        raise wrong_shape("NCC362", said, "reshape or index src")
    rows, columns = source.shape
    kind = dtype_of(dtype or source.dtype)
    made = fresh((columns, rows), kind)
    made.axes = source.axes[::-1]
    boxes = regions(mask, source.shape, where)
    if boxes is not None:
        made.valid = [(b[1], b[0]) for b in boxes]
    for box in [None] if boxes is None else boxes:
        one, to = source, made
        if box is not None:
            one, to = source.cut(box), made.cut((box[1], box[0]))
        direct = kind == source.dtype and source.dtype.size == 2 and not one.moves
        if direct and current().target.transposing_dma:
            isa.dma_transpose(to, one)
        else:
            isa.dma_copy(to, one.permute((1, 0)))
    if made.valid and len(made.valid) == 1:
        made.storage.left = made.valid[0]
    return made


@function("copy", "copy")
def copy(src: Any, *, mask: Any = None, dtype: Any = None, **ignored: Any) -> Any:
    """The same values in a tile of their own."""
    if host(src):
        return src
    source = tile(src, "nl.copy", "src")
    if is_hbm(source):
        return load(source, mask=mask, dtype=dtype)
    kind = dtype or source.dtype
    made = written("nl.copy", source.shape, kind, mask, isa.tensor_copy, (source,))
    return made if made.valid else held(made, source)


@function("static_cast")
def static_cast(input_data: Any, dtype: Any) -> Any:
    """A number, array or tile in another type."""
    if is_tile(input_data):
        return copy(input_data, dtype=dtype)
    return dtype_of(dtype).dtype.type(input_data) if host(input_data) else input_data


@function("broadcast_to")
def broadcast_to(src: Any, shape: Any = None, **ignored: Any) -> Any:
    """`src` read as `shape`: dimensions of size 1 repeat."""
    source = tile(src, "nl.broadcast_to", "src")
    wanted = ints((shape,), "nl.broadcast_to: a size")
    if is_hbm(source):
        source = load(source)
    return spread(source, wanted, "nl.broadcast_to")


@function("expand_dims")
def expand_dims(data: Any, axis: Any) -> Any:
    """A view with a new dimension of size 1 for each axis."""
    source = tile(data, "nl.expand_dims", "data")
    axes = items(axis) or [axis]
    rank = source.ndim + len(axes)
    for k in sorted(int(a) % rank for a in axes):
        source = source.expand_dim(k)
    return source


@function("transpose")
def transpose(x: Any, *, dtype: Any = None, mask: Any = None, **ignored: Any) -> Any:
    """The transpose of a tile (rows, columns)."""
    return nc_transpose(tile(x, "nl.transpose"), dtype=dtype, mask=mask)


@function("matmul")
def matmul(x: Any, y: Any, *, transpose_x: bool = False, mask: Any = None, **ignored: Any) -> Any:
    """x · y in PSUM; with `transpose_x` x comes transposed, as the machine wants it."""
    one, two = tile(x, "nl.matmul", "x"), tile(y, "nl.matmul", "y")
    depth = one.shape[0] if transpose_x else one.size // one.shape[0]
    if depth != two.shape[0]:
        said = f"nl.matmul contracts {depth} with {two.shape[0]}: x is {one.shape}, y {two.shape}"
        hint = "x is (rows, depth), y is (depth, columns); with transpose_x x is (depth, rows)"
        raise wrong_shape("NCC362", said, hint)
    if not transpose_x:
        one, two, mask = turned(one, two, mask)
    one, two = floating(in_sbuf(one)), floating(in_sbuf(two))
    if (one.dtype == float32) != (two.dtype == float32):
        one, two = cast_to(one, float32), cast_to(two, float32)
    return nc_matmul(one, two, mask=mask)


def floating(x: Tile) -> Tile:
    """Integers of 8 bits multiply as bfloat16, wider ones as float32."""
    if x.dtype.is_float:
        return x
    return cast_to(x, bfloat16 if x.dtype.size == 1 else float32)


# --- folds over loops and programs ----------------------------------------------------------------


@function("loop_reduce")
def loop_reduce(
    x: Any, op: Any, loop_indices: Any, *, dtype: Any = None, mask: Any = None, **ignored: Any
) -> Any:
    """A value that an assignment folds into its target."""
    made: Tile = copy(tile(x, "nl.loop_reduce"), dtype=dtype, mask=mask)
    folds = frozenset({"add", "multiply", "maximum", "minimum", "subtract"})
    made.folds = symbol(op, "nl.loop_reduce", "op", folds)
    return made


@function("all_reduce")
def all_reduce(
    x: Any, op: Any, program_axes: Any, *, dtype: Any = None, mask: Any = None, **ignored: Any
) -> Any:
    """The fold over programs of the grid: refused where there are several."""
    from ncc.nki.language.programs import num_programs

    trace = current("nl.all_reduce")
    if trace.grid == (2,) and trace.lnc == 2:  # whatever axis: there is one
        return _of_both(tile(x, "nl.all_reduce"), op, mask, dtype)
    count = 1
    for axis in items(program_axes) or [program_axes]:
        count *= num_programs(axis)
    if count > 1:
        said = (
            f"nl.all_reduce over {count} programs: they run one after the other and share no tile"
        )
        raise invalid("NCC376", said, "store what each gives to shared_hbm, and fold it there")
    return tile(x, "nl.all_reduce")


def _of_both(x: Tile, op: Any, mask: Any, dtype: Any) -> Tile:
    """Two programs on two cores: each sends its tile to the other."""
    name = symbol(op, "nl.all_reduce", "op", frozenset({"add", "maximum", "minimum", "multiply"}))
    other = 1 - current().core
    mine, theirs = in_sbuf(x), fresh(x.shape, x.dtype)
    boxes = regions(mask, x.shape, "nl.all_reduce")
    made = fresh(x.shape, dtype or x.dtype)
    made.valid = boxes
    for box in [None] if boxes is None else boxes:
        sent, got, to = mine, theirs, made
        if box is not None:
            sent, got, to = mine.cut(box), theirs.cut(box), made.cut(box)
        isa.sendrecv(sent, got, other, other, 0)
        isa.tensor_tensor(to, sent, got, name)
    return made


@function("atomic_rmw")
def atomic_rmw(dst: Any, value: Any, op: Any, *, mask: Any = None, **ignored: Any) -> None:
    """dst = op(dst, value), in HBM; only sums."""
    symbol(op, "nl.atomic_rmw", "op", frozenset({"add"}))
    to = tile(dst, "nl.atomic_rmw", "dst")
    if host(value):
        value = filled((to.shape[0], 1), to.dtype, _number(value, to))
    given = cast_to(tile(value, "nl.atomic_rmw", "value"), to.dtype)
    given = shaped(given, to)
    boxes = regions(mask, to.shape, "nl.atomic_rmw")
    for box in [None] if boxes is None else boxes:
        target, one = to, given
        if box is not None:
            target, one = to.cut(box), cut(given, box, to.shape, "nl.atomic_rmw")
        isa.dma_compute(target, [one, target], "add")


# --- chance ---------------------------------------------------------------------------------------


@function("dropout")
def dropout(x: Any, rate: Any, *, dtype: Any = None, mask: Any = None, **ignored: Any) -> Any:
    """x with each element 0 with probability `rate`."""
    from ncc.nki.old.isa import dropout as one

    return one(x, rate, dtype=dtype, mask=mask)


@function("random_seed")
def random_seed(seed: Any, *, mask: Any = None, **ignored: Any) -> None:
    """Start the random numbers anew from one seed."""
    if regions(mask, (1, 1), "nl.random_seed") == []:
        return
    if host(seed):
        seed = filled((1, 1), uint32, int(seed))
    isa.set_rng_seed(tile(seed, "nl.random_seed", "seed"))


@function("rand")
def rand(shape: Any, dtype: Any = float32, **ignored: Any) -> Any:
    """A tile of uniform random numbers from 0 to 1: 24 random bits, scaled."""
    made = fresh(ints((shape,), "nl.rand: a size"), dtype)
    bits = fresh(made.shape, uint32)
    isa.rng(bits)
    isa.tensor_scalar(bits, bits, "bitwise_and", 0xFFFFFF)
    isa.tensor_scalar(made, bits, "multiply", 2.0**-24)
    return made
