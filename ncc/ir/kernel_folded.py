"""Building a kernel of folded loops: names for the axes, tensors of blocks, starts that move."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import attrs

from ncc.ir.core import Origin
from ncc.ir.kernel import (
    Access,
    Arg,
    AxisLoop,
    Buffer,
    Kernel,
    KernelOp,
    Rows,
    Scalar,
    Statement,
)
from ncc.ir.kernel_axes import block_size
from ncc.ir.kernel_families import Families, Tensor, Use, tensors
from ncc.ir.kernel_print import plain_name


@attrs.define(eq=False)
class Ran:
    """A loop that ran: how many statements stood in the body before each turn, and at its end."""

    kind: str
    variable: str
    origin: Origin
    turns: list[int] = attrs.field(factory=list[int])
    end: int = -1  # it has not ended


Adds = bool | tuple[int, ...]  # accumulate: in all but the first turn of these loops, inner is 0


@attrs.define(eq=False)
class Item:
    """A statement, or a folded loop, as it is compared. Items of one `kind` differ in nothing but
    their `numbers` and `adds`: the accumulate of each product in it, `depths` loops deep."""

    kind: int
    numbers: tuple[int, ...] = ()
    adds: tuple[Adds, ...] = ()
    depths: tuple[int, ...] = ()
    statement: Statement | None = None
    ran: Ran | None = None  # of a loop: what it is turns of,
    count: int = 0  # how many,
    strides: tuple[int, ...] = ()  # how far each number goes in one,
    inside: Sequence[Item] = ()  # and the first of them


@attrs.define(eq=False)
class Level:
    """A loop while what is in it is walked: how many of its numbers and products are behind."""

    loop: Item
    at: int = 0
    products: int = 0

    def passed(self, item: Item) -> None:
        self.at += len(item.numbers)
        self.products += len(item.adds)


def accesses(arg: Arg) -> Iterator[Access]:
    """An operand's access and those that its moves read, in the order of an item's numbers."""
    if isinstance(arg, Access):
        yield arg
        for move in arg.moves:
            if isinstance(move.source, Access):
                yield from accesses(move.source)


def built(kernel: Kernel, items: Sequence[Item], families: Families) -> Kernel:
    """The kernel whose body is these items."""
    made = _Building(kernel, families)
    made.uses_in(items, [])
    for result in kernel.results:
        made.use(result, [])
    made.settle()
    body = tuple(made.statements(items, []))
    results = tuple(made.access(x, [], 0)[0] for x in kernel.results)
    buffers = tuple(filter(None, map(made.buffer, kernel.buffers)))
    return attrs.evolve(kernel, body=body, results=results, buffers=buffers)


class _Building:
    def __init__(self, kernel: Kernel, families: Families) -> None:
        self.families = families
        self.uses: dict[int, list[Use]] = {}  # by family
        self.tensors: dict[int, dict[int, Tensor]] = {}
        self.names: dict[Item, str] = {}  # of the axes
        self.taken = {b.name for b in kernel.buffers}
        self.taken |= {one.name for one in kernel.body}

    # --- which members are used where -------------------------------------------------------------

    def uses_in(self, items: Sequence[Item], path: list[Level]) -> None:
        for item in items:
            if item.ran is not None:
                self.uses_in(item.inside, [*path, Level(item)])
                continue
            self.uses_of(item.statement, path)
            for level in path:
                level.passed(item)

    def uses_of(self, one: Statement | None, path: list[Level]) -> None:
        if isinstance(one, KernelOp):
            n = 0
            for _, arg in one.args:
                for access in accesses(arg):
                    n += self.use(access, path, n)
        elif one is not None:
            for inside in one.body:
                self.uses_of(inside, [])

    def use(self, access: Access, path: list[Level], n: int = 0) -> int:
        """Note one access, whose numbers are the op's from number `n`; how many it has."""
        family, number = self.families.of[access.buffer]
        if len(family.members) < 2:
            return 1
        strides = tuple((x.loop, x.loop.strides[x.at + n + 1]) for x in path)
        self.uses.setdefault(family.number, []).append(Use(number, strides))
        return 2

    def settle(self) -> None:
        self.tensors = {family: tensors(uses) for family, uses in self.uses.items()}

    # --- what is built ----------------------------------------------------------------------------

    def buffer(self, buffer: Buffer) -> Buffer | None:
        """What a tensor of the trace becomes; None for one that is part of another's now."""
        family, number = self.families.of[buffer.name]
        if len(family.members) < 2:
            return buffer
        found = self.tensors.get(family.number, {}).get(number)
        if found is None or found.head != number:
            return None
        axis = self.names[found.private[-1]] if found.private else ""
        blocks = found.blocks if found.blocks > 1 else 0
        return attrs.evolve(buffer, blocks=blocks, axis=axis) if blocks or axis else buffer

    def statements(self, items: Sequence[Item], path: list[Level]) -> Iterator[Statement]:
        for item in items:
            if item.ran is not None:
                yield self.loop(item, item.ran, path)
            elif isinstance(item.statement, KernelOp):
                yield self.op(item.statement, item, path)
                for level in path:
                    level.passed(item)
            elif item.statement is not None:
                yield self.still(item.statement)

    def loop(self, item: Item, ran: Ran, path: list[Level]) -> AxisLoop:
        name = self.names[item] = self.fresh(ran.variable)
        body = tuple(self.statements(item.inside, [*path, Level(item)]))
        return AxisLoop(name, ran.kind, item.count, body, ran.origin)

    def fresh(self, wish: str) -> str:
        wish = wish if plain_name(wish) and wish.strip("_") else "i"
        name, n = wish, 1
        while name in self.taken:
            n += 1
            name = f"{wish}_{n}"
        self.taken.add(name)
        return name

    def still(self, one: Statement) -> Statement:
        """A statement outside of every axis: only the names of tensors change in it."""
        if isinstance(one, KernelOp):
            return self.op(one, Item(0), [])
        return attrs.evolve(one, body=tuple(map(self.still, one.body)))

    def op(self, one: KernelOp, item: Item, path: list[Level]) -> KernelOp:
        args: list[tuple[str, Arg]] = []
        n = 0
        for role, arg in one.args:
            if isinstance(arg, Access):
                arg, n = self.access(arg, path, n)
            args.append((role, arg))
        keys = one.keys
        if path and item.adds:
            adds = path[0].loop.adds[path[0].products]
            if isinstance(adds, tuple):
                axes = [self.names[x.loop] for x in path]
                first = tuple(axes[-1 - d] for d in sorted(adds, reverse=True))
                keys = tuple(sorted((*keys, ("accumulate", first))))
        return KernelOp(one.name, one.op, tuple(args), keys, one.engine, one.after, one.origin)

    def access(self, access: Access, path: list[Level], n: int) -> tuple[Access, int]:
        """An access whose numbers are the op's from number `n`, and the next number."""
        family, number = self.families.of[access.buffer]
        steps = [x.loop.strides[x.at + n] for x in path]
        name, offset = access.buffer, access.offset
        n += 1
        if len(family.members) > 1:
            found = self.tensors[family.number][number]
            size = block_size(family.members[0], access.dtype)
            name = family.members[found.head].name
            offset += (number - found.low) // found.step * size
            for k, level in enumerate(path):
                if level.loop not in found.private:
                    steps[k] += level.loop.strides[level.at + n] // found.step * size
            n += 1
        moves: list[Scalar | Rows] = []
        for move in access.moves:
            source = move.source
            if isinstance(source, Access):
                source, n = self.access(source, path, n)
            moves.append(attrs.evolve(move, source=source))
        axes = [self.names[x.loop] for x in path]
        terms = tuple(sorted((a, s) for a, s in zip(axes, steps, strict=True) if s))
        return Access(name, access.dtype, access.pairs, offset, tuple(moves), terms), n
