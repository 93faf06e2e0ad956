"""What an index of the older API may hold beside index tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ncc.nki.old.index import Grid, Index
from ncc.nki.old.sequences import items

if TYPE_CHECKING:
    from ncc.nki.old.tile import Tile


class RuntimeIndex:
    """`idx_tile[...] + nl.arange(n)[None, :]`: a walk from a start that the machine reads."""

    __slots__ = ("index", "tile")
    __array_ufunc__ = None

    def __init__(self, tile: Tile, index: Index) -> None:
        self.tile, self.index = tile, index

    def __add__(self, other: Any) -> RuntimeIndex:
        return RuntimeIndex(self.tile, self.index + other)

    __radd__ = __add__

    def __sub__(self, other: Any) -> RuntimeIndex:
        return RuntimeIndex(self.tile, self.index - other)


def bounds_of(one: Any) -> tuple[Any, Any, Any]:
    return one.start, one.stop, one.step


def spread_grids(index: Any) -> tuple[Any, ...]:
    """An index as a tuple; an `nl.mgrid` as a whole gives its parts."""
    if isinstance(index, Grid):
        return index.parts
    what: object = index
    given = (items(index) if isinstance(what, tuple) else None) or [index]
    return tuple(p for one in given for p in (one.parts if isinstance(one, Grid) else (one,)))
