"""Is a NEFF sound? Everything that the reference lists as refused (R5, R6, R11 to R19)."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import attrs

from ncc.encode.bundle import decode_stream
from ncc.encode.codec import SIZE, by_opcode
from ncc.encode.laws import (
    dmas_stay_inside_variables,
    queues_are_declared,
    shared_variables_agree,
)
from ncc.errors import NccError, Place, listed
from ncc.ir.core import Cores
from ncc.ir.isa import Bundle, Program, Stream
from ncc.pack.definition import Core, read_core, version
from ncc.pack.names import ARCHES, ENGINES, GENERATION, GRAPH, INFO, KELF, OLD_KELF
from ncc.pack.record import Record, check_record, digest_of
from ncc.pack.schema import Json, fault, get, objects, read_json
from ncc.target import TARGETS, Target

LENGTHS = frozenset((0x10, 0x11))
EXTENSION = 0xDA
EXIT = (0xDF, 1)  # bytes 00 and 0C


@attrs.frozen
class Sound:
    """A NEFF that was verified: its cores as programs, its record, and what is odd about it."""

    cores: tuple[Core, ...]
    programs: tuple[Program, ...]  # of the cores that ncc can run; else empty
    record: Record
    warnings: tuple[str, ...]


def verify(
    members: Mapping[str, bytes], header: Record | None = None, target: Target | None = None
) -> Sound:
    """The contents of a sound NEFF; one NccError (NCC8..) names the first thing that is wrong."""
    warnings: list[str] = []
    info = read_info(members, warnings)
    found = agreed(info, header)
    arch, paths, kelf = graphs(members, target, warnings)
    cores_needed = found.get("num_tpb", len(paths)) * found.get("lnc_size", 1)
    if len(paths) > cores_needed:
        said = f"there are {len(paths)} subgraphs for {cores_needed} cores"
        raise fault(819, said, kelf, "lnc_size x num_tpb of the record is the number of cores")
    if GRAPH in members:
        warnings += filter(None, [version(read_json(members, GRAPH), GRAPH, "0.5")])
    cores = tuple(read_core(members, path, kelf) for path in paths)
    name = info.get("name") or found.get("name") or "neff"
    programs = tuple(program_of(members, core, str(name), arch) for core in cores)
    machine = next(t for t in TARGETS.values() if t.neff == arch)
    for wrong in shared_variables_agree(Cores(programs), machine):
        raise NccError("NCC820", wrong.said, wrong.place, "compile again: the cores must agree")
    warnings += extras(members, cores)
    runnable = not any(core.foreign for core in cores)
    warnings += [f"ncc cannot run it: {core.foreign}" for core in cores if core.foreign]
    return Sound(cores, programs if runnable else (), found, tuple(warnings))


def read_info(members: Mapping[str, bytes], warnings: list[str]) -> Json:
    """info.json, whose digest must fit the other members (R6)."""
    if INFO not in members:
        warnings.append(f"{INFO} is missing, so nothing says what the file needs")
        return {}
    info = read_json(members, INFO)
    if "digest" in info:
        digest = digest_of(dict(members))
        if info["digest"] != digest:
            said = (
                f"`digest` is {str(info['digest'])[:12]}..., and the members give {digest[:12]}..."
            )
            raise fault(806, said, INFO, "a member was changed after the file was written")
    return info


def agreed(info: Json, header: Record | None) -> Record:
    """The one record of a file: info.json's, the header's, or both when they are equal."""
    inside = check_record(info, INFO) if "header" in info else None
    if header is None:
        return inside or {}
    outside = check_record({"header": header}, "header")
    if inside is not None:
        for field, value in outside.items():
            if inside.get(field) != value:
                said = f"{field} is {value!r} in the header and {inside.get(field)!r} in {INFO}"
                raise fault(806, said, "header", "the two records must agree")
    return outside


def graphs(
    members: Mapping[str, bytes], target: Target | None, warnings: list[str]
) -> tuple[str, list[str], str]:
    """The architecture and the definitions that kelf-0.json lists (R11, R17, R18)."""
    kelf = KELF if KELF in members or OLD_KELF not in members else OLD_KELF
    if kelf not in members:
        raise fault(811, "is missing", KELF, "it lists the subgraphs")
    found = read_json(members, kelf)
    warnings += filter(None, [version(found, kelf, "0.5")])
    word = get(found, "target", str, kelf, 817, "")
    arch = ARCHES.get(word, target.neff if word == "*" and target else "")
    if word == "*" and not arch:
        arch = "cayman"
    if not arch:
        known = listed(x for x in ARCHES if x)
        raise fault(817, f"the target is {word!r}, and {known} are supported", kelf)
    if target is not None and arch != target.neff:
        said = f"the target is {word!r}, and {target.name} runs {target.neff!r}"
        raise fault(817, said, kelf, "compile for this target")
    paths = [get(g, "definition", str, kelf, 811) for g in objects(found, "graphs", kelf, 811)]
    if not paths:
        raise fault(811, "lists no graph", kelf)
    if len(set(paths)) < len(paths):
        raise fault(811, "lists one definition twice", kelf)
    return arch, paths, kelf


def program_of(members: Mapping[str, bytes], core: Core, name: str, arch: str) -> Program:
    """The program of a core, with its streams decoded (R13) and its addresses checked."""
    gen = GENERATION[arch]
    streams = tuple(
        Stream(e.stream, read_stream(members, core.streams[e.stream], gen, core.folder))
        for e in ENGINES
    )
    program = Program(name, arch, gen, streams, core.vars, core.queues)
    if not core.foreign:
        machine = next(t for t in TARGETS.values() if t.neff == arch)
        for number, law in ((820, dmas_stay_inside_variables), (815, queues_are_declared)):
            for wrong in law(program, machine):
                place = Place(value=f"{core.folder}, {wrong.place.value}")
                raise NccError(f"NCC{number}", wrong.said, place, wrong.hint)
    return program


def read_stream(
    members: Mapping[str, bytes], path: str, gen: int, folder: str
) -> tuple[Bundle, ...]:
    """R13, then the records themselves."""
    raw = members[path]
    if len(raw) % SIZE:
        said = f"has {len(raw)} bytes, no multiple of 64: it ends inside bundle {len(raw) // SIZE}"
        raise fault(813, said, path, f"{folder}/def.json names it")
    known = by_opcode(gen)
    for number, (opcode, length) in enumerate(zip(raw[::SIZE], raw[1::SIZE], strict=True)):
        if known[opcode] is None:
            said = f"bundle {number} has the opcode {opcode:02X}, unknown to generation {gen}"
            raise fault(813, said, path, "the reader is too old, or the file is damaged")
        if length not in LENGTHS and opcode != EXTENSION:
            said = f"byte 01 of bundle {number} is {length:02X} and must be 10"
            raise fault(813, said, path)
    if raw and (raw[-SIZE], raw[12 - SIZE]) != EXIT:
        raise fault(813, "does not end with an Exit", path, "every stream that is not empty does")
    try:
        return decoded(raw, gen)
    except NccError as wrong:
        place = Place(value=f"{path}, {wrong.place.value}")
        raise NccError(wrong.code, wrong.said, place, wrong.hint) from None


@lru_cache(maxsize=10)
def decoded(raw: bytes, gen: int) -> tuple[Bundle, ...]:
    """The records of a stream. Kept, because laws, machine and listing ask for the same bytes."""
    return decode_stream(raw, gen)


def extras(members: Mapping[str, bytes], cores: tuple[Core, ...]) -> list[str]:
    """Members that nothing here reads."""
    known = {INFO, KELF, OLD_KELF, GRAPH}
    for core in cores:
        folder = core.folder
        known |= {f"{folder}/def.json", f"{folder}/tensor_map.json", *core.streams.values()}
        definition = read_json(members, f"{folder}/def.json")
        known |= {f"{folder}/{definition[e.key]}" for e in ENGINES}
        known |= {
            f"{folder}/{entry['file_name']}"
            for entry in definition["var"].values()
            if "file_name" in entry
        }
    return [f"{path} is a member that nothing reads" for path in members if path not in known]
