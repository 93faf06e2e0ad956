"""`ncc run` and `ncc check`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ncc import files
from ncc.commands.shared import Job, job, program_options, show_json, written
from ncc.errors import CheckFailed, UsageError
from ncc.stages import Stage, level


def arrays_options(command: Any) -> Any:
    """--inputs or --random."""
    for option in (
        click.option(
            "--random",
            "seed",
            type=click.IntRange(min=0),
            metavar="SEED",
            help="draw values that the types hold exactly",
        ),
        click.option("--inputs", metavar="FILE", help="an .npz with in0, in1, ... or the names"),
    ):
        command = option(command)
    return command


def arrays(stage: Stage, inputs: str | None, seed: int | None) -> list[Any]:
    """The arrays that the options name; whole numbers from seed 0 otherwise, said on stderr."""
    from ncc import values

    if inputs and seed is not None:
        raise UsageError("NCC002", "--inputs and --random exclude each other")
    if inputs:
        return values.read_inputs(inputs, stage)
    if seed is not None:
        return values.random(stage, seed)
    click.echo("no inputs given: whole numbers drawn from seed 0", err=True)
    return values.whole(stage, 0)


@click.command("run")
@program_options
@arrays_options
@click.option("--outputs", metavar="FILE", help="write the outputs as out0, out1, ... to an .npz")
@click.option(
    "--at",
    "where",
    default="neff",
    metavar="LEVEL",
    show_default=True,
    help="run by the meaning of this level instead of the bytes",
)
@click.option("--watch", multiple=True, metavar="NAME", help="print this value too")
@click.option(
    "--shuffle",
    type=click.IntRange(min=0),
    metavar="SEED",
    help="interleave the engines at random; the result may not change",
)
def run(
    inputs: str | None,
    seed: int | None,
    outputs: str | None,
    where: str,
    watch: tuple[str, ...],
    shuffle: int | None,
    **given: Any,
) -> None:
    """Run PROGRAM (HLO text, kernel.py:name, a printed stage or a NEFF) and print its outputs."""
    from ncc import values
    from ncc.driver import refused_early
    from ncc.placing import lines_of
    from ncc.walking import plan_to, run_stage, walk

    level(where)
    if outputs:
        files.writable(outputs)
    if shuffle is not None and where != "neff":
        raise UsageError("NCC002", "--shuffle interleaves engines; it needs the bytes (--at neff)")
    found = job(**given)
    todo = plan_to(found.stage, where, **found.ends)
    refused_early(found.stage, todo)
    arguments = arrays(found.stage, inputs, seed)
    stage = walk(found.stage, todo)
    seen: dict[str, Any] | None = {} if watch else None
    with lines_of(found.stage, **found.ends):
        if shuffle is not None:
            results = shuffled(found, stage, arguments, shuffle)
        else:
            results = run_stage(stage, arguments, seen)
    for name in watch:
        show_watched(name, seen or {}, where)
    if outputs:
        values.write_outputs(outputs, results)
        written(Path(outputs))
    else:
        for (name, dtype, _), array in zip(values.signature(stage)[1], results, strict=True):
            show_array(name, dtype, array)


def shuffled(found: Job, stage: Stage, arguments: list[Any], seed: int) -> list[Any]:
    """The outputs from the bytes, engines and queues interleaved at random from a seed."""
    from ncc import values
    from ncc.sim.run import run_neff

    wanted, _ = values.signature(stage)
    return run_neff(stage.module, stage.target, values.fitted(wanted, arguments), seed=seed)


def show_array(name: str, dtype: str, array: Any) -> None:
    import numpy as np

    shape = "x".join(map(str, array.shape)) or "scalar"
    click.echo(f"{name} {dtype} {shape}")
    shown = np.array2string(np.asarray(array, np.float64), threshold=64, edgeitems=3, precision=6)
    click.echo(shown)


def show_watched(name: str, seen: dict[str, Any], where: str) -> None:
    """One watched value; NCC001 when the level has none of that name."""
    from ncc.errors import nearest

    if name not in seen:
        said = f"{where} has no value called {name!r}"
        raise UsageError(
            "NCC001", said, hint=nearest(name, seen) or f"it has {', '.join(list(seen)[:8])}"
        )
    show_array(name, str(seen[name].dtype), seen[name])


@click.command("check")
@program_options
@arrays_options
@click.option("--against", metavar="FILE", help="compare with the outputs in an .npz too")
@click.option("--json", "as_json", is_flag=True, help="print the table as JSON")
def check(
    inputs: str | None, seed: int | None, against: str | None, as_json: bool, **given: Any
) -> None:
    """Run PROGRAM before and after every pass and from the bytes, on the same inputs.

    Whole numbers must agree exactly at every stage; random ones within the rounding that the
    program's sums allow, and bit for bit across passes that are marked exact.
    """
    from ncc import checking, values
    from ncc.driver import refused_early

    if against == "jax":
        raise UsageError("NCC005", "--against jax comes with the HLO work; give an .npz")
    found = job(**given)
    todo = found.plan()
    refused_early(found.stage, todo)
    right = values.read_outputs(against, found.stage) if against else None
    if inputs or seed is not None:
        sets = [checking.given(found.stage, arrays(found.stage, inputs, seed))]
    else:
        sets = [checking.whole_numbers(found.stage), checking.random_numbers(found.stage)]
    result = checking.check(found.stage, todo, sets, right)
    if as_json:
        show_json(result.report())
    for line in [] if as_json else result.summary():
        click.echo(line)
    if result.failed:
        raise CheckFailed("NCC008", result.failed, result.place)
