"""The enumerations of `nki.isa`, numbered as its documentation numbers them.

They are integers too: kernels pass plain numbers, and compare generations with `<` and `>=`.
"""

from __future__ import annotations

from enum import Enum, IntEnum


class _Numbered(IntEnum):
    def __str__(self) -> str:
        return f"{type(self).__name__}.{self.name}"


class engine(_Numbered):
    """Where an instruction runs; `unknown` leaves the choice to the compiler."""

    unknown = 0
    tensor = 1
    scalar = 2
    gpsimd = 3
    dma = 4
    vector = 5
    sync = 6


class reduce_cmd(_Numbered):
    """What an instruction does with the accumulator registers of its engine."""

    idle = 0
    reset = 1
    reduce = 2
    reset_reduce = 3
    load_reduce = 4


class dge_mode(_Numbered):
    """Who writes the descriptors of a DMA."""

    unknown = 0
    swdge = 1
    hwdge = 2
    none = 3


class oob_mode(_Numbered):
    """What a run-time index outside its tensor does: an error, or the row is left out."""

    error = 0
    skip = 1


class nc_version(_Numbered):
    """Generations of the core: trn1, trn2, trn3."""

    gen2 = 2
    gen3 = 3
    gen4 = 4


class dma_engine(_Numbered):
    """Which of the two kinds of DMA moves a `sendrecv`."""

    dma = 1
    gpsimd_dma = 2


class matmul_perf_mode(Enum):
    """How the tensor engine reads its operands."""

    none = "none"
    double_row = "double_row"


tensor_engine = engine.tensor
vector_engine = engine.vector
scalar_engine = engine.scalar
gpsimd_engine = engine.gpsimd
unknown_engine = engine.unknown
