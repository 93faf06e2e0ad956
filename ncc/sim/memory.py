"""Byte-addressed memories that know which of their bytes were written.

SBUF and PSUM have 128 rows (partitions), a DRAM variable has one. Fresh bytes are 0xFF and carry a
mark, unwritten, that travels with the data (hardware reference 12.2, rule 13). A PSUM cell also has
one of five states (ISA reference 5.2).

The marks cost nothing where they say nothing: a view that was once found written stays so until
somewhere in the machine unwritten data is stored again, which a counter (`epoch`) tells.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from ncc.errors import NccError
from ncc.ir.isa import Var
from ncc.target import Target

Array = NDArray[Any]
Marks = NDArray[np.bool_]

UNWRITTEN, ZEROED, OPEN, CLOSED, FOREIGN = range(5)
STATE = ("unwritten", "zeroed", "open", "closed", "foreign")
SBUF_PITCH = 1 << 18  # address bytes from one partition to the next, in a bundle
PSUM_BYTES = 16384
CELL = 4


@attrs.define(eq=False)
class Space:
    """One memory: `rows` × `width` bytes and as many marks."""

    name: str
    key: int  # of the race check: 0 SBUF, -1 PSUM, else the variable's id
    rows: int
    width: int
    data: NDArray[np.uint8]
    known: Marks
    states: NDArray[np.uint8] | None = None  # PSUM: one a cell
    read_only: bool = False
    pitch: int = 0  # DRAM: bytes of a row of the tensor, for the race check


@attrs.define(eq=False)
class Memory:
    """All memories of one core."""

    target: Target
    sbuf: Space
    psum: Space
    dram: dict[int, Space]
    vars: dict[int, Var]
    epoch: int = 1  # rises when unwritten marks are stored over a region

    def variable(self, var: int) -> Space:
        """The variable with this id; NCC905 for an id that none has."""
        found = self.dram.get(var)
        if found is None:
            raise NccError("NCC905", f"no DRAM variable has the id {var}")
        return found


def memory(target: Target, variables: Iterable[Var], sbuf_width: int) -> Memory:
    """Fresh memories. `sbuf_width` is how many bytes of a partition the program can touch."""
    width = max(64, -(-min(sbuf_width, target.sbuf_size) // 64) * 64)
    sbuf = _space("sb", 0, target.partitions, width)
    psum = _space("ps", -1, target.partitions, PSUM_BYTES)
    psum.states = np.zeros((target.partitions, PSUM_BYTES // CELL), np.uint8)
    table = {v.id: v for v in variables}
    scratch = max((v.offset + _size(v) for v in table.values() if v.kind == "virtual"), default=0)
    pad = _space("scratch", -2, 1, scratch)
    dram: dict[int, Space] = {}
    for v in table.values():
        size = _size(v)
        if v.kind == "virtual":
            part = slice(v.offset, v.offset + size)
            space = Space(v.name, -2, 1, size, pad.data[:, part], pad.known[:, part])
        else:
            space = _space(v.name, v.id, 1, size)
        space.pitch = _pitch(v)
        space.read_only = v.kind in ("input", "file")
        dram[v.id] = space
    return Memory(target, sbuf, psum, dram, table)


def _space(name: str, key: int, rows: int, width: int) -> Space:
    data = np.full((rows, width), 0xFF, np.uint8)
    return Space(name, key, rows, width, data, np.zeros((rows, width), np.bool_))


def _size(v: Var) -> int:
    from ncc.ir.data import size_of

    return size_of(v.dtype) * int(np.prod(v.shape, dtype=np.int64))


def _pitch(v: Var) -> int:
    """Bytes of a row of the tensor as the race check cuts it: rows that are too short are joined."""
    from ncc.ir.data import size_of

    row = size_of(v.dtype) * (v.shape[-1] if v.shape else 1)
    return row if row >= 512 and v.kind != "virtual" else 16384


def store(space: Space, raw: bytes) -> None:
    """Writes the whole of a variable, as the host does before the run."""
    space.data[0, : len(raw)] = np.frombuffer(raw, np.uint8)
    space.known[0, : len(raw)] = True
