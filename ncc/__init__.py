"""ncc: a nanopass compiler from HLO to NEFF bytes that run.

stage = ncc.compile("matmul.hlo")           the last stage; `ncc.pack.write(stage.module, path)`
(out,) = ncc.run("matmul.hlo", [lhs, rhs])  the outputs, from the bytes
ncc.check("matmul.hlo").passed              before and after every pass, and from the bytes
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ncc.driver import check, compile, run

__all__ = ["check", "compile", "run"]
__version__ = "0.1.0"

_LATER = {"jit": "with the work on JAX functions", "profile": "with the back-end work"}


def __getattr__(name: str) -> Any:
    """`ncc.compile`, `ncc.run` and `ncc.check` load the driver on first use; `ncc.nki` the API."""
    if name in __all__:
        from ncc import driver

        return getattr(driver, name)
    if name == "nki":
        from importlib import import_module

        return import_module("ncc.nki")
    if name in _LATER:
        raise AttributeError(f"ncc.{name} is not there yet: it comes {_LATER[name]}")
    raise AttributeError(f"module 'ncc' has no attribute {name!r}")
