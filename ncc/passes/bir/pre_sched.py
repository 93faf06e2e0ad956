"""Move the loads to where the memory wants them: ahead of the work, as far as there is room.

Before:
    module f gen3
      func sg0000
        set x float32 (4,8) kind=ExternalInput
          loc x DRAM (1,128)
        set w float32 (4,8) kind=ExternalInput
          loc w DRAM (1,128)
        set y float32 (4,8) kind=ExternalOutput
          loc y DRAM (1,128)
        set a float32 (4,8) memory=SB
          loc a SB (4,32)
        set b float32 (4,8) memory=SB
          loc b SB (4,32)
        set c float32 (4,8) memory=SB
          loc c SB (4,32)
        set d float32 (4,8) memory=SB
          loc d SB (4,32)
        block Block1
          i0 = Load DMA a:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]]
          i1 = TensorCopy DVE b:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]
          i2 = Load DMA c:float32[[8,4],[1,8]] <- w:float32[[8,4],[1,8]]
          i3 = TensorTensor DVE d:float32[[8,4],[1,8]] <- b:float32[[8,4],[1,8]] c:float32[[8,4],[1,8]] op=add
          i4 = Save DMA y:float32[[8,4],[1,8]] <- d:float32[[8,4],[1,8]]

After:
    module f gen3
      func sg0000
        set x float32 (4,8) kind=ExternalInput
          loc x DRAM (1,128)
        set w float32 (4,8) kind=ExternalInput
          loc w DRAM (1,128)
        set y float32 (4,8) kind=ExternalOutput
          loc y DRAM (1,128)
        set a float32 (4,8) memory=SB
          loc a SB (4,32)
        set b float32 (4,8) memory=SB
          loc b SB (4,32)
        set c float32 (4,8) memory=SB
          loc c SB (4,32)
        set d float32 (4,8) memory=SB
          loc d SB (4,32)
        block Block1
          i0 = Load DMA a:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]]
          i2 = Load DMA c:float32[[8,4],[1,8]] <- w:float32[[8,4],[1,8]]
          i1 = TensorCopy DVE b:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]
          i3 = TensorTensor DVE d:float32[[8,4],[1,8]] <- b:float32[[8,4],[1,8]] c:float32[[8,4],[1,8]] op=add
          i4 = Save DMA y:float32[[8,4],[1,8]] <- d:float32[[8,4],[1,8]]

Why: the allocators see time as positions in this list. A load that stands right before its reader
gets bytes that the previous reader still uses, and then has to wait for it; one that stands a few
instructions ahead gets bytes of its own and overlaps. That costs room, so a program that does not
fit as it is gets the opposite: its loads move back to their first reader, and live shorter.
Nothing but loads moves, so sums stay together and every engine keeps its order.
"""

from __future__ import annotations

from collections.abc import Sequence

from ncc.ir.bir import Ap, Inst, Module, with_insts
from ncc.ir.bir_loops import line
from ncc.ir.core import unchanged
from ncc.ir.dma_patterns import sides
from ncc.ir.intervals import peak, spans
from ncc.ir.locations import Owned, owners
from ncc.passes.base import define
from ncc.target import Target

AHEAD = (64, 16, 4)  # instructions; the first that fits
ROOM = 0.9  # of SBUF: rectangles never fill it all

Bounds = list[tuple[int, int, int]]  # of each load: its number, after whom, before whom


def apply(module: Module, target: Target) -> Module:
    func = module.main
    insts = line(func)
    owned = owners(func.sets)
    if len(func.blocks) > 1:
        return module  # what is loaded further ahead would live around a loop
    if any(loc.pinned and loc.type != "DRAM" for _, loc in owned.values()):
        return module  # places that a kernel chose may overlap: its order stands
    bounds = loads(insts, owned)
    if not bounds:
        return module
    now = weight(insts, owned)
    if now > target.sbuf_usable:
        late = ordered(insts, {i: 2 * before - 1 for i, _, before in bounds})
        if weight(late, owned) < now:
            return with_insts(module, late)
        return module
    most = max(now, int(target.sbuf_usable * ROOM))
    for ahead in AHEAD:
        early = ordered(insts, {i: max(2 * after + 1, 2 * (i - ahead)) for i, after, _ in bounds})
        if unchanged(early, insts):
            return module
        if weight(early, owned) <= most:
            return with_insts(module, early)
    return module


def ordered(insts: Sequence[Inst], keys: dict[int, int]) -> tuple[Inst, ...]:
    """The instructions by key. One that does not move has twice its number, so a load with an odd
    key stands right behind or before one of them; equal keys keep their order."""
    order = sorted(range(len(insts)), key=lambda i: keys.get(i, 2 * i))
    return tuple(insts[i] for i in order)


def loads(insts: Sequence[Inst], owned: dict[str, Owned]) -> Bounds:
    """The loads, each with the last instruction it must come after and the first it must precede.

    Loads into one tile that nobody reads in between bind each other no further than that: their
    bounds, and so their keys, keep their order.
    """
    found: list[tuple[int, str, str, int]] = []
    touched: dict[str, int] = {}  # by anybody but a load into it
    written: dict[str, int] = {}
    behind: dict[str, int] = {}  # by a load into it: who that one comes after
    named = {name for inst in insts for name, _ in inst.deps}
    for at, inst in enumerate(insts):
        both = None if inst.deps or inst.name in named else loaded(inst, owned)
        if both:
            src, dst = both
            after = max(written.get(src, -1), touched.get(dst, -1), behind.get(dst, -1))
            behind[dst] = after
            found.append((at, src, dst, after))
            continue
        for x in (*inst.ins, *inst.outs):
            if type(x) is Ap:
                touched[x.loc] = at
        for x in inst.outs:
            if type(x) is Ap:
                written[x.loc] = at
    return before_whom(insts, found)


def before_whom(insts: Sequence[Inst], found: list[tuple[int, str, str, int]]) -> Bounds:
    """The same loads with the other bound, which a sweep backwards finds."""
    end = len(insts)
    bounds: Bounds = []
    pending = {at: (src, dst, after) for at, src, dst, after in found}
    touched: dict[str, int] = {}
    written: dict[str, int] = {}
    ahead: dict[str, int] = {}  # by a load into it: who that one comes before
    for at in range(end - 1, -1, -1):
        if at in pending:
            src, dst, after = pending[at]
            before = min(written.get(src, end), touched.get(dst, end), ahead.get(dst, end))
            ahead[dst] = before
            bounds.append((at, after, before))
            continue
        for x in (*insts[at].ins, *insts[at].outs):
            if type(x) is Ap:
                touched[x.loc] = at
        for x in insts[at].outs:
            if type(x) is Ap:
                written[x.loc] = at
    return bounds[::-1]


def loaded(inst: Inst, owned: dict[str, Owned]) -> tuple[str, str] | None:
    """Source and destination of a load from DRAM into SBUF; a sum into SBUF is none."""
    if inst.opcode not in ("Load", "DMACopy") or len(inst.ins) > 1:
        return None
    if (both := sides(inst)) is None:
        return None
    src, dst = both
    is_load = owned[src.loc][1].type == "DRAM" and owned[dst.loc][1].type == "SB"
    return (src.loc, dst.loc) if is_load else None


def weight(insts: Sequence[Inst], owned: dict[str, Owned]) -> int:
    """The most bytes a partition that are live at one moment."""
    live = spans(insts)
    rows = [
        (*live[n], loc.dims[1]) for n, (_, loc) in owned.items() if loc.type == "SB" and n in live
    ]
    return peak(rows)[0]


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    required=False,
    after={
        "legalize-sizes": "it moves whole instructions, and none is cut later",
        "leave-ssa": "a load into a tile that is used again could not move at all",
    },
    real="PreSched",
    job="W0",
    sure="inferred",
)
