"""The one printer and parser of values, for every level that is not XLA's text or Python.

A line is `name = Head value ... key=value ... : type  # file:line`; no value holds a blank outside
quotes, because blanks part the words of a line. Numbers, words, tuples `(a,b)` and index arithmetic
(`ncc.ir.affine`) print and read the same way everywhere; a word that could be read as something
else is quoted as JSON quotes it.
"""

from __future__ import annotations

import json
import re
from typing import Any

from ncc.errors import NccError, Place
from ncc.ir.affine import Affine, Floor, Least, Mod, read_index
from ncc.ir.core import NOWHERE, Origin

DEEPEST = 20  # tuples in tuples; no field of any level nests deeper than a few
BARE = re.compile(r"[A-Za-z_][\w./:@~-]*\Z")
KEPT = {"true": True, "false": False, "none": None, "inf": float("inf"), "nan": float("nan")}
NUMBER = re.compile(r"-?\d+\Z")
FLOAT = re.compile(r"-?(\d+\.\d*([eE][-+]?\d+)?|\d+[eE][-+]?\d+|inf|nan)\Z")
WORDS = re.compile(r'(?:[^\s"]|"(?:[^"\\]|\\.)*")+')
COMMENT = re.compile(r"\s+# (\S+):(\d+)\Z")


def show_value(value: Any) -> str:
    """One word of a line. TypeError for a kind of value that no text form has."""
    kind: object = value.__class__
    if kind is str:
        return value if BARE.match(value) and value not in KEPT else json.dumps(value)
    if kind is int:
        return str(value)
    if kind is bool or value is None:
        return str(value).lower()
    if kind is float:
        return repr(value)
    if kind is tuple:
        inside = ",".join(map(show_value, value))
        return f"({inside},)" if len(value) == 1 else f"({inside})"
    if isinstance(value, Affine | Mod | Floor | Least):
        return f"`{value}`"
    raise TypeError(f"{value!r:.60} has no text form")


def read_value(text: str) -> Any:
    """The value that printed as `text`; ValueError with a sentence otherwise."""
    value, end = _read(text, 0)
    if end != len(text):
        raise ValueError(f"cannot read {text[:60]!r} as a value")
    return value


def _read(text: str, at: int, depth: int = 0) -> tuple[Any, int]:
    match text[at : at + 1]:
        case "(":
            items: list[Any] = []
            at += 1
            if depth > DEEPEST:
                raise ValueError(f"cannot read {text[:60]!r}, its tuples nest too deep")
            while text[at : at + 1] != ")":
                item, at = _read(text, at, depth + 1)
                items.append(item)
                if text[at : at + 1] == ",":
                    at += 1
                elif text[at : at + 1] != ")":
                    raise ValueError(f"cannot read {text[:60]!r}, a tuple lacks its )")
            return tuple(items), at + 1
        case '"':
            try:
                return json.JSONDecoder().raw_decode(text, at)
            except ValueError:
                raise ValueError(f"cannot read {text[:60]!r}, a quoted word does not end") from None
        case "`":
            end = text.find("`", at + 1)
            if end < 0:
                raise ValueError(f"cannot read {text[:60]!r}, index arithmetic does not end")
            return read_index(text[at + 1 : end]), end + 1
        case _:
            end = at
            while end < len(text) and text[end] not in ',()`"':
                end += 1
            return _atom(text[at:end]), end


def _atom(word: str) -> Any:
    if NUMBER.match(word):
        if len(word) > 40:
            raise ValueError(f"cannot read {word[:30]}..., a number of {len(word)} digits")
        return int(word)
    if FLOAT.match(word):
        return float(word)
    if word in KEPT:
        return KEPT[word]
    if BARE.match(word):
        return word
    raise ValueError(f"cannot read {word!r} as a value")


def split_words(line: str) -> list[str]:
    """The words of a line; blanks inside quotes part nothing."""
    return WORDS.findall(line)


def split_origin(line: str, after: str = "") -> tuple[str, Origin]:
    """A line without its closing `# file:line`, and the origin that it names."""
    found = COMMENT.search(line)
    if not found:
        return line, NOWHERE
    return line[: found.start()], Origin(found[1], int(found[2]), 0, (after,) if after else ())


def with_origin(line: str, origin: Origin) -> str:
    return f"{line}  # {origin}" if origin.file else line


def unreadable(said: str, file: str, line: int, hint: str = "") -> NccError:
    """NCC009: a printed stage that does not read back."""
    return NccError("NCC009", said, Place(file, line), hint)
