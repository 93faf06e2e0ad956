"""Axis loops of a kernel, taken apart again: each turn with operands and tensors of its own.

A loop of the older API is one node from the trace to the carrier. Where instructions are made it is
unrolled: turn 2 of axis `k` has the op `i3.2`, tensors that every turn has anew as `t4.2`, block 5
of a tensor of blocks as `t9.b5`. Nothing that two turns share is new, so none waits for another.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import prod
from typing import Any, cast

import attrs

from ncc.ir.data import size_of
from ncc.ir.kernel import (
    Access,
    Arg,
    AxisLoop,
    Buffer,
    Kernel,
    KernelOp,
    Statement,
)


def axes_of(body: tuple[Statement, ...]) -> Iterator[AxisLoop]:
    """Every axis loop of a body, outer ones first."""
    for one in body:
        if isinstance(one, AxisLoop):
            yield one
        if not isinstance(one, KernelOp):
            yield from axes_of(one.body)


def block_size(buffer: Buffer, dtype: str) -> int:
    """The elements of `dtype` that one block of a buffer holds."""
    return prod(buffer.shape) * size_of(buffer.dtype) // size_of(dtype)


def start_of(access: Access, turns: Mapping[str, int]) -> int:
    """The element where an access begins in these turns, moves left aside."""
    return access.offset + sum(stride * turns[axis] for axis, stride in access.terms)


def unrolled(kernel: Kernel) -> Kernel:
    """The same kernel without axis loops; the very same if it has none."""
    if next(axes_of(kernel.body), None) is None:
        return kernel
    made = _Unrolling(kernel)
    body = tuple(made.statements(kernel.body))
    results = tuple(made.access(x) for x in kernel.results)
    kept = (x for x in kernel.buffers if x.name not in made.folded)
    buffers = (*kept, *made.made.values())
    return attrs.evolve(kernel, body=body, buffers=buffers, results=results)


class _Unrolling:
    def __init__(self, kernel: Kernel) -> None:
        self.folded = {x.name: x for x in kernel.buffers if x.blocks or x.axis}
        self.made: dict[str, Buffer] = {}  # in the order in which they are first touched
        self.turns: dict[str, int] = {}  # of the loops that are running
        self.last: dict[str, str] = {}  # of each op: its name in the last turn so far
        self.own: dict[str, str] = {}  # of each axis that is running: what its names end in

    def statements(self, body: tuple[Statement, ...], suffix: str = "") -> Iterator[Statement]:
        for one in body:
            if isinstance(one, KernelOp):
                yield self.op(one, suffix)
            elif not isinstance(one, AxisLoop):
                inside = tuple(self.statements(one.body, suffix))
                yield attrs.evolve(one, name=f"{one.name}{suffix}", body=inside)
            else:
                for turn in range(one.count):
                    self.turns[one.name] = turn
                    self.own[one.name] = f"{suffix}.{turn}"
                    yield from self.statements(one.body, f"{suffix}.{turn}")
                del self.turns[one.name], self.own[one.name]

    def op(self, one: KernelOp, suffix: str) -> KernelOp:
        args = tuple([(role, self.arg(arg)) for role, arg in one.args])
        name = f"{one.name}{suffix}"
        after = tuple([self.last.get(x, x) for x in one.after])
        self.last[one.name] = name
        keys = one.keys
        if self.turns:
            keys = adding(keys, self.turns)
        return KernelOp(name, one.op, args, keys, one.engine, after, one.origin)

    def arg(self, arg: Arg) -> Arg:
        return self.access(arg) if isinstance(arg, Access) else arg

    def access(self, access: Access) -> Access:
        """The access of these turns; the same where no turn matters to it."""
        moves = tuple([attrs.evolve(m, source=self.source(m.source)) for m in access.moves])
        buffer = self.folded.get(access.buffer)
        if buffer is None and not access.terms:
            return attrs.evolve(access, moves=moves) if moves else access
        name, offset = access.buffer, start_of(access, self.turns)
        if buffer is not None:
            name += self.own[buffer.axis] if buffer.axis else ""
            if buffer.blocks:
                block, offset = divmod(offset, block_size(buffer, access.dtype))
                name += f".b{block}"
            if name not in self.made:
                self.made[name] = attrs.evolve(buffer, name=name, blocks=0, axis="")
        return Access(name, access.dtype, access.pairs, offset, moves)

    def source(self, source: Any) -> Any:
        return self.access(source) if isinstance(source, Access) else source


def adding(
    keys: tuple[tuple[str, Any], ...], turns: Mapping[str, int]
) -> tuple[tuple[str, Any], ...]:
    """Keys in these turns: what adds but in the first ones adds now, or does not."""
    for n, (key, value) in enumerate(keys):
        if key == "accumulate" and isinstance(value, tuple):
            adds = ((key, True),) if adds_in(value, turns) else ()
            return (*keys[:n], *adds, *keys[n + 1 :])
    return keys


def adds_in(value: Any, turns: Mapping[str, int]) -> bool:
    """Whether a product with this `accumulate` adds in these turns."""
    if not isinstance(value, tuple):
        return bool(value)
    return any(turns[axis] for axis in cast("tuple[str, ...]", value))
