"""DMAs whose rows begin where an index says: which side that is, how far it reaches, its pieces.

One side is the *table*, in DRAM: its pattern's first pair has step 0, and row r begins
`index_scale * index[r]` elements further. The other side walks partitions. A descriptor has one
step above a row's runs; what a row has more is cut into several DMAs by the same index.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import product

import attrs

from ncc.ir.bir import Ap, Inst, Operand
from ncc.ir.bir_opcodes import key
from ncc.ir.bir_patterns import canonical
from ncc.ir.dma_runs import Runs, fits, steps
from ncc.ir.walks import merged, together

INDIRECT = frozenset(("IndirectLoad", "IndirectSave", "IndirectSaveAccumulate"))


def table(inst: Inst) -> Operand:
    """The side whose rows the index chooses."""
    return inst.ins[0] if inst.opcode == "IndirectLoad" else inst.outs[0]


def direct(inst: Inst) -> Operand:
    """The other side, in SBUF."""
    return inst.outs[0] if inst.opcode == "IndirectLoad" else inst.ins[0]


def spread(inst: Inst, ap: Ap) -> Ap:
    """All that a table's access may touch: every row that is inside."""
    limit = max(1, int(key(inst, "index_limit")))
    return _spread(ap, int(key(inst, "index_scale")), limit)


@lru_cache(4096)
def _spread(ap: Ap, scale: int, limit: int) -> Ap:
    return Ap(ap.loc, ap.dtype, ((scale, limit), *ap.ap[1:]), ap.offset)


def spread_all(inst: Inst) -> tuple[tuple[Operand, ...], tuple[Operand, ...]]:
    """`ins` and `outs` of an indirect DMA with its table spread."""
    ins, outs = inst.ins, inst.outs
    side = table(inst)
    if not isinstance(side, Ap):
        return ins, outs
    whole = spread(inst, side)
    if inst.opcode == "IndirectLoad":
        return (whole, *ins[1:]), outs
    return ins, (whole, *outs[1:])


def _row(ap: Ap) -> Ap:
    return Ap(ap.loc, ap.dtype, ((ap.ap[0][0], 1), *ap.ap[1:]), ap.offset)


def row_runs(inst: Inst) -> Runs | None:
    """The runs of one row on both sides; None where they cannot be walked together."""
    src, dst = inst.ins[0], inst.outs[0]
    if not isinstance(src, Ap) or not isinstance(dst, Ap):
        return None
    load = inst.opcode == "IndirectLoad"
    found = steps(_row(src), _row(dst), not load, load)
    if found is None:
        return None
    return attrs.evolve(found, walk=tuple(w for w in found.walk if w[0] > 1))


def is_one(inst: Inst) -> bool:
    """Whether one descriptor holds it."""
    found = row_runs(inst)
    return found is not None and len(found.walk) <= 1 and fits(found)


def pieces(inst: Inst) -> list[tuple[Ap, Ap]]:
    """Both sides in pieces that a descriptor each can hold; none where they do not go together."""
    src, dst = inst.ins[0], inst.outs[0]
    if not isinstance(src, Ap) or not isinstance(dst, Ap):
        return []
    joints = together([src.ap[1:], dst.ap[1:]])
    if joints is None:
        return []
    joints = merged(joints)
    for kept in range(min(len(joints), 2), -1, -1):
        outer, inner = joints[: len(joints) - kept], joints[len(joints) - kept :]
        found: list[tuple[Ap, Ap]] = []
        for at in product(*(range(num) for num, _ in outer)):
            sides: list[Ap] = []
            for k, ap in enumerate((src, dst)):
                jump = sum(i * s[k] for i, (_, s) in zip(at, outer, strict=True))
                pairs = canonical((ap.ap[0], *((s[k], num) for num, s in inner)))
                sides.append(Ap(ap.loc, ap.dtype, pairs, ap.offset + jump))
            found.append((sides[0], sides[1]))
        first = attrs.evolve(inst, ins=(found[0][0], *inst.ins[1:]), outs=(found[0][1],))
        if is_one(first):
            return found
    return []
