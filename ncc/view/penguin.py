"""Penguin as a picture: ops and the tensors between them, loops as boxes that hold their body."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import cast

import attrs

from ncc.ir.kernel import ops_of
from ncc.ir.penguin import (
    Axis,
    Cut,
    Function,
    KernelCall,
    KernelNode,
    Loop,
    Statement,
    View,
)
from ncc.view.dot import Box, picture


def draw(module: Function, fresh: frozenset[int]) -> str:
    return picture(module.name, boxes(module, fresh))


def boxes(module: Function, fresh: frozenset[int]) -> Iterator[Box]:
    made: dict[str, str] = {}
    for tensor in module.tensors:
        if tensor.kind in ("input", "const"):
            shape = "x".join(map(str, tensor.shape))
            made[tensor.name] = f"tensor {tensor.name}"
            lines = (f"{tensor.name}: {tensor.dtype} {shape}", tensor.kind)
            yield Box(made[tensor.name], lines, shape="oval", new=id(tensor) in fresh)
    yield from statements(module.body, (), made, fresh)
    for tensor in module.tensors:
        if tensor.kind == "output" and tensor.name in made:
            yield Box(
                f"output {tensor.name}",
                (f"output {tensor.name}",),
                ((made[tensor.name], tensor.name),),
                "oval",
            )


def statements(
    body: tuple[Statement, ...], loops: tuple[str, ...], made: dict[str, str], fresh: frozenset[int]
) -> Iterator[Box]:
    for statement in body:
        if isinstance(statement, Loop):
            inside = (*loops, f"{statement.axis}<{statement.trips} {statement.kind}")
            yield from statements(statement.body, inside, made, fresh)
            continue
        if isinstance(statement, KernelCall | KernelNode):
            sources = tuple((made[t], b) for b, t in statement.args if t in made)
            new = id(statement) in fresh
            yield Box(statement.name, kernel_lines(statement), sources, new=new)
            made |= {tensor: statement.name for _, tensor in statement.outs}
            continue
        views = [getattr(statement, f.name) for f in attrs.fields(type(statement))]
        read = [view for value in views for view in tensors(value)][1:]
        sources = tuple((made[v.tensor], v.tensor) for v in read if v.tensor in made)
        yield Box(statement.name, lines(statement, loops), sources, new=id(statement) in fresh)
        made[statement.dst.tensor] = statement.name


def kernel_lines(one: KernelCall | KernelNode) -> tuple[str, ...]:
    """What a kernel's box says: its kind, and for each core how often it has which op."""
    found = [f"{type(one).__name__} {one.name}"]
    for body in one.bodies if isinstance(one, KernelNode) else ():
        counts = Counter(op.op for op in ops_of(body.body))
        found.append(f"core {body.core}: {len(body.buffers)} buffers, {counts.total()} ops")
        found += [f"{count} {op}" for op, count in counts.most_common(12)]
    return tuple(found)


def tensors(value: object) -> list[View]:
    """The views that a field holds; the first of an op is what it writes."""
    inside: tuple[object, ...] = (
        cast("tuple[object, ...]", value) if type(value) is tuple else (value,)
    )
    return [view for view in inside if isinstance(view, View)]


def lines(op: object, loops: tuple[str, ...]) -> tuple[str, ...]:
    """What an op's box says: loops around it, class and name, tile or axes, findings."""
    found = [f"for {loop}" for loop in loops]
    found.append(f"{type(op).__name__} {getattr(op, 'name', '')}")
    for field in ("op", "func", "op0", "kind"):
        if word := getattr(op, field, ""):
            found.append(f"{field} {word}")
    for field in ("axes", "par", "free", "contract"):
        axes: tuple[Axis, ...] = getattr(op, field, ())
        if axes:
            found.append(f"{field} " + " ".join(f"{a.name}:{a.extent}" for a in axes))
    for field in ("partition", "contract_axes", "accumulate", "engines"):
        if words := getattr(op, field, ()):
            found.append(f"{field} {' '.join(words)}")
    cuts: tuple[Cut, ...] = getattr(op, "cuts", ())
    for cut in cuts:
        found.append(
            f"cut {cut.role}: loops {' '.join(cut.loops) or '-'} tile {' '.join(cut.tiles)}"
        )
    if getattr(op, "group", -1) >= 0:
        found.append(f"group {getattr(op, 'group', -1)}")
    return tuple(found)
