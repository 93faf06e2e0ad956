"""Which whole-tensor ops share a loop nest, and which values never exist as a whole.

A nest has an anchor, whose tiles it walks: a contraction, a transpose, or an elementwise op that
reads nothing of another nest. Elementwise ops that follow on the same tile join it, so a bias and a
relu are done while the sums are still on chip. A `stream` value gets no nest: it is made tile by
tile wherever it is read.
"""

from __future__ import annotations

import attrs

from ncc.ir.penguin import (
    ElementwiseOp,
    Function,
    Statement,
    TensorContractOp,
    TensorOp,
    TensorTransposeOp,
)
from ncc.ir.penguin_views import kernels_read, sizes_of, views_read
from ncc.ir.tiling import axes_written, partition_of


@attrs.frozen
class Nest:
    """The ops of one loop nest, in order; the first is the anchor."""

    ops: tuple[TensorOp, ...]

    @property
    def anchor(self) -> TensorOp:
        return self.ops[0]

    @property
    def writes(self) -> frozenset[str]:
        return frozenset(op.dst.tensor for op in self.ops)


@attrs.frozen
class Plan:
    """The nests in order, and between them the kernels, each with the number of nests before it;
    `lazy` are the ops whose results exist tile by tile; `home` says where
    each other tensor lives, and `kept` which results never leave their nest."""

    nests: tuple[Nest, ...]
    kernels: tuple[tuple[int, Statement], ...]
    lazy: dict[str, TensorOp]
    home: dict[str, str]
    kept: frozenset[str]


def plan(func: Function, to_dram: frozenset[str] = frozenset()) -> Plan:
    """The nests of a function. Tensors in `to_dram` live in DRAM whatever their home says."""
    return _Planner(func, to_dram).plan()


class _Planner:
    def __init__(self, func: Function, to_dram: frozenset[str]) -> None:
        self.ops = [op for op in func.body if isinstance(op, TensorOp)]
        self.home = {
            t.name: t.home if t.home in ("sbuf", "stream") and t.name not in to_dram else "dram"
            for t in func.tensors
        }
        self.readers: dict[str, list[TensorOp]] = {t.name: [] for t in func.tensors}
        for op in self.ops:
            for view in views_read(op):
                self.readers[view.tensor].append(op)
        self.outputs = {t.name for t in func.tensors if t.kind == "output"} | kernels_read(func)
        self.body = func.body
        self.kernels: list[tuple[int, Statement]] = []
        self.nests: list[list[TensorOp]] = []
        self.made: dict[str, int] = {}  # the nest that makes a tensor, or its last source
        self.lazy: dict[str, TensorOp] = {}

    def plan(self) -> Plan:
        for op in self.body:
            if not isinstance(op, TensorOp):
                self.kernels.append((len(self.nests), op))
            elif 0 not in sizes_of(op).values():
                self.place(op)
        kept: set[str] = set()
        for number, ops in enumerate(self.nests):
            for op in ops:
                name = op.dst.tensor
                inside = all(self.shares(r, number) for r in self.readers[name])
                if inside and name not in self.outputs:
                    kept.add(name)
                elif self.home[name] == "stream":
                    self.home[name] = "dram"
        nests = tuple(Nest(tuple(ops)) for ops in self.nests)
        return Plan(nests, tuple(self.kernels), self.lazy, self.home, frozenset(kept))

    def place(self, op: TensorOp) -> None:
        name, last = (
            op.dst.tensor,
            max((self.made.get(v.tensor, -1) for v in views_read(op)), default=-1),
        )
        stream = self.home[name] == "stream"
        if stream and self.made_where_read(op):
            self.lazy[name], self.made[name] = op, last
        elif self.joins(op, last):
            self.nests[last].append(op)
            self.made[name] = last
        elif stream and isinstance(op, ElementwiseOp):
            self.lazy[name], self.made[name] = op, last
        else:
            self.made[name] = len(self.nests)
            self.nests.append([op])

    def made_where_read(self, op: TensorOp) -> bool:
        """A stream value that some reader needs in tiles of its own."""
        match op:
            case TensorContractOp():
                return False
            case TensorTransposeOp():
                return True
            case ElementwiseOp():
                readers = self.readers[op.dst.tensor]
                return any(not isinstance(r, ElementwiseOp) or r.group != op.group for r in readers)

    def joins(self, op: TensorOp, number: int) -> bool:
        """An elementwise op joins the nest of its last source when it walks that nest's tiles."""
        if number < 0 or not isinstance(op, ElementwiseOp):
            return False
        nest = self.nests[number]
        written = {o.dst.tensor for o in nest}
        if _tiles(op) != _tiles(nest[0]):
            return False
        late = [v for v in views_read(op) if self.made.get(v.tensor, -1) == number]
        return all(v.tensor in written and v.index == op.dst.index for v in late)

    def shares(self, op: TensorOp, number: int) -> bool:
        return any(op is other for other in self.nests[number])


def _tiles(op: TensorOp) -> tuple[object, ...]:
    """What two ops must agree on to be done on one tile: group, shape, dimensions on partitions."""
    sizes, written = sizes_of(op), axes_written(op)
    shape = tuple(sizes[i.names()[0]] if i.names() else 1 for i in op.dst.index)
    places = [
        next(d for d, i in enumerate(op.dst.index) if name in i.names())
        for name in partition_of(op)
        if name in written and sizes[name] > 1
    ]
    return op.group, shape, tuple(places)
