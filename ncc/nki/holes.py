"""PSUM that is read where nothing was written: cleared before its first use.

A kernel may compute on padded rows and columns of a product and never store them, and
`nl.zeros(buffer=nl.psum)` of the older API writes nothing: the first product overwrites. The
machine refuses to read a cell of PSUM that no instruction wrote, so such a tensor begins with a
memset of 0. Where a kernel chose the place, bytes that another tensor used before are left alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import prod

import attrs

from ncc.ir.data import size_of
from ncc.ir.kernel import Access, Buffer, KernelOp, Statement, ops_of
from ncc.nki.trace import Trace
from ncc.nki.unwritten import Tile, is_written


def cleared(trace: Trace) -> None:
    """Put the memsets into the recorded body. A simulated call shows what nobody wrote, except of
    `nl.zeros`."""
    tiles = {
        name: Tile(storage.buffer)
        for name, storage in trace.storages.items()
        if storage.buffer.memory == "psum" and (storage.zero or not trace.simulated)
    }
    if not tiles:
        return
    found = Holes(trace, tiles)
    for k, one in enumerate(trace.bodies[0]):
        found.statement(k, one)
    if found.holes:
        body: list[Statement] = []
        for k, one in enumerate(trace.bodies[0]):
            body.extend(memset(trace, name, one) for name in found.holes.get(k, ()))
            body.append(one)
        trace.bodies[0] = body


@attrs.define(eq=False)
class Holes:
    """The tensors to clear, by the statement that first touches them."""

    trace: Trace
    tiles: dict[str, Tile]
    first: dict[str, int] = attrs.field(factory=dict[str, int])
    holes: dict[int, list[str]] = attrs.field(factory=dict[int, list[str]])
    placed: list[Buffer] = attrs.field(factory=list[Buffer])
    kept: set[str] = attrs.field(factory=set[str])

    def statement(self, k: int, one: Statement) -> None:
        if isinstance(one, KernelOp):
            self.op(k, one)
            return
        for op in ops_of(one.body):
            self.writes(k, op)  # by the turn before
        for op in ops_of(one.body):
            self.op(k, op)

    def accesses(self, k: int, op: KernelOp) -> Iterator[tuple[str, Access, Tile]]:
        for role, arg in op.args:
            if not isinstance(arg, Access) or arg.buffer not in self.tiles:
                continue
            tile = self.tiles[arg.buffer]
            if arg.buffer not in self.first:
                self.first[arg.buffer] = k
                self.touch(tile.buffer)
            yield role, arg, tile

    def touch(self, buffer: Buffer) -> None:
        """A tensor at a chosen place is kept as it is where another one was before."""
        if buffer.address is None:
            return
        if any(overlap(buffer, other) for other in self.placed):
            self.kept.add(buffer.name)
        self.placed.append(buffer)

    def writes(self, k: int, op: KernelOp) -> None:
        for role, arg, tile in self.accesses(k, op):
            if is_written(op, role):
                tile.write(arg)

    def op(self, k: int, op: KernelOp) -> None:
        for role, arg, tile in self.accesses(k, op):
            if tile.full or tile.told or arg.buffer in self.kept or is_written(op, role):
                continue
            zero = self.trace.storages[arg.buffer].zero
            if (zero or tile.wrote) and tile.missing(arg):
                tile.told = True
                self.holes.setdefault(self.first[arg.buffer], []).append(arg.buffer)
        self.writes(k, op)


def overlap(a: Buffer, b: Buffer) -> bool:
    """Whether two tensors with chosen places share a byte."""
    assert a.address is not None and b.address is not None
    spans: list[tuple[int, int, int, int]] = []
    for one, (row, byte) in ((a, a.address), (b, b.address)):
        size = prod(one.shape[1:]) * size_of(one.dtype)
        spans.append((row, row + one.shape[0], byte, byte + size))
    (r0, r1, b0, b1), (s0, s1, c0, c1) = spans
    return r0 < s1 and s0 < r1 and b0 < c1 and c0 < b1


def memset(trace: Trace, name: str, before: Statement) -> KernelOp:
    """0 in all of a tensor, at the line of the statement that it comes before."""
    buffer = trace.storages[name].buffer
    row = prod(buffer.shape[1:])
    whole = Access(name, buffer.dtype, ((row, buffer.shape[0]), (1, row)))
    trace.bodies.append([])
    trace.emit("memset", {"dst": whole}, {"value": 0})
    (made,) = trace.bodies.pop()
    origin = before.origin if isinstance(before, KernelOp) else next(ops_of(before.body)).origin
    assert isinstance(made, KernelOp)
    return attrs.evolve(made, origin=origin)
