"""How tile programs are built: sites, buffers, and the ways in which an operand gets on chip.

A `Site` is a place in the loops where statements go, a `Buffer` a tile's room in SBUF.
`Builder.fill` brings a tile of any tensor into a buffer: a load from DRAM, a transpose on the way,
a computation of a value that exists only tile by tile, or a copy of what is on chip already.
`Builder.reach` fills nothing where the tile can be read in place.
"""

from __future__ import annotations

import math
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager

import attrs

from ncc.ir.affine import Affine, Index, Mod
from ncc.ir.core import NOWHERE, Origin
from ncc.ir.data import size_of
from ncc.ir.nests import Plan
from ncc.ir.penguin import (
    Axis,
    ElementwiseOp,
    Function,
    Loop,
    Operand,
    Statement,
    Tensor,
    TensorContractOp,
    TensorOp,
    TensorTransposeOp,
    TileCopyOp,
    TileElementwiseOp,
    TileTransposeOp,
    View,
)
from ncc.ir.penguin_print import kernels_of
from ncc.ir.tile_layouts import Layout, Misfit, locate
from ncc.ir.tiling import (
    compute_cut,
    counter,
    cut_at,
    most,
    put,
    put_sum,
    radix,
    size,
    walk,
)
from ncc.target import Target

Trips = tuple[tuple[str, int], ...]
Where = Mapping[str, Affine]
Axes = tuple[Axis, ...]


@attrs.define
class Site:
    """A place in the loops: `trips` are all loops around it, `accumulates` when one of them adds up
    a result that is not complete yet."""

    trips: Trips = ()
    accumulates: bool = False
    body: list[Statement] = attrs.field(factory=list[Statement])

    @contextmanager
    def loops(self, trips: Trips, kind: str, origin: Origin = NOWHERE) -> Generator[Site]:
        """The place inside more loops, slowest first; they are put here when it is left."""
        inside = Site(
            (*self.trips, *trips), self.accumulates or (bool(trips) and kind == "accumulate")
        )
        yield inside
        body = tuple(inside.body)
        for name, count in reversed(trips):
            body = (Loop(name, count, kind, body, origin),)
        self.body += body

    @property
    def visits(self) -> int:
        """How often the place is passed."""
        return math.prod(count for _, count in self.trips)


@attrs.frozen
class Buffer:
    """A tile's room on chip; `ring` chooses among several that take turns."""

    tensor: str
    ring: tuple[Index, ...]

    def view(self, *index: Index) -> View:
        return View(self.tensor, (*self.ring, *index))

    def tile(self, par: Axes, free: Axes) -> View:
        """The whole of a buffer that was made for these axes."""
        inner = [Affine(0, ((a.name, 1),)) for a in free] or [Affine()]
        return self.view(radix(par), *inner)


class Builder:
    """One function's tiles in the making."""

    def __init__(self, func: Function, target: Target, plan: Plan) -> None:
        self.target, self.plan = target, plan
        self.tensors = {t.name: t for t in func.tensors}
        self.layouts: dict[str, Layout] = {}
        self.buffers: list[Tensor] = []
        self.taken = set(self.tensors) - set(plan.lazy)
        self.taken |= {a.name for op in func.body if isinstance(op, TensorOp) for a in op.axes}
        self.op_names = {one.name for one in kernels_of(func)}
        self.ring = 1  # turns that a tile's buffers take in the nest at hand

    def name(self, base: str, taken: set[str]) -> str:
        """`base`, or the first of base_1, base_2, ... that is free."""
        name, number = base, 1
        while name in taken:
            name, number = f"{base}_{number}", number + 1
        taken.add(name)
        return name

    def op(self, base: str) -> str:
        return self.name(base, self.op_names)

    def tile_name(self, tensor: str) -> str:
        """The name of a tensor's tiles: its own, if it exists in tiles only."""
        return tensor if tensor in self.plan.lazy else f"{tensor}_t"

    def bytes_of(self, tensor: str) -> int:
        """Bytes of an element on chip: a type that the target lacks will be widened to two."""
        dtype = self.tensors[tensor].dtype
        missing = dtype == self.target.lacked_e4m3
        return 2 if missing else size_of(dtype)

    def buffer(
        self,
        base: str,
        like: str,
        site: Site,
        par: Axes,
        free: Axes,
        ring: int,
        blocks: tuple[int, ...] = (),
    ) -> Buffer:
        """Room for tiles of tensor `like`, filled anew at each visit of a site."""
        name = self.name(base, self.taken)
        turns = min(ring, site.visits)
        shape = (size(par), *([most(a.extent) for a in free] or [1]))
        rings = (turns,) if turns > 1 else ()
        source = self.tensors[like]
        self.buffers.append(
            Tensor(
                name,
                source.dtype,
                (*rings, *blocks, *shape),
                home="sbuf",
                blocks=len(rings) + len(blocks),
                ring=site.visits > 1,
                origin=source.origin.by("emit-tiles"),
            )
        )
        return Buffer(name, (Mod(counter(site.trips), turns),) if turns > 1 else ())

    # ---- getting a tile on chip ------------------------------------------------------------------

    def reach(self, site: Site, view: View, where: Where, par: Axes, free: Axes) -> View:
        """The tile of a tensor, read in place where that is possible."""
        index = [put_sum(i, where) for i in sums(view)]
        if view.tensor in self.layouts:
            return locate(self.layouts[view.tensor], index, par, free)
        used = {name for i in index for name in i.names()}
        free = free if any(a.name in used for a in free) else ()
        room = self.buffer(self.tile_name(view.tensor), view.tensor, site, par, free, self.ring)
        self.fill(site, room.tile(par, free), view, where, par, free)
        return room.tile(par, free)

    def fill(self, site: Site, dst: View, view: View, where: Where, par: Axes, free: Axes) -> None:
        """Bring the tile of a tensor to `dst`."""
        index = tuple(put_sum(i, where) for i in sums(view))
        origin = self.tensors[view.tensor].origin.by("emit-tiles")
        if view.tensor in self.plan.lazy:
            self.make(site, dst, self.plan.lazy[view.tensor], index, par, free)
        elif view.tensor in self.layouts:
            src = locate(self.layouts[view.tensor], index, par, free)
            name = self.op(f"copy_{view.tensor}")
            site.body.append(TileElementwiseOp(name, dst, par, free, "copy", (src,), origin=origin))
        else:
            src = View(view.tensor, index)
            name = self.op(f"load_{view.tensor}")
            site.body.append(TileCopyOp(name, dst, par, free, src, origin=origin))

    def make(
        self, site: Site, dst: View, op: TensorOp, index: Sequence[Affine], par: Axes, free: Axes
    ) -> None:
        """Do an op on the one tile of its result that `index` names."""
        where = {i.names()[0]: at for i, at in zip(op.dst.index, index, strict=True) if i.names()}
        match op:
            case ElementwiseOp():
                srcs = [
                    self.reach(site, s, where, par, free) if isinstance(s, View) else s
                    for s in op.srcs
                ]
                self.compute(site, op, dst, srcs, par, free)
            case TensorTransposeOp(src=src, kind="element"):
                self.fill(site, dst, src, where, par, free)
            case TensorTransposeOp(src=src, kind="dma") if self.rows_in_dram(src, where, par, free):
                at = View(src.tensor, tuple(put_sum(i, where) for i in sums(src)))
                name, origin = self.op(op.name), op.origin.by("emit-tiles")
                site.body.append(
                    TileTransposeOp(name, dst, par, free, at, kind="dma", origin=origin)
                )
            case TensorTransposeOp():
                self.turn(site, dst, op, where, par, free)
            case TensorContractOp():
                raise Misfit(op.dst.tensor)

    def compute(
        self,
        site: Site,
        op: ElementwiseOp,
        dst: View,
        srcs: Sequence[Operand],
        par: Axes,
        free: Axes,
    ) -> None:
        name, origin = self.op(op.name), op.origin.by("emit-tiles")
        site.body.append(TileElementwiseOp(name, dst, par, free, op.op, tuple(srcs), origin=origin))

    def rows_in_dram(self, src: View, where: Where, par: Axes, free: Axes) -> bool:
        """What a DMA can transpose: rows in DRAM, one axis over rows and one along them."""
        if src.tensor in self.plan.lazy or src.tensor in self.layouts:
            return False
        long = [[a.name for a in axes if most(a.extent) > 1] for axes in (par, free)]
        index = [put_sum(i, where) for i in sums(src)]
        if self.bytes_of(src.tensor) != 2 or len(long[0]) != 1 or len(long[1]) > 1:
            return False
        steps = [dict(i.terms).get(long[0][0], 0) for i in index]
        return steps[-1] == 1 and not any(steps[:-1])

    def turn(
        self, site: Site, dst: View, op: TensorTransposeOp, where: Where, par: Axes, free: Axes
    ) -> None:
        """A transpose by the PE array: what will lie inside a partition is loaded over partitions,
        at most 128 of it at a time."""
        if site.accumulates and self.target.psum_banks == 1:
            raise Misfit(op.dst.tensor)  # the transpose would need the bank that is being filled
        sizes = {a.name: most(a.extent) for a in free}
        fastest = [sizes[a.name] for a in reversed(free)]
        at, tile = compute_cut(fastest, self.target.partitions)
        if at is not None and any(not isinstance(a.extent, int) for a in free):
            raise Misfit(op.dst.tensor)
        chunks = walk(cut_at("free", [(a.name, sizes[a.name]) for a in free], at, tile), sizes)
        rows = free if at is None else chunks.tiles
        there = {name: put_sum(i, chunks.where) for name, i in where.items()}
        dst = View(dst.tensor, tuple(put(i, chunks.where) for i in dst.index))
        origin = op.origin.by("emit-tiles")
        with site.loops(chunks.trips, "parallel", origin) as inside:
            src = self.reach_rows(inside, op.src, there, rows, par)
            name = self.op(op.name)
            inside.body.append(TileTransposeOp(name, dst, par, rows, src, kind="pe", origin=origin))

    def reach_rows(self, site: Site, view: View, where: Where, par: Axes, free: Axes) -> View:
        """As `reach`, with room for every free axis whether the tensor has it or not."""
        if view.tensor in self.layouts:
            return self.reach(site, view, where, par, free)
        room = self.buffer(f"{view.tensor}_n", view.tensor, site, par, free, self.ring)
        self.fill(site, room.tile(par, free), view, where, par, free)
        return room.tile(par, free)


def sums(view: View) -> list[Affine]:
    """The index of a whole-tensor view: one sum a dimension."""
    return [i for i in view.index if isinstance(i, Affine)]
