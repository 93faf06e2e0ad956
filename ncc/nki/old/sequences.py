"""Lists and tuples, told from everything else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast


def items(value: Any) -> list[Any] | None:
    """What a list or tuple holds; None for anything else."""
    return list(cast("Sequence[Any]", value)) if isinstance(value, list | tuple) else None
