"""The small programs whose every stage is a reviewed snapshot, and what must hold of them."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import attrs

FOLDER = Path(__file__).parent / "programs"
PROGRAMS = tuple(sorted((*FOLDER.glob("*.hlo"), *FOLDER.glob("*.py"))))
EXPECT = re.compile(r"^(?://|#) expect ([\w.-]+): (.+)$", re.M)
INTENT = re.compile(r"^(?://|#) intent: (.+)$", re.M)
TARGET = re.compile(r"^(?://|#) target: (\S+)$", re.M)
KERNEL = re.compile(r"^# kernel: (\w+)$", re.M)  # of a file of Python, with its arguments
ASKED = re.compile(r"^(?://|#) asked: (\S+)$", re.M)  # passes that run only when asked for
ARG = re.compile(r"^# arg: (\w+=.+)$", re.M)
CLAUSE = re.compile(r"(?:(\d+|no) )(\w+)|`([^`]+)`$")


def expectations(text: str) -> list[tuple[str, str]]:
    """(pass, clause) of every `// expect PASS: clause, clause` line (`#` in Python)."""
    found: list[tuple[str, str]] = []
    for name, clauses in EXPECT.findall(text):
        found += [(name, clause.strip()) for clause in re.split(r",(?![^`]*`(?:,|$))", clauses)]
    return found


def unmet(clause: str, stage_text: str, kinds: Counter[str]) -> str:
    """Why a clause does not hold; "" when it does.

    `4 Matmult` counts nodes of a kind, `no Loop` forbids them, a part in backquotes must stand in
    the printed stage.
    """
    match = CLAUSE.fullmatch(clause)
    if not match:
        return f"cannot read {clause!r}"
    number, kind, text = match.groups()
    if text is not None:
        return "" if text in stage_text else f"`{text}` is not in the stage"
    want = 0 if number == "no" else int(number)
    return "" if kinds[kind] == want else f"{kinds[kind]} {kind}, expected {want}"


@attrs.frozen
class Traced:
    """An observer's record: each stage's text and kinds by the pass that gave it."""

    texts: dict[str, str] = attrs.field(factory=dict)
    kinds: dict[str, Counter[str]] = attrs.field(factory=dict)

    def start(self, stage) -> None:
        self._keep("input", stage)

    def step(self, step) -> None:
        self._keep(step.name, step.after)

    def _keep(self, name, stage) -> None:
        from ncc.observe import kinds_of

        self.texts[name] = stage.text()
        self.kinds[name] = kinds_of(stage)


def traced(path: Path) -> Traced:
    """Every stage of a program, from its text to the container."""
    import ncc

    record = Traced()
    text = path.read_text()
    machine = TARGET.search(text)
    target = machine[1] if machine else "trn2"
    program = path
    if kernel := KERNEL.search(text):
        from ncc.nki.programs import kernel_stage
        from ncc.target import target as target_named

        program = kernel_stage(f"{path}:{kernel[1]}", target_named(target), ARG.findall(text))
    ncc.compile(program, target=target, observers=[record], asked=ASKED.findall(text))
    return record
