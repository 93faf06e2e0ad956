"""Block dimensions: `nl.ndarray((4, nl.par_dim(128), 512))` is four tiles of (128, 512).

Each block is a tile of its own, allocated when it is first used (a tensor with an initial value: at
once), and placed by `nki.compiler.sbuf.alloc` and its kin where the kernel asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

from ncc.nki.old.index import Index, whole
from ncc.nki.old.tile import Tile
from ncc.nki.old.walks import spread_grids
from ncc.nki.trace import wrong_shape

INDEX = "index the block dimensions with numbers: loop over them"


class ParDim(int):
    """`nl.par_dim(128)`: a size that says that its dimension is the partitions."""

    def __repr__(self) -> str:
        return f"par_dim({int(self)})"


par_dim = ParDim
Make = Callable[[tuple[int, ...]], Tile]


class Blocks:
    """Tiles by block index. `prefix` are the block indices that are chosen already."""

    __array_ufunc__ = None

    def __init__(
        self,
        lead: tuple[int, ...],
        rest: tuple[int, ...],
        dtype: Any,
        buffer: Any,
        name: str,
        make: Make,
        tiles: dict[tuple[int, ...], Tile] | None = None,
        prefix: tuple[int, ...] = (),
    ) -> None:
        self.lead, self.rest = lead, rest
        self.dtype, self.buffer, self.name = dtype, buffer, name
        self.make, self.prefix = make, prefix
        self.tiles: dict[tuple[int, ...], Tile] = {} if tiles is None else tiles

    @property
    def shape(self) -> tuple[int, ...]:
        return (*self.lead, *self.rest)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        n = 1
        for one in self.shape:
            n *= one
        return n

    def __len__(self) -> int:
        return self.lead[0]

    def __repr__(self) -> str:
        blocks, dims = " x ".join(map(str, self.lead)), " x ".join(map(str, self.rest))
        return f"{self.name or 'a tensor'} of {blocks} blocks of {dims}"

    def __iter__(self) -> Iterator[Any]:
        return (self[k] for k in range(self.lead[0]))

    def tile(self, block: tuple[int, ...]) -> Tile:
        """One block."""
        key = (*self.prefix, *block)
        found = self.tiles.get(key)
        if found is None:
            found = self.tiles[key] = self.make(key)
        return found

    def all(self) -> Iterator[Tile]:
        """Every block, allocated where it was not."""
        for block in product(*map(range, self.lead)):
            yield self.tile(block)

    def view(self, dtype: Any) -> Blocks:
        """Every block's bytes as another type."""
        from ncc.nki.dtypes import dtype_of

        kind = dtype_of(dtype)
        last = self.rest[-1] * self.dtype.size // kind.size

        def make(block: tuple[int, ...]) -> Tile:
            found = self.tiles.get(block)
            if found is None:
                found = self.tiles[block] = self.make(block)
            return found.view(kind)

        rest = (*self.rest[:-1], last)
        return Blocks(self.lead, rest, kind, self.buffer, self.name, make, None, self.prefix)

    def reshape(self, *sizes: Any, shape: Any = None) -> Any:
        """Other free dimensions; the blocks and their partitions stay."""
        given: Any = shape if shape is not None else sizes
        while len(given) == 1 and hasattr(given[0], "__len__"):
            given = given[0]
        wanted, n = tuple(int(x) for x in given), len(self.lead) + 1
        if wanted[:n] != self.shape[:n]:
            said = f"reshape{wanted} of {self!r}"
            raise wrong_shape("NCC375", said, "blocks and partitions stay as they are")
        rest = wanted[len(self.lead) :]

        def make(block: tuple[int, ...]) -> Tile:
            found = self.tiles.get(block)
            if found is None:
                found = self.tiles[block] = self.make(block)
            return found.reshape(rest)

        return Blocks(self.lead, rest, self.dtype, self.buffer, self.name, make, None, self.prefix)

    def _split(self, index: Any) -> tuple[tuple[int, ...], tuple[Any, ...]]:
        """The numbers of the block dimensions, and the index inside the block."""
        given = spread_grids(index)
        dots = [k for k, one in enumerate(given) if one is Ellipsis]
        if dots:
            spare = self.ndim - len(given) + 1
            at = dots[0]
            given = (*given[:at], *[slice(None)] * spare, *given[at + 1 :])
        block: list[int] = []
        for k, one in enumerate(given[: len(self.lead)]):
            number = self._number(one, self.lead[k])
            if number is None:
                return tuple(block), tuple(given[k:])
            if not -self.lead[k] <= number < self.lead[k]:
                said = f"block {number} of {self!r}: dimension {k} has {self.lead[k]}"
                raise wrong_shape("NCC314", said, INDEX)
            block.append(number % self.lead[k])
        return tuple(block), tuple(given[len(self.lead) :])

    @staticmethod
    def _number(one: Any, size: int) -> int | None:
        number = whole(one)
        if number is not None:
            return number
        if isinstance(one, Index) and one.size == 1:
            return one.offset
        start, width = getattr(one, "start", None), getattr(one, "size", None)
        if width is not None and whole(width) == 1:
            return whole(start)
        if isinstance(one, slice):
            first, last, _ = one.indices(size)
            return first if last - first == 1 else None
        return None

    def __getitem__(self, index: Any) -> Any:
        block, inside = self._split(index)
        if len(block) == len(self.lead):
            found = self.tile(block)
            return found[inside] if inside else found
        if any(not (isinstance(one, slice) and one == slice(None)) for one in inside):
            shown = len(self.lead) - len(block)
            said = f"{self!r} is indexed with something else than numbers in {shown} of its blocks"
            raise wrong_shape("NCC375", said, INDEX)
        return Blocks(
            self.lead[len(block) :],
            self.rest,
            self.dtype,
            self.buffer,
            self.name,
            self.make,
            self.tiles,
            (*self.prefix, *block),
        )

    def __setitem__(self, index: Any, value: Any) -> None:
        block, inside = self._split(index)
        if len(block) == len(self.lead):
            found = self.tile(block)
            found[inside or ...] = value
            return
        chosen = self[index]
        if isinstance(value, Blocks):
            if value is not chosen and value.prefix != chosen.prefix:
                for to, one in zip(chosen.all(), value.all(), strict=True):
                    to[...] = one
            return
        if not isinstance(value, int | float):
            said = f"a value for all of {chosen!r} at once is a number"
            raise wrong_shape("NCC375", said, INDEX)
        for to in chosen.all():
            to[...] = value
