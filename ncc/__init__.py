"""ncc: a nanopass compiler from HLO to NEFF bytes that run."""

from __future__ import annotations

from typing import Any

__version__ = "0.1.0"

_API = {"compile": "ncc.driver", "run": "ncc.driver", "check": "ncc.driver"}


def __getattr__(name: str) -> Any:
    """`ncc.compile`, `ncc.run` and `ncc.check` load the driver on first use."""
    if name in _API:
        from importlib import import_module

        return getattr(import_module(_API[name]), name)
    raise AttributeError(f"module 'ncc' has no attribute {name!r}")
