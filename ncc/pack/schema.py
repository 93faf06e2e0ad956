"""JSON members read with suspicion: objects, keys once and of their kind, numbers that fit."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any, cast

from ncc.errors import NccError, Place

DEPTH = 64
NUMBER = 1 << 64
STRINGS = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
BRACKETS = re.compile(r"[\[\]{}]")

Json = dict[str, Any]


def fault(number: int, said: str, member: str = "", hint: str = "") -> NccError:
    return NccError(f"NCC{number}", said, Place(value=member), hint)


def _once(pairs: list[tuple[str, Any]]) -> Json:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return found


def _integer(text: str) -> int:
    if len(text) > 20 or not -NUMBER < int(text) < NUMBER:
        raise ValueError(f"the number {text[:24]}... has more than 64 bits")
    return int(text)


def _float(text: str) -> float:
    if not math.isfinite(value := float(text)):
        raise ValueError(f"the number {text[:24]} is too large")
    return value


def _constant(text: str) -> float:
    raise ValueError(f"{text} is no number of JSON")


def too_deep(text: str) -> bool:
    """Whether brackets nest deeper than any member needs."""
    depth = 0
    for bracket in BRACKETS.findall(STRINGS.sub("", text)):
        depth += 1 if bracket in "[{" else -1
        if depth > DEPTH:
            return True
    return False


def read_json(members: Mapping[str, bytes], path: str) -> Json:
    """The object that a member holds (R12)."""
    try:
        text = members[path].decode()
        if text.count("[") + text.count("{") > DEPTH and too_deep(text):
            raise ValueError(f"it nests deeper than {DEPTH} levels")
        found: Any = json.loads(
            text,
            object_pairs_hook=_once,
            parse_int=_integer,
            parse_float=_float,
            parse_constant=_constant,
        )
    except UnicodeDecodeError as wrong:
        raise fault(812, f"is not UTF-8 at byte {wrong.start}", path) from None
    except json.JSONDecodeError as wrong:
        said = f"is no JSON at line {wrong.lineno}, column {wrong.colno}: {wrong.msg}"
        raise fault(812, said, path) from None
    except ValueError as wrong:
        raise fault(812, f"is refused, because {wrong}", path) from None
    if not isinstance(found, dict):
        raise fault(812, "is not a JSON object", path)
    return cast(Json, found)


KINDS = {str: "a text", int: "a whole number", dict: "an object", list: "a list", bool: "a bool"}


def get(obj: Json, key: str, kind: type, path: str, code: int = 812, default: Any = None) -> Any:
    """The value of a key, of its kind; `default` (not None) when the key may be left out."""
    value = obj.get(key, default)
    if value is None:
        raise fault(code, f"lacks the key {key!r}", path)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise fault(code, f"{key!r} is {json.dumps(value)[:60]} and must be {KINDS[kind]}", path)
    return value


def objects(obj: Json, key: str, path: str, code: int = 812, default: Any = None) -> list[Json]:
    """A list of objects."""
    found: list[Any] = get(obj, key, list, path, code, default)
    for item in found:
        if not isinstance(item, dict):
            raise fault(code, f"{key!r} holds {json.dumps(item)[:60]}, which is no object", path)
    return found


def numbers(obj: Json, key: str, path: str, code: int) -> tuple[int, ...]:
    """A list of whole numbers from 0 up."""
    found: list[Any] = get(obj, key, list, path, code)
    for item in found:
        if type(item) is not int or item < 0:
            said = f"{key!r} holds {json.dumps(item)[:60]}, which is no number from 0 up"
            raise fault(code, said, path)
    return tuple(found)
