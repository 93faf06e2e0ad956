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
from collections.abc import Iterator
from pathlib import Path

import attrs

from ncc import passes
from ncc.errors import NccError, Place, UsageError, nearest
from ncc.passes.base import Pass
from ncc.stages import Stage

REGION = re.compile(r"^( *)# lab: (?!end)(.+)\n(?:.*\n)*?\1# lab: end\n", re.M)
ALLOWED = ("ncc.ir", "ncc.passes.base", "ncc.errors", "ncc.target", "attrs", "__future__", "math",
           "itertools", "functools", "collections", "typing")  # fmt: skip


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
    if into.exists() and any(into.iterdir()):
        raise UsageError("NCC002", f"{into} is there already; your work in it is not overwritten")
    into.mkdir(parents=True, exist_ok=True)
    files = [into / f"{name.replace('-', '_')}.py" for name in lab.passes]
    for file, name in zip(files, lab.passes, strict=True):
        file.write_text(skeleton(name))
    (into / "README.md").write_text((lab.folder / "README.md").read_text())
    return [*files, into / "README.md"]


def handed_in(lab: Lab, folder: Path) -> dict[str, Pass]:
    """The student's passes by name; one sentence about the first file that cannot stand in."""
    from ncc.commands.shared import pass_of

    found: dict[str, Pass] = {}
    for name in lab.passes:
        file = folder / f"{name.replace('-', '_')}.py"
        if not file.is_file():
            raise UsageError("NCC003", f"there is no {file}", hint=f"ncc lab start {lab.name}")
        for line, module in imports(file):
            if not any(module == ok or module.startswith(ok + ".") for ok in ALLOWED):
                said = f"imports {module}; a pass of a lab may import {', '.join(ALLOWED)}"
                raise NccError("NCC001", said, Place(file.name, line))
        mine = pass_of(str(file))
        live = passes.load(passes.called()[name])
        if (mine.name, mine.source, mine.target) != (live.name, live.source, live.target):
            said = f"defines {mine.name} from {mine.source} to {mine.target}, not {name}"
            raise NccError("NCC001", said, Place(file.name))
        found[name] = attrs.evolve(live, apply=mine.apply)  # the facts are the live pass's promise
    return found


def imports(file: Path) -> Iterator[tuple[int, str]]:
    """Each imported module with its line."""
    try:
        tree = ast.parse(file.read_text())
    except SyntaxError as fault:
        place = Place(file.name, fault.lineno or 0, fault.offset or 0)
        raise NccError("NCC001", f"is not Python: {fault.msg}", place) from None
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.lineno, node.module or "."


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
    from ncc.driver import InternalFault, load_program, plan, walk
    from ncc.target import TARGETS

    stage = load_program(lab.folder / program, TARGETS["trn2"])
    try:
        result = checking.check(stage, plan(stage, replaced=mine), [checking.whole_numbers(stage)])
        if result.failed:
            return Grade(program, False, f"{result.place.during}: {result.failed}")
        cost = matrix_passes(walk(stage, plan(stage, replaced=mine, stop_after="encode")))
    except InternalFault as fault:
        return Grade(program, False, f"{fault.name}: {_sentence(fault.cause)}")
    except NccError as fault:
        return Grade(program, False, str(fault))
    best = matrix_passes(walk(stage, plan(stage, stop_after="encode")))
    if cost > best:
        said = f"right, but it takes {cost} matrix passes where {best} are enough"
        return Grade(program, False, said, cost, best)
    return Grade(program, True, "", cost, best)


def _sentence(cause: BaseException) -> str:
    return (
        str(cause) if isinstance(cause, NotImplementedError) else f"{type(cause).__name__}: {cause}"
    )


def matrix_passes(stage: Stage) -> int:
    """How many Matmul bundles the PE stream has."""
    return sum(b.op == "Matmul" for s in stage.module.streams for b in s.bundles)
