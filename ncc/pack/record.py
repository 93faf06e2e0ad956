"""The header of a NEFF: 1024 bytes in front of the archive, and the same record in info.json."""

from __future__ import annotations

import hashlib
import struct
from typing import Any

from ncc.errors import listed
from ncc.pack.names import KNOWN_BITS, MASK_BITS, feature_names
from ncc.pack.schema import fault, get

SIZE = 1024
HEADER = struct.Struct("<QQQQQ128sI32s16s256sI64sQI468s")
GZIP, TAR = 2, 1  # pkg_version
FIELDS = (
    "pkg_version",
    "header_size",
    "data_size",
    "neff_version_major",
    "neff_version_minor",
    "neff_build_version",
    "num_tpb",
    "hash",
    "uuid",
    "name",
    "requested_tpb_count",
    "tpb_per_node",
    "feature_bits",
    "lnc_size",
    "pad",
)
WRAPPING = ("header_size", "data_size", "hash", "pad")  # of the file, not of the record
NUMBERS = {
    "pkg_version": 64,
    "neff_version_major": 64,
    "neff_version_minor": 64,
    "num_tpb": 32,
    "requested_tpb_count": 32,
    "feature_bits": 64,
    "lnc_size": 32,
}
TEXTS = {"neff_build_version": 128, "name": 256}

TOO_OLD = "the reader is too old: use a newer ncc, or an older compiler"

Record = dict[str, Any]


def record(name: str, digest: str, features: int, cores: int) -> Record:
    """The record of a program for one logical core: what a header would say, without what only a
    file has."""
    from ncc import __version__

    uuid = bytearray.fromhex(digest[:32])
    uuid[6], uuid[8] = uuid[6] & 0x0F | 0x40, uuid[8] & 0x3F | 0x80  # version 4, variant 1
    return {
        "feature_bits": features,
        "lnc_size": cores,
        "name": clipped(name),
        "neff_build_version": f"ncc-{__version__}",
        "neff_version_major": 2 if features else 1,
        "neff_version_minor": 0,
        "num_tpb": cores,
        "pkg_version": GZIP,
        "requested_tpb_count": cores,
        "tpb_per_node": [cores],
        "uuid": uuid.hex(),
    }


def clipped(name: str) -> str:
    """A name that fits its 256 bytes with a NUL."""
    return name.encode()[:255].decode(errors="ignore")


def digest_of(members: dict[str, bytes]) -> str:
    """SHA-256 over all members but info.json, in path order."""
    found = hashlib.sha256()
    for path in sorted(members):
        if path != "info.json":
            data = members[path]
            found.update(path.encode() + b"\0" + len(data).to_bytes(8, "little"))
            found.update(data)
    return found.hexdigest()


def checksum(payload: bytes, pkg_version: int) -> bytes:
    """The header's hash of the stored payload."""
    if pkg_version == GZIP:
        return hashlib.md5(payload, usedforsecurity=False).digest() + b"0" * 16
    return hashlib.sha256(payload).digest()


def header_bytes(found: Record, payload: bytes) -> bytes:
    """The 1024 bytes for a record and the payload that follows."""
    return HEADER.pack(
        found["pkg_version"],
        SIZE,
        len(payload),
        found["neff_version_major"],
        found["neff_version_minor"],
        found["neff_build_version"].encode(),
        found["num_tpb"],
        checksum(payload, found["pkg_version"]),
        bytes.fromhex(found["uuid"]),
        found["name"].encode(),
        found["requested_tpb_count"],
        bytes(found["tpb_per_node"]),
        found["feature_bits"],
        found["lnc_size"],
        b"",
    )


def read_header(raw: bytes) -> tuple[Record, Record]:
    """The record of 1024 bytes, and what only the file has: sizes, hash, pad."""
    values: Record = dict(zip(FIELDS, HEADER.unpack(raw), strict=True))
    for field in TEXTS:
        text, _, rest = values[field].partition(b"\0")
        if any(rest):
            raise fault(804, f"{field} has bytes after its end", "header")
        values[field] = text.decode(errors="replace")
    values["uuid"] = values["uuid"].hex()
    values["tpb_per_node"] = list(values["tpb_per_node"].rstrip(b"\0"))
    return {k: values[k] for k in FIELDS if k not in WRAPPING}, {k: values[k] for k in WRAPPING}


def check_record(info: Record, where: str) -> Record:
    """The record under `header`, with every field of its kind (R5, R12, R19)."""
    values: Record = get(info, "header", dict, where)
    for field, bits in NUMBERS.items():
        value = get(values, field, int, where)
        if not 0 <= value < 1 << bits:
            raise fault(812, f"{field} is {value}, outside its {bits} bits", where)
    for field, room in TEXTS.items():
        if len(get(values, field, str, where).encode(errors="replace")) > room:
            raise fault(812, f"{field} has more than {room} bytes", where)
    nodes: list[Any] = get(values, "tpb_per_node", list, where)
    if len(nodes) > 64 or not all(type(n) is int and 0 <= n < 256 for n in nodes):
        raise fault(812, "tpb_per_node is no list of at most 64 numbers below 256", where)
    uuid = get(values, "uuid", str, where)
    if len(uuid) != 32 or set(uuid) - set("0123456789abcdef"):
        raise fault(812, f"uuid is {uuid[:40]!r}, not 32 hexadecimal digits", where)
    versions(values, where)
    return values


def versions(values: Record, where: str) -> None:
    """R5 and R19: what a reader of this release understands."""
    major, bits = values["neff_version_major"], values["feature_bits"]
    if major > 2:
        said = f"neff_version_major is {major}, and this reader supports 0 to 2"
        raise fault(805, said, where, TOO_OLD)
    if major == 2 and (unknown := bits & (1 << MASK_BITS) - 1 & ~((1 << KNOWN_BITS) - 1)):
        names = listed(feature_names(unknown))
        said = f"feature_bits is {bits:#x}, and this reader supports bits 0 to 26, not {names}"
        raise fault(805, said, where, TOO_OLD)
    if values["lnc_size"] not in (1, 2):
        said = f"lnc_size is {values['lnc_size']}, and 1 and 2 are supported"
        raise fault(819, said, where, "the file is damaged, or the reader is too old for it")
