"""The one live trace: what the kernel's Python records while it runs.

A kernel is run, never read. Each call of the API appends one `KernelOp` to the open body, with the
kernel's file and line. Exactly one trace is alive at a time; an API call outside it is an error.
"""

from __future__ import annotations

import os
import re
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from inspect import currentframe
from keyword import iskeyword
from pathlib import Path
from typing import TYPE_CHECKING, Any

import attrs

from ncc.errors import NccError, Place
from ncc.ir.core import Origin
from ncc.ir.data import Data
from ncc.ir.kernel import Access, Arg, Buffer, Kernel, KernelOp, Reg, Statement
from ncc.ir.kernel_ops import OPS
from ncc.target import Target

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ncc.ir.kernel_folded import Ran

HERE = str(Path(__file__).parent) + os.sep  # frames in here are the API, not the kernel


class NkiValidationError(NccError):
    """A rule of the machine that a call breaks."""


class NkiAssertionError(NccError, AssertionError):
    """A shape, rank or buffer that a call does not take."""


class NkiTypeError(NccError, TypeError):
    """A dtype, keyword or Python construct that a call does not take."""


def as_name(wish: str) -> str:
    """A name that prints: Python's rules, `_` for what they do not allow."""
    if wish.isidentifier() and not iskeyword(wish):
        return wish
    return "t_" + re.sub(r"\W", "_", wish)


class NkiAttributeError(NccError, AttributeError):
    """A name that a module of the API does not have."""


@attrs.define(eq=False)
class Storage:
    """One allocation while tracing: the buffer that it will be, and what the tracer knows of it.

    `scope` is the device loop in whose body it was made (0 outside of any): it lives no longer.
    `written` marks, for PSUM, the elements that were written since the allocation (by flat index);
    it is made on first use.
    """

    buffer: Buffer
    scope: int = 0
    written: NDArray[np.bool_] | None = None
    touched: bool = False  # an instruction wrote it
    filled: bool = False  # PSUM: a memset wrote something else than 0 there
    wish: str = ""  # the name that was asked for
    owner: Trace | None = None
    loop: Any = None  # older API: the loop whose body made it
    zero: bool = False  # older API: reads as zeros where nothing was written
    left: Any = None  # older API: the rectangle that the mask of the call that made it left


@attrs.define(eq=False)
class Instruction:
    """What a call returns: a handle for explicit order."""

    op_name: str
    trace: Trace

    def depends_on(self, *producers: Any) -> Instruction:
        """Keep this instruction behind `producers`; results never change."""
        for one in producers:
            if not isinstance(one, Instruction):
                said = f"depends_on takes what calls of nki.isa return, was given {one!r:.40}"
                raise wrong_type("NCC330", said, "keep the value of the earlier call")
            self.trace.order(self.op_name, one.op_name)
        return self


@attrs.define(eq=False)
class Trace:
    """One run of a kernel for one core."""

    name: str
    target: Target
    lnc: int = 1
    core: int = 0
    grid: tuple[int, ...] = ()  # () without a grid; older API: any number of axes
    program: tuple[int, ...] = ()  # this instance's index on each axis of the grid
    old: bool = False  # the kernel is written in the older API
    simulated: bool = False  # for `nki.simulate`: no capacity, quiet rules
    storages: dict[str, Storage] = attrs.field(factory=dict[str, Storage])
    bodies: list[list[Statement]] = attrs.field(factory=lambda: [[]])
    scopes: list[int] = attrs.field(factory=lambda: [0])  # device loops that are open
    scope_count: int = 0
    order_pairs: dict[str, list[str]] = attrs.field(factory=dict[str, list[str]])
    no_reorder: int = 0  # how many such blocks are open
    last_ordered: str = ""
    open_loops: list[Any] = attrs.field(factory=list[Any])  # of `dynamic_range`, innermost last
    # tensors in shared_hbm by the name that was asked for and its occurrence in this instance
    shared: dict[tuple[str, int], Storage] = attrs.field(factory=dict[tuple[str, int], Storage])
    shared_counts: dict[str, int] = attrs.field(factory=dict[str, int])
    names: set[str] = attrs.field(factory=set[str])
    tried: dict[str, int] = attrs.field(factory=dict[str, int])  # the last number after each wish
    count: int = 0
    registers: int = 0
    ranges: list[Any] = attrs.field(factory=list[Any])  # older API: loops whose body is running
    ran: list[Ran] = attrs.field(factory=list["Ran"])  # older API: those that become axes
    places: dict[Any, Any] = attrs.field(factory=dict[Any, Any])  # older API: directives by line
    temporary: set[str] = attrs.field(factory=set[str])  # older API: results of calls, by buffer
    warnings: list[str] = attrs.field(factory=list[str])

    # --- names --------------------------------------------------------------------------------

    def fresh(self, wish: str) -> str:
        """A name nobody has: `wish`, or `wish_2`, `wish_3`, ..."""
        wish = as_name(wish)
        name, n = wish, self.tried.get(wish, 1)
        while name in self.names:
            n += 1
            name = f"{wish}_{n}"
        self.names.add(name)
        self.tried[wish] = n
        return name

    # --- buffers ------------------------------------------------------------------------------

    def allocate(
        self,
        wish: str,
        dtype: str,
        shape: tuple[int, ...],
        memory: str,
        *,
        kind: str = "internal",
        address: tuple[int, int] | None = None,
        data: Data | None = None,
    ) -> Storage:
        """A new buffer; its name is `wish` made unique. The caller has checked the shape.

        In shared_hbm the instances of a grid that one core runs allocate the same buffers: those of
        one name pair by their occurrence, those without a name by their order.
        """
        key = (wish, 0)
        if memory == "shared_hbm" and kind == "internal":
            key = (wish, self.shared_counts.get(wish, 0) + 1)
            self.shared_counts[wish] = key[1]
            if (found := self.shared.get(key)) is not None:
                same_tensor(found.buffer, dtype, shape)
                return found
        name = self.fresh(wish or f"t{len(self.storages)}")
        made = Buffer(name, dtype, shape, memory, kind, address, data, here())
        storage = Storage(made, self.scopes[-1], owner=self, wish=wish)
        self.storages[name] = storage
        if key[1]:
            self.shared[key] = storage
        return storage

    def register(self, dtype: str = "int32") -> Reg:
        self.registers += 1
        return Reg(f"r{self.registers - 1}", dtype)

    # --- ops ----------------------------------------------------------------------------------

    def emit(
        self,
        op: str,
        args: Mapping[str, Arg | None],
        keys: Mapping[str, Any] | None = None,
        *,
        engine: str = "unknown",
        name: str | None = None,
    ) -> Instruction:
        """Append one op. `args` by role (None: left out); `keys` in full or in part: what equals
        the row's default is dropped."""
        if name is not None and type(name) is not str:
            said = f"{op} takes name as text, was given {name!r:.40}"
            raise wrong_type("NCC330", said, 'write name="..."')
        usual = OPS[op].keys
        kept = tuple(sorted((k, v) for k, v in (keys or {}).items() if v != usual[k]))
        own = self.fresh(name or f"i{self.count}")
        self.count += 1
        given = tuple((role, arg) for role, arg in args.items() if arg is not None)
        made = KernelOp(own, op, given, kept, engine, (), here())
        self.bodies[-1].append(made)
        if self.no_reorder:
            if self.last_ordered:
                self.order(own, self.last_ordered)
            self.last_ordered = own
        return Instruction(own, self)

    def order(self, consumer: str, producer: str) -> None:
        self.order_pairs.setdefault(consumer, []).append(producer)

    @contextmanager
    def body(self) -> Generator[list[Statement]]:
        """The body of a device loop: what is recorded inside goes there."""
        self.scope_count += 1
        self.scopes.append(self.scope_count)
        self.bodies.append([])
        try:
            yield self.bodies[-1]
        finally:
            self.bodies.pop()
            self.scopes.pop()

    def kernel(self, params: tuple[str, ...], results: tuple[Access, ...]) -> Kernel:
        """What was recorded, finished: the explicit order put in place."""
        if self.open_loops:
            raise self.open_loops[-1].unclosed()
        body = _ordered(tuple(self.bodies[0]), self.order_pairs)
        buffers = tuple(s.buffer for s in self.storages.values())
        made = Kernel(self.name, buffers, params, results, body, self.core)
        if not self.ran:
            return made
        from ncc.ir.kernel_fold import folded

        return folded(made, self.ran)


def same_tensor(one: Buffer, dtype: str, shape: tuple[int, ...]) -> None:
    """NCC382 unless a tensor in shared_hbm is the same for whoever allocates it."""
    if (one.dtype, one.shape) != (dtype, shape):
        said = (
            f"{one.name} in shared_hbm is allocated as {one.dtype} {list(one.shape)}"
            f" and as {dtype} {list(shape)}"
        )
        raise invalid("NCC382", said, "give the tensors different names", one.name)


def _ordered(body: tuple[Statement, ...], pairs: dict[str, list[str]]) -> tuple[Statement, ...]:
    if not pairs:
        return body
    found: list[Statement] = []
    for one in body:
        if isinstance(one, KernelOp):
            after = pairs.get(one.name)
            found.append(attrs.evolve(one, after=tuple(dict.fromkeys(after))) if after else one)
        else:
            found.append(attrs.evolve(one, body=_ordered(one.body, pairs)))
    return tuple(found)


_live: list[Trace] = []


@contextmanager
def tracing(trace: Trace) -> Generator[Trace]:
    """Make `trace` the live one."""
    _live.append(trace)
    try:
        yield trace
    finally:
        _live.pop()


def is_tracing() -> bool:
    return bool(_live)


def current(what: str = "this call") -> Trace:
    """The live trace; NCC301 outside a kernel (`err_nki_api_outside_of_nki_kernel`)."""
    if not _live:
        hint = "call it from a function under @nki.jit, or run that with nki.simulate"
        raise NkiValidationError("NCC301", f"{what} runs only inside a kernel", place(), hint)
    return _live[-1]


def here() -> Origin:
    """The line of the kernel that runs: the innermost frame outside the API."""
    frame = currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    if frame is None:
        return Origin()
    return Origin(frame.f_code.co_filename.rpartition(os.sep)[2], frame.f_lineno)


def place(value: str = "") -> Place:
    return here().place(value)


def invalid(code: str, said: str, hint: str = "", value: str = "") -> NkiValidationError:
    """A broken rule of the machine, at the kernel's line: ready to raise."""
    return NkiValidationError(code, said, place(value), hint)


def wrong_shape(code: str, said: str, hint: str = "", value: str = "") -> NkiAssertionError:
    return NkiAssertionError(code, said, place(value), hint)


def wrong_type(code: str, said: str, hint: str = "", value: str = "") -> NkiTypeError:
    return NkiTypeError(code, said, place(value), hint)
