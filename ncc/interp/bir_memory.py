"""Memory for the BIR interpreter: bytes, their shadow, and the strided views that operands are.

A location that is not placed has bytes of its own; a placed one lies in the one flat memory of its
space (SBUF and PSUM by partition, scratch DRAM), so that a wrong address shows as a wrong value.
Fresh bytes are 0xFF, and a shadow bit a byte says whether anything was written; the bit travels
with the data. No element is ever visited by itself: an operand is one numpy view.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from ncc.errors import NccError
from ncc.ir.affine import at
from ncc.ir.bir import SHARED, Ap, Inst, Loc, LocSet, Operand, SymAp, Tile
from ncc.ir.bir_patterns import block_number, block_of, loc_shape, walk
from ncc.ir.data import numpy_type, size_of
from ncc.target import Target

Array = NDArray[Any]
Bits = NDArray[np.bool_]
Env = Mapping[str, int]
# kinds whose DRAM is a variable of its own
OWN = {"ExternalInput", "ExternalOutput", "Const", SHARED}


@attrs.define
class Place:
    """Where one location lies: byte `start` of `data`, partitions `pitch` bytes apart."""

    name: str
    memory: str
    data: NDArray[np.uint8]
    shadow: Bits
    start: int
    pitch: int
    rows: int
    width: int  # bytes per partition
    base: int = 0
    addr: int = 0
    placed: bool = False
    full: bool = False  # every byte is known to be written
    cells: NDArray[np.uint8] | None = None  # of PSUM: the states of 4-byte cells


@attrs.define
class Slot:
    """One operand at hand: its elements, the shadow of their bytes, and its location."""

    values: Array
    shadow: Bits
    place: Place
    covers: bool  # it walks every byte of the location
    dtype: str
    offset: int  # elements from the location's start
    down: int = 1  # how many of its dimensions walk partitions (or, in DRAM, stand for it)

    def matrix(self) -> Array:
        """The elements as partitions × the rest."""
        return self.values.reshape(prod(self.values.shape[: self.down]), -1)

    def bits(self) -> Bits:
        """Whether each element was written, as partitions × the rest."""
        return every(self.shadow).reshape(prod(self.values.shape[: self.down]), -1)


def every(bits: Bits, axis: int | tuple[int, ...] = -1) -> Bits:
    """Whether all bits along `axis` are set."""
    return np.logical_and.reduce(bits, axis=axis)


def fresh(size: int) -> tuple[NDArray[np.uint8], Bits]:
    return np.full(size, 0xFF, np.uint8), np.zeros(size, np.bool_)


class Memory:
    """All locations of one function."""

    def __init__(self, sets: tuple[LocSet, ...], target: Target) -> None:
        self.sets = {of.name: of for of in sets}
        self.places: dict[str, Place] = {}
        self.tainted = False  # a byte that nothing wrote was copied somewhere
        self.seen: dict[int, Slot] = {}
        self.walks: dict[int, Any] = {}
        self.blocks: dict[str, Any] = {}
        self.spaces = self._spaces(sets, target)
        for of in sets:
            if not of.locs:
                self.places[of.name] = self._own(
                    of.name, of.memory, 1, prod(of.shape) * size_of(of.dtype)
                )
            for loc in of.locs:
                self.places[loc.name] = self._place(of, loc)
            if of.data is not None:
                self.fill(of, of.data.array())

    def _spaces(self, sets: tuple[LocSet, ...], target: Target) -> dict[str, Any]:
        """The flat memories, as large as placed locations need: (bytes, shadow, pitch, cells)."""
        width = {"SB": 0, "PSUM": target.psum_banks * target.psum_bank_bytes, "DRAM": 0}
        shared = [loc for of in sets for loc in of.locs if not _alone(of, loc)]
        for loc in shared:
            width[loc.type] = max(width[loc.type], loc.addr + loc.dims[1])
        found: dict[str, Any] = {}
        for memory in sorted({loc.type for loc in shared}):
            rows = 1 if memory == "DRAM" else target.partitions
            data, shadow = fresh(rows * width[memory])
            cells = np.zeros(rows * width[memory] // 4, np.uint8) if memory == "PSUM" else None
            found[memory] = data, shadow, width[memory], cells
        return found

    def _own(self, name: str, memory: str, rows: int, width: int) -> Place:
        data, shadow = fresh(rows * width)
        cells = np.zeros(rows * width // 4, np.uint8) if memory == "PSUM" else None
        return Place(name, memory, data, shadow, 0, width, rows, width, cells=cells)

    def _place(self, of: LocSet, loc: Loc) -> Place:
        rows, width = loc.dims
        if _alone(of, loc):
            return self._own(loc.name, loc.type, rows, width)
        data, shadow, pitch, cells = self.spaces[loc.type]
        start = loc.base * pitch + loc.addr
        return Place(
            loc.name,
            loc.type,
            data,
            shadow,
            start,
            pitch,
            rows,
            width,
            loc.base,
            loc.addr,
            True,
            cells=cells,
        )

    # ---- whole tensors --------------------------------------------------------------------------

    def whole(self, of: LocSet) -> tuple[Array, Bits]:
        """A set's values and shadow, copied out of its locations, in the shape of the set."""
        kind, size = numpy_type(of.dtype), size_of(of.dtype)
        parts = [self.places[loc.name] for loc in of.locs] or [self.places[of.name]]
        values = [_rows(p, p.data).tobytes() for p in parts]
        shadow = [_rows(p, p.shadow).reshape(-1, size).all(-1) for p in parts]
        array = np.frombuffer(b"".join(values), kind).reshape(of.shape)
        return array, np.concatenate(shadow).reshape(of.shape)

    def fill(self, of: LocSet, array: Array) -> None:
        """Write a whole set: an input or a constant."""
        raw = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        parts = [self.places[loc.name] for loc in of.locs] or [self.places[of.name]]
        for place, piece in zip(parts, np.split(raw, len(parts)), strict=True):
            _rows(place, place.data)[...] = piece.reshape(place.rows, place.width)
            _rows(place, place.shadow)[...] = True
            place.full = True

    # ---- operands -------------------------------------------------------------------------------

    def slot(self, operand: Operand, env: Env, inst: Inst) -> Slot:
        """The view that an operand is in this iteration."""
        if type(operand) is Ap:
            found = self.seen.get(id(operand))
            if found is None:
                place = self.places[operand.loc]
                found = self._view(place, operand.dtype, operand.ap, operand.offset, inst)
                self.seen[id(operand)] = found
            return found
        if isinstance(operand, SymAp):
            of = self.sets[operand.set]
            number = self._number(of, operand.block, env, inst)
            pairs = tuple((step, at(num, env)) for step, num in operand.ap)
            place = self.places[of.locs[number].name]
            return self._view(place, operand.dtype, pairs, operand.offset.at(env), inst)
        if isinstance(operand, Tile):
            return self._tile(operand, env, inst)
        raise NccError(
            "NCC433", f"{inst.name} has no value in {operand}", inst.origin.place(inst.name)
        )

    def window(self, loc: str, dtype: str, ap: Any, offset: int, inst: Inst) -> Slot:
        """The view of a pattern that is only known while the program runs."""
        return self._view(self.places[loc], dtype, ap, offset, inst)

    def _number(self, of: LocSet, block: Any, env: Env, inst: Inst) -> int:
        """Which location a block index chooses."""
        if of.name not in self.blocks:
            self.blocks[of.name] = block_number(of)
        try:
            return self.blocks[of.name](block, env)
        except ValueError as said:
            raise NccError("NCC432", f"wants {said}", inst.origin.place(inst.name)) from None

    def _tile(self, tile: Tile, env: Env, inst: Inst) -> Slot:
        of = self.sets[tile.set]
        found = self.walks.get(id(tile))
        if found is None:
            found = (*walk(of, tile), block_of(of, tile.index))
            self.walks[id(tile)] = found
        offset, steps, block = found
        start = offset.at(env)
        if block:
            start += self._number(of, block, env, inst) * prod(loc_shape(of))
        pairs = tuple((steps[name], at(extent, env)) for name, extent in (*tile.par, *tile.free))
        found = self._view(self.places[of.name], of.dtype, pairs, start, inst)
        found.down = len(tile.par)
        return found

    def _view(self, place: Place, dtype: str, ap: Any, offset: int, inst: Inst) -> Slot:
        size = size_of(dtype)
        row = place.width // size
        if place.memory == "DRAM" or place.rows == 1:
            byte, steps = place.start + offset * size, [step * size for step, _ in ap]
        else:
            partition, inside = divmod(offset, row)
            byte = place.start + partition * place.pitch + inside * size
            down = ap[0][0] // row * place.pitch if row else 0
            steps = [down, *[step * size for step, _ in ap[1:]]]
        shape = tuple([num for _, num in ap])
        try:
            values = np.ndarray(shape, numpy_type(dtype), place.data, byte, steps)
            shadow = np.ndarray((*shape, size), np.bool_, place.shadow, byte, (*steps, 1))
        except (ValueError, TypeError):
            said = f"{inst.name} reaches outside {place.name}: offset {offset}, {ap}"
            raise NccError("NCC432", said, inst.origin.place(inst.name)) from None
        covers = values.size * size == place.rows * place.width and _solid(ap)
        return Slot(values, shadow, place, covers, dtype, offset)

    # ---- shadows --------------------------------------------------------------------------------

    def known(self, slot: Slot) -> bool:
        """Whether something wrote every byte that the operand reads."""
        if slot.place.full and not self.tainted:
            return True
        return bool(slot.shadow.all())

    def wrote(self, slot: Slot, mask: Bits | None = None) -> None:
        """Mark what was written; where `mask` is false the data came from unwritten bytes."""
        if mask is not None:
            self.tainted = True
            slot.shadow[...] = mask[..., None]
            slot.place.full = False
        elif not slot.place.full or self.tainted:
            slot.shadow[...] = True
            if slot.covers:
                slot.place.full = True


def _own(of: LocSet) -> bool:
    return of.memory == "DRAM" and of.kind in OWN


def _alone(of: LocSet, loc: Loc) -> bool:
    """Whether a location has bytes of its own: no address yet, a boundary tensor, or the runtime's
    region, which no instruction addresses (at the top of SBUF it would make all 24 MB real)."""
    return not loc.allocated or _own(of) or loc.runtime_reserved


def _rows(place: Place, buffer: Array) -> Array:
    """The bytes of a location as partitions × bytes, in place."""
    shape, strides = (place.rows, place.width), (place.pitch, 1)
    return np.ndarray(shape, buffer.dtype, buffer, place.start, strides)


def _solid(ap: Any) -> bool:
    """No element twice."""
    return all(step > 0 or num == 1 for step, num in ap)
