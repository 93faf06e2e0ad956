"""What happens to one result tile: elementwise ops on it, one after the other, then the stores."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import attrs

from ncc.ir.affine import Affine, Index
from ncc.ir.penguin import (
    Axis,
    ElementwiseOp,
    Operand,
    TensorOp,
    TileCopyOp,
    TileElementwiseOp,
    View,
)
from ncc.ir.tile_builder import Buffer, Builder, Site, sums
from ncc.ir.tile_layouts import locate
from ncc.ir.tiling import put_sum, radix


@attrs.frozen
class Hoist:
    """A place before this tile where an operand can be loaded once for several tiles.

    An operand qualifies when its index has none of the names in `varies`; it is then loaded over
    `par` and `free` with the result's dimensions at `index`, and a tile of it lies at `inside`.
    `room` bytes are left for each such buffer.
    """

    site: Site
    varies: frozenset[str]
    par: tuple[Axis, ...]
    free: tuple[Axis, ...]
    index: tuple[Affine, ...]
    inside: tuple[Index, ...]
    ring: int
    room: int


class Epilogue:
    """The work on one tile: `index` says, for each dimension of the result, where the tile is."""

    def __init__(
        self,
        build: Builder,
        site: Site,
        par: tuple[Axis, ...],
        free: tuple[Axis, ...],
        index: tuple[Affine, ...],
        hoists: Sequence[Hoist] = (),
    ) -> None:
        self.build, self.site, self.par, self.free = build, site, par, free
        self.index, self.hoists = index, hoists
        self.loaded: dict[tuple[str, tuple[Affine, ...]], View] = {}

    def run(self, ops: Iterable[TensorOp], tiles: Mapping[str, View]) -> None:
        """Do the ops in order; `tiles` are results that this tile has already."""
        here = dict(tiles)
        for name in here:
            here[name] = self.settle(name, here[name])
        for op in ops:
            name = op.dst.tensor
            if isinstance(op, ElementwiseOp):
                srcs = [self.operand(s, op, here) for s in op.srcs]
                if same := self.only_moves(op, srcs):
                    here[name] = self.settle(name, same)
                    continue
                dst = self.target(name)
                self.build.compute(self.site, op, dst, srcs, self.par, self.free)
            else:
                dst = self.target(name)
                self.build.make(self.site, dst, op, self.index, self.par, self.free)
            here[name] = self.store(name, dst)

    def operand(self, source: Operand, op: ElementwiseOp, here: Mapping[str, View]) -> Operand:
        """The tile of an operand: at hand, in SBUF as a whole, or to be loaded."""
        if not isinstance(source, View):
            return source
        if source.tensor in here:
            return here[source.tensor]
        where = axes_at(op, self.index)
        key = (source.tensor, tuple(put_sum(i, where) for i in sums(source)))
        if key not in self.loaded:
            self.loaded[key] = self.load(source, op, key[1])
        return self.loaded[key]

    def load(self, source: View, op: ElementwiseOp, index: tuple[Affine, ...]) -> View:
        used = {name for i in index for name in i.names()}
        for hoist in self.hoists:
            if source.tensor not in self.build.layouts and not used & hoist.varies:
                buffer = self.hoisted(source, op, hoist)
                if buffer:
                    return buffer.view(radix(self.par), *(hoist.inside or (Affine(),)))
        return self.build.reach(self.site, source, axes_at(op, self.index), self.par, self.free)

    def hoisted(self, source: View, op: ElementwiseOp, hoist: Hoist) -> Buffer | None:
        width = self.build.bytes_of(source.tensor)
        for axis in hoist.free:
            width *= axis.extent if isinstance(axis.extent, int) else axis.extent.most
        if width * hoist.ring > hoist.room:
            return None
        base, where = self.build.tile_name(source.tensor), axes_at(op, hoist.index)
        buffer = self.build.buffer(
            base, source.tensor, hoist.site, hoist.par, hoist.free, hoist.ring
        )
        dst = buffer.tile(hoist.par, hoist.free)
        self.build.fill(hoist.site, dst, source, where, hoist.par, hoist.free)
        return buffer

    def only_moves(self, op: ElementwiseOp, srcs: Sequence[Operand]) -> View | None:
        """The source of a copy that changes nothing, so that no engine need touch it."""
        tensors = self.build.tensors
        match op.op, op.srcs, srcs:
            case "copy", (View() as whole,), [View() as tile]:
                walked = {a.name for a in self.free}
                full = not walked or any(n in walked for i in tile.index for n in i.names())
                same = tensors[whole.tensor].dtype == tensors[op.dst.tensor].dtype
                return tile if same and full else None
            case _:
                return None

    def target(self, name: str) -> View:
        """Where an op's result tile goes: its place in SBUF, or a buffer of its own."""
        build = self.build
        if name in build.layouts:
            return locate(build.layouts[name], self.index, self.par, self.free)
        room = build.buffer(f"{name}_t", name, self.site, self.par, self.free, build.ring)
        return room.tile(self.par, self.free)

    def settle(self, name: str, tile: View) -> View:
        """A tile that is on chip already becomes the result `name`."""
        if name not in self.build.layouts:
            return self.store(name, tile)
        dst = self.target(name)
        op, origin = self.build.op(f"copy_{name}"), self.build.tensors[name].origin.by("emit-tiles")
        self.site.body.append(
            TileElementwiseOp(op, dst, self.par, self.free, "copy", (tile,), origin=origin)
        )
        return dst

    def store(self, name: str, tile: View) -> View:
        """Write the tile to DRAM if that is where the whole tensor lives."""
        plan, tensors = self.build.plan, self.build.tensors
        if name not in plan.kept and name not in self.build.layouts:
            op, dst = self.build.op(f"store_{name}"), View(name, self.index)
            origin = tensors[name].origin.by("emit-tiles")
            self.site.body.append(TileCopyOp(op, dst, self.par, self.free, tile, origin=origin))
        return tile


def axes_at(op: TensorOp, index: Sequence[Affine]) -> dict[str, Affine]:
    """Where an op's axes are when its result's dimensions are at `index`."""
    return {i.names()[0]: at for i, at in zip(op.dst.index, index, strict=True) if i.names()}
