"""`ncc compile` and `ncc draw`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ncc import files
from ncc.commands.shared import (
    job,
    known_here,
    names,
    program_options,
    show_json,
    show_table,
    written,
)
from ncc.errors import UsageError
from ncc.observe import Changes, Dump, Pictures, Prints, Statistics, Times
from ncc.walking import Observer, Plan, pass_named, walk


@click.command("compile")
@program_options
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    help="the NEFF to write; NAME.neff here otherwise"
    " (a stage with --stop-after; BIR as JSON in a .json)",
)
@click.option("--print-after", metavar="P[,P]", help="print the stage after these passes")
@click.option("--print-before", metavar="P[,P]", help="print the stage before these passes")
@click.option("--print-after-all", is_flag=True, help="print every stage")
@click.option("--print-changed", is_flag=True, help="print what each pass changed")
@click.option("--graph-after", metavar="P[,P]", help="draw the stage after these passes (SVG)")
@click.option("--graph-after-all", is_flag=True, help="draw every stage")
@click.option("--dump", metavar="DIR", help="one numbered text and picture a pass, and a manifest")
@click.option(
    "--stop-after", metavar="P", help="stop there; print that stage if nothing else is asked"
)
@click.option("--start-after", metavar="P", help="start there with a printed stage")
@click.option("--header", is_flag=True, help="put the 1024-byte header in front of the NEFF")
@click.option("--uncompressed", is_flag=True, help="a bare tar instead of gzip")
@click.option("--pass-times", is_flag=True, help="print the seconds of every pass")
@click.option("--stats", is_flag=True, help="print how many nodes each stage has")
@click.option("--json", "as_json", is_flag=True, help="print tables as JSON")
def compile_(output: str | None, **given: Any) -> None:
    """Compile PROGRAM (HLO text, kernel.py:name or a printed stage) to a NEFF.

    Any stage on the way can be printed, drawn or written.
    """
    look = {k: given.pop(k) for k in tuple(given) if k not in JOB}
    if look["as_json"] and not (look["pass_times"] or look["stats"]):
        raise UsageError("NCC002", "--json prints tables; ask for --pass-times or --stats too")
    stop, start = (
        pass_named(word) if word else "" for word in (look["stop_after"], look["start_after"])
    )
    found = job(**given)
    todo = found.plan(stop, start)
    stem = stem_of(given["program"])
    if not output and found.stage.level == "neff":
        said = "the program is a NEFF already"
        raise UsageError("NCC002", said, hint="-o FILE writes it again, in another form if asked")
    if output or not stop:
        files.writable(output or f"{stem}.neff")
    times, statistics = Times(), Statistics()
    observers = watchers(look, stem, todo)
    asked = bool(observers) or look["pass_times"] or look["stats"]
    observers += [times] * bool(look["pass_times"]) + [statistics] * bool(look["stats"])
    stage = walk(found.stage, todo, observers)
    tables = {"pass-times": times.table(), "stats": statistics.rows}
    show_tables({k: v for k, v in tables.items() if look[k.replace("-", "_")]}, look["as_json"])
    if stage.level == "neff":
        from ncc import pack

        path = files.writable(output or f"{stem}.neff")
        pack.write(stage.module, path, compressed=not look["uncompressed"], header=look["header"])
        written(path)
    elif output and stage.level == "bir" and output.endswith(".json"):
        from ncc.ir.bir_json import to_json

        written(files.write(output, to_json(stage.module, stage.header())))
    elif output:
        written(files.write(output, stage.text()))
    elif not asked:
        click.echo(stage.text(), nl=False)


JOB = (
    "program",
    "machine",
    "with_pass",
    "skip",
    "lnc",
    "ranks",
    "arg",
    "allocator",
    "nki_form",
    "raise_attention",
    "raise_mlp",
)


def stem_of(program: str) -> str:
    """What the files of a program are called: its file, or its kernel."""
    file, _, name = program.rpartition(":")
    return name.partition("[")[0] if file.endswith(".py") else Path(program).stem


def show_tables(tables: dict[str, list[dict[str, object]]], as_json: bool) -> None:
    """The tables that were asked for; as JSON one object, so that stdout is one document."""
    if as_json:
        show_json(tables)
        return
    for rows in tables.values():
        show_table(rows)


def watchers(look: dict[str, Any], stem: str, todo: Plan) -> list[Observer]:
    """The observers that the options ask for."""
    found: list[Observer] = []

    def echo(text: str) -> None:
        click.echo(text, nl=False)

    after, before = names(look["print_after"]), names(look["print_before"])
    drawn = names(look["graph_after"])
    known_here(after | before | drawn, todo)
    if after or before or look["print_after_all"]:
        found.append(Prints(echo, after, before, look["print_after_all"]))
    if look["print_changed"]:
        found.append(Changes(echo))
    if drawn or look["graph_after_all"]:
        found.append(Pictures(Path(f"{stem}-graphs"), drawn, look["graph_after_all"], written))
    if look["dump"]:
        found.append(Dump(Path(look["dump"])))
    return found


@click.command("draw")
@program_options
@click.option("--after", required=True, metavar="P", help="the pass after which to draw")
@click.option("-o", "--output", metavar="FILE", help="the SVG to write; stdout otherwise")
def draw(after: str, output: str | None, **given: Any) -> None:
    """Draw the stage of PROGRAM after one pass, with what the pass touched tinted."""
    from ncc.stages import Stage
    from ncc.view.render import picture
    from ncc.walking import Step

    last: list[Step] = []

    class Last:
        def start(self, stage: Stage) -> None: ...

        def step(self, step: Step) -> None:
            last[:] = [step]

    wanted = pass_named(after)
    found = job(**given)
    if output:
        files.writable(output)
    todo = Plan(()) if found.stage.after == wanted else found.plan(wanted)
    stage = walk(found.stage, todo, [Last()])
    svg = picture(stage, last[0].before if last else None)
    if output:
        written(files.write(output, svg))
    else:
        click.echo(svg.decode(), nl=False)
