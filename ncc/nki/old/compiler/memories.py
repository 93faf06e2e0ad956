"""`nki.compiler.sbuf` and `nki.compiler.psum`: memories with allocation directives."""

from __future__ import annotations

from typing import Any

from ncc.nki.old import places
from ncc.nki.regions import MemoryRegion
from ncc.nki.regions import psum as _psum
from ncc.nki.regions import sbuf as _sbuf


class _Sbuf(MemoryRegion):
    __slots__ = ()

    def alloc(self, func: Any) -> places.Directive:
        """Each block where `func(idx, pdim_size, fdim_size)` says: (first partition, byte)."""
        return places.alloc(_sbuf, func)

    def mod_alloc(
        self,
        *,
        base_addr: int,
        base_partition: int = 0,
        num_par_tiles: Any = (),
        num_free_tiles: Any = (),
    ) -> places.Directive:
        """Blocks that take turns in so many tiles."""
        return places.sbuf_modulo(base_addr, base_partition, num_par_tiles, num_free_tiles)

    def auto_alloc(self) -> MemoryRegion:
        return _sbuf


class _Psum(MemoryRegion):
    __slots__ = ()

    def alloc(self, func: Any) -> places.Directive:
        """Each block where `func(idx, pdim_size, fdim_size)` says: (bank, partition, byte)."""
        return places.alloc(_psum, func)

    def mod_alloc(
        self,
        *,
        base_bank: int,
        base_addr: int = 0,
        base_partition: int = 0,
        num_bank_tiles: Any = (),
        num_par_tiles: Any = (),
        num_free_tiles: Any = (),
    ) -> places.Directive:
        """Blocks that take turns in so many banks."""
        return places.psum_modulo(
            base_bank, base_addr, base_partition, num_bank_tiles, num_par_tiles, num_free_tiles
        )

    def auto_alloc(self) -> MemoryRegion:
        return _psum


sbuf = _Sbuf("sbuf")
psum = _Psum("psum")
