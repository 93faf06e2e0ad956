"""Compute equal values once.

Before:
    from ncc.penguin import *
    with function("twice") as f:
        a = tensor("a", "float32", (4, 8), kind="input", home="dram")
        c = tensor("c", "float32", (4, 8), kind="input", home="dram")
        out = tensor("out", "float32", (4, 8), kind="output", home="dram")
        t = tensor("t", "float32", (4, 8))
        u = tensor("u", "float32", (4, 8))
        d0, d1 = axis("d0 d1")
        ElementwiseOp("t", "add", t[d0, d1], srcs=(a[d0, d1], c[d0, d1]), axes=axes(d0=4, d1=8))
        ElementwiseOp("u", "add", u[d0, d1], srcs=(c[d0, d1], a[d0, d1]), axes=axes(d0=4, d1=8))
        ElementwiseOp("out", "add", out[d0, d1], srcs=(t[d0, d1], u[d0, d1]), axes=axes(d0=4, d1=8))

After:
    from ncc.penguin import *
    with function("twice") as f:
        a = tensor("a", "float32", (4, 8), kind="input", home="dram")
        c = tensor("c", "float32", (4, 8), kind="input", home="dram")
        out = tensor("out", "float32", (4, 8), kind="output", home="dram")
        t = tensor("t", "float32", (4, 8))
        d0, d1 = axis("d0 d1")
        ElementwiseOp("t", "add", t[d0, d1], srcs=(a[d0, d1], c[d0, d1]), axes=axes(d0=4, d1=8))
        ElementwiseOp("out", "add", out[d0, d1], srcs=(t[d0, d1], t[d0, d1]), axes=axes(d0=4, d1=8))

Why: two ops with one key (kind, operands by their numbers, axes by their places) give the same
bits, so the second is a name for the first. Operands of an addition are sorted in the key; those of
a maximum are not, because it returns its second operand when either is NaN. An output must exist as
a tensor of its own, so an op that writes one becomes a copy, unless it would be one anyway.
"""

from __future__ import annotations

from typing import Any

import attrs

from ncc.ir.core import unchanged
from ncc.ir.penguin import (
    Axis,
    ElementwiseOp,
    Function,
    Statement,
    TensorContractOp,
    TensorOp,
    View,
    axis_index,
)
from ncc.ir.penguin_views import is_kernel, reading, sizes_of, view_axes, with_reads
from ncc.passes.base import define
from ncc.target import Target

COMMUTES = ("add",)


def key(op: TensorOp, dtype: str) -> Any:
    """What an op computes; axes count by where they index what it writes, then by size."""
    size = sizes_of(op)
    place = {a: i for i, a in enumerate(view_axes(op.dst)) if a}

    def seen(operand: View | float) -> tuple[Any, ...]:
        if not isinstance(operand, View):
            return ("number", repr(operand))
        return (operand.tensor, *(repr(place.get(a, a)) for a in view_axes(operand)))

    match op:
        case ElementwiseOp(_, by, _, srcs):
            read = [seen(x) for x in srcs]
            shape = tuple(size[a] for a in view_axes(op.dst) if a)
            return (by, dtype, shape, tuple(sorted(read) if by in COMMUTES else read))
        case TensorContractOp():
            for number, axis in enumerate(op.contract_axes):
                place[axis] = -1 - number
            return ("contract", dtype, seen(op.lhs), seen(op.rhs))
        case _:
            return op.name


def apply(module: Function, target: Target) -> Function:
    tensors = {t.name: t for t in module.tensors}
    first: dict[Any, str] = {}
    instead: dict[str, str] = {}
    for t in module.tensors:
        if t.data is not None:
            instead[t.name] = first.setdefault(("const", t.data), t.name)

    def change(view: View) -> View:
        new = instead.get(view.tensor, view.tensor)
        return view if new == view.tensor else View(new, view.index)

    body: list[Statement] = []
    for one in module.body:
        if is_kernel(one):  # never merged: a call may count, or draw random numbers
            body.append(reading(one, instead))
        if not isinstance(one, TensorOp):
            continue
        op = with_reads(one, change)
        made = tensors[op.dst.tensor]
        same = first.setdefault(key(op, made.dtype), made.name)
        if same == made.name:
            body.append(op)
        elif made.kind == "internal":
            instead[made.name] = same
        elif isinstance(op, ElementwiseOp) and op.op == "copy":
            body.append(op)
        else:
            body.append(_copy(op, same))
    if unchanged(body, module.body):
        return module
    gone = {a for a, b in instead.items() if a != b}
    kept = tuple(t for t in module.tensors if t.name not in gone)
    return attrs.evolve(module, tensors=kept, body=tuple(body))


def _copy(op: TensorOp, source: str) -> ElementwiseOp:
    """The output as a copy of the equal tensor `source`."""
    size = sizes_of(op)
    names = [a for a in view_axes(op.dst) if a]
    units = [a for a in size if size[a] == 1 and a not in names][: max(0, 2 - len(names))]
    axes = (*(Axis(u, 1) for u in units), *(Axis(n, size[n]) for n in names))
    index = tuple(axis_index(n) for n in names)
    origin = op.origin.by("value-number")
    return ElementwiseOp(op.name, "copy", op.dst, (View(source, index),), axes, origin=origin)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    required=False,
    after={"simplify": "a copy between two equal values hides that they are equal"},
    real="ValueNumbering",
    job="F2",
    sure="confirmed",
)
