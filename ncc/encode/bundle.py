"""Encode and decode bundles and streams, by the compiled rows of the table."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import cache, lru_cache
from typing import Any

from ncc.encode import values as v
from ncc.encode.codec import LENGTH, NEEDED, SIZE, by_opcode, codec
from ncc.encode.refusals import fault, no_opcode, uncovered, unencodable
from ncc.encode.tables import EXTENSION, ROWS
from ncc.errors import NccError, nearest
from ncc.ir.core import NOWHERE, Origin
from ncc.ir.isa import At, Band, Bundle

PSEUDO = 0xDF  # the opcode that Exit and LibraryReload share
NO_BAND = bytes(8)


def encode_bundle(bundle: Bundle, gen: int = 3) -> bytes:
    """The 64 bytes of a record. NCC741 and up for an opcode, field or value that has no bytes."""
    try:
        known = codec(bundle.op)
    except KeyError:
        said = f"no opcode is called {bundle.op!r}"
        raise fault("NCC741", said, "", nearest(bundle.op, ROWS)) from None
    words = list(known.blank)
    slots = known.slots
    try:
        for name, value in bundle.fields:
            at, write, shift = slots[name]
            if write is not None:
                words[at] = write(value)
            elif shift is None:
                words[at] = value
            elif 0 <= value < 16:
                words[at] |= value << shift
            else:
                raise ValueError
        if known.banded:
            words[2] = v.band_bytes(bundle.band)
        elif bundle.band is not v.NO_BAND and bundle.band != v.NO_BAND:
            raise ValueError
        if gen not in known.row.gens:
            raise ValueError
        return known.pattern.pack(*words)
    except (KeyError, ValueError, TypeError, OverflowError, struct.error):
        raise unencodable(bundle, known, gen) from None


def decode_bundle(raw: bytes, gen: int = 3) -> Bundle:
    """The record of 64 bytes, strictly: what no field covers must be zero (NCC701)."""
    if len(raw) != SIZE:
        raise fault("NCC701", f"a bundle has {SIZE} bytes, and this has {len(raw)}", "")
    if raw[0] == EXTENSION.opcode:
        op, fields = decode_fields(raw, gen)
        return Bundle(op, fields, v.NO_BAND)
    op, fields = decode_fields(raw[:4] + NO_BAND + raw[12:], gen)
    return Bundle(op, fields, v.read_band(raw[4:12]))


@lru_cache(maxsize=1 << 14)
def decode_fields(raw: bytes, gen: int) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """Mnemonic and fields of a record whose event band was cleared: streams repeat them."""
    known = by_opcode(gen)[raw[0]]
    if known is None or (raw[0] == PSEUDO and raw[12] != 1):
        if raw[0] != PSEUDO or raw[12] != 2:
            raise no_opcode(raw, gen)
        known = codec("LibraryReload")
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
    return known.row.mnemonic, tuple(fields)


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
        op = f" ({wrong.place.value})" if wrong.place.value else ""
        raise fault(wrong.code, wrong.said, f"bundle {len(found)}{op}", wrong.hint) from None
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


def record(op: str, band: Band = v.NO_BAND, origin: Origin = NOWHERE, /, **fields: Any) -> Bundle:
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
