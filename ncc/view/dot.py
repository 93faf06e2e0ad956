"""Graphviz text from records: boxes with lines of text, arrows, a tint for what is new.

A picture is for eyes: beyond `MOST` boxes the rest is one box that says how many more there are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import zip_longest
from typing import Any

import attrs

from ncc.ir.core import Cores
from ncc.view.packages import digraph, escape

MOST = 120
LONG = 72


@attrs.frozen
class Box:
    """One node of a picture: its key, its lines of text, and what reads into it."""

    key: str
    lines: tuple[str, ...]
    sources: tuple[tuple[str, str], ...] = ()  # (key of the source, label of the arrow)
    shape: str = "box"
    new: bool = False


def together(
    program: Any, fresh: frozenset[int], boxes: Callable[[Any, frozenset[int]], Iterable[Box]]
) -> Iterator[Box]:
    """The boxes of a program; of several cores each says whose it is, and the cores take turns, so
    that a picture that shows only some of them shows some of each."""
    if not isinstance(program, Cores):
        yield from boxes(program, fresh)
        return
    rows = zip_longest(*(boxes(module, fresh) for module in program.modules))
    for row in rows:
        for core, box in enumerate(row):
            if box is not None:
                sources = tuple((f"core {core} {name}", label) for name, label in box.sources)
                key = f"core {core} {box.key}"
                lines = (f"core {core}", *box.lines)
                yield attrs.evolve(box, key=key, lines=lines, sources=sources)


def clip(text: str) -> str:
    return text if len(text) <= LONG else text[: LONG - 1] + "…"


def picture(title: str, boxes: Iterable[Box], rankdir: str = "TB") -> str:
    """The graphviz text of boxes and the arrows between them, in the order given."""
    every = list(boxes)
    shown = every[:MOST]
    name = {box.key: f"n{number}" for number, box in enumerate(shown)}
    graph = digraph(rankdir=rankdir, label=escape(title), labelloc="t")
    graph.attr("graph", fontname="Courier")
    graph.attr("node", shape="box", fontname="Courier", fontsize="10")
    graph.attr("edge", fontname="Courier", fontsize="8")
    for box in shown:
        label = "".join(escape(clip(line)) + r"\l" for line in box.lines)  # \l: to the left
        tint = {"style": "filled", "fillcolor": "lightyellow"} if box.new else {}
        graph.node(name[box.key], label, shape=box.shape, **tint)
    for box in shown:
        for source, label in box.sources:
            if source in name:
                graph.edge(name[source], name[box.key], escape(label) if label else None)
    if len(every) > len(shown):
        graph.node("more", f"{len(every) - len(shown)} more, not drawn", shape="plaintext")
        graph.edge(name[shown[-1].key], "more", style="dashed")
    return str(graph.source)
