"""Rules 8: the container."""

from __future__ import annotations

from ncc.rules import Rule

RULES: tuple[Rule, ...] = ()
