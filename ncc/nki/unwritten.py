"""What a kernel reads and nobody wrote: found in the trace, told alike by both ways to run it.

Such a read is legal: the contents are undefined, and kernels compute on padded rows that they
never store. So a tile that is read before anything wrote to it is a warning, and so are, where a
kernel is simulated, elements that go to an output. A compiled call refuses those: here what is
copied as it is, since its place may hold what another tile left; on the machine, which follows
unwritten elements through arithmetic, the rest.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod

import attrs
import numpy as np
from numpy.typing import NDArray

from ncc.ir.data import size_of
from ncc.ir.kernel import Access, Buffer, Kernel, KernelOp, Statement, ops_of
from ncc.ir.kernel_axes import unrolled
from ncc.ir.kernel_ops import role_of, writes
from ncc.nki.trace import NkiValidationError

HINT = "write them first (a load, a memset), or copy fewer"
COPIES = frozenset({"dma_copy", "dma_transpose", "dma_compute"})


@attrs.define(eq=False)
class Tile:
    """What is known of one on-chip buffer: the accesses that wrote it, until they fill it."""

    buffer: Buffer
    wrote: list[Access] = attrs.field(factory=list[Access])
    full: bool = False
    told: bool = False

    def write(self, access: Access) -> None:
        """A run-time index may reach all of it."""
        if self.full:
            return
        count = prod(self.buffer.shape) * size_of(self.buffer.dtype)
        self.full = bool(access.moves) or prod(access.shape) * size_of(access.dtype) == count
        self.wrote.append(access)

    def missing(self, access: Access) -> int:
        """How many of an access's elements nobody wrote."""
        if self.full or access.moves:
            return 0
        flags = np.zeros(prod(self.buffer.shape) * size_of(self.buffer.dtype), np.bool_)
        for one in self.wrote:
            _bytes(flags, one)[...] = True
        self.full = bool(flags.all())
        found = _bytes(flags, access).all(axis=-1)
        return int(found.size - np.count_nonzero(found))


def _bytes(flags: NDArray[np.bool_], access: Access) -> NDArray[np.bool_]:
    """The flags of an access's elements: its shape, and an axis of the bytes of each."""
    size = size_of(access.dtype)
    steps = [*[step * size for step, _ in access.pairs], 1]
    return np.ndarray((*access.shape, size), np.bool_, flags, access.offset * size, steps)


def sentences(kernels: Sequence[Kernel], simulated: bool) -> Iterator[str]:
    """Warnings, by core; NCC903 for a tile that nobody wrote and that goes to an output."""
    for kernel in map(unrolled, kernels):
        tiles = {
            b.name: Tile(b)
            for b in kernel.buffers
            if b.on_chip and b.kind == "internal" and b.address is None
        }
        outputs = {b.name for b in kernel.buffers if b.kind in ("output", "inout")}
        yield from _body(kernel.body, tiles, outputs, simulated)


def _body(
    body: tuple[Statement, ...], tiles: dict[str, Tile], outputs: set[str], simulated: bool
) -> Iterator[str]:
    for one in body:
        if isinstance(one, KernelOp):
            yield from _op(one, tiles, outputs, simulated)
            _write(one, tiles)
            continue
        for op in ops_of(one.body):
            _write(op, tiles)  # by the turn before
        yield from _body(one.body, tiles, outputs, simulated)


def _write(op: KernelOp, tiles: dict[str, Tile]) -> None:
    for role, arg in op.args:
        if isinstance(arg, Access) and arg.buffer in tiles and is_written(op, role):
            tiles[arg.buffer].write(arg)


def is_written(op: KernelOp, role: str) -> bool:
    """Whether the op writes the operand with this role."""
    return role_of(op.op, role).rstrip("*") in {w.rstrip("*") for w in writes(op.op)}


def _op(op: KernelOp, tiles: dict[str, Tile], outputs: set[str], simulated: bool) -> Iterator[str]:
    to = op.arg("dst")
    leaves = op.op in COPIES and isinstance(to, Access) and to.buffer in outputs
    for role, arg in op.args:
        if not isinstance(arg, Access) or is_written(op, role):
            continue
        tile = tiles.get(arg.buffer)
        if tile is None or tile.told or tile.full or (tile.wrote and not leaves):
            continue
        if not leaves or not isinstance(to, Access):
            tile.told = True
            said = f"{op.op} reads {arg.buffer}, and nobody wrote to it before"
            yield f"NCC903 {op.origin.place()}: {said} (write it first: a load, a memset)"
            continue
        if bad := tile.missing(arg):
            tile.told = True
            said = f"carries {bad} elements that nobody wrote to output {to.buffer}"
            if not simulated:
                raise NkiValidationError("NCC903", said, op.origin.place(op.name), HINT)
            yield f"NCC903 {op.origin.place(op.name)}: {said} ({HINT})"
