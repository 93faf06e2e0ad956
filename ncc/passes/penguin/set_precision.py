"""Give every accumulator 32 bits and every matmul operands that the PE array takes together.

Before:
    from ncc.penguin import *
    with function("layer") as f:
        y = tensor("y", "bfloat16", (70, 40), kind="output", home="dram")
        x_t = tensor("x_t", "float32", (2, 128, 70), home="sbuf", blocks=1)
        w_t = tensor("w_t", "float32", (2, 128, 40), home="sbuf", blocks=1)
        y_acc = tensor("y_acc", "bfloat16", (70, 40), home="sbuf")
        m, n, k = axis("m n k")
        for k_o in loop("k_o", 2, "accumulate"):
            MatMulOp("y", y_acc[m, n], par=axes(m=70), free=axes(n=40), stationary=x_t[k_o, k, m],
                moving=w_t[k_o, k, n], contract=axes(k=128), accumulate=("k_o",))
        TileCopyOp("store_y", y[m, n], par=axes(m=70), free=axes(n=40), src=y_acc[m, n])

After:
    from ncc.penguin import *
    with function("layer") as f:
        y = tensor("y", "bfloat16", (70, 40), kind="output", home="dram")
        x_t = tensor("x_t", "float32", (2, 128, 70), home="sbuf", blocks=1)
        w_t = tensor("w_t", "float32", (2, 128, 40), home="sbuf", blocks=1)
        y_acc = tensor("y_acc", "float32", (70, 40), home="sbuf")
        y_r = tensor("y_r", "bfloat16", (70, 40), home="sbuf")
        m, n, k = axis("m n k")
        for k_o in loop("k_o", 2, "accumulate"):
            MatMulOp("y", y_acc[m, n], par=axes(m=70), free=axes(n=40), stationary=x_t[k_o, k, m],
                moving=w_t[k_o, k, n], contract=axes(k=128), accumulate=("k_o",))
        TileElementwiseOp("round_y", y_r[m, n], par=axes(m=70), free=axes(n=40), op="copy",
            srcs=(y_acc[m, n],))
        TileCopyOp("store_y", y[m, n], par=axes(m=70), free=axes(n=40), src=y_r[m, n])

Why: the PE array adds up in fp32 whatever its operands are, and PSUM holds nothing narrower. The
result's own type appears where the sum leaves the accumulator, so the one rounding that the source
asks for is a copy that can be seen. The array also takes fp32 operands only in pairs, and the two
kinds of 8-bit e4m3 not together; a cast to the wider type is exact.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ncc.ir.affine import Affine
from ncc.ir.penguin import (
    Axis,
    Function,
    MatMulOp,
    Statement,
    Tensor,
    TileElementwiseOp,
    TileOp,
    View,
)
from ncc.ir.tile_walk import Fresh, after_groups, readers, rewrite, tile_ops, with_reads
from ncc.ir.tiling import most, radix, size
from ncc.passes.base import define
from ncc.target import Target

E4M3 = {"float8e4", "float8_e4m3fn"}


class Precision:
    """One function's casts in the making."""

    def __init__(self, module: Function) -> None:
        self.module = module
        self.tensors = {t.name: t for t in module.tensors}
        self.fresh = Fresh(module.tensors, module.body)
        self.made: list[Tensor] = []

    def run(self) -> Function:
        body = rewrite(self.module.body, self.pair)
        body = self.round(body)
        tensors = tuple(self.tensors[t.name] for t in self.module.tensors)
        if body is self.module.body and tensors == self.module.tensors:
            return self.module
        return attrs.evolve(self.module, tensors=(*tensors, *self.made), body=body)

    # ---- operands --------------------------------------------------------------------------------

    def pair(self, op: TileOp) -> Iterable[Statement]:
        """A matmul whose operands may not meet, with casts before it."""
        if not isinstance(op, MatMulOp):
            return (op,)
        types = [self.tensors[v.tensor].dtype for v in (op.stationary, op.moving)]
        if types[0] == types[1] or ("float32" not in types and set(types) != E4M3):
            return (op,)
        wide = "float32" if "float32" in types else "bfloat16"
        before: list[Statement] = []
        views = {"stationary": (op.stationary, op.par), "moving": (op.moving, op.free)}
        for field, (view, free) in views.items():
            if self.tensors[view.tensor].dtype != wide:
                cast = self.cast(view, wide, op, free)
                before.append(cast)
                op = attrs.evolve(op, **{field: cast.dst}, origin=op.origin.by("set-precision"))
        return (*before, op)

    def cast(
        self, view: View, dtype: str, op: MatMulOp, free: tuple[Axis, ...]
    ) -> TileElementwiseOp:
        """A copy of an operand's tile in a wider type."""
        par, origin = op.contract, op.origin.by("set-precision")
        shape = (size(par), *([most(a.extent) for a in free] or [1]))
        name = self.fresh(f"{view.tensor}_x")
        self.tensors[name] = Tensor(name, dtype, shape, home="sbuf", ring=True, origin=origin)
        self.made.append(self.tensors[name])
        inner = [Affine(0, ((a.name, 1),)) for a in free] or [Affine()]
        dst, label = View(name, (radix(par), *inner)), self.fresh(f"cast_{view.tensor}")
        return TileElementwiseOp(label, dst, par, free, "copy", (view,), origin=origin)

    # ---- results ---------------------------------------------------------------------------------

    def round(self, body: tuple[Statement, ...]) -> tuple[Statement, ...]:
        """Accumulators in fp32; readers that need the narrow value get a rounded copy."""
        sums = {op.dst.tensor: op.name for op in tile_ops(body) if isinstance(op, MatMulOp)}
        types = {name: self.tensors[name].dtype for name in sums}
        narrow = {name: dtype for name, dtype in types.items() if dtype != "float32"}
        if not narrow:
            return body
        rounded: dict[str, View] = {}
        read = readers(body)
        for name, dtype in narrow.items():
            old = self.tensors[name]
            self.tensors[name] = attrs.evolve(
                old, dtype="float32", origin=old.origin.by("set-precision")
            )
            if any(not self.rounds(op, dtype) for op in read.get(name, ())):
                twin = attrs.evolve(old, name=self.fresh(f"{sums[name]}_r"))
                self.made.append(twin)
                self.tensors[twin.name] = twin
                rounded[name] = View(twin.name, ())

        def copy(op: MatMulOp) -> Iterable[Statement]:
            name = op.dst.tensor
            if name in rounded:
                dst = View(rounded[name].tensor, op.dst.index)
                label, origin = self.fresh(f"round_{op.name}"), op.origin.by("set-precision")
                yield TileElementwiseOp(
                    label, dst, op.par, op.free, "copy", (op.dst,), origin=origin
                )

        def redirect(op: TileOp) -> Iterable[Statement]:
            def change(view: View) -> View:
                if view.tensor in rounded and not self.rounds(op, narrow[view.tensor]):
                    return View(rounded[view.tensor].tensor, view.index)
                return view

            return (with_reads(op, change),)

        return after_groups(rewrite(body, redirect), copy)

    def rounds(self, op: TileOp, dtype: str) -> bool:
        """A copy of the sum to its own narrow type is the rounding itself."""
        is_copy = isinstance(op, TileElementwiseOp) and op.op == "copy"
        return is_copy and self.tensors[op.dst.tensor].dtype == dtype


def apply(module: Function, target: Target) -> Function:
    return Precision(module).run()


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    needs=("tiles-fit-the-machine",),
    gives=("accumulators-are-fp32",),
    after={"emit-tiles": "an accumulator is a tile"},
    real="EnforceAluDTAcc",
    job="F2",
    sure="inferred",
)
