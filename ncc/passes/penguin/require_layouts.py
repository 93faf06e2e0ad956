"""State what each contraction needs on the partitions of its operands.

Before:
    from ncc.penguin import *
    with function("matmul") as f:
        x = tensor("x", "bfloat16", (4, 8), kind="input", home="dram")
        w = tensor("w", "bfloat16", (8, 3), kind="input", home="dram")
        out = tensor("out", "float32", (4, 3), kind="output", home="dram")
        m, n, k = axis("m n k")
        TensorContractOp("out", out[m, n], x[m, k], w[k, n], axes=axes(m=4, n=3, k=8),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",))

After:
    from ncc.penguin import *
    with function("matmul") as f:
        x = tensor("x", "bfloat16", (4, 8), kind="input", home="dram")
        w = tensor("w", "bfloat16", (8, 3), kind="input", home="dram")
        out = tensor("out", "float32", (4, 3), kind="output", home="dram")
        m, n, k = axis("m n k")
        TensorContractOp("out", out[m, n], x[m, k], w[k, n], axes=axes(m=4, n=3, k=8),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",),
            requires=(("lhs", ("k",)), ("rhs", ("k",))))

Why: the PE array sums over partitions, so both operands must have the contraction axes there; batch
axes never are, they loop. An elementwise op asks for nothing: any layout suits it, as long as all
its operands share it. What is written here is all that the layout search must respect.
"""

from __future__ import annotations

import attrs

from ncc.ir.penguin import Function, TensorContractOp, TensorOp
from ncc.ir.penguin_views import each_whole
from ncc.passes.base import define
from ncc.target import Target


def required(op: TensorOp) -> TensorOp:
    if not isinstance(op, TensorContractOp):
        return op
    requires = (("lhs", op.contract_axes), ("rhs", op.contract_axes))
    return attrs.evolve(op, requires=requires, origin=op.origin.by("require-layouts"))


def apply(module: Function, target: Target) -> Function:
    if not any(isinstance(op, TensorContractOp) for op in module.body):
        return module
    return attrs.evolve(module, body=each_whole(module, required))


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    gives=("requirements-are-stated",),
    after={"order-loops": "the requirement names the contraction axes in their final order"},
    real="LayoutRequirementAnalysis",
    job="F2",
    sure="confirmed",
)
