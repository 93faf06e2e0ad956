"""The frame of every call of `nki.isa`: a wrong keyword gets the nearest spelling as an answer."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Hashable, Iterator
from enum import Enum
from typing import Any, ParamSpec, TypeVar

from ncc.errors import listed, nearest
from ncc.nki.dtypes import dtype_of
from ncc.nki.isa import constants
from ncc.nki.isa.operands import generation, short
from ncc.nki.trace import Trace, current, invalid, wrong_type

# keywords of the older API, whose kernels import neuronxcc.nki
GONE = {
    "mask": "slice with min(start + size, extent), or choose with nisa.affine_select",
    "dtype": "the result has the dtype of dst: allocate that with the dtype",
}
P = ParamSpec("P")
R = TypeVar("R")
E = TypeVar("E", bound=Enum)
Check = Callable[[Any, str, str], None]


def call(function: Callable[P, R], ignored: tuple[str, ...] = ()) -> Callable[P, R]:
    """`function` as kernels see it. `ignored` are keywords of earlier releases that mean nothing
    any more; every other unknown keyword is refused (NCC330)."""
    known = frozenset(inspect.signature(function).parameters)
    name = function.__name__
    plain = tuple(plain_arguments(function))

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> R:
        if not kwargs.keys() <= known:
            for word in [k for k in kwargs if k in ignored]:
                del kwargs[word]
            for word in kwargs:
                if word not in known:
                    raise wrong_type(
                        "NCC330",
                        f"{name} takes no argument {word!r}",
                        hint_for(word, function),
                    )
        for at, word, check in plain:
            if at < len(args):
                check(args[at], name, word)
            elif word in kwargs:
                check(kwargs[word], name, word)
        try:
            return function(*args, **kwargs)
        except TypeError as wrong:
            trace = wrong.__traceback__
            if trace is None or trace.tb_next is not None:
                raise  # from inside the call, not about its arguments
            said = f"{name} {str(wrong).partition('() ')[2]}"
            hint = f"it takes {listed(known_order(function))}"
            raise wrong_type("NCC330", said, hint) from None

    return run


# --- arguments of one kind wherever they stand ----------------------------------------------------


def flag(value: Any, where: str, role: str) -> None:
    """True, False, 1, 0 or None (NCC351): what else is there slipped in from a neighbour."""
    if type(value) is bool or value is None:
        return
    if getattr(value, "ndim", 0) or str(value) not in ("True", "False", "0", "1"):
        said = f"{where} takes {role} as True or False, was given {short(value)}"
        raise wrong_type("NCC351", said, "name the arguments: their order is easily mistaken")


def text(value: Any, where: str, role: str) -> None:
    if value is not None and not isinstance(value, str):
        said = f"{where} takes {role} as text, was given {short(value)}"
        raise wrong_type("NCC330", said, f'write {role}="..."')


def element_type(value: Any, where: str, role: str) -> None:
    """A spelling of a dtype, or None (NCC312)."""
    if value is not None:
        dtype_of(value)


def plain_arguments(function: Callable[..., Any]) -> Iterator[tuple[int, str, Check]]:
    """Position, name and check of the parameters that are flags, names and dtypes."""
    for at, (word, found) in enumerate(inspect.signature(function).parameters.items()):
        if str(found.annotation) in ("bool", "bool | None"):
            yield at, word, flag
        elif word in ("name", "dtype"):
            yield at, word, text if word == "name" else element_type


def hint_for(word: str, function: Callable[..., Any]) -> str:
    """What to write in the place of a keyword that a call does not take."""
    if word in ("mask", "dtype"):
        return GONE[word]
    known = known_order(function)
    return nearest(word, known) or f"it takes {listed(known)}"


def known_order(function: Callable[..., Any]) -> list[str]:
    return list(inspect.signature(function).parameters)


def ignoring(*words: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """`call` for a function that kernels of earlier releases pass more keywords."""
    return functools.partial(call, ignored=words)


# --- enumerations -------------------------------------------------------------------------------


def member(kind: type[E], value: Any, where: str, role: str) -> E:
    """The member of an enumeration that a member, number, name or None means (NCC351)."""
    if isinstance(value, kind):
        return value
    if value is None:
        return next(iter(kind))
    word = getattr(value, "name", value)  # an enumeration of the same names from elsewhere
    for one in kind if isinstance(word, Hashable) else ():  # an array compares by element
        if word in (one.name, one.value):
            return one
    raise wrong_type(
        "NCC351",
        f"{where} takes {role} as {listed([f'{kind.__name__}.{m.name}' for m in kind])},"
        f" was given {short(value)}",
        nearest(str(word), [m.name for m in kind]) or f"pass a member of nisa.{kind.__name__}",
    )


def engine_of(value: Any, where: str, *allowed: str) -> str:
    """The engine's name, which the call can run on (NCC343); `unknown` always can."""
    chosen = member(constants.engine, value, where, "engine").name
    if chosen != "unknown" and chosen not in allowed:
        raise wrong_engine(where, chosen, *allowed)
    return chosen


def wrong_engine(where: str, chosen: str, *allowed: str) -> Exception:
    runs = listed(allowed).replace(" and ", " or ")
    return invalid(
        "NCC343",
        f"{where} runs on the {runs} engine, not on {chosen}",
        f"leave engine out, or pass nisa.engine.{allowed[0]}",
    )


def no_psum(where: str, *tiles: Any) -> None:
    """The gpsimd engine reaches no PSUM (NCC343)."""
    for one in tiles:
        if getattr(one, "psum", False):
            raise invalid(
                "NCC343",
                f"{where} runs on the gpsimd engine, which cannot reach PSUM, and {one.show()} is"
                " there",
                "copy it to SBUF with nisa.tensor_copy, or use another engine",
            )


def reduce_name(value: Any, where: str) -> str:
    return member(constants.reduce_cmd, value, where, "reduce_cmd").name


def pair(where: str, trace: Trace | None = None) -> Trace:
    """The call meets the other core of a pair: trn2 or later, launched on two cores (NCC355)."""
    trace = trace or current(where)
    if generation(trace) < 3:
        raise invalid(
            "NCC347",
            f"{where} comes with trn2, the target is {trace.target.name}",
            "compile with --target trn2",
        )
    if trace.lnc != 2:
        raise invalid(
            "NCC355",
            f"{where} meets the other core of a pair, the kernel runs on {trace.lnc}",
            "launch it as kernel[2](...) or with --lnc 2, or guard the call with"
            " nl.num_programs(0) == 2",
        )
    return trace
