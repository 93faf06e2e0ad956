"""One engine: its stream, its registers, what it knows, and how its bundles touch memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs
import numpy as np

from ncc import numerics
from ncc.encode.codes import dtype_of
from ncc.encode.values import at as address_of
from ncc.encode.values import bits_f32
from ncc.errors import NccError
from ncc.ir.data import numpy_type, size_of
from ncc.ir.isa import At, Bundle
from ncc.sim.memory import CLOSED, FOREIGN, OPEN, STATES, ZEROED, Array, Marks, Memory
from ncc.sim.race import ENGINES, UNITS, Race
from ncc.sim.views import View, fit, view

REGISTERS = 64
Fields = dict[str, Any]


@attrs.define(eq=False)
class Flight:
    """A DMA that was issued: how its data moves, and what its completion raises."""

    move: Callable[[], None]
    semaphore: int
    amount: int
    clock: tuple[int, ...]  # of its trigger
    by: str
    moved: bool = False


@attrs.define(eq=False)
class Engine:
    """The state of one in-order engine."""

    name: str
    number: int  # wire order
    bundles: tuple[Bundle, ...]
    mem: Memory
    race: Race
    warn: Callable[[str], None]
    label: str = attrs.field(default=attrs.Factory(lambda self: self.name, takes_self=True))
    core: int = 0
    unit: int = attrs.field(
        default=attrs.Factory(lambda self: UNITS * self.core + self.number, takes_self=True)
    )  # in clocks
    came: int = 0  # at a barrier: how often it has come to it, this time included
    pc: int = 0
    done: int = 0  # bundles completed
    by: str = ""  # the bundle that runs, as messages name it
    clock: list[int] = attrs.field(factory=lambda: [0] * UNITS)
    ended: bool = False
    registers: list[int] = attrs.field(factory=lambda: [0xFFFFFFFF] * REGISTERS)
    register_known: list[bool] = attrs.field(factory=lambda: [False] * REGISTERS)
    issued: int = 0  # DMAs
    flights: list[Flight] = attrs.field(factory=list[Flight])
    table_set: int = -1  # of ACT
    sums: Array = attrs.field(factory=lambda: np.zeros(128, np.float32))  # ACT's, DVE's accumulator
    sums_known: Marks = attrs.field(factory=lambda: np.zeros(128, np.bool_))
    lanes: bytes = b""  # DVE's shuffle mask
    searched: tuple[Array, Marks | None] | None = None  # DVE's eight values
    table: View | None = None  # Pool's, of a Gather
    generators: Array | None = None  # of random numbers
    call: dict[str, Any] = attrs.field(factory=dict[str, Any])  # Pool's library call
    room: dict[tuple[int, ...], tuple[Array, Array, Array]] = attrs.field(
        factory=dict[tuple[int, ...], tuple[Array, Array, Array]]
    )  # PE's working memory
    weights: dict[tuple[int, int], Any] = attrs.field(factory=dict[tuple[int, int], Any])
    # PE's tiles, by row and column group

    @property
    def queue(self) -> int:
        """The unit of this engine's direct queue."""
        return ENGINES + self.unit

    # --- operands ---------------------------------------------------------------------------------

    def dtype(self, tag: int) -> str:
        """The dtype that a wire tag means here; NCC912 for a tag that is none."""
        try:
            found = dtype_of(tag, self.mem.target)
        except KeyError:
            raise NccError("NCC912", f"{tag:#04x} is no dtype tag") from None
        return "float32" if found == "float32r" else found

    def source(self, at: At, rows: int, dtype: str) -> View:
        """A tensor operand that this bundle reads: checked, and known to the race check."""
        if rows < 1:
            raise NccError("NCC912", "runs on no partition")
        found = view(self.mem, at, rows, dtype)
        if at.space == "psum":
            if self.name == "Pool":
                raise NccError("NCC913", "Pool does not reach PSUM")
            self._may_read(found)
        box = found.box
        self.race.access(box, False, self.clock, self.unit, self.done + 1, self.by)
        return found

    def _may_read(self, found: View) -> None:
        last, state = self.mem.last.get(found.box.low // self.mem.target.psum_bank_bytes, (None, 0))
        if last is found and state == CLOSED:
            return
        cells = found.cells()
        bad = (cells == ZEROED) | (cells == OPEN)
        if bad.any():
            state = STATES[int(cells[bad][0])]
            raise NccError(
                "NCC907",
                f"reads {found.box}, where a PSUM cell is {state}",
                hint="a group may be read after its matmul with STOP",
            )

    def marks(self, *sources: View) -> Marks | None:
        """Which elements, counted a row, come from written bytes only; None when all do."""
        found: Marks | None = None
        for one in sources:
            if not one.written(self.mem):
                known = one.element_marks().reshape(one.array.shape[0], -1)
                found = known if found is None else found & known
        return found

    def target(self, at: At, rows: int, dtype: str) -> View:
        """A tensor operand that this bundle writes."""
        if rows < 1:
            raise NccError("NCC912", "runs on no partition")
        found = view(self.mem, at, rows, dtype)
        if at.space == "psum":
            if self.name == "Pool":
                raise NccError("NCC913", "Pool does not reach PSUM")
            if size_of(dtype) != 4:
                raise NccError("NCC913", f"writes {dtype} to PSUM, whose cells take 4 bytes")
        return found

    def write(self, to: View, values: Array, known: Marks | None = None) -> None:
        """Stores values of the destination's own type."""
        self.race.access(to.box, True, self.clock, self.unit, self.done + 1, self.by)
        array = to.array
        array[...] = fit(values, array.shape)
        to.mark(self.mem, known)
        if to.space.states is not None:
            to.cells()[...] = FOREIGN
            self.mem.last.clear()

    def put(self, to: View, values: Array, dtype: str, known: Marks | None = None) -> None:
        """Rounds to the destination's type and stores."""
        self.write(to, numerics.cast(values, dtype), known)

    def scalar(self, raw: int, how: int, rows: int, dtype: str = "float32") -> Scalar:
        """An immediate: from the bundle (0), a column in memory (1) or a register (2)."""
        if how == 1:
            column = self.source(address_of(raw), rows, dtype)
            known = None if column.written(self.mem) else column.element_marks().reshape(rows, 1)
            return Scalar(column.array.reshape(rows, 1), known)
        if how == 2:
            return Scalar(_typed(self.register(raw), dtype), None)
        return Scalar(_typed(raw, dtype), None)

    def register(self, number: int) -> int:
        """A register's 32 bits; NCC903 for one that was never written."""
        if not 0 <= number < REGISTERS:
            raise NccError("NCC919", f"there is no register {number}")
        if not self.register_known[number]:
            raise NccError("NCC903", f"register {number} is read before it was written")
        return self.registers[number]

    def set_register(self, number: int, value: int) -> None:
        if not 0 <= number < REGISTERS:
            raise NccError("NCC919", f"there is no register {number}")
        self.registers[number] = value & 0xFFFFFFFF
        self.register_known[number] = True


@attrs.frozen(eq=False)
class Scalar:
    """One value, or a column of one a row, and which rows of it were written."""

    value: Array
    known: Marks | None


def _typed(bits: int, dtype: str) -> Array:
    if dtype == "float32":
        return np.asarray(bits_f32(bits), np.float32)
    raw = np.array([bits & 0xFFFFFFFF], np.uint64).view(numpy_type(dtype))
    return raw[0]


def flat(x: Array) -> Array:
    """The elements of an operand a row, in the order of its walk."""
    return x if x.ndim == 2 else x.reshape(x.shape[0], -1)


def together(*views: View) -> list[Array]:
    """Operands of equally many elements in one shape; NCC912 when the counts differ."""
    shapes = {v.array.shape for v in views}
    if len(shapes) == 1:
        return [v.array for v in views]
    counts = [v.array.size // v.array.shape[0] for v in views]
    if len(set(counts)) > 1:
        words = ", ".join(map(str, counts))
        raise NccError("NCC912", f"the patterns hold {words} elements, which must be equal")
    return [flat(v.array) for v in views]
