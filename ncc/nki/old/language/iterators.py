"""`neuronxcc.nki.language.iterators`: the ranges, and a block that programs enter together."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from ncc.nki.language.loops import static_range
from ncc.nki.old.loops import affine_range, sequential_range


@contextmanager
def sync_program(*axes: Any, **ignored: Any) -> Generator[None]:
    """Programs of one core run one after the other: there is nothing to wait for."""
    yield


__all__ = ["affine_range", "sequential_range", "static_range", "sync_program"]
