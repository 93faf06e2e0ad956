"""Which of a launch's programs this is, and what the machine prints while it runs."""

from __future__ import annotations

import math
from typing import Any

from ncc.ir.kernel import Arg, Imm
from ncc.nki.language.base import items
from ncc.nki.registers import Held
from ncc.nki.tensor import NkiTensor
from ncc.nki.trace import current, invalid
from ncc.nki.views import whole_number


def _axis(axis: Any, name: str, ndim: int) -> int:
    k = whole_number(axis, f"nl.{name}: the axis")
    if not -max(ndim, 1) <= k < max(ndim, 1):
        said = f"nl.{name}({k}): the kernel was launched with {ndim} axes"
        hint = "launch it as kernel[cores](...); axis 0 is the cores"
        if current(f"nl.{name}").old:
            hint = "launch it as kernel[4,2](...), on the command line as FILE.py:kernel[4,2]"
        raise invalid("NCC366", said, hint)
    return k


def program_id(axis: Any = 0) -> int:
    """This program's number on an axis of the grid; 0 without a grid."""
    trace = current("nl.program_id")
    k = _axis(axis, "program_id", len(trace.grid))
    return trace.program[k] if trace.program else 0


def num_programs(axes: Any = 0) -> int:
    """How many programs there are on an axis, or on several; 1 without a grid."""
    trace = current("nl.num_programs")
    if axes is None:
        return math.prod(trace.grid)
    several = items(axes)
    if several is not None:
        return math.prod(num_programs(k) for k in several)
    k = _axis(axes, "num_programs", len(trace.grid))
    return trace.grid[k] if trace.grid else 1


def program_ndim() -> int:
    """The number of axes of the grid; 0 without one."""
    return len(current("nl.program_ndim").grid)


def device_print(prefix: Any, tensor: Any = None, *more: Any, **ignored: Any) -> None:
    """Print what a tensor holds when the machine gets here."""
    trace = current("nl.device_print")
    words, values = [str(prefix)], [tensor, *more]
    if not isinstance(prefix, str):
        words, values = [""], [prefix, *values]
    for value in values:
        shown: Arg
        if isinstance(value, NkiTensor):
            shown = value.access("tensor", compute=False)
        elif isinstance(value, Held):
            shown = value.reg
        elif isinstance(value, int | float):
            shown = Imm(value)
        else:
            if value is not None:
                words[0] = f"{words[0]} {value}".strip()
            continue
        trace.emit("device_print", {"tensor": shown}, {"prefix": words[0]})
