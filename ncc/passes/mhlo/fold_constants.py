"""Compute now what is known now: converts, transposes and copies of constants.

Before:
    func main(a: bf16[2]) name=known {
      k = constant hex:0000803f00000040 : f32[2]
      b = convert k : bf16[2]
      z = constant splat:00000000 : f32[]
      s = broadcast z dimensions=() : f32[2]
      t = convert s : bf16[2]
      c = add a b : bf16[2]
      d = add c t : bf16[2]
      return d
    }

After:
    func main(a: bf16[2]) name=known {
      k = constant hex:0000803f00000040 : f32[2]
      b = constant hex:803f0040 : bf16[2]
      z = constant splat:00000000 : f32[]
      s = broadcast z dimensions=() : f32[2]
      z_bf16 = constant splat:0000 : bf16[]
      t = broadcast z_bf16 dimensions=() : bf16[2]
      c = add a b : bf16[2]
      d = add c t : bf16[2]
      return d
    }

Why: the rounding is the one that the op would have done, so nothing changes but who does it. Through
a broadcast the small constant is folded, not the large one: a scalar stays a scalar, which an
engine takes as an immediate. What nothing reads any more, penguin-dce removes.
"""

from __future__ import annotations

import attrs

from ncc.ir.core import unchanged
from ncc.ir.data import DTYPES, FROM_HLO, Data, data
from ncc.ir.mhlo import Broadcast, Constant, Convert, Copy, Func, Let, Op, TensorType, Transpose
from ncc.ir.mhlo_edit import fresh, names_of
from ncc.passes.base import define
from ncc.target import Target

NAME = "fold-constants"


def apply(func: Func, target: Target) -> Func:
    made: dict[str, Op] = {}
    taken = names_of(func)
    body: list[Let] = []
    for let in func.body:
        new = folded(let, made, taken)
        made.update((x.names[0], x.op) for x in new)
        body += new
    if unchanged(body, func.body):
        return func
    return attrs.evolve(func, body=tuple(body))


def folded(let: Let, made: dict[str, Op], taken: set[str]) -> list[Let]:
    """The line, or the constant (and the broadcast of it) that stand for it."""
    kind, op = let.types[0], let.op
    if not isinstance(op, Convert | Transpose | Copy | Broadcast):
        return [let]
    assert isinstance(kind, TensorType)
    source = made.get(op.operand)
    if isinstance(source, Constant):
        if not isinstance(op, Broadcast):
            new = Constant(value(op, source.data, kind.dtype))
            return [Let(let.names, new, let.types, let.symbol, let.origin.by(NAME))]
        if list(op.dimensions) == sorted(op.dimensions):
            return [let]
        return spread(let, op.operand, source.data, op.dimensions, taken)
    if not isinstance(source, Broadcast):
        return [let]
    small, dims = source.operand, source.dimensions
    inner = made.get(small)
    if not isinstance(inner, Constant):
        return [let]
    match op:
        case Transpose(_, order):
            return spread(let, small, inner.data, tuple(map(order.index, dims)), taken)
        case Broadcast(_, outer):
            return spread(let, small, inner.data, tuple(outer[d] for d in dims), taken)
        case Convert():
            return spread(let, small, value(op, inner.data, kind.dtype), dims, taken)
        case Copy():
            return spread(let, small, inner.data, dims, taken)


def spread(let: Let, small: str, known: Data, dims: tuple[int, ...], taken: set[str]) -> list[Let]:
    """A constant and its broadcast in place of `let`; dimensions in ascending order."""
    order = sorted(range(len(dims)), key=lambda i: dims[i])
    known = value(Transpose(small, tuple(order)), known, DTYPES[known.dtype][2])
    type_ = TensorType(DTYPES[known.dtype][2], known.shape)
    name = fresh(f"{small}_{type_.dtype}", taken)
    origin = let.origin.by(NAME)
    op = Broadcast(name, tuple(sorted(dims)))
    return [
        Let((name,), Constant(known), (type_,), "", origin),
        Let(let.names, op, let.types, let.symbol, origin),
    ]


def value(op: Convert | Transpose | Copy, known: Data, dtype: str) -> Data:
    """What the op gives for known values."""
    from ncc.numerics import cast

    name = FROM_HLO[dtype]
    if isinstance(op, Transpose):
        return data(name, known.array().transpose(op.permutation))
    return data(name, cast(known.array(), name))


PASS = define(
    __name__,
    __doc__,
    apply,
    source="mhlo",
    gives=("no-constant-is-converted",),
    real="CanonicalizeForTensorizer",
    job="F0",
    sure="confirmed",
)
