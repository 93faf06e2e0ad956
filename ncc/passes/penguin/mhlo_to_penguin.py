"""Turn the SSA function into tensors and whole-tensor ops over named axes.

Before:
    func main(x: bf16[4,8], w: bf16[8,3], c: f32[3]) name=layer {
      y = dot_general x w lhs_contract=(1,) rhs_contract=(0,) : f32[4,3]
      wide = broadcast_in_dim c dimensions=(1,) : f32[4,3]
      z = add y wide symbol=out : f32[4,3]
      return z
    }

After:
    from ncc.penguin import *
    with function("layer") as f:
        x = tensor("x", "bfloat16", (4, 8), kind="input", home="dram")
        w = tensor("w", "bfloat16", (8, 3), kind="input", home="dram")
        c = tensor("c", "float32", (3,), kind="input", home="dram")
        out = tensor("out", "float32", (4, 3), kind="output", home="dram")
        y = tensor("y", "float32", (4, 3))
        m, k, n, d0, d1 = axis("m k n d0 d1")
        TensorContractOp("y", y[m, n], x[m, k], w[k, n], axes=axes(m=4, k=8, n=3),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",))
        ElementwiseOp("out", "add", out[d0, d1], srcs=(y[d0, d1], c[d1]), axes=axes(d0=4, d1=3))

Why: from here on it matters which elements meet which. An axis that two operands share says so,
where MHLO has lists of dimension numbers; a broadcast or a transpose needs no op, because a view
may lack an axis of its reader or order them its own way.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Sequence
from typing import TypeGuard

import attrs

from ncc.errors import NccError
from ncc.ir import mhlo
from ncc.ir.affine import Affine, Index
from ncc.ir.core import NOWHERE, Origin
from ncc.ir.data import FROM_HLO, Data, size_of
from ncc.ir.kernel_request import Request
from ncc.ir.penguin import (
    Axis,
    ElementwiseOp,
    Function,
    KernelCall,
    Operand,
    Tensor,
    TensorContractOp,
    TensorOp,
    View,
    axis_index,
)
from ncc.ir.penguin_print import RESERVED
from ncc.passes.base import define
from ncc.target import Target

NAME = "mhlo-to-penguin"


@attrs.frozen
class Value:
    """What an MHLO value became: dimensions of a tensor, or known data that has no tensor yet.

    `dims` has for each dimension of the tensor the dimension of the value that runs along it, or -1
    where the tensor's only element is taken.
    """

    name: str
    type: mhlo.TensorType
    tensor: str
    dims: tuple[int, ...]
    data: Data | None = None
    origin: Origin = attrs.field(default=NOWHERE, eq=False)


class Builder:
    """The Penguin function while it grows."""

    def __init__(self, func: mhlo.Func, target: Target) -> None:
        self.func, self.target = func, target
        self.values: dict[str, Value] = {}
        self.tensors: list[Tensor] = []
        self.body: list[TensorOp | KernelCall] = []
        self.consts: dict[Data, str] = {}
        words = [p.name for p in func.params] + [n for let in func.body for n in let.names]
        self.words = {plain(word) for word in (*words, *func.output_names)}
        self.taken: set[str] = set()
        self.outputs: dict[str, list[str]] = {}  # the tensors that a value must end up in

    def build(self) -> Function:
        func = self.func
        for param in func.params:
            dtype = FROM_HLO[param.type.dtype]
            name = self.tensor(param.name, dtype, param.type.shape, "input", param.origin)
            self.values[param.name] = Value(
                param.name, param.type, name, tuple(rank(param.type)), origin=param.origin
            )
        self.declare_outputs()
        for let in func.body:
            self.let(let)
        for result, names in self.outputs.items():
            for name in names:  # what no op wrote directly: an argument, a constant, a broadcast
                value = self.values[result]
                if 0 not in value.type.shape:
                    self.elementwise("copy", name, value.type, (value,), value.origin.by(NAME))
        kinds = ("input", "output", "const", "internal")
        order = sorted(self.tensors, key=lambda t: kinds.index(t.kind))
        made = {op.dst.tensor for op in self.body if not isinstance(op, KernelCall)}
        for call in self.body:
            if isinstance(call, KernelCall):
                made.update(tensor for _, tensor in call.outs)
        kept = (t for t in order if t.kind != "internal" or t.name in made)
        return Function(func.name, tuple(kept), tuple(self.body))

    def declare_outputs(self) -> None:
        kinds = {p.name: p.type for p in self.func.params}
        origins = {p.name: p.origin for p in self.func.params}
        for let in self.func.body:
            kinds.update((n, t) for n, t in zip(let.names, let.types, strict=True) if single(t))
            origins.update((n, let.origin) for n in let.names)
        count = len(self.func.results)
        numbered = ["out"] if count == 1 else [f"out{i}" for i in range(count)]
        names = self.func.output_names or numbered
        for result, name in zip(self.func.results, names, strict=True):
            kind = kinds[result]
            found = self.tensor(
                name, FROM_HLO[kind.dtype], kind.shape, "output", origins[result].by(NAME)
            )
            self.outputs.setdefault(result, []).append(found)

    def tensor(
        self,
        name: str,
        dtype: str,
        shape: tuple[int, ...],
        kind: str,
        origin: Origin,
        data: Data | None = None,
    ) -> str:
        """A new tensor, under a name as near as possible to `name`."""
        found = self.fresh(plain(name))
        home = "unplaced" if kind == "internal" else "dram"
        self.tensors.append(Tensor(found, dtype, shape, kind, home, data=data, origin=origin))
        return found

    def fresh(self, base: str) -> str:
        """`base`, or the first of base_1, base_2, ... that is free; then it is taken."""
        found, number = base, 0
        while found in self.taken:
            number += 1
            found = f"{base}_{number}"
        self.taken.add(found)
        return found

    # ---- ops ------------------------------------------------------------------------------------

    def let(self, let: mhlo.Let) -> None:
        name, kind, op = let.names[0], let.types[0], let.op
        if not single(kind) or isinstance(op, mhlo.Tuple | mhlo.GetTupleElement):
            raise NccError("NCC230", "Penguin has no tuples", let.origin.place(name, NAME))
        match op:
            case mhlo.Constant(data):
                self.values[name] = Value(name, kind, "", tuple(rank(kind)), data, let.origin)
            case mhlo.Broadcast(operand, dims) | mhlo.BroadcastInDim(operand, dims):
                self.values[name] = spread(self.values[operand], kind, dims)
            case mhlo.CustomCall():
                self.kernel(let, op, let.origin.by(NAME))
            case mhlo.Transpose(operand, order):
                self.values[name] = reorder(self.values[operand], kind, order)
            case _:
                self.compute(let, name, kind, let.origin.by(NAME))

    def compute(self, let: mhlo.Let, name: str, kind: mhlo.TensorType, origin: Origin) -> None:
        """An op that computes: into the output that its value is, or into a new tensor."""
        target = self.result(name, kind, origin)
        if 0 in kind.shape:
            return
        match let.op:
            case mhlo.DotGeneral() as dot:
                self.contract(dot, target, kind, origin)
            case mhlo.Binary(by, lhs, rhs):
                self.elementwise(by, target, kind, (self.values[lhs], self.values[rhs]), origin)
            case mhlo.Convert(operand) | mhlo.Copy(operand):
                self.elementwise("copy", target, kind, (self.values[operand],), origin)
            case _:
                said = f"{type(let.op).__name__} has no form in Penguin"
                raise NccError("NCC230", said, let.origin.place(name, NAME))

    def result(self, name: str, kind: mhlo.TensorType, origin: Origin) -> str:
        """The tensor that a value is written to."""
        if self.outputs.get(name):
            target = self.outputs[name].pop(0)
        else:
            target = self.tensor(name, FROM_HLO[kind.dtype], kind.shape, "internal", origin)
        self.values[name] = Value(name, kind, target, tuple(rank(kind)), origin=origin)
        return target

    def kernel(self, let: mhlo.Let, op: mhlo.CustomCall, origin: Origin) -> None:
        """A call of a kernel: what it takes and gives are whole tensors in DRAM."""
        given = [self.as_it_lies(name, origin) for name in op.operands]
        takes = tuple((FROM_HLO[v.type.dtype], v.type.shape) for v in given)
        request = Request(op.target, takes, op.config)
        takes_as, gives_as = request.bindings(self.target)
        read = [value.tensor or self.const(value) for value in given]
        args = tuple(zip(takes_as, read, strict=True))
        wrote = [
            self.result(name, kind, origin)
            for name, kind in zip(let.names, let.types, strict=True)
            if single(kind)
        ]
        outs = tuple(zip(gives_as, wrote, strict=True))
        called = self.fresh(plain(op.target.rpartition(":")[2]))
        self.body.append(KernelCall(called, request, args, outs, origin=origin))

    def elementwise(
        self,
        by: str,
        target: str,
        kind: mhlo.TensorType,
        given: Sequence[Value],
        origin: Origin,
    ) -> None:
        names = self.axes("d", len(kind.shape))
        units = self.axes("u", max(0, 2 - len(names)))
        axes = [Axis(n, 1) for n in units]
        axes += [Axis(n, s) for n, s in zip(names, kind.shape, strict=True)]
        numbers = [splat(v.data) for v in given]
        if None not in numbers and by != "copy":  # an op that computes reads some tensor
            numbers[0] = None
        srcs: list[Operand] = []
        for value, number in zip(given, numbers, strict=True):
            srcs.append(self.view(value, names) if number is None else number)
        dst = View(target, tuple(axis_index(n) for n in names))
        self.body.append(ElementwiseOp(target, by, dst, tuple(srcs), tuple(axes), origin=origin))

    def view(self, value: Value, names: Sequence[str]) -> View:
        """The value's elements, its dimensions running along the axes `names`."""
        tensor = value.tensor or self.const(value)
        index: list[Index] = [axis_index(names[d]) if d >= 0 else Affine() for d in value.dims]
        return View(tensor, tuple(index))

    def const(self, value: Value) -> str:
        """The tensor that holds known data, made when it is first read."""
        assert value.data is not None
        if value.data not in self.consts:
            self.consts[value.data] = self.tensor(
                value.name, value.data.dtype, value.data.shape, "const", value.origin, value.data
            )
        return self.consts[value.data]

    def axes(self, letter: str, count: int, least: int = 0) -> tuple[str, ...]:
        """Names for some axes: `m` for one, `m0`, `m1`, ... for several; no tensor has them."""
        names = [letter] if max(count, least) == 1 else [f"{letter}{i}" for i in range(count)]
        return tuple(n if n not in self.words else f"{n}_" for n in names)

    def contract(
        self, op: mhlo.DotGeneral, target: str, kind: mhlo.TensorType, origin: Origin
    ) -> None:
        lhs, rhs = self.whole(op.lhs, origin), self.whole(op.rhs, origin)
        batch = self.axes("b", len(op.lhs_batch))
        summed = self.axes("k", len(op.lhs_contract), least=1)
        left = self.operand(lhs, "m", (op.lhs_batch, op.lhs_contract), (batch, summed))
        right = self.operand(rhs, "n", (op.rhs_batch, op.rhs_contract), (batch, summed))
        extents = dict.fromkeys((*batch, *left.free, *right.free, *summed), 1)
        for value, names in ((lhs, left.names), (rhs, right.names)):
            extents.update(zip(names, value.type.shape, strict=True))
        if 0 in extents.values():  # a sum over nothing
            zero = Data(FROM_HLO[kind.dtype], (), bytes(size_of(FROM_HLO[kind.dtype])))
            self.elementwise("copy", target, kind, (Value(target, kind, "", (), zero),), origin)
            return
        order = dict.fromkeys((*left.names, *right.names))
        order |= dict.fromkeys(extents)
        seen = {*left.names, *right.names}
        out = [a for a in (*batch, *left.free, *right.free) if a in seen]
        self.body.append(
            TensorContractOp(
                target,
                View(target, tuple(map(axis_index, out))),
                self.view(lhs, left.names),
                self.view(rhs, right.names),
                tuple(Axis(a, extents[a]) for a in order),
                summed,
                left.free,
                right.free,
                batch,
                origin=origin,
            )
        )

    def operand(
        self,
        value: Value,
        letter: str,
        dims: tuple[tuple[int, ...], tuple[int, ...]],
        axes: tuple[tuple[str, ...], tuple[str, ...]],
    ) -> Side:
        """One side of a contraction: the axis of each of its dimensions, and its free axes."""
        at = dict(zip(dims[0], axes[0], strict=True))
        at.update(zip(dims[1], axes[1], strict=False))  # without dimensions the axis is a unit
        left = [d for d in rank(value.type) if d not in at]
        free = self.axes(letter, len(left), least=1)
        at.update(zip(left, free, strict=False))
        return Side(tuple(at[d] for d in rank(value.type)), free)

    def whole(self, name: str, origin: Origin) -> Value:
        """A value that a contraction can read: one that repeats no elements."""
        value = self.values[name]
        runs = set(value.dims)
        if all(d in runs for d in rank(value.type) if value.type.shape[d] != 1):
            return value
        return self.copied(name, value, origin)

    def as_it_lies(self, name: str, origin: Origin) -> Value:
        """A value whose tensor has its very shape, as a kernel takes it."""
        value = self.values[name]
        if value.dims == tuple(rank(value.type)) and (not value.data or value.type.shape):
            return value
        return self.copied(name, value, origin)

    def copied(self, name: str, value: Value, origin: Origin) -> Value:
        """The value in a tensor of its own."""
        tensor = self.tensor(name, FROM_HLO[value.type.dtype], value.type.shape, "internal", origin)
        self.elementwise("copy", tensor, value.type, (value,), origin)
        made = attrs.evolve(value, tensor=tensor, dims=tuple(rank(value.type)), data=None)
        self.values[name] = made
        return made


@attrs.frozen
class Side:
    """One operand of a contraction: the axis of each dimension, and the free axes among them."""

    names: tuple[str, ...]
    free: tuple[str, ...]


def single(kind: mhlo.TensorType | tuple[mhlo.TensorType, ...]) -> TypeGuard[mhlo.TensorType]:
    return isinstance(kind, mhlo.TensorType)


def rank(kind: mhlo.TensorType) -> range:
    return range(len(kind.shape))


def plain(name: str) -> str:
    """The name as an identifier that means nothing else in Penguin's text."""
    found = re.sub(r"\W", "_", name, flags=re.ASCII) or "_"
    if found[0].isdigit() or keyword.iskeyword(found) or found in RESERVED:
        return f"_{found}"
    return found


def spread(value: Value, kind: mhlo.TensorType, dims: Sequence[int]) -> Value:
    """The value after a broadcast: its dimension i runs along dimension `dims[i]` of `kind`."""
    shape = value.type.shape
    kept = [dims[d] if d >= 0 and shape[d] == kind.shape[dims[d]] else -1 for d in value.dims]
    return attrs.evolve(value, type=kind, dims=tuple(kept))


def reorder(value: Value, kind: mhlo.TensorType, order: Sequence[int]) -> Value:
    """The value after a transpose: dimension i of `kind` is dimension `order[i]` of it."""
    return attrs.evolve(
        value, type=kind, dims=tuple(order.index(d) if d >= 0 else -1 for d in value.dims)
    )


def splat(known: Data | None) -> float | None:
    """The number that all elements of known data are, if they are one."""
    if known is None or not known.raw or not known.word().startswith("splat:"):
        return None
    number = float(known.array().reshape(-1)[0])
    return math.nan if math.isnan(number) else number


def apply(module: mhlo.Func, target: Target) -> Function:
    return Builder(module, target).build()


PASS = define(
    __name__,
    __doc__,
    apply,
    source="mhlo",
    target="penguin",
    needs=("no-tuple-is-left", "no-broadcast-is-left", "outputs-are-named"),
    after={"name-outputs": "an output tensor takes the name that its value carries"},
    real="MhloToPyPenguin",
    job="F0",
    sure="confirmed",
)
