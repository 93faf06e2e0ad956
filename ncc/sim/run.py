"""Runs a program from its records or from the bytes of its NEFF, and gives the outputs.

Nothing that the compiler knew gets here but what stands in the streams and in the definition of the
NEFF. Inputs come in parameter order and are rounded to the type of their variable. Of several cores
each has its own program and memories; they share inputs, outputs and what is declared as shared.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from ncc import numerics
from ncc.errors import NccError, UsageError
from ncc.ir.core import Cores, modules_of
from ncc.ir.data import numpy_type, size_of
from ncc.ir.isa import Program, Var
from ncc.ir.neff import Neff
from ncc.sim import turns
from ncc.sim.machine import LIMIT, Core, Report
from ncc.sim.meetings import Meetings
from ncc.sim.memory import Memory, memory, share
from ncc.sim.race import Race
from ncc.target import TARGETS, Target

Array = NDArray[Any]
Watch = dict[str, Array]


@attrs.frozen(eq=False)
class Run:
    """Outputs in order, and what the run counted and warned of."""

    outputs: list[Array]
    report: Report


def run_isa(
    program: Program | Cores,
    target: Target,
    inputs: Sequence[Array],
    watch: Watch | None = None,
    seed: int | None = None,
) -> list[Array]:
    """The outputs of a program; `watch`, if given, receives every variable's bytes by its name."""
    return run_report(program, target, inputs, watch, seed).outputs


def run_neff(
    neff: Neff,
    target: Target | None,
    inputs: Sequence[Array],
    watch: Watch | None = None,
    seed: int | None = None,
) -> list[Array]:
    """The outputs of a NEFF, decoded from its bytes. Without `target` it names its own."""
    from ncc.pack import unpack_all

    program = unpack_all(neff)
    return run_isa(program, target or target_of(modules_of(program)[0]), inputs, watch, seed)


def target_of(program: Program) -> Target:
    """The machine that a NEFF names; NCC916 for a name that is none."""
    for one in TARGETS.values():
        if one.neff == program.neff_target:
            return one
    known = ", ".join(t.neff for t in TARGETS.values())
    said = f"the NEFF is for {program.neff_target!r}, and there are {known}"
    raise NccError("NCC916", said)


def run_report(
    program: Program | Cores,
    target: Target,
    inputs: Sequence[Array],
    watch: Watch | None = None,
    seed: int | None = None,
    limit: int = LIMIT,
) -> Run:
    """Outputs and report. With `seed` engines and queues interleave at random."""
    programs: tuple[Program, ...] = modules_of(program)
    for one in programs:
        if one.neff_target != target.neff:
            said = f"the program is for {one.neff_target!r}, and {target.name} is {target.neff!r}"
            raise NccError("NCC916", said)
    memories = [
        memory(target, one.vars, _contents(one, inputs), n) for n, one in enumerate(programs)
    ]
    share(memories, [one.vars for one in programs])
    race, meetings, report = Race(), Meetings(len(programs)), Report()
    cores = [
        Core(one, mem, limit, n, race, meetings, report)
        for n, (one, mem) in enumerate(zip(programs, memories, strict=True))
    ]
    try:
        with np.errstate(all="ignore"):
            try:
                turns.run(cores, seed)
            finally:
                race.verdict()
        outputs = [_output(memories[0], v) for v in programs[0].vars if v.kind == "output"]
        if watch is not None:
            for one, mem in reversed(tuple(zip(programs, memories, strict=True))):
                watch.update({v.name: _value(mem, v) for v in one.vars})
    except NccError as fault:
        fault.__context__ = None  # what its frames hold is megabytes
        raise fault.with_traceback(None) from None
    finally:
        for core in cores:
            core.release()
    return Run(outputs, report)


def _contents(program: Program, inputs: Sequence[Array]) -> dict[int, bytes]:
    """The bytes of every input and constant."""
    takes = [v for v in program.vars if v.kind == "input"]
    if len(inputs) != len(takes):
        said = f"the program takes {len(takes)} inputs, and {len(inputs)} were given"
        raise UsageError("NCC006", said)
    found: dict[int, bytes] = {}
    for v, given in zip(takes, inputs, strict=True):
        if np.shape(given) != v.shape:
            said = f"input {v.name} has the shape {v.shape}, and {np.shape(given)} was given"
            raise UsageError("NCC006", said)
        array = np.asarray(given)
        if v.declared:
            array = numerics.cast(array, v.declared)
        found[v.id] = np.ascontiguousarray(numerics.cast(array, v.dtype)).tobytes()
    for v in program.vars:
        if v.kind == "file":
            found[v.id] = v.data.raw if v.data is not None else b""
    return found


def _value(mem: Memory, v: Var) -> Array:
    """A variable's bytes as an array of its type."""
    size = size_of(v.dtype) * prod(v.shape)
    return mem.dram[v.id].array()[:size].view(numpy_type(v.dtype)).reshape(v.shape).copy()


def _output(mem: Memory, v: Var) -> Array:
    """An output's value; NCC903 when some of it was never written."""
    space = mem.dram[v.id]
    known = space.known
    if known is not None and not known[space.start : space.start + space.width].all():
        missing = int(
            space.width - np.count_nonzero(known[space.start : space.start + space.width])
        )
        said = f"{missing} of {space.width} bytes of output {v.name} were never written"
        raise NccError("NCC903", said)
    return _value(mem, v)
