"""The frame of a pass: what it reads, gives, needs, establishes and ends, and why it stands there."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import attrs

from ncc.ir.core import each
from ncc.target import Target


@attrs.frozen
class Pass:
    """A named pure function from module to module, with its page.

    `doc` is the file's docstring: the purpose in one sentence, then the sections Before, After, Why
    and Stands for. `needs` are facts that must hold, `gives` facts that hold from here on, `ends`
    facts that stop holding. `exact` passes keep every bit on random inputs; the others only round
    differently. `after` names passes that must come earlier, each with its reason. A pass that works
    on the cores `together` gets them all at once; any other knows one module.
    """

    name: str
    doc: str
    source: str
    target: str
    apply: Callable[[Any, Target], Any]
    needs: tuple[str, ...] = ()
    gives: tuple[str, ...] = ()
    ends: tuple[str, ...] = ()
    required: bool = True
    exact: bool = True
    after: Mapping[str, str] = attrs.field(factory=dict[str, str])
    real: str = ""  # the real pass it stands for
    job: str = ""  # F0, F1, F2, W0
    sure: str = "ours"  # confirmed, inferred, ours: how sure it is that the real pass does this
    together: bool = False

    def run(self, program: Any, target: Target) -> Any:
        """The program after the pass: `apply` to each core's module, or to all together."""
        if self.together:
            return self.apply(program, target)
        return each(program, lambda module: self.apply(module, target))

    @property
    def purpose(self) -> str:
        """The docstring's first sentence."""
        return " ".join(self.doc.strip().split("\n\n")[0].split())


def define(
    module: str,
    doc: str | None,
    apply: Callable[[Any, Target], Any],
    *,
    source: str,
    target: str | None = None,
    **facts: Any,
) -> Pass:
    """The PASS of a file: its name is the file's, with `-` for `_`."""
    name = module.rsplit(".", 1)[-1].replace("_", "-")
    return Pass(name, doc or "", source, target or source, apply, **facts)


def section(doc: str, title: str) -> str:
    """The indented block under `title:` of a pass's docstring, without its indentation; "" if none."""
    found = re.search(rf"^{title}:[^\n]*\n((?:(?:    [^\n]*|[ \t]*)(?:\n|\Z))+)", doc, re.M)
    if not found:
        return ""
    lines = [line[4:] if line.startswith("    ") else "" for line in found[1].split("\n")]
    return "\n".join(lines).strip("\n") + "\n"
