"""The axes of a fold, as `nisa.tensor_reduce` of the older API takes them."""

from __future__ import annotations

from typing import Any

from ncc.nki.old.tile import Tile
from ncc.nki.trace import invalid, wrong_type


def axes_given(x: Tile, axis: Any, where: str) -> tuple[int, ...]:
    """The free dimensions that are folded, ascending (NCC349)."""
    given: list[Any] = list(axis) if hasattr(axis, "__iter__") else [axis]
    found: set[int] = set()
    for one in given:
        try:
            k = int(one)
        except (TypeError, ValueError):
            raise wrong_type(
                "NCC349", f"{where} takes axis as numbers, was given {one!r}", "pass ints"
            ) from None
        if not -x.ndim <= k < x.ndim:
            said = f"{where} takes axis below {x.ndim}, was given {k}"
            said = f"{said}: {x.shown} has the shape {x.shape}"
            raise invalid("NCC349", said, f"fold 1 to {x.ndim - 1}")
        found.add(k % x.ndim)
    if 0 in found or not found:
        raise invalid(
            "NCC349",
            f"{where} folds free dimensions, axis 0 of {x.name} {x.shape} is the partitions",
            "nisa.tensor_partition_reduce, nisa.nc_matmul with ones, or transpose first",
        )
    return tuple(sorted(found))
