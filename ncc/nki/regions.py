"""The memories that a tensor can be in."""

from __future__ import annotations

from typing import Any


class MemoryRegion:
    """`nl.sbuf` and its siblings. `hbm` and `private_hbm` are one memory with two names."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def value(self) -> str:
        return self.name

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return f"nl.{self.name}"

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return self.name == other.rsplit(".", 1)[-1]
        return self is other or (isinstance(other, MemoryRegion) and self.name == other.name)

    def __copy__(self) -> MemoryRegion:
        return self

    def __deepcopy__(self, memo: object) -> MemoryRegion:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_named, (self.name,))

    def view(self, dtype: Any, shape: Any, name: str = "") -> Any:
        """A new tensor in this memory, as the kernels of an early release allocate it."""
        from ncc.nki.memory import allocate

        return allocate(shape, dtype, self, name)

    def ptr(self, size: Any, offset: Any = None) -> Part:
        """A piece of this memory: (partitions, bytes), at a place or wherever it fits."""
        from ncc.nki.memory import allocate

        return Part(allocate(size, "uint8", self, "", offset))


class Part:
    """A piece of a memory, in bytes; several tensors may be laid over it."""

    __slots__ = ("bytes",)

    def __init__(self, piece: Any) -> None:
        self.bytes = piece

    def ptr(self, size: Any, offset: Any = (0, 0)) -> Part:
        first, byte = offset
        return Part(self.bytes[first : first + size[0], byte : byte + size[1]])

    def view(self, dtype: Any, shape: Any, name: str = "") -> Any:
        """A tensor over its first bytes."""
        from math import prod

        from ncc.nki.dtypes import dtype_of

        wide = prod(shape[1:]) * dtype_of(dtype).size
        return self.bytes[: shape[0], :wide].view(dtype).reshape(shape)


sbuf = MemoryRegion("sbuf")
psum = MemoryRegion("psum")
hbm = MemoryRegion("hbm")
private_hbm = hbm
shared_hbm = MemoryRegion("shared_hbm")
REGIONS = {r.name: r for r in (sbuf, psum, hbm, shared_hbm)}


def _named(name: str) -> MemoryRegion:
    return REGIONS[name]


def _region(buffer: Any) -> Any:
    return getattr(buffer, "buffer", buffer)


def is_hbm(buffer: Any) -> bool:
    return _region(buffer) in (hbm, shared_hbm)


def is_sbuf(buffer: Any) -> bool:
    return _region(buffer) == sbuf


def is_psum(buffer: Any) -> bool:
    return _region(buffer) == psum


def is_on_chip(buffer: Any) -> bool:
    return _region(buffer) in (sbuf, psum)
