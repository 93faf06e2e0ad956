"""What a sentence says of a run-time start that leaves its tensor."""

from __future__ import annotations

from math import prod

from ncc.ir.data import size_of
from ncc.ir.kernel import Buffer

CLAMP = "clamp the index, end the loop earlier, or pass oob_mode.skip"


def outside(buffer: Buffer, dtype: str, scale: int, value: int, limit: int) -> str:
    """`value` is a start in steps of `scale` elements of `dtype`, and must be below `limit`."""
    shape = ", ".join(map(str, buffer.shape))
    own, size = size_of(buffer.dtype), size_of(dtype)
    for k, extent in enumerate(buffer.shape):
        if prod(buffer.shape[k + 1 :]) * own == scale * size and limit <= extent:
            count = extent - limit + 1
            what = f"index {value}" if count == 1 else f"{count} elements from index {value}"
            verb = "leaves" if count == 1 else "leave"
            return f"{what} {verb} dimension {k} of {buffer.name} ({shape}), which has {extent}"
    return f"index {value} leaves {buffer.name} ({shape}): it is 0 to {limit - 1} here"
