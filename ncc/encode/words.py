"""Field values of bundles as words of a listing, and back: addresses, codes, floats, semaphores."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import cache
from typing import Any

from ncc.encode import codes
from ncc.encode.tables import ROWS, Field
from ncc.encode.values import at as address_of
from ncc.encode.values import bits_f32, f32_bits, word_of
from ncc.ir.isa import At, Band, Dram
from ncc.ir.text import read_value, show_value

WORDS: dict[str, Mapping[str, int]] = {
    "dtype": codes.DTYPE,
    "lo": codes.DTYPE,
    "hi": codes.DTYPE,
    "alu": codes.ALU,
    "func": codes.ACT_FUNC,
    "imm_src": codes.IMM_SRC,
    "bias_src": codes.BIAS_SRC,
    "acc": codes.ACCUMULATE,
    "fp32_mode": codes.FP32_MODE,
    "dge_op": codes.DGE_OP,
}
BACK: dict[str, dict[int, str]] = {
    kind: {n: w for w, n in reversed(list(words.items()))} for kind, words in WORDS.items()
}
# which field says where an immediate comes from
SOURCES = {
    "imm": "imm_src",
    "imm0": "imm0_src",
    "imm1": "imm1_src",
    "scale": "scale_src",
    "bias": "bias_src_n",
    "bound0": "bound0_src",
    "bound1": "bound1_src",
    "threshold": "threshold_src",
}
ADDRESS = re.compile(r"(?:sb\[(\d+)\]|ps\[(\d+)\]bank(\d+)|(raw))\+(0x[0-9a-f]+)(?:\[(.*)\])?\Z")
DRAM = re.compile(r"v(\d+)\+(0x[0-9a-f]+)\Z")
PATTERN = re.compile(r"(-?\d+)(?:\[(.*)\])?\Z")
PAIR = re.compile(r"(-?\d+):(\d+)\Z")


def show_dims(dims: tuple[tuple[int, int], ...]) -> str:
    return "[" + ",".join(f"{s}:{n}" for s, n in dims) + "]" if dims else ""


def read_dims(text: str | None) -> tuple[tuple[int, int], ...]:
    found: list[tuple[int, int]] = []
    for pair in text.split(",") if text else ():
        match = PAIR.match(pair)
        if not match:
            raise ValueError(f"cannot read {pair!r}, a dimension is step:num")
        found.append((int(match[1]), int(match[2])))
    return tuple(found)


def show_at(at: At) -> str:
    """`sb[0]+0x400[1:128]`: start partition, byte in it, and step:num pairs, fastest first."""
    dims = show_dims(at.dims)
    if at.space == "psum":
        return f"ps[{at.partition}]bank{at.byte >> 11}+{at.byte & 0x7FF:#x}{dims}"
    place = f"sb[{at.partition}]" if at.space == "sb" else "raw"
    return f"{place}+{at.byte:#x}{dims}"


def read_at(word: str) -> At:
    match = ADDRESS.match(word)
    if not match:
        raise ValueError(f"cannot read {word!r}, an address is sb[0]+0x400 or ps[0]bank1+0x0")
    byte, dims = int(match[5], 16), read_dims(match[6])
    if match[2] is not None:
        return At("psum", int(match[2]), (int(match[3]) << 11) + byte, dims)
    return At("raw" if match[4] else "sb", int(match[1] or 0), byte, dims)


@cache
def sources(op: str) -> dict[str, tuple[str, int]]:
    """For each immediate: the field of its source, and the code there that means a pointer."""
    kinds = {f.name: f.kind for f in ROWS[op].fields}
    found: dict[str, tuple[str, int]] = {}
    for name, kind in kinds.items():
        source = SOURCES.get(name, "")
        if kind == "imm" and source in kinds:
            found[name] = (source, 0 if kinds[source] == "bias_src" else 1)
    return found


def show_imm(bits: int, source: int | None, pointer: int, raw: bool) -> str:
    """An immediate: a float, an address when it is a pointer, a register, or its bits."""
    if source == pointer:
        place = address_of(bits)
        return show_at(place) if place.space != "raw" else f"{bits:#x}"
    if source == 2:
        return f"r{bits}"
    value = bits_f32(bits)
    if raw or math.isnan(value) or 0 < abs(value) < 2**-126:
        return f"{bits:#x}"
    for digits in range(6, 10):
        word = f"{value:.{digits}g}"
        if not math.isinf(value) and f32_bits(float(word)) == bits:
            return word if "." in word or "e" in word else f"{word}.0"
    return "inf" if value > 0 else "-inf"


def read_imm(word: str) -> int:
    if word.startswith("0x"):
        return int(word, 16)
    if re.fullmatch(r"r\d+", word):
        return int(word[1:])
    if "+0x" in word:
        return word_of(read_at(word))
    try:
        return f32_bits(float(word))
    except (ValueError, OverflowError):
        said = f"cannot read {word!r}, an immediate is 0.125, 0x3f800000, r12 or sb[0]+0x400"
        raise ValueError(said) from None


def show_field(field: Field, value: Any, op: str, fields: Mapping[str, Any]) -> str:
    """The word of a field's value."""
    kind = field.kind
    if kind in BACK:
        return BACK[kind].get(value) or str(value)
    if kind == "imm":
        source, pointer = sources(op).get(field.name, ("", 1))
        code = fields.get(source, 0) if source else None
        return show_imm(value, code, pointer, op.endswith("Bitvec"))
    if isinstance(value, At):
        return show_at(value)
    if isinstance(value, Dram):
        return f"v{value.var}+{value.byte:#x}"
    if kind == "A8":
        return f"{value:#x}"
    if kind == "D4D":
        return f"{value[0]}{show_dims(value[1])}"
    if isinstance(value, bytes):
        return f"hex:{value.hex()}"
    return show_value(value)


def read_field(field: Field, word: str) -> Any:
    """The value of a field; ValueError with a sentence."""
    kind = field.kind
    if kind in WORDS and word in WORDS[kind]:
        return WORDS[kind][word]
    if kind == "imm":
        return read_imm(word)
    if kind == "A8" and word.startswith("0x"):
        return int(word, 16)
    if kind == "A8" and (match := DRAM.match(word)):
        return Dram(int(match[1]), int(match[2], 16))
    if kind in ("A8", "A4", "T1D", "T2D", "T3D", "T4D"):
        return read_at(word)
    if kind == "D4D":
        match = PATTERN.match(word)
        if not match:
            raise ValueError(f"cannot read {word!r}, a pattern is base[step:num,...]")
        return int(match[1]), read_dims(match[2])
    if kind.startswith("bytes"):
        form, _, digits = word.partition(":")
        if form != "hex":
            raise ValueError(f"cannot read {word!r}, bytes are hex:0c00...")
        return bytes.fromhex(digits)
    value = read_value(word)
    if kind in WORDS and not isinstance(value, int):
        raise ValueError(f"{word!r} is none of {', '.join(WORDS[kind])}")
    return value


UPDATES = {0x03: "++", 0x04: "--", 0x05: "+=", 0x07: "-=", 0x09: ":="}
UPDATE_CODES = {sign: code for code, sign in UPDATES.items()}
EVENTS = {0x01: "set", 0x02: "clear"}
WAIT_CODES = {sign: code for code, sign in codes.WAIT_COMPARE.items()}
EVENT_WAITS = {word: code for code, word in codes.WAIT_EVENT.items()}
SEMAPHORE = re.compile(r"S(\d+)(==|<=|>=|<|>|\+\+|--|\+=|-=|:=)(?:(r?)(\d+))?\Z")
EVENT = re.compile(r"E(\d+):([a-z-]+)\Z")
UNKNOWN = re.compile(r"mode(0x[0-9a-f]+):(\d+)\Z")


def show_wait(mode: int, index: int, value: int) -> str:
    """`S12>=32`, `S3==r5` (against a register), `E4:set`."""
    if codes.wait_uses_value(mode):
        register = "r" if mode & 0x80 else ""
        return f"S{index}{codes.WAIT_COMPARE[mode & 0x7F]}{register}{value}"
    if mode in codes.WAIT_EVENT:
        return f"E{index}:{codes.WAIT_EVENT[mode]}"
    return f"mode{mode:#x}:{index}"


def show_update(mode: int, index: int, value: int) -> str:
    """`S0++` on completion, `read:S0++` once the operands are read, `S9+=16`, `S9:=r3`."""
    when = "" if mode & 0x10 else "read:"
    action = mode & 0x6F
    if codes.update_uses_value(mode):
        register = "r" if mode & 0x80 else ""
        return f"{when}S{index}{UPDATES[action]}{register}{value}"
    if action in UPDATES and not mode & 0x80:
        return f"{when}S{index}{UPDATES[action]}"
    if action in EVENTS and not mode & 0x80:
        return f"{when}E{index}:{EVENTS[action]}"
    return f"mode{mode:#x}:{index}"


def read_wait(word: str) -> tuple[int, int, int | None]:
    """(mode, index, value or None) of a wait."""
    if match := UNKNOWN.match(word):
        return int(match[1], 16), int(match[2]), None
    if (match := EVENT.match(word)) and match[2] in EVENT_WAITS:
        return EVENT_WAITS[match[2]], int(match[1]), None
    if (match := SEMAPHORE.match(word)) and match[2] in WAIT_CODES and match[4]:
        return WAIT_CODES[match[2]] | (0x80 if match[3] else 0), int(match[1]), int(match[4])
    raise ValueError(f"cannot read the wait {word!r}, it is S12>=32, S12>=r3 or E4:set")


def read_update(word: str) -> tuple[int, int, int | None]:
    """(mode, index, value or None) of an update."""
    if match := UNKNOWN.match(word):
        return int(match[1], 16), int(match[2]), None
    rest = word.removeprefix("read:")
    bank = 0 if rest != word else 0x10
    if (match := EVENT.match(rest)) and match[2] in EVENTS.values():
        return (1 if match[2] == "set" else 2) | bank, int(match[1]), None
    if (match := SEMAPHORE.match(rest)) and match[2] in UPDATE_CODES:
        code = UPDATE_CODES[match[2]] | bank | (0x80 if match[3] else 0)
        if codes.update_uses_value(code) == (match[4] is not None):
            return code, int(match[1]), None if match[4] is None else int(match[4])
    raise ValueError(f"cannot read the update {word!r}, it is S0++, S9+=16 or E4:set")


def shared(wait: tuple[int, int], update: tuple[int, int], value: int) -> int:
    """The value that a listing shows without saying `value=`."""
    used = codes.wait_uses_value(wait[0]) or codes.update_uses_value(update[0])
    return value if used else 0


def read_band(wait: str, update: str, value: str) -> Band:
    """The band of the words `wait=`, `update=` and `value=`; "" for one that is not there."""
    waits = read_wait(wait) if wait else (0, 0, None)
    updates = read_update(update) if update else (0, 0, None)
    said = [x for x in (waits[2], updates[2]) if x is not None]
    if value:
        said.append(int(value))
    if len(set(said)) > 1:
        raise ValueError(f"a bundle has one value, and here are {said[0]} and {said[1]}")
    return Band(waits[:2], updates[:2], said[0] if said else 0)
