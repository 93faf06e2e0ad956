"""From BIR operands to what a record holds of them: addresses, tensor descriptors, immediates.

The partition pair of an access goes into the start address and into a count of its own; the other
pairs fuse where one continues the next, and turn round: a record counts from the fastest.
"""

from __future__ import annotations

import struct
from typing import NamedTuple

from ncc.encode.codes import DTYPE
from ncc.encode.values import f32_bits, word_of
from ncc.errors import NccError
from ncc.ir.bir import Ap, Imm, Inst, Loc, LocSet, Operand
from ncc.ir.data import DTYPES, size_of
from ncc.ir.footprints import PSUM, SBUF, Rect
from ncc.ir.isa import At, Dram
from ncc.ir.walks import collapsed

NARROW = tuple(d for d in DTYPES if size_of(d) <= 4)
SPACES = {"SB": "sb", "PSUM": "psum"}


class Tensor(NamedTuple):
    """An operand on chip: its descriptor, how many partitions, its dtype's tag."""

    at: At
    channels: int
    tag: int
    elements: int


class Operands:
    """The operands of one module; patterns that come again are folded once."""

    def __init__(self, sets: tuple[LocSet, ...], variables: dict[str, tuple[int, int]]) -> None:
        self.owned: dict[str, tuple[LocSet, Loc]] = {}
        self.variables = variables  # of a DRAM location: variable id, and its place in it
        self._tensors: dict[Ap, Tensor] = {}
        for owner in sets:
            for loc in owner.locs:
                self.owned[loc.name] = (owner, loc)

    def loc(self, inst: Inst, ap: Ap) -> Loc:
        if ap.loc not in self.owned:
            said = f"touches {ap.loc}, which has no place"
            raise NccError("NCC606", said, inst.origin.place(inst.name))
        return self.owned[ap.loc][1]

    def on_chip(self, inst: Inst, ap: Ap) -> bool:
        return self.loc(inst, ap).type != "DRAM"

    def tensor(self, inst: Inst, operand: Operand) -> Tensor:
        """The descriptor of an access on chip."""
        if type(operand) is not Ap:
            said = f"has a {type(operand).__name__} where its record takes an access pattern"
            raise NccError("NCC606", said, inst.origin.place(inst.name))
        if found := self._tensors.get(operand):
            return found
        loc = self.loc(inst, operand)
        if loc.type == "DRAM":
            said = f"touches {operand.loc} in DRAM, where only a DMA reaches"
            raise NccError("NCC606", said, inst.origin.place(inst.name))
        start = self.address(loc, operand)
        dims = tuple(reversed(collapsed(operand.ap[1:])))
        elements = 1
        for _, num in dims:
            elements *= num
        at = At(start.space, start.partition, start.byte, dims)
        made = Tensor(at, operand.ap[0][1], DTYPE[operand.dtype], elements)
        self._tensors[operand] = made
        return made

    def unfused(self, inst: Inst, operand: Operand) -> At:
        """The descriptor whose dimensions are the pairs as they are: a reduction counts them."""
        found = self.tensor(inst, operand).at
        pairs = operand.ap[1:] if type(operand) is Ap else ()
        return At(found.space, found.partition, found.byte, tuple(reversed(pairs)))

    def address(self, loc: Loc, ap: Ap) -> At:
        """Where an access on chip starts."""
        partition, byte = divmod(ap.offset * size_of(ap.dtype), loc.dims[1])
        return At(SPACES[loc.type], loc.base + partition, loc.addr + byte)

    def dma(self, inst: Inst, ap: Ap) -> At | Dram:
        """Where one side of a DMA starts."""
        loc = self.loc(inst, ap)
        if loc.type != "DRAM":
            return self.address(loc, ap)
        var, base = self.variables[loc.name]
        return Dram(var, base + ap.offset * size_of(ap.dtype))

    def rect(self, operand: Operand) -> Rect:
        """The bytes of an access on chip, as a rectangle."""
        assert isinstance(operand, Ap)
        loc = self.owned[operand.loc][1]
        at = self.address(loc, operand)
        size = size_of(operand.dtype)
        walk = [(step * size, num) for step, num in operand.ap[1:]]
        low = at.byte + sum(min(0, step * (num - 1)) for step, num in walk)
        high = at.byte + sum(max(0, step * (num - 1)) for step, num in walk) + size
        plane = SBUF if loc.type == "SB" else PSUM
        return Rect(plane, at.partition, at.partition + operand.ap[0][1], low, high)

    def scalar(
        self, inst: Inst, operand: Operand, dtypes: tuple[str, ...] = ("float32",)
    ) -> tuple[int, bool]:
        """A per-partition scalar: 32 bits, and whether they are the address of a column."""
        if isinstance(operand, Imm):
            return number_bits(operand.value), False
        if isinstance(operand, Ap) and operand.dtype in dtypes:
            loc = self.loc(inst, operand)
            if loc.type in SPACES:
                return word_of(self.address(loc, operand)), True
        said = f"takes a scalar that is no {' or '.join(dtypes)} column on chip and no immediate"
        raise NccError("NCC606", said, inst.origin.place(inst.name))

    def any_scalar(self, inst: Inst, operand: Operand) -> tuple[int, bool, int]:
        """The same of any dtype up to 4 bytes, with its tag: some records have a field for that."""
        word, pointed = self.scalar(inst, operand, NARROW)
        return word, pointed, DTYPE[dtype_of(operand)]


def dtype_of(operand: Operand) -> str:
    """The element type of an operand; float32 for what has none."""
    return operand.dtype if isinstance(operand, Ap) else "float32"


def number_bits(value: float | int) -> int:
    """The 32 bits of a scalar, which is fp32 for the arithmetic operations."""
    return f32_bits(float(value))


def raw_bits(value: float | int) -> int:
    """The 32 bits of a scalar of a bit operation: a whole number as it is."""
    if isinstance(value, int):
        return value & 0xFFFFFFFF
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def element_bits(value: float | int, dtype: str) -> int:
    """The bits of one element of a dtype, low-aligned in 32."""
    import numpy as np

    from ncc import numerics

    one = np.asarray([value]) if isinstance(value, int) else np.asarray([value], np.float32)
    return int.from_bytes(numerics.cast(one, dtype).tobytes(), "little")
