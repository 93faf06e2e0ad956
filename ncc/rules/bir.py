"""Rules 4: the form of BIR and its operands."""

from __future__ import annotations

from ncc.rules import Rule

RULES: tuple[Rule, ...] = ()
