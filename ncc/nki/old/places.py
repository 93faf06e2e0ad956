"""Where blocks of a tensor go: what `nki.compiler.sbuf` and `.psum` hand to `buffer=`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ncc.nki.regions import MemoryRegion, psum, sbuf
from ncc.nki.trace import wrong_type
from ncc.target import BANK

Place = Callable[[tuple[int, ...], int, int], Any]


class Directive:
    """A memory, and a function from (block index, partitions, bytes a partition) to a place:
    (first partition, byte) in SBUF, (bank, first partition, byte) in PSUM."""

    def __init__(self, region: MemoryRegion, place: Place) -> None:
        self.region, self.place = region, place

    def address(
        self, block: tuple[int, ...], shape: tuple[int, ...], dtype: Any
    ) -> tuple[int, int]:
        size = math.prod(shape[1:]) * dtype.size
        found = self._asked(block, shape[0], size)
        values: list[int] = [int(x) for x in found] if hasattr(found, "__iter__") else []
        if len(values) != (3 if self.region == psum else 2):
            parts = "(bank, first partition, byte)" if self.region == psum else "(partition, byte)"
            said = f"the allocation function of a tensor in {self.region} gave {found!r:.60}"
            raise wrong_type("NCC326", said, parts)
        if self.region == sbuf:
            return values[0], values[1]
        bank, first, byte = values
        return first, bank * BANK + byte

    def _asked(self, block: tuple[int, ...], rows: int, size: int) -> Any:
        """Some functions name their parameters, others only their order."""
        try:
            return self.place(block, rows, size)
        except TypeError as wrong:
            trace = wrong.__traceback__
            if trace is not None and trace.tb_next is not None:
                raise
            named: Any = self.place
            return named(idx=block, pdim_size=rows, fdim_size=size)


def alloc(region: MemoryRegion, func: Any) -> Directive:
    if not callable(func):
        said = f"{region}.alloc takes a function, was given {func!r:.60}"
        raise wrong_type("NCC326", said, "def place(idx, pdim_size, fdim_size): ...")
    return Directive(region, func)


def modulo(block: tuple[int, ...], tiles: Any, scale: int) -> int:
    """The place of a block when `tiles` of each dimension are there at a time."""
    counts = tuple(tiles) if hasattr(tiles, "__iter__") else (tiles,)
    if not counts:
        return 0
    found = 0
    for i, n in zip(block, counts, strict=False):
        found = found * n + i % n
    return found * scale


def sbuf_modulo(base_addr: int, base_partition: int, par: Any, free: Any) -> Directive:
    def place(block: tuple[int, ...], rows: int, size: int) -> tuple[int, int]:
        return base_partition + modulo(block, par, rows), base_addr + modulo(block, free, size)

    return Directive(sbuf, place)


def psum_modulo(
    base_bank: int, base_addr: int, base_partition: int, bank: Any, par: Any, free: Any
) -> Directive:
    def place(block: tuple[int, ...], rows: int, size: int) -> tuple[int, int, int]:
        return (
            base_bank + modulo(block, bank, 1),
            base_partition + modulo(block, par, rows),
            base_addr + modulo(block, free, size),
        )

    return Directive(psum, place)
