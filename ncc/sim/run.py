"""Runs a program from its records or from the bytes of its NEFF, and gives the outputs.

Nothing that the compiler knew gets here but what stands in the streams and in the definition of the
NEFF. Inputs come in parameter order and are rounded to the type of their variable.
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
from ncc.ir.data import numpy_type, size_of
from ncc.ir.isa import Program, Var
from ncc.ir.neff import Neff
from ncc.sim.machine import LIMIT, Core, Report
from ncc.sim.memory import Memory, memory
from ncc.target import TARGETS, Target

Array = NDArray[Any]
Watch = dict[str, Array]


@attrs.frozen(eq=False)
class Run:
    """Outputs in order, and what the run counted and warned of."""

    outputs: list[Array]
    report: Report


def run_isa(
    program: Program,
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
    from ncc.pack import unpack

    program = unpack(neff)
    return run_isa(program, target or target_of(program), inputs, watch, seed)


def target_of(program: Program) -> Target:
    """The machine that a NEFF names; NCC916 for a name that is none."""
    for one in TARGETS.values():
        if one.neff == program.neff_target:
            return one
    known = ", ".join(t.neff for t in TARGETS.values())
    said = f"the NEFF is for {program.neff_target!r}, and there are {known}"
    raise NccError("NCC916", said)


def run_report(
    program: Program,
    target: Target,
    inputs: Sequence[Array],
    watch: Watch | None = None,
    seed: int | None = None,
    limit: int = LIMIT,
) -> Run:
    """Outputs and report. With `seed` engines and queues interleave at random."""
    if program.neff_target != target.neff:
        said = f"the program is for {program.neff_target!r}, and {target.name} is {target.neff!r}"
        raise NccError("NCC916", said)
    contents = _contents(program, inputs)
    mem = memory(target, program.vars, contents)
    core = Core(program, mem, seed, limit)
    core.run()
    outputs = [_output(mem, v) for v in program.vars if v.kind == "output"]
    if watch is not None:
        watch.update({v.name: _value(mem, v) for v in program.vars})
    return Run(outputs, core.report)


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
