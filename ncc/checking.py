"""`ncc check`: the program's meaning before and after every pass, and from the bytes.

Every set of inputs runs at every stage that changed. Whole numbers must agree exactly; random ones
within the bound that `ncc.interp.bounds` derives from the program's sums, and bit for bit across a
pass that is marked exact. The first pass that breaks this is named.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import attrs
import numpy as np

from ncc.errors import NccError, Place
from ncc.ir.hlo import Module
from ncc.stages import Stage
from ncc.values import Array, random, shaped, signature, whole
from ncc.walking import Plan, Step, Stop, run_stage, walk

INEXACT = {"custom-call", "exponential", "divide", "log", "tanh", "sqrt", "rsqrt", "logistic"}


@attrs.define
class Inputs:
    """One set of inputs: what it is called, whether results are exact, and what came out so far."""

    name: str
    arrays: list[Array]
    exact: bool
    bounds: list[Any] | None = None  # allowed difference of each output, elementwise; None: exact
    first: list[Array] = attrs.field(factory=list[Array])
    last: list[Array] = attrs.field(factory=list[Array])


def whole_numbers(stage: Stage) -> Inputs:
    """Whole numbers drawn so that every sum is exact; not where a program does more than sum."""
    if stage.level == "hlo" and not only_sums(stage.module):
        return given(stage, whole(stage, 0), "whole numbers")
    return Inputs("whole numbers", whole(stage, 0), exact=True)


def only_sums(module: Module) -> bool:
    """Whether every opcode gives whole numbers of whole numbers."""
    every = {inst.opcode for one in module.computations for inst in one.instructions}
    return not every & INEXACT


def random_numbers(stage: Stage, seed: int = 0) -> Inputs:
    """Random values, with the difference that rounding may make."""
    return given(stage, random(stage, seed), "random numbers")


def given(stage: Stage, arrays: list[Array], name: str = "given inputs") -> Inputs:
    """The user's own inputs, compared like random ones."""
    bounds = None
    if stage.level == "hlo":
        from ncc.interp.bounds import allowed
        from ncc.values import fitted

        bounds = allowed(stage.module, stage.target, fitted(signature(stage)[0], arrays))
    return Inputs(name, arrays, exact=False, bounds=bounds)


@attrs.define
class Result:
    """What a check found: a row a stage, and the sentence about the first that differs."""

    rows: list[dict[str, object]] = attrs.field(factory=list[dict[str, object]])
    failed: str = ""
    place: Place = attrs.field(factory=Place)

    @property
    def passed(self) -> bool:
        return not self.failed

    def add(self, one: Inputs, name: str, stage: Stage, largest: float) -> None:
        self.rows.append(
            {"inputs": one.name, "pass": name, "level": stage.level, "largest": largest}
        )

    def report(self) -> dict[str, object]:
        """The result as one JSON object."""
        return {
            "passed": self.passed,
            "first": self.place.during,
            "said": self.failed,
            "stages": self.rows,
        }

    def summary(self) -> list[str]:
        """A few lines for a person; none when the check failed, which is said on stderr."""
        if self.failed:
            return []
        lines: list[str] = []
        for name in dict.fromkeys(row["inputs"] for row in self.rows):
            mine = [row for row in self.rows if row["inputs"] == name]
            largest = max(float(str(row["largest"])) for row in mine)
            bytes_ran = any(row["level"] == "neff" for row in mine)
            how = "from the bytes too" if bytes_ran else "no bytes"
            stages = "1 stage agrees" if len(mine) == 1 else f"{len(mine)} stages agree"
            agree = f"{stages}, largest difference {largest:g}"
            lines.append(f"{name}: {agree} ({how})")
        return lines


class _Watcher:
    """The observer that runs every changed stage and stops at the first that differs."""

    def __init__(self, sets: Sequence[Inputs], result: Result) -> None:
        self.sets, self.result = sets, result

    def start(self, stage: Stage) -> None:
        for one in self.sets:
            one.first = one.last = run_stage(stage, one.arrays)
            self._row(one, "input", stage, 0.0)

    def step(self, step: Step) -> None:
        if self.result.failed or not step.changed:
            return
        for one in self.sets:
            try:
                found = run_stage(step.after, one.arrays)
            except NccError as fault:
                self._fail(step, f"the program no longer runs on {one.name}: {fault}")
                return
            largest, said = compare(one, found, step)
            if said:
                self._fail(step, f"changes the result on {one.name}: {said}")
                return
            one.last = found
            self._row(one, step.name, step.after, largest)

    def _fail(self, step: Step, said: str) -> None:
        self.result.failed, self.result.place = said, Place(during=step.name)
        raise Stop

    def _row(self, one: Inputs, name: str, stage: Stage, largest: float) -> None:
        self.result.add(one, name, stage, largest)


def check(
    stage: Stage,
    todo: Plan,
    sets: Sequence[Inputs],
    against: Sequence[Array] | None = None,
) -> Result:
    """Walk the passes of `todo` and compare; `against` are the right outputs for `sets[0]`."""
    right = None if against is None else shaped(signature(stage)[1], against)
    result = Result()
    try:
        last = walk(stage, todo, [_Watcher(sets, result)])
    except Stop:
        return result
    if right is not None:
        largest, said = compare(attrs.evolve(sets[0], first=right), sets[0].last, None)
        result.add(sets[0], "the right outputs", last, largest)
        if said:
            result.failed = f"the last stage differs from the right outputs: {said}"
            result.place = Place(during=last.after)
    return result


def compare(one: Inputs, found: Sequence[Array], step: Step | None) -> tuple[float, str]:
    """The largest difference from the input stage, and a sentence when it is not allowed."""
    largest = 0.0
    for number, (want, got) in enumerate(zip(one.first, found, strict=True)):
        name = f"out{number}" if len(found) > 1 else "out"
        difference = _difference(want, got)
        largest = max(largest, float(difference.max(initial=0.0)))
        exact = one.exact or (step is not None and step.pass_.exact)
        base = one.last[number] if exact and not one.exact else want
        allowed = _allowed(one, number, want)
        bad = _difference(base, got) > 0 if exact else difference > allowed
        if exact and not one.exact:
            bad = bad | (difference > allowed)
        if bad.any():
            where = tuple(int(i) for i in np.argwhere(bad)[0])
            index = ",".join(map(str, where))
            was, now = float(np.asarray(base[where])), float(np.asarray(got[where]))
            return (
                largest,
                f"{name}[{index}] {apart(was, now)} ({int(bad.sum())} elements differ)",
            )
    return largest, ""


def apart(was: float, now: float) -> str:
    """Both numbers, with as many digits as tell one from the other."""
    for digits in (6, 9, 17):
        said = f"was {was:.{digits}g}, is {now:.{digits}g}"
        if f"{was:.{digits}g}" != f"{now:.{digits}g}":
            break
    return said


def _difference(want: Array, got: Array) -> Any:
    """|want − got| in float64; equal infinities and NaN against NaN count as equal."""
    left, right = np.asarray(want, np.float64), np.asarray(got, np.float64)
    with np.errstate(invalid="ignore"):
        found = np.abs(left - right)
    same = (left == right) | (np.isnan(left) & np.isnan(right))
    return np.where(same, 0.0, np.where(np.isnan(found), np.inf, found))


def _allowed(one: Inputs, number: int, want: Array) -> Any:
    """How far an output may be off: the derived bound, else 2⁻¹⁴ of the largest value."""
    if one.exact:
        return 0.0
    if one.bounds is not None:
        return one.bounds[number]
    return np.abs(np.asarray(want, np.float64)).max(initial=0.0) * 2.0**-14 + 2.0**-126
