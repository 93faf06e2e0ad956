"""What kernels share: assertions, divisions, tiles, the split over cores, and an allocator."""

from dataclasses import dataclass
from typing import Any

import nki.isa as nisa
import nki.language as nl

P_MAX = 128


def kernel_assert(condition: bool, text: str):
    if not condition:
        raise AssertionError(f"[NCC_INKI016] {text}")


def div_ceil(n: int, d: int) -> int:
    return (n + d - 1) // d


@dataclass(frozen=True)
class Tile(nl.NKIObject):
    """A part of an axis."""

    index: int
    start: int
    size: int

    @property
    def end(self) -> int:
        return self.start + self.size


def tiles_of(extent: int, size: int):
    return [Tile(i, i * size, min(size, extent - i * size)) for i in range(div_ceil(extent, size))]


def program_info(name: str):
    """(number of programs, this one's id), without a grid too."""
    grid = nl.program_ndim()
    kernel_assert(grid in (0, 1), f"{name}: one axis at most, got {grid}")
    if grid == 0:
        return 1, 0
    return nl.num_programs(axes=0), nl.program_id(axis=0)


def load(src, dtype=None, name: str = ""):
    tile = nl.ndarray(src.shape, dtype=dtype or src.dtype, buffer=nl.sbuf, name=name)
    nisa.dma_copy(dst=tile, src=src)
    return tile


def broadcast_load(row, partitions: int, dtype=None):
    """A row of HBM on every partition."""
    width = row.shape[-1]
    tile = nl.ndarray((partitions, width), dtype=dtype or row.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=tile, src=row.ap(pattern=[[0, partitions], [1, width]]))
    return tile


def pe_transpose(data):
    """The transpose in SBUF of a tile in SBUF, through the tensor engine."""
    p, f = data.shape
    across = nl.ndarray((f, p), dtype=data.dtype, buffer=nl.psum)
    nisa.nc_transpose(dst=across, data=data)
    result = nl.ndarray((f, p), dtype=data.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(dst=result, src=across)
    return result


BYTES = {nl.float32: 4, nl.bfloat16: 2, nl.int32: 4, nl.uint8: 1}


class StackAllocator(nl.NKIObject):
    """SBUF by hand: scopes that are closed give their bytes back."""

    base: int = 0
    limit: int | None = None

    def __post_init__(self):
        self.top = self.base
        self.scopes: list[Any] = []
        self.count = 0

    def open(self):
        self.scopes.append(self.top)

    def close(self):
        self.top = self.scopes.pop()

    def alloc(self, shape, dtype, align: int = 32):
        free = 1
        for n in shape[1:]:
            free *= n
        start = div_ceil(self.top, align) * align
        self.top = start + free * BYTES[dtype]
        kernel_assert(self.top <= (self.limit or nl.tile_size.sbuf_fmax_bytes), "SBUF is full")
        self.count += 1
        name = f"stack_{self.count}_{start}"
        return nl.ndarray(shape, dtype=dtype, buffer=nl.sbuf, name=name, address=(0, start))
