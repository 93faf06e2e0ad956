"""Rules 220 to 259: Penguin, whole tensors."""

from __future__ import annotations

from ncc.rules import Rule

RULES: tuple[Rule, ...] = ()
