"""The kernels that ship, by name: written in NKI, imported on use.

A program that asks for a kernel by name (a custom call, `raise-attention`) finds it here.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from ncc.errors import UsageError, nearest

# name, and where it is (module below this package, its function)
KERNELS: dict[str, str] = {
    "matmul": "matmul:matmul",
    "attention_cte": "attention:attention_cte",
    "attention_call": "attention_call:attention_call",
}


def kernel(name: str) -> Any:
    """The kernel called `name`; UsageError NCC001 for a name that is none."""
    if name not in KERNELS:
        said = f"no kernel is called {name!r}; there are {', '.join(KERNELS)}"
        raise UsageError("NCC001", said, hint=nearest(name, KERNELS))
    module, _, function = KERNELS[name].partition(":")
    return getattr(import_module(f"ncc.kernels.{module}"), function)
