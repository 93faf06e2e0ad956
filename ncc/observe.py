"""Observers of a compilation: printing, differences, drawing, dumps, times, statistics.

Each is told the input stage and then every pass that ran; none of them changes anything.
"""

from __future__ import annotations

import difflib
import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import attrs

from ncc import files
from ncc.stages import Stage, level
from ncc.walking import Step


@attrs.define
class Prints:
    """Print stages: after the passes of `after`, before those of `before`, or every stage."""

    echo: Callable[[str], None]
    after: frozenset[str] = frozenset()
    before: frozenset[str] = frozenset()
    everything: bool = False

    def start(self, stage: Stage) -> None:
        if self.everything:
            self.echo(stage.text())

    def step(self, step: Step) -> None:
        if step.name in self.before:
            self.echo(step.before.text())
        if self.everything or step.name in self.after:
            self.echo(step.after.text())


@attrs.define
class Changes:
    """Print what each pass changed, as a difference of two printed stages."""

    echo: Callable[[str], None]
    text: str = ""

    def start(self, stage: Stage) -> None:
        self.text = stage.text()

    def step(self, step: Step) -> None:
        if not step.changed:
            self.echo(f"# {step.name}: no change\n")
            return
        new = step.after.text()
        if step.before.level != step.after.level:
            self.echo(f"# {step.name}: {step.before.level} became {step.after.level}\n{new}")
        else:
            lines = difflib.unified_diff(
                self.text.splitlines(),
                new.splitlines(),
                step.before.after,
                step.name,
                "",
                "",
                1,
                "",
            )
            self.echo("\n".join(lines) + "\n")
        self.text = new


@attrs.define
class Pictures:
    """Draw stages as SVG into a folder: after the passes of `after`, or after all of them."""

    folder: Path
    after: frozenset[str] = frozenset()
    everything: bool = False
    tell: Callable[[Path], object] = lambda path: None  # is told each file that was written
    number: int = 0

    def start(self, stage: Stage) -> None:
        if self.everything:
            self._draw("input", stage, None)

    def step(self, step: Step) -> None:
        self.number += 1
        if self.everything or step.name in self.after:
            self._draw(step.name, step.after, step.before)

    def _draw(self, name: str, stage: Stage, before: Stage | None) -> None:
        from ncc.view.render import picture

        files.folder(self.folder)
        self.tell(files.write(self.folder / f"{self.number:02}-{name}.svg", picture(stage, before)))


@attrs.define
class Dump:
    """One numbered text and picture a pass, and a manifest."""

    folder: Path
    rows: list[dict[str, object]] = attrs.field(factory=list[dict[str, object]])

    def start(self, stage: Stage) -> None:
        files.folder(self.folder)
        self._forget()
        self._write("input", stage, None)

    def _forget(self) -> None:
        """Remove what an earlier dump wrote here: its manifest lists the files."""
        try:
            rows: Any = json.loads((self.folder / "manifest.json").read_text())
            stale = [Path(row[key]).name for row in rows for key in ("text", "picture")]
        except (OSError, ValueError, TypeError, KeyError):
            return  # there was none, or it is not ours
        for name in stale:
            (self.folder / name).unlink(missing_ok=True)

    def step(self, step: Step) -> None:
        self._write(step.name, step.after, step.before)

    def _write(self, name: str, stage: Stage, before: Stage | None) -> None:
        from ncc.view.render import picture

        base = f"{len(self.rows):02}-{name}"
        suffix = "hlo" if stage.level == "hlo" and name == "input" else "txt"
        files.write(self.folder / f"{base}.{suffix}", stage.text())
        files.write(self.folder / f"{base}.svg", picture(stage, before))
        changed = before is None or before.module is not stage.module
        self.rows.append(
            {
                "pass": name,
                "level": stage.level,
                "changed": changed,
                "facts": list(stage.facts),
                "text": f"{base}.{suffix}",
                "picture": f"{base}.svg",
            }
        )
        files.write(self.folder / "manifest.json", json.dumps(self.rows, indent=1) + "\n")


@attrs.define
class Times:
    """Seconds that each pass and its verification took."""

    rows: list[tuple[str, float, float]] = attrs.field(factory=list[tuple[str, float, float]])

    def start(self, stage: Stage) -> None:
        self.rows.clear()

    def step(self, step: Step) -> None:
        self.rows.append((step.name, step.seconds, step.verify_seconds))

    def table(self) -> list[dict[str, object]]:
        return [{"pass": n, "seconds": round(s, 6), "verify": round(v, 6)} for n, s, v in self.rows]


@attrs.define
class Statistics:
    """How many nodes of which kind each stage has."""

    rows: list[dict[str, object]] = attrs.field(factory=list[dict[str, object]])

    def start(self, stage: Stage) -> None:
        self._count("input", stage)

    def step(self, step: Step) -> None:
        if step.changed:
            self._count(step.name, step.after)

    def _count(self, name: str, stage: Stage) -> None:
        kinds = dict(sorted(kinds_of(stage).items()))
        self.rows.append({"pass": name, "level": stage.level, "nodes": kinds})


def kinds_of(stage: Stage) -> Counter[str]:
    """How many nodes of each kind a stage has; a node that holds others is counted by those."""
    found: Counter[str] = Counter()
    for node in level(stage.level).get("nodes")(stage.module):
        inside = getattr(node, "instructions", None) or getattr(node, "bundles", (node,))
        found.update(map(kind_of, inside))
    return found


def kind_of(node: object) -> str:
    """What a node is called in a table: its opcode where it has one, else its class."""
    for field in ("opcode", "op"):
        word: object = getattr(node, field, None)
        if isinstance(word, str):
            return word
        if hasattr(word, "__attrs_attrs__"):
            return type(word).__name__
    return type(node).__name__
