"""Settle the boundary: inputs have names, and the function returns arrays, never a tuple.

Before:
    func main(a: f32[4,8]) name=pair {
      b = add a a : f32[4,8]
      t = tuple a b : (f32[4,8], f32[4,8])
      return t
    }

After:
    func main(a: f32[4,8]) name=pair input_names=(a,) {
      b = add a a : f32[4,8]
      t = tuple a b : (f32[4,8], f32[4,8])
      t_0 = get_tuple_element t index=0 : f32[4,8]
      t_1 = get_tuple_element t index=1 : f32[4,8]
      return t_0, t_1
    }

Why: a container has one variable an output, so a returned tuple must come apart. Only the return is
rewritten; the tuple itself is left to fold-tuples, which removes every tuple in the same way. The
real pass also takes markers of slowly changing weights off here; no framework of ours writes them,
so `slow_ins` and `slow_outs` stay empty.
"""

from __future__ import annotations

import attrs

from ncc.ir.mhlo import Func, GetTupleElement, Let, TensorType
from ncc.ir.mhlo_edit import fresh
from ncc.ir.mhlo_laws import types_of
from ncc.passes.base import define
from ncc.target import Target

NAME = "penguinize-io"


def apply(func: Func, target: Target) -> Func:
    types = types_of(func)
    origins = {name: let.origin for let in func.body for name in let.names}
    taken = {*types}
    body = list(func.body)
    results: list[str] = []
    for name in func.results:
        kind = types[name]
        if isinstance(kind, TensorType):
            results.append(name)
            continue
        for i, leaf in enumerate(kind):
            part = fresh(f"{name}_{i}", taken)
            op = GetTupleElement(name, i)
            body.append(Let((part,), op, (leaf,), "", origins[name].by(NAME)))
            results.append(part)
    names = func.input_names or tuple(p.name for p in func.params)
    if tuple(results) == func.results and names == func.input_names:
        return func
    return attrs.evolve(func, body=tuple(body), results=tuple(results), input_names=names)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="mhlo",
    gives=("no-tuple-is-returned",),
    real="PenguinizeFunctions",
    job="F0",
    sure="confirmed",
)
