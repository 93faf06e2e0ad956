"""The driver walks the list of passes and calls observers; compile, run and check stand on it.

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
from ncc.stages import Stage, facts_of, read_stage
from ncc.target import TARGETS, Target
from ncc.verify import Verifier

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.generic]


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


def pass_named(word: str) -> str:
    """The name of a pass as flags take it, from any spelling of it; UsageError NCC001."""
    names = passes.called()
    plain = word.replace("_", "-")
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
) -> Plan:
    """The passes that are left for `start`: those after the pass that its header names.

    A stage that is an input (or names no pass of the list) begins at the first pass of its level.
    NCC007 for skipping a required pass, NCC001 for a name that is none or an end that never comes.
    """
    names = list(passes.called().items())
    order = [name for name, _ in names]
    begin = start_after or start.after
    if begin in order:
        first = order.index(begin) + 1
    else:
        reads = (i for i, (_, e) in enumerate(names) if passes.load(e).source == start.level)
        first = next(reads, len(order))
    last = len(order)
    if stop_after:
        last = order.index(stop_after) + 1
        if last < first:
            said = f"cannot stop after {stop_after}: the program already stands after {begin}"
            raise UsageError("NCC001", said)
    for name in skip:
        if passes.load(dict(names)[name]).required:
            said = f"{name} is required and cannot be skipped"
            raise UsageError(
                "NCC007", said, hint=f"--with-pass {name}=FILE puts another in its place"
            )
    kept: list[tuple[str, Pass | str]] = []
    for name, entry in names[first:last]:
        if name not in skip:
            kept.append((name, (replaced or {}).get(name, entry)))
    return Plan(tuple(kept))


def walk(start: Stage, todo: Plan, observers: Sequence[Observer] = ()) -> Stage:
    """Run the passes of `todo` one after the other; the last stage.

    Raises NccError when the program is at fault, InternalFault when a pass is.
    """
    verifier = Verifier()
    verifier.check(start)
    for observer in observers:
        observer.start(start)
    stage = start
    with _uncollected():
        for name, one in todo.passes():
            stage = _run(name, one, stage, verifier, observers)
    return stage


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


def _run(
    name: str, one: Pass, stage: Stage, verifier: Verifier, observers: Sequence[Observer]
) -> Stage:
    if one.source != stage.level:
        said = f"reads {one.source}, but {stage.level} arrives"
        raise NccError("NCC001", said, Place(during=name))
    if missing := [fact for fact in one.needs if fact not in stage.facts]:
        said = f"needs the fact {missing[0]}, which does not hold here"
        raise NccError("NCC001", said, Place(during=name))
    began = time.perf_counter()
    try:
        module = one.apply(stage.module, stage.target)
    except NccError as fault:
        raise fault.at(during=name) from None
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
    step = Step(name, one, stage, after, ran - began, time.perf_counter() - ran)
    _tell(observers, step)
    return after


def _tell(observers: Sequence[Observer], step: Step) -> None:
    try:
        for observer in observers:
            observer.step(step)
    except (NccError, Stop, OSError):
        raise
    except Exception as fault:
        raise InternalFault(step.name, step.before, fault) from fault


def load_program(path: str | Path, machine: Target) -> Stage:
    """The stage that a file holds: HLO text, a printed stage, or a NEFF.

    UsageError NCC003 when there is no such file; NCC004 when it is none of these.
    """
    file = Path(path)
    try:
        raw = file.read_bytes()
    except FileNotFoundError:
        raise UsageError("NCC003", f"there is no file {file}") from None
    except OSError as fault:
        raise UsageError("NCC003", f"cannot read {file}: {fault.strerror}") from None
    if file.suffix in (".pb", ".mlir"):
        said = f"{file.name} needs the StableHLO door, which a later release brings"
        hint = "write HLO text instead: jax.jit(f).lower(...).as_text('hlo')"
        raise NccError("NCC004", said, Place(file.name), hint)
    if raw[:2] == b"\x1f\x8b" or raw[257:262] == b"ustar" or file.suffix == ".neff":
        return neff_stage(raw, file.name)
    try:
        text = raw.decode()
    except UnicodeDecodeError as fault:
        said = f"is not text: byte {fault.start} is no UTF-8, and it is no NEFF"
        raise NccError("NCC004", said, Place(file.name)) from None
    if text.startswith("# ncc "):
        return read_stage(text, file.name)
    from ncc.front.hlo import parse

    return Stage("hlo", machine, "input", (), parse(text, file.name, 1))


def neff_stage(raw: bytes, file: str) -> Stage:
    """The last stage, from the bytes of a container."""
    from ncc import pack

    neff = pack.read(raw, file)
    return Stage("neff", target_of(pack.unpack(neff).neff_target), "pack", (), neff)


def target_of(neff_target: str) -> Target:
    """The target whose containers name themselves so."""
    return next(t for t in TARGETS.values() if t.neff == neff_target)


def compile(
    program: str | Path | Stage,
    *,
    target: str | Target = "trn2",
    observers: Sequence[Observer] = (),
    **ends: Any,
) -> Stage:
    """Compile a program (a file, or a stage) to its last stage, or to `stop_after=`.

    `ends` are the keywords of `plan`. The module of the last stage is an `ncc.ir.neff.Neff`;
    `ncc.pack.write` puts it into a file.
    """
    from ncc.target import target as named

    machine = named(target) if isinstance(target, str) else target
    stage = program if isinstance(program, Stage) else load_program(program, machine)
    return walk(stage, plan(stage, **ends), observers)


def run(
    program: str | Path | Stage,
    inputs: Sequence[Array] | None = None,
    *,
    target: str | Target = "trn2",
    at: str = "neff",
    watch: dict[str, Array] | None = None,
    **ends: Any,
) -> list[Array]:
    """The outputs of a program: from its bytes, or by the meaning of the level `at`.

    Without inputs whole numbers are drawn from seed 0.
    """
    from ncc.stages import level
    from ncc.target import target as named
    from ncc.values import whole

    level(at)
    machine = named(target) if isinstance(target, str) else target
    stage = program if isinstance(program, Stage) else load_program(program, machine)
    given = inputs if inputs is not None else whole(stage, 0)
    stage = walk(stage, plan_to(stage, at, **ends))
    return run_stage(stage, given, watch)


def plan_to(stage: Stage, at: str, **ends: Any) -> Plan:
    """The passes up to the last stage of the level `at`."""
    last = ""
    for name, one in plan(stage, **ends).passes():
        if one.target == at:
            last = name
    if not last and stage.level != at:
        raise UsageError("NCC001", f"the program is {stage.level} already and never becomes {at}")
    if not last:
        return Plan(())
    ends["stop_after"] = last
    return plan(stage, **ends)


def run_stage(
    stage: Stage, inputs: Sequence[Array], watch: dict[str, Array] | None = None
) -> list[Array]:
    """The outputs of one stage by its level's meaning; the bytes' meaning is the machine."""
    from ncc.stages import level
    from ncc.values import fitted

    language = level(stage.level)
    wanted, _ = language.get("signature")(stage.module)
    outputs: list[Array] = language.get("run")(
        stage.module, stage.target, fitted(wanted, inputs), watch
    )
    return outputs
