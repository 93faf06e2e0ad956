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
from ncc.nki.old.results import cast_to, fresh, function, in_sbuf, joint, tile
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
    still, moved = _floats(in_sbuf(still), in_sbuf(moved))
    double = "double" in str(more.get("perf_mode", ""))
    rows = still.size // still.shape[0] // (2 if double else 1)
    free = moved.shape[1:] if not double else (moved.size // moved.shape[0] // 2,)
    keep = _parts(masks, still, moved, axes)
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
    if keep is not None:
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


def _parts(
    masks: tuple[Any, Any, Any], still: Tile, moved: Tile, axes: tuple[Axes, Axes]
) -> list[tuple[Any, Any, Box]] | None:
    """What a mask leaves of a product: (rows of K, columns of M, rectangle of N).

    A comparison belongs to the operand whose index tensors it is made of.
    """
    plains = [plain(mask, "nc_matmul") for mask in masks]
    if all(found is True for found in plains):
        return None
    if any(found is False for found in plains):
        return []
    if still.ndim != 2:
        said = f"nc_matmul: a mask and a stationary operand of {still.shape}"
        raise wrong_shape("NCC373", said, "reshape it to two dimensions")
    depth = [(0, still.shape[0])]
    left: list[tuple[Index, str]] = []
    right: list[tuple[Index, str]] = []
    for found, kind in zip(plains, ("", "left", "right"), strict=True):
        for term, op in found.terms if isinstance(found, Mask) else ():
            ours = kind == "left" if kind else _belongs(term, still, moved, axes)
            (left if ours else right).append((term, op))
    mine = regions(Mask(tuple(left)), still.shape, "nc_matmul") if left else None
    theirs = regions(Mask(tuple(right)), moved.shape, "nc_matmul") if right else None
    whole: Box = tuple((0, n) for n in still.shape)
    other: Box = tuple((0, n) for n in moved.shape)
    parts: list[tuple[Any, Any, Box]] = []
    for a in [whole] if mine is None else mine:
        for b in [other] if theirs is None else theirs:
            low, high = max(a[0][0], b[0][0], depth[0][0]), min(a[0][1], b[0][1])
            if low < high:
                parts.append(((low, high), a[1], b[1:]))
    return parts


def _belongs(term: Index, still: Tile, moved: Tile, axes: tuple[Axes, Axes]) -> bool:
    """Whether a comparison is one of the stationary operand's indices."""
    walks = frozenset[int]().union(
        *(a for a, n, s in zip(term.axes, term.shape, term.steps, strict=True) if n > 1 and s)
    )
    for one, found in ((axes[0], True), (axes[1], False)):
        free = frozenset[int]().union(*one[1:])
        if walks & free:
            return found
    return term.shape[-1:] == (still.shape[-1],) and still.shape[-1] != moved.shape[-1]


@function("nc_transpose")
def nc_transpose(
    data: Any, *, mask: Any = None, dtype: Any = None, engine: Any = 0, **ignored: Any
) -> Any:
    """data (P, F) turned: by the tensor engine into PSUM, small tiles also by the vector engine."""
    source = tile(data, "nc_transpose", "data")
    rows, columns = _flat(source)
    boxes = regions(joint(mask, (source,)), source.shape, "nc_transpose")
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
    wanted = dtype_of(dtype or (tile(data, "nc_transpose").dtype if small else made.dtype))
    if wanted == made.dtype:
        return made
    found = fresh(made.shape, wanted)
    found.valid = made.valid
    isa.tensor_copy(found if boxes is None else found.cut((boxes[0][1], boxes[0][0])), target)
    return found


def _again(source: Tile, to: Tile, accumulate: bool | None) -> None:
    _turn(to, source, False)


def _turn(to: Tile, source: Tile, vector: bool) -> None:
    if not vector and not source.dtype.is_float and source.dtype.size == 4:
        to, source = to.view(float32), source.view(float32)  # the bits are moved as they are
    isa.nc_transpose(to, source, engine=c.engine.vector if vector else c.engine.tensor)
