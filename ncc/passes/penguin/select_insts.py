"""Choose the machine's instruction for every elementwise op, and the engines that may run it.

Before:
    from ncc.penguin import *
    with function("layer") as f:
        y_acc = tensor("y_acc", "float32", (70, 40), home="sbuf")
        bias_t = tensor("bias_t", "float32", (70, 1), home="sbuf")
        a_t = tensor("a_t", "float32", (70, 40), home="sbuf")
        b_t = tensor("b_t", "float32", (70, 40), home="sbuf")
        z_t = tensor("z_t", "bfloat16", (70, 40), home="sbuf")
        m, n = axis("m n")
        TileElementwiseOp("a", a_t[m, n], par=axes(m=70), free=axes(n=40), op="add",
            srcs=(y_acc[m, n], bias_t[m, 0]))
        TileElementwiseOp("b", b_t[m, n], par=axes(m=70), free=axes(n=40), op="maximum",
            srcs=(a_t[m, n], 0.0))
        TileElementwiseOp("z", z_t[m, n], par=axes(m=70), free=axes(n=40), op="add",
            srcs=(b_t[m, n], y_acc[m, n]))

After:
    from ncc.penguin import *
    with function("layer") as f:
        y_acc = tensor("y_acc", "float32", (70, 40), home="sbuf")
        bias_t = tensor("bias_t", "float32", (70, 1), home="sbuf")
        b_t = tensor("b_t", "float32", (70, 40), home="sbuf")
        z_t = tensor("z_t", "bfloat16", (70, 40), home="sbuf")
        m, n = axis("m n")
        ActivationOp("b", b_t[m, n], par=axes(m=70), free=axes(n=40), src=y_acc[m, n], func="Relu",
            engines=("Activation",), bias=bias_t[m, 0])
        TensorTensorOp("z", z_t[m, n], par=axes(m=70), free=axes(n=40), op="add", src0=b_t[m, n],
            src1=y_acc[m, n], engines=("DVE",))

Why: the engines differ. DVE combines two tiles, or a tile with a number or with a column of one value a
partition; ACT computes func(x + bias) with such a column for free; both copy and convert. A sum
with a column and the relu after it are one instruction, as long as the value between them is fp32
and nothing else reads it. Where both engines can do it, the one with less work so far gets it. The
pool engine is left out: it cannot reach PSUM, where most of these operands will be.
"""

from __future__ import annotations

import math

import attrs

from ncc.ir.affine import Affine
from ncc.ir.core import unchanged
from ncc.ir.penguin import (
    ActivationOp,
    Axis,
    Function,
    Loop,
    MatMulOp,
    Operand,
    Statement,
    Tensor,
    TensorCopyOp,
    TensorScalarOp,
    TensorTensorOp,
    TileElementwiseOp,
    TileMemsetOp,
    TileOp,
    TileTransposeOp,
    View,
)
from ncc.ir.tile_walk import Body, Fresh, is_column, readers, tile_ops
from ncc.ir.tiling import radix, size
from ncc.passes.base import define
from ncc.target import Target

ALU = {"add": "add", "maximum": "max"}  # the op by its name in Penguin, and in the engines
DVE, ACT = ("DVE",), ("Activation",)
COPIERS = ("DVE", "Activation")


class Selection:
    """One function's instructions in the making, and how much work each engine has so far."""

    def __init__(self, module: Function) -> None:
        self.module = module
        self.tensors = {t.name: t for t in module.tensors}
        self.fresh = Fresh(module.tensors, module.body)
        self.reads = readers(module.body)
        self.writes: dict[str, int] = {}
        for op in tile_ops(module.body):
            self.writes[op.dst.tensor] = self.writes.get(op.dst.tensor, 0) + 1
        self.made: list[Tensor] = []
        self.work = {"DVE": 0, "Activation": 0}

    def run(self) -> Function:
        body = self.body(self.module.body, 1)
        if body is self.module.body:
            return self.module
        used = {op.dst.tensor for op in tile_ops(body)}
        gone = self.writes.keys() - used
        tensors = tuple(t for t in self.module.tensors if t.name not in gone)
        return attrs.evolve(self.module, tensors=(*tensors, *self.made), body=body)

    def body(self, body: Body, visits: int) -> Body:
        found: list[Statement] = []
        rest = list(body)
        while rest:
            one = rest.pop(0)
            match one:
                case Loop(axis, trips, kind, inside):
                    new = self.body(inside, visits * trips)
                    same = new is inside
                    found.append(one if same else Loop(axis, trips, kind, new, one.origin))
                case TileElementwiseOp():
                    second = rest[0] if rest else None
                    if fused := self.biased(one, second, visits):
                        rest.pop(0)
                        found.append(fused)
                    else:
                        found += self.select(one, visits)
                case MatMulOp() | TileTransposeOp(kind="pe") if not one.engines:
                    found.append(attrs.evolve(one, engines=("PE",)))
                case _:
                    found.append(one)
        return body if unchanged(found, body) else tuple(found)

    def select(self, op: TileElementwiseOp, visits: int) -> list[Statement]:
        """The instruction, after a cast of a column where it needs one."""
        origin = op.origin.by("select-insts")
        place = (op.name, op.dst, op.par, op.free)
        match op.op, op.srcs:
            case "copy", (float() as value,):
                self.charge("DVE", op, visits)
                return [TileMemsetOp(*place, value, engines=DVE, origin=origin)]
            case "copy", (View() as src,):
                return [TensorCopyOp(*place, src, engines=COPIERS, origin=origin)]
            case name, (View() as x, View() as y) if not self.scalar(x, op) and not self.scalar(
                y, op
            ):
                self.charge("DVE", op, visits)
                return [TensorTensorOp(*place, ALU[name], x, y, engines=DVE, origin=origin)]
            case "maximum", (View() as x, float() as least) if relu(least) and (
                self.idle() == "Activation"
            ):
                self.charge("Activation", op, visits)
                return [ActivationOp(*place, x, "Relu", engines=ACT, origin=origin)]
            case name, (x, y):
                self.charge("DVE", op, visits)
                return self.with_scalar(op, ALU[name], x, y)
            case _:
                raise TypeError(f"{op.op} of {len(op.srcs)} operands")

    def with_scalar(
        self, op: TileElementwiseOp, name: str, x: Operand, y: Operand
    ) -> list[Statement]:
        """A tile with a number or a column; the tile may be either operand."""
        origin = op.origin.by("select-insts")
        before: list[Statement] = []
        reverse = not isinstance(x, View) or (self.scalar(x, op) and not self.scalar(y, op))
        tile, scalar = (y, x) if reverse else (x, y)
        if not isinstance(tile, View):
            before.append(self.spread(op, tile))
            tile = op.dst
        if isinstance(scalar, View):
            scalar, casts = self.as_fp32(op, scalar)
            before += casts
        last = TensorScalarOp(
            op.name,
            op.dst,
            op.par,
            op.free,
            tile,
            name,
            scalar,
            reverse,
            engines=DVE,
            origin=origin,
        )
        return [*before, last]

    def scalar(self, operand: Operand, op: TileElementwiseOp) -> bool:
        return not isinstance(operand, View) or is_column(operand, op.free)

    def spread(self, op: TileElementwiseOp, value: float) -> Statement:
        """A number in every element, where an instruction needs a tile."""
        name, origin = self.fresh(f"{op.name}_c"), op.origin.by("select-insts")
        return TileMemsetOp(name, op.dst, op.par, op.free, value, engines=DVE, origin=origin)

    def as_fp32(self, op: TileElementwiseOp, column: View) -> tuple[View, list[Statement]]:
        """The column as an engine takes it beside a tile: fp32."""
        if self.tensors[column.tensor].dtype == "float32":
            return column, []
        name, origin = self.fresh(f"{column.tensor}_x"), op.origin.by("select-insts")
        self.made.append(
            Tensor(name, "float32", (size(op.par), 1), home="sbuf", ring=True, origin=origin)
        )
        dst = View(name, (radix(op.par), Affine()))
        label = self.fresh(f"cast_{column.tensor}")
        return dst, [TensorCopyOp(label, dst, op.par, (), column, engines=COPIERS, origin=origin)]

    def biased(self, op: TileElementwiseOp, then: Statement | None, visits: int) -> TileOp | None:
        """x + column, then max with 0, as one instruction."""
        match op, then:
            case (
                TileElementwiseOp(op="add", srcs=(View() as a, View() as b), dst=View(name)),
                TileElementwiseOp(op="maximum", srcs=(View() as c, float() as least)),
            ) if c == op.dst and relu(least) and (then.par, then.free) == (op.par, op.free):
                tile, column = (b, a) if is_column(a, op.free) else (a, b)
                alone = len(self.reads.get(name, ())) == 1 and self.writes[name] == 1
                wide = (
                    self.tensors[name].dtype == "float32" and self.tensors[name].kind == "internal"
                )
                if not (alone and wide and is_column(column, op.free)) or is_column(tile, op.free):
                    return None
                self.charge("Activation", op, visits)
                return ActivationOp(
                    then.name,
                    then.dst,
                    then.par,
                    then.free,
                    tile,
                    "Relu",
                    bias=column,
                    engines=ACT,
                    origin=then.origin.by("select-insts"),
                )
            case _:
                return None

    def charge(self, engine: str, op: TileOp, visits: int) -> None:
        self.work[engine] += visits * elements(op.free)

    def idle(self) -> str:
        """The engine with less work so far."""
        return "Activation" if self.work["Activation"] < self.work["DVE"] else "DVE"


def relu(least: float) -> bool:
    """Max with this number is ACT's Relu bit for bit: 0, and not the negative one."""
    return least == 0.0 and math.copysign(1.0, least) > 0


def elements(free: tuple[Axis, ...]) -> int:
    return max(size(free), 64)


def apply(module: Function, target: Target) -> Function:
    return Selection(module).run()


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    needs=("accumulators-are-fp32", "types-are-the-targets"),
    gives=("every-tile-op-is-an-instruction",),
    after={"widen-fp8fn": "an instruction reads only types that the target has"},
    real="SundaISel",
    job="F2",
    sure="confirmed",
)
