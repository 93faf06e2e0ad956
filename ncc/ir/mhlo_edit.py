"""What the passes of MHLO share: an op that reads other values, a name that is not taken."""

from __future__ import annotations

from collections.abc import Mapping

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
    Transpose,
    Tuple,
)
from ncc.ir.mhlo_text import operands_of


def renamed(op: Op, new: Mapping[str, str]) -> Op:
    """The op with the names of its operands replaced; the same object when none is."""
    if not any(name in new for name in operands_of(op)):
        return op

    def now(name: str) -> str:
        return new.get(name, name)

    match op:
        case DotGeneral(lhs, rhs, a, b, c, d):
            return DotGeneral(now(lhs), now(rhs), a, b, c, d)
        case Binary(by, lhs, rhs):
            return Binary(by, now(lhs), now(rhs))
        case CustomCall(operands, target, config, aliases):
            return CustomCall(tuple(map(now, operands)), target, config, aliases)
        case Tuple(operands):
            return Tuple(tuple(map(now, operands)))
        case GetTupleElement(operand, index):
            return GetTupleElement(now(operand), index)
        case Transpose(operand, permutation):
            return Transpose(now(operand), permutation)
        case Broadcast(operand, dimensions):
            return Broadcast(now(operand), dimensions)
        case BroadcastInDim(operand, dimensions):
            return BroadcastInDim(now(operand), dimensions)
        case Convert(operand):
            return Convert(now(operand))
        case Copy(operand):
            return Copy(now(operand))
        case _:
            return op


def names_of(func: Func) -> set[str]:
    """Every name that is taken: values and outputs."""
    taken = {p.name for p in func.params} | {name for let in func.body for name in let.names}
    return taken | {*func.output_names}


def fresh(name: str, taken: set[str]) -> str:
    """`name`, with underscores until it is new; then it is taken."""
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def constants_of(func: Func) -> dict[str, Constant]:
    return {let.names[0]: let.op for let in func.body if isinstance(let.op, Constant)}
