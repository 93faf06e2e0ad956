"""What elementwise opcodes, comparisons, choices and reductions of HLO mean.

Floats are computed in float64 and rounded once to the type of the result, integers in their own
type; a truth value is numpy's bool.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncc.errors import NccError
from ncc.ir.data import FROM_HLO, numpy_type
from ncc.ir.hlo import ArrayShape, Computation, Instruction, called
from ncc.numerics import cast

Array = NDArray[Any]


def rsqrt(x: Array) -> Array:
    return 1 / np.sqrt(x)


def logistic(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


UNARY: dict[str, Callable[..., Any]] = {
    "exponential": np.exp,
    "log": np.log,
    "negate": np.negative,
    "abs": np.abs,
    "sqrt": np.sqrt,
    "rsqrt": rsqrt,
    "tanh": np.tanh,
    "logistic": logistic,
    "not": np.logical_not,
}
BINARY: dict[str, Callable[..., Any]] = {
    "add": np.add,
    "subtract": np.subtract,
    "multiply": np.multiply,
    "divide": np.divide,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.logical_and,
    "or": np.logical_or,
}
ORDERS: dict[str, Callable[..., Any]] = {
    "EQ": np.equal,
    "NE": np.not_equal,
    "GE": np.greater_equal,
    "GT": np.greater,
    "LE": np.less_equal,
    "LT": np.less,
}
FOLDS: dict[str, Callable[..., Any]] = {
    "add": np.sum,
    "multiply": np.prod,
    "maximum": np.max,
    "minimum": np.min,
    "and": np.all,
    "or": np.any,
}


def stored(x: Any, dtype: str) -> Array:
    """Values as an array of an HLO type."""
    if dtype == "pred":
        return np.asarray(x).astype(np.bool_)
    found = np.asarray(x)
    return cast(found.astype(np.float32) if found.dtype == np.bool_ else found, FROM_HLO[dtype])


def dtype_of(inst: Instruction) -> str:
    assert isinstance(inst.shape, ArrayShape)
    return inst.shape.dtype


def wide(x: Array) -> Array:
    """Floats in float64; integers and truth values as they are."""
    return x if x.dtype.kind in "iub" else x.astype(np.float64)


def unary(inst: Instruction, operand: Array) -> Array:
    with np.errstate(all="ignore"):
        return stored(UNARY[inst.opcode](wide(operand)), dtype_of(inst))


def binary(inst: Instruction, lhs: Array, rhs: Array) -> Array:
    with np.errstate(all="ignore"):
        return stored(BINARY[inst.opcode](wide(lhs), wide(rhs)), dtype_of(inst))


def compare(inst: Instruction, lhs: Array, rhs: Array) -> Array:
    return np.asarray(ORDERS[str(inst.get("direction"))](wide(lhs), wide(rhs)))


def select(inst: Instruction, choice: Array, yes: Array, no: Array) -> Array:
    return np.where(choice, yes, no)


def iota(inst: Instruction) -> Array:
    assert isinstance(inst.shape, ArrayShape)
    along = int(str(inst.get("iota_dimension")))
    sizes = [n if i == along else 1 for i, n in enumerate(inst.shape.dims)]
    counted = np.arange(inst.shape.dims[along]).reshape(sizes)
    return np.broadcast_to(stored(counted, inst.shape.dtype), inst.shape.dims)


def convert(inst: Instruction, operand: Array) -> Array:
    return stored(operand != 0 if dtype_of(inst) == "pred" else operand, dtype_of(inst))


def folded_by(inst: Instruction, others: Mapping[str, Computation]) -> str:
    """The opcode that a reduction folds with; NCC114 for a computation that is more than one op."""
    computation = others[called(inst)[0]]
    root = computation.returned()
    params = {x.name for x in computation.params()}
    if root.opcode in FOLDS and len(params) == 2 and {*root.operands} == params:
        return root.opcode
    said = f"reduce by {computation.name} is not run: it is more than one op"
    raise NccError("NCC114", said, inst.origin.place(inst.name))


def reduce(inst: Instruction, by: str, operand: Array, start: Array) -> Array:
    axes = inst.ints("dimensions")
    with np.errstate(all="ignore"):
        found = FOLDS[by](wide(operand), axis=axes) if operand.size else wide(start)
        return stored(BINARY[by](found, wide(start)), dtype_of(inst))


def literal_type(dtype: str) -> Any:
    """The numpy type of an HLO constant's elements."""
    return np.dtype(np.bool_) if dtype == "pred" else numpy_type(FROM_HLO[dtype])


MEANING: dict[str, Callable[..., Any]] = {
    **dict.fromkeys(UNARY, unary),
    **{opcode: binary for opcode in BINARY if opcode not in ("add", "maximum")},
    "compare": compare,
    "select": select,
    "iota": iota,
}
