"""What a trace warns of, told once for a kernel: the first sentence, and how many are like it."""

from __future__ import annotations

import warnings
from collections.abc import Iterable

from ncc.nki.arrays import outside


def warned(sentences: Iterable[str]) -> None:
    """Warn the caller; every sentence has its code in front."""
    found: dict[str, list[str]] = {}
    for said in dict.fromkeys(sentences):
        found.setdefault(said.partition(" ")[0], []).append(said)
    for said, *more in found.values():
        rest = f"; {len(more)} more like it in this kernel" if more else ""
        warnings.warn(said + rest, stacklevel=outside())
