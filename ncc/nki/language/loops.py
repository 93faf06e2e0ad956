"""Loops. Every range is Python iteration; `fori_loop`, `while_loop` and `dynamic_range` are loops
that the machine runs, whose body is traced once."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator
from contextlib import contextmanager
from operator import index as as_int
from typing import Any

from ncc.ir.kernel import DeviceFor, DeviceWhile, Imm, Reg
from ncc.nki.registers import Held, NkiScalar, VirtualRegister
from ncc.nki.tensor import NkiTensor
from ncc.nki.trace import NkiValidationError, Trace, current, here, invalid, wrong_shape, wrong_type

LOAD = "load the value into a register first: nisa.register_load, or nisa.scalar_load"


# --- ranges ---------------------------------------------------------------------------------------


def _counted(name: str, start: Any, stop: Any, step: Any) -> range:
    if stop is None:
        start, stop = 0, start
    first, last, by = (_known(x, name) for x in (start, stop, step))
    if by == 0:
        raise wrong_type("NCC363", f"nl.{name} takes a step that is not 0", "leave it out")
    return range(first, last, by)


def _known(bound: Any, name: str) -> int:
    """A bound that is known while tracing (NCC363)."""
    if isinstance(bound, Held):
        said = f"nl.{name} runs while the kernel is traced, its bound is a register"
        raise wrong_type("NCC363", said, "nl.fori_loop(lower, upper, body) counts on the machine")
    if isinstance(bound, NkiTensor):
        said = f"nl.{name} runs while the kernel is traced, its bound is the tensor {bound.name}"
        raise wrong_type("NCC363", said, f"{LOAD}, then nl.fori_loop(lower, upper, body)")
    try:
        return as_int(bound)
    except TypeError:
        if isinstance(bound, float) and bound.is_integer():
            hint = "divide with //"
        else:
            hint = "pass an int"
        said = f"nl.{name} takes whole numbers, was given {bound!r:.40}"
        raise wrong_type("NCC363", said, hint) from None


def range_(start: Any, stop: Any = None, step: Any = 1, **ignored: Any) -> range:
    """Python's `range`; the object may also be an index."""
    return _counted("range", start, stop, step)


def static_range(start: Any, stop: Any = None, step: Any = 1, **ignored: Any) -> range:
    """Python's `range`: the body is recorded once for each index."""
    return _counted("static_range", start, stop, step)


def affine_range(start: Any, stop: Any = None, step: Any = 1, **ignored: Any) -> range:
    """The same; the name, and every further keyword, means nothing any more."""
    return _counted("affine_range", start, stop, step)


def sequential_range(start: Any, stop: Any = None, step: Any = 1, **ignored: Any) -> range:
    """The same."""
    return _counted("sequential_range", start, stop, step)


range_.__name__ = range_.__qualname__ = "range"


# --- loops of the machine -------------------------------------------------------------------------


def _open(name: str) -> Trace:
    trace = current(f"nl.{name}")
    if trace.no_reorder:
        said = f"nl.{name} inside nl.no_reorder: a block in fixed order holds no device loop"
        raise invalid("NCC363", said, "close the block before the loop, or open it in the body")
    return trace


def _bound(value: Any, name: str, what: str) -> Imm | Reg:
    if isinstance(value, Held):
        if value.reg.dtype == "float32":
            said = f"nl.{name} takes a whole number as {what}, was given a float32 register"
            raise wrong_type("NCC363", said, "make the register of an int, or of an int32 tile")
        return value.reg
    if isinstance(value, NkiTensor):
        said = f"nl.{name} takes a number or a register as {what}, was given {value.name}"
        raise wrong_type("NCC363", said, LOAD)
    try:
        number = as_int(value)
    except TypeError:
        said = f"nl.{name} takes a number or a register as {what}, was given {value!r:.40}"
        raise wrong_type("NCC363", said, "an int, a VirtualRegister or an NkiScalar") from None
    if abs(number) >= 1 << 31:
        said = f"nl.{name} counts in 32 bits, was given {number} as {what}"
        raise wrong_shape("NCC363", said, "stay below 2^31")
    return Imm(number)


def _step(value: Any, name: str) -> int:
    try:
        step = 0 if isinstance(value, Held) else as_int(value)
    except TypeError:
        step = 0
    if step < 1:
        shown = "a register" if isinstance(value, Held) else f"{value!r:.40}"
        said = f"nl.{name} takes a step of 1 or more that is known while tracing, not {shown}"
        raise wrong_shape("NCC363", said, "count upwards, and compute the index from the count")
    return step


def _body(body: Any, name: str) -> Callable[[Any], Any]:
    if not callable(body):
        said = f"nl.{name} takes a function as its body, was given {body!r:.40}"
        raise wrong_type("NCC363", said, "def body(i): ...")
    try:
        inspect.signature(body).bind(None)
    except TypeError:
        said = f"nl.{name} calls its body with one value, and the body takes others"
        raise wrong_type("NCC363", said, "def body(i): ...") from None
    except ValueError:
        pass  # a function of C that does not say what it takes
    return body


def fori_loop(lower: Any, upper: Any, body_fun: Any, step: Any = 1) -> None:
    """`for i in range(lower, upper, step): body_fun(i)`, run by the machine.

    `body_fun` is called once, with a number that the machine knows. What it keeps from one turn to
    the next is in tensors from outside the loop.
    """
    trace = _open("fori_loop")
    first, last = _bound(lower, "fori_loop", "lower"), _bound(upper, "fori_loop", "upper")
    by, body = _step(step, "fori_loop"), _body(body_fun, "fori_loop")
    plain = isinstance(lower, VirtualRegister) or isinstance(upper, VirtualRegister)
    var = trace.register()
    name, origin = trace.fresh("loop"), here()
    with trace.body() as recorded:
        body((VirtualRegister if plain else NkiScalar)(var, frozen=True))
    trace.bodies[-1].append(DeviceFor(name, var, first, last, by, tuple(recorded), origin))


def while_loop(init: Any, body_fun: Any) -> None:
    """`r = init; while r != 0: r = body_fun(r)`, run by the machine.

    `body_fun` is called once with the condition, by value, and returns the next condition.
    """
    trace = _open("while_loop")
    first, body = _bound(init, "while_loop", "init"), _body(body_fun, "while_loop")
    condition, given = trace.register(), trace.register()
    name, origin = trace.fresh("loop"), here()
    trace.emit("register_move", {"dst": condition, "src": first})
    with trace.body() as recorded:
        trace.emit("register_move", {"dst": given, "src": condition})
        held = NkiScalar(given) if isinstance(init, NkiScalar) else VirtualRegister(given)
        following = body(held)
        if following is None:
            said = "the body of nl.while_loop returns None, and must return the next condition"
            raise wrong_type("NCC363", said, "return the register that is 0 when the loop is done")
        source = _bound(following, "while_loop", "the next condition")
        trace.emit("register_move", {"dst": condition, "src": source})
    trace.bodies[-1].append(DeviceWhile(name, condition, tuple(recorded), origin))


class DynamicRange(Iterator[VirtualRegister]):
    """`for i in nl.dynamic_range(...)`: Python runs the body once, the machine many times.

    The iterator opens the loop's body when it hands out the index and closes it when Python asks
    for the next one. A `break` never asks: the trace remembers loops that stay open.
    """

    def __init__(self, first: Imm | Reg, last: Imm | Reg, step: int) -> None:
        self.trace = _open("dynamic_range")
        self.first, self.last, self.step = first, last, step
        self.var = self.trace.register()
        self.name, self.origin = self.trace.fresh("loop"), here()
        self.opened: Any = None
        self.recorded: list[Any] = []

    def __next__(self) -> VirtualRegister:
        if self.opened is None:
            self.opened = self.trace.body()
            self.recorded = self.opened.__enter__()
            self.trace.open_loops.append(self)
            return VirtualRegister(self.var, frozen=True)
        if self.trace.open_loops and self.trace.open_loops[-1] is self:
            self.trace.open_loops.pop()
            self.opened.__exit__(None, None, None)
            body = tuple(self.recorded)
            made = DeviceFor(
                self.name, self.var, self.first, self.last, self.step, body, self.origin
            )
            self.trace.bodies[-1].append(made)
        raise StopIteration

    def unclosed(self) -> NkiValidationError:
        """Python never asked for the next index: ready to raise."""
        said = "Python left the loop of nl.dynamic_range before its end"
        hint = "no break or return in its body: the machine runs every turn"
        return NkiValidationError("NCC363", said, self.origin.place(), hint)


def dynamic_range(start: Any, stop: Any = None, step: Any = 1, **ignored: Any) -> DynamicRange:
    """A loop of the machine in the form of a Python loop; its index is a register."""
    first, last = (0, start) if stop is None else (start, stop)
    return DynamicRange(
        _bound(first, "dynamic_range", "start"),
        _bound(last, "dynamic_range", "stop"),
        _step(step, "dynamic_range"),
    )


@contextmanager
def no_reorder(*ignored: Any, **more: Any) -> Generator[None]:
    """What is recorded inside, in called functions too, keeps its order."""
    trace = current("nl.no_reorder")
    if not trace.no_reorder:
        trace.last_ordered = ""
    trace.no_reorder += 1
    try:
        yield
    finally:
        trace.no_reorder -= 1
