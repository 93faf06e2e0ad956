"""MHLO as a picture: one box an op, one arrow a value."""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ncc.ir.mhlo import Func, Let, Op
from ncc.view.dot import Box, picture


def draw(module: Func, fresh: frozenset[int]) -> str:
    return picture(module.name, boxes(module, fresh))


def boxes(module: Func, fresh: frozenset[int]) -> Iterator[Box]:
    made = {name: let.names[0] for let in module.body for name in let.names}
    for param in module.params:
        yield Box(param.name, (f"{param.name}: {param.type}",), shape="oval")
    for let in module.body:
        sources = tuple((made.get(name, name), "") for name in operands(let.op))
        types = ", ".join(map(str, let.types))
        lines = (f"{', '.join(let.names)} = {words(let)}", types)
        yield Box(let.names[0], lines, sources, new=id(let) in fresh)
    for number, name in enumerate(module.results):
        yield Box(f"return {number}", (f"return {name}",), ((made.get(name, name), ""),), "oval")


def operands(op: Op) -> tuple[str, ...]:
    """The values that an op reads, in field order."""
    found: list[str] = []
    for field in ("lhs", "rhs", "operand", "operands"):
        value = getattr(op, field, ())
        found += [value] if isinstance(value, str) else value
    return tuple(found)


def words(let: Let) -> str:
    """The op's class and its attributes."""
    skip = {"lhs", "rhs", "operand", "operands", "data"}
    fields = [f.name for f in attrs.fields(type(let.op)) if f.name not in skip]
    pairs = [f"{name}={getattr(let.op, name)}" for name in fields if getattr(let.op, name) != ()]
    return " ".join([type(let.op).__name__, *pairs])
