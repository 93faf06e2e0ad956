"""A call of a kernel by name: found, traced for what it is given, and checked against what it is
asked to give.

A name is one of `ncc.kernels.KERNELS` (an internal kernel), or `FILE.py:NAME`, a kernel of the
user's (an external one), looked for as a program of the command line is. A call gives what the
kernel returns, then the parameters that it writes and does not return; each output that is such a
parameter must be declared as an alias of its operand.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncc.errors import NccError, UsageError, listed, nearest
from ncc.ir.kernel_request import Request, Typed
from ncc.kernels import KERNELS, kernel
from ncc.target import Target

if TYPE_CHECKING:
    from ncc.nki.call import JitKernel
    from ncc.nki.specialise import Specialisation

HOW = "name a kernel that ships, or one of a file as FILE.py:NAME"


def found(name: str) -> JitKernel:
    """The kernel of that name; NCC120 for a name that is none."""
    if name in KERNELS:
        return kernel(name)
    from ncc.nki.programs import PROGRAM, imported, launched

    program = PROGRAM.fullmatch(name)
    if program is None:
        said = f"no kernel is called {name!r}; there are {listed(KERNELS)}"
        raise NccError("NCC120", said, hint=nearest(name, KERNELS) or HOW)
    path = Path(program["file"])
    if not path.is_file():
        said = f"the kernel's file {program['file']} is not there"
        raise NccError("NCC120", said, hint="its path begins in the folder where ncc runs")
    try:
        return launched(program, imported(path))
    except UsageError as fault:
        raise NccError("NCC120", fault.said, hint=fault.hint) from fault


@lru_cache(maxsize=256)
def specialised(request: Request, target: Target) -> Specialisation:
    """The kernel traced for what it takes. NCC120 for an unknown name, NCC121 where the kernel
    refuses what it is given."""
    from ncc.nki import dtypes
    from ncc.nki.arguments import ArraySpec
    from ncc.nki.binding import bind

    one = found(request.kernel)
    given = [ArraySpec("", dtypes.dtype_of(dtype), shape) for dtype, shape in request.takes]
    try:
        return one.specialisation(bind(one.func, given, dict(request.config), target), target)
    except NccError as fault:
        raise NccError("NCC121", f"{request.kernel} refuses the call: {fault.said}", hint=where(
            fault)) from fault  # fmt: skip
    except Exception as fault:
        text = " ".join(str(fault).split()) or type(fault).__name__
        last = traceback.extract_tb(fault.__traceback__)[-1]
        hint = f"{Path(last.filename).name}:{last.lineno} says so"
        raise NccError("NCC121", f"{request.kernel} refuses the call: {text}", hint=hint) from fault


def where(fault: NccError) -> str:
    """The fault's own place and hint, for the hint of the one that names the call."""
    at = f"at {fault.place}" if str(fault.place) else ""
    return "; ".join(x for x in (at, fault.hint) if x)


def params(made: Specialisation) -> tuple[str, ...]:
    """The buffers of the parameters, in order."""
    return made.kernels[0].params


def outputs(made: Specialisation) -> tuple[tuple[str, Typed], ...]:
    """The buffers that a call gives, each with its dtype and shape."""
    from ncc.nki.running import out_buffers

    buffers = {b.name: b for one in reversed(made.kernels) for b in one.buffers}
    return tuple((n, (buffers[n].dtype, buffers[n].shape)) for n in out_buffers(made))


def check(
    request: Request, target: Target, gives: Sequence[Typed], aliases: Sequence[tuple[int, int]]
) -> None:
    """Raise the first thing that does not fit between a call and its kernel."""
    made = specialised(request, target)
    for code, said in misfits(made, request.kernel, gives, aliases):
        raise NccError(code, said)


def misfits(
    made: Specialisation, name: str, gives: Sequence[Typed], aliases: Sequence[tuple[int, int]]
) -> Iterator[tuple[str, str]]:
    """What does not fit between a kernel and a call of it: (code, sentence)."""
    from ncc.nki.specialise import returned_of

    for one in returned_of(made.results):
        buffer = next(b for b in made.kernels[0].buffers if b.name == one.access.buffer)
        if one.access.offset or one.shape != buffer.shape:
            said = f"{name} returns a part or a view of {buffer.name}, which no array of HLO is"
            yield "NCC122", said
    own = outputs(made)
    if len(own) != len(gives):
        has = f"{len(own)} ({', '.join(n for n, _ in own)})" if own else "nothing"
        yield "NCC122", f"{name} gives {has}, the call has {len(gives)} outputs"
        return
    for number, ((buffer, has), wants) in enumerate(zip(own, gives, strict=True)):
        for what, mine, asked in (("dtype", *_dtypes(has, wants)), ("shape", has[1], wants[1])):
            if mine != asked:
                shown = (mine, asked) if what == "dtype" else (_bare(mine), _bare(asked))
                said = f"{name} gives {buffer} of {what} {shown[0]}, output {number} is {shown[1]}"
                yield "NCC122", said
    yield from _alias_misfits(made, name, [n for n, _ in own], dict(aliases))


def _alias_misfits(
    made: Specialisation, name: str, own: Sequence[str], declared: dict[int, int]
) -> Iterator[tuple[str, str]]:
    operands = params(made)
    for number, operand in declared.items():
        if number >= len(own) or operand >= len(operands):
            said = f"an alias names output {number} and operand {operand}, {name} has"
            yield "NCC123", f"{said} {len(own)} outputs and {len(operands)} operands"
        elif own[number] != operands[operand]:
            said = f"output {number} is declared an alias of operand {operand}"
            yield "NCC123", f"{said} ({operands[operand]}), and {name} gives {own[number]} there"
    for number, buffer in enumerate(own):
        if buffer in operands and number not in declared:
            said = f"{name} writes its parameter {buffer} in place"
            operand = operands.index(buffer)
            yield "NCC123", f"{said}: output {number} must be an alias of operand {operand}"


def _dtypes(a: Typed, b: Typed) -> tuple[str, str]:
    return a[0], b[0]


def _bare(shape: Any) -> str:
    return f"[{','.join(map(str, shape))}]"


def run(request: Request, target: Target, arrays: Sequence[Any]) -> list[Any]:
    """What a call gives, by the meaning of the kernel's ops."""
    from ncc.interp.kernel import run as interpreted

    made = specialised(request, target)
    shapes = (shape for _, shape in request.takes)
    given = {n: a.reshape(s) for n, a, s in zip(params(made), arrays, shapes, strict=True)}
    results = interpreted(made.kernels, given, target)
    return [results[name] for name, _ in outputs(made)]
