"""`ncc examples`: the programs that ship."""

from __future__ import annotations

from pathlib import Path

import click

from ncc.errors import UsageError, nearest


def folder(installed: str, checkout: str) -> Path:
    """Files that ship: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).parent.parent
    inside = package / installed
    return inside if inside.is_dir() else package.parent / checkout


def programs() -> dict[str, Path]:
    """The example programs by file name."""
    found = sorted(folder("_examples", "examples").glob("*.*"))
    return {path.name: path for path in found}


@click.command("examples")
@click.argument("name", required=False)
@click.option("--copy", metavar="DIR", help="copy it (or all of them) into a folder")
def examples(name: str | None, copy: str | None) -> None:
    """List the example programs, print one, or copy them."""
    known = programs()
    if name and name not in known:
        hint = nearest(name, known)
        raise UsageError("NCC003", f"there is no example {name!r}", hint=hint)
    if copy:
        Path(copy).mkdir(parents=True, exist_ok=True)
        for file in [name] if name else known:
            (Path(copy) / file).write_bytes(known[file].read_bytes())
            click.echo(f"wrote {Path(copy) / file}", err=True)
    elif name:
        click.echo(known[name].read_text(), nl=False)
    else:
        for file, path in known.items():
            click.echo(f"{file:<16} {intent(path)}")


def intent(path: Path) -> str:
    """What an example shows: its first comment, or its module's signature."""
    lines = path.read_text().splitlines() or [""]
    if path.suffix == ".hlo":
        _, _, layout = lines[0].partition("entry_computation_layout=")
        return layout.strip("{}") or lines[0]
    return lines[0].strip('#"* ')
