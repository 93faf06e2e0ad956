"""`ncc disasm` and `ncc asm`: a NEFF as a printed ISA stage, and back to the same bytes."""

from __future__ import annotations

from collections.abc import Mapping

from ncc.encode.bundle import decode_bundle
from ncc.encode.codec import SIZE
from ncc.encode.laws import LAWS, nodes
from ncc.encode.text import show
from ncc.errors import NccError
from ncc.ir.core import Cores, Law, modules_of
from ncc.ir.isa import Bundle, DmaQueue, Program, Stream, Var
from ncc.ir.neff import Neff
from ncc.pack import build, members_of
from ncc.pack.names import ENGINES, GENERATION, subgraph
from ncc.pack.schema import fault
from ncc.pack.verify import graphs, read_core, verify
from ncc.stages import Stage, level, read_stage
from ncc.target import TARGETS


def header(program: Program) -> str:
    """The first line: the listing is a printed stage like any other."""
    name = next(t.name for t in TARGETS.values() if t.neff == program.neff_target)
    return f"# ncc isa target={name} after=encode\n"


def disasm(raw: bytes, name: str = "") -> tuple[str, NccError | None]:
    """The listing; of a damaged file as far as it goes, with the fault that it has."""
    members, record = members_of_named(raw, name)
    try:
        sound = verify(members, record)
        if not sound.programs:
            reason = next(core.foreign for core in sound.cores if core.foreign)
            raise fault(814, f"its variables cannot be listed: {reason}", "def.json")
        first, *rest = sound.programs
        program = Cores(sound.programs) if rest else first
        return header(first) + level("isa").get("show")(program), None
    except NccError as wrong:
        return damaged(members, wrong), wrong.at(file=name)


def members_of_named(raw: bytes, name: str) -> tuple[dict[str, bytes], dict[str, object] | None]:
    try:
        return members_of(raw)
    except NccError as wrong:
        raise wrong.at(file=name) from None


def damaged(members: Mapping[str, bytes], why: NccError) -> str:
    """What can be said of a file that is not sound: every whole bundle before the first bad one."""
    arch = "cayman"
    variables: tuple[Var, ...] = ()
    queues: tuple[DmaQueue, ...] = ()
    folder = subgraph(0)
    files = {e.stream: f"{folder}/{e.binary}" for e in ENGINES}
    try:
        arch, paths, kelf = graphs(members, None, [])
        core = read_core(members, paths[0], kelf)
        variables, queues, files = core.vars, core.queues, dict(core.streams)
    except NccError:
        pass  # the streams are under their usual names, or not there
    gen = GENERATION[arch]
    streams: list[Stream] = []
    notes = [f"# damaged: {why}"]
    for engine in ENGINES:
        bundles, note = readable(members.get(files[engine.stream], b""), gen)
        streams.append(Stream(engine.stream, bundles))
        if note:
            notes.append(f"# {engine.stream} ends early: {note}")
    program = Program("damaged", arch, gen, tuple(streams), variables, queues)
    return header(program) + "\n".join(notes) + "\n" + show(program)


def readable(raw: bytes, gen: int) -> tuple[tuple[Bundle, ...], str]:
    """The bundles before the first that is cut or cannot be decoded, and why they end."""
    found: list[Bundle] = []
    for at in range(0, len(raw) - SIZE + 1, SIZE):
        try:
            found.append(decode_bundle(raw[at : at + SIZE], gen))
        except NccError as wrong:
            return tuple(found), f"bundle {len(found)}, {wrong.said}"
    rest = len(raw) % SIZE
    return tuple(found), f"{rest} bytes of bundle {len(found)} are there" if rest else ""


def asm(text: str, name: str = "") -> Neff:
    """The NEFF of a listing, whose program obeys the laws of the level."""
    stage = read_stage(text, name)
    if stage.level != "isa":
        raise NccError("NCC004", f"a listing is an isa stage, and this is {stage.level}")
    for law in LAWS:
        for wrong in broken(law, stage):
            raise wrong.at(file=name)
    return build(stage.module)


def broken(law: Law, stage: Stage) -> list[NccError]:
    """The complaints of one law."""
    programs: tuple[Program, ...] = modules_of(stage.module)
    if law.together:
        return list(law.check(stage.module, stage.target))
    found: list[NccError] = []
    for program in programs:
        if law.node:
            for node in nodes(program):
                found += law.check(node, program, stage.target)
        else:
            found += law.check(program, stage.target)
    return found
