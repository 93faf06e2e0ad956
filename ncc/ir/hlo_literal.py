"""The literals of HLO text: every written form to exact bytes and back.

Floats print as the shortest decimal that reads back to the same value. Their sign survives, also of
zero; a NaN that is not the plain quiet one prints its mantissa bits, `nan(0x400123)`.
ValueErrors are sentences; `Elided` is the one fault of a literal that is not a spelling.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any

from ncc.ir.hlo import ArrayShape, Literal, Shape, TupleLiteral, TupleShape

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# HLO's name: (numpy's name, kind, exponent bits, mantissa bits); the last two of floats only
TYPES: dict[str, tuple[str, str, int, int]] = {
    "pred": ("bool", "pred", 0, 0),
    **{f"s{n}": (f"int{n}", "int", 0, 0) for n in (2, 4, 8, 16, 32, 64)},
    **{f"u{n}": (f"uint{n}", "int", 0, 0) for n in (2, 4, 8, 16, 32, 64)},
    "f4e2m1fn": ("float4_e2m1fn", "float", 2, 1),
    "f8e3m4": ("float8_e3m4", "float", 3, 4),
    "f8e4m3": ("float8_e4m3", "float", 4, 3),
    "f8e4m3fn": ("float8_e4m3fn", "float", 4, 3),
    "f8e4m3b11fnuz": ("float8_e4m3b11fnuz", "float", 4, 3),
    "f8e4m3fnuz": ("float8_e4m3fnuz", "float", 4, 3),
    "f8e5m2": ("float8_e5m2", "float", 5, 2),
    "f8e5m2fnuz": ("float8_e5m2fnuz", "float", 5, 2),
    "f8e8m0fnu": ("float8_e8m0fnu", "float", 8, 0),
    "f16": ("float16", "float", 5, 10),
    "bf16": ("bfloat16", "float", 8, 7),
    "f32": ("float32", "float", 8, 23),
    "f64": ("float64", "float", 11, 52),
    "c64": ("complex64", "complex", 8, 23),
    "c128": ("complex128", "complex", 11, 52),
    "token": ("", "none", 0, 0),
    "opaque": ("", "none", 0, 0),
}
ELIDED = re.compile(r"\{\s*\.\.\.\s*\}")
COMMENTS = re.compile(r"/\*.*?\*/", re.S)
NOT_A_NUMBER = re.compile(r"([-+]?)nan(?:\((0x[0-9a-fA-F]+)\))?\Z")
HEX_FLOAT = re.compile(r"[-+]?0x[0-9a-fA-F]*\.?[0-9a-fA-F]*(p[-+]?\d+)?\Z")
DECIMAL = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?\Z")
INTEGER = re.compile(r"[-+]?(\d+|0x[0-9a-fA-F]+)\Z")
# an element, a complex pair, a brace
PIECE = re.compile(r"[{}]|[^{}]+")
PAIR = re.compile(r"\(((?:[^()]|\([^()]*\))*)\)")


class Elided(ValueError):
    """The values of a constant were left out when the text was dumped."""


def numpy_of(dtype: str) -> np.dtype[Any]:
    import ml_dtypes
    import numpy as np

    name = TYPES[dtype][0]
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def array_of(literal: Literal) -> NDArray[Any]:
    """The elements, read-only."""
    import numpy as np

    return np.frombuffer(literal.raw, numpy_of(literal.dtype)).reshape(literal.shape)


def read_literal(text: str, shape: Shape) -> Literal | TupleLiteral:
    """What stands between the parentheses of `constant(...)`, as a value of `shape`."""
    if ELIDED.search(text):
        raise Elided("this dump left the values out; dump with large constants")
    if "/*" in text:
        text = COMMENTS.sub(" ", text)
    if isinstance(shape, TupleShape):
        return _tuple(text.strip(), shape)
    return _array(text.strip(), shape)


def _tuple(text: str, shape: TupleShape) -> TupleLiteral:
    if not (text.startswith("(") and text.endswith(")")):
        raise ValueError("a tuple's literal stands in parentheses")
    parts = split_top(text[1:-1])
    if len(parts) != len(shape.parts):
        raise ValueError(f"a tuple of {len(shape.parts)} was given {len(parts)} literals")
    return TupleLiteral(tuple(map(read_literal, parts, shape.parts)))


def split_top(text: str) -> list[str]:
    """The parts between commas that stand outside all brackets."""
    parts: list[str] = []
    depth = start = 0
    for found in re.finditer(r"[(){},\[\]]", text):
        mark = found[0]
        depth += (mark in "({[") - (mark in ")}]")
        if mark == "," and not depth:
            parts.append(text[start : found.start()].strip())
            start = found.end()
    rest = text[start:].strip()
    return [*parts, rest] if rest or parts else []


def _array(text: str, shape: ArrayShape) -> Literal:
    import numpy as np

    dtype, dims = shape.dtype, shape.dims
    kind = TYPES[dtype][1]
    if kind == "none":
        raise ValueError(f"{dtype} has no literal")
    if any(shape.dynamic) or -1 in dims:
        raise ValueError("a literal has no dynamic dimension")
    if text.startswith(dtype + "["):  # the old form repeats the shape
        text = re.sub(r"^\w+\[[^\]]*\](\{[\d,]*\}(?=\s*[\S]))?\s*", "", text)
    words, splat = _words(text, dims, kind)
    values = _numbers(words, dtype)
    count = math.prod(dims)
    if splat and count != 1:
        return Literal(dtype, dims, values.tobytes() * count)
    return Literal(dtype, dims, np.ascontiguousarray(values).tobytes())


def _words(text: str, dims: tuple[int, ...], kind: str) -> tuple[list[str], bool]:
    """The elements in row-major order, and whether one element stands for all of them."""
    if not text.startswith("{"):
        words = _elements(text, kind)
        if len(words) != 1:
            raise ValueError(f"a literal without braces is one value, was given {len(words)}")
        return words, True
    if not math.prod(dims):
        if _elements(re.sub(r"[{},\s]", "", text), kind):
            raise ValueError(f"a literal of {_dims(dims)} has no values, was given some")
        return [], False
    words: list[str] = []
    counts = [0] * (len(dims) + 1)
    depth = 0
    for piece in PIECE.findall(text):
        if piece == "{":
            depth += 1
            if depth > len(dims):
                raise ValueError(f"braces nest {depth} deep, the shape is {_dims(dims)}")
            counts[depth] = 0
        elif piece == "}":
            if depth < 1:
                raise ValueError("a } has no {")
            if counts[depth] != dims[depth - 1]:
                said = f"dimension {depth - 1} has {dims[depth - 1]} elements"
                raise ValueError(f"{said}, was given {counts[depth]}")
            depth -= 1
            counts[depth] += 1
        elif found := _elements(piece, kind):
            if depth != len(dims):
                raise ValueError(f"values stand {depth} braces deep, the shape is {_dims(dims)}")
            words += found
            counts[depth] = len(found)
    if depth:
        raise ValueError("a { has no }")
    if counts[0] != 1:
        raise ValueError(f"a literal is one value in braces, was given {counts[0]}")
    return words, False


def _dims(dims: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, dims))}]"


def _elements(text: str, kind: str) -> list[str]:
    if kind == "complex":
        pairs = PAIR.findall(text)
        if PAIR.sub("", text).strip(" ,\n\t\r"):
            raise ValueError(f"cannot read {text.strip()[:40]!r} as complex values `(re, im)`")
        return pairs
    words = [word.strip() for word in text.split(",")]
    if words and not words[0]:
        words = words[1:]
    if words and not words[-1]:
        words.pop()
    if "" in words:
        raise ValueError("a value is missing between two commas")
    return words


def _numbers(words: list[str], dtype: str) -> NDArray[Any]:
    import numpy as np

    name, kind, _, _ = TYPES[dtype]
    if kind == "pred":
        return np.array([_truth(word) for word in words], bool)
    if kind == "int":
        return _integers(words, dtype)
    if kind == "complex":
        half = "f32" if dtype == "c64" else "f64"
        flat: list[str] = []
        for word in words:
            pair = [part.strip() for part in word.split(",")]
            if len(pair) != 2:
                raise ValueError(f"cannot read ({word}) as a complex value `(re, im)`")
            flat += pair
        return _floats(flat, half).view(name)
    return _floats(words, dtype)


def _truth(word: str) -> bool:
    if word not in ("true", "false", "1", "0"):
        raise ValueError(f"cannot read {word[:40]!r} as pred, expected true or false")
    return word in ("true", "1")


def _integers(words: list[str], dtype: str) -> NDArray[Any]:
    import numpy as np

    bits, low = int(dtype[1:]), 0
    if dtype[0] == "s":
        low = -(1 << (bits - 1))
    high = low + (1 << bits) - 1
    values: list[int] = []
    for word in words:
        if not INTEGER.match(word):
            raise ValueError(f"cannot read {word[:40]!r} as {dtype}, expected a whole number")
        value = int(word, 16) if "x" in word else int(word)
        if not low <= value <= high:
            raise ValueError(f"{value} does not fit {dtype}, which holds {low} to {high}")
        values.append(value)
    whole = np.array(values, np.int64 if dtype[0] == "s" else np.uint64)
    return whole.astype(numpy_of(dtype))


def _floats(words: list[str], dtype: str) -> NDArray[Any]:
    """Decimal, hex, infinite and NaN words, each rounded once to `dtype`."""
    import numpy as np

    values = np.empty(len(words), np.float64)
    odd: list[tuple[int, int]] = []  # the NaNs whose bits are written
    for i, word in enumerate(words):
        if DECIMAL.match(word) or word in ("inf", "+inf", "-inf"):
            values[i] = float(word)
        elif found := NOT_A_NUMBER.match(word):
            values[i] = math.nan
            odd.append((i, _nan_bits(found[1], found[2], dtype)))
        elif HEX_FLOAT.match(word):
            values[i] = _hex(word, dtype)
        else:
            raise ValueError(f"cannot read {word[:40]!r} as {dtype}, expected a number")
    kept = _round(values, dtype)
    _all_fit(values, kept, words, dtype)
    if odd:
        raw = kept.view(f"u{kept.itemsize}").copy()
        for i, bits in odd:
            raw[i] = bits
        kept = raw.view(kept.dtype)
    return kept


def _hex(word: str, dtype: str) -> float:
    try:
        return float.fromhex(word)
    except (ValueError, OverflowError):
        raise ValueError(f"cannot read {word[:40]!r} as {dtype}, expected a number") from None


def _round(values: NDArray[np.float64], dtype: str) -> NDArray[Any]:
    """Nearest even. Narrow types pass through float32 rounded to odd: nothing rounds twice."""
    import numpy as np

    want = numpy_of(dtype)
    with np.errstate(all="ignore"):
        if want.itemsize > 2 or dtype == "f16":
            return values.astype(want)
        near = values.astype(np.float32)
        back = near.astype(np.float64)
        bits = near.view(np.uint32).copy()
        bits[np.abs(back) > np.abs(values)] -= 1
        bits[(back != values) & ~np.isnan(values)] |= 1
        return bits.view(np.float32).astype(want)


def _all_fit(values: NDArray[np.float64], kept: NDArray[Any], words: list[str], dtype: str) -> None:
    """Refuse a finite value beyond the type, and an infinity or NaN that the type has not."""
    import numpy as np

    wide = kept.astype(np.float64)
    wrong = (np.isfinite(values) & ~np.isfinite(wide)) | (np.isinf(values) & ~np.isinf(wide))
    wrong |= np.isnan(values) & ~np.isnan(wide)
    if dtype == "f8e8m0fnu":  # a power of two: no zero, no sign
        wrong |= (values <= 0) & np.isfinite(values)
    if dtype == "f4e2m1fn":  # it saturates instead of becoming infinite
        wrong |= np.abs(values) > 7
    decimal = [i for i in np.flatnonzero(np.isinf(values)).tolist() if "inf" not in words[i]]
    if first := [*decimal, *np.flatnonzero(wrong).tolist()]:
        raise ValueError(f"{words[first[0]][:40]} does not fit {dtype}")


def _nan_bits(sign: str, payload: str | None, dtype: str) -> int:
    """The bits of `nan`, `-nan` or `nan(0x...)`, whose payload is the whole mantissa."""
    import numpy as np

    _, _, exponent, mantissa = TYPES[dtype]
    plain = np.array([math.nan], np.float32).astype(numpy_of(dtype))
    if not np.isnan(plain.astype(np.float64))[0]:
        raise ValueError(f"{dtype} has no NaN")
    bits = int(plain.view(f"u{plain.itemsize}")[0])
    top = 1 << (exponent + mantissa)
    if payload:
        number = int(payload, 16)
        if not 0 < number < 1 << mantissa or not _many_nans(dtype):
            raise ValueError(
                f"nan({payload}) does not fit {dtype}, whose mantissa has {mantissa} bits"
            )
        bits = (bits & ~((1 << mantissa) - 1)) | number
    if sign == "-":
        if not mantissa or "fnuz" in dtype:
            raise ValueError(f"{dtype} has one NaN, without a sign")
        return bits | top
    return bits & ~top if _signed_nan(dtype) else bits


def _many_nans(dtype: str) -> bool:
    """Whether the type follows IEEE 754: every mantissa but 0 is a NaN of its own."""
    return dtype in ("f16", "bf16", "f32", "f64", "f8e3m4", "f8e4m3", "f8e5m2")


def _signed_nan(dtype: str) -> bool:
    return _many_nans(dtype) or dtype == "f8e4m3fn"


# ------------------------------------------------------------------------------------- printing


def show_literal(literal: Literal | TupleLiteral) -> str:
    """The text that `read_literal` reads back to the same bytes."""
    if isinstance(literal, TupleLiteral):
        return f"({', '.join(map(show_literal, literal.parts))})"
    return _nest(_shown(literal), literal.shape)


def _nest(words: list[str], dims: tuple[int, ...]) -> str:
    if not dims:
        return words[0]
    if not math.prod(dims):
        return "{}"
    if len(dims) == 1:
        return f"{{{', '.join(words)}}}"
    size = len(words) // dims[0]
    rows = [_nest(words[i * size : (i + 1) * size], dims[1:]) for i in range(dims[0])]
    return f"{{ {', '.join(rows)} }}"


def _shown(literal: Literal) -> list[str]:
    import numpy as np

    kind = TYPES[literal.dtype][1]
    flat = np.frombuffer(literal.raw, numpy_of(literal.dtype))
    if kind == "pred":
        return ["true" if x else "false" for x in flat.tolist()]
    if kind == "int":
        wide = flat.astype(np.int64 if literal.dtype[0] == "s" else np.uint64)
        return [str(x) for x in wide.tolist()]
    if kind == "complex":
        half = "f32" if literal.dtype == "c64" else "f64"
        words = _decimals(flat.view(numpy_of(half)), half)
        return [f"({a}, {b})" for a, b in zip(words[::2], words[1::2], strict=True)]
    return _decimals(flat, literal.dtype)


def _decimals(flat: NDArray[Any], dtype: str) -> list[str]:
    import numpy as np

    if dtype == "f64":
        words = [repr(x) for x in flat.tolist()]
    else:
        words = [str(x) for x in flat.astype(np.float32)]
    words = [word[:-2] if word.endswith(".0") and word != "-0.0" else word for word in words]
    raw = flat.view(f"u{flat.itemsize}")
    with np.errstate(all="ignore"):
        none = np.isnan(flat.astype(np.float64))
    for i in np.flatnonzero(none).tolist():
        words[i] = _nan_word(int(raw[i]), dtype)
    return words


def _nan_word(bits: int, dtype: str) -> str:
    _, _, exponent, mantissa = TYPES[dtype]
    plain = _nan_bits("", None, dtype)
    sign = "-" if _signed_nan(dtype) and bits >> (exponent + mantissa) else ""
    low = (1 << mantissa) - 1
    if not _many_nans(dtype) or bits & low == plain & low:
        return f"{sign}nan"
    return f"{sign}nan({bits & low:#x})"
