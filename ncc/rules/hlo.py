"""Rules 1: HLO."""

from __future__ import annotations

from ncc.rules import Rule

RULES: tuple[Rule, ...] = ()
