"""`nki.typing`: what a kernel's parameters may be annotated with. Nothing is checked by it."""

from __future__ import annotations

from typing import Any, cast


class _Annotation:
    """`nt.tensor`, and with a shape `nt.tensor[128, 512]`."""

    def __init__(self, name: str, shape: tuple[Any, ...] = (), mutable: bool = False) -> None:
        self.name, self.shape, self.mutable = name, shape, mutable

    def __getitem__(self, shape: Any) -> _Annotation:
        sizes = cast("tuple[Any, ...]", shape if isinstance(shape, tuple) else (shape,))
        return _Annotation(self.name, sizes, self.mutable)

    def __call__(self, *args: Any, **more: Any) -> _Annotation:
        return self

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __or__

    def __repr__(self) -> str:
        sizes = ", ".join(map(str, self.shape))
        return f"nki.typing.{self.name}" + (f"[{sizes}]" if sizes else "")


tensor = _Annotation("tensor")
mutable_tensor = _Annotation("mutable_tensor", mutable=True)
scalar = _Annotation("scalar")
