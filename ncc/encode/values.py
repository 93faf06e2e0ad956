"""Field values and their bytes: addresses, tensor descriptors, names, bands, immediates."""

from __future__ import annotations

import struct
from functools import lru_cache

from ncc.ir.isa import At, Band, Dram

PSUM_BASE = 0x2000000
PSUM_END = 0x2400000
SB_PARTITION = 18  # an SBUF partition has a window of 2^18 bytes
PSUM_PARTITION = 15
BANK = 11  # bytes of a PSUM bank, as a power of two
MODE_VARIABLE = 0x10  # ADDR8 mode of a static address

Dims = tuple[tuple[int, int], ...]


def at(word: int) -> At:
    """The address that a 32-bit word names."""
    if word < PSUM_BASE:
        return At("sb", word >> SB_PARTITION, word & 0x3FFFF)
    if word < PSUM_END:
        inside = word - PSUM_BASE
        return At("psum", inside >> PSUM_PARTITION, inside & 0x7FFF)
    return At("raw", 0, word)


def word_of(address: At) -> int:
    """The 32-bit word of an address; ValueError when it does not fit its window."""
    space, partition, byte = address.space, address.partition, address.byte
    if space == "sb" and 0 <= partition < 128 and 0 <= byte < 1 << SB_PARTITION:
        return (partition << SB_PARTITION) + byte
    if space == "psum" and 0 <= partition < 128 and 0 <= byte < 1 << PSUM_PARTITION:
        return PSUM_BASE + (partition << PSUM_PARTITION) + byte
    if space == "raw" and not partition and PSUM_END <= byte < 1 << 32:
        return byte
    if space in ("sb", "psum"):
        raise ValueError(f"partition {partition}, byte {byte} is outside the window of {space}")
    raise ValueError(f"an address is in sb or psum, not in {space!r}")


def f32_bits(value: float) -> int:
    """The bits of a float rounded to fp32: what an `imm` field holds."""
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def bits_f32(bits: int) -> float:
    """The fp32 value of an `imm` field."""
    return float(struct.unpack("<f", struct.pack("<I", bits))[0])


_TENSOR = {n: struct.Struct(f"<I{n}h{n}H") for n in (1, 2, 3, 4)}
_DATA = struct.Struct("<i4h4H")
_BAND = struct.Struct("<BBBBI")
_ADDR8 = struct.Struct("<IHBB")
_STEPS = struct.Struct("<ii")
_NUMS = struct.Struct("<HH")


def trimmed(dims: Dims) -> Dims:
    """The pairs without the trailing (1, 1): an unused dimension is left out."""
    n = len(dims)
    while n and dims[n - 1] == (1, 1):
        n -= 1
    return dims[:n]


@lru_cache(maxsize=1 << 16)
def read_tensor(raw: bytes) -> At:
    n = len(raw) // 4 - 1
    word, *rest = _TENSOR[n].unpack(raw)
    start = at(word)
    dims = trimmed(tuple(zip(rest[:n], rest[n:], strict=True)))
    return At(start.space, start.partition, start.byte, dims)


def _padded(dims: Dims, n: int) -> list[int]:
    """Steps then nums of n dimensions, each in its field's range."""
    if len(dims) > n:
        raise ValueError(f"has {len(dims)} dimensions, and {n} fit")
    full = [*dims, *((1, 1),) * (n - len(dims))]
    for i, (step, num) in enumerate(full):
        if not -0x8000 <= step < 0x8000:
            raise ValueError(f"step {step} of dimension {i} is outside -32768..32767")
        if not 0 <= num < 0x10000:
            raise ValueError(f"num {num} of dimension {i} is outside 1..65535")
    return [x for x, _ in full] + [x for _, x in full]


@lru_cache(maxsize=1 << 16)
def tensor_bytes(value: At, n: int) -> bytes:
    return _TENSOR[n].pack(word_of(value), *_padded(value.dims, n))


def read_data(raw: bytes) -> tuple[int, Dims]:
    base, *rest = _DATA.unpack(raw)
    return base, trimmed(tuple(zip(rest[:4], rest[4:], strict=True)))


def data_bytes(value: tuple[int, Dims]) -> bytes:
    base, dims = value
    return _DATA.pack(base, *_padded(dims, 4))


def read_addr8(raw: bytes) -> At | Dram | int:
    low, var, high, mode = _ADDR8.unpack(raw)
    if mode == MODE_VARIABLE and (var or high):
        return Dram(var | high << 16, low)
    if mode == MODE_VARIABLE and low < PSUM_BASE:
        return At("sb", low >> SB_PARTITION, low & 0x3FFFF)
    return int.from_bytes(raw, "little")


def addr8_bytes(value: At | Dram | int) -> bytes:
    if isinstance(value, Dram):
        if not 0 < value.var < 1 << 24:
            raise ValueError(f"DRAM variable {value.var} is outside 1..16777215")
        if not 0 <= value.byte < 1 << 32:
            raise ValueError(f"byte {value.byte} of a variable is outside 0..4294967295")
        return _ADDR8.pack(value.byte, value.var & 0xFFFF, value.var >> 16, MODE_VARIABLE)
    if isinstance(value, At):
        if value.space != "sb" or value.dims:
            raise ValueError("a DMA address on chip is in sb and has no dimensions")
        return _ADDR8.pack(word_of(value), 0, 0, MODE_VARIABLE)
    return value.to_bytes(8, "little")


def read_steps(raw: bytes) -> tuple[int, int] | None:
    value: tuple[int, int] = _STEPS.unpack(raw)
    return None if value == (0, 0) else value


def read_nums(raw: bytes) -> tuple[int, int] | None:
    value: tuple[int, int] = _NUMS.unpack(raw)
    return None if value == (1, 1) else value


def steps_bytes(value: tuple[int, int]) -> bytes:
    return _STEPS.pack(*value)


def nums_bytes(value: tuple[int, int]) -> bytes:
    return _NUMS.pack(*value)


def read_size(raw: int) -> int:
    return raw or 0x10000


def size_word(value: int) -> int:
    if not 0 < value <= 0x10000:
        raise ValueError(f"a run of {value} bytes is outside 1..65536")
    return value & 0xFFFF


def read_name(raw: bytes) -> str | None:
    """Text before the first NUL; ValueError when something else stands there or after it."""
    text = raw.rstrip(b"\0")
    if len(text) == len(raw) or not all(0x21 <= c < 0x7F and c != 0x22 for c in text):
        raise ValueError(f"{raw.hex()} is no name: printable characters, then NULs")
    return text.decode() or None


def name_bytes(value: str, size: int) -> bytes:
    raw = value.encode()
    if len(raw) >= size:
        raise ValueError(f"the name {value!r} has {len(raw)} characters, at most {size - 1} fit")
    padded = raw.ljust(size, b"\0")
    read_name(padded)
    return padded


def read_raw(raw: bytes) -> bytes | None:
    return raw if any(raw) else None


def raw_bytes(value: bytes, size: int) -> bytes:
    if len(value) != size:
        raise ValueError(f"has {len(value)} bytes and not {size}")
    return value


NO_BAND = Band()


@lru_cache(maxsize=1 << 16)
def read_band(raw: bytes) -> Band:
    wait, wait_idx, update, update_idx, value = _BAND.unpack(raw)
    found = Band((wait, wait_idx), (update, update_idx), value)
    return NO_BAND if found == NO_BAND else found


@lru_cache(maxsize=1 << 16)
def band_bytes(band: Band) -> bytes:
    return _BAND.pack(*band.wait, *band.update, band.value)
