"""The two ways to run a specialisation: by its meaning, or compiled, from the bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from ncc.errors import NccError
from ncc.ir.kernel import ops_of
from ncc.nki.arrays import Array
from ncc.nki.specialise import Specialisation, returned_of

if TYPE_CHECKING:
    from ncc.ir.penguin import Function
    from ncc.stages import Stage


def interpreted(found: Specialisation, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
    """By the meaning of each op; no capacity is checked."""
    from ncc.blas import one_thread
    from ncc.interp.kernel import run

    with one_thread():
        return run(found.kernels, inputs, found.target)


def compiled(found: Specialisation, inputs: Mapping[str, Array]) -> Mapping[str, Array]:
    """From the bytes, on the machine. The NEFF is made once for each specialisation."""
    from ncc.placing import lines_of
    from ncc.walking import run_stage

    if not out_buffers(found):
        return {}  # a program without outputs has no container
    neff, arrays = neff_of(found), [inputs[spec.name] for spec in found.specs]
    try:
        with lines_of(stage_of(found)):
            outputs = run_stage(neff, arrays)
    except NccError as fault:  # about no instruction: it is the kernel's
        raise fault.at(file=found.place.file, line=found.place.line) from None
    return dict(zip(out_buffers(found), outputs, strict=True))


def neff_of(found: Specialisation) -> Stage:
    """The last stage of a specialisation, made when it is first asked for."""
    from ncc.walking import plan, walk

    stage = found.kept.get("neff")
    if stage is None:
        start = stage_of(found)
        stage = found.kept["neff"] = walk(start, plan(start))
    return stage


def out_buffers(found: Specialisation) -> list[str]:
    """The buffers that a run gives: what is returned and what is written, each once. A returned
    argument that is not written is known already."""
    params = {spec.name for spec in found.specs}
    returned = [r.access.buffer for r in returned_of(found.results)]
    names = [n for n in returned if n not in params or n in found.written]
    return list(dict.fromkeys([*names, *found.written]))


def forgotten(found: Specialisation, simulated: bool) -> Iterator[str]:
    """A warning for a call that gives None and does nothing, as one without `return`."""
    from ncc.walking import NOTHING, RETURN

    if found.results is not None or out_buffers(found):
        return
    prints = (op.op == "device_print" for kernel in found.kernels for op in ops_of(kernel.body))
    if not (simulated and any(prints)):
        name = next(iter(found.kernels)).name
        yield f"NCC307 {found.place}: {NOTHING.format(name)} ({RETURN})"


def function_of(found: Specialisation, form: str = "") -> Function:
    """The Penguin function that only calls this kernel."""
    from ncc.ir.core import Origin
    from ncc.ir.penguin import Function, KernelCall, Tensor
    from ncc.ir.penguin_print import RESERVED

    kernel = next(iter(found.kernels))
    buffers = {b.name: b for one in reversed(found.kernels) for b in one.buffers}
    tensors: dict[str, Tensor] = {}

    def tensor(name: str, buffer: str, kind: str) -> str:
        made = buffers[buffer]
        while name in tensors or name in RESERVED:
            name += "_"
        tensors[name] = Tensor(
            name, made.dtype, made.shape, kind=kind, home="dram", origin=made.origin
        )
        return name

    args = tuple((p, tensor(p, p, "input")) for p in kernel.params)
    outs: list[tuple[str, str]] = []
    for buffer in out_buffers(found):
        name = f"{buffer}_out" if buffer in kernel.params else buffer
        outs.append((buffer, tensor(name, buffer, "output")))
    origin = Origin(found.place.file, found.place.line)
    own = f"{kernel.name}_" if kernel.name in RESERVED else kernel.name
    call = KernelCall(own, found, args, tuple(outs), form or found.form, origin)
    return Function(kernel.name, tuple(tensors.values()), (call,))


def stage_of(found: Specialisation, form: str = "") -> Stage:
    """The stage that the driver compiles."""
    from ncc.stages import Stage

    return Stage("penguin", found.target, "input", (), function_of(found, form))
