"""`nki.jit` and the object that it makes of a kernel: called on arrays, it gives arrays."""

from __future__ import annotations

import os
import sys
import warnings
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import cache, partial, update_wrapper
from types import MethodType
from typing import Any, ClassVar, Self, cast

import attrs

from ncc.errors import Place
from ncc.nki.arguments import closure_key
from ncc.nki.arrays import outside
from ncc.nki.binding import Bound, bind, name_of, place_of
from ncc.nki.options import Options, edges
from ncc.nki.specialise import Specialisation, specialised
from ncc.nki.targets import default_target
from ncc.nki.trace import NkiTypeError, NkiValidationError, invalid, is_tracing
from ncc.nki.warned import warned
from ncc.target import Target

KEPT = 64  # specialisations that a kernel remembers
OPTIONS = "__nki_options__"  # of a function that is to become a kernel of the older API
IGNORED = ("NKI_FRONTEND", "NKI_COMPILER_FRONTEND")


class JitKernel:
    """A kernel: `.func` is the plain function; `kernel[2]` runs on two cores.

    Called on arrays it is compiled and runs on the machine; called inside a kernel it is that
    function, inlined.
    """

    __name__: str

    old: ClassVar[bool] = False  # the older API has grids of any shape
    remembers: ClassVar[bool] = True

    def __init__(
        self,
        func: Callable[..., Any],
        options: Options | None = None,
        grid: tuple[int, ...] = (),
        known: OrderedDict[Hashable, Specialisation] | None = None,
    ) -> None:
        self.func, self.options, self.grid = func, options or Options(), grid
        self._known = OrderedDict[Hashable, Specialisation]() if known is None else known
        update_wrapper(self, getattr(func, "func", func), updated=())
        self.__wrapped__ = func
        self.__name__ = self.__dict__.get("__name__", name_of(func))

    def with_options(self, **changed: Any) -> Self:
        """The same kernel, compiled in another way."""
        return type(self)(self.func, attrs.evolve(self.options, **changed), self.grid, self._known)

    def with_schedule(self, schedule: Any) -> Self:
        """The same kernel with `(consumer, producers)` edges between named instructions."""
        return self.with_options(schedule=(*self.options.schedule, *edges(schedule)))

    def __getitem__(self, grid: Any) -> Self:
        axes: tuple[Any, ...] = tuple(cast(Any, grid)) if isinstance(grid, tuple) else (grid,)
        return type(self)(self.func, self.options, self.checked_grid(axes), self._known)

    def checked_grid(self, axes: tuple[Any, ...]) -> tuple[int, ...]:
        """The grid as integers: one axis, the cores that share the kernel. NCC304."""
        shown = ", ".join(map(str, axes))
        try:
            found = tuple(int(getattr(n, "value", n)) for n in axes)
        except (TypeError, ValueError):
            found = ()
        if len(found) != 1 or found[0] not in (1, 2):
            said = f"{self.__name__}[{shown}] is no grid: it is the number of cores, 1 or 2"
            hint = "write [1] or [2], and loop inside the kernel"
            raise NkiValidationError("NCC304", said, place_of(self.func), hint)
        return found

    def __get__(self, owner: Any, kind: type | None = None) -> JitKernel:
        if owner is None:
            return self
        return type(self)(MethodType(self.func, owner), self.options, self.grid)

    def __getattr__(self, name: str) -> Any:
        """What was set on the function can be read on the kernel."""
        if name.startswith("__") or name == "func":
            raise AttributeError(name)
        return getattr(self.func, name)

    def __repr__(self) -> str:
        shown = f"[{', '.join(map(str, self.grid))}]" if self.grid else ""
        return f"<kernel {name_of(self.func)}{shown}>"

    # --- calls --------------------------------------------------------------------------------

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if is_tracing():
            return self.inlined(args, kwargs)
        if "jax" in sys.modules:
            from ncc.nki.in_jax import custom_call, is_traced

            if is_traced(args, kwargs):
                return custom_call(self, args, kwargs, default_target())
        simulated = os.environ.get("NKI_SIMULATOR", "0") not in ("", "0")
        return self.run(args, kwargs, simulated=simulated)

    def inlined(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call by a kernel: part of it. NCC304 when it asks for other cores than the caller's."""
        from ncc.nki.trace import current

        cores = current().lnc
        if self.grid and self.grid[0] not in (1, cores):
            said = f"{self.__name__} asks for {self.grid[0]} cores, and its caller runs on {cores}"
            raise invalid("NCC304", said, "call it without [...]; it runs on the caller's cores")
        return self.func(*args, **kwargs)

    def run(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        simulated: bool,
        target: Target | None = None,
    ) -> Any:
        """Trace (or remember), compile or simulate, update the arrays that were written, return."""
        from ncc.nki.outcome import delivered
        from ncc.nki.running import compiled, forgotten, interpreted

        report_ignored()
        target = target or default_target()
        bound = bind(self.func, args, kwargs, target)
        run = interpreted if simulated else compiled
        try:
            found = self.specialisation(bound, target, simulated)
            warned(forgotten(found, simulated))
            return delivered(found, bound.arrays, run)
        except MemoryError:
            said = f"{self.__name__} needs more memory than there is here"
            hint = "try it with smaller shapes"
            raise NkiValidationError("NCC011", said, place_of(self.func), hint) from None
        except RecursionError:
            said = f"{self.__name__} calls itself without an end, or returns what holds itself"
            hint = "give the recursion an end that is known while tracing"
            raise NkiValidationError("NCC306", said, place_of(self.func), hint) from None

    def specialisation(
        self, bound: Bound, target: Target, simulated: bool = False
    ) -> Specialisation:
        """The kernel for these shapes, types and values; traced once for each combination."""
        target = self.options.machine(target)
        key: Hashable = None
        if self.remembers and bound.key is not None:
            key = (
                self.func,
                closure_key(self.func),
                bound.key,
                self.grid,
                self.options,
                target,
                simulated,
            )
            try:
                found = self._known.get(key)
            except TypeError:  # a method of an object without a hash
                key, found = None, None
            if found is not None and key is not None:
                self._known.move_to_end(key)
                return found
        made = self.traced(bound, target, simulated)
        if key is not None:
            self._known[key] = made
            if len(self._known) > KEPT:
                self._known.popitem(last=False)
        return made

    def traced(self, bound: Bound, target: Target, simulated: bool) -> Specialisation:
        cores = self.grid[0] if self.grid else 1
        return specialised(
            self.func,
            bound,
            target,
            self.options,
            grid=self.grid,
            programs=[[(core,)] for core in range(cores)],
            simulated=simulated,
        )


@cache
def _told(variable: str, value: str) -> None:
    said = f"{variable}={value} is ignored: ncc runs a kernel's Python and never reads its source"
    warnings.warn(said, stacklevel=outside())


def report_ignored() -> None:
    for variable in IGNORED:
        if value := os.environ.get(variable):
            _told(variable, value)


def jit(func: Any = None, **kwargs: Any) -> Any:
    """Make a kernel of a function: `@nki.jit`, `@nki.jit()` or `nki.jit(f)`.

    `mode` and the other keywords change nothing. NCC309 for `platform_target`, NCC303 for what is
    no function.
    """
    return jitted(JitKernel, func, kwargs)


def jitted(kind: type[JitKernel], func: Any, kwargs: dict[str, Any]) -> Any:
    if kwargs.get("platform_target") is not None and not kind.old:
        said = "jit takes no platform_target: a kernel has no target of its own"
        hint = "set NEURON_PLATFORM_TARGET_OVERRIDE, or give --target"
        raise NkiTypeError("NCC309", said, _caller(func), hint)
    if func is None:
        return partial(_later, kind, kwargs)
    rest = tuple(sorted((k, v) for k, v in kwargs.items() if k != "mode" and v is not None))
    if isinstance(func, JitKernel):
        rest = tuple(sorted({**dict(func.options.rest), **dict(rest)}.items()))
        return kind(func.func, attrs.evolve(func.options, rest=rest), func.grid)
    what: object = func
    if isinstance(what, staticmethod | classmethod):
        return type(func)(jitted(kind, func.__func__, kwargs))
    if not callable(func) or isinstance(func, type):
        said = f"jit takes a function, was given {type(func).__name__}"
        raise NkiTypeError("NCC303", said, _caller(func), "write @nki.jit directly above a def")
    return kind(func, attrs.evolve(getattr(func, OPTIONS, Options()), rest=rest))


def _later(kind: type[JitKernel], kwargs: dict[str, Any], func: Any) -> Any:
    return jitted(kind, func, kwargs)


def _caller(func: Any) -> Place:
    from ncc.nki.trace import place

    return place_of(func) if callable(func) and not isinstance(func, type) else place()


def option(name: str, **fields: Any) -> Callable[..., Any]:
    """A decorator that stands above `@nki.jit` and changes how the kernel is compiled."""

    def decorate(func: Any = None, **keywords: Any) -> Any:
        if func is None:
            return decorate
        if not isinstance(func, JitKernel):
            said = f"@{name} stands below @nki.jit, or without it"
            hint = f"write @{name} above @nki.jit: it changes the kernel that jit makes"
            raise NkiTypeError("NCC303", said, _caller(func), hint)
        return func.with_options(**fields)

    decorate.__name__ = decorate.__qualname__ = name
    return decorate
