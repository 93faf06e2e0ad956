"""What a level does with the program of several cores: the same as with one, core by core.

A printed program of two cores is two printed modules, each under a line `core N`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from ncc.ir.core import Cores, modules_of
from ncc.ir.text import unreadable

HEAD = re.compile(r"core (\d+)\s*\Z")


def lifted(part: str, found: Any) -> Any:
    """A part of a level that knows one module, for programs of any number of cores."""
    lift = LIFTS.get(part)
    return lift(found) if lift else found


def _show(show: Callable[[Any], str]) -> Callable[[Any], str]:
    def shown(program: Any) -> str:
        if not isinstance(program, Cores):
            return show(program)
        return "".join(f"core {n}\n{show(module)}" for n, module in enumerate(program.modules))

    return shown


def _parse(parse: Callable[..., Any]) -> Callable[..., Any]:
    def parsed(text: str, file: str = "", first_line: int = 1) -> Any:
        if not re.search(r"^core \d", text, re.M):
            return parse(text, file, first_line)
        lines = text.split("\n")
        heads = [n for n, line in enumerate(lines) if HEAD.match(line)]
        for at, line in enumerate(lines[: heads[0]] if heads else lines):
            if line.strip() and not line.startswith("#"):
                said = f"cannot read {line[:60]!r}, expected `core 0`"
                raise unreadable(said, file, first_line + at)
        for number, at in enumerate(heads):
            if lines[at].split()[1] != str(number):
                said = f"{lines[at]!r} stands where core {number} begins"
                raise unreadable(said, file, first_line + at)
        pieces = zip(heads, [*heads[1:], len(lines)], strict=True)
        return Cores(
            tuple(
                parse("\n".join(lines[at + 1 : end]), file, first_line + at + 1)
                for at, end in pieces
            )
        )

    return parsed


def _nodes(nodes: Callable[[Any], Iterator[Any]]) -> Callable[[Any], Iterator[Any]]:
    def every(program: Any) -> Iterator[Any]:
        if not isinstance(program, Cores):
            return nodes(program)
        return chain.from_iterable(map(nodes, program.modules))

    return every


def _signature(signature: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Every core knows all inputs and outputs, by the same names."""
    return lambda program: signature(modules_of(program)[0])


LIFTS: dict[str, Callable[[Any], Any]] = {
    "show": _show,
    "parse": _parse,
    "nodes": _nodes,
    "signature": _signature,
}
