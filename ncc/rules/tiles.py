"""Rules 260 to 299: Penguin, tiles."""

from __future__ import annotations

from ncc.rules import Rule

RULES: tuple[Rule, ...] = ()
