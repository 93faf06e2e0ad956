"""Give a contraction operand that lies the wrong way round a transposed copy.

Before:
    from ncc.penguin import *
    with function("matmul") as f:
        x = tensor("x", "bfloat16", (4, 8), kind="input", home="dram")
        w = tensor("w", "bfloat16", (8, 3), kind="input", home="dram")
        out = tensor("out", "float32", (4, 3), kind="output", home="dram")
        m, n, k = axis("m n k")
        pag("x.0", "out.0")
        pag("x.1", "w.0")
        pag("w.1", "out.1")
        TensorContractOp("out", out[m, n], x[m, k], w[k, n], axes=axes(m=4, n=3, k=8),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",),
            requires=(("lhs", ("k",)), ("rhs", ("k",))), partition=("m",))

After:
    from ncc.penguin import *
    with function("matmul") as f:
        x = tensor("x", "bfloat16", (4, 8), kind="input", home="dram")
        w = tensor("w", "bfloat16", (8, 3), kind="input", home="dram")
        out = tensor("out", "float32", (4, 3), kind="output", home="dram")
        x_t = tensor("x_t", "bfloat16", (8, 4))
        k, m, n = axis("k m n")
        pag("x.0", "out.0", "x_t.1")
        pag("x.1", "w.0", "x_t.0")
        pag("w.1", "out.1")
        TensorTransposeOp("x_t", x_t[k, m], x[m, k], axes=axes(k=8, m=4), kind="dma",
            partition=("k",))
        TensorContractOp("out", out[m, n], x_t[k, m], w[k, n], axes=axes(m=4, n=3, k=8),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",),
            requires=(("lhs", ("k",)), ("rhs", ("k",))), partition=("m",))

Why: a load fills a partition with a run of neighbouring elements, so an operand whose innermost
dimension is summed over would arrive with its free axis on the partitions. Who turns it round
depends: a DMA on its way in where the machine's can and the type has two bytes; else the PE array,
which multiplies by the identity; and where a batch axis is innermost, a load element by element.
One copy serves every contraction that wants the same layout.
"""

from __future__ import annotations

import attrs

from ncc.ir.penguin import (
    Axis,
    Function,
    Statement,
    Tensor,
    TensorContractOp,
    TensorTransposeOp,
    View,
    axis_index,
)
from ncc.ir.penguin_layout import homes, movement
from ncc.ir.penguin_views import sizes_of, view_axes
from ncc.passes.base import define
from ncc.target import Target

NAME = "insert-transposes"


class Inserter:
    """The transposes that were made so far, by tensor and layout."""

    def __init__(self, module: Function, target: Target) -> None:
        self.module, self.target = module, target
        self.home = homes(module, target)
        self.tensors = {t.name: t for t in module.tensors}
        self.made: dict[tuple[str, tuple[int, ...], tuple[int, ...]], str] = {}
        self.body: list[Statement] = []
        self.pags = [list(pag) for pag in module.pags]

    def contract(self, op: TensorContractOp) -> TensorContractOp:
        lhs, rhs = self.operand(op, op.lhs), self.operand(op, op.rhs)
        if lhs is op.lhs and rhs is op.rhs:
            return op
        return attrs.evolve(op, lhs=lhs, rhs=rhs, origin=op.origin.by(NAME))

    def operand(self, op: TensorContractOp, view: View) -> View:
        """The view itself if its tensor can be loaded or read as it lies, else its copy's."""
        tensor = self.tensors[view.tensor]
        if self.home[view.tensor] != "dram":
            return view
        kind = movement(view, tensor.dtype, op, self.target)
        if kind == "load":
            return view
        index = view_axes(view)
        dims = range(len(index))
        batch = [d for d in dims if index[d] in op.batch_axes]
        summed = sorted(
            (d for d in dims if index[d] in op.contract_axes),
            key=lambda d: op.contract_axes.index(index[d]),
        )
        free = [d for d in dims if d not in batch and d not in summed]
        order = (*batch, *summed, *free)
        key = (tensor.name, order, tuple(summed))
        if key not in self.made:
            self.made[key] = self.transpose(op, tensor, view, order, kind)
        return View(self.made[key], tuple(view.index[d] for d in order))

    def transpose(
        self, op: TensorContractOp, tensor: Tensor, view: View, order: tuple[int, ...], kind: str
    ) -> str:
        """The transposing op and what it writes, whose dimensions are those of `order`."""
        name = f"{tensor.name}_t"
        while name in self.tensors or any(a.name == name for a in op.axes):
            name += "t"
        origin = tensor.origin.by(NAME) if tensor.origin.file else op.origin.by(NAME)
        shape = tuple(tensor.shape[d] for d in order)
        self.tensors[name] = Tensor(name, tensor.dtype, shape, origin=origin)
        index, size = view_axes(view), sizes_of(op)
        names = tuple(index[d] for d in order)
        axes = tuple(Axis(n, size[n]) for n in names if n)
        dst = View(name, tuple(axis_index(n) for n in names))
        summed = tuple(n for n in names if n in op.contract_axes)
        self.body.append(
            TensorTransposeOp(name, dst, view, axes, kind, partition=summed, origin=origin)
        )
        for place, dim in enumerate(order):
            for pag in self.pags:
                if f"{tensor.name}.{dim}" in pag:
                    pag.append(f"{name}.{place}")
        return name

    def function(self) -> Function:
        for one in self.module.body:
            done = self.contract(one) if isinstance(one, TensorContractOp) else one
            self.body.append(done)
        if not self.made:
            return self.module
        return attrs.evolve(
            self.module,
            tensors=tuple(self.tensors.values()),
            body=tuple(self.body),
            pags=tuple(map(tuple, self.pags)),
        )


def apply(module: Function, target: Target) -> Function:
    return Inserter(module, target).function()


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    needs=("layouts-are-solved", "dimensions-are-grouped"),
    gives=("edges-agree",),
    real="InsertIOTransposes",
    job="F2",
    sure="confirmed",
)
