"""The lowering of each op, by its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ncc.ir import (
    kernel_lower_act,
    kernel_lower_cores,
    kernel_lower_dma,
    kernel_lower_move,
    kernel_lower_pe,
    kernel_lower_registers,
    kernel_lower_rows,
    kernel_lower_select,
    kernel_lower_vector,
)

if TYPE_CHECKING:
    from ncc.ir.kernel_lower import Lowering

LOWER: dict[str, Callable[[Lowering], None]] = {
    **kernel_lower_dma.LOWER,
    **kernel_lower_move.LOWER,
    **kernel_lower_pe.LOWER,
    **kernel_lower_vector.LOWER,
    **kernel_lower_act.LOWER,
    **kernel_lower_select.LOWER,
    **kernel_lower_rows.LOWER,
    **kernel_lower_registers.LOWER,
    **kernel_lower_cores.LOWER,
}
