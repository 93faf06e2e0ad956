"""How far a program's result may be off by rounding, and how large its sums get.

`allowed` follows every value of an HLO program together with a bound on its error: a dot adds
2⁻²⁴ · (K + 8) · Σ|a||b| for its own sum and carries its operands' errors through, an elementwise op
carries the larger or the summed error of its operands, and a value that is written to a type gains
one unit in the last place of that type. `largest_sum` is the largest Σ|a||b| of any dot: below 2²⁴
a sum of whole numbers is exact in float32, in any order.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from typing import Any, cast

import attrs
import numpy as np
from numpy.typing import NDArray

from ncc.interp import hlo, hlo_ops
from ncc.interp.mhlo import contract
from ncc.ir.data import FROM_HLO, numpy_type
from ncc.ir.hlo import ArrayShape, Computation, Instruction, Module, called
from ncc.target import Target

Array = NDArray[Any]
UNIT = 2.0**-24


@attrs.frozen
class Known:
    """A value, a bound on its error, and the largest sum of magnitudes on the way to it."""

    value: Array
    error: Any  # float64, elementwise; 0.0 for what is exact
    largest: float = 0.0


def allowed(module: Module, target: Target, inputs: Sequence[Array]) -> list[Any]:
    """The allowed difference of every output, elementwise, for these inputs."""
    return [known.error + last_place(known.value) for known in _known(module, target, inputs)]


def largest_sum(module: Module, target: Target, inputs: Sequence[Array]) -> float:
    """The largest sum of magnitudes of any dot or add for these inputs."""
    return max((known.largest for known in _known(module, target, inputs)), default=0.0)


def last_place(value: Array) -> Any:
    """One unit in the last place of each element, in its own type."""
    if value.dtype.kind in "iub":
        return np.zeros(value.shape)
    limits = limits_of(value)
    magnitude = np.abs(np.asarray(value, np.float64))
    smallest = float(limits.smallest_normal)
    clean = np.where(np.isfinite(magnitude), magnitude, 0.0)
    exponent = np.floor(np.log2(np.maximum(clean, smallest)))
    return 2.0 ** (exponent - int(limits.nmant))


def limits_of(value: Array) -> Any:
    """numpy's finfo, for the narrow types too."""
    return import_module("ml_dtypes").finfo(value.dtype)  # the package's own types are loose


def _known(module: Module, target: Target, inputs: Sequence[Array]) -> list[Known]:
    others = {x.name: x for x in module.computations}
    given = iter(inputs)

    def tree(shape: Any) -> Any:
        if isinstance(shape, ArrayShape):
            array = np.asarray(next(given)).astype(numpy_type(FROM_HLO[shape.dtype]))
            return Known(array, 0.0)
        return tuple(tree(part) for part in shape.parts)

    args = [tree(inst.shape) for inst in module.main().params()]
    return list(_flat(_call(module.main(), args, hlo.Around(others, target))))


def _flat(value: Any) -> list[Known]:
    if isinstance(value, Known):
        return [value]
    return [leaf for part in value for leaf in _flat(part)]


def _call(computation: Computation, args: Sequence[Any], around: hlo.Around) -> Any:
    env: dict[str, Any] = {}
    for inst in computation.instructions:
        given = [env[name] for name in inst.operands]
        match inst.opcode:
            case "parameter":
                env[inst.name] = args[inst.number]
            case "call" | "fusion":
                env[inst.name] = _call(around.others[called(inst)[0]], given, around)
            case "reduce" if len(given) == 2:
                env[inst.name] = _reduce(inst, hlo_ops.folded_by(inst, around.others), *given)
            case "custom-call":
                env[inst.name] = _custom_call(inst, given, around.target)
            case "tuple":
                env[inst.name] = tuple(given)
            case "get-tuple-element":
                env[inst.name] = given[0][int(str(inst.get("index")))]
            case _:
                env[inst.name] = _op(inst, given)
    return env[computation.root]


def _exact(value: Any) -> Any:
    if not isinstance(value, tuple):
        return Known(value, 0.0)
    return tuple(map(_exact, cast("tuple[Any, ...]", value)))


def _op(inst: Instruction, given: list[Known]) -> Any:
    """One op on values with bounds."""
    if inst.opcode not in hlo.MEANING:
        raise hlo.no_meaning(inst)
    values = [known.value for known in given]
    value: Any = hlo.MEANING[inst.opcode](inst, *values)
    if inst.opcode == "constant":
        return _exact(value)
    largest = max((known.largest for known in given), default=0.0)
    errors = [known.error for known in given]
    moved = [
        np.broadcast_to(np.asarray(e, np.float64), v.shape)
        for e, v in zip(errors, values, strict=True)
    ]
    match inst.opcode:
        case "dot":
            return _dot(inst, value, values, moved, largest)
        case "add" | "subtract":
            size = np.abs(np.asarray(value, np.float64)).max(initial=0.0)
            error = moved[0] + moved[1] + last_place(value)
            return Known(value, error, max(largest, float(size)))
        case "multiply" | "divide" | "exponential":
            error = _slope(inst.opcode, value, values, moved)
            return Known(value, error + last_place(value), largest)
        case "select":
            error = np.where(values[0], moved[1], moved[2])
            return Known(value, np.broadcast_to(error, value.shape), largest)
        case opcode if opcode in hlo_ops.UNARY:
            error = 8 * max(map(_relative, given)) * _size(value)
            return Known(value, error + 8 * last_place(value), largest)
        case opcode if value.dtype.kind in "iub":
            return Known(value, np.zeros(value.shape), largest)
        case "maximum" | "minimum":
            return Known(value, np.maximum(moved[0], moved[1]), largest)
        case "convert":
            return Known(value, moved[0] + last_place(value), largest)
        case _:  # broadcast, transpose, reshape, copy: the error moves as the value does
            error = hlo.MEANING[inst.opcode](inst, *moved)
            return Known(value, error, largest)


def _slope(opcode: str, value: Array, values: list[Array], errors: list[Any]) -> Any:
    """How far a product, a quotient or an exponential is off when its operands are."""
    sizes = [np.abs(np.asarray(v, np.float64)) for v in values]
    with np.errstate(all="ignore"):
        if opcode == "exponential":
            found = np.asarray(value, np.float64) * np.expm1(errors[0])
        elif opcode == "multiply":
            found = sizes[0] * errors[1] + errors[0] * (sizes[1] + errors[1])
        else:
            least = np.maximum(sizes[1] - errors[1], np.finfo(np.float64).tiny)
            found = (errors[0] + np.abs(np.asarray(value, np.float64)) * errors[1]) / least
    return np.where(np.isnan(found), 0.0, found)


def _reduce(inst: Instruction, by: str, operand: Known, start: Known) -> Known:
    axes = inst.ints("dimensions")
    value = hlo_ops.reduce(inst, by, operand.value, start.value)
    error = np.broadcast_to(np.asarray(operand.error, np.float64), operand.value.shape)
    if by in ("maximum", "minimum"):
        sign = 1.0 if by == "maximum" else -1.0
        v = sign * np.asarray(operand.value, np.float64)
        rival = v + error >= (v - error).max(axis=axes, keepdims=True)  # it may be the one chosen
        error = np.where(rival, error, 0.0).max(axis=axes, initial=0.0)
        return Known(value, error + last_place(value), operand.largest)
    size = np.abs(np.asarray(operand.value, np.float64)).sum(axis=axes)
    depth = int(np.prod([operand.value.shape[d] for d in axes], dtype=np.int64))
    error = error.sum(axis=axes) + UNIT * (depth + 8) * size + last_place(value)
    return Known(value, error, max(operand.largest, float(size.max(initial=0.0))))


def _custom_call(inst: Instruction, given: list[Known], target: Target) -> Any:
    """A kernel is no sum to follow: its results may be off by eight units in the last place of the
    narrowest type that it takes or gives, at the largest value, and eight times what its operands
    are off relative to theirs."""
    found = hlo.custom_call(inst, [known.value for known in given], target)
    gives = cast("tuple[Array, ...]", found if isinstance(found, tuple) else (found,))
    coarse = max(2.0 ** -int(limits_of(x).nmant) for x in (*gives, *(k.value for k in given)))
    moved = max((_relative(known) for known in given), default=0.0)
    largest = max((known.largest for known in given), default=0.0)
    made = tuple(
        Known(x, np.full(x.shape, 8 * (coarse + moved) * _size(x)), largest) for x in gives
    )
    return made if isinstance(found, tuple) else made[0]


def _size(value: Array) -> float:
    return float(np.abs(np.asarray(value, np.float64)).max(initial=0.0))


def _relative(known: Known) -> float:
    size = _size(known.value)
    return float(np.max(known.error, initial=0.0)) / size if size else 0.0


def _dot(
    inst: Instruction, value: Array, values: list[Array], errors: list[Any], largest: float
) -> Known:
    dims = hlo.dims_of(inst)
    left, right = (np.abs(np.asarray(v, np.float64)) for v in values)
    magnitude = contract(dims, left, right)
    depth = int(np.prod([values[0].shape[d] for d in dims.lhs_contract], dtype=np.int64))
    error = UNIT * (depth + 8) * magnitude
    error = error + contract(dims, left, errors[1]) + contract(dims, errors[0], right + errors[1])
    size = float(magnitude.max(initial=0.0))
    return Known(value, error + last_place(value), max(largest, size))
