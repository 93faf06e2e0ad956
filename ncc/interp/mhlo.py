"""What MHLO means: one plain numpy expression an op, rounded once to the type of the result."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncc.ir.data import FROM_HLO, name_of
from ncc.ir.kernel_request import Request
from ncc.ir.mhlo import (
    Binary,
    Broadcast,
    BroadcastInDim,
    Constant,
    Convert,
    Copy,
    CustomCall,
    DotGeneral,
    Func,
    GetTupleElement,
    Op,
    TensorType,
    Transpose,
    Tuple,
)
from ncc.ir.mhlo_text import operands_of
from ncc.numerics import alu, cast, widen
from ncc.target import Target

Array = NDArray[Any]
Watch = dict[str, Array]


def run(
    func: Func, target: Target, inputs: Sequence[Array], watch: Watch | None = None
) -> list[Array]:
    """The outputs for `inputs`; `watch`, if given, receives every value by its name."""
    env: dict[str, Any] = {}
    for param, given in zip(func.params, inputs, strict=True):
        env[param.name] = cast(np.asarray(given), FROM_HLO[param.type.dtype])
    for let in func.body:
        given = [env[x] for x in operands_of(let.op)]
        if isinstance(let.op, CustomCall):
            env.update(zip(let.names, custom_call(let.op, given, target), strict=True))
        else:
            env[let.names[0]] = value(let.op, let.types[0], given)
    if watch is not None:
        watch.update({name: x for name, x in env.items() if not isinstance(x, tuple)})
    outputs: list[Array] = []
    for name in func.results:
        outputs += env[name] if isinstance(env[name], tuple) else [env[name]]
    return outputs


def value(op: Op, kind: TensorType | tuple[TensorType, ...], given: list[Any]) -> Any:
    """One op's result."""
    match op:
        case Tuple():
            return tuple(given)
        case GetTupleElement(_, index):
            return given[0][index]
        case _:
            assert isinstance(kind, TensorType)
            return MEANING[type(op)](op, kind, *given)


def custom_call(op: CustomCall, given: list[Array], target: Target) -> list[Array]:
    """What the kernel of that name gives."""
    takes = tuple((name_of(x.dtype), x.shape or (1,)) for x in given)
    return Request(op.target, takes, op.config).run(target, given)


def dot_general(op: DotGeneral, kind: TensorType, lhs: Array, rhs: Array) -> Array:
    """Products and their sum over all of K in float64, rounded once."""
    return cast(contract(op, lhs, rhs), FROM_HLO[kind.dtype])


def contract(op: DotGeneral, lhs: Array, rhs: Array) -> Array:
    """The float64 result of a dot, not yet rounded: batch, lhs free, then rhs free dimensions."""
    left = [i for i in range(lhs.ndim) if i not in (*op.lhs_batch, *op.lhs_contract)]
    right = [i for i in range(rhs.ndim) if i not in (*op.rhs_batch, *op.rhs_contract)]
    batch = tuple(lhs.shape[i] for i in op.lhs_batch)
    depth = math.prod(lhs.shape[i] for i in op.lhs_contract)
    rows, columns = (tuple(x.shape[i] for i in dims) for x, dims in ((lhs, left), (rhs, right)))
    a = lhs.transpose(*op.lhs_batch, *left, *op.lhs_contract).astype(np.float64)
    b = rhs.transpose(*op.rhs_batch, *op.rhs_contract, *right).astype(np.float64)
    with np.errstate(all="ignore"):
        c = np.matmul(
            a.reshape(*batch, math.prod(rows), depth), b.reshape(*batch, depth, math.prod(columns))
        )
    return c.reshape((*batch, *rows, *columns))


def binary(op: Binary, kind: TensorType, lhs: Array, rhs: Array) -> Array:
    by = {"add": "add", "maximum": "max"}[op.by]
    return cast(alu(by, widen(lhs), widen(rhs)), FROM_HLO[kind.dtype])


def convert(op: Convert, kind: TensorType, operand: Array) -> Array:
    return cast(operand, FROM_HLO[kind.dtype])


def copy(op: Copy, kind: TensorType, operand: Array) -> Array:
    return operand


def transpose(op: Transpose, kind: TensorType, operand: Array) -> Array:
    return operand.transpose(op.permutation)


def constant(op: Constant, kind: TensorType) -> Array:
    return op.data.array()


def broadcast(op: Broadcast | BroadcastInDim, kind: TensorType, operand: Array) -> Array:
    order = sorted(range(operand.ndim), key=lambda i: op.dimensions[i])
    sizes = [1] * len(kind.shape)
    for i, d in enumerate(op.dimensions):
        sizes[d] = operand.shape[i]
    return np.broadcast_to(operand.transpose(order).reshape(sizes), kind.shape)


MEANING: dict[type[Op], Callable[..., Array]] = {
    DotGeneral: dot_general,
    Binary: binary,
    Convert: convert,
    Copy: copy,
    Transpose: transpose,
    Constant: constant,
    Broadcast: broadcast,
    BroadcastInDim: broadcast,
}
