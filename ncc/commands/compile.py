"""`ncc compile` and `ncc draw`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ncc.commands.shared import job, names, program_options, show_table, writable
from ncc.driver import Observer, pass_named, walk
from ncc.errors import UsageError
from ncc.observe import Changes, Dump, Pictures, Prints, Statistics, Times

LATER = {"allocator": "coloring", "nki_form": None, "raise_attention": False}


@click.command("compile")
@program_options
@click.option("-o", "--output", metavar="FILE", help="the NEFF to write; NAME.neff here otherwise")
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
@click.option(
    "--allocator",
    type=click.Choice(["coloring", "stack", "linear-scan"]),
    default="coloring",
    show_default=True,
    help="how SBUF and PSUM are allocated",
)
@click.option("--nki-form", hidden=True)
@click.option("--raise-attention", is_flag=True, hidden=True)
def compile_(output: str | None, **given: Any) -> None:
    """Compile PROGRAM (HLO text or a printed stage) to a NEFF, and look at any stage on the way."""
    for option, plain in LATER.items():
        if given.pop(option) != plain:
            raise UsageError("NCC005", f"--{option.replace('_', '-')} comes with the NKI work")
    look = {k: given.pop(k) for k in tuple(given) if k not in JOB}
    found = job(**given)
    stop = pass_named(look["stop_after"]) if look["stop_after"] else ""
    start = pass_named(look["start_after"]) if look["start_after"] else ""
    times, statistics = Times(), Statistics()
    observers = watchers(look, Path(given["program"]).stem)
    asked = bool(observers) or look["pass_times"] or look["stats"]
    observers += [times] * bool(look["pass_times"]) + [statistics] * bool(look["stats"])
    stage = walk(found.stage, found.plan(stop, start), observers)
    if look["pass_times"]:
        show_table(times.table(), look["as_json"])
    if look["stats"]:
        show_table(statistics.rows, look["as_json"])
    if stage.level == "neff":
        from ncc import pack

        path = writable(output or f"{Path(given['program']).stem}.neff")
        pack.write(stage.module, path, compressed=not look["uncompressed"], header=look["header"])
        click.echo(f"wrote {path} ({path.stat().st_size} bytes)", err=True)
    elif output:
        writable(output).write_text(stage.text())
    elif not asked:
        click.echo(stage.text(), nl=False)


JOB = ("program", "machine", "with_pass", "skip", "lnc", "ranks", "arg")


def watchers(look: dict[str, Any], stem: str) -> list[Observer]:
    """The observers that the options ask for."""
    found: list[Observer] = []

    def echo(text: str) -> None:
        click.echo(text, nl=False)

    after, before = names(look["print_after"]), names(look["print_before"])
    if after or before or look["print_after_all"]:
        found.append(Prints(echo, after, before, look["print_after_all"]))
    if look["print_changed"]:
        found.append(Changes(echo))
    drawn = names(look["graph_after"])
    if drawn or look["graph_after_all"]:
        found.append(Pictures(Path(f"{stem}-graphs"), drawn, look["graph_after_all"]))
    if look["dump"]:
        found.append(Dump(Path(look["dump"])))
    return found


@click.command("draw")
@program_options
@click.option("--after", required=True, metavar="P", help="the pass after which to draw")
@click.option("-o", "--output", metavar="FILE", help="the SVG to write; stdout otherwise")
def draw(after: str, output: str | None, **given: Any) -> None:
    """Draw the stage of PROGRAM after one pass, with what the pass touched tinted."""
    from ncc.driver import Step
    from ncc.view.render import picture

    found = job(**given)
    last: list[Step] = []

    class Last:
        def start(self, stage: object) -> None: ...

        def step(self, step: Step) -> None:
            last[:] = [step]

    stage = walk(found.stage, found.plan(pass_named(after)), [Last()])
    svg = picture(stage, last[0].before if last else None)
    if output:
        writable(output).write_bytes(svg)
        click.echo(f"wrote {output}", err=True)
    else:
        click.echo(svg.decode(), nl=False)
