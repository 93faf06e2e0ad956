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
from ncc.encode.codes import EVENT_SET, UPDATE_INC, WAIT_EVENT_CLEAR, WAIT_GE
from ncc.encode.record_parts import Context, Encoder, Fields, Record, banded, fields
from ncc.ir.bir import Inst
from ncc.ir.bir_opcodes import key
from ncc.ir.isa import STREAMS, At, Band

MET = 16  # the counter of those who came, and the first event; below are engines and queues

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


def meeting(ctx: Context, inst: Inst) -> list[Record]:
    """The first of the engines clears the counters when all have come, and lets the others go."""
    engines: tuple[str, ...] = key(inst, "engines")
    leader, *others = engines
    come: Record = ("Drain", banded(Band(update=(UPDATE_INC, MET))))
    if inst.engine != leader:
        wait = Band(wait=(WAIT_EVENT_CLEAR, MET + STREAMS.index(inst.engine)))
        return [come, ("Nop", banded(wait))]
    all_came: Record = (
        "EventSemaphore",
        banded(Band(wait=(WAIT_GE, MET), value=len(engines))),
    )
    clear: Record = ("EventSemaphoreRangeClear", fields(mode=1, last=MET))
    go: list[Record] = [
        ("Nop", banded(Band(update=(EVENT_SET, MET + STREAMS.index(other))))) for other in others
    ]
    return [come, all_came, clear, *go]


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
    "AllEngineBarrier": meeting,
    "Exit": leave,
    "NoOp": nop,
}
