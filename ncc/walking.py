"""The driver's walk: the passes of a plan one after the other, with observers that look on.

Printing, drawing, timing, checking and recording are observers and live nowhere else. Verification
runs after every pass, always.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import attrs

from ncc import passes
from ncc.errors import NccError, Place, UsageError, nearest
from ncc.passes.base import Pass
from ncc.stages import Stage, facts_of, level
from ncc.verify import Verifier

if TYPE_CHECKING:
    from ncc.values import Array


@attrs.frozen
class Step:
    """One pass that ran: its name (`.2` for a second stand), both stages, seconds of each kind."""

    name: str
    pass_: Pass
    before: Stage
    after: Stage
    seconds: float
    verify_seconds: float

    @property
    def changed(self) -> bool:
        return self.before.module is not self.after.module


class Observer(Protocol):
    """Whoever wants to see the stages: `start` gets the input, `step` each pass that ran."""

    def start(self, stage: Stage) -> None: ...

    def step(self, step: Step) -> None: ...


class Stop(Exception):
    """An observer has seen enough; whoever called the walk knows why."""


class InternalFault(Exception):
    """A pass broke (exit status 70): a fault in ncc itself, with the stage that replays it."""

    def __init__(self, name: str, stage: Stage, cause: BaseException) -> None:
        self.name, self.stage, self.cause = name, stage, cause
        super().__init__(f"{name}: {type(cause).__name__}: {cause}")


@attrs.frozen
class Plan:
    """Which passes run, in which order: the pipeline after --with-pass, --skip and the two ends."""

    entries: tuple[tuple[str, Pass | str], ...]  # name, and the pass or its entry to load

    def passes(self) -> Iterator[tuple[str, Pass]]:
        for name, found in self.entries:
            yield name, passes.load(found) if isinstance(found, str) else found

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.entries)


def pass_named(word: str) -> str:
    """The name of a pass as flags take it, from any spelling of it; UsageError NCC001."""
    names = passes.called()
    plain = word.strip().replace("_", "-").lower()
    if plain not in names:
        said = f"no pass is called {word!r}"
        raise UsageError("NCC001", said, hint=nearest(plain, names) or "`ncc passes` lists them")
    return plain


def plan(
    start: Stage,
    *,
    stop_after: str = "",
    start_after: str = "",
    skip: Iterable[str] = (),
    replaced: Mapping[str, Pass] | None = None,
    asked: Iterable[str] = (),
) -> Plan:
    """The passes that are left for `start`: those after the pass that its header names. A pass of
    `passes.ASKED` runs only if it is `asked` for.

    A stage that is an input (or names no pass of the list) begins at the first pass of its level.
    NCC007 for skipping a required pass, NCC001 for a name that is none or an end that never comes.
    """
    named = passes.called()
    order = list(named)
    begin = pass_named(start_after) if start_after else start.after
    first = first_pass(start, begin, named)
    last = len(order)
    if stop_after:
        stop_after = pass_named(stop_after)
        last = order.index(stop_after) + 1
        if last < first:
            stands = begin if begin in order else start.level
            said = f"cannot stop after {stop_after}: the program already stands after {stands}"
            raise UsageError("NCC001", said)
    without = {pass_named(name) for name in skip}
    instead = {pass_named(name): one for name, one in (replaced or {}).items()}
    wanted = {pass_named(name) for name in asked}
    for name in sorted(without | instead.keys() | wanted):
        if order.index(name) < first:
            said = f"{name} does not run any more: the program stands after {begin}"
            raise UsageError("NCC001", said)
    for name in sorted(without):
        if passes.load(named[name]).required:
            said = f"{name} is required and cannot be skipped"
            hint = f"--with-pass {name}=FILE puts another in its place"
            raise UsageError("NCC007", said, hint=hint)
    without |= passes.ASKED - wanted - instead.keys()
    left = [name for name in order[first:last] if name not in without]
    return Plan(tuple((name, instead.get(name, named[name])) for name in left))


def plan_to(stage: Stage, at: str, **ends: Any) -> Plan:
    """The passes up to the last stage of the level `at`."""
    whole = plan(stage, **ends)
    count = 0
    for number, (_, one) in enumerate(whole.passes(), 1):
        if one.target == at:
            count = number
        elif count:
            break
    if not count and stage.level != at:
        raise UsageError("NCC001", f"the program is {stage.level} already and never becomes {at}")
    return Plan(whole.entries[:count])


def first_pass(start: Stage, begin: str, named: Mapping[str, str]) -> int:
    """The number of the pass that runs first on `start`, which stands after the pass `begin`."""
    order = list(named)
    if begin not in named:
        reads = (i for i, name in enumerate(order) if source_of(named[name]) == start.level)
        return next(reads, len(order))
    gives = passes.load(named[begin]).target
    if gives != start.level:
        said = f"the program is {start.level}, but after {begin} stands {gives}"
        raise UsageError("NCC001", said, hint="give the stage that `--print-after` printed there")
    return order.index(begin) + 1


def source_of(entry: str) -> str:
    """The level that the pass of an entry reads."""
    return passes.load(entry).source


def walk(start: Stage, todo: Plan, observers: Sequence[Observer] = ()) -> Stage:
    """Run the passes of `todo` one after the other; the last stage.

    Raises NccError when the program is at fault, InternalFault when a pass is.
    """
    verifier = Verifier()
    verifier.check(start)
    for observer in observers:
        observer.start(start)
    stage = start
    ours = {name for name, found in todo.entries if isinstance(found, str)}
    with _uncollected():
        for name, one in todo.passes():
            if one.target == "neff":
                something_leaves(start, todo)
            try:
                step = _run(name, one, stage, verifier)
            except InternalFault as fault:
                if name in ours:
                    raise
                raise broke(one, fault) from fault.cause
            _tell(observers, step)
            stage = step.after
    return stage


def something_leaves(stage: Stage, todo: Plan) -> None:
    """NCC307 for a program of kernels that gives nothing, where it is to become a container: one
    has an output. Its stages can be looked at all the same."""
    if stage.level != "penguin" or not any(one.target == "neff" for _, one in todo.passes()):
        return
    from ncc.ir.penguin_views import is_kernel

    calls = [one for one in stage.module.body if is_kernel(one)]
    if calls and not any(t.kind == "output" for t in stage.module.tensors):
        raise NccError("NCC307", NOTHING.format(calls[0].name), calls[0].origin.place(), RETURN)


NOTHING = "{} returns no tensor that it wrote, and writes to no parameter"
RETURN = "end it with `return out`, out allocated in nl.shared_hbm"


def broke(one: Pass, fault: InternalFault) -> NccError:
    """NCC010: what a pass that stands in for one of ncc's did wrong, and where in its file."""
    import traceback

    cause = fault.cause
    code = getattr(one.apply, "__code__", None)
    file = str(code.co_filename) if code else ""
    frames = [f for f in traceback.extract_tb(cause.__traceback__) if f.filename == file]
    place = Place(Path(file).name, (frames[-1].lineno or 0) if frames else 0, 0, fault.name)
    if isinstance(cause, NotImplementedError):
        return NccError("NCC010", str(cause), place)
    kind = "the pass broke" if frames else f"what the pass gives is no {one.target} program"
    return NccError("NCC010", f"{kind}: {type(cause).__name__}: {cause}", place)


@contextmanager
def _uncollected() -> Generator[None]:
    """No cycle collection while passes run: nodes are immutable, so they form no cycles, and
    looking for some among millions of them takes a quarter of the time."""
    was = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was:
            gc.enable()


def _run(name: str, one: Pass, stage: Stage, verifier: Verifier) -> Step:
    if one.source != stage.level:
        said = f"reads {one.source}, but {stage.level} arrives"
        raise NccError("NCC001", said, Place(during=name))
    if missing := [fact for fact in one.needs if fact not in stage.facts]:
        said = f"needs the fact {missing[0]}, which does not hold here"
        raise NccError("NCC001", said, Place(during=name))
    began = time.perf_counter()
    try:
        module = one.run(stage.module, stage.target)
    except NccError as fault:
        raise fault.at(during=name) from None
    except MemoryError:
        raise
    except Exception as fault:
        raise InternalFault(name, stage, fault) from fault
    ran = time.perf_counter()
    facts = (set(stage.facts) - set(one.ends)) | set(one.gives)
    known = [law.printed for law in facts_of(one.target)]
    kept = tuple(sorted(fact for fact in facts if fact in known))
    after = Stage(one.target, stage.target, name, kept, module)
    try:
        verifier.check(after)
    except NccError:
        raise
    except Exception as fault:
        raise InternalFault(name, stage, fault) from fault
    return Step(name, one, stage, after, ran - began, time.perf_counter() - ran)


def _tell(observers: Sequence[Observer], step: Step) -> None:
    try:
        for observer in observers:
            observer.step(step)
    except (NccError, Stop, OSError, MemoryError):
        raise
    except Exception as fault:
        raise InternalFault(step.name, step.before, fault) from fault


def run_stage(
    stage: Stage, inputs: Sequence[Array], watch: dict[str, Array] | None = None
) -> list[Array]:
    """The outputs of one stage by its level's meaning; the bytes' meaning is the machine."""
    from ncc.blas import one_thread
    from ncc.values import fitted

    language = level(stage.level)
    wanted, _ = language.get("signature")(stage.module)
    with one_thread():
        outputs: list[Array] = language.get("run")(
            stage.module, stage.target, fitted(wanted, inputs), watch
        )
    return outputs
