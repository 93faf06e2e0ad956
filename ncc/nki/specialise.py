"""Run a kernel's Python once for each core, and make of it what the compiler and simulator take."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import attrs

from ncc.errors import Place, nearest
from ncc.ir.core import Origin
from ncc.ir.kernel import Access, DeviceFor, DeviceWhile, Kernel, Rows, Scalar, Statement, ops_of
from ncc.ir.kernel_ops import OPS
from ncc.nki import holes, placed, unwritten
from ncc.nki.arguments import ArraySpec, walked
from ncc.nki.binding import Bound, name_of, place_of
from ncc.nki.dtypes import Dtype
from ncc.nki.options import Options
from ncc.nki.trace import (
    Instruction,
    NkiAssertionError,
    NkiValidationError,
    Storage,
    Trace,
    as_name,
    tracing,
)
from ncc.nki.warned import warned
from ncc.target import Target


@attrs.frozen
class Returned:
    """A tensor among the results: the elements of a buffer, and the type that the kernel named."""

    access: Access
    dtype: Dtype
    shape: tuple[int, ...]


@attrs.frozen(eq=False)
class Specialisation:
    """A kernel for one set of shapes, types and compile-time values.

    `results` is what the kernel returned, with a `Returned` for each tensor; `written` are the
    parameters that it writes; `kept` holds what later steps make of it.
    """

    kernels: tuple[Kernel, ...]
    specs: tuple[ArraySpec, ...]
    results: Any
    written: tuple[str, ...]
    target: Target
    place: Place
    form: str = "bir"
    kept: dict[str, Any] = attrs.field(factory=dict[str, Any])

    def trace(self, target: Target) -> tuple[Kernel, ...]:
        """The bodies, one a core, for nki-trace; they were recorded for one target."""
        if target != self.target:
            said = f"the kernel was traced for {self.target} and cannot be compiled for {target}"
            raise NkiValidationError("NCC304", said, self.place, "call it again for that target")
        return self.kernels


@attrs.define(eq=False)
class Run:
    """One core's run, before the cores are put together."""

    trace: Trace
    results: Any
    written: set[str]


Hook = Callable[[Trace, Any], Any]


def specialised(
    func: Callable[..., Any],
    bound: Bound,
    target: Target,
    options: Options,
    *,
    grid: tuple[int, ...] = (),
    programs: Sequence[Sequence[tuple[int, ...]]] = (((),),),
    simulated: bool = False,
    old: bool = False,
    on_chip_result: Hook | None = None,
    tensor: Any = None,
    finish: Callable[[Trace], None] | None = None,
) -> Specialisation:
    """Trace `func` once for each instance of the grid: `programs` has the instances of each core,
    by their indices in the grid. The older API hands in the class of its tensors, and what it does
    to a finished trace."""
    place = place_of(func)
    runs: list[Run] = []
    for core, instances in enumerate(programs):
        trace = Trace(
            name_of(func),
            target,
            lnc=len(programs),
            core=core,
            grid=grid,
            old=old,
            simulated=simulated,
        )
        results = _run(func, bound, trace, place, instances, on_chip_result, tensor)
        if finish is not None:
            finish(trace)
        holes.cleared(trace)
        if options.force_auto_alloc:
            _unplaced(trace)
        _schedule(trace, options, place)
        runs.append(Run(trace, results, set(_written(trace.bodies[0]))))
    warned(said for run in runs for said in run.trace.warnings)
    found = _together(runs, bound, target, place, options.form)
    warned(unwritten.sentences(found.kernels, simulated))
    if not simulated:
        warned(placed.sentences(found.kernels, target))
    return found


def _run(
    func: Callable[..., Any],
    bound: Bound,
    trace: Trace,
    place: Place,
    instances: Sequence[tuple[int, ...]],
    hook: Hook | None,
    kind: Any,
) -> Any:
    """Run every instance of one core, one after the other; what the first that returns returns."""
    from ncc.nki.tensor import NkiTensor
    from ncc.nki.tensor_base import register_of

    memory = "shared_hbm" if trace.lnc > 1 else "hbm"
    made: dict[str, Any] = {}
    with tracing(trace):
        for spec in bound.specs:
            storage = trace.allocate(spec.name, spec.dtype.bir, spec.shape, memory, kind="input")
            storage.buffer = attrs.evolve(storage.buffer, origin=Origin(place.file, place.line))
            made[spec.name] = (kind or NkiTensor).whole(storage, spec.dtype)

        def tensor(spec: ArraySpec, name: str) -> Any:
            return made[spec.name]

        def is_spec(value: Any) -> bool:
            return isinstance(value, ArraySpec)

        def result(value: Any, name: str) -> Returned | None:
            if isinstance(value, Instruction):
                return None  # a handle says nothing outside of its kernel
            if register_of(value) is not None:
                said = "the kernel returns a register, which lives only while it runs"
                hint = "store it into a tensor in shared_hbm and return that"
                raise NkiAssertionError("NCC306", said, place, hint)
            made = value.storage.buffer
            if hook is not None and made.memory != "shared_hbm" and made.kind != "input":
                value = hook(trace, value)
            return _returned(trace, value, place)

        def is_result(value: Any) -> bool:
            return isinstance(value, NkiTensor | Instruction) or register_of(value) is not None

        first: Any = None
        for program in instances:
            trace.program, trace.shared_counts = program, {}
            args = walked(bound.args, "", is_spec, tensor)
            kwargs = walked(bound.kwargs, "", is_spec, tensor)
            with memories_named(func):
                found = func(*args, **kwargs)
            if inspect.isgenerator(found) or inspect.iscoroutine(found):
                said = f"{name_of(func)} is a generator or async: nothing of its body has run"
                found.close()
                raise NkiAssertionError("NCC306", said, place, "return the results, do not yield")
            if trace.open_loops:
                raise trace.open_loops[-1].unclosed()
            found = walked(found, "result", is_result, result)
            first = found if first is None else first
        return first


@contextmanager
def memories_named(func: Any) -> Generator[None]:
    """Kernels of an early release name `sbuf`, `hbm`, ... without importing them."""
    from ncc.nki.regions import hbm, psum, sbuf, shared_hbm

    known = {"sbuf": sbuf, "psum": psum, "hbm": hbm, "shared_hbm": shared_hbm, "private_hbm": hbm}
    inner = inspect.unwrap(getattr(func, "func", func))
    scope = getattr(getattr(inner, "__func__", inner), "__globals__", {})
    missing = [name for name in known if name not in scope]
    scope.update({name: known[name] for name in missing})
    try:
        yield
    finally:
        for name in missing:
            scope.pop(name, None)


def _returned(trace: Trace, value: Any, place: Place) -> Returned:
    """One returned tensor; NCC306 unless it lies in shared_hbm or is an argument."""
    storage: Storage = value.storage
    if trace.storages.get(storage.buffer.name) is not storage:
        said = f"the kernel returns {value.name}, a tensor of another run"
        raise NkiAssertionError("NCC306", said, place, "return one that this call allocated")
    made = storage.buffer
    if made.memory != "shared_hbm" and made.kind != "input":
        said = (
            f"the kernel returns {made.name}, which is in {made.memory}, "
            "and results leave from shared_hbm"
        )
        where = made.origin.place(value=made.name) if made.origin.file else place
        hint = "allocate it with nl.ndarray(shape, dtype, buffer=nl.shared_hbm) and copy into it"
        raise NkiAssertionError("NCC306", said, where, hint)
    if made.kind == "internal":
        storage.buffer = attrs.evolve(made, kind="output")
    access = value.access()
    if access.moves:
        said = f"the kernel returns a view of {made.name} whose place is known only at run time"
        raise NkiAssertionError("NCC306", said, place, "copy it into a tensor of its own")
    return Returned(access, value.dtype, tuple(value.shape))


def _written(body: Sequence[Statement]) -> Iterator[str]:
    """The buffers that some op writes."""
    for op in ops_of(tuple(body)):
        for role in OPS[op.op].writes:
            plain = role.rstrip("*?")
            for name, arg in op.args:
                same = name == plain or (role.endswith("*") and name.rstrip("0123456789") == plain)
                if same and isinstance(arg, Access):
                    yield arg.buffer


def _unplaced(trace: Trace) -> None:
    """Drop the places that the kernel chose."""
    for storage in trace.storages.values():
        if storage.buffer.address is not None:
            storage.buffer = attrs.evolve(storage.buffer, address=None)


def _schedule(trace: Trace, options: Options, place: Place) -> None:
    """The edges of `with_schedule`, by the names of instructions."""
    if not options.schedule:
        return
    order = {op.name: n for n, op in enumerate(ops_of(tuple(trace.bodies[0])))}
    for wanted, before in options.schedule:
        consumer, producers = as_name(wanted), [as_name(name) for name in before]
        for name in (consumer, *producers):
            if name not in order:
                said = (
                    f"with_schedule names {name!r}, and no instruction of the kernel is called that"
                )
                hint = nearest(name, order) or "give the instruction a name= first"
                raise NkiValidationError("NCC381", said, place, hint)
        for producer in producers:
            if order[producer] >= order[consumer]:
                said = f"with_schedule wants {consumer!r} behind {producer!r}, which comes later"
                hint = "results follow program order; name the earlier one as producer"
                raise NkiValidationError("NCC381", said, place, hint)
            trace.order(consumer, producer)


# --- the cores together ---------------------------------------------------------------------------


def _together(
    runs: list[Run], bound: Bound, target: Target, place: Place, form: str
) -> Specialisation:
    first = runs[0]
    for other in runs[1:]:
        _pair(first, other, place)
    written = set[str]().union(*(run.written for run in runs))
    results = next((r.results for r in runs if r.results is not None), None)
    leaves = list(returned_of(results))
    outputs = {one.access.buffer for one in leaves}
    params = tuple(spec.name for spec in bound.specs)
    _all_written(runs, written, outputs - set(params), place)
    kernels: list[Kernel] = []
    for run in runs:
        for storage in run.trace.storages.values():
            made = storage.buffer
            kind = made.kind
            if made.name in params:
                kind = "inout" if made.name in written else "input"
            elif made.memory == "shared_hbm" and made.name in outputs:
                kind = "output"
            if kind != made.kind:
                storage.buffer = attrs.evolve(made, kind=kind)
        kernels.append(run.trace.kernel(params, tuple(one.access for one in leaves)))
    writes = tuple(name for name in params if name in written)
    return Specialisation(tuple(kernels), bound.specs, results, writes, target, place, form)


def returned_of(results: Any) -> Iterator[Returned]:
    """The tensors among the results, in order."""
    found: list[Returned] = []
    walked(results, "", lambda v: isinstance(v, Returned), lambda v, _: found.append(v))
    yield from found


def _all_written(runs: list[Run], written: set[str], outputs: set[str], place: Place) -> None:
    for run in runs:
        for name in sorted(outputs - written):
            storage = run.trace.storages.get(name)
            if storage is None or 0 in storage.buffer.shape or storage.buffer.data is not None:
                continue
            said = f"the kernel returns {name} and never writes it"
            where = storage.buffer.origin.place(value=name) if storage.buffer.origin.file else place
            hint = "copy the result into it, or do not return it"
            raise NkiAssertionError("NCC307", said, where, hint)


def _pair(first: Run, other: Run, place: Place) -> None:
    """Give the other core's shared tensors the first core's names: by name and its occurrence,
    unnamed ones by the order of their allocation."""
    theirs = dict(_shared(first.trace))
    new: dict[str, str] = {}
    for key, storage in _shared(other.trace):
        match = theirs.get(key)
        if match is None:
            continue
        a, b = match.buffer, storage.buffer
        if (a.shape, a.dtype) != (b.shape, b.dtype):
            said = (
                f"the cores allocate {a.name} in shared_hbm as {a.dtype} {list(a.shape)}"
                f" and {b.dtype} {list(b.shape)}"
            )
            where = b.origin.place(value=a.name) if b.origin.file else place
            raise NkiAssertionError("NCC382", said, where, "name the tensors differently")
        if a.name != b.name:
            new[b.name] = a.name
    if new:
        _rename(other, new)


def _shared(trace: Trace) -> Iterator[tuple[tuple[str, int], Storage]]:
    seen: dict[str, int] = {}
    for storage in trace.storages.values():
        if storage.buffer.memory == "shared_hbm":
            seen[storage.wish] = n = seen.get(storage.wish, 0) + 1
            yield (storage.wish, n), storage


def _rename(run: Run, new: dict[str, str]) -> None:
    """Buffers of one core under other names; a private one that has such a name gives way."""
    names = set(run.trace.storages)
    for wanted in set(new.values()) - new.keys():
        if wanted in names:
            new[wanted] = run.trace.fresh(wanted)
    for storage in run.trace.storages.values():
        name = storage.buffer.name
        if name in new:
            storage.buffer = attrs.evolve(storage.buffer, name=new[name])
    run.trace.storages = {s.buffer.name: s for s in run.trace.storages.values()}
    run.trace.bodies[0] = [_renamed(one, new) for one in run.trace.bodies[0]]
    run.written = {new.get(name, name) for name in run.written}
    run.results = walked(
        run.results,
        "",
        lambda v: isinstance(v, Returned),
        lambda v, _: attrs.evolve(v, access=_renamed(v.access, new)),
    )


def _renamed(node: Any, new: dict[str, str]) -> Any:
    match node:
        case Access():
            name = new.get(node.buffer, node.buffer)
            moves = tuple(_renamed(m, new) for m in node.moves)
            if name is node.buffer and not moves:
                return node
            return attrs.evolve(node, buffer=name, moves=moves)
        case Scalar() | Rows():
            return attrs.evolve(node, source=_renamed(node.source, new))
        case DeviceFor() | DeviceWhile():
            return attrs.evolve(node, body=tuple(_renamed(s, new) for s in node.body))
        case _ if hasattr(node, "args"):
            return attrs.evolve(node, args=tuple((r, _renamed(a, new)) for r, a in node.args))
        case _:
            return node
