"""Drop ops that nothing reads, and tensors that nothing mentions.

Before:
    from ncc.penguin import *
    with function("unread") as f:
        a = tensor("a", "float32", (4, 8), kind="input", home="dram")
        out = tensor("out", "float32", (4, 8), kind="output", home="dram")
        t = tensor("t", "float32", (4, 8))
        u = tensor("u", "float32", (4, 8))
        d0, d1 = axis("d0 d1")
        ElementwiseOp("t", "add", t[d0, d1], srcs=(a[d0, d1], 1.0), axes=axes(d0=4, d1=8))
        ElementwiseOp("u", "add", u[d0, d1], srcs=(t[d0, d1], 2.0), axes=axes(d0=4, d1=8))
        ElementwiseOp("out", "copy", out[d0, d1], srcs=(a[d0, d1],), axes=axes(d0=4, d1=8))

After:
    from ncc.penguin import *
    with function("unread") as f:
        a = tensor("a", "float32", (4, 8), kind="input", home="dram")
        out = tensor("out", "float32", (4, 8), kind="output", home="dram")
        d0, d1 = axis("d0 d1")
        ElementwiseOp("out", "copy", out[d0, d1], srcs=(a[d0, d1],), axes=axes(d0=4, d1=8))

Why: one walk from the last op backwards meets every reader before what it reads, so a chain of dead
ops goes in a single run. An input stays although nothing reads it: it is a parameter of the program.
"""

from __future__ import annotations

import attrs

from ncc.ir.penguin import Function, Statement, TensorOp
from ncc.ir.penguin_views import is_kernel, views_read
from ncc.passes.base import define
from ncc.target import Target


def apply(module: Function, target: Target) -> Function:
    wanted = {t.name for t in module.tensors if t.kind == "output"}
    kept: list[Statement] = []
    for one in reversed(module.body):
        if is_kernel(one):  # whoever calls a kernel wants what it does
            wanted.update(tensor for _, tensor in (*one.args, *one.outs))
            kept.append(one)
        elif isinstance(one, TensorOp) and one.dst.tensor in wanted:
            wanted.update(view.tensor for view in views_read(one))
            kept.append(one)
    tensors = tuple(t for t in module.tensors if t.name in wanted or t.kind == "input")
    if len(kept) == len(module.body) and len(tensors) == len(module.tensors):
        return module
    return attrs.evolve(module, tensors=tensors, body=tuple(reversed(kept)))


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    gives=("every-op-is-used",),
    required=False,
    after={"value-number": "an op that is only a name for another leaves its tensor unread"},
    real="DeadCodeElimination",
    job="F2",
    sure="confirmed",
)
