"""NKI: the older API (370 to 379)."""

from __future__ import annotations

from ncc.rules import Rule

RULES: tuple[Rule, ...] = ()
