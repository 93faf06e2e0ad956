"""The data of a tensor: an allocation, and which of its elements a view walks in which order."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, ClassVar, Self

from ncc.ir.data import size_of
from ncc.ir.kernel import Access, Reg, Rows, Scalar
from ncc.nki.dtypes import Dtype
from ncc.nki.layout import Ints, row_major
from ncc.nki.regions import REGIONS, MemoryRegion
from ncc.nki.trace import Storage, invalid

if TYPE_CHECKING:
    from collections.abc import Callable

Move = Scalar | Rows


class TensorBase:
    """A view of one allocation. Element i stands at `offset + Σ strides[k]·i[k]`, in elements of
    `dtype`, plus what `moves` add while the machine runs.

    `base` is the shape of the allocation or of its latest reshape, which scales the run-time
    offsets of `.ap`; `row` is the elements in one partition (0 off chip), `total` those in all.
    """

    __slots__ = (
        "_access",
        "base",
        "buffer",
        "dtype",
        "moves",
        "offset",
        "row",
        "shape",
        "storage",
        "strides",
        "total",
    )

    # What the older API adds: how `t[index] = value` and `a + b` work there, and its index objects.
    assign: ClassVar[Callable[[Any, Any, Any], None] | None] = None
    operate: ClassVar[Callable[[str, Any, Any], Any] | None] = None
    advanced: ClassVar[Callable[[Any, Any], Any] | None] = None

    storage: Storage
    dtype: Dtype
    shape: Ints
    strides: Ints
    offset: int
    moves: tuple[Move, ...]
    base: Ints
    buffer: MemoryRegion
    row: int
    total: int
    _access: Access | None

    @classmethod
    def whole(cls, storage: Storage, dtype: Dtype) -> Self:
        """All of an allocation, as its buffer lists it."""
        made = storage.buffer
        shape = made.shape
        self = object.__new__(cls)
        self.storage, self.dtype, self.shape = storage, dtype, shape
        self.strides, self.offset, self.moves, self.base = row_major(shape), 0, (), shape
        self.buffer = REGIONS[made.memory]
        self.total = math.prod(shape)
        self.row = math.prod(shape[1:]) if made.on_chip else 0
        self._access = None
        return self

    def derived(
        self,
        shape: Ints,
        strides: Ints,
        offset: int | None = None,
        moves: tuple[Move, ...] | None = None,
        base: Ints | None = None,
    ) -> Self:
        """Another view of the same allocation with the same dtype."""
        new = object.__new__(type(self))
        new.storage, new.dtype, new.buffer = self.storage, self.dtype, self.buffer
        new.row, new.total = self.row, self.total
        new.shape, new.strides = shape, strides
        new.offset = self.offset if offset is None else offset
        new.moves = self.moves if moves is None else moves
        new.base = self.base if base is None else base
        new._access = None
        return new

    def retyped(self, dtype: Dtype, shape: Ints, strides: Ints, offset: int, base: Ints) -> Self:
        """The same bytes as another type; `strides` and `offset` count in elements of it."""
        new = self.derived(shape, strides, offset, base=base)
        new.dtype = dtype
        old = size_of(self.storage.buffer.dtype)
        made = self.storage.buffer
        new.total = math.prod(made.shape) * old // dtype.size
        if made.on_chip:
            inside = math.prod(made.shape[1:]) * old
            if inside % dtype.size:
                said = (
                    f"{self.name} has {inside} bytes in each partition, "
                    f"no whole number of {dtype} elements of {dtype.size}"
                )
                raise invalid("NCC316", said, "pad the last dimension")
            new.row = inside // dtype.size
        return new

    def __copy__(self) -> Self:
        return self  # a tensor is a reference

    def __deepcopy__(self, memo: object) -> Self:
        return self

    @property
    def name(self) -> str:
        return self.storage.buffer.name

    @property
    def shown(self) -> str:
        """How a sentence calls it: its name, and where it was allocated when nobody named it."""
        origin = self.storage.buffer.origin
        return f"{self.name} of {origin}" if not self.storage.wish and origin.file else self.name

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def pattern(self) -> list[list[int]]:
        """`[[stride, count], ...]`, slowest first."""
        return [[s, n] for s, n in zip(self.strides, self.shape, strict=True)]

    @property
    def address(self) -> tuple[int, int] | None:
        """(first partition, byte) where the kernel chose one."""
        return self.storage.buffer.address

    @property
    def on_chip(self) -> bool:
        return self.row > 0

    @property
    def rows_dim(self) -> bool:
        """Whether dimension 0 has one start a row (`vector_select`, `.ap(vector_offset=)`)."""
        return any(isinstance(m, Rows) for m in self.moves)

    def __repr__(self) -> str:
        dims = ", ".join(map(str, self.shape))
        return f"{self.name}: {self.dtype} ({dims}) in {self.buffer}"


def register_of(value: Any) -> Reg | None:
    """The machine register behind a value; None for what is none."""
    if isinstance(value, Reg):
        return value
    if isinstance(value, int | slice | TensorBase):
        return None
    reg = getattr(value, "reg", None)
    return reg if isinstance(reg, Reg) else None
