"""What several commands share: the options of a compilation, and tables as text or JSON."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, cast

import attrs
import click

from ncc import files, passes
from ncc.errors import NccError, Place, UsageError, nearest
from ncc.passes.base import Pass
from ncc.programs import load_program
from ncc.stages import Stage
from ncc.target import ALLOCATORS, Target, target
from ncc.walking import Plan, first_pass, pass_named, plan


def names(words: str | None) -> frozenset[str]:
    """The passes of `P[,P]`, each by its right name."""
    return frozenset(pass_named(word) for word in (words or "").split(",") if word)


class Commands(click.Group):
    """A group of commands that names the nearest one for a word that is none."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        found = super().get_command(ctx, cmd_name)
        if found is None:
            said = f"{ctx.command_path} has no command {cmd_name!r}"
            known = self.list_commands(ctx)
            hint = nearest(cmd_name, known) or f"it has {', '.join(known)}"
            raise UsageError("NCC001", said, hint=hint)
        return found


PROGRAM_OPTIONS = (
    click.argument("program"),
    click.option(
        "--target",
        "machine",
        default="trn2",
        metavar="TARGET",
        show_default=True,
        help="trn1, trn2 or trn3; `trn2,sbuf=8192,psum=2` has less memory",
    ),
    click.option(
        "--with-pass",
        multiple=True,
        metavar="NAME=FILE[:PASS]",
        help="put the pass of a file in the place of a pass",
    ),
    click.option("--skip", multiple=True, metavar="P[,P]", help="leave out these optional passes"),
    click.option(
        "--lnc",
        type=click.IntRange(1, 2),
        default=1,
        show_default=True,
        help="cores a logical core has",
    ),
    click.option(
        "--ranks",
        type=click.IntRange(min=1),
        default=1,
        show_default=True,
        help="ranks that run it",
    ),
    click.option(
        "--arg",
        multiple=True,
        metavar="NAME=VALUE",
        help="a parameter of a kernel: a=bf16[128,512], scale=0.125",
    ),
    click.option(
        "--allocator",
        type=click.Choice(ALLOCATORS),
        help="who places tiles in SBUF and PSUM  [default: the kernel's, else coloring]",
    ),
    click.option(
        "--raise-attention",
        is_flag=True,
        help="put the attention kernel in the place of dot, softmax and dot",
    ),
    click.option(
        "--raise-mlp",
        is_flag=True,
        help="put a kernel in the place of dot, activation and dot, where there is one",
    ),
    click.option(
        "--nki-form",
        type=click.Choice(["bir", "klir"]),
        help="how a kernel's body travels into BIR; the NEFF is the same"
        "  [default: the kernel's, else bir]",
    ),
)


def program_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """PROGRAM and the options that say how it is compiled."""
    for option in reversed(PROGRAM_OPTIONS):
        command = option(command)
    return command


@attrs.frozen
class Job:
    """A program with its compile options, as a command got them."""

    stage: Stage
    machine: Target
    skip: tuple[str, ...]
    replaced: Mapping[str, Pass]
    asked: tuple[str, ...] = ()

    def plan(self, stop_after: str = "", start_after: str = "") -> Plan:
        return plan(self.stage, stop_after=stop_after, start_after=start_after, **self.ends)

    @property
    def ends(self) -> dict[str, Any]:
        return {"skip": self.skip, "replaced": self.replaced, "asked": self.asked}


def job(
    program: str,
    machine: str,
    with_pass: Sequence[str],
    skip: Sequence[str],
    lnc: int,
    ranks: int,
    arg: Sequence[str],
    allocator: str | None,
    nki_form: str | None,
    raise_attention: bool = False,
    raise_mlp: bool = False,
) -> Job:
    """The options of `program_options` as a Job; what comes later is refused by name (NCC005)."""
    if ranks != 1:
        said = "--ranks above 1 comes with the ring work; one rank is what there is"
        raise UsageError("NCC005", said)
    if re.search(r"\.py:\w", program):
        found = chosen_target(machine)
        found = found.allocating(allocator) if allocator else found
        stage = load_program(program, found, args=arg, lnc=lnc, form=nki_form or "")
    else:
        found = target(machine)
        for option, used in (("--lnc 2", lnc != 1), ("--arg", arg), ("--nki-form", nki_form)):
            if used:
                said = f"{option} is for a kernel, and {program} is none"
                raise UsageError("NCC002", said, hint="name the kernel as FILE.py:NAME")
        stage = load_program(program, found)
        if machine != "trn2" and stage.level != "hlo" and stage.target != found:
            said = f"the program is for {stage.target}; it cannot be compiled for {found}"
            raise UsageError("NCC002", said)
        stage = allocating(stage, allocator) if allocator else stage
    replaced = dict(replacement(words) for words in with_pass)
    raised = {"raise-attention": raise_attention, "raise-mlp": raise_mlp}
    asked = tuple(name for name, wanted in raised.items() if wanted)
    return Job(stage, found, tuple(sorted(names(",".join(skip)))), replaced, asked)


def allocating(stage: Stage, allocator: str) -> Stage:
    """The stage with that allocator. NCC002 where the memory has been given out."""
    names = passes.called()
    first, left = list(names).index("alloc-psum"), first_pass(stage, stage.after, names)
    if left > first:
        said = f"--allocator {allocator} comes too late: the program stands after {stage.after}"
        raise UsageError("NCC002", said)
    return attrs.evolve(stage, target=stage.target.allocating(allocator))


def chosen_target(words: str) -> Target:
    """The target of `--target`; where that was not given, the environment's."""
    from ncc.nki.targets import default_target

    context = click.get_current_context(silent=True)
    source = context.get_parameter_source("machine") if context else None
    return target(words) if source and source.name != "DEFAULT" else default_target()


def replacement(words: str) -> tuple[str, Pass]:
    """NAME=FILE[:PASS] as the name and the pass that stands in for it."""
    name, equals, where = words.partition("=")
    if not equals:
        raise UsageError("NCC002", f"cannot read {words!r}, expected NAME=FILE[:PASS]")
    file, colon, attribute = where.rpartition(":")
    if not colon or not attribute.isidentifier():
        file, attribute = where, "PASS"
    return pass_named(name), pass_of(file, attribute)


def pass_of(file: str, attribute: str = "PASS") -> Pass:
    """The pass that a Python file defines. NCC003 without a file, NCC001 without a pass in it."""
    path = Path(file)
    source = files.read(path)
    module = ModuleType(f"ncc_with_pass.{path.stem}")
    sys.modules[module.__name__] = module  # decorators look their module up there
    try:
        exec(compile(source, file, "exec"), module.__dict__)
    except NccError:
        raise
    except (Exception, SystemExit) as fault:
        line = getattr(fault, "lineno", None) or last_line(fault, file)
        said = f"cannot be imported: {type(fault).__name__}: {getattr(fault, 'msg', fault)}"
        raise NccError("NCC010", said, Place(path.name, line)) from None
    found = getattr(module, attribute, None)
    if not isinstance(found, Pass):
        raise UsageError("NCC001", f"{file} has no pass called {attribute}")
    return found


def last_line(fault: BaseException, file: str) -> int:
    """The last line of `file` that the fault came through."""
    line, trace = 0, fault.__traceback__
    while trace:
        if trace.tb_frame.f_code.co_filename == file:
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def known_here(words: Iterable[str], todo: Plan) -> None:
    """NCC001 when a pass that an option names is none of those that run."""
    for name in sorted(set(words) - set(todo.names)):
        first, last = (todo.names[0], todo.names[-1]) if todo.names else ("", "")
        what = f"{first} to {last} run" if first else "no pass runs"
        raise UsageError("NCC001", f"{name} does not run here, so there is nothing to show: {what}")


def written(path: Path) -> None:
    """Say on stderr that a file was written."""
    click.echo(f"wrote {path} ({path.stat().st_size} bytes)", err=True)


def show_json(value: object) -> None:
    """One JSON document on stdout."""
    click.echo(json.dumps(value, indent=1))


def show_table(rows: Sequence[Mapping[str, object]], columns: Iterable[str] = ()) -> None:
    """Rows as an aligned table."""
    heads = list(columns) or (list(rows[0]) if rows else [])
    lines = [heads, *([cell(row.get(head, "")) for head in heads] for row in rows)]
    widths = [max((len(line[i]) for line in lines), default=0) for i in range(len(heads))]
    for line in lines:
        words = (word.ljust(width) for word, width in zip(line, widths, strict=True))
        click.echo("  ".join(words).rstrip())


def cell(value: object) -> str:
    match value:
        case float():
            return f"{value:.6f}"
        case dict():
            pairs = cast("dict[str, object]", value)
            return ", ".join(f"{number} {name}" for name, number in pairs.items())
        case list():
            return ", ".join(map(str, cast("list[object]", value)))
        case True | False:
            return "yes" if value else ""
        case _:
            return str(value)
