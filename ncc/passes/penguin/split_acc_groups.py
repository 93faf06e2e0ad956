"""Split accumulation groups that hold a PSUM bank for too many matmuls.

Before:
    from ncc.penguin import *
    with function("layer") as f:
        x_t = tensor("x_t", "bfloat16", (1400, 128, 70), home="sbuf", blocks=1)
        w_t = tensor("w_t", "bfloat16", (1400, 128, 40), home="sbuf", blocks=1)
        y_acc = tensor("y_acc", "float32", (70, 40), home="psum")
        y_t = tensor("y_t", "bfloat16", (70, 40), home="sbuf")
        m, n, k = axis("m n k")
        for k_o in loop("k_o", 1400, "accumulate"):
            MatMulOp("y", y_acc[m, n], par=axes(m=70), free=axes(n=40), stationary=x_t[k_o, k, m],
                moving=w_t[k_o, k, n], contract=axes(k=128), engines=("PE",), accumulate=("k_o",))
        TensorCopyOp("evict_y", y_t[m, n], par=axes(m=70), free=axes(n=40), src=y_acc[m, n],
            engines=("DVE",))

After:
    from ncc.penguin import *
    with function("layer") as f:
        x_t = tensor("x_t", "bfloat16", (1400, 128, 70), home="sbuf", blocks=1)
        w_t = tensor("w_t", "bfloat16", (1400, 128, 40), home="sbuf", blocks=1)
        y_acc = tensor("y_acc", "float32", (70, 40), home="psum")
        y_t = tensor("y_t", "bfloat16", (70, 40), home="sbuf")
        y_sum = tensor("y_sum", "float32", (70, 40), home="sbuf", ring=True)
        m, n, k = axis("m n k")
        for k_o in loop("k_o", 467, "accumulate"):
            MatMulOp("y", y_acc[m, n], par=axes(m=70), free=axes(n=40), stationary=x_t[k_o, k, m],
                moving=w_t[k_o, k, n], contract=axes(k=128), engines=("PE",), accumulate=("k_o",))
        TensorCopyOp("sum_y", y_sum[m, n], par=axes(m=70), free=axes(n=40), src=y_acc[m, n],
            engines=("DVE",))
        for k_o in loop("k_o", 467, "accumulate"):
            MatMulOp("y_1", y_acc[m, n], par=axes(m=70), free=axes(n=40),
                stationary=x_t[k_o+467, k, m], moving=w_t[k_o+467, k, n], contract=axes(k=128),
                engines=("PE",), accumulate=("k_o",))
        TensorTensorOp("sum_y_1", y_sum[m, n], par=axes(m=70), free=axes(n=40), op="add",
            src0=y_acc[m, n], src1=y_sum[m, n], engines=("DVE",))
        for k_o in loop("k_o", 466, "accumulate"):
            MatMulOp("y_2", y_acc[m, n], par=axes(m=70), free=axes(n=40),
                stationary=x_t[k_o+934, k, m], moving=w_t[k_o+934, k, n], contract=axes(k=128),
                engines=("PE",), accumulate=("k_o",))
        TensorTensorOp("sum_y_2", y_sum[m, n], par=axes(m=70), free=axes(n=40), op="add",
            src0=y_acc[m, n], src1=y_sum[m, n], engines=("DVE",))
        TensorCopyOp("evict_y", y_t[m, n], par=axes(m=70), free=axes(n=40), src=y_sum[m, n],
            engines=("DVE",))

Why: a group keeps its bank from its first matmul to its last, so a very long contraction would leave
the other engines nothing to do and the bank unavailable to any other result. Groups of bounded
length hand their partial sums to DVE, which adds them in fp32.
"""

from __future__ import annotations

import math

import attrs

from ncc.ir.affine import Affine
from ncc.ir.core import unchanged
from ncc.ir.penguin import (
    Function,
    Loop,
    MatMulOp,
    Statement,
    Tensor,
    TensorCopyOp,
    TensorTensorOp,
    TileOp,
    View,
)
from ncc.ir.penguin_tile_laws import LONGEST
from ncc.ir.tile_walk import Body, Fresh, group, rewrite, shifted, tile_ops, with_reads
from ncc.passes.base import define
from ncc.target import Target


def length(one: Statement) -> int:
    """Matmuls of the accumulation group that a loop is."""
    if not isinstance(one, Loop) or one.kind != "accumulate":
        return 1
    return one.trips * math.prod(map(length, one.body))


class Splitting:
    """One function's shorter groups in the making."""

    def __init__(self, module: Function) -> None:
        self.module = module
        self.tensors = {t.name: t for t in module.tensors}
        self.fresh = Fresh(module.tensors, module.body)
        self.made: list[Tensor] = []
        self.totals: dict[str, str] = {}  # an accumulator, and where its partial sums are added

    def run(self) -> Function:
        body = self.split(self.module.body)
        if body is self.module.body:
            return self.module
        body = rewrite(body, lambda op: (self.redirect(op),))
        return attrs.evolve(self.module, tensors=(*self.module.tensors, *self.made), body=body)

    def split(self, body: Body) -> Body:
        found: list[Statement] = []
        for one in body:
            matmul = group(one)
            if isinstance(one, Loop) and matmul and length(one) > LONGEST:
                found += self.parts(one, matmul, first=True)
            elif isinstance(one, Loop) and not matmul:
                inside = self.split(one.body)
                same = inside is one.body
                found.append(
                    one if same else Loop(one.axis, one.trips, one.kind, inside, one.origin)
                )
            else:
                found.append(one)
        return body if unchanged(found, body) else tuple(found)

    def parts(self, loop: Loop, matmul: MatMulOp, first: bool) -> list[Statement]:
        """Groups of one size, a shorter last one, and the addition after each; the `first` one of
        all starts the total."""
        inner = length(loop) // loop.trips
        count = -(-loop.trips // max(LONGEST // inner, 1))
        trips = -(-loop.trips // count)
        full, rest = divmod(loop.trips, trips)
        found = [*self.part(loop, matmul, trips, Affine(), first)]
        number = self.fresh(f"{loop.axis}_g")
        if full == 2:
            found += self.part(loop, matmul, trips, Affine(trips))
        elif full > 2:
            base = Affine(trips, ((number, trips),))
            more = self.part(loop, matmul, trips, base)
            found.append(Loop(number, full - 1, "sequential", tuple(more), loop.origin))
        if rest:
            found += self.part(loop, matmul, rest, Affine(full * trips))
        return found

    def part(
        self, loop: Loop, matmul: MatMulOp, trips: int, base: Affine, first: bool = False
    ) -> list[Statement]:
        origin = matmul.origin.by("split-acc-groups")
        here = Affine(0, ((loop.axis, 1),)) if trips > 1 else Affine()
        body = tuple(shifted(x, {loop.axis: here.plus(base)}) for x in loop.body)
        if not first:
            body = rewrite(body, lambda op: (attrs.evolve(op, name=self.fresh(op.name)),))
        if trips == 1:
            body = rewrite(body, lambda op: (self.without(op, loop.axis),))
            if any(length(one) > LONGEST for one in body):
                return self.inner(body, first)
        whole = (Loop(loop.axis, trips, "accumulate", body, loop.origin),) if trips > 1 else body
        total = View(self.total(matmul), matmul.dst.index)
        place = (self.fresh(f"sum_{matmul.name}"), total, matmul.par, matmul.free)
        last = (
            TensorCopyOp(*place, matmul.dst, engines=("DVE",), origin=origin)
            if first
            else TensorTensorOp(*place, "add", matmul.dst, total, engines=("DVE",), origin=origin)
        )
        return [*whole, last]

    def inner(self, body: Body, first: bool) -> list[Statement]:
        """One trip of a loop whose inner loop alone is too long, and is split in its turn."""
        found: list[Statement] = []
        for one in body:
            if isinstance(one, Loop) and (matmul := group(one)):
                found += self.parts(one, matmul, first)
            else:
                found.append(one)
        return found

    def without(self, op: TileOp, axis: str) -> TileOp:
        if not isinstance(op, MatMulOp) or axis not in op.accumulate:
            return op
        return attrs.evolve(op, accumulate=tuple(a for a in op.accumulate if a != axis))

    def total(self, matmul: MatMulOp) -> str:
        name = matmul.dst.tensor
        if name not in self.totals:
            old = self.tensors[name]
            self.totals[name] = self.fresh(f"{matmul.name}_sum")
            origin = old.origin.by("split-acc-groups")
            self.made.append(
                attrs.evolve(old, name=self.totals[name], home="sbuf", ring=True, origin=origin)
            )
        return self.totals[name]

    def redirect(self, op: TileOp) -> TileOp:
        """Readers of a sum read the total of its parts."""
        if op.dst.tensor in self.totals.values():
            return op  # it makes the total

        def change(view: View) -> View:
            if view.tensor in self.totals:
                return View(self.totals[view.tensor], view.index)
            return view

        return with_reads(op, change)


def apply(module: Function, target: Target) -> Function:
    if not any(isinstance(op, MatMulOp) for op in tile_ops(module.body)):
        return module
    return Splitting(module).run()


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    needs=("the-pe-array-writes-psum",),
    gives=("accumulation-groups-are-short",),
    required=False,
    exact=False,
    after={"place-psum": "a group is long by the bank that it holds"},
    real="SplitAccGrp",
    job="F2",
    sure="confirmed",
)
