"""The command line: `ncc COMMAND ...`, exit statuses, and how faults are told.

Exit status: 0 done, 1 the program is at fault, 2 usage or a missing file, 3 a check failed, 70 a
fault in ncc itself. Everything but click is imported on use: `ncc --help` loads nothing else.
"""

from __future__ import annotations

import gc
import os
import sys
import warnings
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ncc.errors import NccError
    from ncc.walking import InternalFault

# name, where it is (module of ncc.commands, its command), one line of help
COMMANDS: tuple[tuple[str, str, str], ...] = (
    (
        "compile",
        "compile:compile_",
        "Compile a program to a NEFF, and look at any stage on the way.",
    ),
    ("run", "run:run", "Run a program, from its bytes or at any level."),
    ("check", "run:check", "Run a program before and after every pass and from the bytes."),
    ("draw", "compile:draw", "Draw one stage as SVG."),
    ("disasm", "container:disasm", "List the bundles of a NEFF."),
    ("asm", "container:asm", "Make a NEFF of a listing."),
    ("neff", "container:neff", "List, extract or verify a NEFF."),
    ("passes", "explain:passes_", "List the passes in order."),
    ("explain", "explain:explain", "Explain a pass, or an error's code."),
    ("examples", "examples:examples", "List the example programs, or copy them here."),
    ("lab", "lab:lab", "Course labs: list, start, check, grade."),
    ("doctor", "doctor:doctor", "Print versions and try the seed program."),
)
LATER = {
    "profile": "the clock comes with the back-end work",
    "why": "the paths of dependences come with the back-end work",
    "explore": "the page comes later; --dump DIR writes every stage as text and picture",
    "step": "the stepper comes later; --print-changed shows what each pass changed",
    "bisect": "bisecting comes later; `ncc check` names the first pass that changes the result",
    "reduce": "reducing comes later",
}


class Lazy(click.Group):
    """A group whose commands are imported when they are called, and listed without that."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [name for name, _, _ in COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        for name, where, _ in COMMANDS:
            if name == cmd_name:
                module, _, attribute = where.partition(":")
                found: click.Command = getattr(import_module(f"ncc.commands.{module}"), attribute)
                return found
        from ncc.errors import UsageError, nearest

        if cmd_name in LATER:
            raise UsageError("NCC005", f"`ncc {cmd_name}` is not there yet: {LATER[cmd_name]}")
        hint = nearest(cmd_name, [name for name, _, _ in COMMANDS])
        raise UsageError("NCC001", f"there is no command {cmd_name!r}", hint=hint or "`ncc --help`")

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, _, text in COMMANDS])


def print_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if wanted and not ctx.resilient_parsing:
        from ncc import __version__

        click.echo(f"ncc {__version__}")
        ctx.exit()


@click.group(
    cls=Lazy,
    context_settings={"help_option_names": ["-h", "--help"]},
    invoke_without_command=True,
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=print_version,
    help="Show the version and exit.",
)
@click.pass_context
def ncc(ctx: click.Context) -> None:
    """ncc compiles HLO to NEFF bytes, one tiny pass at a time, and runs those bytes.

    It is a model: its costs come from published constants, and no device has loaded its NEFFs.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help())


def main(arguments: list[str] | None = None) -> None:
    """Entry of the `ncc` script: run one command, tell faults in one sentence, exit."""
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # small products; the same bits on any host
    gc.set_threshold(100_000)  # nodes form no cycles: looking for some is a tenth of a small run
    for stream in (sys.stdout, sys.stderr):
        if reconfigure := getattr(stream, "reconfigure", None):
            reconfigure(errors="backslashreplace")  # a terminal that cannot show × is no fault
    sys.exit(call(sys.argv[1:] if arguments is None else arguments))


def call(arguments: list[str]) -> int:
    """Run one command line; the exit status. Faults and warnings go to stderr."""
    with warnings.catch_warnings(record=True) as heard:
        status = run_line(arguments)
    for one in heard:
        click.echo(f"ncc: warning: {one.message}", err=True)
    return status


def run_line(arguments: list[str]) -> int:
    """Run one command line; the exit status."""
    try:
        # not ncc.main(), which ends the process itself when whoever reads stdout has left
        with ncc.make_context("ncc", list(arguments)) as ctx:
            status: Any = ncc.invoke(ctx)
        sys.stdout.flush()
        return status if isinstance(status, int) else 0
    except click.exceptions.Exit as leave:
        return leave.exit_code
    except (click.exceptions.Abort, KeyboardInterrupt):
        return 130
    except click.NoSuchOption as fault:
        from ncc.errors import nearest

        near = nearest(fault.option_name, sorted(fault.possibilities or ()))
        hint = near or f"{fault.ctx and fault.ctx.command_path} --help"
        click.echo(f"ncc: NCC002 there is no option {fault.option_name} ({hint})", err=True)
        return 2
    except click.UsageError as fault:
        where = f" ({fault.ctx.command_path} --help)" if fault.ctx else ""
        click.echo(f"ncc: NCC002 {fault.format_message()}{where}", err=True)
        return 2
    except click.ClickException as fault:
        click.echo(f"ncc: NCC003 {fault.format_message()}", err=True)
        return 2
    except BrokenPipeError:
        return gone()
    except Exception as fault:
        return told(fault, arguments)


def gone() -> int:
    """Whoever read stdout has left, as `| head` does: no fault, and nothing more is said."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def told(fault: Exception, arguments: list[str]) -> int:
    """Tell a fault on stderr; its exit status."""
    from ncc.errors import NccError, UsageError
    from ncc.files import reason
    from ncc.walking import InternalFault

    match fault:
        case NccError():
            return at_fault(fault)
        case InternalFault():
            return internal(fault, arguments)
        case MemoryError():
            said = "the program needs more memory than there is here"
            return at_fault(NccError("NCC011", said, hint="try it with smaller shapes"))
        case OSError():
            what = fault.filename or "the output"
            return at_fault(UsageError("NCC003", f"cannot use {what}: {reason(fault)}"))
        case _:
            return unexpected(fault)


def at_fault(fault: NccError) -> int:
    """Status 1, or 2 for usage and 3 for a check that failed."""
    from ncc.errors import CheckFailed, UsageError

    if os.environ.get("NCC_DEBUG") and fault.__cause__:
        import traceback

        traceback.print_exception(fault.__cause__)
    click.echo(f"ncc: {fault}", err=True)
    kinds = ((UsageError, 2), (CheckFailed, 3))
    return next((status for kind, status in kinds if isinstance(fault, kind)), 1)


def unexpected(fault: Exception) -> int:
    """Status 70 outside any pass: where it broke, in one line; all of it with NCC_DEBUG=1."""
    import traceback

    if os.environ.get("NCC_DEBUG"):
        traceback.print_exception(fault)
    frame = traceback.extract_tb(fault.__traceback__)[-1]
    where = f"{frame.filename.rsplit(os.sep, 1)[-1]}:{frame.lineno}"
    click.echo(f"ncc: a fault in ncc itself, {where}: {type(fault).__name__}: {fault}", err=True)
    click.echo("please report it with the command line and its input", err=True)
    return 70


def internal(fault: InternalFault, arguments: list[str]) -> int:
    """Status 70: name the pass, write what replays it, ask for a report."""
    import traceback

    from ncc import files

    if os.environ.get("NCC_DEBUG"):
        traceback.print_exception(fault)
    where = f"ncc-fault-{fault.name}.txt"
    click.echo(f"ncc: a fault in ncc itself, in the pass {fault}", err=True)
    try:
        files.write(where, fault.stage.text())
    except Exception as second:
        click.echo(f"the stage before it could not be written: {second}", err=True)
    else:
        again = f"`ncc {arguments[0]} {where}` with the same options shows it again"
        click.echo(f"{again}; please report it with that file", err=True)
    return 70


if __name__ == "__main__":
    main()
