"""The driver: compile, run and check a program; the walk over the passes is `ncc.walking`."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncc.placing import lines_of
from ncc.programs import stage_of
from ncc.stages import Stage, level
from ncc.target import Target
from ncc.walking import Observer, Plan, plan, plan_to, run_stage, something_leaves, walk

if TYPE_CHECKING:
    from ncc.checking import Result
    from ncc.values import Array


def compile(
    program: str | Path | Stage,
    *,
    target: str | Target = "trn2",
    observers: Sequence[Observer] = (),
    args: Mapping[str, Any] | Sequence[str] = (),
    lnc: int = 1,
    form: str = "",
    **ends: Any,
) -> Stage:
    """Compile a program (a file, a stage, or `kernel.py:name` with `args`) to its last stage, or to
    `stop_after=`. `form` is how a kernel's body travels into BIR, `bir` or `klir`.

    `ends` are the keywords of `plan`. The module of the last stage is an `ncc.ir.neff.Neff`;
    `ncc.pack.write` puts it into a file.
    """
    stage = stage_of(program, target, args=args, lnc=lnc, form=form)
    return walk(stage, plan(stage, **ends), observers)


def run(
    program: str | Path | Stage,
    inputs: Sequence[Array] | None = None,
    *,
    target: str | Target = "trn2",
    at: str = "neff",
    watch: dict[str, Array] | None = None,
    args: Mapping[str, Any] | Sequence[str] = (),
    lnc: int = 1,
    form: str = "",
    **ends: Any,
) -> list[Array]:
    """The outputs of a program: from its bytes, or by the meaning of the level `at`.

    Without inputs whole numbers are drawn from seed 0. A dictionary given as `watch` is filled with
    every value that the run computed, by name.
    """
    from ncc.values import whole

    level(at)
    stage = stage_of(program, target, args=args, lnc=lnc, form=form)
    todo = plan_to(stage, at, **ends)
    refused_early(stage, todo)
    given = inputs if inputs is not None else whole(stage, 0)
    with lines_of(stage, **ends):
        return run_stage(walk(stage, todo), given, watch)


def check(
    program: str | Path | Stage,
    inputs: Sequence[Array] | None = None,
    *,
    target: str | Target = "trn2",
    against: Sequence[Array] | None = None,
    args: Mapping[str, Any] | Sequence[str] = (),
    lnc: int = 1,
    form: str = "",
    **ends: Any,
) -> Result:
    """Run a program before and after every pass and from the bytes, on the same inputs.

    Without inputs: once on whole numbers, which must agree exactly, and once on random ones, within
    the rounding of the program's sums. `against` are the right outputs. The result says whether it
    `passed`, and has a row for each stage; `failed` is the sentence about the first that differs.
    """
    from ncc import checking

    stage = stage_of(program, target, args=args, lnc=lnc, form=form)
    todo = plan(stage, **ends)
    refused_early(stage, todo)
    if inputs is None:
        sets = [checking.whole_numbers(stage), checking.random_numbers(stage)]
    else:
        sets = [checking.given(stage, list(inputs))]
    right = None if against is None else list(against)
    return checking.check(stage, todo, sets, right)


def refused_early(stage: Stage, todo: Plan) -> None:
    """Raise what the laws, or the passes on the program's own level, say of an input.

    Whoever draws arrays for a program asks this first: a value of a type that is not computed with
    has no array.
    """
    something_leaves(stage, todo)
    first = Plan(())
    if stage.level == "hlo":
        own = itertools.takewhile(lambda entry: entry[1].source == "hlo", todo.passes())
        first = Plan(todo.entries[: len(list(own))])
    walk(stage, first)
