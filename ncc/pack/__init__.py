"""The container: a NEFF is a gzip-compressed tar of streams, JSON and constants.

    build(program) -> Neff               the members of an ISA program, or of several cores' (Cores)
    unpack_all(neff) -> Program          the inverse; of several cores the Cores
    unpack(neff, core=0) -> Program      one of them
    to_bytes(neff, compressed, header)   the file: gzip or bare tar, with or without the header
    write(neff, path, ...)               the file on disk, whole or not at all
    read(path or bytes, name) -> Neff    verified; NCC8.. says what is wrong
    check(neff) -> Sound                 the same checks on members in memory
    describe(path or bytes, name)        what `ncc neff list` prints
    members_of(raw) -> (dict, record)    unwrapped only, for looking into damaged files

`ncc.pack.listing` has `disasm` and `asm`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from ncc import files
from ncc.errors import NccError
from ncc.ir.neff import Member, Neff

if TYPE_CHECKING:
    from ncc.ir.core import Cores
    from ncc.ir.isa import Program
    from ncc.pack.verify import Sound
    from ncc.target import Target

USTAR = 257


def build(program: Program | Cores) -> Neff:
    """The members of an ISA program, of one core or several."""
    from ncc.pack.members import build as made

    return made(program)


def to_bytes(neff: Neff, compressed: bool = True, header: bool = False) -> bytes:
    """The file of a NEFF. Equal members and options give equal bytes."""
    from ncc.pack.archive import gzip_bytes, tar_bytes
    from ncc.pack.members import json_bytes
    from ncc.pack.names import INFO
    from ncc.pack.record import GZIP, TAR, check_record, header_bytes
    from ncc.pack.schema import fault, read_json

    members = {member.path: member.data for member in neff.members}
    info = read_json(members, INFO) if INFO in members else {}
    record = check_record(info, INFO) if "header" in info else None
    if record is not None and record["pkg_version"] != (GZIP if compressed else TAR):
        record["pkg_version"] = GZIP if compressed else TAR
        members[INFO] = json_bytes(info)
    payload = tar_bytes(members)
    payload = gzip_bytes(payload) if compressed else payload
    if not header:
        return payload
    if record is None:
        raise fault(812, "has no `header`, so no header can be written", INFO)
    return header_bytes(record, payload) + payload


def write(neff: Neff, path: str | Path, compressed: bool = True, header: bool = False) -> None:
    """Write the file, whole or not at all."""
    files.write(path, to_bytes(neff, compressed, header))


def _raw(source: str | Path | bytes) -> bytes:
    return source if isinstance(source, bytes) else files.read(source)


def members_of(raw: bytes) -> tuple[dict[str, bytes], dict[str, Any] | None]:
    """The members and the header's record of a file in any of the three forms (R1 to R10)."""
    from ncc.pack import record as r
    from ncc.pack.archive import fault, gunzip, untar

    if raw[:2] == b"\x1f\x8b":
        return untar(gunzip(raw)), None
    if raw[USTAR : USTAR + 5] == b"ustar":
        return untar(raw), None
    size = int.from_bytes(raw[8:16], "little")
    behind = raw[r.SIZE : r.SIZE + 2] == b"\x1f\x8b" or raw[r.SIZE + USTAR :][:5] == b"ustar"
    if len(raw) < 16 or (size != r.SIZE and not behind):
        raise fault(800, "not a NEFF: no gzip, tar or header at byte 0")
    if len(raw) < r.SIZE:
        raise fault(801, f"the file has {len(raw)} bytes, and its header alone has {r.SIZE}")
    if size != r.SIZE:
        raise fault(802, f"header_size is {size}, and {r.SIZE} is supported", "header")
    payload = raw[r.SIZE :]
    found, rest = r.read_header(raw[: r.SIZE])
    if rest["data_size"] != len(payload) or not payload:
        said = f"data_size is {rest['data_size']}, and {len(payload)} bytes follow the header"
        raise fault(803, said, "header", "the file is cut short or has bytes after its end")
    package = found["pkg_version"]
    if package not in (r.GZIP, r.TAR):
        said = f"pkg_version is {package}, and 1 (tar) and 2 (gzip) are supported"
        raise fault(804, said, "header", "the reader is too old: use a newer ncc")
    zipped = payload[:2] == b"\x1f\x8b"
    if zipped != (package == r.GZIP) or not (zipped or payload[USTAR : USTAR + 5] == b"ustar"):
        said = f"pkg_version is {package}, and the payload is {'gzip' if zipped else 'not gzip'}"
        raise fault(804, said, "header")
    r.versions(found, "header")
    checked = 16 if package == r.GZIP else 32
    if r.checksum(payload, package)[:checked] != rest["hash"][:checked]:
        raise fault(806, "the hash does not fit the payload", "header", "the file is damaged")
    return untar(gunzip(payload) if zipped else payload), found


def neff_of(members: dict[str, bytes]) -> Neff:
    return Neff(tuple(Member(path, members[path]) for path in sorted(members)))


def read(source: str | Path | bytes, name: str = "", target: Target | None = None) -> Neff:
    """A verified NEFF from a path or from bytes; `name` is the file's name in error messages."""
    from ncc.pack.verify import verify

    file = name or (Path(source).name if isinstance(source, str | Path) else "")
    try:
        members, header = members_of(_raw(source))
        verify(members, header, target)
    except NccError as wrong:
        raise wrong.at(file=file) from None
    return neff_of(members)


def check(neff: Neff, target: Target | None = None) -> Sound:
    """The checks of `read` on members in memory."""
    from ncc.pack.verify import verify

    return verify({member.path: member.data for member in neff.members}, None, target)


def unpack(neff: Neff, core: int = 0) -> Program:
    """The program of one core, decoded from the bytes; NCC811 for a core that there is not."""
    from ncc.pack.schema import fault

    found = programs_of(neff)
    if not 0 <= core < len(found):
        raise fault(811, f"there is no core {core}; there are {len(found)}", "kelf-0.json")
    return found[core]


def unpack_all(neff: Neff) -> Program | Cores:
    """The programs of all cores."""
    from ncc.ir.core import Cores

    found = programs_of(neff)
    return found[0] if len(found) == 1 else Cores(found)


def programs_of(neff: Neff) -> tuple[Program, ...]:
    """Each core's program; NCC814 for what ncc cannot run."""
    from ncc.pack.schema import fault

    found = check(neff)
    if not found.programs:
        one = next(core for core in found.cores if core.foreign)
        raise fault(814, f"ncc cannot run this file: {one.foreign}", one.folder)
    return found.programs


def describe(
    source: str | Path | bytes, name: str = ""
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The record (version, uuid, engines, features, warnings) and one row a member."""
    from ncc.pack.overview import describe as described

    file = name or (Path(source).name if isinstance(source, str | Path) else "")
    try:
        return described(_raw(source))
    except NccError as wrong:
        raise wrong.at(file=file) from None
