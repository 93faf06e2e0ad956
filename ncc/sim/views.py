"""Access patterns as strided numpy views on the machine's bytes: no element is walked in Python.

A view knows its bytes (`array`), their marks, the cells of PSUM behind them, and its `Box`, which
is what the race check compares.
"""

from __future__ import annotations

import attrs
import numpy as np
from numpy.typing import NDArray

from ncc.errors import NccError
from ncc.ir.data import numpy_type, size_of
from ncc.ir.isa import At, Dram
from ncc.sim.memory import SBUF_PITCH, Array, Marks, Memory, Space

COLUMN = 11  # the race check cuts a memory into columns of 2 KiB ...
BAND = 7  # ... and bands of 128 rows
Dims = tuple[tuple[int, int], ...]


@attrs.define(eq=False)
class Box:
    """The rectangle of rows and bytes that an access touches, and the runs inside it.

    `solid`: every byte of the rectangle is touched. `runs` are the (step, num) pairs of the starts
    of runs of `run` bytes from `base`, in bytes of a space whose rows lie `pitch` apart.
    """

    space: str
    columns: tuple[tuple[int, int, int], ...]
    rows: tuple[int, int]
    low: int
    high: int
    solid: bool
    base: int
    runs: Dims
    run: int

    def __str__(self) -> str:
        first, last = self.rows
        row = f" row {first}" if last - first == 1 else f" rows {first} to {last - 1}"
        return f"{self.space}{row} bytes {self.low} to {self.high - 1}"


def overlap(a: Box, b: Box) -> bool:
    """Whether two boxes whose rectangles meet really touch a common byte."""
    if a.solid and b.solid:
        return True
    first, second = _starts(a), _starts(b)
    from_ = np.searchsorted(second, first - b.run, side="right")
    to = np.searchsorted(second, first + a.run, side="left")
    return bool((to > from_).any())


def _starts(box: Box) -> NDArray[np.int64]:
    """The sorted first bytes of a box's runs."""
    found = np.array([box.base], np.int64)
    for step, num in box.runs:
        found = np.add.outer(found, np.arange(num, dtype=np.int64) * step).reshape(-1)
    return np.unique(found)


@attrs.define(eq=False)
class View:
    """A pattern on a space: `array` has its rows first, then the walk, slowest axis first."""

    space: Space
    array: Array
    offset: int  # of the first element, in the space's buffer
    box: Box
    written_at: int = 0  # the epoch in which all of it was last found written
    _marks: Marks | None = None
    _cells: NDArray[np.uint8] | None = None

    def marks(self) -> Marks:
        """The written marks, one axis more than `array`: the bytes of an element."""
        if self._marks is None:
            known = self.space.known
            shape = (*self.array.shape, self.array.itemsize)
            if known is None:
                self._marks = np.ones(shape, np.bool_)
            else:
                strides = (*self.array.strides, 1)
                self._marks = np.ndarray(shape, np.bool_, known, self.offset, strides)
        return self._marks

    def cells(self) -> NDArray[np.uint8]:
        """States of the PSUM cells behind the elements; a copy where elements are narrow."""
        if self._cells is not None:
            return self._cells
        states = self.space.states
        assert states is not None
        shape, strides = self.array.shape, self.array.strides
        if self.array.itemsize == 4:
            fourth = tuple(s // 4 for s in strides)
            self._cells = np.ndarray(shape, np.uint8, states, self.offset // 4, fourth)
            return self._cells
        at = np.full((), self.offset, np.int64)
        for num, stride in zip(shape, strides, strict=True):
            at = np.add.outer(at, np.arange(num, dtype=np.int64) * stride)
        return states[at // 4]

    def written(self, mem: Memory) -> bool:
        """Whether every byte of the view was written."""
        if self.space.known is None or self.written_at == mem.epoch:
            return True
        if bool(self.marks().all()):
            self.written_at = mem.epoch
            return True
        return False

    def element_marks(self) -> Marks:
        return np.logical_and.reduce(self.marks(), axis=-1)

    def mark(self, mem: Memory, known: Marks | None = None) -> None:
        """Marks what was just stored: all of it, or where `known` says so."""
        if known is None or bool(known.all()):
            if self.written_at != mem.epoch:
                self.marks()[...] = True
                self.written_at = mem.epoch
            return
        self.marks()[...] = fit(known, self.array.shape)[..., None]
        mem.taint()


def fit(x: Array, shape: tuple[int, ...]) -> Array:
    """`x` in another shape with equally many elements a row."""
    return x if x.shape == shape else x.reshape(shape)


def start(at: At, rows: int) -> None:
    """NCC906 for a start partition that no engine can reach (ISA reference, L4)."""
    legal = at.partition % 32 == 0 if rows <= 32 else at.partition % 64 == 0
    if rows > 64:
        legal = at.partition == 0
    if not legal:
        raise NccError(
            "NCC906",
            f"{rows} partitions cannot start at partition {at.partition}",
            hint="33 to 64 start at 0 or 64, more only at 0, others at 0, 32, 64 or 96",
        )


def view(mem: Memory, at: At, rows: int, dtype: str) -> View:
    """The view of a tensor descriptor on `rows` partitions."""
    key = (at.space, at.partition, at.byte, at.dims, rows, dtype)
    found = mem.views.get(key)
    if found is None:
        found = mem.views[key] = _view(mem, at, rows, dtype)
    return found


def _view(mem: Memory, at: At, rows: int, dtype: str) -> View:
    if at.space not in ("sb", "psum"):
        raise NccError("NCC900", f"address {at.byte:#010x} is neither in SBUF nor in PSUM")
    if any(num < 1 for _, num in at.dims):
        raise NccError("NCC912", "a pattern has a dimension of no element")
    start(at, rows)
    space = mem.sbuf if at.space == "sb" else mem.psum
    size = size_of(dtype)
    dims = merged(tuple((step * size, num) for step, num in reversed(at.dims)))
    low, high = reach(dims, size)
    if at.byte + low < 0 or at.byte + high > space.width or at.partition + rows > space.rows:
        raise NccError(
            "NCC905",
            f"touches partitions {at.partition} to {at.partition + rows - 1}, bytes "
            f"{at.byte + low} to {at.byte + high - 1}, of {space.rows} partitions of "
            f"{space.width} bytes in {at.space}",
        )
    space.show((at.partition, at.partition + rows), at.byte + low, at.byte + high)
    offset = at.partition * space.stride + at.byte
    array = strided(space, offset, ((space.stride, rows), *dims), dtype)
    box = Box(
        space.name,
        columns(space.key, at.partition, at.partition + rows, at.byte + low, at.byte + high),
        (at.partition, at.partition + rows),
        at.byte + low,
        at.byte + high,
        dense(dims, size),
        at.partition * SBUF_PITCH + at.byte,
        ((SBUF_PITCH, rows), *dims),
        size,
    )
    return View(space, array, offset, box)


def strided(space: Space, offset: int, dims: Dims, dtype: str) -> Array:
    """A numpy view from (stride in bytes, num) pairs, slowest first."""
    shape, strides = tuple(n for _, n in dims), tuple(s for s, _ in dims)
    return np.ndarray(shape, numpy_type(dtype), space.data, offset, strides)


def merged(dims: Dims) -> Dims:
    """The same walk, slowest first, without axes of one step and with contiguous axes joined."""
    out: list[tuple[int, int]] = []
    for step, num in dims:
        if num == 1:
            continue
        if out and out[-1][0] == step * num:
            out[-1] = (step, out[-1][1] * num)
        else:
            out.append((step, num))
    return tuple(out)


def reach(dims: Dims, size: int) -> tuple[int, int]:
    """First byte and end of a walk, from its start."""
    low = sum(step * (num - 1) for step, num in dims if step < 0)
    high = sum(step * (num - 1) for step, num in dims if step > 0)
    return low, high + size


def dense(dims: Dims, size: int) -> bool:
    """Whether a walk leaves no byte out between its first and its last."""
    span = size
    for step, num in sorted((abs(s), n) for s, n in dims):
        if step > span:
            return False
        span += step * (num - 1)
    return True


def columns(key: int, top: int, end: int, low: int, high: int) -> tuple[tuple[int, int, int], ...]:
    """The race check's drawers that a rectangle lies in."""
    bands = range(top >> BAND, (end - 1 >> BAND) + 1)
    cuts = range(low >> COLUMN, (high - 1 >> COLUMN) + 1)
    return tuple((key, band, cut) for band in bands for cut in cuts)


def dma_view(
    mem: Memory,
    address: Dram | At,
    walk: Dims,
    dtype: str,
) -> View:
    """The view of one side of a DMA: (step in bytes, num) pairs, slowest first, to the element.

    On chip a step of 0x40000 walks partitions; a run never leaves its partition.
    """
    key = (address, walk, dtype)
    found = mem.views.get(key)
    if found is None:
        if isinstance(address, Dram):
            found = _dram_view(mem, address, walk, dtype)
        else:
            found = _chip_view(mem, address, walk, dtype)
        mem.views[key] = found
    return found


def _dram_view(mem: Memory, address: Dram, walk: Dims, dtype: str) -> View:
    space = mem.variable(address.var)
    size = size_of(dtype)
    low, high = reach(walk, size)
    if address.byte + low < 0 or address.byte + high > space.width:
        raise NccError(
            "NCC905",
            f"touches bytes {address.byte + low} to {address.byte + high - 1} of variable "
            f"{space.name}, which has {space.width}",
        )
    offset = space.start + address.byte
    array = strided(space, offset, walk, dtype)
    return View(space, array, offset, _dram_box(space, address.byte, walk, size))


def _dram_box(space: Space, byte: int, walk: Dims, size: int) -> Box:
    base, pitch = space.start + byte, space.pitch
    low, high = reach(walk, size)
    low, high = base + low, base + high
    top, end = low // pitch, (high - 1) // pitch + 1
    inner = tuple((s, n) for s, n in walk if s % pitch)
    down = tuple((s, n) for s, n in walk if not s % pitch and n > 1)
    from_, to = reach(inner, size)
    left, right = base + from_, base + to
    if left // pitch == (right - 1) // pitch:  # every row has the same bytes
        left, right = left % pitch, (right - 1) % pitch + 1
        solid = dense(inner, size) and dense(down, pitch)
    else:
        left, right = (0, pitch) if end - top > 1 else (low % pitch, (high - 1) % pitch + 1)
        solid = False
    cut = columns(space.key, top, end, left, right)
    runs, run = joined(walk, size)
    return Box(space.name, cut, (top, end), left, right, solid, base, runs, run)


def joined(walk: Dims, size: int) -> tuple[Dims, int]:
    """A walk whose contiguous innermost axes have become one run."""
    dims, run = list(merged(walk)), size
    while dims and dims[-1][0] == run:
        run *= dims.pop()[1]
    return tuple(dims), run


def _chip_view(mem: Memory, at: At, walk: Dims, dtype: str) -> View:
    if at.space != "sb":
        raise NccError("NCC913", "a DMA does not reach PSUM", hint="copy to SBUF first")
    space, size = mem.sbuf, size_of(dtype)
    split = tuple((*_partitions(step), num) for step, num in walk)
    rows = tuple((p, n) for p, _, n in split)
    inside = tuple((b, n) for _, b, n in split)
    top, end = reach(rows, 1)
    low, high = reach(inside, size)
    if (
        at.byte + low < 0
        or at.byte + high > space.width
        or at.partition + top < 0
        or at.partition + end > space.rows
    ):
        raise NccError(
            "NCC905",
            f"touches partitions {at.partition + top} to {at.partition + end - 1}, bytes "
            f"{at.byte + low} to {at.byte + high - 1}, of {space.rows} partitions of "
            f"{space.width} bytes in sb",
        )
    space.show((at.partition + top, at.partition + end), at.byte + low, at.byte + high)
    offset = at.partition * space.stride + at.byte
    strides = tuple((p * space.stride + b, n) for p, b, n in split)
    array = strided(space, offset, strides, dtype)
    first, last = at.partition + top, at.partition + end
    solid = all(not p or not b for p, b, _ in split) and dense(rows, 1) and dense(inside, size)
    box = Box(
        space.name,
        columns(space.key, first, last, at.byte + low, at.byte + high),
        (first, last),
        at.byte + low,
        at.byte + high,
        solid,
        at.partition * SBUF_PITCH + at.byte,
        *joined(walk, size),
    )
    return View(space, array, offset, box)


def _partitions(step: int) -> tuple[int, int]:
    """A step of an SBUF address as partitions and bytes inside one."""
    rows = (step + SBUF_PITCH // 2) // SBUF_PITCH
    return rows, step - rows * SBUF_PITCH


def window(mem: Memory, partition: int, rows: int, bank: int, bytes_: int) -> View:
    """A whole PSUM bank on the partitions of a column group: what a START clears."""
    key = ("window", partition, rows, bank, bytes_)
    found = mem.views.get(key)
    if found is None:
        at = At("psum", partition, bank * bytes_, ((1, bytes_ // 4),))
        found = mem.views[key] = _view(mem, at, rows, "float32")
    return found
