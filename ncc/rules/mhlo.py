"""Rules 200 to 219: MHLO."""

from __future__ import annotations

from ncc.rules import Rule

RULES: tuple[Rule, ...] = ()
