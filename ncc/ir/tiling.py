"""The two primitives of tiling, and an axis list after its cut.

An axis list is cut where its product would exceed a budget: what is faster than the cut stays in
the tile, what is slower becomes loops. `compute_cut` finds the place, `cut_axes` cuts there. Both
take the fastest axis first, because a tile grows from the fastest axis outwards; a `Cut` stores the
slowest first, as loops nest, and `cut_list` turns one into the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import attrs

from ncc.ir.affine import Affine, Extent, Floor, Index, Least, Mod
from ncc.ir.penguin import Axis, Cut, TensorContractOp, TensorOp, axis_index
from ncc.target import Target

Sized = tuple[str, int]  # an axis by name and extent


def compute_cut(
    extents: Sequence[int], budget: int = 512, uniform: bool = False
) -> tuple[int | None, int | None]:
    """Where a list, fastest first, is cut: (axis, elements of it that stay in the tile).

    (None, None) when all of it fits; (axis, None) when the cut lies behind that axis, taken whole.
    `uniform` asks for tiles of one size.
    """
    within = 1
    for at, extent in enumerate(extents):
        if within * extent > budget:
            tile = budget // within
            if tile <= 1 and at > 0:
                return at - 1, None
            if uniform:
                tile = max(t for t in range(1, tile + 1) if extent % t == 0)
            return at, tile
        within *= extent
    return None, None


def cut_axes(
    axes: Sequence[Sized], at: int | None, tile: int | None, swap: bool = False
) -> tuple[list[Sized], list[Sized]]:
    """(loop axes, tile axes) of a list that is cut at `at`, all fastest first.

    `swap` keeps the outer part in the tile and loops over the inner one: reverse tiling.
    """
    axes = list(axes)
    if at is None:
        return [], axes
    if tile is None:
        return axes[at + 1 :], axes[: at + 1]
    name, extent = axes[at]
    outer, inner = (outer_of(name), -(-extent // tile)), (inner_of(name), tile)
    if swap:
        return [*axes[:at], inner], [outer, *axes[at + 1 :]]
    return [outer, *axes[at + 1 :]], [*axes[:at], inner]


def outer_of(axis: str) -> str:
    """The name of the loop over an axis's tiles."""
    return f"{axis}_o"


def inner_of(axis: str) -> str:
    """The name of the axis inside one tile."""
    return f"{axis}_i"


def cut_list(role: str, axes: Sequence[Sized], budget: int, uniform: bool = False) -> Cut:
    """The cut of an axis list, slowest first, at a budget of elements."""
    fastest = list(reversed(axes))
    return cut_at(role, axes, *compute_cut([n for _, n in fastest], budget, uniform))


def cut_at(role: str, axes: Sequence[Sized], at: int | None, tile: int | None) -> Cut:
    """The cut of an axis list, slowest first, where `compute_cut` said (it counts from the end)."""
    fastest = list(reversed(axes))
    loops, tiles = cut_axes(fastest, at, tile)
    names = [tuple(name for name, _ in reversed(part)) for part in (loops, tiles)]
    if at is None or tile is None:
        return Cut(role, names[0], names[1])
    return Cut(role, names[0], names[1], fastest[at][0], tile)


def free_budget(target: Target) -> int:
    """Elements that a tile may have inside a partition: one PSUM bank of fp32, and never so many
    that eight fp32 tiles do not fit into SBUF together."""
    fits = max(target.sbuf_usable // (8 * 4), 1)
    return min(target.moving_free, target.psum_bank_bytes // 4, 1 << (fits.bit_length() - 1))


# ---- the axis lists of a whole-tensor op ---------------------------------------------------------


def axes_written(op: TensorOp) -> tuple[str, ...]:
    """The axes of the result, in the order of its dimensions."""
    return tuple(name for index in op.dst.index for name in index.names())


def partition_of(op: TensorOp) -> tuple[str, ...]:
    """The axes on the result's partitions, slowest first: a contraction's stationary free axes."""
    if isinstance(op, TensorContractOp):
        return op.rhs_free_axes if op.swap_operands else op.lhs_free_axes
    return op.partition


# ---- an axis list after its cut ------------------------------------------------------------------


@attrs.frozen
class Step:
    """One loop of a cut list: it advances `axis` (of `extent` elements) by `step` a trip."""

    loop: str
    trips: int
    axis: str
    step: int
    extent: int


@attrs.frozen
class Walk:
    """How a cut list is walked: loops, the axes of one tile, both slowest first, and where each
    axis of the list stands in terms of them. A loop of one trip is left out."""

    loops: tuple[Step, ...]
    tiles: tuple[Axis, ...]
    where: Mapping[str, Affine]

    @property
    def trips(self) -> tuple[tuple[str, int], ...]:
        return tuple((step.loop, step.trips) for step in self.loops)

    @property
    def count(self) -> int:
        return math.prod(step.trips for step in self.loops)


def walk(cut: Cut, sizes: Mapping[str, int]) -> Walk:
    """The walk of a cut; `sizes` gives the extent of every axis of the op."""
    loops: list[Step] = []
    tiles: list[Axis] = []
    where: dict[str, Affine] = {}
    outer, inner = outer_of(cut.axis), inner_of(cut.axis)
    extent = sizes.get(cut.axis, 0)
    split = bool(cut.axis) and extent > cut.tile
    for name in cut.loops:
        if cut.axis and name == outer:
            if split:
                trips = -(-extent // cut.tile)
                loops.append(Step(outer, trips, cut.axis, cut.tile, extent))
        elif sizes[name] == 1:
            where[name] = Affine()
        else:
            loops.append(Step(name, sizes[name], name, 1, sizes[name]))
            where[name] = axis_index(name)
    for name in cut.tiles:
        if cut.axis and name == inner:
            tiles.append(Axis(inner, tail(extent, cut.tile, outer) if split else extent))
            base = axis_index(outer).times(cut.tile) if split else Affine()
            where[cut.axis] = base.plus(axis_index(inner))
        else:
            tiles.append(Axis(name, sizes[name]))
            where[name] = axis_index(name)
    return Walk(tuple(loops), tuple(tiles), where)


def tail(extent: int, tile: int, outer: str) -> Extent:
    """The extent of a tile: the last one may be shorter."""
    if extent % tile == 0:
        return tile
    return Least(tile, Affine(extent).plus(axis_index(outer), -tile))


def most(extent: Extent) -> int:
    """The extent of a full tile."""
    return extent if isinstance(extent, int) else extent.most


def size(axes: Sequence[Axis]) -> int:
    """Elements of a full tile over these axes."""
    return math.prod(most(a.extent) for a in axes)


def radix(axes: Sequence[Axis]) -> Affine:
    """The position in a tile as one number: the axes as digits, slowest first."""
    found, step = Affine(), 1
    for axis in reversed(axes):
        found = found.plus(axis_index(axis.name), step)
        step *= most(axis.extent)
    return found


def counter(trips: Sequence[tuple[str, int]]) -> Affine:
    """How many iterations came before this one, over nested loops (slowest first)."""
    found, step = Affine(), 1
    for name, count in reversed(trips):
        found = found.plus(axis_index(name), step)
        step *= count
    return found


def put(index: Index, values: Mapping[str, Affine]) -> Index:
    """The index with variables replaced by sums."""
    match index:
        case Affine():
            return put_sum(index, values)
        case Mod(of, by):
            return Mod(put_sum(of, values), by)
        case Floor(of, by):
            return Floor(put_sum(of, values), by)


def put_sum(of: Affine, values: Mapping[str, Affine]) -> Affine:
    """The sum with variables replaced by sums."""
    found = Affine(of.const)
    for name, factor in of.terms:
        found = found.plus(values.get(name) or axis_index(name), factor)
    return found


def put_extent(extent: Extent, values: Mapping[str, Affine]) -> Extent:
    """The extent with variables replaced by sums."""
    return extent if isinstance(extent, int) else Least(extent.most, put_sum(extent.of, values))
