"""The one table of rules: what a program may not do, under one code, text and fix.

The first digit of a code says where the rule stands (one file of this package each): 0 files and
options, 1 HLO, 2 MHLO and Penguin, 3 NKI, 4 BIR, 5 memory, 6 schedule and sync, 7 bundles, 8 NEFF,
9 machine. A code is never used again for another rule.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module

import attrs


@attrs.frozen
class Rule:
    """One rule and its page (`ncc explain CODE`)."""

    code: str  # NCC and three digits
    title: str  # a few words, lower case
    says: str  # the rule, as a sentence
    fix: str  # what to do, as a sentence
    names: tuple[str, ...] = ()  # other names: the real compiler's, the references' numbers
    wrong: str = ""  # a whole small program (HLO, or any printed stage) that breaks the rule ...
    right: str = ""  # ... and the same, repaired
    how: str = "compile FILE"  # the command that shows it; FILE is the program's file


FILES = (
    "files",
    "hlo",
    "mhlo",
    "penguin",
    "tiles",
    "nki",
    "nki_tensors",
    "nki_isa",
    "nki_language",
    "nki_old",
    "kernels",
    "kernel_runs",
    "bir",
    "cores",
    "memory",
    "schedule",
    "bundles",
    "neff",
    "machine",
)


@cache
def rules() -> dict[str, Rule]:
    """Every rule by its code, in order of code."""
    found: dict[str, Rule] = {}
    for file in FILES:
        for rule in import_module(f"ncc.rules.{file}").RULES:
            if rule.code in found:
                raise TypeError(f"{rule.code} stands twice in the table of rules")
            found[rule.code] = rule
    return dict(sorted(found.items()))


def named(word: str) -> Rule | None:
    """The rule with this code or one of its other names, in any case."""
    wanted = word.lower()
    for rule in rules().values():
        if wanted in (rule.code.lower(), *(n.lower() for n in rule.names)):
            return rule
    return None
