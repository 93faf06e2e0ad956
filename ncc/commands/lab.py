"""`ncc lab`: list, start, check, grade."""

from __future__ import annotations

from pathlib import Path

import attrs
import click

from ncc import labs as course
from ncc.commands.shared import Commands, show_json, show_table, written
from ncc.errors import CheckFailed, NccError


@click.group("lab", cls=Commands, no_args_is_help=False)
def lab() -> None:
    """Course labs: write a pass yourself, and let ncc tell whether it is right."""


@lab.command("list")
@click.option("--json", "as_json", is_flag=True, help="print as JSON")
def list_(as_json: bool) -> None:
    """List the labs."""
    rows = [
        {"lab": name, "title": one.title, "passes": list(one.passes), "programs": len(one.open)}
        for name, one in course.labs().items()
    ]
    show_json(rows) if as_json else show_table(rows)


@lab.command("start")
@click.argument("name")
@click.option("--into", metavar="DIR", help="the folder to write; the lab's name otherwise")
def start(name: str, into: str | None) -> None:
    """Write the lab's files into a new folder."""
    one = course.lab_named(name)
    for file in course.start(one, Path(into or name)):
        written(file)


def graded(name: str, folder: str | None, everything: bool, as_json: bool) -> None:
    """Grade and print; CheckFailed NCC008 unless every program passed."""
    one = course.lab_named(name)
    programs = (*one.open, *one.hidden) if everything else one.open
    results: list[course.Grade] = []
    report: dict[str, object] = {"lab": name, "passed": 0, "of": len(programs)}
    try:
        mine = course.handed_in(one, Path(folder or name))
        results = course.grade(one, mine, programs)
    except NccError as fault:
        if as_json:
            show_json({**report, "refused": str(fault), "programs": []})
        raise
    passed = sum(result.passed for result in results)
    if as_json:
        rows = [attrs.asdict(result) for result in results]
        show_json({**report, "passed": passed, "refused": "", "programs": rows})
    else:
        for r in results:
            cost = f"{r.cost} matrix passes, reference {r.reference}" if r.cost else ""
            click.echo(f"{'pass' if r.passed else 'FAIL'}  {r.program:<16} {r.said or cost}")
        click.echo(f"{passed} of {len(results)} programs pass")
    if passed < len(results):
        failed = len(results) - passed
        said = "1 program of the lab does" if failed == 1 else f"{failed} programs of the lab do"
        raise CheckFailed("NCC008", f"{said} not pass")


@lab.command("check")
@click.argument("name")
@click.option("--dir", "folder", metavar="DIR", help="your files; the lab's name otherwise")
@click.option("--json", "as_json", is_flag=True, help="print a report as JSON")
def check(name: str, folder: str | None, as_json: bool) -> None:
    """Run the open programs with your files in the passes' place."""
    graded(name, folder, False, as_json)


@lab.command("grade")
@click.argument("name")
@click.option("--dir", "folder", metavar="DIR", help="the files to grade")
@click.option("--json", "as_json", is_flag=True, help="print a report as JSON")
def grade(name: str, folder: str | None, as_json: bool) -> None:
    """Run all programs, the hidden ones too, and report."""
    graded(name, folder, True, as_json)
