"""The one rule about how many partitions a tile takes, NCC310, in the words of every level."""

from __future__ import annotations

from collections.abc import Sequence

PARTITIONS = 128


def too_many(sizes: Sequence[int], dim: int = 0) -> tuple[str, str]:
    """What a sentence says of a shape whose dimension `dim`, the partitions, is too large; a hint.

    `sizes` begin with that dimension.
    """
    blocks, tail = divmod(sizes[0], PARTITIONS)
    hint = f"loop over blocks of {PARTITIONS} rows"
    if not tail:
        hint += f", or reshape to ({', '.join(map(str, (PARTITIONS, blocks, *sizes[1:])))})"
    return f"dimension {dim} is the partition dimension, {sizes[0]} > {PARTITIONS}", hint
