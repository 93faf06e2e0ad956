"""`nki.compiler`: decorators and records that say how a kernel is compiled, and drivers.

Every decorator stands above `@nki.jit` and gives a kernel with other options. What the real
compiler does for one and ncc leaves out stands in `ncc.nki.options`.
"""

from __future__ import annotations

from enum import Enum
from typing import Any

from ncc.errors import listed, nearest
from ncc.nki.call import option
from ncc.nki.compiler.builds import CompileOptions
from ncc.nki.trace import invalid
from ncc.target import ALLOCATORS

skip_middle_end_transformations = option("skip_middle_end_transformations", skip_middle_end=True)
enable_stack_allocator = option("enable_stack_allocator", allocator="stack")
force_auto_alloc = option("force_auto_alloc", force_auto_alloc=True)


def update_allocator(kernel: Any = None, allocator: str = "", **more: Any) -> Any:
    """Which allocator places the kernel's tensors: `@update_allocator(allocator="stack")`.

    NCC309 for a name of none.
    """
    if isinstance(kernel, str):
        kernel, allocator = None, kernel
    name = allocator.replace("_", "-")
    if name and name not in ALLOCATORS:
        said = f"no allocator is called {allocator!r}; there are {listed(ALLOCATORS)}"
        raise invalid("NCC309", said, nearest(name, ALLOCATORS))
    return option("update_allocator", allocator=name)(kernel)


class AddressRotation(Enum):
    """Whether an allocator may spread tiles over addresses; ncc's allocators do as they do."""

    DEFAULT = "default"
    OFF = "off"
    ON = "on"


class _Record:
    """Keywords kept as attributes; ncc reads none of them."""

    def __init__(self, **fields: Any) -> None:
        self.__dict__.update(fields)

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.__dict__ == other.__dict__

    def __hash__(self) -> int:
        return hash((type(self), tuple(sorted(self.__dict__.items(), key=str))))

    def __repr__(self) -> str:
        fields = ", ".join(f"{k}={v!r}" for k, v in self.__dict__.items())
        return f"{type(self).__name__}({fields})"


class CompileConfig(_Record):
    """`jit(compile_config=...)`: accepted, and without effect here."""


class SpecializationConfig(_Record):
    """`jit(specialization_config=...)`: accepted, and without effect here."""


__all__ = [
    "AddressRotation",
    "CompileConfig",
    "CompileOptions",
    "SpecializationConfig",
    "enable_stack_allocator",
    "force_auto_alloc",
    "skip_middle_end_transformations",
    "update_allocator",
]
