"""Encode and decode bundles by the rows of `ncc.encode.tables`.

Every row is compiled once: a `struct.Struct` for all bytes of its layout, and for each field where
its value stands among the struct's values and how bytes become a value and back.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import Any

import attrs

from ncc.encode import values as v
from ncc.encode.tables import EXTENSION, ROWS, Field, Row
from ncc.errors import NccError, Place, nearest
from ncc.ir.core import NOWHERE, Origin
from ncc.ir.isa import At, Band, Bundle

SIZE = 64
LENGTH = 0x10  # byte 01: sixteen 32-bit words
GENS = (2, 3)

Convert = Callable[[Any], Any]

LETTER = {"u16": "H", "u32": "I", "imm": "I", "i32": "i", "i64": "q", "u64": "Q", "size": "H"}
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
DEFAULT = {"nums": struct.pack("<HH", 1, 1)}
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


@attrs.frozen
class Codec:
    """A compiled row. The struct's first values are opcode, length and band (DA: the opcode)."""

    row: Row
    pattern: struct.Struct
    blank: tuple[Any, ...]  # the struct's values of a record with no fields
    slots: dict[str, tuple[int, Convert | None, int]]  # field -> position, writer, shift
    reads: tuple[tuple[str, int, Convert | None, int], ...]  # by name: position, reader, nibble
    needed: frozenset[str]
    free: int  # mask of the bits that no field covers, little-endian
    fixed: int  # what these bits must be
    banded: bool


@cache
def codec(mnemonic: str) -> Codec:
    """The compiled row of a mnemonic; KeyError for one that is none."""
    row = ROWS[mnemonic]
    banded = row is not EXTENSION
    form, at = ("<BBxx8s", 12) if banded else ("<B", 1)
    blank: list[Any] = [row.opcode, LENGTH, bytes(8)] if banded else [row.opcode]
    slots: dict[str, tuple[int, Convert | None, int]] = {}
    reads: list[tuple[str, int, Convert | None, int]] = []
    covered = ((1 << 96) - 1 ^ 0xFFFF << 16) if banded else 0xFF
    fixed = 0
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
        letter = LETTER.get(field.kind) or ("I" if field.kind == "A4" else "")
        letter = letter or (f"{field.width}s" if field.width > 1 else "B")
        form, at = f"{form}{field.at - at}x{letter}", field.at + field.width
        slots[field.name] = (len(blank), write_of(field), 0)
        nibble = 1 if field.kind == "lo" else 0
        reads.append((field.name, len(blank), read_of(field.kind), nibble))
        blank.append(bytes(field.width) if letter.endswith("s") else 0)
        if field.kind in DEFAULT:
            blank[-1] = DEFAULT[field.kind]
        covered |= (1 << 8 * field.width) - 1 << 8 * field.at
    return Codec(
        row,
        struct.Struct(f"{form}{SIZE - at}x"),
        tuple(blank),
        slots,
        tuple(sorted(reads)),
        frozenset(f.name for f in row.fields if f.kind in NEEDED),
        (1 << 8 * SIZE) - 1 & ~covered,
        fixed,
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


def fault(code: str, said: str, value: str, hint: str = "") -> NccError:
    return NccError(code, said, Place(value=value), hint)


def encode_bundle(bundle: Bundle, gen: int = 3) -> bytes:
    """The 64 bytes of a record. NCC741 and up for an opcode, field or value that has no bytes."""
    try:
        known = codec(bundle.op)
    except KeyError:
        said = f"no opcode is called {bundle.op!r}"
        raise fault("NCC741", said, "", nearest(bundle.op, ROWS)) from None
    words = list(known.blank)
    slots = known.slots
    missing = len(known.needed)
    try:
        for name, value in bundle.fields:
            at, write, shift = slots[name]
            if write is not None:
                words[at] = write(value)
                missing -= name in known.needed
            elif shift:
                words[at] |= value << shift
            else:
                words[at] |= value
        if known.banded:
            words[2] = v.band_bytes(bundle.band)
        elif bundle.band is not v.NO_BAND and bundle.band != v.NO_BAND:
            raise ValueError("an Extension has no event band")
        raw = known.pattern.pack(*words)
    except (KeyError, ValueError, TypeError, OverflowError, struct.error):
        raise unencodable(bundle, known) from None
    if missing or gen not in known.row.gens or _overflowed(bundle, known):
        raise unencodable(bundle, known, gen)
    return raw


def _overflowed(bundle: Bundle, known: Codec) -> bool:
    """Whether a nibble was given more than four bits: it would run into its neighbour."""
    return known.row.struct in _NIBBLED and any(
        not 0 <= value < 16 for name, value in bundle.fields if name in _nibbles(known.row.struct)
    )


_NIBBLED = frozenset(row.struct for row in ROWS.values() if any(f.kind == "lo" for f in row.fields))


@cache
def _nibbles(struct_name: str) -> frozenset[str]:
    row = next(r for r in ROWS.values() if r.struct == struct_name)
    return frozenset(f.name for f in row.fields if f.kind in ("lo", "hi"))


def unencodable(bundle: Bundle, known: Codec, gen: int = 0) -> NccError:
    """The sentence for a record that has no bytes: the first field that does not fit."""
    fields = {f.name: f for f in known.row.fields}
    if gen and gen not in known.row.gens:
        said = f"{bundle.op} is not an opcode of generation {gen}"
        return fault("NCC730", said, bundle.op, "choose a target that has it")
    seen: set[str] = set()
    for name, value in bundle.fields:
        if name not in fields:
            said = f"{bundle.op} has no field {name}"
            return fault("NCC742", said, bundle.op, nearest(name, fields))
        if name in seen:
            return fault("NCC742", f"{bundle.op} has the field {name} twice", bundle.op)
        seen.add(name)
        if why := misfit(fields[name], value):
            code, hint = misfit_code(fields[name].kind, why)
            return fault(code, f"{name}: {why}", bundle.op, hint)
    if lacking := sorted(known.needed - seen):
        return fault("NCC742", f"{bundle.op} lacks its field {lacking[0]}", bundle.op)
    band = bundle.band
    if not known.banded:
        return fault("NCC726", "an Extension has no event band", bundle.op)
    said = f"the event band {band.wait}, {band.update}, {band.value} does not fit its bytes"
    return fault("NCC726", said, bundle.op)


def misfit_code(kind: str, why: str) -> tuple[str, str]:
    """The rule that a misfit breaks, and what to do."""
    if kind.startswith("name"):
        return "NCC728", ""
    if why.startswith(("step", "num", "has ")) and kind[0] in "TD":
        return "NCC702", "split the pattern into two instructions"
    return ("NCC705" if why.startswith("partition") else "NCC743"), ""


def misfit(field: Field, value: Any) -> str:
    """Why a value has no bytes in a field, or ""."""
    if (write := write_of(field)) is not None:
        try:
            struct.pack(f"<{LETTER.get(field.kind, 'I')}", done) if isinstance(
                done := write(value), int
            ) else None
        except ValueError as wrong:
            return str(wrong)
        except (TypeError, AttributeError, OverflowError, struct.error):
            return f"{value!r} is not what a field of kind {field.kind} holds"
        return ""
    bits = 4 if field.kind in ("lo", "hi") else 8 * field.width
    low, high = (
        (-(1 << bits - 1), (1 << bits - 1) - 1)
        if field.kind[0] == "i" and field.kind[1:].isdecimal()
        else (0, (1 << bits) - 1)
    )
    if type(value) is not int:
        return f"{value!r} is not a number"
    return "" if low <= value <= high else f"{value} is outside {low}..{high}"


def decode_bundle(raw: bytes, gen: int = 3) -> Bundle:
    """The record of 64 bytes, strictly: what no field covers must be zero (NCC701)."""
    if len(raw) != SIZE:
        raise fault("NCC701", f"a bundle has {SIZE} bytes, and this has {len(raw)}", "")
    known = by_opcode(gen)[raw[0]]
    if known is None or (raw[0] == 0xDF and raw[12] != 1):
        known = _rare(raw, gen)
    words = known.pattern.unpack(raw)
    if int.from_bytes(raw, "little") & known.free or (known.banded and raw[1] != LENGTH):
        raise uncovered(raw, known)
    fields: list[tuple[str, Any]] = []
    try:
        for name, at, read, nibble in known.reads:
            value = words[at]
            if read is not None:
                if (value := read(value)) is not None:
                    fields.append((name, value))
            else:
                if nibble:
                    value = value & 15 if nibble == 1 else value >> 4
                if value:
                    fields.append((name, value))
    except ValueError as wrong:
        raise fault("NCC701", str(wrong), known.row.mnemonic) from None
    band = v.read_band(words[2]) if known.banded else v.NO_BAND
    return Bundle(known.row.mnemonic, tuple(fields), band)


def _rare(raw: bytes, gen: int) -> Codec:
    """The row of LibraryReload, or the sentence about an opcode that is none."""
    opcode = raw[0]
    if opcode == 0xDF and raw[12] == 2:
        return codec("LibraryReload")
    if opcode == 0xDF:
        said = f"byte 0C of opcode DF is {raw[12]}; 1 is Exit and 2 is LibraryReload"
        raise fault("NCC701", said, "Exit")
    later = [row for row in ROWS.values() if row.opcode == opcode]
    if later:
        said = f"opcode {opcode:02X} ({later[0].mnemonic}) is not one of generation {gen}"
        raise fault("NCC730", said, later[0].mnemonic, "choose a target that has it")
    raise fault("NCC701", f"byte 00 is {opcode:02X}, which is no opcode", "")


def uncovered(raw: bytes, known: Codec) -> NccError:
    """NCC701: the first byte that no field covers and that is not zero."""
    name = known.row.mnemonic
    if known.banded and raw[1] != LENGTH:
        return fault("NCC701", f"byte 01 is {raw[1]:02X} and must be 10, the length", name)
    for offset, byte in enumerate(raw):
        if byte & known.free >> 8 * offset & 0xFF:
            said = f"byte {offset:02X} is {byte:02X}, and no field of {name} is there"
            return fault("NCC701", said, name, "bytes outside the fields are zero")
    raise TypeError("every byte is covered")


def encode_stream(bundles: Iterable[Bundle], gen: int = 3) -> bytes:
    """The bytes of a stream, bundle after bundle."""
    return b"".join(encode_bundle(bundle, gen) for bundle in bundles)


def decode_stream(raw: bytes, gen: int = 3) -> tuple[Bundle, ...]:
    """The records of a stream; an error names the bundle's number. NCC740 for a cut bundle."""
    found: list[Bundle] = []
    try:
        for at in range(0, len(raw) - SIZE + 1, SIZE):
            found.append(decode_bundle(raw[at : at + SIZE], gen))
    except NccError as wrong:
        raise wrong.at(file="", value=f"bundle {len(found)}") from None
    if len(raw) % SIZE:
        said = f"the stream has {len(raw)} bytes; bundle {len(found)} is cut after {len(raw) % 64}"
        raise fault("NCC740", said, "", "a stream is a whole number of 64-byte bundles")
    for i, said in extension_faults(found):
        raise fault("NCC729", said, f"bundle {i}")
    return tuple(found)


def extension_faults(bundles: Iterable[Bundle]) -> Iterable[tuple[int, str]]:
    """Each place where a D4 and its extension do not stand together."""
    expected = False
    at = -1
    for at, bundle in enumerate(bundles):
        if bundle.op == "Extension":
            if not expected:
                yield at, "an Extension follows a DmaDirect2d with dge_op 1 to 3 and nothing else"
            expected = False
            continue
        if expected:
            yield at - 1, "a DmaDirect2d with dge_op 1 to 3 is followed by its Extension"
        expected = bundle.op == "DmaDirect2d" and any(n == "dge_op" for n, _ in bundle.fields)
    if expected:
        yield at, "a DmaDirect2d with dge_op 1 to 3 is followed by its Extension"


@cache
def _defaults(mnemonic: str) -> dict[str, Any]:
    """What each field is when a record leaves it out; fields without a default are not here."""
    found: dict[str, Any] = {}
    for field in ROWS[mnemonic].fields:
        if field.kind.startswith("name"):
            found[field.name] = ""
        elif field.kind.startswith("bytes"):
            found[field.name] = bytes(field.width)
        elif field.kind not in NEEDED:
            found[field.name] = {"steps": (0, 0), "nums": (1, 1)}.get(field.kind, 0)
    return found


def record(op: str, band: Band = v.NO_BAND, origin: Origin = NOWHERE, **fields: Any) -> Bundle:
    """A record as the decoder would give it: fields sorted, defaults and unused dimensions out."""
    default = _defaults(op)
    kept: list[tuple[str, Any]] = []
    for name, value in sorted(fields.items()):
        if default.get(name) == value:
            continue
        if type(value) is At and value.dims and value.dims[-1] == (1, 1):
            value = At(value.space, value.partition, value.byte, v.trimmed(value.dims))
        kept.append((name, value))
    return Bundle(op, tuple(kept), band, origin)
