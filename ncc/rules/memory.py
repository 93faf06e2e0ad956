"""Rules 5: memory and allocation."""

from __future__ import annotations

from ncc.rules import Rule

RULES: tuple[Rule, ...] = ()
