"""Facts of whole-tensor Penguin, each given by one pass and kept by those after it."""

from __future__ import annotations

from collections.abc import Iterator

from ncc.errors import NccError, Place, listed
from ncc.ir import penguin as p
from ncc.ir.core import Law
from ncc.ir.penguin_layout import as_stored, long, movement, partition_dims
from ncc.ir.penguin_views import kernels_read, sizes_of, views_read, whole_ops
from ncc.ir.tiling import partition_of
from ncc.target import Target


def complaint(op: p.TensorOp, said: str) -> NccError:
    return NccError("NCC227", said, op.origin.place(op.name))


def every_op_is_used(module: p.Function, target: Target) -> Iterator[NccError]:
    read = {view.tensor for op in whole_ops(module) for view in views_read(op)}
    read |= kernels_read(module)
    kinds = {t.name: t.kind for t in module.tensors}
    for op in whole_ops(module):
        if op.dst.tensor not in read and kinds[op.dst.tensor] != "output":
            yield complaint(op, f"nothing reads {op.dst.tensor}")


def contraction_axes_are_last(module: p.Function, target: Target) -> Iterator[NccError]:
    for op in whole_ops(module):
        if isinstance(op, p.TensorContractOp):
            lists = (op.batch_axes, op.lhs_free_axes, op.rhs_free_axes, op.contract_axes)
            if [a.name for a in op.axes] != [a for group in lists for a in group]:
                yield complaint(op, "its axes are not batch, lhs free, rhs free, contraction")


def requirements_are_stated(module: p.Function, target: Target) -> Iterator[NccError]:
    for op in whole_ops(module):
        if isinstance(op, p.TensorContractOp):
            wanted = (("lhs", op.contract_axes), ("rhs", op.contract_axes))
            if op.requires != wanted:
                yield complaint(op, "it must require its contraction axes on both operands")


def dimensions_are_grouped(module: p.Function, target: Target) -> Iterator[NccError]:
    """Every dimension is in one PAG, and dimensions that share an axis are in the same one."""
    if not whole_ops(module):
        return
    group = {dim: number for number, pag in enumerate(module.pags) for dim in pag}
    for op in whole_ops(module):
        of_axis: dict[str, int] = {}
        for view in (op.dst, *views_read(op)):
            for dim, index in enumerate(view.index):
                name = f"{view.tensor}.{dim}"
                if name not in group:
                    yield complaint(op, f"{name} is in no partition axes group")
                elif (
                    index.names()
                    and of_axis.setdefault(index.names()[0], group[name]) != group[name]
                ):
                    yield complaint(op, f"{name} is partitioned apart from its axis")


def layouts_are_solved(module: p.Function, target: Target) -> Iterator[NccError]:
    for op in whole_ops(module):
        if isinstance(op, p.TensorContractOp):
            if op.partition != partition_of(op):
                has = listed(partition_of(op))
                yield complaint(op, f"its partition axes must be the stationary ones, {has}")
        elif isinstance(op, p.ElementwiseOp) and (
            not op.partition or not {*op.partition} <= sizes_of(op).keys()
        ):
            yield complaint(op, "its partition axes are not among its axes")


def edges_agree(module: p.Function, target: Target) -> Iterator[NccError]:
    """What a contraction reads has its contraction axes on partitions, or can be loaded so."""
    made = {op.dst.tensor: op for op in whole_ops(module)}
    dtypes = {t.name: t.dtype for t in module.tensors}
    for op in whole_ops(module):
        if not isinstance(op, p.TensorContractOp):
            continue
        for view in (op.lhs, op.rhs):
            maker = made.get(view.tensor)
            kept = maker and as_stored(view, partition_dims(maker), op.contract_axes, sizes_of(op))
            if not kept and movement(view, dtypes[view.tensor], op, target) != "load":
                axes = listed(long(op.contract_axes, sizes_of(op)))
                yield complaint(op, f"{view.tensor} does not have {axes} on its partitions")


def homes_are_chosen(module: p.Function, target: Target) -> Iterator[NccError]:
    for t in module.tensors:
        if t.home == "unplaced":
            yield NccError("NCC227", "it has no home", t.origin.place(t.name))


def groups_are_built(module: p.Function, target: Target) -> Iterator[NccError]:
    """Every op is in a group, groups stand one after the other, and `pgs` lists them."""
    ops = whole_ops(module)
    if not ops:
        return
    latest = 0
    for op in ops:
        if not latest <= op.group <= latest + 1:
            yield complaint(op, f"it is in group {op.group}, after group {latest}")
            return
        latest = op.group
    for number, names, _ in module.pgs:
        if names != tuple(op.name for op in ops if op.group == number):
            yield NccError("NCC227", "it lists other ops than its own", Place(value=f"pg {number}"))


FACTS = tuple(
    Law(check.__name__, check, reads=lambda m: (m.tensors, m.body, m.pags, m.pgs))
    for check in (
        every_op_is_used,
        contraction_axes_are_last,
        requirements_are_stated,
        dimensions_are_grouped,
        layouts_are_solved,
        edges_agree,
        homes_are_chosen,
        groups_are_built,
    )
)
