"""Families of a kernel's tensors: what one line allocates, again and again, numbered.

A loop that was unrolled has a tile of its own in each turn. Seen as members of a family they are
numbers, and a loop's turns touch numbers a stride apart. Here the uses of a family in folded loops
become tensors again: uses that never meet are different tensors; where every turn of an axis
touches members of its own, each turn has a new tensor; what is left is a tensor of blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import Any

import attrs

from ncc.ir.data import size_of
from ncc.ir.kernel import Access, Buffer, Kernel


@attrs.define(eq=False)
class Family:
    """The tensors that a line allocates, all alike, in their order."""

    number: int
    members: list[Buffer] = attrs.field(factory=list[Buffer])


class Families:
    """Every buffer's family, and its number there."""

    def __init__(self, kernel: Kernel) -> None:
        self.of: dict[str, tuple[Family, int]] = {}
        known: dict[Any, Family] = {}
        for b in kernel.buffers:
            key: Any = b.name
            if b.kind == "internal" and b.memory != "shared_hbm":
                key = b.origin.file, b.origin.line, b.dtype, b.shape, b.memory, b.address
            family = known.get(key)
            if family is None:
                family = known[key] = Family(len(known))
            self.of[b.name] = family, len(family.members)
            family.members.append(b)

    def numbers(self, access: Access) -> tuple[int, ...] | None:
        """Where an access begins, and which member it is of, if there are several. None where the
        elements of one member do not end at the end of an element of the access."""
        family, number = self.of[access.buffer]
        if len(family.members) == 1:
            return (access.offset,)
        made = family.members[0]
        if made.dtype != access.dtype and (
            prod(made.shape) * size_of(made.dtype) % size_of(access.dtype)
        ):
            return None
        return access.offset, number


@attrs.frozen(eq=False)
class Use:
    """An access of a family: member `base` in the first turns, and for each loop around it, outer
    ones first, how many members further it goes in a turn."""

    base: int
    path: tuple[tuple[Any, int], ...]  # (loop with a `count`, stride)

    def span(self, private: Sequence[Any]) -> tuple[int, int]:
        """The lowest and the highest member, as far as loops that are not private go."""
        low = high = self.base
        for loop, stride in self.path:
            if loop not in private:
                far = stride * (loop.count - 1)
                low, high = low + min(far, 0), high + max(far, 0)
        return low, high


@attrs.frozen(eq=False)
class Tensor:
    """What some uses of a family become: blocks `step` members apart, from member `low`; every turn
    of the `private` loops has its own. It is called after the member `head`."""

    head: int
    low: int
    step: int
    blocks: int
    private: tuple[Any, ...]


def tensors(uses: Sequence[Use]) -> dict[int, Tensor]:
    """By the base of a use: its tensor."""
    found: dict[int, Tensor] = {}
    _solve(uses, (), found)
    return found


def _solve(uses: Sequence[Use], private: tuple[Any, ...], found: dict[int, Tensor]) -> None:
    parts = _apart(uses, private)
    for part in parts:
        more = _private(part, private)
        if len(parts) > 1 or len(more) > len(private):
            _solve(part, more, found)
            continue
        spans = [use.span(private) for use in part]
        low, high = min(a for a, _ in spans), max(b for _, b in spans)
        strides = [s for use in part for loop, s in use.path if loop not in private]
        step = gcd(*strides, *(use.base - low for use in part)) or 1
        head = min(use.base for use in part)
        made = Tensor(head, low, step, (high - low) // step + 1, private)
        found.update((use.base, made) for use in part)


def _apart(uses: Sequence[Use], private: Sequence[Any]) -> list[list[Use]]:
    """Uses whose members lie between each other's, together."""
    parts: list[list[Use]] = []
    end = -1
    for (low, high), use in sorted(
        ((use.span(private), use) for use in uses), key=lambda pair: pair[0]
    ):
        if not parts or low > end:
            parts.append([])
        parts[-1].append(use)
        end = max(end, high)
    return parts


def _private(uses: Sequence[Use], private: tuple[Any, ...]) -> tuple[Any, ...]:
    """The outer loops that are around every use, and whose turns share no member."""
    first = uses[0].path
    for n, (loop, stride) in enumerate(first):
        if any(len(u.path) <= n or u.path[n] != (loop, stride) for u in uses):
            break
        if loop in private:
            continue
        spans = [use.span((*private, loop)) for use in uses]
        if abs(stride) <= max(b for _, b in spans) - min(a for a, _ in spans):
            break
        private = (*private, loop)
    return private
