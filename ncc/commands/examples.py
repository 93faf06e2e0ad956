"""`ncc examples`: the programs that ship."""

from __future__ import annotations

import re
from pathlib import Path

import click

from ncc import files
from ncc.commands.shared import show_json, show_table, written
from ncc.errors import UsageError, nearest
from ncc.kernels import KERNELS


def folder(installed: str, checkout: str) -> Path:
    """Files that ship: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).parent.parent
    inside = package / installed
    return inside if inside.is_dir() else package.parent / checkout


def programs() -> dict[str, Path]:
    """The example programs by file name, the kernels that ship among them."""
    shipped = {where.partition(":")[0] for where in KERNELS.values()}
    kernels = [Path(__file__).parent.parent / "kernels" / f"{name}.py" for name in shipped]
    found = [*folder("_examples", "examples").glob("*.*"), *kernels]
    return {path.name: path for path in sorted(found, key=lambda path: path.name)}


@click.command("examples")
@click.argument("name", required=False)
@click.option("--copy", metavar="DIR", help="copy it (or all of them) into a folder")
@click.option("--json", "as_json", is_flag=True, help="print the list as JSON")
def examples(name: str | None, copy: str | None, as_json: bool) -> None:
    """List the example programs, print one, or copy them."""
    known = programs()
    if name and name not in known:
        hint = nearest(name, known)
        raise UsageError("NCC001", f"there is no example {name!r}", hint=hint)
    if copy:
        into = files.folder(copy)
        for file in [name] if name else known:
            written(files.write(into / file, known[file].read_bytes()))
    elif name:
        click.echo(known[name].read_text(), nl=False)
    else:
        rows = [{"example": file, "shows": intent(path)} for file, path in known.items()]
        show_json(rows) if as_json else show_table(rows)


def intent(path: Path) -> str:
    """What an example shows: its first comment, or its module's signature without layouts."""
    first = path.read_text().partition("\n")[0]
    if path.suffix == ".hlo":
        bare = re.sub(r"/\*.*?\*/|(?<=\])\{[^{}]*\}", "", first)
        found = re.search(r"entry_computation_layout=\{([^{}]*)\}", bare)
        return found[1] if found else first
    return first.strip('#"* ')
