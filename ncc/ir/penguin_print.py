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
from ncc.ir.core import NOWHERE, Origin
from ncc.ir.data import Data
from ncc.ir.kernel import Kernel, Recorded
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
        p.TileMemsetOp,
    )
}
WORDS = ("function", "tensor", "axis", "axes", "loop", "pag", "pg", "Cut", "min", "inf", "nan", "f")
RESERVED = frozenset((*WORDS, *OPS))  # names that mean something else in the text
WIDTH = 96  # with a docstring's indentation a line is 100
FIRST = "from ncc.penguin import *"


def show(function: p.Function) -> str:
    """The module as a Python program."""
    lines: list[str] = []
    for tensor in function.tensors:
        lines += wrapped(f"{tensor.name} = tensor", words_of(tensor), "", tensor.origin, "    ")
    names = axis_names(function)
    for at in range(0, len(names), 12):
        some = names[at : at + 12]
        lines.append(f"    {', '.join(some)} = axis({quoted(' '.join(some))})")
    for group in function.pags:
        lines += wrapped("pag", list(map(quoted, group)), "", NOWHERE, "    ")
    for number, ops, par in function.pgs:
        lines += wrapped("pg", [str(number), value(ops), value(par)], "", NOWHERE, "    ")
    lines += show_body(function.body, "    ")
    head = f"{FIRST}\nwith function({quoted(function.name)}) as f:"
    return "\n".join([head, *(lines or ["    pass"]), ""])


def show_body(body: tuple[p.Statement, ...], indent: str) -> Iterator[str]:
    for one in body:
        if isinstance(one, p.Loop):
            words = [quoted(one.axis), str(one.trips), quoted(one.kind)]
            yield from wrapped(f"for {one.axis} in loop", words, ":", one.origin, indent)
            yield from list(show_body(one.body, f"{indent}    ")) or [f"{indent}    pass"]
        elif isinstance(one, p.KernelCall | p.KernelNode):
            yield from show_kernels(one, indent)
        else:
            yield from wrapped(type(one).__name__, words_of(one), "", one.origin, indent)


def show_kernels(one: p.KernelCall | p.KernelNode, indent: str) -> Iterator[str]:
    """A kernel statement: what it is bound to, and its bodies once they are known."""
    from ncc.ir.kernel_print import show_kernel

    words = [quoted(one.name)]
    bodies: tuple[Kernel, ...] = ()
    if isinstance(one, p.KernelNode):
        bodies = one.bodies
        words += [f"kind={quoted(one.kind)}"] if one.kind != "external" else []
    elif isinstance(one.source, Recorded):
        bodies = one.source.bodies
    else:
        stands = f"{one.origin.file}:{one.name}" if one.origin.file else one.name
        words.append(f"source={quoted(str(getattr(one.source, 'label', stands)))}")
    words += [f"form={quoted(one.form)}"] if one.form != "bir" else []
    words += ["sealed=True"] if isinstance(one, p.KernelNode) and one.sealed else []
    yield from wrapped(f"with {type(one).__name__}", words, ":", one.origin, indent)
    for which, bound in (("args", one.args), ("outs", one.outs)):
        pairs = [f"({quoted(buffer)}, {tensor})" for buffer, tensor in bound]
        yield from wrapped(which, pairs, "", NOWHERE, f"{indent}    ")
    for body in bodies:
        yield from show_kernel(body, f"{indent}    ")


def show_op(op: p.TileOp | p.TensorOp) -> str:
    """One op on one line, for a person."""
    return with_origin(f"{type(op).__name__}({', '.join(words_of(op))})", op.origin)


def wrapped(head: str, words: list[str], end: str, origin: Origin, indent: str) -> Iterator[str]:
    """A call in lines of at most WIDTH characters, broken between its words."""
    line = f"{indent}{head}("
    last = with_origin(f"){end}", origin)
    for number, word in enumerate(words):
        final = number == len(words) - 1
        text = word + (last if final else ",")
        if len(line) + len(text) > WIDTH and number:
            yield line.rstrip()
            line = f"{indent}    "
        line += text if final else f"{text} "
    yield line if words else line + last


def words_of(node: Any) -> list[str]:
    """`word, view, ..., field=value`, without the fields that have their defaults.

    A line may break between two cuts, as between two words."""
    words: list[str] = []
    leading = True
    for field, default in printed_fields(node.__class__):
        found = getattr(node, field)
        plain = isinstance(found, str | p.View) or field == "shape"
        leading = leading and default is None and plain
        text = value(found)
        if default is not None and text == default:
            continue
        text = text if leading else f"{field}={text}"
        words += text.replace(", Cut(", "\nCut(").split("\n") if field == "cuts" else [text]
    return words


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
            return f"Cut({', '.join(words_of(x))})"
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
    """Every op in program order, loops opened; a kernel's are its own."""
    for one in body:
        if isinstance(one, p.Loop):
            yield from ops_of(one.body)
        elif not isinstance(one, p.KernelCall | p.KernelNode):
            yield one


def kernels_of(function: p.Function) -> list[p.KernelCall | p.KernelNode]:
    """The kernel statements, in order; they stand in no loop."""
    return [one for one in function.body if isinstance(one, p.KernelCall | p.KernelNode)]
