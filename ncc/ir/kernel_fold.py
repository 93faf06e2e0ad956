"""Axis loops of a kernel, found again in what its unrolled Python recorded.

A loop of the older API runs as Python, turn after turn, with an int as its index: kernels compute
with it, test it, and keep tiles in lists. What is left of a turn are ops; where the ops of the
turns differ only in where their accesses begin, by the same stride each time, they are one loop.
Loops fold from the inside out. A turn that is not like its neighbours (a tail under a mask, a first
turn that does more) stays as it is beside the loop of the others; only a product that overwrites in
the first turn and adds in all others is no difference.

Which tensor of a family (`ncc.ir.kernel_families`) an op touches is a number like its start. All of
it is linear in the recorded ops, times the depth of the loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from operator import sub
from typing import Any

import attrs

from ncc.ir.kernel import Access, Arg, Imm, Kernel, KernelOp, Statement
from ncc.ir.kernel_families import Families
from ncc.ir.kernel_folded import Adds, Item, Ran, built


@attrs.frozen(eq=False)
class Turn:
    """The items of one turn of a loop, and what is compared of them, in a row."""

    items: list[Item]
    kinds: tuple[int, ...]
    numbers: tuple[int, ...]
    adds: tuple[Adds, ...]


def folded(kernel: Kernel, loops: Sequence[Ran]) -> Kernel:
    """The kernel with the loops that fold; `loops` in the order in which they began."""
    loops = [x for x in loops if len(x.turns) > 1 and x.turns[0] < x.end]
    if not loops:
        return kernel
    fold = _Fold(kernel, loops)
    items = fold.level(0, len(kernel.body), 0)
    if all(item.ran is None for item in items):
        return kernel
    return built(kernel, items, fold.families)


class _Fold:
    def __init__(self, kernel: Kernel, loops: Sequence[Ran]) -> None:
        self.body, self.loops = kernel.body, loops
        self.families = Families(kernel)
        self.next = 0  # the first loop that was not looked at
        self.kinds: dict[Any, int] = {}
        self.alone = 0  # the kinds of what is like nothing else are below 0
        self.awaited = {x for op in kernel.body if isinstance(op, KernelOp) for x in op.after}

    def level(self, first: int, end: int, depth: int) -> list[Item]:
        """The statements from `first` to `end`, the loops that ran between them folded."""
        found: list[Item] = []
        while self.next < len(self.loops) and self.loops[self.next].turns[0] < end:
            loop = self.loops[self.next]
            self.next += 1
            if first <= loop.turns[0] and loop.end <= end:  # else several turns share it
                found += self.plain(first, loop.turns[0], depth)
                found += self.loop(loop, depth)
                first = loop.end
        found += self.plain(first, end, depth)
        return found

    def plain(self, first: int, end: int, depth: int) -> list[Item]:
        if not depth:
            return [Item(0, statement=one) for one in self.body[first:end]]
        return [self.item(one) for one in self.body[first:end]]

    def loop(self, loop: Ran, depth: int) -> list[Item]:
        """The turns of a loop; those in a row that are alike as one item."""
        turns: list[Turn] = []
        for a, b in zip(loop.turns, (*loop.turns[1:], loop.end), strict=True):
            items = self.level(a, b, depth + 1)
            kinds = tuple([x.kind for x in items])
            numbers = tuple(chain.from_iterable([x.numbers for x in items]))
            adds = tuple(chain.from_iterable([x.adds for x in items]))
            turns.append(Turn(items, kinds, numbers, adds))
        found: list[Item] = []
        at = 0
        while at < len(turns):
            last = alike(turns, at)
            if last == at + 1 < len(turns) - 1 and alike(turns, last) > last + 1:
                last = at  # any two turns are some stride apart; behind it are more
            if last > at and turns[at].kinds:
                found.append(self.folded(loop, turns[at : last + 1]))
            else:
                found += turns[at].items
                last = at
            at = last + 1
        return found

    def folded(self, ran: Ran, turns: Sequence[Turn]) -> Item:
        first, second = turns[0], turns[1]
        strides = tuple(map(sub, second.numbers, first.numbers))
        depths = tuple(chain.from_iterable([x.depths for x in first.items]))
        triples = zip(first.adds, second.adds, depths, strict=True)
        adds = tuple([a if a == b else _first(a, depth) for a, b, depth in triples])
        said = ran.kind, ran.variable, ran.origin.file, ran.origin.line
        kind = self.kind(("loop", *said, len(turns), first.kinds, strides))
        deeper = tuple([depth + 1 for depth in depths])
        items = tuple(first.items)
        return Item(kind, first.numbers, adds, deeper, None, ran, len(turns), strides, items)

    def kind(self, key: Any) -> int:
        return self.kinds.setdefault(key, len(self.kinds) + 1)

    # --- one statement ----------------------------------------------------------------------------

    def item(self, one: Statement) -> Item:
        """A statement as it is compared; one that others wait for is like no other."""
        if isinstance(one, KernelOp) and not one.after and one.name not in self.awaited:
            numbers: list[int] = []
            key: list[Any] = [one.op, one.engine, one.origin.file, one.origin.line]
            keys, adds = one.keys, ()
            if one.op == "nc_matmul":
                keys = tuple([pair for pair in keys if pair[0] != "accumulate"])
                adds = (len(keys) < len(one.keys) and dict(one.keys)["accumulate"],)
            if keys:
                key.append(repr(keys))  # which tells 0 from 0.0 and True
            if all(self.operand(role, arg, key, numbers) for role, arg in one.args):
                depths = (0,) * len(adds)
                return Item(self.kind(tuple(key)), tuple(numbers), adds, depths, one)
        self.alone -= 1
        return Item(self.alone, statement=one)

    def operand(self, role: str, arg: Arg, key: list[Any], numbers: list[int]) -> bool:
        """Add an operand to what is compared of its op; False where it cannot be numbered."""
        if isinstance(arg, Access):
            own = self.families.numbers(arg)
            if own is None:
                return False
            numbers += own
            family, _ = self.families.of[arg.buffer]
            key += (role, family.number, arg.dtype, arg.pairs)
            for move in arg.moves:
                key += (type(move), move.scale, move.limit)
                if not self.operand("", move.source, key, numbers):
                    return False
        else:
            key += (role, repr(arg.value) if isinstance(arg, Imm) else arg)
        return True


def alike(turns: Sequence[Turn], at: int) -> int:
    """The last of the turns from `at` on that are one loop."""
    if at + 1 == len(turns):
        return at
    first, second = turns[at], turns[at + 1]
    if first.kinds != second.kinds or any(
        a != b and (a is True or b is not True)
        for a, b in zip(first.adds, second.adds, strict=True)
    ):
        return at
    strides = tuple(map(sub, second.numbers, first.numbers))
    last = at + 1
    while last + 1 < len(turns):
        one, next_ = turns[last], turns[last + 1]
        if next_.kinds != one.kinds or next_.adds != one.adds:
            break
        if tuple(map(sub, next_.numbers, one.numbers)) != strides:
            break
        last += 1
    return last


def _first(adds: Adds, depth: int) -> Adds:
    """What a product does that overwrites in the first turn of a loop and adds in the others."""
    return (*adds, depth) if isinstance(adds, tuple) else (depth,)
