"""The states of PSUM cells, which make START, STOP, the zeroed window and reading one rule.

A matmul with START zeroes its window first: the bank of its destination, on all partitions of its
column group. One without STOP leaves its cells open; only closed cells may be read by an engine.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ncc.errors import NccError
from ncc.interp.bir_memory import Slot
from ncc.ir.bir import Inst
from ncc.ir.bir_keys import START, STOP
from ncc.target import BANK

UNWRITTEN, ZEROED, OPEN, CLOSED, FOREIGN = range(5)
WORDS = ("unwritten", "zeroed", "open", "closed", "written by another engine")


def states(slot: Slot) -> Any:
    """The states of an operand's cells, as a view; none for elements that are no whole cell."""
    if slot.place.cells is None or slot.values.itemsize != 4:
        return None
    size = slot.values.itemsize
    address = slot.values.__array_interface__["data"][0] - slot.place.data.ctypes.data
    steps = [step // size for step in slot.values.strides]
    return np.ndarray(slot.values.shape, np.uint8, slot.place.cells, address // size, steps)


def fault(inst: Inst, said: str) -> NccError:
    return NccError("NCC431", f"{inst.name} {said}", inst.origin.place(inst.name))


def check_read(slot: Slot, inst: Inst) -> None:
    """An engine reads only cells whose group is finished."""
    cells = states(slot)
    if cells is not None:
        for bad in (ZEROED, OPEN):
            if (cells == bad).any():
                raise fault(inst, f"reads cells of {slot.place.name} that are {WORDS[bad]}")


def foreign(slot: Slot) -> None:
    """An engine other than PE wrote here."""
    cells = states(slot)
    if cells is not None:
        cells[...] = FOREIGN


def group_rows(first: int, count: int) -> tuple[int, int]:
    """The partitions of the column group that `count` columns from `first` belong to."""
    for size in (32, 64):
        if count <= size:
            low = first // size * size
            return low, low + size
    return 0, 128


def window(slot: Slot) -> tuple[Any, Any, Any]:
    """What a START into this destination zeroes: its bytes, their shadow and their cells."""
    place = slot.place
    if not place.placed:
        return place.data, place.shadow, place.cells
    row = place.width // slot.values.itemsize
    partition, inside = divmod(slot.offset, row)
    low, high = group_rows(place.base + partition, slot.values.shape[0])
    bank = (place.addr + inside * slot.values.itemsize) // BANK * BANK
    found = [
        x.reshape(-1, place.pitch)[low:high, bank : bank + BANK] for x in (place.data, place.shadow)
    ]
    assert place.cells is not None
    cells = place.cells.reshape(-1, place.pitch // 4)[low:high, bank // 4 : (bank + BANK) // 4]
    return found[0], found[1], cells


def begin(slot: Slot, flag: int, inst: Inst) -> None:
    """What the flags do before the product is added."""
    if flag & START:
        data, shadow, cells = window(slot)
        if (cells == OPEN).any():
            raise fault(
                inst, f"starts in the bank of {slot.place.name} while a group there is open"
            )
        data[...] = 0
        shadow[...] = True
        cells[...] = ZEROED
        return
    cells = states(slot)
    if cells is not None and (cells == UNWRITTEN).any():
        raise fault(inst, f"adds to cells of {slot.place.name} that nothing wrote")


def end(slot: Slot, flag: int) -> None:
    """What the flags do after it."""
    cells = states(slot)
    if cells is not None:
        cells[...] = CLOSED if flag & STOP else OPEN


def copied(slot: Slot, inst: Inst) -> None:
    """A PE transpose that copies: its destination only, which no group may hold open."""
    cells = states(slot)
    if cells is not None:
        if (cells == OPEN).any():
            raise fault(inst, f"overwrites cells of {slot.place.name} whose group is open")
        cells[...] = CLOSED
