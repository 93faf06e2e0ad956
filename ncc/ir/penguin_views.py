"""What laws and passes ask of Penguin's ops: what is read, what is in scope, how far it reaches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import TypeGuard

import attrs

from ncc.ir import penguin as p
from ncc.ir.affine import Affine, Extent, Floor, Index, Least, Mod
from ncc.ir.core import unchanged

Op = p.TensorOp | p.TileOp
READS = ("lhs", "rhs", "src", "stationary", "moving", "src0", "src1", "bias")
SCALARS = ("operand0", "operand1")
AXES = ("axes", "par", "free", "contract")


def operands(op: Op) -> Iterator[p.Operand]:
    """What an op reads, in the order of its fields."""
    for field in (*READS, *SCALARS):
        found = getattr(op, field, None)
        if isinstance(found, p.View | float):
            yield found
    yield from getattr(op, "srcs", ())


def views_read(op: Op) -> list[p.View]:
    return [x for x in operands(op) if isinstance(x, p.View)]


def with_reads(op: p.TensorOp, change: Callable[[p.View], p.Operand]) -> p.TensorOp:
    """The whole-tensor op with its operands changed; the op itself when none is."""
    fields: dict[str, p.Operand | tuple[p.Operand, ...]] = {}
    for name in READS:
        found = getattr(op, name, None)
        if isinstance(found, p.View) and (new := change(found)) is not found:
            fields[name] = new
    if isinstance(op, p.ElementwiseOp):
        srcs = tuple(change(x) if isinstance(x, p.View) else x for x in op.srcs)
        if not unchanged(srcs, op.srcs):
            fields["srcs"] = srcs
    return attrs.evolve(op, **fields) if fields else op


def axis_at(index: Index) -> str:
    """The axis that indexes a dimension of a whole-tensor view; "" where the index is 0."""
    return index.names()[0] if index.names() else ""


def view_axes(view: p.View) -> tuple[str, ...]:
    """The axis of each dimension of a whole-tensor view, "" where the index is 0."""
    return tuple(axis_at(x) for x in view.index)


def sizes_of(op: p.TensorOp) -> dict[str, int]:
    """Extents of a whole-tensor op's axes, which are plain numbers."""
    return {a.name: a.extent for a in op.axes if isinstance(a.extent, int)}


def whole_ops(function: p.Function) -> list[p.TensorOp]:
    """The whole-tensor ops; none once tiles have replaced them."""
    kinds = (p.TensorContractOp, p.ElementwiseOp, p.TensorTransposeOp)
    return [op for op in function.body if isinstance(op, kinds)]


def is_kernel(one: p.Statement) -> TypeGuard[p.KernelCall | p.KernelNode]:
    return isinstance(one, p.KernelCall | p.KernelNode)


def each_whole(
    function: p.Function, change: Callable[[p.TensorOp], p.TensorOp]
) -> tuple[p.Statement, ...]:
    """The body with every whole-tensor op changed; kernels stay what and where they are."""
    kinds = (p.TensorContractOp, p.ElementwiseOp, p.TensorTransposeOp)
    return tuple(change(one) if isinstance(one, kinds) else one for one in function.body)


def kernels_read(function: p.Function) -> frozenset[str]:
    """The tensors that some kernel takes; they lie in DRAM as a whole."""
    kernels = (one for one in function.body if is_kernel(one))
    return frozenset(tensor for one in kernels for _, tensor in one.args)


def reading(one: p.Statement, instead: Mapping[str, str]) -> p.Statement:
    """A kernel taking other tensors; the same object when none is replaced, or it is no kernel."""
    if not is_kernel(one):
        return one
    args = tuple((name, instead.get(tensor, tensor)) for name, tensor in one.args)
    return one if args == one.args else attrs.evolve(one, args=args)


def axes_of(op: Op) -> Iterator[p.Axis]:
    """The op's own axes: all of them at tensor level, those of one tile at tile level."""
    for field in AXES:
        yield from getattr(op, field, ())


def ops_in_scope(
    body: tuple[p.Statement, ...], outside: Mapping[str, Extent] | None = None
) -> Iterator[tuple[p.Loop | Op, dict[str, Extent]]]:
    """Every op and loop with the axes that it may index by, and how far each runs."""
    scope = dict(outside or {})
    for one in body:
        if isinstance(one, p.Loop):
            yield one, scope
            yield from ops_in_scope(one.body, {**scope, one.axis: one.trips})
        elif not isinstance(one, p.KernelCall | p.KernelNode):
            yield one, {**scope, **{a.name: a.extent for a in axes_of(one)}}


def reach(index: Index, scope: Mapping[str, Extent]) -> tuple[int, int]:
    """Bounds of an index, every axis running from 0 to its extent.

    An axis that ends early at the end of an outer one is bounded together with it: with m_i below
    min(128, 333-128*m_o), 128*m_o+m_i is below 333 and not below 384.
    """
    of = index if isinstance(index, Affine) else index.of
    early = [(n, c, e) for n, c in of.terms if isinstance(e := scope[n], Least)]
    highs: list[int] = []
    lows: list[int] = []
    for exact in product((False, True), repeat=len(early)):
        low = high = of
        for (name, factor, extent), whole in zip(early, exact, strict=True):
            term = Affine(0, ((name, factor),))
            last = extent.of.plus(-1) if whole else Affine(extent.most - 1)
            high = high.plus(term, -1).plus(last, max(factor, 0))
            low = low.plus(term, -1).plus(last, min(factor, 0))
        highs.append(_plain(high, scope)[1])
        lows.append(_plain(low, scope)[0])
    least, most = max(lows), min(highs)
    match index:
        case Affine():
            return least, most
        case Floor():
            return least // index.by, most // index.by
        case Mod():
            if least // index.by == most // index.by:
                return least % index.by, most % index.by
            return 0, index.by - 1


def _plain(of: Affine, scope: Mapping[str, Extent]) -> tuple[int, int]:
    low = high = of.const
    for name, factor in of.terms:
        extent = scope[name]
        far = factor * ((extent if isinstance(extent, int) else extent.most) - 1)
        low, high = low + min(far, 0), high + max(far, 0)
    return low, high
