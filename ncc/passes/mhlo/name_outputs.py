"""Give each output a name and a value of its own.

Before:
    func main(a: f32[4,8]) name=outs {
      k = constant splat:0000803f : f32[4,8]
      y = add a k : f32[4,8]
      return a, k, y, y
    }

After:
    func main(a: f32[4,8]) name=outs output_names=(out0,out1,out2,out3) {
      k = constant splat:0000803f : f32[4,8]
      y = add a k symbol=out2 : f32[4,8]
      a_out0 = copy a symbol=out0 : f32[4,8]
      k_out1 = copy k symbol=out1 : f32[4,8]
      y_out3 = copy y symbol=out3 : f32[4,8]
      return a_out0, k_out1, y, y_out3
    }

Why: an output is a buffer that somebody writes. Nobody writes an argument or a constant, and one
buffer cannot be two outputs; a copy can. The names are what the container's variables are called.
"""

from __future__ import annotations

import attrs

from ncc.ir.mhlo import Constant, Copy, Func, Let
from ncc.ir.mhlo_edit import fresh, names_of
from ncc.ir.mhlo_laws import output_names, types_of
from ncc.passes.base import define
from ncc.target import Target

NAME = "name-outputs"


def apply(func: Func, target: Target) -> Func:
    names = func.output_names or output_names(len(func.results))
    made = {name: let for let in func.body for name in let.names}
    types = types_of(func)
    taken = names_of(func) | {*names}
    symbols: dict[str, str] = {}
    copies: list[Let] = []
    results: list[str] = []
    for value, output in zip(func.results, names, strict=True):
        let = made.get(value)
        own = let is not None and len(let.names) == 1 and not isinstance(let.op, Constant)
        if own and value not in symbols:
            symbols[value] = output
            results.append(value)
            continue
        origin = let.origin if let else next(p.origin for p in func.params if p.name == value)
        copy = fresh(f"{value}_{output}", taken)
        copies.append(Let((copy,), Copy(value), (types[value],), output, origin.by(NAME)))
        results.append(copy)
    body = tuple(named(let, symbols) for let in func.body)
    if names == func.output_names and not copies and symbols.items() <= outputs_of(func):
        return func
    return attrs.evolve(func, body=(*body, *copies), results=tuple(results), output_names=names)


def outputs_of(func: Func) -> set[tuple[str, str]]:
    """The values that carry an output's name already."""
    return {(let.names[0], let.symbol) for let in func.body if let.symbol}


def named(let: Let, symbols: dict[str, str]) -> Let:
    symbol = symbols.get(let.names[0], "")
    if symbol == let.symbol:
        return let
    return Let(let.names, let.op, let.types, symbol, let.origin.by(NAME))


PASS = define(
    __name__,
    __doc__,
    apply,
    source="mhlo",
    needs=("no-tuple-is-returned",),
    gives=("outputs-are-named",),
    after={"fold-tuples": "a value that is returned through a tuple is known only then"},
    real="TensorizerLegalization",
    job="F0",
    sure="confirmed",
)
