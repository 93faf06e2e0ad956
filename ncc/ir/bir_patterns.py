"""Access patterns: from named axes to pairs, and their one normal form.

Pairs are (step, num), slowest first, in elements. On chip the first pair walks partitions and stays
apart; in DRAM it is only the slowest. The normal form has no pair that could be joined with its
neighbour (its step is the neighbour's step times num), none of num 1 beyond the two that every
pattern has, and at most five.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import cast

from ncc.ir.affine import Affine, Extent, Index, Least
from ncc.ir.bir import LocSet, Tile
from ncc.ir.data import size_of

Pairs = tuple[tuple[int, int], ...]
SymPairs = tuple[tuple[int, Extent], ...]


def joined(pairs: Sequence[tuple[int, Extent]]) -> list[tuple[int, Extent]]:
    """The same walk with neighbours joined where one continues the other, and no pair of num 1."""
    found: list[tuple[int, Extent]] = []
    for step, num in pairs:
        if num == 1:
            continue
        if found and isinstance(num, int) and found[-1][0] == step * num:
            found[-1] = (step, _times(found[-1][1], num))
        else:
            found.append((step, num))
    return found


def _times(extent: Extent, factor: int) -> Extent:
    if isinstance(extent, int):
        return extent * factor
    return Least(extent.most * factor, extent.of.times(factor))


def canonical(ap: Pairs, dram: bool = False) -> Pairs:
    """The normal form of a pattern of numbers; more than five pairs are for a law to refuse."""
    rest = cast(list[tuple[int, int]], joined(ap[1:]))
    if dram and ap[0][1] == 1 and len(rest) > 1:
        return tuple(rest)
    return (ap[0], *rest) if rest else (ap[0], (1, 1))


def elements(ap: Sequence[tuple[int, int]]) -> int:
    """How many elements a pattern walks."""
    count = 1
    for _, num in ap:
        count *= num
    return count


def loc_shape(of: LocSet) -> tuple[int, ...]:
    """The shape of one location: the set's without its block dimensions."""
    return of.shape[of.partition_dim :] if of.memory != "DRAM" else of.shape


def loc_dims(of: LocSet) -> tuple[int, int]:
    """`dims` of each location of a set: partitions and bytes per partition; (1, bytes) in DRAM."""
    shape, size = loc_shape(of), size_of(of.dtype)
    if of.memory == "DRAM":
        return 1, prod(shape) * size
    return shape[0], prod(shape[1:]) * size


def strides(shape: Sequence[int]) -> list[int]:
    """Elements from one index to the next in each dimension of a row-major array."""
    found: list[int] = []
    step = 1
    for extent in reversed(shape):
        found.append(step)
        step *= extent
    return found[::-1]


def block_of(of: LocSet, index: Sequence[Index]) -> tuple[Index, ...]:
    """The part of a tile's index that chooses a location."""
    return tuple(index[: of.partition_dim]) if of.memory != "DRAM" else ()


def block_number(of: LocSet) -> Callable[[Sequence[Index], Mapping[str, int]], int]:
    """The number of the location that a `block` chooses where loop variables have values.

    ValueError with a sentence when a dimension has no such block.
    """
    steps = [*zip(of.shape, strides(of.shape[: of.partition_dim]), strict=False)]

    def number(block: Sequence[Index], env: Mapping[str, int]) -> int:
        total = 0
        for index, (extent, step) in zip(block, steps, strict=True):
            at = index.at(env)
            if not 0 <= at < extent:
                raise ValueError(f"block {at} of {of.name}, which has {extent}")
            total += at * step
        return total

    return number


def walk(of: LocSet, tile: Tile) -> tuple[Affine, dict[str, int]]:
    """Where in its location a tile begins, and the step of each of its axes."""
    shape = loc_shape(of)
    index = tile.index[len(tile.index) - len(shape) :]
    own = {name for name, _ in (*tile.par, *tile.free)}
    offset = Affine()
    steps: dict[str, int] = dict.fromkeys(own, 0)
    for stride, at in zip(strides(shape), index, strict=True):
        if not isinstance(at, Affine):
            raise ValueError(f"has the index {at} in a dimension that is no block dimension")
        outer: list[tuple[str, int]] = []
        for name, coefficient in at.terms:
            if name in own:
                steps[name] += coefficient * stride
            else:
                outer.append((name, coefficient))
        offset = offset.plus(Affine(at.const, tuple(outer)), stride)
    return offset, steps


def side(axes: Sequence[tuple[str, Extent]], steps: Mapping[str, int]) -> list[tuple[int, Extent]]:
    """The pairs of some axes, joined."""
    return joined([(steps[name], extent) for name, extent in axes])
