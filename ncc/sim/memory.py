"""Byte-addressed memories that know which of their bytes were written.

SBUF and PSUM have 128 rows (partitions), a DRAM variable has one. Fresh bytes are 0xFF and carry a
mark, unwritten, that travels with the data (hardware reference 12.2, rule 13). A PSUM cell also has
one of five states (ISA reference 5.2).

The marks cost nothing where they say nothing: a view that was once found written stays so until
somewhere in the machine unwritten data is stored again, which a counter (`epoch`) tells.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from math import prod
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from ncc.errors import NccError
from ncc.ir.data import size_of
from ncc.ir.isa import Var
from ncc.target import Target

Array = NDArray[Any]
Marks = NDArray[np.bool_]

UNWRITTEN, ZEROED, OPEN, CLOSED, FOREIGN = range(5)
STATES = ("unwritten", "zeroed", "open", "closed", "foreign")
SBUF_PITCH = 1 << 18  # address bytes from one partition to the next, in a bundle
PSUM_BYTES = 16384
OWN, SHARED = 16, 1 << 20  # steps between the keys of one core and the next, and of shared memory
BAND, COLUMN = 32, 2048  # rows and bytes of a block that becomes fresh at once
NOTHING = np.zeros(0, np.uint8)
PAD = 64  # keeps equal offsets of the partitions out of one cache set


@attrs.define(eq=False)
class Space:
    """One memory: `rows` of `width` bytes that lie `stride` apart, and as many marks.

    `known` is None where everything is written: inputs and constants, which are read only.
    """

    name: str
    key: int  # of the race check: 0 SBUF, -1 PSUM, -2 the scratchpad, else the variable's id;
    # below 0 for what cores share, and for what is a second core's own
    rows: int
    width: int
    stride: int
    start: int  # of the space in its buffer
    data: NDArray[np.uint8]  # the buffer
    known: Marks | None
    states: NDArray[np.uint8] | None = None  # PSUM: one for each 4 bytes
    pitch: int = 0  # DRAM: bytes of a row, as the race check cuts a variable
    blank: set[tuple[int, int]] | None = None  # blocks that no view has shown yet: band, column

    def show(self, rows: tuple[int, int], low: int, high: int) -> None:
        """Makes blocks fresh that a first view shows: 0xFF, unwritten.

        To fill 24 MB and as many marks before a run takes longer than most programs.
        """
        if not self.blank or self.known is None:
            return
        for column in range(low // COLUMN, (high - 1) // COLUMN + 1):
            for band in range(rows[0] // BAND, (rows[1] - 1) // BAND + 1):
                if (band, column) in self.blank:
                    self.blank.remove((band, column))
                    down = slice(band * BAND, (band + 1) * BAND)
                    along = slice(column * COLUMN, (column + 1) * COLUMN)
                    self.data.reshape(self.rows, self.stride)[down, along] = 0xFF
                    self.known.reshape(self.rows, self.stride)[down, along] = False

    def array(self) -> NDArray[np.uint8]:
        """The bytes of the first row."""
        return self.data[self.start : self.start + self.width]


@attrs.define(eq=False)
class Memory:
    """All memories of one core, and the views that were made on them."""

    target: Target
    sbuf: Space
    psum: Space
    dram: dict[int, Space]
    epoch: int = 1  # rises when unwritten marks are stored
    views: dict[Any, Any] = attrs.field(factory=dict[Any, Any])
    last: dict[int, tuple[Any, int]] = attrs.field(factory=dict[int, tuple[Any, int]])
    # by PSUM bank: the view that PE wrote last, and the state of all its cells; none otherwise
    peers: tuple[Memory, ...] = ()  # of the other cores

    def taint(self) -> None:
        """Unwritten marks were stored, maybe where other cores see them."""
        self.epoch += 1
        for other in self.peers:
            other.epoch += 1

    def release(self) -> None:
        """Lets go of the bytes, and of every view of them."""
        self.views.clear()
        self.last.clear()
        self.peers = ()
        for space in (self.sbuf, self.psum, *self.dram.values()):
            space.data = NOTHING
            space.known = space.states = None

    def variable(self, var: int) -> Space:
        """The variable with this id; NCC905 for an id that none has."""
        found = self.dram.get(var)
        if found is None:
            raise NccError("NCC905", f"no DRAM variable has the id {var}")
        return found


def memory(
    target: Target, variables: Iterable[Var], contents: Mapping[int, bytes], core: int = 0
) -> Memory:
    """Memories at the start of a run; `contents` are the bytes of inputs and constants by id."""
    table = tuple(variables)
    rows = target.partitions
    own = -OWN * core
    sbuf = _blank("sb", own, rows, target.sbuf_size)
    psum = _blank("ps", own - 1, rows, PSUM_BYTES)
    psum.states = np.zeros(rows * psum.stride // 4, np.uint8)
    scratch = max((v.offset + _size(v) for v in table if v.kind == "virtual"), default=0)
    pad = _fresh("scratch", own - 2, 1, scratch)
    dram: dict[int, Space] = {}
    for v in table:
        size, pitch = _size(v), _pitch(v)
        if v.id in contents:
            raw = np.frombuffer(contents[v.id], np.uint8)
            dram[v.id] = Space(v.name, v.id, 1, size, size, 0, raw, None, None, pitch)
        elif v.kind == "virtual":
            dram[v.id] = attrs.evolve(pad, name=v.name, width=size, start=v.offset, pitch=pitch)
        else:
            key = v.id if v.kind == "output" else -SHARED - v.id
            dram[v.id] = attrs.evolve(_fresh(v.name, key, 1, size), pitch=pitch)
    return Memory(target, sbuf, psum, dram)


def share(memories: Sequence[Memory], tables: Sequence[tuple[Var, ...]]) -> None:
    """Let the variables that cores know together be one: inputs, outputs and shared ones, by name.
    One that only a later core knows keeps its place, under a key that nobody else has."""
    known: dict[str, Space] = {}
    for core, (mem, table) in enumerate(zip(memories, tables, strict=True)):
        for v in table:
            if v.kind in ("file", "virtual"):
                continue
            mine = mem.dram[v.id]
            mine.key -= SHARED * core if mine.key < 0 else 0
            mem.dram[v.id] = known.setdefault(v.name, mine)
        mem.peers = tuple(other for other in memories if other is not mem)


def _fresh(name: str, key: int, rows: int, width: int) -> Space:
    stride = width + PAD
    data = np.full(rows * stride, 0xFF, np.uint8)
    return Space(name, key, rows, width, stride, 0, data, np.zeros(rows * stride, np.bool_))


def _blank(name: str, key: int, rows: int, width: int) -> Space:
    """A memory on chip: its blocks become fresh when a view first shows them."""
    stride = width + PAD
    data, known = np.empty(rows * stride, np.uint8), np.empty(rows * stride, np.bool_)
    bands, columns = range(-(-rows // BAND)), range(-(-width // COLUMN))
    return Space(name, key, rows, width, stride, 0, data, known, blank=set(product(bands, columns)))


def _size(v: Var) -> int:
    return size_of(v.dtype) * prod(v.shape)


def _pitch(v: Var) -> int:
    """Bytes of a row of the tensor; rows that are short are taken together."""
    row = size_of(v.dtype) * (v.shape[-1] if v.shape else 1)
    return row if row >= 512 and v.kind != "virtual" else 16384
