"""A printed NEFF: each member with its bytes, JSON as text, streams one bundle a line.

    member kelf-0.json text
      {
       ...
    member sg00/PE0.bin bytes
      0110...00  # LoadStationary wait=S12>=32 ...

A line of hexadecimal digits may say how often it stands (`00ff x12`), and what follows `#` is a
comment.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from ncc.encode.bundle import decode_bundle
from ncc.encode.codec import SIZE
from ncc.encode.text import show_bundle
from ncc.errors import NccError
from ncc.ir.neff import Member, Neff
from ncc.ir.text import read_value, show_value, split_words, unreadable
from ncc.pack.names import ARCHES, GENERATION, KELF
from ncc.pack.schema import read_json

MOST = 1 << 30  # bytes of a member that a text may ask for


def show(neff: Neff) -> str:
    """Every member, in the order of their paths."""
    gen = generation(neff)
    lines: list[str] = []
    for member in neff.members:
        text = as_text(member)
        lines.append(f"member {show_value(member.path)} {'bytes' if text is None else 'text'}")
        if text is not None:
            lines += [f"  {line}" for line in text]
        elif member.path.endswith(".bin"):
            lines += stream_lines(member.data, gen)
        else:
            lines += hex_lines(member.data)
    return "\n".join(lines) + "\n"


def generation(neff: Neff) -> int:
    """The generation of the records, for the comments; 3 when the file does not say."""
    try:
        word = read_json({m.path: m.data for m in neff.members}, KELF).get("target")
    except (NccError, KeyError):
        return 3
    return GENERATION[ARCHES.get(str(word), "cayman")]


def as_text(member: Member) -> list[str] | None:
    """The lines of a JSON member, or None for bytes that no lines hold."""
    if not member.path.endswith(".json") or not member.data.endswith(b"\n"):
        return None
    try:
        text = member.data.decode()
    except UnicodeDecodeError:
        return None
    return text[:-1].split("\n") if all(c.isprintable() or c == "\n" for c in text) else None


def stream_lines(raw: bytes, gen: int) -> Iterator[str]:
    for at in range(0, len(raw), SIZE):
        line = raw[at : at + SIZE]
        try:
            yield f"  {line.hex()}  # {show_bundle(decode_bundle(line, gen))}"
        except NccError as wrong:
            yield f"  {line.hex()}  # {wrong.said}"


def hex_lines(raw: bytes) -> Iterator[str]:
    """64 bytes a line; equal lines once, with their number."""
    lines = (raw[at : at + SIZE].hex() for at in range(0, len(raw), SIZE))
    for line, equal in groupby(lines):
        count = sum(1 for _ in equal)
        yield f"  {line} x{count}" if count > 1 else f"  {line}"


def parse(text: str, file: str = "", first_line: int = 1) -> Neff:
    """The NEFF of a printed one; NCC009 names the line that cannot be read."""
    found: dict[str, list[bytes]] = {}
    current: list[bytes] | None = None
    form = ""
    size = 0
    for number, line in enumerate(text.split("\n"), first_line):
        try:
            if line.startswith("  ") and current is not None:
                current.append(line[2:].encode() + b"\n" if form == "text" else read_hex(line))
                size += len(current[-1])
                if size > MOST:
                    raise ValueError(f"the members have more than {MOST} bytes")
            elif line.strip() and not line.startswith("#"):
                path, form = read_head(line)
                if path in found:
                    raise ValueError(f"the member {path} is there twice")
                current = found[path] = []
        except ValueError as wrong:
            raise unreadable(str(wrong), file, number) from None
    return Neff(tuple(Member(path, b"".join(found[path])) for path in sorted(found)))


def read_head(line: str) -> tuple[str, str]:
    words = split_words(line)
    if len(words) != 3 or words[0] != "member" or words[2] not in ("text", "bytes"):
        raise ValueError(f"cannot read {line[:60]!r}, expected `member PATH text` or `... bytes`")
    path = read_value(words[1])
    if not isinstance(path, str):
        raise ValueError(f"{words[1]} is no path")
    return path, words[2]


def read_hex(line: str) -> bytes:
    """The bytes of a line of hexadecimal digits."""
    words = line.partition("#")[0].split()
    count = 1
    if len(words) == 2 and words[1][0] == "x" and words[1][1:].isdecimal():
        count = int(words.pop()[1:])
    if len(words) != 1 or len(words[0]) > 2 * SIZE or count * SIZE > MOST:
        raise ValueError(f"cannot read {line.strip()[:60]!r}, expected hexadecimal digits")
    try:
        return bytes.fromhex(words[0]) * count
    except ValueError:
        raise ValueError(f"cannot read {words[0][:60]!r}, expected hexadecimal digits") from None
