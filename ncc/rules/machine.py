"""Rules 9: the machine."""

from __future__ import annotations

from ncc.rules import Rule

RULES: tuple[Rule, ...] = ()
