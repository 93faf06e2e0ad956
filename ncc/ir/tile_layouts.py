"""Where a whole tensor lies in SBUF, and how a tile of it is reached there.

The dimensions on the partitions are cut like any partition list: what the cut leaves outside
chooses one of the tensor's blocks, what it leaves inside is the partition. All other dimensions lie
inside a partition, row-major. A reader reaches a tile directly when it has the same dimensions on
its partitions and cuts them at the same places; any other reader is a `Misfit`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import attrs

from ncc.ir.affine import Affine, Index
from ncc.ir.penguin import Axis, Cut, View
from ncc.ir.tiling import inner_of, most, outer_of, radix, size


class Misfit(Exception):
    """A tensor that cannot be read where it lies: it must go through DRAM."""

    def __init__(self, tensor: str) -> None:
        super().__init__(tensor)
        self.tensor = tensor


@attrs.frozen
class Layout:
    """`outer`: (dimension, elements a block) of each block index; `inner`: (dimension, extent) of
    the partition index, slowest first; `free`: the dimensions inside a partition."""

    tensor: str
    shape: tuple[int, ...]
    outer: tuple[tuple[int, int], ...]
    inner: tuple[tuple[int, int], ...]
    free: tuple[int, ...]

    @property
    def storage(self) -> tuple[int, ...]:
        """The shape in SBUF: blocks, partitions, the rest."""
        blocks = [-(-self.shape[dim] // step) for dim, step in self.outer]
        partitions = math.prod(extent for _, extent in self.inner)
        return (*blocks, partitions, *(self.shape[d] for d in self.free))


def layout(view: View, shape: tuple[int, ...], cut: Cut) -> Layout:
    """The layout of a tensor that is written through `view` by an op with this partition cut."""
    dims = {i.names()[0]: d for d, i in enumerate(view.index) if i.names()}
    split = bool(cut.axis) and shape[dims[cut.axis]] > cut.tile
    outer: list[tuple[int, int]] = []
    for name in cut.loops:
        if cut.axis and name == outer_of(cut.axis):
            outer += [(dims[cut.axis], cut.tile)] if split else []
        elif name in dims:
            outer.append((dims[name], 1))
    inner: list[tuple[int, int]] = []
    for name in cut.tiles:
        if cut.axis and name == inner_of(cut.axis):
            dim = dims[cut.axis]
            inner.append((dim, min(cut.tile, shape[dim])))
        elif name in dims:
            inner.append((dims[name], shape[dims[name]]))
    taken = {dim for dim, _ in (*outer, *inner)}
    free = tuple(d for d in range(len(shape)) if d not in taken)
    return Layout(view.tensor, shape, tuple(outer), tuple(inner), free)


def locate(lay: Layout, index: Sequence[Affine], par: Sequence[Axis], free: Sequence[Axis]) -> View:
    """The tile of a tensor in SBUF whose elements `index` gives; Misfit when it is not one there.

    `index` has one sum a dimension, over loop variables and the axes of the tile.
    """
    single = {a.name for a in (*par, *free) if most(a.extent) == 1}
    walked = {a.name for a in par} - single
    inside = walked | {a.name for a in free}
    index = [Affine(i.const, tuple(t for t in i.terms if t[0] not in single)) for i in index]
    parts: list[Index] = []
    digits = dict(lay.inner)
    within: dict[int, Affine] = {}
    for dim, step in lay.outer:
        outer, within[dim] = _parted(index[dim], inside)
        if any(c % step for c in (outer.const, *(c for _, c in outer.terms))) or (
            dim not in digits and within[dim].terms
        ):
            raise Misfit(lay.tensor)
        parts.append(Affine(outer.const // step, tuple((n, c // step) for n, c in outer.terms)))
    partition, place = Affine(), 1
    for dim, extent in reversed(lay.inner):
        partition = partition.plus(within.get(dim, index[dim]), place)
        place *= extent
    rest = [index[dim] for dim in lay.free]
    tiles = [a for a in par if a.name in walked]
    if (
        partition != radix(tiles)
        or size(tiles) > place
        or any(name in walked for i in rest for name in i.names())
    ):
        raise Misfit(lay.tensor)
    return View(lay.tensor, (*parts, partition, *rest))


def _parted(index: Affine, inside: set[str]) -> tuple[Affine, Affine]:
    """The part of a sum that loops give, and the part that the tile's own axes give."""
    outer = Affine(index.const, tuple(t for t in index.terms if t[0] not in inside))
    return outer, Affine(0, tuple(t for t in index.terms if t[0] in inside))
