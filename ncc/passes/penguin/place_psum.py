"""Put what the PE array writes into PSUM, and copy out of it what cannot be read there.

Before:
    from ncc.penguin import *
    with function("layer") as f:
        y = tensor("y", "float32", (70, 40), kind="output", home="dram")
        x_n = tensor("x_n", "float32", (70, 90), home="sbuf")
        x_t = tensor("x_t", "float32", (90, 70), home="sbuf")
        w_t = tensor("w_t", "float32", (90, 40), home="sbuf")
        y_acc = tensor("y_acc", "float32", (70, 40), home="sbuf")
        k, m, n = axis("k m n")
        TileTransposeOp("turn", x_t[k, m], par=axes(k=90), free=axes(m=70), src=x_n[m, k],
            kind="pe", engines=("PE",))
        MatMulOp("y", y_acc[m, n], par=axes(m=70), free=axes(n=40), stationary=x_t[k, m],
            moving=w_t[k, n], contract=axes(k=90), engines=("PE",))
        TileCopyOp("store_y", y[m, n], par=axes(m=70), free=axes(n=40), src=y_acc[m, n])

After:
    from ncc.penguin import *
    with function("layer") as f:
        y = tensor("y", "float32", (70, 40), kind="output", home="dram")
        x_n = tensor("x_n", "float32", (70, 90), home="sbuf")
        x_t = tensor("x_t", "float32", (90, 70), home="sbuf")
        w_t = tensor("w_t", "float32", (90, 40), home="sbuf")
        y_acc = tensor("y_acc", "float32", (70, 40), home="psum")
        x_p = tensor("x_p", "float32", (90, 70), home="psum")
        y_t = tensor("y_t", "float32", (70, 40), home="sbuf")
        k, m, n = axis("k m n")
        TileTransposeOp("turn", x_p[k, m], par=axes(k=90), free=axes(m=70), src=x_n[m, k],
            kind="pe", engines=("PE",))
        TensorCopyOp("evict_turn", x_t[k, m], par=axes(k=90), free=axes(m=70), src=x_p[k, m],
            engines=("DVE",))
        MatMulOp("y", y_acc[m, n], par=axes(m=70), free=axes(n=40), stationary=x_t[k, m],
            moving=w_t[k, n], contract=axes(k=90), engines=("PE",))
        TensorCopyOp("evict_y", y_t[m, n], par=axes(m=70), free=axes(n=40), src=y_acc[m, n],
            engines=("DVE",))
        TileCopyOp("store_y", y[m, n], par=axes(m=70), free=axes(n=40), src=y_t[m, n])

Why: the PE array writes PSUM only, and only ACT and DVE can read it. A DMA, the PE array itself and the
second operand of a two-tile instruction need a copy in SBUF; the first op of an epilogue reads the
sums where they are. Transposed tiles pass through PSUM too, as fp32, which holds every narrower
value, and the copy out narrows them again.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ncc.ir.affine import Affine, Mod
from ncc.ir.core import unchanged
from ncc.ir.penguin import (
    Function,
    Loop,
    MatMulOp,
    Statement,
    Tensor,
    TensorCopyOp,
    TensorTensorOp,
    TileCopyOp,
    TileOp,
    TileTransposeOp,
    View,
)
from ncc.ir.penguin_views import SCALARS
from ncc.ir.tile_walk import Body, Fresh, after_groups, rewrite, tile_ops, with_reads
from ncc.ir.tiling import counter, most, radix, size
from ncc.passes.base import define
from ncc.target import Target

EVICTS = ("DVE",)


class Placement:
    """One function's PSUM tensors and evictions in the making."""

    def __init__(self, module: Function, target: Target) -> None:
        self.module, self.target = module, target
        self.tensors = {t.name: t for t in module.tensors}
        self.fresh = Fresh(module.tensors, module.body)
        self.made: list[Tensor] = []
        self.sums = {  # accumulators, and the matmul that each serves
            op.dst.tensor: op.name for op in tile_ops(module.body) if isinstance(op, MatMulOp)
        }
        self.copies: dict[str, str] = {}  # an accumulator's copy in SBUF

    def run(self) -> Function:
        body = self.turn(self.module.body, ())
        body = after_groups(rewrite(body, self.read_copies), self.evict)
        moved = {name for name in self.sums if self.tensors[name].home != "psum"}
        if body is self.module.body and not moved:
            return self.module
        tensors = tuple(
            attrs.evolve(t, home="psum", origin=t.origin.by("place-psum")) if t.name in moved else t
            for t in self.module.tensors
        )
        return attrs.evolve(self.module, tensors=(*tensors, *self.made), body=body)

    # ---- sums ------------------------------------------------------------------------------------

    def read_copies(self, op: TileOp) -> Iterable[Statement]:
        """The op with copies for the sums that it cannot read in PSUM."""

        def change(view: View) -> View:
            if view.tensor not in self.sums:
                return view
            if view.tensor not in self.copies:
                old = self.tensors[view.tensor]
                name = self.fresh(f"{self.sums[view.tensor]}_t")
                self.copies[view.tensor] = name
                self.made.append(attrs.evolve(old, name=name, origin=old.origin.by("place-psum")))
            return View(self.copies[view.tensor], view.index)

        match op:
            case TileCopyOp() | TileTransposeOp() | MatMulOp():
                return (with_reads(op, change),)
            case TensorTensorOp(src0=first, src1=second) if {
                first.tensor,
                second.tensor,
            } <= self.sums.keys():
                return (attrs.evolve(op, src1=change(second)),)
            case _:
                scalars = [getattr(op, name, None) for name in (*SCALARS, "bias")]
                columns = [x for x in scalars if isinstance(x, View)]
                return (with_reads(op, lambda v: change(v) if v in columns else v),)

    def evict(self, op: MatMulOp) -> Iterable[Statement]:
        name = op.dst.tensor
        if name in self.copies:
            dst = View(self.copies[name], op.dst.index)
            label = self.fresh(f"evict_{op.name}")
            origin = op.origin.by("place-psum")
            yield TensorCopyOp(label, dst, op.par, op.free, op.dst, engines=EVICTS, origin=origin)

    # ---- transposes ------------------------------------------------------------------------------

    def turn(self, body: Body, loops: tuple[Loop, ...]) -> Body:
        """PE transposes into PSUM, each with the copy that brings it to where it was to go."""
        found: list[Statement] = []
        for one in body:
            match one:
                case Loop(axis, trips, kind, inside):
                    new = self.turn(inside, (*loops, one))
                    found.append(one if new is inside else Loop(axis, trips, kind, new, one.origin))
                case TileTransposeOp(kind="pe"):
                    found += self.through_psum(one, loops)
                case _:
                    found.append(one)
        return body if unchanged(found, body) else tuple(found)

    def through_psum(
        self, op: TileTransposeOp, loops: tuple[Loop, ...]
    ) -> tuple[Statement, Statement]:
        origin = op.origin.by("place-psum")
        trips = tuple((loop.axis, loop.trips) for loop in loops)
        visits = 1
        for _, count in trips:
            visits *= count
        turns = min(2 if self.target.psum_banks >= 4 else 1, visits)
        name = self.fresh(f"{op.dst.tensor.removesuffix('_t')}_p")
        shape = (size(op.par), *([most(a.extent) for a in op.free] or [1]))
        self.made.append(
            Tensor(
                name,
                "float32",
                (turns, *shape) if turns > 1 else shape,
                home="psum",
                blocks=int(turns > 1),
                ring=visits > 1,
                origin=origin,
            )
        )
        ring = (Mod(counter(trips), turns),) if turns > 1 else ()
        inner = [Affine(0, ((a.name, 1),)) for a in op.free] or [Affine()]
        middle = View(name, (*ring, radix(op.par), *inner))
        label = self.fresh(f"evict_{op.name}")
        return (
            attrs.evolve(op, dst=middle, origin=origin),
            TensorCopyOp(label, op.dst, op.par, op.free, middle, engines=EVICTS, origin=origin),
        )


def apply(module: Function, target: Target) -> Function:
    return Placement(module, target).run()


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    needs=("every-tile-op-is-an-instruction",),
    gives=("the-pe-array-writes-psum", "psum-is-read-by-engines"),
    after={"select-insts": "who may read PSUM is a property of the engine"},
    real="InferPSumTensor",
    job="F2",
    sure="confirmed",
)
