"""The moving operand's columns in panels: what one load brings, and the tiles inside it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import attrs

from ncc.ir.affine import Affine
from ncc.ir.penguin import Axis, axis_index
from ncc.ir.tiling import Walk, most, outer_of, tail

Trips = tuple[tuple[str, int], ...]
Where = Mapping[str, Affine]


@attrs.frozen
class Panel:
    """`loops` run over panels of one width, `local` over the tiles of a panel.

    `wide` are the axes of the whole panel and `wide_where` puts the moving axes in terms of them;
    `tiles` and `tile_where` do the same for one tile; `inside` says where a tile lies in its panel,
    one sum for each axis of `wide`.
    """

    loops: Trips
    local: Trips
    wide: tuple[Axis, ...]
    wide_where: Where
    tiles: tuple[Axis, ...]
    tile_where: Where
    inside: tuple[Affine, ...]


def panels(walk: Walk, columns: int) -> Iterator[Panel]:
    """The panels along the innermost moving loop, `columns` tiles each.

    The last one may be narrower. It stands apart, so that the width of a panel is always a number:
    what is cut out of a panel again (as a PE transpose does) never comes out empty.
    """
    if not walk.loops:
        inside = tuple(axis_index(a.name) for a in walk.tiles)
        yield Panel((), (), walk.tiles, walk.where, walk.tiles, walk.where, inside)
        return
    step = walk.loops[-1]
    width = min(max(columns, 1) * step.step, step.extent)
    full, rest = divmod(step.extent, width)
    loop = f"{step.axis}_p"
    if full > 1:
        yield _panel(walk, ((loop, full),), axis_index(loop).times(width), width)
    else:
        yield _panel(walk, (), Affine(), width)
    if rest:
        yield _panel(walk, (), Affine(full * width), rest)


def _panel(walk: Walk, loops: Trips, base: Affine, width: int) -> Panel:
    step = walk.loops[-1]
    axis, loop, broad = step.axis, outer_of(step.axis), f"{step.axis}_w"
    split = step.loop == loop
    trips = -(-width // step.step)
    local: Trips = ((loop, trips),) if trips > 1 else ()
    here = axis_index(loop).times(step.step) if local else Affine()
    faster = walk.tiles[1:] if split else walk.tiles
    tiles = faster
    if split:
        inner = walk.tiles[0].name
        tiles = (Axis(inner, tail(width, step.step, loop) if local else width), *faster)
        here = here.plus(axis_index(inner))
    same = {name: at for name, at in walk.where.items() if name != axis}
    return Panel(
        loops,
        local,
        (Axis(broad, width), *faster),
        {**same, axis: base.plus(axis_index(broad))},
        tiles,
        {**same, axis: base.plus(here)},
        (here, *(axis_index(a.name) for a in faster)),
    )


def full(axes: tuple[Axis, ...]) -> tuple[Axis, ...]:
    """The same axes, each as long as in a full tile."""
    return tuple(Axis(a.name, most(a.extent)) for a in axes)
