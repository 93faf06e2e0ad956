"""Where the elements of whole tensors lie, and what it takes to have them elsewhere.

Shared by the passes that choose layouts, insert transposes, give tensors homes and build groups,
and by the facts that say they agree. Axes of extent 1 never matter to a layout; "the list" of some
axes below is without them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

import attrs

from ncc.ir import penguin as p
from ncc.ir.data import size_of
from ncc.ir.penguin_views import kernels_read, sizes_of, view_axes, views_read, whole_ops
from ncc.target import Target

RESIDENT = 8  # one tensor may keep this part of SBUF, all together half of it


def long(axes: Iterable[str], size: Mapping[str, int]) -> tuple[str, ...]:
    """The axes whose extent is not 1."""
    return tuple(a for a in axes if a and size[a] != 1)


def count(axes: Iterable[str], size: Mapping[str, int]) -> int:
    return math.prod(size[a] for a in axes)


def partition_dims(op: p.TensorOp) -> tuple[int, ...]:
    """The dimensions of what an op writes that its partition axes index, slowest first."""
    index = view_axes(op.dst)
    return tuple(index.index(a) for a in op.partition if a in index)


def as_stored(
    view: p.View, held: tuple[int, ...], axes: Iterable[str], size: Mapping[str, int]
) -> bool:
    """Whether dimensions `held` of the viewed tensor are exactly these axes, in this order."""
    index = view_axes(view)
    return long((index[d] for d in held), size) == long(axes, size)


def movement(
    view: p.View,
    dtype: str,
    op: p.TensorContractOp,
    target: Target,
) -> str:
    """How an operand of a contraction comes from row-major DRAM to contraction axes on partitions.

    `load`: as it lies. `dma`: the load transposes. `pe`: the PE array transposes what was loaded.
    `element`: a batch axis is innermost, so every element is fetched alone.
    """
    size = sizes_of(op)
    dims = long(view_axes(view), size)
    contract = long(op.contract_axes, size)
    free = tuple(a for a in dims if a not in contract and a not in op.batch_axes)
    if not dims or not free or dims[-1] in free:
        return "load"
    if dims[-1] in op.batch_axes:
        return "element"
    one_run = dims[len(dims) - len(contract) :] == contract
    first = dims.index(free[0])
    one_free = dims[first : first + len(free)] == free
    transposing = target.transposing_dma and size_of(dtype) == 2
    return "dma" if transposing and one_run and one_free else "pe"


# ---- loop nests ---------------------------------------------------------------------------------


def nests(function: p.Function) -> dict[str, int]:
    """The loop nest of each op: a contraction opens one, and elementwise work on its tiles joins.

    An elementwise op joins the latest nest among its producers' if it reads all that the nest wrote
    for it tile by tile as it was written; else it opens its own. A transpose on the way into a
    contraction belongs to the first nest that reads it. Nothing joins a nest across a kernel.
    """
    found: dict[str, int] = {}
    maker: dict[str, p.TensorOp] = {}
    ops = whole_ops(function)
    opened = before = 0  # `before`: how many nests stand before the kernel that came last
    for op in function.body:
        if not isinstance(op, p.TensorOp):
            before = opened
            continue
        maker[op.dst.tensor] = op
        if isinstance(op, p.TensorTransposeOp):
            continue
        number = opened
        if isinstance(op, p.ElementwiseOp):
            made = [(v, maker[v.tensor]) for v in views_read(op) if v.tensor in maker]
            latest = max((found[by.name] for _, by in made), default=-1)
            near = [(v, by) for v, by in made if found[by.name] == latest]
            if latest >= before and all(aligned(op, v, by) for v, by in near):
                number = latest
        found[op.name] = number
        opened = max(opened, number + 1)
    for op in ops:
        for view in views_read(op):
            by = maker.get(view.tensor)
            if isinstance(by, p.TensorTransposeOp):
                found[by.name] = min(found.get(by.name, opened), found[op.name])
    return found


def aligned(op: p.ElementwiseOp, view: p.View, by: p.TensorOp) -> bool:
    """Whether `op` reads what `by` wrote element by element, in its order, on its partitions."""
    same = view_axes(view) == view_axes(op.dst)
    if not same or any(not axis for axis in view_axes(view)):
        return False
    return as_stored(view, partition_dims(by), op.partition, sizes_of(op))


# ---- homes --------------------------------------------------------------------------------------


@attrs.frozen
class Use:
    """Who makes a tensor, and who reads it through which view."""

    maker: p.TensorOp
    readers: tuple[tuple[p.TensorOp, p.View], ...]


def uses(function: p.Function) -> dict[str, Use]:
    """Every tensor that an op writes, with its readers in program order."""
    ops = whole_ops(function)
    reads: dict[str, list[tuple[p.TensorOp, p.View]]] = {}
    for op in ops:
        for view in views_read(op):
            reads.setdefault(view.tensor, []).append((op, view))
    return {op.dst.tensor: Use(op, tuple(reads.get(op.dst.tensor, ()))) for op in ops}


def homes(function: p.Function, target: Target) -> dict[str, str]:
    """The home of every tensor: `dram`, `sbuf` or `stream` (see `ncc.ir.penguin.Tensor`).

    An intermediate that only its own loop nest reads is a stream of tiles. It stays in SBUF when
    every reader takes it as it lies and it is small enough; else it goes through DRAM.
    """
    used = uses(function)
    nest, taken = nests(function), kernels_read(function)
    left = target.sbuf_usable // 2
    found: dict[str, str] = {}
    for tensor in function.tensors:
        use = used.get(tensor.name)
        home = "dram"
        if tensor.kind == "internal" and use is not None and tensor.name not in taken:
            inside = all(nest[op.name] == nest[use.maker.name] for op, _ in use.readers)
            if inside or isinstance(use.maker, p.TensorTransposeOp):
                home = "stream"
            elif all(takes(op, view, use.maker) for op, view in use.readers):
                held = resident_bytes(tensor, use.maker, target.partitions)
                if held <= min(left, target.sbuf_usable // RESIDENT):
                    home, left = "sbuf", left - held
        found[tensor.name] = home
    return found


def takes(op: p.TensorOp, view: p.View, maker: p.TensorOp) -> bool:
    """Whether a reader can use a tensor on the partitions where its maker put it."""
    held = partition_dims(maker)
    match op:
        case p.TensorContractOp():
            return as_stored(view, held, op.contract_axes, sizes_of(op))
        case p.ElementwiseOp():
            return as_stored(view, held, op.partition, sizes_of(op))
        case p.TensorTransposeOp():
            return False


def resident_bytes(tensor: p.Tensor, maker: p.TensorOp, partitions: int) -> int:
    """Bytes a partition holds of a whole tensor; dimensions beyond the partitions are blocks."""
    held = [tensor.shape[d] for d in partition_dims(maker)]
    rows, blocks = 1, 1
    for extent in reversed(held):
        room = max(1, partitions // rows) if blocks == 1 else 1
        blocks *= math.ceil(extent / room)
        rows *= min(extent, room)
    free = math.prod(n for d, n in enumerate(tensor.shape) if d not in partition_dims(maker))
    return blocks * free * size_of(tensor.dtype)
