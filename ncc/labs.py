"""Course labs: a live pass with a region taken out, graded by meaning, facts and cost.

A lab is a folder with `lab.json` (title, passes, open and hidden programs) and a README. The
skeleton is made from the live pass: what stands between `# lab: TASK` and `# lab: end` is replaced
by a line that raises the task as a sentence. The student's file takes the pass's place and may
import only what a pass needs.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import attrs

from ncc import files, passes
from ncc.errors import NccError, Place, UsageError, nearest
from ncc.passes.base import Pass
from ncc.stages import Stage

REGION = re.compile(r"^( *)# lab: (?!end)(.+)\n(?:.*\n)*?\1# lab: end\n", re.M)
ALLOWED = ("ncc.ir", "ncc.passes.base", "ncc.errors", "ncc.target", "attrs", "__future__", "math",
           "itertools", "functools", "collections", "typing")  # fmt: skip
NEVER = ("__import__", "__builtins__", "eval", "exec", "compile", "open", "input", "breakpoint",
         "exit", "quit", "globals")  # fmt: skip
SECONDS = 120  # that one program may take


@attrs.frozen
class Lab:
    """One lab: where its files are, and which passes the student writes."""

    name: str
    title: str
    folder: Path
    passes: tuple[str, ...]
    open: tuple[str, ...]
    hidden: tuple[str, ...]


def labs() -> dict[str, Lab]:
    """Every lab that ships, by name."""
    from ncc.commands.examples import folder

    found: dict[str, Lab] = {}
    for file in sorted(folder("_labs", "book/labs").glob("*/lab.json")):
        held = json.loads(file.read_text())
        lists = (tuple(held[key]) for key in ("passes", "open", "hidden"))
        found[file.parent.name] = Lab(file.parent.name, held["title"], file.parent, *lists)
    return found


def lab_named(name: str) -> Lab:
    """The lab called `name`; UsageError NCC001."""
    known = labs()
    if name not in known:
        hint = nearest(name, known) or f"there are {', '.join(known)}"
        raise UsageError("NCC001", f"no lab is called {name!r}", hint=hint)
    return known[name]


def skeleton(name: str) -> str:
    """The live pass's file with its marked regions replaced by sentences that name the task."""
    entry = passes.called()[name]
    path = Path(passes.__file__).parent / f"{entry.replace('.', '/')}.py"
    text, count = REGION.subn(_task, path.read_text())
    if not count:
        raise TypeError(f"{name} has no region that a lab could take out")
    return text


def _task(found: re.Match[str]) -> str:
    indent, task = found[1], found[2].strip()
    return f"{indent}raise NotImplementedError({json.dumps(task)})\n"


def start(lab: Lab, into: Path) -> list[Path]:
    """Write the skeletons and the README into a new folder; the files written."""
    if into.is_dir() and any(into.iterdir()):
        raise UsageError("NCC002", f"{into} is there already; your work in it is not overwritten")
    files.folder(into)
    written = [files.write(into / file_of(name), skeleton(name)) for name in lab.passes]
    return [*written, files.write(into / "README.md", (lab.folder / "README.md").read_text())]


def file_of(name: str) -> str:
    """The file of a pass: cut_free.py for cut-free."""
    return f"{name.replace('-', '_')}.py"


def handed_in(lab: Lab, folder: Path) -> dict[str, Pass]:
    """The student's passes by name; one sentence about the first file that cannot stand in."""
    from ncc.commands.shared import pass_of

    found: dict[str, Pass] = {}
    for name in lab.passes:
        file = folder / file_of(name)
        if not file.is_file():
            raise UsageError("NCC003", f"there is no {file}", hint=f"ncc lab start {lab.name}")
        if wrong := next(forbidden(file), None):
            raise wrong
        mine = pass_of(str(file))
        live = passes.load(passes.called()[name])
        if (mine.name, mine.source, mine.target) != (live.name, live.source, live.target):
            said = f"defines {mine.name} from {mine.source} to {mine.target}, not {name}"
            raise NccError("NCC012", said, Place(file.name))
        found[name] = attrs.evolve(live, apply=mine.apply)  # the facts are the live pass's promise
    return found


def forbidden(file: Path) -> Iterator[NccError]:
    """What a file of a lab may not do: import more than a pass needs, or go around imports."""
    try:
        tree = ast.parse(files.read(file))
    except (SyntaxError, ValueError, RecursionError) as fault:
        line, column = getattr(fault, "lineno", 0) or 0, getattr(fault, "offset", 0) or 0
        said = f"is not Python: {getattr(fault, 'msg', fault)}"
        raise NccError("NCC012", said, Place(file.name, line, column)) from None
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                # `import ncc.ir.tiling` binds ncc, and with it every pass
                modules = [a.name if a.asname or a.name[:4] != "ncc." else "ncc" for a in names]
            case ast.ImportFrom(module=module, level=level):
                modules = ["." * level + (module or "")]
            case ast.Name(id=word) if word in NEVER:
                said = f"uses {word}, which a pass has no need of"
                yield NccError("NCC012", said, Place(file.name, node.lineno, node.col_offset + 1))
                continue
            case _:
                continue
        for module in modules:
            if not any(module == ok or module.startswith(ok + ".") for ok in ALLOWED):
                said = f"imports {module}; a pass of a lab may import {', '.join(ALLOWED)}"
                yield NccError("NCC012", said, Place(file.name, node.lineno))


@attrs.frozen
class Grade:
    """What one program showed: passed, or why not, and the cost beside the reference's."""

    program: str
    passed: bool
    said: str
    cost: int = 0
    reference: int = 0


def grade(lab: Lab, mine: dict[str, Pass], programs: tuple[str, ...]) -> list[Grade]:
    """One Grade a program."""
    return [_grade(lab, mine, program) for program in programs]


def _grade(lab: Lab, mine: dict[str, Pass], program: str) -> Grade:
    from ncc import checking
    from ncc.programs import load_program
    from ncc.target import TARGETS
    from ncc.walking import plan, walk

    stage = load_program(lab.folder / program, TARGETS["trn2"])
    try:
        with limited(SECONDS):
            todo = plan(stage, replaced=mine)
            result = checking.check(stage, todo, [checking.whole_numbers(stage)])
            if result.failed:
                return Grade(program, False, f"{result.place.during}: {result.failed}")
            cost = matrix_passes(walk(stage, plan(stage, replaced=mine, stop_after="encode")))
    except Late:
        return Grade(program, False, f"not finished after {SECONDS} seconds: does a loop not end?")
    except NccError as fault:
        return Grade(program, False, str(fault))
    best = matrix_passes(walk(stage, plan(stage, stop_after="encode")))
    if cost > best:
        said = f"right, but it takes {cost} matrix passes where {best} are enough"
        return Grade(program, False, said, cost, best)
    return Grade(program, True, "", cost, best)


class Late(BaseException):
    """The time of one program is over; no `except Exception` of a pass may catch it."""


@contextmanager
def limited(seconds: float) -> Generator[None]:
    """Raise Late in the block when its time is over, where the system has an alarm for that."""
    import signal
    import threading

    def over(number: int, frame: object) -> None:
        raise Late

    if not hasattr(signal, "setitimer") or threading.current_thread() != threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGALRM, over)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def matrix_passes(stage: Stage) -> int:
    """How many Matmul bundles the PE stream has."""
    return sum(b.op == "Matmul" for s in stage.module.streams for b in s.bundles)
