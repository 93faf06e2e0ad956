"""Bind the arguments of a call to a kernel's parameters."""

from __future__ import annotations

import inspect
import keyword
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ncc.errors import Place, nearest
from ncc.nki.arguments import ArraySpec, key_of, walked
from ncc.nki.arrays import dtype_seen, is_array
from ncc.nki.trace import NkiTypeError
from ncc.target import Target


@attrs.frozen(eq=False)
class Bound:
    """A call: the argument tree with an `ArraySpec` for each array, and the arrays themselves.

    `key` is what a specialisation depends on; None when some argument has no key.
    """

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    specs: tuple[ArraySpec, ...]
    arrays: tuple[Any, ...]
    key: Hashable | None


def name_of(func: Any) -> str:
    """The kernel's name as an identifier."""
    inner = getattr(func, "func", func)  # functools.partial
    found = getattr(inner, "__name__", None) or type(inner).__name__
    return identifier(found)


def identifier(word: str) -> str:
    made = re.sub(r"\W", "_", word).strip("_") or "kernel"
    made = f"_{made}" if made[0].isdigit() else made
    return f"{made}_" if keyword.iskeyword(made) else made


def place_of(func: Any) -> Place:
    """The line on which a kernel begins."""
    inner = inspect.unwrap(getattr(func, "func", func))
    code = getattr(inner, "__code__", None)
    if code is None:  # an object that is called
        methods: dict[str, Any] = getattr(inner, "__class__", object).__dict__
        code = getattr(methods.get("__call__"), "__code__", None)
    if code is None:
        return Place(value=name_of(func))
    return Place(Path(code.co_filename).name, code.co_firstlineno)


def bind(
    func: Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    target: Target,
    leaf: Callable[[Any], bool] = is_array,
) -> Bound:
    """The arguments in the parameters' places. NCC302 names the parameter that is wrong."""
    place = place_of(func)
    signature = inspect.signature(func)
    found = _bound(func, signature, args, kwargs, place)
    found.apply_defaults()
    specs: list[ArraySpec] = []
    arrays: list[Any] = []
    taken: set[str] = set()

    def is_leaf(value: Any) -> bool:
        return isinstance(value, ArraySpec) or leaf(value)

    def collect(value: Any, name: str) -> ArraySpec:
        own, n = identifier(name), 1
        while own in taken:
            n += 1
            own = f"{identifier(name)}_{n}"
        taken.add(own)
        dtype = (
            value.dtype if isinstance(value, ArraySpec) else dtype_seen(value, name, target, place)
        )
        shape = tuple(map(int, value.shape)) or (1,)
        specs.append(ArraySpec(own, dtype, shape))
        arrays.append(value)
        return specs[-1]

    for name, given in found.arguments.items():
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            found.arguments[name] = {k: walked(v, k, is_leaf, collect) for k, v in given.items()}
        else:
            found.arguments[name] = walked(given, name, is_leaf, collect)
    try:
        key = (key_of(found.args), key_of(found.kwargs))
    except (TypeError, RecursionError):
        key = None
    return Bound(found.args, found.kwargs, tuple(specs), tuple(arrays), key)


def _bound(
    func: Any,
    signature: inspect.Signature,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    place: Place,
) -> inspect.BoundArguments:
    try:
        return signature.bind(*args, **kwargs)
    except TypeError as fault:
        name = name_of(func)
        said, hint = _what(name, signature, args, kwargs, str(fault))
        raise NkiTypeError("NCC302", said, place, hint) from None


def _what(
    name: str,
    signature: inspect.Signature,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    fault: str,
) -> tuple[str, str]:
    """The sentence about a call that does not fit, and its hint."""
    params = signature.parameters
    hint = f"it takes {', '.join(params) or 'no argument'}"
    positional = [
        p for p in params.values() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]
    open_ended = any(p.kind is p.VAR_POSITIONAL for p in params.values())
    if not any(p.kind is p.VAR_KEYWORD for p in params.values()):
        for word in kwargs:
            if word not in params:
                return f"{name} has no parameter {word}", nearest(word, params) or hint
    if len(args) > len(positional) and not open_ended:
        return f"{name} takes {len(positional)} arguments by position, {len(args)} were given", hint
    for param in positional[: len(args)]:
        if param.name in kwargs and param.kind is not param.POSITIONAL_ONLY:
            return f"{name} was given its parameter {param.name} twice", hint
    for param in params.values():
        required = param.default is param.empty and param.kind not in (
            param.VAR_POSITIONAL,
            param.VAR_KEYWORD,
        )
        if required and param.name not in kwargs and param not in positional[: len(args)]:
            return f"{name} was called without its parameter {param.name}", hint
    return f"{name} cannot be called so: {fault}", hint
