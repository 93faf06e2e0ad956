"""Cut the stationary axes of every contraction, which completes its tile for the PE array.

Before:
    from ncc.penguin import *
    with function("layer") as f:
        x = tensor("x", "float32", (300, 70), kind="input", home="dram")
        w = tensor("w", "float32", (300, 600), kind="input", home="dram")
        y = tensor("y", "float32", (70, 600), kind="output", home="dram")
        m, n, k = axis("m n k")
        TensorContractOp("y", y[m, n], x[k, m], w[k, n], axes=axes(m=70, n=600, k=300),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",), partition=("m",),
            group=0, cuts=(Cut("contract", loops=("k_o",), tiles=("k_i",), axis="k", tile=128),
            Cut("moving", loops=("n_o",), tiles=("n_i",), axis="n", tile=512)))

After:
    from ncc.penguin import *
    with function("layer") as f:
        x = tensor("x", "float32", (300, 70), kind="input", home="dram")
        w = tensor("w", "float32", (300, 600), kind="input", home="dram")
        y = tensor("y", "float32", (70, 600), kind="output", home="dram")
        m, n, k = axis("m n k")
        TensorContractOp("y", y[m, n], x[k, m], w[k, n], axes=axes(m=70, n=600, k=300),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",), partition=("m",),
            group=0, cuts=(Cut("contract", loops=("k_o",), tiles=("k_i",), axis="k", tile=128),
            Cut("stationary", loops=(), tiles=("m",)),
            Cut("moving", loops=("n_o",), tiles=("n_i",), axis="n", tile=512)))

Why: the PE array holds a stationary tile of at most 128 rows (the contraction) by 128 columns, and
streams a moving tile of at most 512 columns past it. With all three cut, the loops say what one
result tile costs: the contraction's outer loops, innermost, are one accumulation group, and nothing
but contraction axes may loop inside it, since another index would be another result.
"""

from __future__ import annotations

import attrs

from ncc.ir.penguin import Function, TensorContractOp
from ncc.ir.penguin_views import sizes_of
from ncc.ir.tiling import cut_list, partition_of
from ncc.passes.base import define
from ncc.target import Target


def tile(op: TensorContractOp, target: Target) -> TensorContractOp:
    """Contraction first, then stationary, then moving: the order of the loops from the inside."""
    sizes = sizes_of(op)
    axes = [(name, sizes[name]) for name in partition_of(op)]
    found = cut_list("stationary", axes, target.stationary_free)
    roles = {cut.role: cut for cut in (*op.cuts, found)}
    cuts = tuple(roles[role] for role in ("contract", "stationary", "moving") if role in roles)
    return attrs.evolve(op, cuts=cuts, origin=op.origin.by("tile-contract"))


def apply(module: Function, target: Target) -> Function:
    if not any(isinstance(op, TensorContractOp) for op in module.body):
        return module
    body = tuple(tile(op, target) if isinstance(op, TensorContractOp) else op for op in module.body)
    return attrs.evolve(module, body=body)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    needs=("partition-tiles-fit", "free-tiles-fit"),
    gives=("contractions-are-tiled", "only-contraction-axes-accumulate"),
    after={"cut-free": "the moving operand's tile is the group's free tile"},
    real="tileTCDAG",
    job="F2",
    sure="confirmed",
)
