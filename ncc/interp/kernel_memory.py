"""Memory of the NKI interpreter: the bytes of buffers, and the strided views that accesses are.

A buffer's bytes are made when an op first touches it and go when no later op does. On-chip buffers
whose chosen addresses overlap lie in one array, so that reusing an address means what it does on
the machine. Fresh floats are NaN and fresh integers 4. An access is one numpy view; where its start
is read at run time it is a window that can be laid anywhere. No element is visited by itself.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from ncc import numerics
from ncc.errors import NccError
from ncc.interp.kernel_lives import last_uses
from ncc.ir.data import DTYPES, FLOATS, numpy_type
from ncc.ir.kernel import Access, Buffer, Imm, Kernel, Reg, Rows
from ncc.ir.kernel import Scalar as Start
from ncc.ir.kernel_axes import block_size, start_of
from ncc.ir.kernel_starts import CLAMP, outside

Array = NDArray[Any]
Registers = Mapping[str, Any]
UNSET = 4  # what a fresh integer holds
# Types that are only moved here, as what holds their bits
_RAW = {
    "bool": "uint8",
    "float8_e8m0fnu": "uint8",
    "float4_e2m1fn_x4": "uint16",
    "float8_e4m3fn_x4": "uint32",
    "float8_e5m2_x4": "uint32",
    "float32r": "float32",
    "tfloat32": "float32",
}
_KINDS: dict[str, np.dtype[Any]] = {name: numpy_type(name) for name in DTYPES}
_KINDS.update({name: numpy_type(held) for name, held in _RAW.items()})


def kind_of(dtype: str) -> np.dtype[Any]:
    """The numpy type that holds a dtype."""
    found = _KINDS.get(dtype)
    if found is None:
        raise NccError("NCC282", f"has no arithmetic for {dtype}")
    return found


def held_as(dtype: str) -> str:
    """The dtype whose rules a dtype follows here."""
    return _RAW.get(dtype, dtype)


def fresh(dtype: str) -> Array:
    """One element of memory that nothing wrote: for floats the NaN of ones only, as compiled."""
    kind = kind_of(dtype)
    if held_as(dtype) in FLOATS:
        return np.frombuffer(b"\xff" * kind.itemsize, kind)
    return np.array([UNSET]).astype(kind)


@attrs.define(eq=False)
class Cells:
    """The bytes of one buffer: from byte `start` of `raw`, partitions `pitch` apart."""

    buffer: Buffer
    raw: NDArray[np.uint8]
    start: int = 0
    pitch: int = 0  # 0: one run of bytes
    views: dict[int, Array] = attrs.field(factory=dict[int, Array])

    @property
    def row(self) -> int:
        """Bytes of one partition."""
        return prod(self.buffer.shape[1:]) * kind_of(self.buffer.dtype).itemsize

    def array(self) -> Array:
        """All of it, in the buffer's shape."""
        kind, shape = kind_of(self.buffer.dtype), self.buffer.shape
        if not self.pitch:
            return np.ndarray(shape, kind, self.raw)
        inner = [kind.itemsize * prod(shape[i + 1 :]) for i in range(1, len(shape))]
        return np.ndarray(shape, kind, self.raw, self.start, (self.pitch, *inner))

    def fixed(self, access: Access) -> Array:
        """The view of an access that does not move."""
        found = self.views.get(id(access))
        if found is None:
            found = self.views[id(access)] = self.at(access, access.offset)
        return found

    def at(self, access: Access, offset: int) -> Array:
        """The view from element `offset` on."""
        kind = kind_of(access.dtype)
        size = kind.itemsize
        shape = tuple([num for _, num in access.pairs])
        if self.pitch:
            row = self.row // size
            top, inside = divmod(offset, row)
            byte = self.start + top * self.pitch + inside * size
            down = access.pairs[0][0] // row * self.pitch
            steps = [down, *[step * size for step, _ in access.pairs[1:]]]
        else:
            byte, steps = offset * size, [step * size for step, _ in access.pairs]
        try:
            return np.ndarray(shape, kind, self.raw, byte, steps)
        except (ValueError, TypeError):
            raise self.outside(access, offset) from None

    def window(self, access: Access, dims: int, low: int) -> Array:
        """Views of all but the first `dims` pairs at every start there is, as one array."""
        kind = kind_of(access.dtype)
        if self.pitch:
            raise NccError("NCC282", f"reads rows of {self.buffer.name}, which is not in HBM")
        pairs = access.pairs[dims:]
        reach = sum(abs(step) * (num - 1) for step, num in pairs)
        count = self.raw.size // kind.itemsize - reach
        shape = (count, *[num for _, num in pairs])
        steps = (kind.itemsize, *[step * kind.itemsize for step, _ in pairs])
        return np.ndarray(shape, kind, self.raw, -low * kind.itemsize, steps)

    def outside(self, access: Access, offset: int) -> NccError:
        """The error of an access that leaves the buffer."""
        name, total = self.buffer.name, self.raw.size // kind_of(access.dtype).itemsize
        low, high = reach(access.pairs)
        said = (
            f"touches elements {offset + low} to {offset + high} of {name}, which has "
            f"{total if not self.pitch else prod(self.buffer.shape)}"
        )
        return NccError("NCC280", said, hint="keep the access inside the tensor")


def bad_start(buffer: Buffer, access: Access, move: Start, value: int) -> NccError:
    """The error of a start, read at run time, that puts an access outside of its buffer."""
    if 0 <= value < move.limit:
        said = (
            f"index {value} puts the access {list(access.shape)} across the end of {buffer.name}, "
            f"whose shape is {list(buffer.shape)}"
        )
    else:
        said = outside(buffer, access.dtype, move.scale, value, move.limit)
    return NccError("NCC280", said, hint=CLAMP)


def reach(pairs: Iterable[tuple[int, int]]) -> tuple[int, int]:
    """First and last element of a walk, from its start."""
    low = high = 0
    for step, num in pairs:
        span = step * (num - 1)
        low, high = low + min(span, 0), high + max(span, 0)
    return low, high


@attrs.define(eq=False)
class Moved:
    """An access with one start a row: the first `dims` pairs are given by `starts`."""

    window: Array
    starts: NDArray[np.int64]
    ok: NDArray[np.bool_] | None  # which rows are inside; None: all
    shape: tuple[int, ...]

    def get(self) -> Array:
        return self.window[self.starts].reshape(self.shape)

    def put(self, values: Array, keep: NDArray[np.bool_] | None = None) -> None:
        """Write rows that are inside; of those, elements where `keep` says so."""
        rows = values.reshape(len(self.starts), *self.window.shape[1:])
        starts = self.starts
        if keep is not None:
            rows = np.where(keep.reshape(rows.shape), rows, self.window[starts])
        if self.ok is not None:
            rows, starts = rows[self.ok], starts[self.ok]
        self.window[starts] = rows

    def mask(self) -> NDArray[np.bool_] | None:
        """Which elements are inside, in the shape of the access."""
        if self.ok is None:
            return None
        inner = self.window.shape[1:]
        wide = self.ok.reshape(-1, *[1] * len(inner))
        return np.broadcast_to(wide, (len(self.ok), *inner)).reshape(self.shape)


class Memory:
    """What one core sees: its own buffers and those that all cores share."""

    def __init__(self, kernel: Kernel, shared: dict[str, Cells], inputs: Mapping[str, Array]):
        self.buffers = {b.name: b for b in kernel.buffers}
        self.cells: dict[str, Cells] = {}
        self.shared, self.inputs = shared, inputs
        self.params = frozenset(kernel.params)
        kept = {access.buffer for access in kernel.results} | self.params
        self.last = last_uses(kernel, kept)
        self.pinned = _pinned(kernel.buffers)
        self.turns: dict[str, int] = {}  # of the axes that are running
        self.own: dict[str, list[str]] = {}  # of each axis: what its turns have anew
        for b in kernel.buffers:
            if b.axis:
                self.own.setdefault(b.axis, []).append(b.name)

    def turn(self, axis: str, number: int) -> None:
        """A turn of an axis begins."""
        self.turns[axis] = number
        for name in self.own.get(axis, ()):
            self.cells.pop(name, None)

    def start(self, access: Access) -> int:
        """The element of its buffer where an access begins now, moves left aside."""
        found = start_of(access, self.turns) if access.terms else access.offset
        buffer = self.buffers[access.buffer]
        if buffer.blocks and buffer.address is not None:
            found %= block_size(buffer, access.dtype)  # they all lie there
        return found

    def of(self, name: str) -> Cells:
        found = self.cells.get(name)
        if found is None:
            found = self.cells[name] = self._made(self.buffers[name])
        return found

    def _made(self, buffer: Buffer) -> Cells:
        if buffer.memory == "shared_hbm" or buffer.name in self.params:
            if buffer.name not in self.shared:
                self.shared[buffer.name] = self._own(buffer)
            return Cells(buffer, self.shared[buffer.name].raw)
        if buffer.name in self.pinned:
            raw, start, pitch = self.pinned[buffer.name]
            made = Cells(buffer, raw, start, pitch)
            if buffer.data is not None:
                made.array()[...] = buffer.data.array()
            return made
        return self._own(buffer)

    def _own(self, buffer: Buffer) -> Cells:
        size, kind = prod(buffer.whole), kind_of(buffer.dtype)
        if buffer.name in self.inputs and (buffer.name in self.params or buffer.kind == "input"):
            given = np.asarray(self.inputs[buffer.name])
            if given.size != size:
                said = f"takes {size} elements as {buffer.name} and was given {given.size}"
                raise NccError("NCC282", said, buffer.origin.place(buffer.name))
            flat = np.array(numerics.cast(given, held_as(buffer.dtype))).reshape(-1)
        elif buffer.data is not None:
            flat = np.array(buffer.data.array()).reshape(-1)
        else:
            flat = np.full(size, fresh(buffer.dtype)[0], kind)
        return Cells(buffer, np.ascontiguousarray(flat).view(np.uint8))

    def forget(self, number: int) -> None:
        """After statement `number` of the body: buffers that no later one touches."""
        for name in self.last.get(number, ()):
            self.cells.pop(name, None)

    # --- accesses ---------------------------------------------------------------------------------

    def view(self, access: Access, registers: Registers) -> Array | Moved:
        """An access at hand."""
        if not access.moves:
            cells = self.of(access.buffer)
            if access.terms or cells.buffer.blocks:
                return cells.at(access, self.start(access))
            return cells.fixed(access)
        found = self.moved(access, registers, skip=False)
        assert found is not None
        return found

    def moved(self, access: Access, registers: Registers, skip: bool) -> Array | Moved | None:
        """The same; None when a run-time start puts it outside and the caller skips that."""
        cells, offset = self.of(access.buffer), self.start(access)
        rows: Rows | None = None
        for move in access.moves:
            if isinstance(move, Start):
                value = self.value(move.source, registers)
                offset += move.scale * value
                if not self._inside(cells, access, offset, value, move.limit):
                    if skip:
                        return None
                    raise bad_start(cells.buffer, access, move, value)
            else:
                rows = move
        if rows is None:
            return cells.at(access, offset)
        return self._rows(cells, access, offset, rows, registers, skip)

    def _inside(self, cells: Cells, access: Access, offset: int, value: int, limit: int) -> bool:
        if value < 0:
            return False
        if any(isinstance(m, Rows) for m in access.moves):
            return True  # the rows say
        low, high = reach(access.pairs)
        if not cells.buffer.on_chip:
            total = prod(cells.buffer.whole) * kind_of(cells.buffer.dtype).itemsize
            size = kind_of(access.dtype).itemsize
            return offset + low >= 0 and (offset + high + 1) * size <= total
        row = cells.row // kind_of(access.dtype).itemsize
        low, high = reach(access.pairs[1:])
        return value < max(limit, 1) and offset % row + low >= 0 and offset % row + high < row

    def _rows(
        self,
        cells: Cells,
        access: Access,
        offset: int,
        rows: Rows,
        registers: Registers,
        skip: bool,
    ) -> Moved:
        index = self.read(rows.source, registers).astype(np.int64)
        dims, index = _listed(index, access)
        low, high = reach(access.pairs[dims:])
        starts = offset + rows.scale * index
        size = kind_of(access.dtype).itemsize
        end = cells.raw.size // size
        ok = (index >= 0) & (starts + low >= 0) & (starts + high < end)
        window = cells.window(access, dims, low) if end > high - low else None
        if bool(ok.all()) and window is not None:
            return Moved(window, starts + low, None, access.shape)
        if not skip or window is None:
            bad = int(np.flatnonzero(~ok)[0])
            value = int(index[bad])
            said = (
                f"row {bad} has index {value}, outside the {rows.limit} that "
                f"{cells.buffer.name} has in the indexed dimension"
            )
            raise NccError("NCC280", said, hint=CLAMP)
        return Moved(window, np.where(ok, starts + low, 0), ok, access.shape)

    def value(self, source: Reg | Access | Imm, registers: Registers) -> int:
        """The integer that a run-time start is."""
        if isinstance(source, Reg):
            return int(registers.get(source.name, 0))
        if isinstance(source, Imm):
            return int(source.value)
        return int(self.read(source, registers).reshape(-1)[0])

    def read(self, access: Access, registers: Registers) -> Array:
        """The elements of an access; a view where it is one."""
        found = self.view(access, registers)
        return found.get() if isinstance(found, Moved) else np.asarray(found)


def _listed(index: NDArray[np.int64], access: Access) -> tuple[int, NDArray[np.int64]]:
    """How many pairs of an access the indices give, and the indices in order: one a row, column by
    column where they stand in several columns; or one for each of the first two pairs."""
    count = access.pairs[0][1]
    if index.size != count and len(access.pairs) > 1 and index.size == count * access.pairs[1][1]:
        return 2, index.reshape(-1)
    return 1, (index.T if index.ndim == 2 else index).reshape(-1)[:count]


def _pinned(buffers: tuple[Buffer, ...]) -> dict[str, tuple[NDArray[np.uint8], int, int]]:
    """(bytes, start, pitch) of the buffers whose chosen addresses overlap another's."""
    found: dict[str, tuple[NDArray[np.uint8], int, int]] = {}
    for memory in ("sbuf", "psum"):
        placed = [b for b in buffers if b.memory == memory and b.address is not None and b.shape]
        for group in _overlapping(placed):
            low = min(_box(b)[2] for b in group)
            high = max(_box(b)[3] for b in group)
            top = min(_box(b)[0] for b in group)
            end = max(_box(b)[1] for b in group)
            pitch = -(-(high - low) // 64) * 64 + 64
            raw = np.full((end - top) * pitch, 0xFF, np.uint8)
            for b in group:
                start = (_box(b)[0] - top) * pitch + _box(b)[2] - low
                found[b.name] = raw, start, pitch
                Cells(b, raw, start, pitch).array()[...] = fresh(b.dtype)[0]
    return found


def _box(b: Buffer) -> tuple[int, int, int, int]:
    """First and end partition, first and end byte."""
    assert b.address is not None
    top, left = b.address
    return top, top + b.shape[0], left, left + prod(b.shape[1:]) * kind_of(b.dtype).itemsize


def _overlapping(placed: list[Buffer]) -> list[list[Buffer]]:
    """Buffers whose columns meet, in groups of at least two."""
    groups: list[list[Buffer]] = []
    end = -1
    for b in sorted(placed, key=lambda b: _box(b)[2]):
        box = _box(b)
        if box[2] >= end:
            groups.append([])
        groups[-1].append(b)
        end = max(end, box[3])
    return [g for g in groups if len(g) > 1 or g[0].axis or g[0].blocks]
