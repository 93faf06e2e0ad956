"""The older API, `neuronxcc.nki` (SDK 2.26 and before): calls return new tiles.

Its loops run as plain Python iteration, so they are unrolled while a kernel is traced, and loop
indices are ints; index tensors and masks are resolved then. Everything is imported on use.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# name -> module (under ncc.nki), attribute ("" for the module itself)
NAMES: dict[str, tuple[str, str]] = {
    **{
        name: ("old.kernel", name)
        for name in ("jit", "trace", "baremetal", "benchmark", "profile", "simulate_kernel")
    },
    "language": ("old.language", ""),
    "isa": ("old.isa", ""),
    "compiler": ("old.compiler", ""),
    "typing": ("typing", ""),
    "tensor": ("meta", "tensor"),
    "install": ("hooks", "install"),
}


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        from ncc.errors import nearest

        hint = nearest(name, NAMES)
        raise AttributeError(f"neuronxcc.nki has no {name!r}" + (f" ({hint})" if hint else ""))
    module, attribute = NAMES[name]
    found = import_module(f"ncc.nki.{module}")
    found = getattr(found, attribute) if attribute else found
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(NAMES)
