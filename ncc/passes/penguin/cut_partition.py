"""Cut every list of partition axes to the machine's 128 partitions.

Before:
    from ncc.penguin import *
    with function("layer") as f:
        x = tensor("x", "float32", (300, 70), kind="input", home="dram")
        w = tensor("w", "float32", (300, 600), kind="input", home="dram")
        y = tensor("y", "float32", (70, 600), kind="output", home="dram")
        m, n, k = axis("m n k")
        TensorContractOp("y", y[m, n], x[k, m], w[k, n], axes=axes(m=70, n=600, k=300),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",), partition=("m",),
            group=0)

After:
    from ncc.penguin import *
    with function("layer") as f:
        x = tensor("x", "float32", (300, 70), kind="input", home="dram")
        w = tensor("w", "float32", (300, 600), kind="input", home="dram")
        y = tensor("y", "float32", (70, 600), kind="output", home="dram")
        m, n, k = axis("m n k")
        TensorContractOp("y", y[m, n], x[k, m], w[k, n], axes=axes(m=70, n=600, k=300),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",), partition=("m",),
            group=0, cuts=(Cut("contract", loops=("k_o",), tiles=("k_i",), axis="k", tile=128),))

Why: an engine works on at most 128 partitions at once, so what a list has beyond that becomes
loops. The list is cut at its slowest axis that still takes part: everything faster stays whole in
the tile, and so a tile of several axes is one run of neighbouring partitions. This comes before the
free axes are cut, because where the partitions are decides which axes are free.
"""

from __future__ import annotations

import attrs

from ncc.ir.core import unchanged
from ncc.ir.penguin import Function, TensorContractOp, TensorOp
from ncc.ir.penguin_views import sizes_of
from ncc.ir.tiling import cut_list
from ncc.passes.base import define
from ncc.target import Target


def cut(op: TensorOp, target: Target) -> TensorOp:
    """A contraction has its contraction axes on the partitions of both operands; any other op has
    its result's partition axes there."""
    sizes = sizes_of(op)
    # lab: make `found`, the cut of the axes on partitions: of a contraction those it sums over
    if isinstance(op, TensorContractOp):
        role, names = "contract", op.contract_axes
    else:
        role, names = "partition", op.partition
    found = cut_list(role, [(name, sizes[name]) for name in names], target.partitions)
    # lab: end
    return attrs.evolve(op, cuts=(*op.cuts, found), origin=op.origin.by("cut-partition"))


def apply(module: Function, target: Target) -> Function:
    body = tuple(cut(op, target) if isinstance(op, TensorOp) else op for op in module.body)
    return module if unchanged(body, module.body) else attrs.evolve(module, body=body)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    gives=("partition-tiles-fit",),
    after={"build-pgs": "the partition axes of every op must be settled"},
    real="cutParAxes",
    job="F2",
    sure="confirmed",
)
