"""Facts of memory and allocation, from reserve-runtime to bind-dma."""

from __future__ import annotations

from ncc.ir.core import Law

FACTS: tuple[Law, ...] = ()
