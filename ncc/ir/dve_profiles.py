"""The profiles of DVE: the opcodes that it is set up to run, for each architecture level.

The real compiler has several for a generation (44 to 47 opcodes each on the second) and takes one
that holds all that a program needs. Here there is one for each, of the opcodes that have records;
what the streams of all engines hold (branches, waits, DMA triggers) stands in none.
"""

from __future__ import annotations

SINCE: dict[int, tuple[str, ...]] = {
    20: (
        *("BNStats", "BNStatsAggregate", "CopyPredicated", "Dropout", "DveReadAccumulator"),
        *("GenericCopy", "GetRandState", "MatchReplace", "Max", "MaxIndex", "Memset", "Pool"),
        *("Reciprocal", "Rng", "SetRandState", "StreamShuffle", "StreamTranspose"),
        *("TensorCopy", "TensorReduce", "TensorScalar", "TensorScalarCache", "TensorScalarPtr"),
        "TensorTensor",
    ),
    30: ("MaxIndexAndMatchReplace", "RandGetState", "RandSetState", "RangeSelect"),
    40: ("Rand2",),
}


def profiles(level: int) -> tuple[frozenset[str], ...]:
    """The profiles of an architecture level: a later one runs what an earlier one does."""
    return (frozenset(x for since, names in SINCE.items() if since <= level for x in names),)
