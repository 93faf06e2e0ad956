"""Fold copies into what they read, or into what reads them.

Before:
    from ncc.penguin import *
    with function("narrow") as f:
        a = tensor("a", "float32", (4, 8), kind="input", home="dram")
        out = tensor("out", "bfloat16", (4, 8), kind="output", home="dram")
        wide = tensor("wide", "float32", (4, 8))
        d0, d1 = axis("d0 d1")
        ElementwiseOp("wide", "maximum", wide[d0, d1], srcs=(a[d0, d1], 0.0), axes=axes(d0=4, d1=8))
        ElementwiseOp("out", "copy", out[d0, d1], srcs=(wide[d0, d1],), axes=axes(d0=4, d1=8))

After:
    from ncc.penguin import *
    with function("narrow") as f:
        a = tensor("a", "float32", (4, 8), kind="input", home="dram")
        out = tensor("out", "bfloat16", (4, 8), kind="output", home="dram")
        d0, d1 = axis("d0 d1")
        ElementwiseOp("out", "maximum", out[d0, d1], srcs=(a[d0, d1], 0.0), axes=axes(d0=4, d1=8))

Why: frameworks write a convert wherever types meet. An elementwise op computes in fp32 and rounds
when it writes, so one that is only read by a convert may write the narrow type itself, bit for bit.
A contraction may not: its sum is rounded to fp32 first, and rounding twice is not rounding once.
Sums with zero stay as well: -0 + 0 is +0. Each fold can make the next one possible, so the pass
goes on until nothing changes.
"""

from __future__ import annotations

import attrs

from ncc.ir.penguin import ElementwiseOp, Function, Tensor, TensorOp, View
from ncc.ir.penguin_layout import uses
from ncc.ir.penguin_views import (
    kernels_read,
    reading,
    view_axes,
    whole_ops,
    with_reads,
)
from ncc.passes.base import define
from ncc.target import Target


def is_plain(op: TensorOp) -> bool:
    """A copy that reads the elements in the very order in which it writes them."""
    return (
        isinstance(op, ElementwiseOp)
        and op.op == "copy"
        and isinstance(op.srcs[0], View)
        and view_axes(op.srcs[0]) == view_axes(op.dst)
        and all(view_axes(op.dst))
    )


def forward(function: Function) -> Function:
    """Readers of a copy that changes no type read what it copied."""
    tensors = {t.name: t for t in function.tensors}
    instead: dict[str, str] = {}
    for op in whole_ops(function):
        if is_plain(op) and isinstance(op, ElementwiseOp) and isinstance(op.srcs[0], View):
            source, copied = tensors[op.srcs[0].tensor], tensors[op.dst.tensor]
            if copied.kind == "internal" and copied.dtype == source.dtype:
                instead[copied.name] = instead.get(source.name, source.name)
    if not instead:
        return function

    def change(view: View) -> View:
        return View(instead[view.tensor], view.index) if view.tensor in instead else view

    body = tuple(
        with_reads(one, change) if isinstance(one, TensorOp) else reading(one, instead)
        for one in function.body
        if not isinstance(one, TensorOp) or one.dst.tensor not in instead
    )
    kept = tuple(t for t in function.tensors if t.name not in instead)
    return attrs.evolve(function, tensors=kept, body=body)


def backward(function: Function) -> Function:
    """The maker of what only a copy reads writes the copy's tensor itself, if it may."""
    tensors = {t.name: t for t in function.tensors}
    used, taken = uses(function), kernels_read(function)
    folds: dict[str, ElementwiseOp] = {}  # by maker
    gone: set[str] = set()
    for op in whole_ops(function):
        if not is_plain(op) or not isinstance(op, ElementwiseOp):
            continue
        source, use = tensors[_read(op)], used.get(_read(op))
        if use is None or source.kind != "internal" or len(use.readers) > 1 or source.name in taken:
            continue
        if use.maker.name not in gone and _may_write(use.maker, source, tensors[op.dst.tensor]):
            folds[use.maker.name] = op
            gone.add(op.name)
    if not folds:
        return function
    body = tuple(
        _joined(one, folds[one.name]) if isinstance(one, TensorOp) and one.name in folds else one
        for one in function.body
        if not isinstance(one, TensorOp) or one.name not in gone
    )
    unread = {_read(copy) for copy in folds.values()}
    kept = tuple(t for t in function.tensors if t.name not in unread)
    return attrs.evolve(function, tensors=kept, body=body)


def _read(op: ElementwiseOp) -> str:
    assert isinstance(op.srcs[0], View)
    return op.srcs[0].tensor


def _may_write(maker: TensorOp, source: Tensor, copied: Tensor) -> bool:
    exact = isinstance(maker, ElementwiseOp) and source.dtype == "float32"
    return source.dtype == copied.dtype or exact


def _joined(maker: TensorOp, copy: ElementwiseOp) -> TensorOp:
    """`maker` writing what `copy` wrote, and called after it."""
    dst = View(copy.dst.tensor, maker.dst.index)
    return attrs.evolve(maker, name=copy.name, dst=dst, origin=maker.origin.by("simplify"))


def apply(module: Function, target: Target) -> Function:
    while (simpler := backward(forward(module))) is not module:
        module = simpler
    return module


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    required=False,
    real="Simplifier",
    job="F2",
    sure="confirmed",
)
