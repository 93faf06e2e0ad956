"""Decide where every tensor lives: in DRAM, in SBUF as a whole, or only as a stream of tiles.

Before:
    from ncc.penguin import *
    with function("layer") as f:
        x = tensor("x", "bfloat16", (8, 4), kind="input", home="dram")
        w = tensor("w", "bfloat16", (8, 3), kind="input", home="dram")
        out = tensor("out", "float32", (4, 3), kind="output", home="dram")
        y = tensor("y", "float32", (4, 3))
        m, n, k, d0, d1 = axis("m n k d0 d1")
        TensorContractOp("y", y[m, n], x[k, m], w[k, n], axes=axes(m=4, n=3, k=8),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",), partition=("m",))
        ElementwiseOp("out", "maximum", out[d0, d1], srcs=(y[d0, d1], 0.0), axes=axes(d0=4, d1=3),
            partition=("d0",))

After:
    from ncc.penguin import *
    with function("layer") as f:
        x = tensor("x", "bfloat16", (8, 4), kind="input", home="dram")
        w = tensor("w", "bfloat16", (8, 3), kind="input", home="dram")
        out = tensor("out", "float32", (4, 3), kind="output", home="dram")
        y = tensor("y", "float32", (4, 3), home="stream")
        m, n, k, d0, d1 = axis("m n k d0 d1")
        TensorContractOp("y", y[m, n], x[k, m], w[k, n], axes=axes(m=4, n=3, k=8),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",), partition=("m",))
        ElementwiseOp("out", "maximum", out[d0, d1], srcs=(y[d0, d1], 0.0), axes=axes(d0=4, d1=3),
            partition=("d0",))

Why: what only its own loop nest reads never needs to exist as a whole. What another nest reads can
wait in SBUF if it lies there as every reader takes it, and is small enough; DRAM is always right
and holds the rest. A transposed copy of something in DRAM is made tile by tile where it is read.
"""

from __future__ import annotations

import attrs

from ncc.ir.core import unchanged
from ncc.ir.penguin import Function
from ncc.ir.penguin_layout import homes, partition_dims, uses
from ncc.passes.base import define
from ncc.target import Target


def apply(module: Function, target: Target) -> Function:
    chosen = homes(module, target)
    used = uses(module)
    tensors = tuple(
        t
        if t.home != "unplaced"
        else attrs.evolve(
            t,
            home=chosen[t.name],
            partition_dims=partition_dims(used[t.name].maker) if chosen[t.name] == "sbuf" else (),
        )
        for t in module.tensors
    )
    return module if unchanged(tensors, module.tensors) else attrs.evolve(module, tensors=tensors)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    needs=("layouts-are-solved",),
    gives=("homes-are-chosen",),
    after={"insert-transposes": "a transposed copy has a home too"},
    real="InferNonlocalTensors",
    job="F2",
    sure="confirmed",
)
