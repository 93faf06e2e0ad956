"""Where a tensor may stand: partitions, sizes, alignment (L2 to L7), by its descriptor alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

from ncc.encode.codes import TAG_SIZE
from ncc.encode.tables import Row
from ncc.ir.isa import At
from ncc.target import Target

Fault = tuple[int, str, str]  # number after NCC, sentence, hint
Fields = dict[str, Any]  # the fields of one bundle by name
Check = Callable[[Fields, Row, int, Target], Iterator[Fault]]

PARTITIONS = 128
PSUM_SIZE = 16_384


@lru_cache(maxsize=1 << 16)
def tensor_faults(
    at: At, tag: int, count: int, write: bool, sbuf_size: int
) -> tuple[tuple[int, str], ...]:
    """The faults of a tensor with `count` partitions of elements of the dtype `tag`."""
    found: list[tuple[int, str]] = []
    if at.space == "raw":
        return ((705, f"has the address {at.byte:#010x}, which is in no memory"),)
    if zero := [i for i, (_, n) in enumerate(at.dims) if n == 0]:
        return ((702, f"has num 0 in dimension {zero[0]}, outside 1..65535"),)
    if not 0 < count <= PARTITIONS:
        return ((703, f"covers {count} partitions, outside 1..128"),)
    if at.partition + count > PARTITIONS:
        found.append((703, f"covers {count} partitions from {at.partition}, past the last, 127"))
    elif at.partition not in starts(count):
        fit = " or ".join(map(str, starts(count)))
        found.append((704, f"covers {count} partitions from {at.partition}, and may from {fit}"))
    size = TAG_SIZE[tag]
    reach = [s * (n - 1) * size for s, n in at.dims]
    low = at.byte + sum(x for x in reach if x < 0)
    high = at.byte + sum(x for x in reach if x > 0) + size
    limit = sbuf_size if at.space == "sb" else PSUM_SIZE
    if low < 0 or high > limit:
        where = "SBUF" if at.space == "sb" else "PSUM"
        found.append((705, f"touches bytes {low} to {high - 1} of a {where} partition of {limit}"))
    if at.byte % size:
        found.append((706, f"starts at byte {at.byte}, and its elements have {size}"))
    if write and at.space == "psum" and size != 4:
        found.append((707, f"writes elements of {size} bytes into PSUM, which takes 4"))
    return tuple(found)


def starts(count: int) -> tuple[int, ...]:
    """Where a tensor of `count` partitions may start."""
    return (0, 32, 64, 96) if count <= 32 else (0, 64) if count <= 64 else (0,)
