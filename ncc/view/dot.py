"""Graphviz text from records: boxes with lines of text, arrows, a tint for what is new.

A picture is for eyes: beyond `MOST` boxes the rest is one box that says how many more there are.
"""

from __future__ import annotations

from collections.abc import Iterable

import attrs

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


def clip(text: str) -> str:
    return text if len(text) <= LONG else text[: LONG - 1] + "…"


def quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def picture(title: str, boxes: Iterable[Box], rankdir: str = "TB") -> str:
    """The graphviz text of boxes and the arrows between them, in the order given."""
    every = list(boxes)
    shown = every[:MOST]
    keys = {box.key for box in shown}
    lines = [
        f"digraph {quoted(title)} {{",
        f'  graph [rankdir={rankdir} fontname="monospace" label={quoted(title)} labelloc=t]',
        '  node [shape=box fontname="monospace" fontsize=10]',
        '  edge [fontname="monospace" fontsize=8]',
    ]
    for box in shown:
        label = "\\l".join(quoted(clip(line))[1:-1] for line in box.lines) + "\\l"
        tint = ' style=filled fillcolor="lightyellow"' if box.new else ""
        lines.append(f'  {quoted(box.key)} [label="{label}" shape={box.shape}{tint}]')
    for box in shown:
        for source, label in box.sources:
            if source in keys:
                said = f" [label={quoted(label)}]" if label else ""
                lines.append(f"  {quoted(source)} -> {quoted(box.key)}{said}")
    if len(every) > len(shown):
        more = f"{len(every) - len(shown)} more, not drawn"
        lines.append(f'  "..." [label={quoted(more)} shape=plaintext]')
        lines.append(f'  {quoted(shown[-1].key)} -> "..." [style=dashed]')
    return "\n".join([*lines, "}", ""])
