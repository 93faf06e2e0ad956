"""`NKIObject`: the base of the classes with which kernels pass parameters around.

A class below it needs no decorator: its fields are its annotations and its plain class attributes,
a field that nobody passes is None, and two objects are equal when their fields are. The same holds
beneath `@dataclass`, because a class is prepared before its decorators see it.
Source: NKI reference, section 2.2.
"""

from __future__ import annotations

import copy
import dataclasses
import sys
from collections.abc import Callable
from importlib import import_module
from types import FunctionType
from typing import Any, ClassVar, cast

from ncc.errors import listed, nearest
from ncc.nki.trace import wrong_type

MISSING = dataclasses.MISSING


class NKIObject:
    """A record whose fields a kernel reads while it is traced."""

    __nki_fields__: ClassVar[dict[str, Any]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = _annotations(cls)
        for name, value in list(cls.__dict__.items()):
            if name not in own and _is_field(cls, name, value):
                own[name] = Any
        cls.__annotations__ = own
        fields: dict[str, Any] = {}
        for base in reversed(cls.__mro__[1:]):
            fields.update(base.__dict__.get("__nki_fields__", {}))
        for name, kind in own.items():
            if _is_class_variable(kind):
                continue
            fields[name] = _prepared(cls, name)
        cls.__nki_fields__ = fields
        if _generated_init(cls):
            cls.__init__ = NKIObject.__init__

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """The fields in their order or by name; `__post_init__` then sees them all."""
        fields = type(self).__nki_fields__
        kind = type(self).__name__
        if len(args) > len(fields):
            said = f"{kind} has {len(fields)} fields, was given {len(args)} values"
            raise wrong_type("NCC369", said, f"its fields are {listed(fields)}")
        values = dict(zip(fields, args, strict=False))
        for name, value in kwargs.items():
            if name not in fields or name in values:
                twice = f"{kind} was given the field {name!r} twice"
                said = twice if name in values else f"{kind} has no field {name!r}"
                hint = nearest(name, fields) or f"its fields are {listed(fields)}"
                raise wrong_type("NCC369", said, hint)
            values[name] = value
        for name, default in fields.items():
            object.__setattr__(self, name, values[name] if name in values else default())
        after = getattr(self, "__post_init__", None)
        if after is not None:
            after()

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        mine, theirs = vars(self), vars(other)
        return mine.keys() == theirs.keys() and all(_same(mine[n], theirs[n]) for n in mine)

    def __hash__(self) -> int:
        return hash((type(self).__qualname__, *sorted(vars(self).items(), key=_name)))

    def __repr__(self) -> str:
        shown = ", ".join(f"{n}={getattr(self, n)!r}" for n in type(self).__nki_fields__)
        return f"{type(self).__name__}({shown})"


def _name(item: tuple[str, Any]) -> str:
    return item[0]


def _annotations(cls: type) -> dict[str, Any]:
    if sys.version_info >= (3, 14):  # where annotations are evaluated when they are asked for
        library: Any = import_module("annotationlib")
        return dict(library.get_annotations(cls, format=library.Format.FORWARDREF))
    return dict(cls.__dict__.get("__annotations__", {}))


def _is_field(cls: type, name: str, value: Any) -> bool:
    """Whether a class attribute without annotation is data: no method, property or inner class."""
    if name.startswith("__"):
        return False
    if isinstance(value, FunctionType):
        return hasattr(value, "nki_op")  # an operator of the API, `act = nl.silu`
    if isinstance(value, type):
        inner: str = value.__qualname__
        return inner != f"{cls.__qualname__}.{name}"
    return not hasattr(cast(Any, type(value)), "__get__")


def _is_class_variable(kind: Any) -> bool:
    word = kind if isinstance(kind, str) else str(kind)
    return word.removeprefix("typing.").startswith("ClassVar") or kind is dataclasses.KW_ONLY


def _prepared(cls: type, name: str) -> Callable[[], Any]:
    """How a field starts; and the class attribute in the form that `@dataclass` wants."""
    value: Any = getattr(cls, name, None)
    if hasattr(value, "default_factory"):  # dataclasses.field(...)
        field = value
        if field.default is MISSING and field.default_factory is MISSING:
            field.default = None
        if field.default_factory is not MISSING:
            return field.default_factory
        return lambda: field.default
    if type(value).__hash__ is None:  # a list or dict: each object has its own

        def fresh() -> Any:
            return copy.copy(value)

        setattr(cls, name, dataclasses.field(default_factory=fresh))
        return fresh
    setattr(cls, name, value)
    return lambda: value


def _generated_init(cls: type) -> bool:
    """Whether `cls` would inherit the constructor that `@dataclass` wrote for a base, which does
    not know the new fields."""
    for base in cls.__mro__:
        if "__init__" in base.__dict__:
            made = base.__dict__.get("__dataclass_params__")
            return base is not cls and made is not None and made.init
    return False


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    found: Any = a == b
    return bool(found.all()) if hasattr(found, "all") else bool(found)
