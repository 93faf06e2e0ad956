"""Laws after every pass, each node asked once.

A node that passed a law is not asked again while the compilation lasts, unless what the law reads
besides the node (its `reads`) is no longer the same object. A law over a whole module is asked
again only when what it reads changed. "After" of one pass is "before" of the next.
"""

from __future__ import annotations

from typing import Any

import attrs

from ncc.errors import NccError
from ncc.ir.core import Law, unchanged
from ncc.stages import Stage, level


@attrs.define
class _Memory:
    """What one law has passed: nodes by identity (which keeps them alive), or what it read."""

    context: tuple[Any, ...] = ()
    nodes: dict[int, Any] = attrs.field(factory=dict[int, Any])
    asked: bool = False


class Verifier:
    """The laws of one compilation."""

    def __init__(self) -> None:
        self._passed: dict[tuple[str, str], _Memory] = {}

    def check(self, stage: Stage) -> None:
        """Raise the first complaint about a stage; returns when every law and fact holds."""
        language = level(stage.level)
        facts = [law for law in language.get("facts") if law.printed in stage.facts]
        laws: list[Law] = [*language.get("laws"), *facts]
        nodes = list(language.get("nodes")(stage.module))
        for law in laws:
            memory = self._passed.setdefault((stage.level, law.name), _Memory())
            try:
                self._ask(law, memory, nodes, stage)
            except NccError as fault:
                during = "" if stage.after == "input" else f"after {stage.after}"
                raise fault.at(during=during) from None

    def _ask(self, law: Law, memory: _Memory, nodes: list[Any], stage: Stage) -> None:
        context = law.reads(stage.module) if law.reads else ()
        same = unchanged(context, memory.context)
        if law.node:
            if not same:
                memory.nodes.clear()
            passed = memory.nodes
            for node in nodes:
                if id(node) not in passed:
                    for fault in law.check(node, stage.module, stage.target):
                        raise fault
                    passed[id(node)] = node
        elif not (same and law.reads and memory.asked):
            for fault in law.check(stage.module, stage.target):
                raise fault
        memory.context, memory.asked = context, True
