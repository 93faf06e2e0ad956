"""What a DMA descriptor can express, and when it can transpose on the way."""

from __future__ import annotations

from ncc.errors import NccError
from ncc.ir.bir import Ap, Inst
from ncc.ir.data import size_of
from ncc.ir.dma_runs import runs
from ncc.ir.engine_patterns import show_pattern
from ncc.ir.indirect import INDIRECT, is_one
from ncc.ir.locations import Owned, row_of
from ncc.target import Target

ROWS = 16  # rows of a tile of the transposing DMA
WIDE = 32  # bytes that the destination and its steps are multiples of
STRIPES = ((1, 1), (1, 1))  # Z and Y of a matrix


def is_transposing(inst: Inst) -> bool:
    return inst.opcode == "DMACopy" and ("mode", "Transpose") in inst.keys


def sides(inst: Inst) -> tuple[Ap, Ap] | None:
    """Source and destination of a DMA that moves one access to another, or adds it there."""
    adds = len(inst.ins) == 2 and inst.ins[0] == inst.outs[0]
    if (len(inst.ins) == 1 or adds) and len(inst.outs) == 1:
        src, dst = inst.ins[-1], inst.outs[0]
        if type(src) is Ap and type(dst) is Ap:
            return src, dst
    return None


def transposes(src: Ap, dst: Ap, owned: dict[str, Owned], target: Target) -> bool:
    """Whether the DMA unit itself can transpose: a matrix of 2-byte elements into aligned rows."""
    from_set, from_loc = owned[src.loc]
    to_loc = owned[dst.loc][1]
    if not target.transposing_dma or from_loc.type != "DRAM" or to_loc.type != "SB":
        return False
    if size_of(src.dtype) != 2 or src.dtype != dst.dtype or from_set.dtype != src.dtype:
        return False
    start = dst.offset % row_of(to_loc, dst.dtype) * 2
    return src.ap[-1][0] == 1 and dst.ap[-1][0] == 1 and start % WIDE == 0


def dma_error(inst: Inst, owned: dict[str, Owned], target: Target) -> NccError | None:
    """NCC512 for a DMA that no one descriptor can hold."""
    if inst.opcode in INDIRECT:
        src, dst = inst.ins[0], inst.outs[0]
        if not isinstance(src, Ap) or not isinstance(dst, Ap) or is_one(inst):
            return None
        return unequal(inst, src, dst)
    both = sides(inst)
    if both is None or any(ap.loc not in owned for ap in both):
        return None
    src, dst = both
    if is_transposing(inst):
        if (
            transposes(src, dst, owned, target)
            and src.ap[0][1] % ROWS == 0
            and src.ap[1:3] == dst.ap[1:3] == STRIPES
        ):
            return None
        said = f"transposes {src.loc} into {dst.loc} by {show_pattern(dst.ap)}"
        said = f"{said}; the transposing DMA takes 16 rows of 2-byte elements at a time"
        return NccError("NCC512", said, inst.origin.place(inst.name))
    on_chip = [owned[ap.loc][1].type != "DRAM" for ap in both]
    if runs(src, dst, on_chip[0], on_chip[1]):
        return None
    return unequal(inst, src, dst)


def unequal(inst: Inst, src: Ap, dst: Ap, during: str = "") -> NccError:
    """NCC512: two patterns that no descriptor walks together."""
    said = f"{inst.opcode} moves {src.loc} by {show_pattern(src.ap)} to {dst.loc} by "
    said = f"{said}{show_pattern(dst.ap)}; a descriptor holds two equal steps above one run"
    hint = "give both sides equal counts, with fewer jumps"
    return NccError("NCC512", said, inst.origin.place(inst.name, during), hint)
