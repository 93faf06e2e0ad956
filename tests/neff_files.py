"""Taking NEFFs apart and putting them together again, with one thing changed."""

from __future__ import annotations

import json

from ncc import pack
from ncc.encode.text import parse
from ncc.pack.archive import gzip_bytes, tar_bytes, tar_header
from ncc.pack.members import json_bytes
from ncc.pack.record import HEADER, checksum, digest_of, header_bytes

FORMS = [(True, False), (False, False), (True, True), (False, True)]


def members(text):
    """The members of a listing's NEFF, as a dictionary to change."""
    return {m.path: m.data for m in pack.build(parse(text)).members}


def changed(found, path, **keys):
    """The members with keys of a JSON member set; None removes one. `a/b` reaches inside."""
    obj = json.loads(found[path])
    for key, value in keys.items():
        inner = obj
        *outer, last = key.split("__")
        for part in outer:
            inner = inner[part]
        if value is None:
            del inner[last]
        else:
            inner[last] = value
    return {**found, path: json_bytes(obj)}


def signed(found):
    """The members with a digest that fits."""
    return changed(found, "info.json", digest=digest_of(found))


def wrapped(found, compressed=True, header=False, record=None):
    """A file of members, whatever they are; the header's record is info.json's unless given."""
    info = json.loads(found["info.json"])
    info["header"]["pkg_version"] = 2 if compressed else 1
    found = {**found, "info.json": json_bytes(info)}
    payload = tar_bytes(found)
    payload = gzip_bytes(payload) if compressed else payload
    return header_bytes(record or info["header"], payload) + payload if header else payload


def headed(raw, **fields):
    """A file with a header, with fields of the header set (not the hash, unless given)."""
    names = "pkg_version header_size data_size major minor build tpb hash uuid name requested"
    names += " nodes feature_bits lnc_size pad"
    values = dict(zip(names.split(), HEADER.unpack(raw[:1024]), strict=True))
    assert set(fields) <= set(values)
    return HEADER.pack(*{**values, **fields}.values()) + raw[1024:]


def rehashed(payload, raw):
    """A header of `raw` in front of another payload, with length and hash that fit."""
    package = int.from_bytes(raw[:8], "little")
    whole = raw[:1024] + payload
    return headed(whole, data_size=len(payload), hash=checksum(payload, package))


def tar_of(*entries):
    """A tar of (name, type, data) in this order, however odd; a name may be bytes."""
    parts = []
    for name, kind, data in entries:
        head = bytearray(tar_header("x", len(data)))
        raw = name if isinstance(name, bytes) else name.encode()
        head[0:100] = raw.ljust(100, b"\0")
        head[156:157] = kind
        head[148:156] = b" " * 8
        head[148:156] = b"%06o\0 " % sum(head)
        parts += [bytes(head), data, bytes(-len(data) % 512)]
    whole = b"".join(parts) + bytes(1024)
    return whole + bytes(-len(whole) % 10240)
