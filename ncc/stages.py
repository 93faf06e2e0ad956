"""The six languages in one table, and the stage: a level plus the facts that hold so far.

A level is whole or it does not exist: it has a text form that reads back, laws, a meaning and a
drawing. The table says where each stands; everything in it is imported on use. The first line of a
printed stage names level, target, last pass and facts, so that any printed stage is a program.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

import attrs

from ncc import passes
from ncc.cores import lifted
from ncc.errors import NccError, Place, UsageError, nearest
from ncc.ir.core import Law
from ncc.target import Target, target


@attrs.frozen
class Level:
    """Where a level's parts are, each as `module:name`.

    show(module) -> text; parse(text, file, first_line) -> module; nodes(module) yields the nodes
    that node laws are asked about; laws and facts are tuples of Law; signature(module) gives inputs
    and outputs as tuples of (name, dtype, shape); run(module, target, inputs, watch) gives the
    outputs; draw(module, fresh) gives graphviz text. A level of several cores has all but `run` and
    `draw` for one core's module, and `ncc.cores` makes of it what all cores need.
    """

    name: str
    show: str
    parse: str
    nodes: str
    laws: str
    facts: str
    signature: str
    run: str
    draw: str
    cores: bool = False  # a program may be `ncc.ir.core.Cores`

    def get(self, part: str) -> Any:
        """The part itself: `level("bir").get("show")(module)`."""
        found = _found(getattr(self, part))
        return lifted(part, found) if self.cores else found


LEVELS = {
    row.name: row
    for row in (
        Level(
            "hlo",
            "ncc.ir.hlo_text:show",
            "ncc.front.hlo:parse",
            "ncc.ir.hlo_laws:nodes",
            "ncc.ir.hlo_laws:LAWS",
            "ncc.ir.hlo_laws:FACTS",
            "ncc.ir.hlo_laws:signature",
            "ncc.interp.hlo:run",
            "ncc.view.hlo:draw",
        ),
        Level(
            "mhlo",
            "ncc.ir.mhlo_text:show",
            "ncc.ir.mhlo_text:parse",
            "ncc.ir.mhlo_laws:nodes",
            "ncc.ir.mhlo_laws:LAWS",
            "ncc.ir.mhlo_laws:FACTS",
            "ncc.ir.mhlo_laws:signature",
            "ncc.interp.mhlo:run",
            "ncc.view.mhlo:draw",
        ),
        Level(
            "penguin",
            "ncc.ir.penguin_text:show",
            "ncc.ir.penguin_text:parse",
            "ncc.ir.penguin_laws:nodes",
            "ncc.ir.penguin_laws:LAWS",
            "ncc.ir.penguin_laws:FACTS",
            "ncc.ir.penguin_laws:signature",
            "ncc.interp.penguin:run",
            "ncc.view.penguin:draw",
        ),
        Level(
            "bir",
            "ncc.ir.bir_text:show",
            "ncc.ir.bir_text:parse",
            "ncc.ir.bir_laws:nodes",
            "ncc.ir.bir_laws:LAWS",
            "ncc.ir.bir_laws:FACTS",
            "ncc.ir.bir_laws:signature",
            "ncc.interp.bir:run",
            "ncc.view.bir:draw",
            cores=True,
        ),
        Level(
            "isa",
            "ncc.encode.text:show",
            "ncc.encode.text:parse",
            "ncc.encode.laws:nodes",
            "ncc.encode.laws:LAWS",
            "ncc.encode.laws:FACTS",
            "ncc.encode.laws:signature",
            "ncc.sim.run:run_isa",
            "ncc.view.isa:draw",
            cores=True,
        ),
        Level(
            "neff",
            "ncc.pack.text:show",
            "ncc.pack.text:parse",
            "ncc.pack.laws:nodes",
            "ncc.pack.laws:LAWS",
            "ncc.pack.laws:FACTS",
            "ncc.pack.laws:signature",
            "ncc.sim.run:run_neff",
            "ncc.view.neff:draw",
        ),
    )
}


@cache
def _found(where: str) -> Any:
    module, _, name = where.partition(":")
    return getattr(import_module(module), name)


def level(name: str) -> Level:
    """The level called `name`; UsageError NCC001 for a name that is none."""
    if name not in LEVELS:
        said = f"no level is called {name!r}; there are {', '.join(LEVELS)}"
        raise UsageError("NCC001", said, hint=nearest(name, LEVELS))
    return LEVELS[name]


@attrs.frozen
class Stage:
    """A program between two passes: a module, its level, and the facts that hold."""

    level: str
    target: Target
    after: str  # the pass that gave it, or `input`
    facts: tuple[str, ...]  # printed names, sorted
    module: Any

    def header(self) -> str:
        facts = f" facts={','.join(self.facts)}" if self.facts else ""
        return f"# ncc {self.level} target={self.target} after={self.after}{facts}"

    def text(self) -> str:
        """The printed stage; `read_stage` reads it back to an equal one."""
        return f"{self.header()}\n{level(self.level).get('show')(self.module)}"


def read_stage(text: str, file: str = "") -> Stage:
    """A stage from its printed form. NCC004 for a header that cannot be read, NCC009 below it."""
    first, _, rest = text.partition("\n")
    stage = read_header(first, file)
    return attrs.evolve(stage, module=level(stage.level).get("parse")(rest, file, 2))


def read_header(first: str, file: str = "") -> Stage:
    """The stage of a header line, still without its module. NCC004 for what is no header."""
    words = first.split()
    if words[:2] != ["#", "ncc"] or len(words) < 3:
        said = f"cannot read {first[:60]!r}, expected `# ncc LEVEL target=... after=... facts=...`"
        raise NccError("NCC004", said, Place(file, 1))
    pairs: dict[str, str] = {}
    for word in words[3:]:
        key, _, value = word.partition("=")
        pairs[key] = value
    if unknown := sorted(pairs.keys() - {"target", "after", "facts"}):
        raise NccError("NCC004", f"the header has no word {unknown[0][:30]}=", Place(file, 1))
    facts = tuple(sorted(x for x in pairs.get("facts", "").split(",") if x))
    if words[2] not in LEVELS:
        said = f"no level is called {words[2]}; there are {', '.join(LEVELS)}"
        raise NccError("NCC004", said, Place(file, 1), nearest(words[2], LEVELS))
    language = level(words[2])
    known = [law.printed for law in facts_of(language.name)]
    if wrong := [x for x in facts if x not in known]:
        said = f"{words[2]} has no fact {wrong[0]}"
        raise NccError("NCC004", said, Place(file, 1), nearest(wrong[0], known))
    try:
        machine = target(pairs.get("target", "trn2"))
    except UsageError as fault:
        raise NccError("NCC004", fault.said, Place(file, 1), fault.hint) from None
    after = pairs.get("after", "input")
    if after not in (names := ["input", *passes.called()]):
        said = f"the header says after={after}, and no pass is called that"
        raise NccError("NCC004", said, Place(file, 1), nearest(after, names))
    return Stage(language.name, machine, after, facts, None)


def facts_of(name: str) -> tuple[Law, ...]:
    """The facts that stages of a level may hold."""
    found: tuple[Law, ...] = level(name).get("facts")
    return found
