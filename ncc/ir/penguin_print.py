"""Penguin printed as the Python program that builds it.

A call's leading words and views stand by position, all else as `field=value`, and a field that has
its default is left out: the printer follows the fields of the nodes and knows no op by name.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import cache
from typing import Any, cast

import attrs

from ncc.ir import penguin as p
from ncc.ir.affine import Affine, Floor, Least, Mod
from ncc.ir.data import Data
from ncc.ir.text import with_origin

OPS: dict[str, type[Any]] = {
    kind.__name__: kind
    for kind in (
        p.TensorContractOp,
        p.ElementwiseOp,
        p.TensorTransposeOp,
        p.TileCopyOp,
        p.TileTransposeOp,
        p.TileElementwiseOp,
        p.MatMulOp,
        p.MatMulMXOp,
        p.MatMulSparseOp,
        p.ActivationOp,
        p.TensorScalarOp,
        p.TensorTensorOp,
        p.TensorCopyOp,
    )
}
WORDS = ("function", "tensor", "axis", "axes", "loop", "pag", "pg", "Cut", "min", "inf", "nan", "f")
RESERVED = frozenset((*WORDS, *OPS))  # names that mean something else in the text
FIRST = "from ncc.penguin import *"


def show(function: p.Function) -> str:
    """The module as a Python program."""
    lines = [show_tensor(x) for x in function.tensors]
    names = axis_names(function)
    for at in range(0, len(names), 12):
        some = names[at : at + 12]
        lines.append(f"{', '.join(some)} = axis({quoted(' '.join(some))})")
    lines += [f"pag({', '.join(map(quoted, group))})" for group in function.pags]
    lines += [f"pg({number}, {value(ops)}, {value(par)})" for number, ops, par in function.pgs]
    lines += show_body(function.body)
    inside = "".join(f"    {line}\n" for line in lines or ["pass"])
    return f"{FIRST}\nwith function({quoted(function.name)}) as f:\n{inside}"


def show_tensor(x: p.Tensor) -> str:
    return with_origin(f"{x.name} = {call('tensor', x)}", x.origin)


def show_body(body: tuple[p.Statement, ...]) -> Iterator[str]:
    for one in body:
        if isinstance(one, p.Loop):
            head = f"for {one.axis} in loop({quoted(one.axis)}, {one.trips}, {quoted(one.kind)}):"
            yield with_origin(head, one.origin)
            yield from (f"    {line}" for line in (list(show_body(one.body)) or ["pass"]))
        else:
            yield show_op(one)


def show_op(op: p.TileOp | p.TensorOp) -> str:
    """One op as it stands in the text, without its indentation."""
    return with_origin(call(type(op).__name__, op), op.origin)


def call(head: str, node: Any) -> str:
    """`Head(word, view, ..., field=value)`, without the fields that have their defaults."""
    words: list[str] = []
    leading = True
    for field, default in printed_fields(node.__class__):
        found = getattr(node, field)
        plain = isinstance(found, str | p.View) or field == "shape"
        leading = leading and default is None and plain
        text = value(found)
        if default is None or text != default:
            words.append(text if leading else f"{field}={text}")
    return f"{head}({', '.join(words)})"


@cache
def printed_fields(kind: Any) -> tuple[tuple[str, str | None], ...]:
    """The fields that print, those without default first, each with the default as it prints."""
    found: list[tuple[str, str | None]] = []
    for field in attrs.fields(kind):
        default = None if field.default is attrs.NOTHING else value(field.default)
        if field.name != "origin":
            found.append((field.name, default))
    return tuple(sorted(found, key=lambda x: x[1] is not None))


def value(x: Any) -> str:
    """A field's value as Python."""
    match x:
        case str():
            return quoted(x)
        case p.View(tensor, index):
            return f"{tensor}[{', '.join(map(spaced, index)) or '()'}]"
        case p.Cut():
            return call("Cut", x)
        case (p.Axis(), *_):
            return f"axes({', '.join(f'{a.name}={spaced(a.extent)}' for a in x)})"
        case (one,):
            return f"({value(one)},)"
        case tuple():
            return f"({', '.join(map(value, cast('tuple[Any, ...]', x)))})"
        case Data():
            return quoted(x.word())
        case _:
            return repr(x)


def quoted(word: str) -> str:
    """A word in double quotes."""
    return json.dumps(word, ensure_ascii=False)


def spaced(x: Affine | Mod | Floor | Least | int) -> str:
    """Index arithmetic with the blank that Python puts after a comma."""
    return str(x).replace(",", ", ")


def axis_names(function: p.Function) -> list[str]:
    """The axes of the ops, in order of appearance; loops name theirs themselves."""
    found: dict[str, None] = {}
    for op in ops_of(function.body):
        for field in AXES_FIELDS:
            found.update((a.name, None) for a in getattr(op, field, ()))
    return list(found)


AXES_FIELDS = ("axes", "par", "free", "contract")


def ops_of(body: tuple[p.Statement, ...]) -> Iterator[p.TileOp | p.TensorOp]:
    """Every op in program order, loops opened."""
    for one in body:
        if isinstance(one, p.Loop):
            yield from ops_of(one.body)
        else:
            yield one
