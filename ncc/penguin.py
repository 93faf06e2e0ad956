"""Penguin as a person writes it: running a printed stage builds the module that it shows.

    from ncc.penguin import *
    with function("copy") as f:
        x = tensor("x", "float32", (4, 8), kind="input", home="dram")
        y = tensor("y", "float32", (4, 8), kind="output", home="dram")
        a, b = axis("a b")
        ElementwiseOp("y_copy", "copy", y[a, b], srcs=(x[a, b],), axes=axes(a=4, b=8))
    print(show(f.module))

ncc itself never runs such a text; it reads it (`ncc.ir.penguin_text`).
"""

from __future__ import annotations

import builtins
import inspect
import math
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any, cast

import attrs

from ncc.frames import variable
from ncc.ir import penguin as nodes
from ncc.ir.affine import Affine, Floor, Index, Least, Mod
from ncc.ir.data import read_data
from ncc.ir.penguin import Axis, Cut, View
from ncc.ir.penguin_print import printed_fields, show
from ncc.penguin_kernels import (
    args,
    axis_loop,
    body,
    buffer,
    fori_loop,
    nisa,
    outs,
    params,
    reg,
    results,
    statements,
    the,
    while_loop,
)

inf, nan = math.inf, math.nan


@attrs.frozen
class Sum:
    """Index arithmetic that is being written: axes, and what Python's operators make of them."""

    of: Affine

    def __add__(self, other: Sum | int) -> Sum:
        return Sum(self.of.plus(_affine(other)))

    def __sub__(self, other: Sum | int) -> Sum:
        return Sum(self.of.plus(_affine(other), -1))

    def __rsub__(self, other: int) -> Sum:
        return Sum(Affine(other).plus(self.of, -1))

    def __mul__(self, factor: int) -> Sum:
        return Sum(self.of.times(factor))

    def __neg__(self) -> Sum:
        return Sum(self.of.times(-1))

    def __mod__(self, by: int) -> Mod:
        return Mod(self.of, by)

    def __floordiv__(self, by: int) -> Floor:
        return Floor(self.of, by)

    __radd__ = __add__
    __rmul__ = __mul__


def _affine(x: Sum | int) -> Affine:
    return x.of if isinstance(x, Sum) else Affine(x)


@attrs.frozen
class Handle:
    """A tensor's name in the program; a subscript makes a view of it."""

    name: str

    def __getitem__(self, index: Any) -> View:
        items = cast("tuple[Any, ...]", index) if isinstance(index, tuple) else (index,)
        return View(self.name, tuple(_index(x) for x in items))


def _index(x: Sum | Mod | Floor | int) -> Index:
    return x if isinstance(x, Mod | Floor) else _affine(x)


@attrs.define
class Program:
    """What `with function(NAME) as f:` collects; `f.module` is the Function afterwards."""

    name: str
    tensors: list[nodes.Tensor] = attrs.field(factory=list[nodes.Tensor])
    bodies: list[list[nodes.Statement]] = attrs.field(factory=lambda: [[]])
    pags: list[tuple[str, ...]] = attrs.field(factory=list[tuple[str, ...]])
    pgs: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = attrs.field(
        factory=list[tuple[int, tuple[str, ...], tuple[str, ...]]]
    )

    @property
    def module(self) -> nodes.Function:
        body = tuple(self.bodies[0])
        return nodes.Function(
            self.name, tuple(self.tensors), body, tuple(self.pags), tuple(self.pgs)
        )

    def __enter__(self) -> Program:
        _open.append(self)
        return self

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        _open.pop()


_open: list[Program] = []  # the programs being written, innermost last


def _here() -> Program:
    if not _open:
        raise TypeError("Penguin is written inside `with function(NAME) as f:`")
    return _open[-1]


def function(name: str) -> Program:
    """A new module: `with function("matmul") as f:`."""
    return Program(name)


def tensor(name: str, dtype: str, shape: tuple[int, ...], *rest: Any, **fields: Any) -> Handle:
    """A tensor of the module; the fields are those of `ncc.ir.penguin.Tensor`."""
    if isinstance(fields.get("data"), str):
        fields["data"] = read_data(fields["data"], dtype, shape)
    _here().tensors.append(nodes.Tensor(name, dtype, shape, *rest, **fields))
    return Handle(name)


def axis(names: str) -> Any:
    """Axes by name, one or several: `m, n = axis("m n")`."""
    found = tuple(Sum(nodes.axis_index(name)) for name in names.split())
    return found[0] if len(found) == 1 else found


def axes(**extents: int | Least) -> tuple[Axis, ...]:
    """The axes that an op walks, with their extents: `axes(m=128, n=256)`."""
    return tuple(Axis(name, extent) for name, extent in extents.items())


def min(first: Any, *rest: Any) -> Any:
    """The extent of a tile that may stick out of its axis; of plain values, Python's own min."""
    if len(rest) == 1 and isinstance(rest[0], Sum):
        return Least(first, rest[0].of)
    return builtins.min(first, *rest)


def loop(name: str, trips: int, kind: str) -> Iterator[Sum]:
    """`for m_o in loop("m_o", 4, "parallel"):` whose body is written once."""
    program = _here()
    program.bodies.append([])
    yield Sum(nodes.axis_index(name))
    body = tuple(program.bodies.pop())
    program.bodies[-1].append(nodes.Loop(name, trips, kind, body))


def _caller() -> FrameType | None:
    """The frame that turns the loop."""
    here = inspect.currentframe()
    return here and here.f_back and here.f_back.f_back


def affine_range(turns: int) -> Iterator[Sum]:
    """`for k in affine_range(4):` in a kernel, whose body is written once."""
    name = variable(_caller())
    yield from axis_loop("affine_range", turns, name, Sum(nodes.axis_index(name)))


def sequential_range(turns: int) -> Iterator[Sum]:
    """The same where the turns depend on each other."""
    name = variable(_caller())
    yield from axis_loop("sequential_range", turns, name, Sum(nodes.axis_index(name)))


def pag(*dims: str) -> None:
    """Dimensions that are partitioned together, as build-pags found them."""
    _here().pags.append(dims)


def pg(number: int, ops: tuple[str, ...], partition: tuple[str, ...]) -> None:
    """A partition group, as build-pgs found it."""
    _here().pgs.append((number, ops, partition))


def _writer(kind: type[Any]) -> Callable[..., None]:
    def write(*values: Any, **fields: Any) -> None:
        names = [name for name, _ in printed_fields(kind)]
        named = dict(zip(names, values, strict=False))
        _here().bodies[-1].append(kind(**named, **fields))

    write.__doc__ = kind.__doc__
    return write


TensorContractOp = _writer(nodes.TensorContractOp)
ElementwiseOp = _writer(nodes.ElementwiseOp)
TensorTransposeOp = _writer(nodes.TensorTransposeOp)
TileCopyOp = _writer(nodes.TileCopyOp)
TileTransposeOp = _writer(nodes.TileTransposeOp)
TileElementwiseOp = _writer(nodes.TileElementwiseOp)
MatMulOp = _writer(nodes.MatMulOp)
MatMulMXOp = _writer(nodes.MatMulMXOp)
MatMulSparseOp = _writer(nodes.MatMulSparseOp)
ActivationOp = _writer(nodes.ActivationOp)
TensorScalarOp = _writer(nodes.TensorScalarOp)
TensorTensorOp = _writer(nodes.TensorTensorOp)
TensorCopyOp = _writer(nodes.TensorCopyOp)
TileMemsetOp = _writer(nodes.TileMemsetOp)
KernelNode, KernelCall = statements(lambda one: _here().bodies[-1].append(one))

__all__ = [
    "ActivationOp",
    "Cut",
    "ElementwiseOp",
    "KernelCall",
    "KernelNode",
    "MatMulMXOp",
    "MatMulOp",
    "MatMulSparseOp",
    "TensorContractOp",
    "TensorCopyOp",
    "TensorScalarOp",
    "TensorTensorOp",
    "TensorTransposeOp",
    "TileCopyOp",
    "TileElementwiseOp",
    "TileMemsetOp",
    "TileTransposeOp",
    "affine_range",
    "args",
    "axes",
    "axis",
    "body",
    "buffer",
    "fori_loop",
    "function",
    "inf",
    "loop",
    "min",
    "nan",
    "nisa",
    "outs",
    "pag",
    "params",
    "pg",
    "reg",
    "results",
    "sequential_range",
    "show",
    "tensor",
    "the",
    "while_loop",
]
