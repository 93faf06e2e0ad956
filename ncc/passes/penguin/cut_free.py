"""Cut every list of free axes to what one tile holds inside a partition.

Before:
    from ncc.penguin import *
    with function("layer") as f:
        x = tensor("x", "float32", (300, 70), kind="input", home="dram")
        w = tensor("w", "float32", (300, 600), kind="input", home="dram")
        y = tensor("y", "float32", (70, 600), kind="output", home="dram")
        m, n, k = axis("m n k")
        TensorContractOp("y", y[m, n], x[k, m], w[k, n], axes=axes(m=70, n=600, k=300),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",), partition=("m",),
            group=0, cuts=(Cut("contract", loops=("k_o",), tiles=("k_i",), axis="k", tile=128),))

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
            Cut("moving", loops=("n_o",), tiles=("n_i",), axis="n", tile=512)))

Why: a matmul's result must fit one PSUM bank, 512 numbers of 4 bytes a partition, so the moving
operand's free axes are cut there. Axes that are summed over are never cut here: a contraction loops
over them inside its accumulation. Ops that share a loop nest must also share its tiles, so all ops
of a group over one shape take the earliest cut that any of them needs. What a transpose by DMA or by
the PE array turns has partitions on its other side, and is cut as partitions are.
"""

from __future__ import annotations

import attrs

from ncc.ir.penguin import Cut, Function, TensorContractOp, TensorOp, TensorTransposeOp
from ncc.ir.penguin_views import each_whole, sizes_of
from ncc.ir.tiling import (
    Sized,
    axes_written,
    compute_cut,
    cut_at,
    free_budget,
    partition_of,
)
from ncc.passes.base import define
from ncc.target import Target

Point = tuple[int, int]  # axes that stay whole, fastest first, and elements of the next one
Key = tuple[str, int, tuple[int, ...], tuple[int, ...]]


def free_axes(op: TensorOp) -> list[Sized]:
    """The axes that one partition walks, slowest first; a contraction's batch axes only loop."""
    sizes = sizes_of(op)
    if isinstance(op, TensorContractOp):
        names = op.lhs_free_axes if op.swap_operands else op.rhs_free_axes
    else:
        names = tuple(name for name in axes_written(op) if name not in op.partition)
    return [(name, sizes[name]) for name in names]


def wanted(op: TensorOp, target: Target) -> Point:
    """Where this op alone would be cut."""
    axes = free_axes(op)
    # lab: return the point where a tile is full: free_budget numbers, 128 if kind is dma or pe
    budget, whole = free_budget(target), len(axes)
    if isinstance(op, TensorTransposeOp) and op.kind != "element":
        budget, whole = min(budget, target.partitions), len(op.src_partition) or 1
    at, tile = compute_cut([n for _, n in reversed(axes)], budget)
    if at is None:
        return whole, 1
    return min((whole, 1), (at + 1, 1) if tile is None else (at, tile))
    # lab: end


def cut(op: TensorOp, point: Point) -> Cut:
    """The op's free axes cut at the point that suits its whole group."""
    role = "moving" if isinstance(op, TensorContractOp) else "free"
    axes = free_axes(op)
    whole, tile = point
    if whole >= len(axes):
        return cut_at(role, axes, None, None)
    if tile > 1 or whole == 0:
        return cut_at(role, axes, whole, tile)
    return cut_at(role, axes, whole - 1, None)


def key(op: TensorOp) -> Key:
    """Ops with one key may share a loop nest: one group, one shape, the same dimensions on
    partitions. A transpose shares its tiles with nobody."""
    sizes, written = sizes_of(op), axes_written(op)
    places = tuple(written.index(name) for name in partition_of(op) if sizes[name] > 1)
    alone = op.name if isinstance(op, TensorTransposeOp) else ""
    return alone, op.group, tuple(sizes[name] for name in written), places


def apply(module: Function, target: Target) -> Function:
    ops = [op for op in module.body if isinstance(op, TensorOp)]
    points: dict[Key, Point] = {}
    for op in ops:
        points[key(op)] = min(points.get(key(op), (len(op.axes), 1)), wanted(op, target))

    def with_cut(op: TensorOp) -> TensorOp:
        cuts = (*op.cuts, cut(op, points[key(op)]))
        return attrs.evolve(op, cuts=cuts, origin=op.origin.by("cut-free"))

    return attrs.evolve(module, body=each_whole(module, with_cut)) if ops else module


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    needs=("partition-tiles-fit",),
    gives=("free-tiles-fit",),
    after={"cut-partition": "what is free is what is not on partitions"},
    real="cutFreeAxes",
    job="F2",
    sure="confirmed",
)
