"""The archive of a NEFF: a tar, written one way only and read without trusting it, and gzip."""

from __future__ import annotations

import zlib

import attrs

from ncc.errors import NccError, Place

BLOCK, RECORD = 512, 10_240
NAME_ROOM = 100


@attrs.frozen
class Limits:
    """What a reader takes before it stops (R8)."""

    total: int = 2 << 30
    members: int = 4096
    member: int = 1 << 30
    ratio: int = 200
    free: int = 16 << 20  # the ratio counts from here


LIMITS = Limits()


def fault(number: int, said: str, member: str = "", hint: str = "") -> NccError:
    return NccError(f"NCC{number}", said, Place(value=member), hint)


# Writing


def tar_header(path: str, size: int) -> bytes:
    """One ustar header: owner nobody, mode 644, time 0."""
    name = path.encode()
    if len(name) > NAME_ROOM:
        raise fault(809, f"the name has {len(name)} bytes, and {NAME_ROOM} fit", path)
    head = bytearray(BLOCK)
    for at, field in (
        (0, name),
        (100, b"0000644\0"),
        (108, b"0000000\0"),
        (116, b"0000000\0"),
        (124, b"%011o\0" % size),
        (136, b"00000000000\0"),
        (148, b"        "),
        (156, b"0"),
        (257, b"ustar\x0000"),
        (265, b"nobody"),
        (297, b"nobody"),
        (329, b"0000000\0"),
        (337, b"0000000\0"),
    ):
        head[at : at + len(field)] = field
    head[148:156] = b"%06o\0 " % sum(head)
    return bytes(head)


def tar_bytes(members: dict[str, bytes]) -> bytes:
    """The tar of the members, by path; the same members give the same bytes."""
    parts: list[bytes] = []
    for path in sorted(members):
        data = members[path]
        parts += (tar_header(path, len(data)), data, bytes(-len(data) % BLOCK))
    whole = b"".join(parts) + bytes(2 * BLOCK)
    return whole + bytes(-len(whole) % RECORD)


def gzip_bytes(data: bytes) -> bytes:
    """One gzip member: level 6, no time, no name, operating system 3."""
    deflate = zlib.compressobj(6, zlib.DEFLATED, -zlib.MAX_WBITS)
    body = deflate.compress(data) + deflate.flush()
    head = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03"
    size = (len(data) & 0xFFFFFFFF).to_bytes(4, "little")
    return head + body + zlib.crc32(data).to_bytes(4, "little") + size


# Reading


def gunzip(raw: bytes, limits: Limits = LIMITS) -> bytes:
    """The one gzip member that `raw` is (R7), within the limits (R8)."""
    inflate = zlib.decompressobj(16 + zlib.MAX_WBITS)
    parts: list[bytes] = []
    size, rest = 0, raw
    try:
        while rest and not inflate.eof:
            parts.append(inflate.decompress(rest, 1 << 22))
            size, rest = size + len(parts[-1]), inflate.unconsumed_tail
            if size > limits.total:
                raise fault(808, f"the archive inflates to more than {limits.total} bytes")
            if size > limits.free and size - limits.free > limits.ratio * len(raw):
                raise fault(808, f"the archive inflates to more than {limits.ratio} times its size")
            if not parts[-1] and not inflate.eof:
                break
    except zlib.error as wrong:
        why = str(wrong).split(": ", 1)[-1]
        raise fault(807, f"the gzip stream is damaged: {why}") from None
    if not inflate.eof:
        raise fault(807, "the gzip stream ends before its end", hint="the file is cut short")
    if inflate.unused_data:
        said = f"{len(inflate.unused_data)} bytes follow the end of the gzip stream"
        raise fault(807, said, hint="a NEFF is one gzip stream and nothing else")
    return b"".join(parts)


def number(field: bytes, what: str, path: str) -> int:
    """A number of a tar header: octal digits, or base 256 as GNU tar writes large ones."""
    if field[0] & 0x80:
        return int.from_bytes(field, "big") & ((1 << 8 * len(field) - 1) - 1)
    digits = field.rstrip(b"\0 ").lstrip(b" ")
    if not digits:
        return 0
    if any(c not in b"01234567" for c in digits):
        raise fault(810, f"the {what} {digits!r} in its tar header is no octal number", path)
    return int(digits, 8)


def untar(raw: bytes, limits: Limits = LIMITS) -> dict[str, bytes]:
    """The regular files of a tar: name to bytes. Nothing is written to disk (R8 to R10)."""
    found: dict[str, bytes] = {}
    at = 0
    while True:
        head = raw[at : at + BLOCK]
        if len(head) < BLOCK:
            raise fault(810, f"the tar ends at byte {len(raw)} without its two empty blocks")
        if not any(head):
            if any(raw[at:]) or len(raw) - at < 2 * BLOCK:
                raise fault(810, f"the tar does not end after the empty block at byte {at}")
            return found
        path, kind, size = tar_entry(head, at)
        data = raw[at + BLOCK : at + BLOCK + size]
        if len(data) < size:
            raise fault(810, f"has {size} bytes by its tar header, and {len(data)} are there", path)
        at += BLOCK + size + -size % BLOCK
        if kind == b"x" or kind == b"g":
            check_pax(data, path)
        elif kind in (b"0", b"\0"):
            path = path.removeprefix("./")
            check_name(path, found)
            if size > limits.member:
                raise fault(808, f"has {size} bytes, and at most {limits.member} are read", path)
            if len(found) >= limits.members:
                raise fault(808, f"there are more than {limits.members} members")
            found[path] = data
        elif kind != b"5":
            said = f"is of tar type {kind.decode('latin-1')!r}, no regular file or directory"
            raise fault(810, said, path, "links, devices and sparse files are refused")


def tar_entry(head: bytes, at: int) -> tuple[str, bytes, int]:
    """Name, type and size of a header block, whose checksum must hold."""
    if head[257:262] != b"ustar":
        raise fault(810, f"byte {at} of the tar is no ustar header")
    if number(head[148:156], "checksum", f"byte {at}") != sum(head) - sum(head[148:156]) + 256:
        raise fault(810, f"the checksum of the tar header at byte {at} is wrong")
    raw = head[:100].split(b"\0", 1)[0]
    prefix = head[345:500].split(b"\0", 1)[0] if head[257:263] == b"ustar\0" else b""
    whole = prefix + b"/" + raw if prefix else raw
    try:
        path = whole.decode()
    except UnicodeDecodeError:
        raise fault(809, f"the name {whole!r} is not UTF-8") from None
    return path, head[156:157], number(head[124:136], "size", path)


def check_name(path: str, found: dict[str, bytes]) -> None:
    """R9: a plain relative name, once."""
    why = ""
    if not path:
        why = "is empty"
    elif path.startswith("/"):
        why = "is absolute"
    elif any(part in ("..", ".", "") for part in path.split("/")):
        why = "has an empty or dotted part"
    elif "\\" in path or not path.isprintable():
        why = "has a backslash or an unprintable character"
    elif path[1:2] == ":":
        why = "names a drive"
    elif len(path.encode()) > 255:
        why = "is longer than 255 bytes"
    elif path in found:
        why = "stands twice in the archive"
    if why:
        raise fault(
            809, f"the member name {path[:80]!r} {why}", hint="names are short and relative"
        )


def check_pax(data: bytes, path: str) -> None:
    """R10: an extended record may set times and nothing else."""
    while data:
        length, _, _ = data.partition(b" ")
        if not length.isdigit() or len(length) > 9 or not len(length) < int(length) <= len(data):
            raise fault(810, "an extended tar record cannot be read", path)
        line, data = data[len(length) + 1 : int(length)], data[int(length) :]
        key = line.partition(b"=")[0].decode("latin-1")
        if key not in ("mtime", "atime", "ctime"):
            raise fault(810, f"an extended tar record sets {key!r}", path, "only times may be set")
