"""Put a contraction's axes in one order: batch, lhs free, rhs free, contraction.

Before:
    from ncc.penguin import *
    with function("matmul") as f:
        x = tensor("x", "bfloat16", (4, 8), kind="input", home="dram")
        w = tensor("w", "bfloat16", (8, 3), kind="input", home="dram")
        out = tensor("out", "float32", (4, 3), kind="output", home="dram")
        m, k, n = axis("m k n")
        TensorContractOp("out", out[m, n], x[m, k], w[k, n], axes=axes(m=4, k=8, n=3),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",))

After:
    from ncc.penguin import *
    with function("matmul") as f:
        x = tensor("x", "bfloat16", (4, 8), kind="input", home="dram")
        w = tensor("w", "bfloat16", (8, 3), kind="input", home="dram")
        out = tensor("out", "float32", (4, 3), kind="output", home="dram")
        m, n, k = axis("m n k")
        TensorContractOp("out", out[m, n], x[m, k], w[k, n], axes=axes(m=4, n=3, k=8),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",))

Why: with the contraction axes innermost, consecutive tiles of the sum meet in one PSUM bank, and
only they loop inside an accumulation group. Of several contraction axes the order is free; the one
in which the operand whose innermost dimension is summed over lies in DRAM lets it be transposed in
one run.
"""

from __future__ import annotations

import attrs

from ncc.ir.core import unchanged
from ncc.ir.penguin import Axis, Function, TensorContractOp, TensorOp, View
from ncc.ir.penguin_layout import long
from ncc.ir.penguin_views import each_whole, sizes_of, view_axes
from ncc.passes.base import define
from ncc.target import Target


def contract_order(op: TensorContractOp) -> tuple[str, ...]:
    """The contraction axes as they follow one another in the operand that must be transposed."""
    size = sizes_of(op)

    def innermost(view: View) -> str:
        return next(iter(reversed(long(view_axes(view), size))), "")

    guide = op.lhs if innermost(op.lhs) in op.contract_axes else op.rhs
    place = {a: i for i, a in enumerate(view_axes(guide))}
    return tuple(sorted(op.contract_axes, key=lambda a: place.get(a, -1)))


def ordered(op: TensorOp) -> TensorOp:
    if not isinstance(op, TensorContractOp):
        return op
    size, summed = sizes_of(op), contract_order(op)
    names = (*op.batch_axes, *op.lhs_free_axes, *op.rhs_free_axes, *summed)
    axes = tuple(Axis(n, size[n]) for n in names)
    if axes == op.axes and summed == op.contract_axes:
        return op
    return attrs.evolve(op, axes=axes, contract_axes=summed, origin=op.origin.by("order-loops"))


def apply(module: Function, target: Target) -> Function:
    body = each_whole(module, ordered)
    return module if unchanged(body, module.body) else attrs.evolve(module, body=body)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    gives=("contraction-axes-are-last",),
    real="NeuronLoopInterchange",
    job="F2",
    sure="confirmed",
)
