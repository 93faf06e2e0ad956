"""Read the elements of a tuple directly, and drop the tuples.

Before:
    func main(a: f32[4,8]) name=pair {
      b = add a a : f32[4,8]
      t = tuple a b : (f32[4,8], f32[4,8])
      t_1 = get_tuple_element t index=1 : f32[4,8]
      c = add t_1 a : f32[4,8]
      return c
    }

After:
    func main(a: f32[4,8]) name=pair {
      b = add a a : f32[4,8]
      c = add b a : f32[4,8]
      return c
    }

Why: the element of a tuple that was just made is what it was made from. Nothing returns a tuple any
more, so afterwards no tuple has a reader, and one sweep removes them all.
"""

from __future__ import annotations

import attrs

from ncc.ir.mhlo import Func, GetTupleElement, Let, Tuple
from ncc.ir.mhlo_edit import renamed
from ncc.passes.base import define
from ncc.target import Target

NAME = "fold-tuples"


def apply(func: Func, target: Target) -> Func:
    stands_for: dict[str, str] = {}
    tuples: dict[str, tuple[str, ...]] = {}
    body: list[Let] = []
    for let in func.body:
        op = renamed(let.op, stands_for)
        if isinstance(op, Tuple):
            tuples[let.names[0]] = op.operands
        elif isinstance(op, GetTupleElement):
            stands_for[let.names[0]] = tuples[op.operand][op.index]
        elif op is let.op:
            body.append(let)
        else:
            body.append(Let(let.names, op, let.types, let.symbol, let.origin.by(NAME)))
    if len(body) == len(func.body):
        return func
    results = tuple(stands_for.get(x, x) for x in func.results)
    return attrs.evolve(func, body=tuple(body), results=results)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="mhlo",
    needs=("no-tuple-is-returned",),
    gives=("no-tuple-is-left",),
    after={"penguinize-io": "its elements of the returned tuple are folded here"},
    real="CanonicalizeForTensorizer",
    job="F0",
    sure="confirmed",
)
