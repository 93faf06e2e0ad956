"""Tiles in and out of memory, turned, multiplied, picked from; and random numbers."""

from __future__ import annotations

from typing import Any

from ncc.ir.data import size_of
from ncc.nki.dtypes import bfloat16, uint32
from ncc.nki.language.base import (
    Dtype,
    NkiTensor,
    cast_to,
    column,
    dims,
    dtype_of,
    filled,
    float32,
    function,
    host,
    is_float,
    isa,
    items,
    new,
    not_a_tile,
    spread,
    tile,
    uint8,
    unheard,
)
from ncc.nki.memory import allocate, is_hbm
from ncc.nki.regions import psum, sbuf
from ncc.nki.trace import current, wrong_shape
from ncc.nki.views import ints, whole_number

PREDICATES = ("uint8", "uint16", "uint32")


# --- memory ---------------------------------------------------------------------------------------


@function("load")
def load(src: Any, dtype: Any = None) -> Any:
    """A tile in SBUF with what `src` holds; a vector gets one element a partition."""
    src = tile(src, "load")
    made = new(src.shape, dtype or src.dtype)
    isa.dma_copy(made, src)
    return made


@function("store")
def store(dst: Any, value: Any) -> Any:
    """What the tile `value` holds, into HBM."""
    dst = tile(dst, "store")
    if host(value) and not hasattr(value, "shape"):
        value = filled((1, 1), dst.dtype, value).ap([[1, 1], *[[0, n] for n in dst.shape]])
    return isa.dma_copy(dst, tile(value, "store"))


@function("load_transpose2d")
def load_transpose2d(src: Any, dtype: Any = None) -> Any:
    """A tile in SBUF with the transpose of `src` (rows, columns)."""
    src = tile(src, "load_transpose2d")
    if src.ndim != 2:
        said = f"nl.load_transpose2d takes two dimensions, was given {dims(src)}"
        raise wrong_shape("NCC362", said, "reshape or index src")
    made = new((src.shape[1], src.shape[0]), src.dtype)
    if src.dtype.size == 2 and current().target.transposing_dma:
        isa.dma_transpose(made, src)
    elif is_hbm(src):
        isa.dma_copy(made, src.permute((1, 0)))
    else:
        made = turned(src, src.dtype)
    return cast_to(made, dtype or src.dtype)


@function("copy", "copy")
def copy(x: Any, dtype: Any = None) -> Any:
    """The same values in a tile of their own."""
    x = tile(x, "copy")
    made = new(x.shape, dtype or x.dtype)
    if is_hbm(x):
        isa.dma_copy(made, x)
    else:
        isa.tensor_copy(made, x)
    return made


@function("bypass", "bypass")
def bypass(x: Any, dtype: Any = None) -> Any:
    """`copy`; as `op=` a slot that changes nothing."""
    return copy(x, dtype)


@function("broadcast_to")
def broadcast_to(x: Any, shape: Any, dtype: Any = None) -> Any:
    """`x` read as `shape`: dimensions of size 1 repeat, and the rank stays."""
    x = tile(x, "broadcast_to")
    wanted = ints((shape,), "nl.broadcast_to: a size")
    made = spread(x, wanted, "broadcast_to") if not is_hbm(x) else x.broadcast_to(*wanted)
    return made if dtype is None else cast_to(made, dtype)


@function("expand_dims")
def expand_dims(x: Any, axis: Any) -> Any:
    """A view with a new dimension of size 1 for each axis."""
    x = tile(x, "expand_dims")
    for k in sorted(ints(items(axis) or (axis,), "nl.expand_dims: an axis")):
        x = x.expand_dim(k)
    return x


# --- the tensor engine ----------------------------------------------------------------------------


def turned(x: NkiTensor, dtype: Any) -> NkiTensor:
    """The transpose of a tile of two dimensions, in SBUF."""
    rows, columns = x.shape
    wanted = dtype_of(dtype)
    x = cast_to(x, _carried(x.dtype))
    if not is_float(x.dtype) and not current().target.pe_copies_transpose:
        return cast_to(_turned_in_blocks(x), wanted)  # this tensor engine multiplies: no bits pass
    moved: Dtype = x.dtype
    if not is_float(moved) and moved.size == 4:
        x = x.view(float32)  # the bits are moved as they are
    made = new((columns, rows), moved)
    bits = made if x.dtype == moved else made.view(float32)
    for start in range(0, columns, 128):
        end = min(start + 128, columns)
        flipped = allocate((end - start, rows), x.dtype, psum)
        isa.nc_transpose(flipped, x[:, start:end])
        isa.tensor_copy(bits[start:end], flipped)
    return made if moved == wanted else cast_to(made, wanted)


def _turned_in_blocks(x: NkiTensor) -> NkiTensor:
    """The same by the vector engine, which turns blocks of 32 x 32."""
    rows, columns = x.shape
    made = new((columns, rows), x.dtype)
    for i in range(0, rows, 32):
        for j in range(0, columns, 32):
            block = x[i : min(i + 32, rows), j : min(j + 32, columns)]
            to = made[j : min(j + 32, columns), i : min(i + 32, rows)]
            isa.nc_transpose(to, block, engine=isa.engine.vector)
    return made


def _carried(dtype: Dtype) -> Dtype:
    """The type in which a transpose passes PSUM: 8 bits travel as bfloat16, which holds them."""
    return bfloat16 if size_of(dtype.bir) == 1 else dtype


@function("transpose")
def transpose(x: Any, dtype: Any = None) -> Any:
    """The transpose of a tile (rows, columns)."""
    x = tile(x, "transpose")
    if x.ndim != 2 or x.shape[1] > 128:
        said = f"nl.transpose takes a tile of at most 128 x 128, was given {dims(x)}"
        raise wrong_shape("NCC362", said, "transpose block by block")
    return turned(x, dtype or x.dtype)


@function("matmul")
def matmul(x: Any, y: Any, transpose_x: bool = False) -> Any:
    """x · y in PSUM; with `transpose_x` x comes transposed, as the machine wants it."""
    x, y = tile(x, "matmul"), tile(y, "matmul")
    if x.ndim != 2 or y.ndim != 2:
        said = f"nl.matmul takes tiles of two dimensions, was given {dims(x)} and {dims(y)}"
        raise wrong_shape("NCC362", said, "index or reshape them")
    if x.shape[0 if transpose_x else 1] != y.shape[0]:
        said = f"nl.matmul contracts {x.shape[0 if transpose_x else 1]} with {y.shape[0]}: "
        hint = "x is (rows, depth), y is (depth, columns); with transpose_x x is (depth, rows)"
        raise wrong_shape("NCC362", f"{said}{dims(x)} and {dims(y)}", hint)
    still = x if transpose_x else turned(x, x.dtype)
    if (still.dtype == float32) != (y.dtype == float32):
        still, y = cast_to(still, float32), cast_to(y, float32)
    made = allocate((still.shape[1], y.shape[1]), float32, psum)
    isa.nc_matmul(made, _reachable(still), _reachable(y))
    return made


def _reachable(x: NkiTensor) -> NkiTensor:
    return x if x.buffer == sbuf else cast_to(x, x.dtype)


# --- picking --------------------------------------------------------------------------------------


@function("where")
def where(condition: Any, x: Any, y: Any, dtype: Any = None) -> Any:
    """x where the condition is not 0, else y."""
    condition = tile(condition, "where")
    tiles = [v for v in (x, y) if isinstance(v, NkiTensor)]
    for value in (x, y):
        if not isinstance(value, NkiTensor) and not host(value):
            raise not_a_tile(value, "where")
    kind = dtype_of(dtype or (tiles[0].dtype if tiles else float32))
    shape = next((t.shape for t in (condition, *tiles) if not column(t)), condition.shape)
    made = new(shape, kind)
    if isinstance(y, NkiTensor):
        isa.tensor_copy(made, spread(y, shape, "where"))
    else:
        isa.memset(made, y)
    chosen = spread(_predicate(condition), shape, "where")
    if not isinstance(x, NkiTensor):
        x = filled((shape[0], 1), kind, x)
    elif x.dtype != kind or x.buffer == psum:
        x = cast_to(x, kind)
    isa.tensor_copy_predicated(made, spread(x, shape, "where"), chosen)
    return made


def _predicate(condition: NkiTensor) -> NkiTensor:
    if condition.dtype.bir in PREDICATES:
        return condition
    made = new(condition.shape, uint8)
    with unheard():
        isa.tensor_scalar(made, condition, "not_equal", 0.0)
    return made


@function("gather_flattened")
def gather_flattened(data: Any, indices: Any, axis: Any = 0, dtype: Any = None) -> Any:
    """In each partition: the elements of `data`, flattened, that `indices` name."""
    data, indices = tile(data, "gather_flattened"), tile(indices, "gather_flattened")
    whole_number(axis, "nl.gather_flattened: the axis")
    made = new(indices.shape, data.dtype)
    isa.nc_n_gather(made, _reachable(data), cast_to(indices, uint32))
    return made if dtype is None else cast_to(made, dtype)


# --- chance ---------------------------------------------------------------------------------------


@function("dropout")
def dropout(x: Any, rate: Any, dtype: Any = None) -> Any:
    """x with each element 0 with probability `rate`."""
    x = tile(x, "dropout")
    made = new(x.shape, x.dtype)
    isa.dropout(made, x, rate)
    return made if dtype is None else cast_to(made, dtype)


@function("random_seed")
def random_seed(seed: Any) -> Any:
    """Start the random numbers anew from one seed: an integer tile (1, 1)."""
    if host(seed):
        seed = filled((1, 1), uint32, int(seed))
    return isa.set_rng_seed(tile(seed, "random_seed"))


@function("rand")
def rand(shape: Any, dtype: Any, buffer: Any = sbuf, name: Any = "", **more: Any) -> Any:
    """A tile of uniform random numbers from 0 to 1: 24 random bits, scaled."""
    made = allocate(shape, dtype, buffer, name, **more)
    bits = new(made.shape, uint32)
    isa.rng(bits)
    isa.tensor_scalar(bits, bits, "bitwise_and", 0xFFFFFF)
    drawn = new(made.shape, made.dtype) if is_hbm(made) else made
    with unheard():
        isa.tensor_scalar(drawn, bits, "multiply", 2.0**-24)
    if drawn is not made:
        isa.dma_copy(made, drawn)
    return made
