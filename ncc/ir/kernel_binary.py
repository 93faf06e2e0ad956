"""A kernel as bytes: `klir`, the compact form in which a kernel may travel into BIR.

A file is, in order (words are little-endian):

    8 bytes   the magic `NCC-KLIR`
    4 bytes   the version word, 13
    4 bytes   the content tag, 4: kernels, one for each core
    4 bytes   CRC-32 of everything behind it
    ...       the strings: their count, then each as length and UTF-8 bytes
    ...       one value: a tuple of kernels

A count, a length or a string's number is an unsigned LEB128 (7 bits a byte, lowest first, the top
bit says that more follow). A value is a tag byte and what the tag says:

    0 None   1 False   2 True
    3 int: LEB128 of 2v, or of -2v-1 for a negative v
    4 float: 8 bytes, IEEE 754       5 str: its number among the strings
    6 bytes: length, bytes           7 tuple: count, values
    16 + n: a node of class n of `NODES`, then its fields as values, in their order

An origin keeps file, line and column; the passes of its history stay behind.
"""

from __future__ import annotations

import struct
import zlib
from typing import Any, cast

import attrs

from ncc.errors import NccError, Place
from ncc.ir.core import Origin
from ncc.ir.data import Data
from ncc.ir.kernel import (
    Access,
    AxisLoop,
    Buffer,
    DeviceFor,
    DeviceWhile,
    Imm,
    Kernel,
    KernelOp,
    Reg,
    Rows,
    Scalar,
)

MAGIC = b"NCC-KLIR"
WORD = 13
TAG = 4
VERSION = "1.0.0"  # nki_binary_version_identifier of the carriers
NODES: tuple[type[Any], ...] = (
    *(Kernel, Buffer, KernelOp, DeviceFor, DeviceWhile),
    *(Access, Imm, Reg, Scalar, Rows, Data, Origin, AxisLoop),
)
NUMBER = {kind: i for i, kind in enumerate(NODES)}
FIELDS = {
    kind: tuple(f.name for f in attrs.fields(kind) if kind is not Origin or f.name != "passes")
    for kind in NODES
}


def pack(bodies: tuple[Kernel, ...]) -> bytes:
    """The file of a kernel's bodies; the same bodies give the same bytes."""
    writer = _Writer()
    writer.value(bodies)
    strings = bytearray(_unsigned(len(writer.strings)))
    for text in writer.strings:
        raw = text.encode("utf-8", "surrogatepass")
        strings += _unsigned(len(raw)) + raw
    content = bytes(strings + writer.out)
    return MAGIC + struct.pack("<III", WORD, TAG, zlib.crc32(content)) + content


def _unsigned(n: int) -> bytes:
    found = bytearray()
    while n > 127:
        found.append(n & 127 | 128)
        n >>= 7
    found.append(n)
    return bytes(found)


class _Writer:
    def __init__(self) -> None:
        self.out = bytearray()
        self.strings: dict[str, int] = {}

    def value(self, x: Any) -> None:
        out = self.out
        if x is None:
            out.append(0)
        elif x is False or x is True:
            out.append(1 + x)
        elif type(x) is int:
            out.append(3)
            out += _unsigned(2 * x if x >= 0 else -2 * x - 1)
        elif type(x) is float:
            out.append(4)
            out += struct.pack("<d", x)
        elif type(x) is str:
            out.append(5)
            out += _unsigned(self.strings.setdefault(x, len(self.strings)))
        elif type(x) is bytes:
            out.append(6)
            out += _unsigned(len(x)) + x
        elif type(x) is tuple:
            items = cast("tuple[Any, ...]", x)
            out.append(7)
            out += _unsigned(len(items))
            for one in items:
                self.value(one)
        else:
            out.append(16 + NUMBER[type(x)])
            for name in FIELDS[type(x)]:
                self.value(getattr(x, name))


def unpack(raw: bytes, name: str = "") -> tuple[Kernel, ...]:
    """The bodies that `pack` wrote; NCC392 for anything else. `name` is the file's, for errors."""

    def wrong(said: str) -> NccError:
        hint = "compile the kernel again with this release"
        return NccError("NCC392", said, Place(name), hint)

    if raw[:8] != MAGIC or len(raw) < 20:
        raise wrong(f"begins with {raw[:8]!r}, and a klir file with {MAGIC!r}")
    word, tag, sum_ = struct.unpack_from("<III", raw, 8)
    if word != WORD:
        raise wrong(f"has the version word {word}; {WORD} is read here")
    if tag != TAG:
        raise wrong(f"has the content tag {tag}; {TAG}, kernels, is read here")
    if zlib.crc32(raw[20:]) != sum_:
        raise wrong("is damaged: its bytes do not give its checksum")
    reader = _Reader(raw)
    try:
        found = reader.whole()
    except (IndexError, struct.error, UnicodeDecodeError, TypeError, RecursionError) as fault:
        raise wrong(f"is damaged at byte {reader.at}: {fault}") from None
    if not isinstance(found, tuple) or any(
        type(x) is not Kernel for x in cast("tuple[Any, ...]", found)
    ):
        raise wrong("holds no kernels")
    if reader.at != len(raw):
        raise wrong(f"holds {len(raw) - reader.at} bytes more than its kernels")
    return cast("tuple[Kernel, ...]", found)


class _Reader:
    def __init__(self, raw: bytes) -> None:
        self.raw, self.at = raw, 20
        self.strings: list[str] = []

    def whole(self) -> Any:
        for _ in range(self.unsigned()):
            self.strings.append(self.bytes(self.unsigned()).decode("utf-8", "surrogatepass"))
        return self.value()

    def unsigned(self) -> int:
        found = shift = 0
        while True:
            byte = self.raw[self.at]
            self.at += 1
            found |= (byte & 127) << shift
            if byte < 128:
                return found
            shift += 7

    def bytes(self, count: int) -> bytes:
        found = self.raw[self.at : self.at + count]
        if len(found) < count:
            raise IndexError("the bytes end")
        self.at += count
        return found

    def value(self) -> Any:
        tag = self.raw[self.at]
        self.at += 1
        match tag:
            case 0 | 1 | 2:
                return (None, False, True)[tag]
            case 3:
                n = self.unsigned()
                return -(n + 1) // 2 if n & 1 else n // 2
            case 4:
                return struct.unpack("<d", self.bytes(8))[0]
            case 5:
                return self.strings[self.unsigned()]
            case 6:
                return self.bytes(self.unsigned())
            case 7:
                return tuple([self.value() for _ in range(self.unsigned())])
            case _:
                kind = NODES[tag - 16]
                return kind(**{name: self.value() for name in FIELDS[kind]})
