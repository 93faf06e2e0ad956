"""The NKI API: `import nki` finds this package after `ncc.nki.install()`.

Everything is imported when it is first asked for.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

# name -> module of this package, attribute ("" for the module itself)
NAMES: dict[str, tuple[str, str]] = {
    "jit": ("call", "jit"),
    "simulate": ("simulator", "simulate"),
    "cpu_simulate": ("simulator", "simulate"),
    "install": ("hooks", "install"),
    "dtype": ("dtypes", "Dtype"),
    "NKIObject": ("language", "NKIObject"),
    "NkiTensor": ("tensor", "NkiTensor"),
    "simulator": ("simulator", ""),
    **{
        name: (name, "")
        for name in ("language", "isa", "collectives", "typing", "meta", "compiler", "framework")
    },
}


def __getattr__(name: str) -> Any:
    if name not in NAMES:
        from ncc.errors import nearest

        hint = nearest(name, NAMES)
        raise AttributeError(f"nki has no {name!r}" + (f" ({hint})" if hint else ""))
    module, attribute = NAMES[name]
    found = import_module(f"ncc.nki.{module}")
    found = getattr(found, attribute) if attribute else found
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted(NAMES)
