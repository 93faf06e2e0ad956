"""The loop nest of one contraction and of what is done to its result tiles.

From the outside in: batch axes, slower moving axes, panels, rows, the tiles of a panel, and the
contraction itself. What `ncc.ir.tile_reuse` decided says at which of these places the operands are
loaded.
"""

from __future__ import annotations

from ncc.ir.affine import Affine
from ncc.ir.nests import Nest
from ncc.ir.penguin import (
    Axis,
    MatMulOp,
    Statement,
    TensorContractOp,
    TensorTransposeOp,
    View,
)
from ncc.ir.penguin_views import sizes_of, views_read
from ncc.ir.tile_builder import Buffer, Builder, Site, Trips, Where, sums
from ncc.ir.tile_epilogue import Epilogue, Hoist
from ncc.ir.tile_panels import Panel, full, panels
from ncc.ir.tile_reuse import Needs, Reuse, decide
from ncc.ir.tiling import counter, put_sum, radix, size, walk


class ContractNest:
    """One contraction's loops in the making: `k`, `rows` and `columns` are its three walks."""

    def __init__(self, build: Builder, nest: Nest, op: TensorContractOp) -> None:
        self.build, self.nest, self.op = build, nest, op
        sizes = sizes_of(op)
        cuts = {cut.role: walk(cut, sizes) for cut in op.cuts}
        self.k, self.rows, self.columns = cuts["contract"], cuts["stationary"], cuts["moving"]
        self.batch: Trips = tuple((name, sizes[name]) for name in op.batch_axes if sizes[name] > 1)
        self.fixed: Where = {
            name: Affine(0, ((name, 1),)) if sizes[name] > 1 else Affine() for name in op.batch_axes
        }
        self.stationary, self.moving = (op.rhs, op.lhs) if op.swap_operands else (op.lhs, op.rhs)
        self.origin = op.origin.by("emit-tiles")
        self.reuse = self.decide()
        build.ring = self.reuse.tile_ring

    def in_place(self, view: View) -> bool:
        return view.tensor in self.build.layouts

    def decide(self) -> Reuse:
        build, target = self.build, self.build.target
        width = size(self.columns.tiles)
        resident = sum(
            build.bytes_of(name) * blocks_and_free(place.storage, len(place.outer))
            for name, place in build.layouts.items()
        )
        extra = sum(1 + len(views_read(op)) for op in self.nest.ops[1:])
        both = (self.moving, self.stationary)
        moved, held = (0 if self.in_place(v) else build.bytes_of(v.tensor) for v in both)
        turned = [self.turned(v) for v in both]
        return decide(
            Needs(
                room=max(target.sbuf_usable - resident, target.sbuf_usable // 4),
                steps=self.k.count,
                rows=self.rows.count,
                columns=self.columns.loops[-1].trips if self.columns.loops else 1,
                again=len(self.columns.loops) > 1,
                stationary=held * size(self.rows.tiles),
                moving=moved * width,
                tile=(2 + extra) * width * 4 + sum(turned) * 2 * target.partitions * 4,
                banks=target.psum_banks,
                turns=any(turned),
            )
        )

    def turned(self, view: View) -> bool:
        """A PE transpose stands between DRAM and the operand."""
        op = self.build.plan.lazy.get(view.tensor)
        if not isinstance(op, TensorTransposeOp) or op.kind == "element":
            return False
        free = self.columns.tiles if view is self.moving else self.rows.tiles
        return op.kind == "pe" or len(self.k.tiles) > 1 or len(free) > 1

    # ---- the loops -------------------------------------------------------------------------------

    def statements(self) -> list[Statement]:
        top = Site()
        with top.loops(self.batch, "parallel", self.origin) as site:
            kept = self.load_all_rows(site) if self.reuse.rows == "once" else None
            slower = self.columns.trips[:-1]
            with site.loops(slower, "parallel", self.origin) as inside:
                for panel in panels(self.columns, self.reuse.panel):
                    with inside.loops(panel.loops, "parallel", self.origin) as at:
                        self.panel(at, panel, kept)
        return top.body

    def panel(self, site: Site, panel: Panel, kept: Buffer | None) -> None:
        """One panel: load it, and let all rows pass by."""
        reuse = self.reuse
        columns = rows = None
        if reuse.panel and not self.in_place(self.moving):
            columns = self.room(site, self.moving, panel.wide, reuse.panel_ring)
        if reuse.rows == "row" and not self.rows.loops and not self.in_place(self.stationary):
            rows = self.room(site, self.stationary, self.rows.tiles, reuse.row_ring)
        if columns or rows:  # one loop loads both, so that PE can start after the first step
            with site.loops(self.k.trips, "parallel", self.origin) as step:
                if rows:
                    self.load_row(step, rows)
                if columns:
                    where = {**self.fixed, **self.k.where, **panel.wide_where}
                    dst = self.step_of(columns, panel.wide)
                    self.build.fill(step, dst, self.moving, where, self.k.tiles, panel.wide)
        with site.loops(self.rows.trips, "parallel", self.origin) as row:
            if reuse.rows == "row" and not rows and not self.in_place(self.stationary):
                rows = self.room(row, self.stationary, self.rows.tiles, reuse.row_ring)
                with row.loops(self.k.trips, "parallel", self.origin) as step:
                    self.load_row(step, rows)
            hoists = (self.row_hoist(row, panel), self.panel_hoist(site, panel))
            with row.loops(panel.local, "parallel", self.origin) as tile:
                acc = self.accumulate(tile, panel, rows, columns, kept)
                index = self.index_at(panel.tile_where)
                Epilogue(self.build, tile, self.rows.tiles, panel.tiles, index, hoists).run(
                    self.nest.ops[1:], {self.op.dst.tensor: acc}
                )

    def accumulate(
        self,
        site: Site,
        panel: Panel,
        rows: Buffer | None,
        columns: Buffer | None,
        kept: Buffer | None,
    ) -> View:
        """All steps of the contraction into one result tile."""
        op, build, k = self.op, self.build, self.k
        name = op.dst.tensor
        par, free = self.rows.tiles, panel.tiles
        room = build.buffer(f"{name}_acc", name, site, par, free, self.reuse.acc_ring)
        where = {**self.fixed, **k.where, **self.rows.where, **panel.tile_where}
        with site.loops(k.trips, "accumulate", self.origin) as step:
            if kept:
                number = (counter(self.rows.trips),) if self.rows.count > 1 else ()
                stationary = self.step_of(kept, par, number)
            elif rows:
                stationary = self.step_of(rows, par)
            else:
                stationary = self.load_step(step, self.stationary, where, par, self.reuse.row_ring)
            if columns:
                moving = columns.view(*self.block(), radix(k.tiles), *(panel.inside or (Affine(),)))
            else:
                moving = self.load_step(step, self.moving, where, free, self.reuse.panel_ring)
            step.body.append(
                MatMulOp(
                    build.op(op.name),
                    room.tile(par, free),
                    par,
                    free,
                    stationary,
                    moving,
                    k.tiles,
                    tuple(loop for loop, _ in k.trips),
                    origin=self.origin,
                )
            )
        return room.tile(par, free)

    # ---- loads -----------------------------------------------------------------------------------

    def room(self, site: Site, view: View, free: tuple[Axis, ...], ring: int) -> Buffer:
        """Room for all steps of an operand, one block a step."""
        name = view.tensor
        blocks = (self.k.count,) if self.k.count > 1 else ()
        base = self.build.tile_name(name)
        return self.build.buffer(base, name, site, self.k.tiles, free, ring, blocks)

    def block(self) -> tuple[Affine, ...]:
        return (counter(self.k.trips),) if self.k.count > 1 else ()

    def step_of(
        self, room: Buffer, free: tuple[Axis, ...], number: tuple[Affine, ...] = ()
    ) -> View:
        """The tile of the step at hand."""
        inner = [Affine(0, ((a.name, 1),)) for a in free] or [Affine()]
        return room.view(*number, *self.block(), radix(self.k.tiles), *inner)

    def load_row(self, step: Site, room: Buffer, number: tuple[Affine, ...] = ()) -> None:
        where = {**self.fixed, **self.k.where, **self.rows.where}
        dst = self.step_of(room, self.rows.tiles, number)
        self.build.fill(step, dst, self.stationary, where, self.k.tiles, self.rows.tiles)

    def load_all_rows(self, site: Site) -> Buffer | None:
        """The stationary tiles of every row, once and for all panels."""
        if self.in_place(self.stationary):
            return None
        name, rows, k = self.stationary.tensor, self.rows, self.k
        blocks = tuple(count for count in (rows.count, k.count) if count > 1)
        base, ring = self.build.tile_name(name), self.reuse.row_ring
        room = self.build.buffer(base, name, site, k.tiles, rows.tiles, ring, blocks)
        number = (counter(self.rows.trips),) if self.rows.count > 1 else ()
        with site.loops((*self.rows.trips, *self.k.trips), "parallel", self.origin) as step:
            self.load_row(step, room, number)
        return room

    def load_step(
        self, step: Site, view: View, where: Where, free: tuple[Axis, ...], ring: int
    ) -> View:
        """One step of an operand, loaded inside the accumulation or read where it lies."""
        if self.in_place(view):
            return self.build.reach(step, view, where, self.k.tiles, free)
        name = view.tensor
        room = self.build.buffer(self.build.tile_name(name), name, step, self.k.tiles, free, ring)
        self.build.fill(step, room.tile(self.k.tiles, free), view, where, self.k.tiles, free)
        return room.tile(self.k.tiles, free)

    # ---- what the result's tiles share -----------------------------------------------------------

    def index_at(self, columns: Where) -> tuple[Affine, ...]:
        """Where a result tile is, one sum for each dimension of the result."""
        where = {**self.fixed, **self.rows.where, **columns}
        return tuple(put_sum(i, where) for i in sums(self.op.dst))

    def row_hoist(self, site: Site, panel: Panel) -> Hoist:
        """What does not vary along the columns is one column, loaded once a row."""
        varies = frozenset((*(n for n, _ in panel.local), *(a.name for a in panel.tiles)))
        return Hoist(
            site,
            varies,
            self.rows.tiles,
            (),
            self.index_at(panel.tile_where),
            (),
            self.reuse.tile_ring,
            max(self.reuse.wide, 64),
        )

    def panel_hoist(self, site: Site, panel: Panel) -> Hoist:
        """What does not vary over the rows is a row, sent to all partitions once a panel."""
        rows = (*(n for n, _ in self.rows.trips), *(a.name for a in self.rows.tiles))
        return Hoist(
            site,
            frozenset(rows),
            full(self.rows.tiles),
            panel.wide,
            self.index_at(panel.wide_where),
            panel.inside,
            self.reuse.tile_ring,
            self.reuse.wide,
        )


def blocks_and_free(storage: tuple[int, ...], blocks: int) -> int:
    """Elements a partition holds of a tensor with this shape in SBUF."""
    count = 1
    for at, extent in enumerate(storage):
        count *= 1 if at == blocks else extent
    return count
