"""`ncc lab`: list, start, check, grade."""

from __future__ import annotations

import json
from pathlib import Path

import attrs
import click

from ncc import labs as course
from ncc.commands.shared import Commands
from ncc.errors import CheckFailed


@click.group("lab", cls=Commands, no_args_is_help=False)
def lab() -> None:
    """Course labs: write a pass yourself, and let ncc tell whether it is right."""


@lab.command("list")
def list_() -> None:
    """List the labs."""
    for name, one in course.labs().items():
        click.echo(f"{name:<12} {one.title} ({', '.join(one.passes)})")


@lab.command("start")
@click.argument("name")
@click.option("--into", metavar="DIR", help="the folder to write; the lab's name otherwise")
def start(name: str, into: str | None) -> None:
    """Write the lab's files into a new folder."""
    one = course.lab_named(name)
    for file in course.start(one, Path(into or name)):
        click.echo(f"wrote {file}")


def graded(name: str, folder: str | None, everything: bool, as_json: bool) -> None:
    """Grade and print; CheckFailed NCC008 unless every program passed."""
    one = course.lab_named(name)
    mine = course.handed_in(one, Path(folder or name))
    programs = (*one.open, *one.hidden) if everything else one.open
    results = course.grade(one, mine, programs)
    passed = sum(result.passed for result in results)
    if as_json:
        rows = [attrs.asdict(result) for result in results]
        report = {"lab": name, "passed": passed, "of": len(results), "programs": rows}
        click.echo(json.dumps(report, indent=1))
    else:
        for r in results:
            cost = f"{r.cost} matrix passes, reference {r.reference}" if r.cost else ""
            click.echo(f"{'pass' if r.passed else 'FAIL'}  {r.program:<16} {r.said or cost}")
        click.echo(f"{passed} of {len(results)} programs pass")
    if passed < len(results):
        raise CheckFailed("NCC008", f"{len(results) - passed} programs of the lab do not pass")


@lab.command("check")
@click.argument("name")
@click.option("--dir", "folder", metavar="DIR", help="your files; the lab's name otherwise")
def check(name: str, folder: str | None) -> None:
    """Run the open programs with your files in the passes' place."""
    graded(name, folder, False, False)


@lab.command("grade")
@click.argument("name")
@click.option("--dir", "folder", metavar="DIR", help="the files to grade")
@click.option("--json", "as_json", is_flag=True, help="print a report as JSON")
def grade(name: str, folder: str | None, as_json: bool) -> None:
    """Run all programs, the hidden ones too, and report."""
    graded(name, folder, True, as_json)
