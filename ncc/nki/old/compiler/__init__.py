"""`neuronxcc.nki.compiler`: where tensors go, and decorators that say how a kernel is compiled.

`sbuf` and `psum` are memories, as `nl.sbuf` and `nl.psum` are, and have the allocation directives.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from ncc.nki.call import OPTIONS, JitKernel
from ncc.nki.compiler import (
    enable_stack_allocator as _stack,
)
from ncc.nki.compiler import (
    force_auto_alloc as _auto,
)
from ncc.nki.compiler import (
    skip_middle_end_transformations as _skip,
)
from ncc.nki.language.loops import no_reorder
from ncc.nki.old.compiler.memories import psum, sbuf


def _decorator(option: Any) -> Any:
    """A decorator that also takes a plain function: it may stand below `@nki.jit`."""

    def decorate(func: Any = None, **keywords: Any) -> Any:
        if func is None:
            return decorate
        if isinstance(func, JitKernel) or not callable(func):
            return option(func)
        setattr(func, OPTIONS, option(JitKernel(func, getattr(func, OPTIONS, None))).options)
        return func

    decorate.__name__ = decorate.__qualname__ = option.__name__
    return decorate


skip_middle_end_transformations = _decorator(_skip)
enable_stack_allocator = _decorator(_stack)
force_auto_alloc = _decorator(_auto)


class _Nothing:
    """A directive that changes no result: a decorator, a context, or a value, as it is used."""

    def __call__(self, *args: Any, **more: Any) -> Any:
        if len(args) == 1 and callable(args[0]) and not more:
            return args[0]
        return self

    def __enter__(self) -> _Nothing:
        return self

    def __exit__(self, *fault: object) -> None:
        return None


multi_buffer = _Nothing()


@contextmanager
def allocation_scope(*args: Any, **more: Any) -> Generator[None]:
    """A scope of allocations: the allocator finds out itself how long a tensor lives."""
    yield


__all__ = [
    "allocation_scope",
    "enable_stack_allocator",
    "force_auto_alloc",
    "multi_buffer",
    "no_reorder",
    "psum",
    "sbuf",
    "skip_middle_end_transformations",
]
