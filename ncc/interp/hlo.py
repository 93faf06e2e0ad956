"""What HLO means, for the opcodes that are compiled: values are logical, layouts change nothing."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from typing import cast as typed

import numpy as np
from numpy.typing import NDArray

from ncc.errors import NccError
from ncc.interp import hlo_ops, mhlo
from ncc.ir import attention
from ncc.ir.custom_call import Asked, asked
from ncc.ir.data import FROM_HLO, name_of
from ncc.ir.hlo import (
    ArrayShape,
    Computation,
    Instruction,
    Literal,
    Module,
    Shape,
    TupleLiteral,
    TupleShape,
    called,
)
from ncc.ir.kernel_request import Request
from ncc.ir.mhlo import Binary, Broadcast, CustomCall, DotGeneral, TensorType, Transpose
from ncc.numerics import cast
from ncc.target import Target

Array = NDArray[Any]
Watch = dict[str, Array]


def run(
    module: Module, target: Target, inputs: Sequence[Array], watch: Watch | None = None
) -> list[Array]:
    """The entry's outputs for `inputs`, tuples leaf by leaf; `watch` receives every array."""
    others = {x.name: x for x in module.computations}
    given = iter(inputs)
    args = [_tree(inst.shape, given) for inst in module.main().params()]
    return _flat(_call(module.main(), args, Around(others, target, watch)))


def _tree(shape: Shape, given: Any) -> Any:
    if isinstance(shape, ArrayShape):
        return cast(np.asarray(next(given)), FROM_HLO[shape.dtype])
    return tuple(_tree(part, given) for part in shape.parts)


def _flat(value: Any) -> list[Array]:
    if not isinstance(value, tuple):
        return [value]
    return [leaf for part in typed(tuple[Any, ...], value) for leaf in _flat(part)]


class Around(NamedTuple):
    """What a computation runs in: the others that it may call, the machine, who watches."""

    others: dict[str, Computation]
    target: Target
    watch: Watch | None = None


def _call(computation: Computation, args: Sequence[Any], around: Around) -> Any:
    env: dict[str, Any] = {}
    for inst in computation.instructions:
        given = [env[name] for name in inst.operands]
        if inst.opcode == "parameter":
            env[inst.name] = args[inst.number]
        elif inst.opcode in ("call", "fusion"):
            env[inst.name] = _call(around.others[called(inst)[0]], given, around)
        elif inst.opcode == "tuple":
            env[inst.name] = tuple(given)
        elif inst.opcode == "get-tuple-element":
            env[inst.name] = given[0][int(str(inst.get("index")))]
        elif inst.opcode == "reduce" and len(given) == 2:
            by = hlo_ops.folded_by(inst, around.others)
            env[inst.name] = hlo_ops.reduce(inst, by, *given)
        elif inst.opcode == "custom-call":
            env[inst.name] = custom_call(inst, given, around.target)
        elif inst.opcode in MEANING:
            env[inst.name] = MEANING[inst.opcode](inst, *given)
        else:
            raise no_meaning(inst)
        if around.watch is not None and not isinstance(env[inst.name], tuple):
            around.watch[inst.name] = env[inst.name]
    return env[computation.root]


def custom_call(inst: Instruction, given: Sequence[Array], target: Target) -> Any:
    """What the kernel of that name gives: an array, or a tuple of them."""
    try:
        call = asked(inst)
        if call.target in attention.TARGETS:
            return attend(inst, call, given, target)
        found = mhlo.custom_call(CustomCall((), call.target, call.config), list(given), target)
    except ValueError as said:
        place = inst.origin.place(inst.name)
        raise NccError("NCC124", f"custom-call {said}", place) from None
    except NccError as fault:
        raise fault.at(file=inst.origin.file, line=inst.origin.line, value=inst.name) from None
    return tuple(found) if isinstance(inst.shape, TupleShape) else found[0]


def attend(inst: Instruction, call: Asked, given: Sequence[Array], target: Target) -> Array:
    """An attention call is what its kernel computes; where no kernel takes it, its definition."""
    gives = _type(inst)
    if said := attention.complaint(call.target, [x.shape for x in given], gives.shape):
        raise ValueError(said)
    scale = float(given[3]) if len(given) > 3 else 1.0
    plain = attention.plain_call(call, gives.shape, scale)
    takes = tuple((name_of(x.dtype), x.shape) for x in given[:3])
    request = Request(plain.target, takes, plain.config)
    if not request.refusal(target):
        return request.run(target, given[:3])[0]
    q, k, v = (np.asarray(x, np.float64).reshape(-1, *x.shape[-2:]) for x in given[:3])
    k, v = (np.repeat(x, len(q) // len(x), 0) for x in (k, v))
    scores = scale * (q @ k.transpose(0, 2, 1))
    if call.target == attention.CAUSAL:
        seen = np.tri(q.shape[1], k.shape[1], dtype=bool)
        scores = np.where(seen, scores, -np.inf)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    result = weights / weights.sum(-1, keepdims=True) @ v
    if call.target == attention.SWAPPED:
        result = result.transpose(0, 2, 1)
    return cast(result.reshape(gives.shape), FROM_HLO[gives.dtype])


def no_meaning(inst: Instruction) -> NccError:
    """NCC114: an opcode that this release does not run."""
    said = f"{inst.opcode} is not run yet; other opcodes come later"
    return NccError("NCC114", said, inst.origin.place(inst.name))


def _type(inst: Instruction) -> TensorType:
    assert isinstance(inst.shape, ArrayShape)
    if inst.shape.dtype not in (*FROM_HLO, "pred"):
        said = f"{inst.shape.dtype} is not run; ncc computes with {', '.join(FROM_HLO)}"
        raise NccError("NCC116", said, inst.origin.place(inst.name))
    return TensorType(inst.shape.dtype, inst.shape.dims)


def dot(inst: Instruction, lhs: Array, rhs: Array) -> Array:
    return mhlo.dot_general(dims_of(inst), _type(inst), lhs, rhs)


def dims_of(inst: Instruction) -> DotGeneral:
    return DotGeneral(
        "",
        "",
        inst.ints("lhs_contracting_dims"),
        inst.ints("rhs_contracting_dims"),
        inst.ints("lhs_batch_dims"),
        inst.ints("rhs_batch_dims"),
    )


def add(inst: Instruction, lhs: Array, rhs: Array) -> Array:
    if lhs.dtype.kind in "iub":
        return hlo_ops.binary(inst, lhs, rhs)
    return mhlo.binary(Binary("add", "", ""), _type(inst), lhs, rhs)


def maximum(inst: Instruction, lhs: Array, rhs: Array) -> Array:
    return mhlo.binary(Binary("maximum", "", ""), _type(inst), lhs, rhs)


def convert(inst: Instruction, operand: Array) -> Array:
    _type(inst)
    return hlo_ops.convert(inst, operand)


def copy(inst: Instruction, operand: Any) -> Any:
    return operand


def broadcast(inst: Instruction, operand: Array) -> Array:
    return mhlo.broadcast(Broadcast("", inst.ints("dimensions")), _type(inst), operand)


def transpose(inst: Instruction, operand: Array) -> Array:
    return mhlo.transpose(Transpose("", inst.ints("dimensions")), _type(inst), operand)


def reshape(inst: Instruction, operand: Array) -> Array:
    return operand.reshape(_type(inst).shape)


def constant(inst: Instruction) -> Any:
    return _literal(inst, inst.literal)


def _literal(inst: Instruction, literal: Literal | TupleLiteral | None) -> Any:
    if isinstance(literal, TupleLiteral):
        return tuple(_literal(inst, part) for part in literal.parts)
    assert literal is not None
    dtype = _type(inst).dtype if isinstance(inst.shape, ArrayShape) else literal.dtype
    return np.frombuffer(literal.raw, hlo_ops.literal_type(dtype)).reshape(literal.shape)


MEANING: dict[str, Callable[..., Any]] = {
    "dot": dot,
    "add": add,
    "maximum": maximum,
    "convert": convert,
    "copy": copy,
    "broadcast": broadcast,
    "transpose": transpose,
    "reshape": reshape,
    "constant": constant,
    **hlo_ops.MEANING,
}
