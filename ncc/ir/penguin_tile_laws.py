"""Facts of tiles, from cut-partition on."""

from __future__ import annotations

from ncc.ir.core import Law

FACTS: tuple[Law, ...] = ()
