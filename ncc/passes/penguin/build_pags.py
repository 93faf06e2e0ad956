"""Group the dimensions that one choice of partitions decides together.

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
        pag("x.0", "out.0")
        pag("x.1", "w.0")
        pag("w.1", "out.1")
        TensorContractOp("out", out[m, n], x[m, k], w[k, n], axes=axes(m=4, n=3, k=8),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",))

Why: an axis of an op joins every dimension that it indexes; the classes of that union are the
partition axes groups (PAGs). Putting one dimension on the partitions puts its whole group there, in
every tensor, unless a transpose is paid for: that is the choice that solve-layout has.
"""

from __future__ import annotations

import attrs

from ncc.ir.penguin import Function
from ncc.ir.penguin_views import views_read, whole_ops
from ncc.passes.base import define
from ncc.target import Target


def apply(module: Function, target: Target) -> Function:
    if not whole_ops(module):  # a kernel says itself what lies on partitions
        return module
    dims = [f"{t.name}.{d}" for t in module.tensors for d in range(len(t.shape))]
    parent = {dim: dim for dim in dims}

    def root(dim: str) -> str:
        while parent[dim] != dim:
            parent[dim] = parent[parent[dim]]
            dim = parent[dim]
        return dim

    for op in whole_ops(module):
        seen: dict[str, str] = {}
        for view in (op.dst, *views_read(op)):
            for d, index in enumerate(view.index):
                for axis in index.names():
                    dim = f"{view.tensor}.{d}"
                    parent[root(dim)] = root(seen.setdefault(axis, dim))
    groups: dict[str, list[str]] = {}
    for dim in dims:
        groups.setdefault(root(dim), []).append(dim)
    pags = tuple(map(tuple, groups.values()))
    return module if pags == module.pags else attrs.evolve(module, pags=pags)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    gives=("dimensions-are-grouped",),
    real="PAGLayout",
    job="F2",
    sure="confirmed",
)
