"""What was worked out last of a few objects: each core's, which passes and laws ask for in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")
FEW = 4


class Recent(Generic[T]):
    """Values by the identity of their key, kept alive; what is not asked for longest gives way."""

    def __init__(self) -> None:
        self._kept: list[tuple[object, T]] = []

    def get(self, key: object, make: Callable[[], T]) -> T:
        """The value of a key, made when it is not there."""
        for n, (known, value) in enumerate(self._kept):
            if known is key:
                if n:
                    self._kept.insert(0, self._kept.pop(n))
                return value
        value = make()
        self._kept.insert(0, (key, value))
        del self._kept[FEW:]
        return value
