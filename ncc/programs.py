"""The stage that a program is: from a file of any kind that ncc reads, by what the file holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs

from ncc import files
from ncc.errors import NccError, Place, UsageError
from ncc.ir.core import modules_of
from ncc.stages import Stage, read_header, read_stage
from ncc.target import TARGETS, Target
from ncc.target import target as target_named


def load_program(
    path: str | Path,
    machine: Target,
    *,
    args: Mapping[str, Any] | Sequence[str] = (),
    lnc: int = 1,
    form: str = "",
) -> Stage:
    """The stage that a file holds: HLO text, a printed stage, BIR as JSON, or a NEFF; or that of
    `kernel.py:name`, with the values of the kernel's parameters as `args`.

    UsageError NCC003 when there is no such file, NCC005 when it is of a kind that comes later;
    NCC004 when it is none of these.
    """
    if ".py:" in str(path):
        from ncc.nki.programs import kernel_stage

        return kernel_stage(str(path), machine, args, lnc=lnc, form=form)
    file = Path(path)
    raw = files.read(file)
    if file.suffix == ".py":
        said = f"{file.name} is Python: name the kernel in it that is the program"
        raise UsageError("NCC002", said, hint=f"{file.name}:KERNEL --arg x=bf16[128,512]")
    if file.suffix in LATER:
        raise UsageError("NCC005", LATER[file.suffix].format(file.name), hint=TODAY)
    if is_neff(raw) or file.suffix == ".neff":
        return neff_stage(raw, file.name)
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as fault:
        said = f"is not text: byte {fault.start} is no UTF-8, and it is no NEFF"
        raise NccError("NCC004", said, Place(file.name)) from None
    if text.startswith("# ncc "):
        return read_stage(text, file.name)
    if file.suffix == ".json":
        return json_stage(text, file.name, machine)
    from ncc.front.hlo import parse

    return Stage("hlo", machine, "input", (), parse(text, file.name, 1))


LATER = {
    ".pb": "{} is an HloModuleProto: `pip install 'ncc[jax]'`, of a later release, will read it",
    ".mlir": "{} is StableHLO: `pip install 'ncc[jax]'`, of a later release, will read it",
}
TODAY = "today, write HLO text: jax.jit(f).lower(...).as_text('hlo')"


def json_stage(text: str, file: str, machine: Target) -> Stage:
    """The stage of a BIR document: what its header says, or a program that no pass has seen."""
    from ncc.ir.bir_json import header_of, program_from_json

    program = program_from_json(text, file)
    if header := header_of(text):
        return attrs.evolve(read_header(header, file), module=program)
    arch = modules_of(program)[0].arch
    if arch != machine.arch:
        machine = next((t for t in TARGETS.values() if t.arch == arch), machine)
    return Stage("bir", machine, "input", (), program)


def is_neff(raw: bytes) -> bool:
    """Whether bytes look like a container: gzip, a tar, or either behind a header."""
    heads = (raw, raw[1024:])
    return any(head[:2] == b"\x1f\x8b" or head[257:262] == b"ustar" for head in heads)


def neff_stage(raw: bytes, file: str) -> Stage:
    """The last stage, from the bytes of a container."""
    from ncc import pack

    neff = pack.read(raw, file)
    return Stage("neff", target_of(pack.unpack(neff).neff_target), "pack", (), neff)


def target_of(neff_target: str) -> Target:
    """The target whose containers name themselves so."""
    return next(t for t in TARGETS.values() if t.neff == neff_target)


def stage_of(program: str | Path | Stage, target: str | Target, **kernel: Any) -> Stage:
    """The stage of a program that may be a file, or a stage already; `kernel` are the keywords of
    `load_program`."""
    if isinstance(program, Stage):
        return program
    machine = target_named(target) if isinstance(target, str) else target
    return load_program(program, machine, **kernel)
