"""One BIR instruction as the records that an engine executes: a table from opcode to function.

A function gives the records without their event bands; the wait goes on the first and the update on
the last, and that is the same for all of them.
"""

from __future__ import annotations

from ncc.encode import (
    records_act,
    records_control,
    records_dma,
    records_pe,
    records_pool,
    records_rows,
    records_select,
    records_vector,
)
from ncc.encode.record_parts import Context, Encoder, Fields, Record, fields
from ncc.ir.bir import Inst
from ncc.ir.bir_opcodes import key
from ncc.ir.isa import At

__all__ = ["ENCODERS", "Context", "Encoder", "Record"]


def event_semaphore(ctx: Context, inst: Inst) -> list[Record]:
    made: Fields = ()
    if len(inst.waits) > 1:
        wait = inst.waits[1]
        made = fields(wait2_mode=5, wait2_idx=wait.sem, wait2_value=wait.value)
    return [("EventSemaphore", made)]


def leave(ctx: Context, inst: Inst) -> list[Record]:
    return [("Exit", ())]


def core_barrier(ctx: Context, inst: Inst) -> list[Record]:
    """Both cores have the barrier under one number. What it orders is a matter of its wait, so the
    tensor that the record has room for is none."""
    return [("CoreBarrier", fields(index=key(inst, "id"), src=At("sb", 0, 0)))]


def nop(ctx: Context, inst: Inst) -> list[Record]:
    return [("Nop", ())]


ENCODERS: dict[str, Encoder] = {
    **records_pe.ENCODERS,
    **records_dma.ENCODERS,
    **records_act.ENCODERS,
    **records_vector.ENCODERS,
    **records_rows.ENCODERS,
    **records_select.ENCODERS,
    **records_pool.ENCODERS,
    **records_control.ENCODERS,
    "EventSemaphore": event_semaphore,
    "CoreBarrier": core_barrier,
    "Exit": leave,
    "NoOp": nop,
}
