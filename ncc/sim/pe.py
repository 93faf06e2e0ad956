"""The PE array: weights held by quadrant, products added to PSUM (ISA reference 5.1 to 5.3)."""

from __future__ import annotations

from functools import cache

import attrs
import numpy as np

from ncc import numerics
from ncc.encode.codes import GROUP
from ncc.errors import NccError
from ncc.ir.data import FLOATS
from ncc.ir.isa import At
from ncc.sim.engine import Engine, Fields
from ncc.sim.memory import CLOSED, FOREIGN, OPEN, STATES, UNWRITTEN, ZEROED, Array, Marks
from ncc.sim.views import View, fit, view, window

LOW, HIGH, BOTH = 1, 2, 3  # fp32_mode
FIRST, LAST = 1, 2  # bits of psum_flags: START and STOP


@attrs.define(eq=False)
class Tile:
    """Weights as loaded: rows × columns, in their own type."""

    values: Array
    known: Marks | None
    mode: int
    groups: tuple[int, int]
    dtype: str
    _wide: Array | None = None

    def wide(self, whole: bool) -> Array:
        """The float64 weights of this pass; all of an fp32 weight when `whole`."""
        if self._wide is None:
            values = self.values
            if self.dtype == "float32" and not whole:
                high, low = numerics.weight_halves(values)
                values = high if self.mode == HIGH else low
            self._wide = values.astype(np.float64)
        return self._wide


@cache
def _apart(one: tuple[int, int], two: tuple[int, int]) -> bool:
    """Whether two pairs of row and column groups share no quadrant of the array."""
    spans = [(GROUP[a], GROUP[b]) for a, b in zip(one, two, strict=True)]
    return any(a + m <= b or b + n <= a for (a, m), (b, n) in spans)


def _groups(f: Fields) -> tuple[int, int]:
    row, col = f.get("row_grp", 0), f.get("col_grp", 0)
    if row not in GROUP or col not in GROUP:
        said = f"row group {row:#x} and column group {col:#x} are not both legal"
        raise NccError("NCC909", said)
    return row, col


def _operand(e: Engine, at: At, f: Fields, rows: int) -> tuple[View, str]:
    """A source of PE: in SBUF, of a float type, on the partitions of its row group."""
    if at.space != "sb":
        raise NccError("NCC913", "PE reads from SBUF only")
    dtype = e.dtype(f.get("in_dtype", 0))
    mode = f.get("fp32_mode", 0)
    if dtype not in FLOATS:
        raise NccError("NCC912", f"PE does not multiply {dtype} here")
    if (dtype == "float32") != bool(mode):
        said = f"{dtype} with fp32_mode {mode}"
        raise NccError("NCC912", said, hint="fp32 has a mode, and no other type has one")
    top, size = GROUP.get(f.get("row_grp", 0), (-1, 0))
    if at.partition != top or rows > size:
        said = f"{rows} rows at partition {at.partition} are not row group {f.get('row_grp', 0):#x}"
        raise NccError("NCC909", said)
    return e.source(at, rows, dtype), dtype


def load_stationary(e: Engine, f: Fields) -> None:
    """W[k, m] := element m of partition k, held for the groups until replaced."""
    rows, cols = f.get("num_active_rows", 0), f.get("num_active_cols", 0)
    source, dtype = _operand(e, f["src"], f, rows)
    if source.array.size != rows * cols:
        raise NccError("NCC912", f"loads {source.array.size // rows} columns and names {cols}")
    groups = _groups(f)
    known = e.marks(source)
    tile = Tile(
        source.array.reshape(rows, cols).copy(), known, f.get("fp32_mode", 0), groups, dtype
    )
    if len(e.weights) > 1 or groups not in e.weights:  # an overlapping tile is gone
        e.weights = {g: t for g, t in e.weights.items() if _apart(g, groups)}
    e.weights[groups] = tile


def _weights(e: Engine, f: Fields) -> Tile:
    """The tile that the groups of a Matmul hold, whole."""
    tile: Tile | None = e.weights.get(_groups(f))
    if tile is None:
        raise NccError(
            "NCC909",
            "its row and column groups hold no weights of their own",
            hint="a LoadStationary of an overlapping group came between",
        )
    shape = (f.get("num_active_rows", 0), f.get("num_active_cols", 0))
    if tile.values.shape != shape:
        had = "{}×{}".format(*tile.values.shape)
        raise NccError("NCC909", f"names {shape[0]}×{shape[1]} weights, and {had} were loaded")
    return tile


def _destination(e: Engine, f: Fields, cols: int) -> View:
    at: At = f["dst"]
    if at.space != "psum":
        raise NccError("NCC913", "PE writes to PSUM only")
    left, size = GROUP[f.get("col_grp", 0)]
    if at.partition != left or cols > size:
        said = f"{cols} columns at partition {at.partition} are not column group "
        raise NccError("NCC909", f"{said}{f.get('col_grp', 0):#x}")
    to = view(e.mem, at, cols, "float32")
    bank = e.mem.target.psum_bank_bytes
    if to.box.low // bank != (to.box.high - 1) // bank:
        raise NccError("NCC905", f"the destination, {to.box}, is not inside one bank")
    return to


def matmul(e: Engine, f: Fields) -> None:
    """Adds Wᵀ · X to the destination, after START has cleared its window."""
    tile = _weights(e, f)
    rows, cols = tile.values.shape
    moving, dtype = _operand(e, f["moving"], f, rows)
    if (dtype == "float32") != (tile.dtype == "float32"):
        raise NccError("NCC912", f"multiplies {tile.dtype} weights with {dtype}")
    flags = f.get("psum_flags", 0)
    if flags > FIRST | LAST or f.get("out_dtype", 0):
        raise NccError("NCC900", f"psum_flags {flags} and out_dtype belong to a later generation")
    to = _destination(e, f, cols)
    count = moving.array.size // rows
    if to.array.size != cols * count or count > e.mem.target.moving_free:
        said = f"{count} moving elements for {to.array.size // cols} destination elements"
        raise NccError("NCC912", f"{said}; they are equal and at most 512")
    if f.get("transpose_mode", 0):
        _transpose(e, f, tile, moving, to)
        return
    whole = f.get("fp32_mode", 0) != BOTH
    x = moving.array.reshape(rows, count)
    result = fit(numerics.product(tile.wide(whole), x, _room(e, rows, cols, count)), to.array.shape)
    known = _known(e, tile, moving, to.array.shape)
    bank = to.box.low // e.mem.target.psum_bank_bytes
    view_, state = e.mem.last.get(bank, (None, UNWRITTEN))
    if flags & FIRST:
        _clear(e, f, to)
        state = ZEROED
        np.add(result, np.float32(0), out=to.array)
        to.mark(e.mem, known)
    else:
        e.race.access(to.box, True, e.clock, e.unit, e.done + 1, e.by)
        if view_ is not to:
            _may_add(e, to, to.cells())
            state = UNWRITTEN
        if known is not None or not to.written(e.mem):
            before = to.element_marks()
            known = before if known is None else known & before
        numerics.add_to(to.array, result)
        if known is not None:
            to.mark(e.mem, known)
    after = CLOSED if flags & LAST else OPEN
    if after != state:
        to.cells()[...] = after
    e.mem.last[bank] = (to, after)


def _room(e: Engine, rows: int, cols: int, count: int) -> tuple[Array, Array, Array]:
    """Memory for one product, kept from one Matmul to the next of its size."""
    key = (rows, cols, count)
    found = e.room.get(key)
    if found is None:
        found = (
            np.empty((rows, count)),
            np.empty((cols, count)),
            np.empty((cols, count), np.float32),
        )
        e.room[key] = found
    return found


def _known(e: Engine, tile: Tile, moving: View, shape: tuple[int, ...]) -> Marks | None:
    """Which sums come from written operands only."""
    x = e.marks(moving)
    if tile.known is None and x is None:
        return None
    w = np.ones(tile.values.shape, np.bool_) if tile.known is None else tile.known
    columns = np.ones((1, 1), np.bool_) if x is None else np.logical_and.reduce(x)[None, :]
    found = np.logical_and.reduce(w)[:, None] & columns
    return np.broadcast_to(found, (shape[0], int(np.prod(shape[1:])))).reshape(shape)


def _clear(e: Engine, f: Fields, to: View) -> None:
    """START: the bank on the partitions of the column group becomes zero."""
    left, size = GROUP[f.get("col_grp", 0)]
    bank = e.mem.target.psum_bank_bytes
    whole = window(e.mem, left, size, to.box.low // bank, bank)
    e.race.access(whole.box, True, e.clock, e.unit, e.done + 1, e.by)
    cells = whole.cells()
    if (cells == OPEN).any():
        raise NccError(
            "NCC907",
            f"its START clears {whole.box}, where a group is open",
            hint="the group needs STOP first; a second group of the bank has no START",
        )
    whole.array[...] = 0
    whole.mark(e.mem)
    cells[...] = ZEROED


def _may_add(e: Engine, to: View, cells: Array) -> None:
    worst, best = int(cells.min()), int(cells.max())
    if worst == UNWRITTEN:
        raise NccError(
            "NCC908",
            f"adds to {to.box}, where a PSUM cell is {STATES[UNWRITTEN]}",
            hint="the first matmul of a group has START",
        )
    if best == FOREIGN:
        e.warn(
            f"{e.by} adds to {to.box}, which an engine other than PE wrote: undefined before gen4"
        )


def _transpose(e: Engine, f: Fields, tile: Tile, moving: View, to: View) -> None:
    """Copies bits: element (k, m) of the data to cell (m, n), where column n of `moving` picks k.

    Two passes of fp32: the first writes the upper half of each cell, the second the lower.
    """
    e.race.access(to.box, True, e.clock, e.unit, e.done + 1, e.by)
    rows = tile.values.shape[0]
    if e.marks(moving) is not None:
        raise NccError("NCC903", "transposes by an identity that nobody wrote")
    picks = moving.array.reshape(rows, -1).astype(np.float32)
    if not ((picks == 1).sum(axis=0) == 1).all() or not ((picks != 0).sum(axis=0) == 1).all():
        raise NccError("NCC922", "its moving tile is not an identity")
    from_ = np.argmax(picks, axis=0)
    data = np.ascontiguousarray(numerics.widen(tile.values[from_].T))
    known = None if tile.known is None else tile.known[from_].T.reshape(to.array.shape)
    cells, flags = to.cells(), f.get("psum_flags", 0)
    second = tile.dtype == "float32" and tile.mode == LOW
    if bool((cells == OPEN).any()) != second or (second and not (cells == OPEN).all()):
        said = "its second half finds cells that its first half did not open"
        said = said if second else f"overwrites {to.box}, where a group is open"
        raise NccError("NCC907", said)
    bits = data.view(np.uint32)
    if tile.dtype == "float32":
        if second:
            before = np.ascontiguousarray(to.array).view(np.uint32).reshape(bits.shape)
            bits = before & np.uint32(0xFFFF0000) | bits & np.uint32(0xFFFF)
        else:
            bits = bits & np.uint32(0xFFFF0000)
    to.array[...] = fit(bits.view(np.float32), to.array.shape)
    to.mark(e.mem, known)
    cells[...] = CLOSED if flags & LAST else OPEN
    e.mem.last.clear()


EFFECTS = {"LoadStationary": load_stationary, "Matmul": matmul}
