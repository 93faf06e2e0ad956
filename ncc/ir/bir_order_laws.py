"""Facts of order, flags and synchronisation, from flow-deps on."""

from __future__ import annotations

from ncc.ir.core import Law

FACTS: tuple[Law, ...] = ()
