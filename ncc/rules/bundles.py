"""Rules 7: bundles."""

from __future__ import annotations

from ncc.rules import Rule

RULES: tuple[Rule, ...] = ()
