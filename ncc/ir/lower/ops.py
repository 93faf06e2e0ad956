"""The lowering of each op, by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ncc.ir.lower import (
    act,
    cores,
    dma,
    move,
    pe,
    registers,
    rows,
    select,
    vector,
)

if TYPE_CHECKING:
    from ncc.ir.lower.kernel import Lowering

LOWER: dict[str, Callable[[Lowering], None]] = {
    **dma.LOWER,
    **move.LOWER,
    **pe.LOWER,
    **vector.LOWER,
    **act.LOWER,
    **select.LOWER,
    **rows.LOWER,
    **registers.LOWER,
    **cores.LOWER,
}
