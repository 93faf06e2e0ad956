"""Arguments and results as trees: which leaves are arrays, and what the rest is in a cache's key.

Tuples, lists, dictionaries, dataclasses and plain objects are entered; everything else is a value
of the program, which the kernel's Python sees as it is.
"""

from __future__ import annotations

import copy
import dataclasses
import dis
from collections.abc import Callable, Hashable
from enum import Enum
from functools import cache
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, cast

import attrs
import numpy as np

from ncc.nki.dtypes import Dtype

Leaf = Callable[[Any, str], Any]
CLOSED = (str, bytes, int, float, type(None), type, Enum, Dtype, FunctionType, BuiltinFunctionType)
OPAQUE = (*CLOSED, MethodType, ModuleType)


@attrs.frozen
class ArraySpec:
    """What tracing knows of an array: its buffer's name, the type a kernel sees, its shape."""

    name: str
    dtype: Dtype
    shape: tuple[int, ...]


def walked(value: Any, name: str, is_leaf: Callable[[Any], bool], leaf: Leaf) -> Any:
    """The same tree with `leaf(value, name)` in the place of every leaf.

    Containers are made anew, so that a kernel that changes one changes its own; an object is
    copied only where it holds a leaf or could be changed.
    """

    def go(one: Any, name: str) -> Any:
        if is_leaf(one):
            return leaf(one, name)
        what: object = one  # isinstance would narrow `one` to containers of unknown things
        if isinstance(what, np.generic):
            return one.item() if one.dtype.kind in "biuf" else one
        if isinstance(what, OPAQUE):
            return one
        if isinstance(what, dict):
            return _dictionary(one, name, go)
        if isinstance(what, tuple | list):
            return _sequence(one, name, go)
        if _is_record(one) or (hasattr(one, "__dict__") and _holds(one, is_leaf)):
            return _object(one, name, go)
        return one

    return go(value, name)


def _dictionary(given: dict[Any, Any], name: str, go: Leaf) -> Any:
    items = {k: go(v, f"{name}_{_word(k)}") for k, v in given.items()}
    if type(given) is dict:
        return items
    made = copy.copy(given)
    made.update(items)
    return made


def _sequence(given: Any, name: str, go: Leaf) -> Any:
    items = [go(v, f"{name}_{i}") for i, v in enumerate(given)]
    kind = cast(Any, type(given))
    if kind is list:
        return items
    if kind is tuple:
        return tuple(items)
    if hasattr(kind, "_fields"):
        return kind._make(items)
    if all(new is old for new, old in zip(items, given, strict=True)):
        return given
    return kind(items)


def _object(given: Any, name: str, go: Leaf) -> Any:
    fields = members(given)
    found = {k: go(v, f"{name}_{k}") for k, v in fields.items()}
    frozen = getattr(getattr(given, "__dataclass_params__", None), "frozen", False)
    if frozen and all(found[k] is fields[k] for k in fields):
        return given
    made = copy.copy(given)
    for key, one in found.items():
        object.__setattr__(made, key, one)
    return made


def members(given: Any) -> dict[str, Any]:
    """The fields of an object, those in slots included."""
    found: dict[str, Any] = {}
    if dataclasses.is_dataclass(given):
        for field in dataclasses.fields(given):
            if hasattr(given, field.name):
                found[field.name] = getattr(given, field.name)
    return found | dict(getattr(given, "__dict__", {}))


def _is_record(one: Any) -> bool:
    """Whether an object is made of its fields: a dataclass or an `nl.NKIObject`."""
    return dataclasses.is_dataclass(one) or any(
        c.__name__ == "NKIObject" for c in type(one).__mro__
    )


def _holds(one: Any, is_leaf: Callable[[Any], bool], depth: int = 4) -> bool:
    """Whether an object of some class holds a leaf, not too deep inside."""
    if is_leaf(one):
        return True
    if not depth or isinstance(one, OPAQUE):
        return False
    what: object = one
    inside: list[Any]
    if isinstance(what, dict):
        inside = list(one.values())
    elif isinstance(what, tuple | list):
        inside = list(one)
    else:
        inside = list(getattr(one, "__dict__", {}).values())
    return any(_holds(x, is_leaf, depth - 1) for x in inside)


def _word(key: Any) -> str:
    return str(getattr(key, "name", key))


# --- keys -----------------------------------------------------------------------------------------


def key_of(value: Any) -> Hashable:
    """What a specialisation depends on, to compare and hash; TypeError for what has no key.

    Records count by their fields, so a hash of their own that leaves something out does no harm; a
    path of an `.npy` file counts with the file's time.
    """
    kind = cast(Any, type(value))
    what: object = value
    if isinstance(what, bool | int | type(None) | Enum | type | Dtype | ArraySpec):
        return (kind, value)
    if isinstance(what, float):
        return (kind, repr(value))
    if isinstance(what, str):
        return (kind, value, *_file(value))
    if isinstance(what, dict):
        return (kind, tuple((key_of(k), key_of(v)) for k, v in value.items()))
    if isinstance(what, tuple | list):
        return (kind, tuple(key_of(v) for v in value))
    if isinstance(what, FunctionType | BuiltinFunctionType | ModuleType):
        return (kind, value)
    if isinstance(what, set | frozenset):
        return (kind, frozenset(key_of(v) for v in value))
    plain = kind.__hash__ is object.__hash__ and hasattr(value, "__dict__")
    if _is_record(value) or (plain and not callable(value)):
        return (kind, tuple((k, key_of(v)) for k, v in members(value).items()))
    hash(value)
    return (kind, value)


def _file(text: str) -> tuple[int, ...]:
    if not text.endswith(".npy"):
        return ()
    try:
        found = Path(text).stat()
    except (OSError, ValueError):
        return ()
    return (found.st_mtime_ns, found.st_size)


def closure_key(func: Any) -> Hashable:
    """What a function closes over: a number, word or function by its value, anything else by which
    object it is. A variable that the function itself assigns is none of its inputs."""
    code = getattr(func, "__code__", None)
    cells: tuple[Any, ...] = getattr(func, "__closure__", None) or ()
    if code is None or not cells:
        return ()
    found: list[Hashable] = []
    for name, cell in zip(code.co_freevars, cells, strict=True):
        if name in _assigned(code):
            continue
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        plain = isinstance(value, CLOSED)
        found.append(key_of(value) if plain else id(value))
    return tuple(found)


@cache
def _assigned(code: CodeType) -> frozenset[str]:
    return frozenset(i.argval for i in dis.get_instructions(code) if i.opname == "STORE_DEREF")
