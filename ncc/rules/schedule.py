"""Rules 6: order, dependences and synchronisation."""

from __future__ import annotations

from ncc.rules import Rule

RULES: tuple[Rule, ...] = ()
