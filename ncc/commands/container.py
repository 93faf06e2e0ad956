"""`ncc disasm`, `ncc asm` and `ncc neff`."""

from __future__ import annotations

from pathlib import Path

import click

from ncc.commands.shared import show_table, writable
from ncc.errors import UsageError


def bytes_of(file: str) -> bytes:
    """The bytes of a file; NCC003 when there is none."""
    path = Path(file)
    if not path.is_file():
        raise UsageError("NCC003", f"there is no file {file}")
    return path.read_bytes()


@click.command("disasm")
@click.argument("file")
def disasm(file: str) -> None:
    """List the bundles of a NEFF, one a line; a damaged stream as far as it goes."""
    from ncc.pack.listing import disasm as listing

    text, fault = listing(bytes_of(file), Path(file).name)
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

    path = writable(output or f"{Path(file).stem}.neff")
    try:
        text = bytes_of(file).decode()
    except UnicodeDecodeError:
        raise UsageError("NCC004", f"{file} is not text") from None
    pack.write(assemble(text, Path(file).name), path, compressed=not uncompressed, header=header)
    click.echo(f"wrote {path} ({path.stat().st_size} bytes)", err=True)


@click.group("neff")
def neff() -> None:
    """Look into a NEFF: its members, its record, its health."""


@neff.command("list")
@click.argument("file")
@click.option("--json", "as_json", is_flag=True, help="print as JSON")
def list_(file: str, as_json: bool) -> None:
    """List the members, and the record: version, uuid, engine bitmap, features."""
    import json

    from ncc import pack

    record, members = pack.describe(bytes_of(file), Path(file).name)
    if as_json:
        click.echo(json.dumps({"record": record, "members": members}, indent=1))
        return
    show_table(members, False)
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

    found = pack.read(bytes_of(file), Path(file).name)
    data = found.get(member)
    if data is None:
        names = [m.path for m in found.members]
        raise UsageError("NCC001", f"{file} has no member {member!r}", hint=nearest(member, names))
    if output:
        writable(output).write_bytes(data)
    else:
        click.get_binary_stream("stdout").write(data)


@neff.command("verify")
@click.argument("file")
def verify(file: str) -> None:
    """Refuse the file with one sentence, or say that it is sound."""
    from ncc import pack

    found = pack.read(bytes_of(file), Path(file).name)
    click.echo(f"{Path(file).name}: {len(found.members)} members, sound")
