"""Each row of `ncc.encode.tables` compiled once: how its bytes become values, and back.

A compiled row has one `struct.Struct` for all its bytes, and for each field where its value stands
among the struct's values and which function converts it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from functools import cache, partial
from typing import Any

import attrs

from ncc.encode import values as v
from ncc.encode.tables import EXTENSION, ROWS, Field, Row

SIZE = 64
LENGTH = 0x10  # byte 01: sixteen 32-bit words

Convert = Callable[[Any], Any]

# of a struct; other kinds of one byte are B, other wider ones are that many bytes
LETTER = {
    "u16": "H",
    "u32": "I",
    "imm": "I",
    "i32": "i",
    "i64": "q",
    "u64": "Q",
    "size": "H",
    "A4": "I",
}
READ: dict[str, Convert] = {
    "T1D": v.read_tensor,
    "T2D": v.read_tensor,
    "T3D": v.read_tensor,
    "T4D": v.read_tensor,
    "A4": v.at,
    "D4D": v.read_data,
    "A8": v.read_addr8,
    "steps": v.read_steps,
    "nums": v.read_nums,
    "size": v.read_size,
}
WRITE: dict[str, Convert] = {
    "T1D": partial(v.tensor_bytes, n=1),
    "T2D": partial(v.tensor_bytes, n=2),
    "T3D": partial(v.tensor_bytes, n=3),
    "T4D": partial(v.tensor_bytes, n=4),
    "A4": v.word_of,
    "D4D": v.data_bytes,
    "A8": v.addr8_bytes,
    "steps": v.steps_bytes,
    "nums": v.nums_bytes,
    "size": v.size_word,
}
# What a field must have in a record: kinds without a default.
NEEDED = frozenset({"T1D", "T2D", "T3D", "T4D", "A4", "D4D", "A8", "size"})


def read_of(kind: str) -> Convert | None:
    """How the struct's value of this kind becomes a field's; None: as it is, left out when 0."""
    if kind.startswith("name"):
        return v.read_name
    return v.read_raw if kind.startswith("bytes") else READ.get(kind)


def write_of(field: Field) -> Convert | None:
    if field.kind.startswith("name"):
        return partial(v.name_bytes, size=field.width)
    if field.kind.startswith("bytes"):
        return partial(v.raw_bytes, size=field.width)
    return WRITE.get(field.kind)


def default_word(field: Field, letter: str) -> Any:
    """The struct's value of a field that a record leaves out."""
    if field.kind == "nums":
        return struct.pack("<HH", 1, 1)
    return bytes(field.width) if letter.endswith("s") else 0


@attrs.frozen
class Codec:
    """A compiled row. The struct's first values are opcode, length and band (DA: the opcode)."""

    row: Row
    pattern: struct.Struct
    blank: tuple[Any, ...]  # the values of a record with no fields; None where one is needed
    slots: dict[str, tuple[int, Convert | None, int | None]]  # position, writer, nibble's shift
    reads: tuple[tuple[str, int, Convert | None, int], ...]  # by name: position, reader, nibble
    needed: frozenset[str]
    free: int  # mask of the bits that no field covers, little-endian
    banded: bool


@cache
def codec(mnemonic: str) -> Codec:
    """The compiled row of a mnemonic; KeyError for one that is none."""
    row = ROWS[mnemonic]
    banded = row is not EXTENSION
    form, at = ("<BBxx8s", 12) if banded else ("<B", 1)
    blank: list[Any] = [row.opcode, LENGTH, bytes(8)] if banded else [row.opcode]
    slots: dict[str, tuple[int, Convert | None, int | None]] = {}
    reads: list[tuple[str, int, Convert | None, int]] = []
    covered = ((1 << 96) - 1 ^ 0xFFFF << 16) if banded else 0xFF
    if row.fixed:
        offset, byte = row.fixed
        form, at = f"{form}{offset - at}xB", offset + 1
        blank.append(byte)
        covered |= 0xFF << 8 * offset
    for field in row.fields:
        if field.kind == "hi":  # shares the byte of the lo before it
            slots[field.name] = (len(blank) - 1, None, 4)
            reads.append((field.name, len(blank) - 1, None, 2))
            continue
        letter = LETTER.get(field.kind) or (f"{field.width}s" if field.width > 1 else "B")
        form, at = f"{form}{field.at - at}x{letter}", field.at + field.width
        nibble = int(field.kind == "lo")
        slots[field.name] = (len(blank), write_of(field), 0 if nibble else None)
        reads.append((field.name, len(blank), read_of(field.kind), nibble))
        blank.append(None if field.kind in NEEDED else default_word(field, letter))
        covered |= (1 << 8 * field.width) - 1 << 8 * field.at
    return Codec(
        row,
        struct.Struct(f"{form}{SIZE - at}x"),
        tuple(blank),
        slots,
        tuple(sorted(reads)),
        frozenset(f.name for f in row.fields if f.kind in NEEDED),
        (1 << 8 * SIZE) - 1 & ~covered,
        banded,
    )


@cache
def by_opcode(gen: int) -> tuple[Codec | None, ...]:
    """For each byte 00, the row of a generation; DF's rows are told apart by byte 0C."""
    found: list[Codec | None] = [None] * 256
    for row in ROWS.values():
        if gen in row.gens and row.mnemonic != "LibraryReload":
            found[row.opcode] = codec(row.mnemonic)
    return tuple(found)
