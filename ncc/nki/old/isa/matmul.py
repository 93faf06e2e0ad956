"""The tensor engine in the older API: products that return PSUM tiles, and transposes."""

from __future__ import annotations

from functools import partial
from typing import Any

from ncc.nki import isa
from ncc.nki.dtypes import bfloat16, dtype_of, float32
from ncc.nki.isa import constants as c
from ncc.nki.isa.operands import generation
from ncc.nki.old.index import Axes, Index, Mask
from ncc.nki.old.masks import Box, plain, regions
from ncc.nki.old.results import cast_to, fresh, function, in_sbuf, is_whole, joint, left_rows, tile
from ncc.nki.old.tile import Tile
from ncc.nki.regions import psum, sbuf
from ncc.nki.trace import current, wrong_shape

BLOCK = 32  # what the vector engine transposes in one go


def _flat(x: Tile) -> tuple[int, int]:
    return x.shape[0], x.size // x.shape[0]


@function("nc_matmul")
def nc_matmul(
    stationary: Any,
    moving: Any,
    *,
    is_stationary_onezero: bool = False,
    is_moving_onezero: bool = False,
    is_transpose: bool = False,
    tile_position: Any = (),
    tile_size: Any = (),
    mask: Any = None,
    **more: Any,
) -> Any:
    """The transpose of stationary (K, M) times moving (K, N), in PSUM."""
    still, moved = tile(stationary, "nc_matmul", "stationary"), tile(moving, "nc_matmul", "moving")
    masks = (mask, still.mask, moved.mask)
    axes = (still.axes, moved.axes)
    depth = tuple(zip(left_rows(still), left_rows(moved), strict=True))
    still, moved = _floats(in_sbuf(still), in_sbuf(moved))
    double = "double" in str(more.get("perf_mode", ""))
    rows = still.size // still.shape[0] // (2 if double else 1)
    free = moved.shape[1:] if not double else (moved.size // moved.shape[0] // 2,)
    keep = _parts(masks, still, moved, axes, (max(depth[0]), min(depth[1])))
    keys: dict[str, Any] = {
        "is_stationary_onezero": is_stationary_onezero,
        "is_moving_onezero": is_moving_onezero,
        "is_transpose": is_transpose,
        "tile_position": tile_position,
        "tile_size": tile_size,
        "perf_mode": more.get("perf_mode", c.matmul_perf_mode.none),
    }
    turned = is_transpose and generation(current("nc_matmul")) >= 3
    made = fresh((rows, *free), still.dtype if turned else float32, psum)

    def write(dst: Tile, accumulate: bool | None) -> None:
        if keep is None:
            isa.nc_matmul(dst, still, moved, accumulate=accumulate, **keys)
            return
        for depth, column, box in keep:
            one = still.cut((depth, column))
            two = moved.cut((depth, *box))
            isa.nc_matmul(dst.cut((column, *box)), one, two, accumulate=accumulate, **keys)

    write(made, False)
    if keep is not None and any(found is not True for found in map(_known, masks)):
        made.valid = [(column, *box) for _, column, box in keep]
    made.redo, made.turns = write, is_transpose
    return made


def _floats(still: Tile, moved: Tile) -> tuple[Tile, Tile]:
    """Integers multiply in the other operand's type: an identity of uint8 is common."""
    if not still.dtype.is_float:
        still = cast_to(still, moved.dtype if moved.dtype.is_float else bfloat16)
    if not moved.dtype.is_float:
        moved = cast_to(moved, still.dtype)
    return still, moved


def _known(mask: Any) -> bool | Mask:
    return plain(mask, "nc_matmul")


def _parts(
    masks: tuple[Any, Any, Any],
    still: Tile,
    moved: Tile,
    axes: tuple[Axes, Axes],
    depth: tuple[int, int],
) -> list[tuple[Any, Any, Box]] | None:
    """What a mask leaves of a product: (rows of K, columns of M, rectangle of N).

    A comparison belongs to the operand whose index tensors it is made of. `depth`: the rows that
    both operands hold; what a masked load left out is no part of the sum.
    """
    plains = [_known(mask) for mask in masks]
    whole: Box = tuple((0, n) for n in still.shape)
    other: Box = tuple((0, n) for n in moved.shape)
    if all(found is True for found in plains):
        if depth == whole[0] or still.ndim != 2 or depth[0] >= depth[1]:
            return None
        return [(depth, whole[1], other[1:])]
    if any(found is False for found in plains):
        return []
    if still.ndim != 2:
        said = f"nc_matmul: a mask and a stationary operand of {still.shape}"
        raise wrong_shape("NCC373", said, "reshape it to two dimensions")
    left: list[tuple[Index, str]] = []
    right: list[tuple[Index, str]] = []
    for found, kind in zip(plains, ("", "left", "right"), strict=True):
        for term, op in found.terms if isinstance(found, Mask) else ():
            if kind:
                (left if kind == "left" else right).append((term, op))
                continue
            ours, dim = _belongs(term, still, moved, axes)
            shape = (still if ours else moved).shape
            (left if ours else right).append((_placed(term, dim, shape), op))
    mine = regions(Mask(tuple(left)), still.shape, "nc_matmul") if left else None
    theirs = regions(Mask(tuple(right)), moved.shape, "nc_matmul") if right else None
    parts: list[tuple[Any, Any, Box]] = []
    for a in [whole] if mine is None else mine:
        for b in [other] if theirs is None else theirs:
            low, high = max(a[0][0], b[0][0], depth[0]), min(a[0][1], b[0][1], depth[1])
            if low < high:
                parts.append(((low, high), a[1], b[1:]))
    return parts


def _belongs(
    term: Index, still: Tile, moved: Tile, axes: tuple[Axes, Axes]
) -> tuple[bool, int | None]:
    """Whether a comparison is about the stationary operand, and its dimension (None: as it stands).

    Its index tensors say so; one that walks neither operand stands for the rows of the result.
    """
    walks = walked_by(term)
    (deep, free), (other, wide) = (_walks(a) for a in axes)
    if walks & (free | wide):
        return bool(walks & free), 1 if walks & free else None
    if walks & (deep | other):
        return False, 0
    if term.shape[-1:] == (1,):
        known = bool(walks and free and wide)
        return known, 1 if known else None
    return term.shape[-1:] == (still.shape[-1],) and still.shape[-1] != moved.shape[-1], None


def _placed(term: Index, dim: int | None, shape: tuple[int, ...]) -> Index:
    """A comparison of one index, put where it is about that dimension."""
    long = [d for d, n in enumerate(term.shape) if n > 1]
    if dim is None or len(long) != 1 or term.shape[long[0]] != shape[dim]:
        return term
    step, axes = term.steps[long[0]], term.axes[long[0]]
    ones = tuple(shape[d] if d == dim else 1 for d in range(len(shape)))
    steps = tuple(step if d == dim else 0 for d in range(len(shape)))
    places = tuple(axes if d == dim else frozenset[int]() for d in range(len(shape)))
    return Index(ones, steps, term.offset, places)


def _walks(axes: Axes) -> tuple[frozenset[int], frozenset[int]]:
    """The `nl.arange`s that walk the partitions, and those of the free dimensions."""
    return frozenset[int]().union(*axes[:1]), frozenset[int]().union(*axes[1:])


def walked_by(term: Index) -> frozenset[int]:
    """The `nl.arange`s that a comparison walks."""
    parts = zip(term.axes, term.shape, term.steps, strict=True)
    return frozenset[int]().union(*(a for a, n, s in parts if n > 1 and s))


def turned(x: Tile, y: Tile, mask: Any) -> tuple[Tile, Tile, Any]:
    """x · y as `nc_matmul` takes it: the transpose of x, y, and what is left of the mask.

    A comparison of x is turned with it. What compares partitions is about the rows of x, unless
    its index walks those of y alone.
    """
    one = cast_to(nc_transpose(x), x.dtype)
    found = plain(mask, "nl.matmul")
    if not isinstance(found, Mask):
        return one, y, found
    mine: list[tuple[Index, str]] = []
    theirs: list[tuple[Index, str]] = []
    for term, op in found.terms:
        if term.ndim == 2 and _of_first(term, op, x, y):
            parts = (term.shape[::-1], term.steps[::-1], term.offset, term.axes[::-1])
            mine.append((Index(*parts), op))
        else:
            theirs.append((term, op))
    return (one[Mask(tuple(mine))] if mine else one, y[Mask(tuple(theirs))] if theirs else y, None)


def _of_first(term: Index, op: str, x: Tile, y: Tile) -> bool:
    """Whether a comparison in x · y is one of the indices of x."""
    walks = walked_by(term)
    (rows, free), (deep, wide) = _walks(x.axes), _walks(y.axes)
    if bool(walks & free) != bool(walks & wide):
        return bool(walks & free)
    if term.shape[-1] > 1:
        return term.shape[-1] == x.shape[-1] != y.shape[-1]
    if bool(walks & rows) != bool(walks & deep):
        return bool(walks & rows)
    found = regions(Mask(((term, op),)), (term.shape[0], 1), "nl.matmul")
    return not found or found[0][0] != left_rows(y) or found[0][0] == left_rows(x)


@function("nc_transpose")
def nc_transpose(
    data: Any, *, mask: Any = None, dtype: Any = None, engine: Any = 0, **ignored: Any
) -> Any:
    """data (P, F) turned: by the tensor engine into PSUM, small tiles also by the vector engine."""
    source = tile(data, "nc_transpose", "data")
    rows, columns = _flat(source)
    boxes = regions(joint(mask, (source,)), source.shape, "nc_transpose")
    if boxes is None and is_whole(source) and generation(current("nc_transpose")) < 3:
        boxes = [source.storage.left]  # trn1 multiplies by the identity: what is no number spreads
    if boxes == []:
        made = fresh((columns, rows), dtype or source.dtype)
        made.valid = []
        return made
    if boxes is not None:
        if len(boxes) != 1 or source.ndim != 2:
            said = f"nc_transpose: a mask that leaves {len(boxes)} rectangles of {source.shape}"
            raise wrong_shape("NCC373", said, "transpose rectangle by rectangle")
        source = source.cut(boxes[0])
    word = str(getattr(engine, "name", engine))
    vector = word == "vector" or (source.buffer == psum and max(rows, columns) <= BLOCK)
    source = source if vector else in_sbuf(source)
    small = not vector and source.dtype.size == 1
    if small:
        source = cast_to(source, bfloat16)
    made = fresh((columns, rows), source.dtype, sbuf if vector else psum)
    target = made
    if boxes is not None:
        part = (boxes[0][1], boxes[0][0])
        target, made.valid = made.cut(part), [part]
    _turn(target, source, vector)
    if not vector and boxes is None:
        made.redo, made.turns = partial(_again, source), True
    given = tile(data, "nc_transpose")
    wanted = dtype_of(dtype or (given.dtype if small else made.dtype))
    if wanted == made.dtype:
        return _same(given, made)
    found = fresh(made.shape, wanted)
    found.valid = made.valid
    isa.tensor_copy(found if boxes is None else found.cut((boxes[0][1], boxes[0][0])), target)
    return _same(given, found)


def _same(x: Tile, made: Tile) -> Tile:
    """The transpose of `x` is walked by its index tensors, and holds what `x` does."""
    left = x.storage.left
    if x.ndim == 2:
        made.axes = x.axes[::-1]
        if is_whole(x):
            made.storage.left = (left[1], left_rows(x))
    if made.valid:
        made.storage.left = made.valid[0]
    return made


def _again(source: Tile, to: Tile, accumulate: bool | None) -> None:
    _turn(to, source, False)


def _turn(to: Tile, source: Tile, vector: bool) -> None:
    if not vector and not source.dtype.is_float and source.dtype.size == 4:
        to, source = to.view(float32), source.view(float32)  # the bits are moved as they are
    isa.nc_transpose(to, source, engine=c.engine.vector if vector else c.engine.tensor)
