"""What an engine's record can express of an access: pairs, steps, counts, and where it may start.

The partition pair never reaches the record: its start goes into the address and its count into a
field of its own. The other pairs do, after those without a jump between them have fused.
"""

from __future__ import annotations

from functools import lru_cache

from ncc.errors import NccError
from ncc.ir.bir import Ap, Inst, Loc
from ncc.ir.bir_operands import free_pairs
from ncc.ir.locations import Owned, row_of
from ncc.ir.walks import collapsed

STEPS = (-0x8000, 0x7FFF)  # a step is a signed 16-bit number of elements
COUNT = 0xFFFF
UNFUSED = frozenset(("TensorReduce", "Pool"))  # they fold pairs of their source as they stand
STEP, NUM, PAIRS = "step", "num", "pairs"

Pairs = tuple[tuple[int, int], ...]


@lru_cache(8192)
def misfit(pairs: Pairs, free: int, fused: bool = True) -> tuple[str, int, int] | None:
    """What keeps an on-chip pattern from a record of `free` pairs: kind, dimension and number.

    The dimension counts the pattern's own pairs, the partition's being 0. A record that folds pairs
    has them as they are, not `fused`.
    """
    left = collapsed(pairs[1:])
    for step, num in left if fused else pairs[1:]:
        if not STEPS[0] <= step <= STEPS[1]:
            return STEP, _dimension(pairs, step), step
        if num > COUNT:
            return NUM, _dimension(pairs, step), num
    return (PAIRS, len(left), free) if len(left) > free else None


def _dimension(pairs: Pairs, step: int) -> int:
    """The slowest pair that fused into the one with this step."""
    return next((i for i, (s, n) in enumerate(pairs) if i and s == step and n > 1), 1)


def show_pattern(pairs: Pairs) -> str:
    return "[" + ",".join(f"[{step},{num}]" for step, num in pairs) + "]"


def misfit_error(inst: Inst, ap: Ap, found: tuple[str, int, int], during: str = "") -> NccError:
    """NCC510 or NCC511: the pattern, the range of its field, and the dimension."""
    kind, dimension, number = found
    place = inst.origin.place(inst.name, during)
    shown = f"{inst.opcode} walks {ap.loc} by {show_pattern(ap.ap)}"
    if kind == PAIRS:
        said = f"{shown}, {dimension} pairs beside the partition's; its record holds {number}"
        return NccError("NCC511", said, place, "copy the operand into an order with fewer jumps")
    field = "−32768 to 32767" if kind == STEP else "1 to 65535"
    said = f"{shown}; {kind} {number} of dimension {dimension} is outside {field}"
    return NccError("NCC510", said, place, "split the access, or make the tile narrower")


def may_start(start: int, count: int) -> bool:
    """Whether `count` partitions may start at `start` (hardware reference, A1)."""
    if count > 64:
        return start == 0 and count <= 128
    return start in (0, 64) if count > 32 else start in (0, 32, 64, 96)


def start_error(inst: Inst, ap: Ap, loc: Loc, during: str = "") -> NccError | None:
    """NCC505 where an engine may not start: partitions, and where those of a quadrant may."""
    start = ap.offset // row_of(loc, ap.dtype) + loc.base
    count = ap.ap[0][1]
    if may_start(start, count):
        return None
    legal = "0" if count > 64 else "0 or 64" if count > 32 else "0, 32, 64 or 96"
    said = f"{inst.opcode} touches {count} partitions of {ap.loc} from partition {start}"
    why = "there are 128" if count > 128 else f"{count} may start at {legal} only"
    said = f"{said}; {why}"
    return NccError("NCC505", said, inst.origin.place(inst.name, during))


def complaints(inst: Inst, owned: dict[str, Owned], during: str = "") -> NccError | None:
    """The first thing that an engine's record cannot express of an instruction."""
    free, fused = free_pairs(inst), inst.opcode not in UNFUSED
    for ap in (*inst.ins, *inst.outs):
        if type(ap) is not Ap or ap.loc not in owned:
            continue
        loc = owned[ap.loc][1]
        if loc.type == "DRAM":
            continue
        if found := misfit(ap.ap, free, fused):
            return misfit_error(inst, ap, found, during)
        start = ap.offset // row_of(loc, ap.dtype) + loc.base
        if (start or ap.ap[0][1] > 128) and (bad := start_error(inst, ap, loc, during)):
            return bad
    return None
