"""`ncc disasm`, `ncc asm` and `ncc neff`."""

from __future__ import annotations

from pathlib import Path

import click

from ncc import files
from ncc.commands.shared import Commands, show_json, show_table, written
from ncc.errors import NccError, Place, UsageError


@click.command("disasm")
@click.argument("file")
def disasm(file: str) -> None:
    """List the bundles of a NEFF, one a line; a damaged stream as far as it goes."""
    from ncc.pack.listing import disasm as listing

    text, fault = listing(files.read(file), Path(file).name)
    click.echo(text, nl=False)
    if fault:
        raise fault


@click.command("asm")
@click.argument("file")
@click.option("-o", "--output", metavar="FILE", help="the NEFF to write; NAME.neff here otherwise")
@click.option("--header", is_flag=True, help="put the 1024-byte header in front of the NEFF")
@click.option("--uncompressed", is_flag=True, help="a bare tar instead of gzip")
def asm(file: str, output: str | None, header: bool, uncompressed: bool) -> None:
    """Make a NEFF of a listing that `ncc disasm` printed."""
    from ncc import pack
    from ncc.pack.listing import asm as assemble

    raw, name = files.read(file), Path(file).name
    path = files.writable(output or f"{Path(file).stem}.neff")
    try:
        text = raw.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        said = "is not text; a listing is what `ncc disasm` prints"
        raise NccError("NCC004", said, Place(name)) from None
    pack.write(assemble(text, name), path, compressed=not uncompressed, header=header)
    written(path)


@click.group("neff", cls=Commands, no_args_is_help=False)
def neff() -> None:
    """Look into a NEFF: its members, its record, its health."""


@neff.command("list")
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="print as JSON")
def list_(file: str, as_json: bool) -> None:
    """List the members, and the record: version, uuid, engine bitmap, features."""
    from ncc import pack

    record, members = pack.describe(files.read(file), Path(file).name)
    if as_json:
        show_json({"record": record, "members": members})
        return
    show_table(members)
    click.echo("")
    for key, value in record.items():
        click.echo(f"{key}: {value}")


@neff.command("extract")
@click.argument("file")
@click.argument("member")
@click.option("-o", "--output", metavar="FILE", help="where to; stdout otherwise")
def extract(file: str, member: str, output: str | None) -> None:
    """Write one member's bytes."""
    from ncc import pack
    from ncc.errors import nearest

    found = pack.read(files.read(file), Path(file).name)
    data = found.get(member)
    if data is None:
        names = [m.path for m in found.members]
        raise UsageError("NCC001", f"{file} has no member {member!r}", hint=nearest(member, names))
    if output:
        written(files.write(output, data))
    else:
        click.echo(data, nl=False)


@neff.command("verify")
@click.argument("file")
def verify(file: str) -> None:
    """Refuse the file with one sentence, or say that it is sound."""
    from ncc import pack

    found = pack.read(files.read(file), Path(file).name)
    click.echo(f"{Path(file).name}: {len(found.members)} members, sound")
