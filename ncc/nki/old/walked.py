"""An index of a tile by index tensors, index tiles and numbers: the walk over its elements."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from ncc.ir.kernel import Rows, Scalar
from ncc.nki.old.index import NO_AXES, Index, common, whole
from ncc.nki.old.tile import Bound, Tile
from ncc.nki.old.walks import RuntimeIndex, bounds_of
from ncc.nki.tensor import DynSlice
from ncc.nki.tensor_base import TensorBase
from ncc.nki.trace import invalid, wrong_shape, wrong_type
from ncc.nki.views import scalar_source, vector_source, whole_number

OneTile = TypeVar("OneTile", bound=Tile)
MIXED = "index every dimension with nl.arange or nl.mgrid, or every one with slices"


def walked_dims(shape: tuple[int, ...], axes: Sequence[frozenset[int]], rank: int) -> list[int]:
    """The dimensions of a result that stay. An index of `nl.mgrid` has a dimension for each part of
    the grid; those of parts that select nothing here are dropped, down to `rank`."""
    spare = [d for d in range(1, len(shape)) if shape[d] == 1 and not axes[d]]
    dropped = spare[: max(len(shape) - rank, 0)]
    return [d for d in range(len(shape)) if d not in dropped]


def walked(tile: OneTile, given: tuple[Any, ...]) -> OneTile:
    """Index tensors for the dimensions: their common shape is that of the result."""
    indices, runtime = _indices(tile, given)
    shape: tuple[int, ...] = ()
    for one in indices:
        shape = common(shape, one.shape)
    for _, source, _ in runtime:
        if source.size > 1:
            shape = common(shape, source.shape)
    offset, strides = tile.offset, [0] * len(shape)
    bounds: list[Bound] = []
    axes: list[frozenset[int]] = [NO_AXES] * len(shape)
    dynamic = {k for k, _, _ in runtime}
    for k, one in enumerate(indices):
        wide = one.wide(shape)
        offset += wide.offset * tile.strides[k]
        for d, step in enumerate(wide.steps):
            strides[d] += step * tile.strides[k]
            axes[d] |= wide.axes[d]
        if k not in dynamic:
            bounds.append((k, tile.shape[k], wide.offset, wide.steps))
        if tile.row and k == 0 and any(wide.steps[1:]):
            raise _no_tile(tile)
        if tile.row and k and wide.steps and wide.steps[0]:
            raise _no_tile(tile)
    moves = [*tile.moves]
    for k, source, reach in runtime:
        moves.append(_move(tile, k, source, reach, strides))
    if tile.row:
        if len(shape) < 2:
            raise _no_tile(tile)
        if shape[0] > 1 and not strides[0]:
            raise _no_tile(tile)
        strides[0] = tile.row if shape[0] == 1 else strides[0]
    elif not shape:
        shape, strides, axes = (1,), [1], [NO_AXES]
        bounds = [(k, n, o, (0,)) for k, n, o, _ in bounds]
    kept = walked_dims(shape, axes, max(2, len(given)))
    made = tile.derived(
        tuple(shape[d] for d in kept), tuple(strides[d] for d in kept), offset, tuple(moves)
    )
    made.bounds = tuple((k, n, o, tuple(steps[d] for d in kept)) for k, n, o, steps in bounds)
    made.axes = tuple(axes[d] for d in kept)
    return made


def _no_tile(tile: Tile) -> Exception:
    said = f"the index of {tile.name} walks partitions in a dimension that is not the first"
    hint = "partitions: nl.arange(p)[:, None]; free elements: nl.arange(f)[None, :]"
    return wrong_shape("NCC316", said, hint)


def _indices(
    tile: Tile, given: tuple[Any, ...]
) -> tuple[list[Index], list[tuple[int, Tile, tuple[int, int]]]]:
    """An affine index for each dimension, and what the machine adds to it."""
    static = any(isinstance(one, Index | RuntimeIndex) for one in given)
    slices = [k for k, one in enumerate(given) if isinstance(one, slice | DynSlice)]
    rows = any(isinstance(one, TensorBase) and one.size > 1 for one in given)
    if static and slices:
        said = f"an index of {tile.name} mixes index tensors and slices"
        raise wrong_type("NCC313", said, MIXED)
    kept = [0] if tile.row and 0 not in slices and slices else []
    order = sorted([*kept, *slices])
    first = 1 if rows and slices else 0
    rank = len(order) + first
    if tile.row and order and rank < 2:
        rank = 2
    found: list[Index] = []
    runtime: list[tuple[int, Tile, tuple[int, int]]] = []
    for k, one in enumerate(given):
        constant = Index((), (), 0, ())
        if k in order:
            start, count, step = _steps(tile, k, one)
            place = first + order.index(k)
            form = tuple(count if d == place else 1 for d in range(rank))
            steps = tuple(step if d == place else 0 for d in range(rank))
            found.append(Index(form, steps, start, (NO_AXES,) * rank))
        elif isinstance(one, Index):
            if one.ndim < 2 and one.size > 1:
                said = f"an index of {tile.name} is nl.arange of one dimension"
                hint = "give it its place: nl.arange(n)[:, None] or nl.arange(n)[None, :]"
                raise wrong_shape("NCC370", said, hint)
            found.append(one)
        elif isinstance(one, RuntimeIndex):
            found.append(one.index)
            runtime.append((k, one.tile, one.index.reach()))
        elif isinstance(one, Tile):
            found.append(constant)
            runtime.append((k, one, (0, 0)))
        else:
            number = whole(one)
            if number is None:
                said = f"{tile.name} cannot be indexed with {one!r:.60}"
                raise wrong_type("NCC313", said, "an int, a slice, nl.ds or an index tensor")
            found.append(constant + (number + tile.shape[k] if number < 0 else number))
    return found, runtime


def _steps(tile: Tile, k: int, one: Any) -> tuple[int, int, int]:
    """Start, count and step of a slice that may end behind its dimension."""
    if isinstance(one, DynSlice):
        start = whole_number(one.start, "nl.ds: the start")
        return start, whole_number(one.size, "nl.ds: the size"), 1
    if not isinstance(one, slice):
        return whole_number(one, f"an index of {tile.name}"), 1, 1
    n = tile.shape[k]
    first, last, by = bounds_of(one)
    start, stop = whole(first), whole(last)
    step = 1 if by is None else whole_number(by, "a step")
    start = 0 if start is None else start + n if start < 0 else start
    stop = n if stop is None else stop + n if stop < 0 else stop
    return start, len(range(start, stop, step)), step


def _move(tile: Tile, k: int, source: Tile, reach: tuple[int, int], strides: list[int]) -> Any:
    _, high = reach
    if source.size == 1:
        if k == 0 and tile.row:
            said = f"dimension 0 of {tile.name}, its partitions, at a run-time index"
            raise invalid("NCC322", said, "move the rows by nl.load from HBM")
        return Scalar(scalar_source(source), tile.strides[k], tile.shape[k] - high)
    if tile.row:
        said = f"{tile.name} is on chip, and one index for each row chooses in HBM only"
        raise invalid("NCC322", said, "nl.gather_flattened, or nl.load from HBM")
    if source.size != source.shape[0]:
        said = f"the row indices {source.name} have the shape {source.shape}"
        raise wrong_shape("NCC322", said, "one index a row: (rows, 1)")
    if strides and strides[0]:
        said = f"the rows of {tile.name} are walked by an index tile and by an index tensor"
        raise wrong_shape("NCC322", said, "the index tile alone chooses the rows")
    access, _ = vector_source(source)
    return Rows(access, tile.strides[k], tile.shape[k] - high)
