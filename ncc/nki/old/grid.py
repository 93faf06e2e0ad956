"""The launch grid of the older API, and which core runs which of its programs.

`nl.nc(2) * n` gives the first half of an axis to core 0, `n * nl.nc(2)` every other program.
Programs of one core run one after the other; their outputs in shared_hbm are the same tensors.
"""

from __future__ import annotations

from itertools import product
from typing import Any

import attrs

from ncc.errors import Place
from ncc.nki.old.index import whole
from ncc.nki.trace import NkiValidationError, wrong_type


@attrs.frozen
class Axis:
    """An axis of `size` programs over `cores`: in blocks, or in turns."""

    size: int
    cores: int = 1
    turns: bool = False

    def core(self, program: int) -> int:
        return program % self.cores if self.turns else program // (self.size // self.cores)

    def __mul__(self, other: Any) -> Any:
        number = whole(other)
        if number is None:
            return NotImplemented
        return Axis(self.size * number, self.cores, self.turns)

    def __rmul__(self, other: Any) -> Any:
        number = whole(other)
        if number is None:
            return NotImplemented
        return Axis(self.size * number, self.cores, True)

    def __index__(self) -> int:
        return self.size

    def __int__(self) -> int:
        return self.size


def nc(cores: Any) -> Axis:
    """An axis of the grid that is the cores themselves."""
    number = whole(cores)
    if number not in (1, 2):
        said = f"nl.nc({cores!r:.40}) is no number of cores"
        raise wrong_type("NCC304", said, "1 or 2")
    return Axis(number, number)


def spmd_dim(outer: Any, inner: Any) -> Any:
    """Two axes as one: with `nl.nc` first in blocks, with it second in turns."""
    return outer * inner


def axes_of(grid: tuple[Any, ...], name: str, place: Place) -> tuple[Axis, ...]:
    """The axes of `kernel[...]` (NCC304)."""
    found: list[Axis] = []
    for one in grid:
        number = None if isinstance(one, Axis) else whole(one)
        axis = one if isinstance(one, Axis) else Axis(number or 0)
        if axis.size < 1:
            shown = ", ".join(str(getattr(g, "size", g)) for g in grid)
            said = f"{name}[{shown}] is no grid: its axes are whole numbers from 1"
            raise NkiValidationError("NCC304", said, place, "divide sizes with //")
        found.append(axis)
    if sum(axis.cores > 1 for axis in found) > 1:
        said = f"{name} spreads two axes of its grid over cores"
        raise NkiValidationError("NCC304", said, place, "use nl.nc for one of them")
    return tuple(found)


def programs_of(axes: tuple[Axis, ...], cores: int) -> list[list[tuple[int, ...]]]:
    """The programs of each core, in their order."""
    found: list[list[tuple[int, ...]]] = [[] for _ in range(cores)]
    for program in product(*(range(axis.size) for axis in axes)):
        core = sum(a.core(p) for a, p in zip(axes, program, strict=True) if a.cores > 1)
        found[core if cores > 1 else 0].append(program)
    return found
