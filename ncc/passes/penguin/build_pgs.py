"""Number the partition groups, each of which becomes one loop nest.

Before:
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

After:
    from ncc.penguin import *
    with function("layer") as f:
        x = tensor("x", "bfloat16", (8, 4), kind="input", home="dram")
        w = tensor("w", "bfloat16", (8, 3), kind="input", home="dram")
        out = tensor("out", "float32", (4, 3), kind="output", home="dram")
        y = tensor("y", "float32", (4, 3), home="stream")
        m, n, k, d0, d1 = axis("m n k d0 d1")
        pg(0, ("y", "out"), ("m",))
        TensorContractOp("y", y[m, n], x[k, m], w[k, n], axes=axes(m=4, n=3, k=8),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",), partition=("m",),
            group=0)
        ElementwiseOp("out", "maximum", out[d0, d1], srcs=(y[d0, d1], 0.0), axes=axes(d0=4, d1=3),
            partition=("d0",), group=0)

Why: ops that walk the same tiles on the same partitions share one nest, so a bias and a relu are
applied while a sum is still on chip. A contraction opens a group, for it changes what lies on the
partitions; elementwise work joins the latest group it reads from. The body is put in the order of
the groups, so that each is one run of ops.
"""

from __future__ import annotations

import attrs

from ncc.ir.penguin import Function, Statement, TensorOp, TensorTransposeOp
from ncc.ir.penguin_layout import nests
from ncc.ir.penguin_views import whole_ops
from ncc.passes.base import define
from ncc.target import Target


def numbered(op: TensorOp, number: int) -> TensorOp:
    return attrs.evolve(op, group=number, origin=op.origin.by("build-pgs"))


def apply(module: Function, target: Target) -> Function:
    ops = whole_ops(module)
    if not ops:
        return module
    nest = nests(module)
    placed: list[tuple[int, Statement]] = []
    opened = -1  # a kernel comes after the groups that were opened before it
    for one in module.body:
        if isinstance(one, TensorOp):
            number = nest[one.name]
            placed.append((2 * number, numbered(one, number)))
            opened = opened if isinstance(one, TensorTransposeOp) else max(opened, number)
        else:
            placed.append((2 * opened + 1, one))
    placed.sort(key=lambda pair: pair[0])  # stable: inside a group nothing moves
    body = tuple(one for _, one in placed)
    grouped = [one for one in body if isinstance(one, TensorOp)]
    pgs: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = []
    for number in range(grouped[-1].group + 1):
        mine = [op for op in grouped if op.group == number]
        first = next(op for op in mine if not isinstance(op, TensorTransposeOp))
        pgs.append((number, tuple(op.name for op in mine), first.partition))
    return attrs.evolve(module, body=body, pgs=tuple(pgs))


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    needs=("layouts-are-solved", "edges-agree"),
    gives=("groups-are-built",),
    real="PGAnalysisForTiling",
    job="F2",
    sure="confirmed",
)
