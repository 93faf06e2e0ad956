"""Laws after every pass, each node asked once.

A node that passed a law is not asked again as long as it stays in the program, unless what the law
reads besides the node (its `reads`) is no longer the same object. A law over a whole module is
asked again only when what it reads changed. "After" of one pass is "before" of the next. Each core
of a program has a module of its own, and laws hold of each; few are about all cores together.
"""

from __future__ import annotations

from typing import Any

import attrs

from ncc.errors import NccError
from ncc.ir.core import Law, modules_of, unchanged
from ncc.stages import Stage, level


@attrs.define
class _Asked:
    """When a law was asked last: the number of that check, and what the law read besides nodes."""

    check: int = 0
    context: tuple[Any, ...] = ()


@attrs.define
class _Seen:
    """What a core has shown of a level: its nodes that passed the last check, which had `check` as
    its number."""

    check: int = 0
    nodes: dict[int, Any] = attrs.field(factory=dict[int, Any])  # by identity, kept alive


@attrs.frozen
class _Core:
    """One core's module at one check: all of its nodes, and those that have not been seen."""

    number: int
    module: Any
    seen: _Seen
    nodes: list[Any]
    new: list[Any]


class Verifier:
    """The laws of one compilation."""

    def __init__(self) -> None:
        self._count = 0
        self._asked: dict[tuple[str, str, int], _Asked] = {}
        self._seen: dict[tuple[str, int], _Seen] = {}

    def check(self, stage: Stage) -> None:
        """Raise the first complaint about a stage; returns when every law and fact holds."""
        language = level(stage.level)
        facts = [law for law in language.get("facts") if law.printed in stage.facts]
        laws: list[Law] = [*language.get("laws"), *facts]
        self._count += 1
        modules = modules_of(stage.module)
        cores = [self._core(stage.level, n, module) for n, module in enumerate(modules)]
        for law in laws:
            try:
                if law.together:
                    self._together(law, modules, stage)
                else:
                    for core in cores:
                        self._ask(law, core, stage)
            except NccError as fault:
                during = "" if stage.after == "input" else f"after {stage.after}"
                raise fault.at(during=during) from None
        for core in cores:
            if core.new or len(core.seen.nodes) != len(core.nodes):
                core.seen.nodes = {id(node): node for node in core.nodes}
            core.seen.check = self._count

    def _core(self, name: str, number: int, module: Any) -> _Core:
        seen = self._seen.setdefault((name, number), _Seen())
        nodes = list(level(name).get("nodes")(module))
        old = seen.nodes
        return _Core(number, module, seen, nodes, [x for x in nodes if id(x) not in old])

    def _ask(self, law: Law, core: _Core, stage: Stage) -> None:
        """Ask a law about what it has not passed: all nodes, unless it was asked the last time."""
        asked = self._asked.setdefault((stage.level, law.name, core.number), _Asked())
        context = law.reads(core.module) if law.reads else ()
        same = asked.check > 0 and unchanged(context, asked.context)
        if law.node:
            for node in core.new if same and asked.check == core.seen.check else core.nodes:
                for fault in law.check(node, core.module, stage.target):
                    raise fault
        elif not (same and law.reads):
            for fault in law.check(core.module, stage.target):
                raise fault
        asked.context, asked.check = context, self._count

    def _together(self, law: Law, modules: tuple[Any, ...], stage: Stage) -> None:
        """Ask a law about all cores at once, when one of them changed."""
        asked = self._asked.setdefault((stage.level, law.name, -1), _Asked())
        if not (asked.check and unchanged(modules, asked.context)):
            for fault in law.check(stage.module, stage.target):
                raise fault
        asked.context, asked.check = modules, self._count
