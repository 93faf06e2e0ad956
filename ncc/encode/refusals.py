"""The sentences about records that have no bytes, and about bytes that are no record."""

from __future__ import annotations

import struct
from typing import Any

from ncc.encode.codec import LENGTH, Codec, write_of
from ncc.encode.tables import ROWS, Field
from ncc.errors import NccError, Place, nearest
from ncc.ir.isa import Bundle


def fault(code: str, said: str, value: str, hint: str = "") -> NccError:
    return NccError(code, said, Place(value=value), hint)


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
    write = write_of(field)
    if write is None:
        low, high = bounds(field)
        if type(value) is not int:
            return f"{value!r} is not a number"
        return "" if low <= value <= high else f"{value} is outside {low}..{high}"
    try:
        write(value)
    except ValueError as wrong:
        return str(wrong)
    except (TypeError, AttributeError, OverflowError, struct.error):
        return f"{value!r} is not what a field of kind {field.kind} holds"
    return ""


def bounds(field: Field) -> tuple[int, int]:
    """The least and the greatest number of a field."""
    bits = 4 if field.kind in ("lo", "hi") else 8 * field.width
    if field.kind in ("i32", "i64"):
        return -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    return 0, (1 << bits) - 1


def no_opcode(raw: bytes, gen: int) -> NccError:
    """Byte 00 is no opcode, or not one of this generation; or byte 0C of a DF is wrong."""
    opcode = raw[0]
    if opcode == 0xDF:
        said = f"byte 0C of opcode DF is {raw[12]}; 1 is Exit and 2 is LibraryReload"
        return fault("NCC701", said, "Exit")
    later = [row for row in ROWS.values() if row.opcode == opcode]
    if later:
        said = f"opcode {opcode:02X} ({later[0].mnemonic}) is not one of generation {gen}"
        return fault("NCC730", said, later[0].mnemonic, "choose a target that has it")
    return fault("NCC701", f"byte 00 is {opcode:02X}, which is no opcode", "")


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
