"""Let the readers of a plain copy read what was copied.

Before:
    module f gen3
      func sg0000
        set x float32 (4,8) kind=ExternalInput
          loc x DRAM (1,128)
        set y float32 (4,8) kind=ExternalOutput
          loc y DRAM (1,128)
        set a float32 (4,8) memory=SB
          loc a SB (4,32)
        set b float32 (4,8) memory=SB
          loc b SB (4,32)
        block Block1
          i0 = Load DMA a:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]]
          i1 = TensorCopy DVE b:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]
          i2 = Save DMA y:float32[[8,4],[1,8]] <- b:float32[[8,4],[1,8]]

After:
    module f gen3
      func sg0000
        set x float32 (4,8) kind=ExternalInput
          loc x DRAM (1,128)
        set y float32 (4,8) kind=ExternalOutput
          loc y DRAM (1,128)
        set a float32 (4,8) memory=SB
          loc a SB (4,32)
        block Block1
          i0 = Load DMA a:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]]
          i2 = Save DMA y:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]

Why: tiling and kernels leave copies whose source is still there when the last reader of the copy
comes. Before allocation nothing is at stake but names: the reader is pointed at the source, the
copy goes, and one tile less wants a place.
"""

from __future__ import annotations

import attrs

from ncc.ir.bir import Ap, Inst, Module, Operand, with_insts
from ncc.ir.bir_loops import line, private
from ncc.ir.locations import Owned, box_of, is_solid, owners, row_of
from ncc.passes.base import define
from ncc.target import Target

ME = "copy-elim"


@attrs.define
class Use:
    """Who touches a location, by number of the instruction."""

    writes: list[int] = attrs.field(factory=list[int])
    reads: list[int] = attrs.field(factory=list[int])


def apply(module: Module, target: Target) -> Module:
    func = module.main
    insts = line(func)
    owned = owners(func.sets)
    named = {name for inst in insts for name, _ in inst.deps}
    own = private(func)
    copies = [
        i
        for i, x in enumerate(insts)
        if x.opcode == "TensorCopy" and x.name not in named and plain(x, owned)
        if own is None or any(type(out) is Ap and out.loc in own for out in x.outs)
    ]
    if not copies:
        return module
    uses = used(insts)
    new: list[Inst | None] = list(insts)
    gone: set[str] = set()
    for at in copies:
        copy = new[at]
        assert copy is not None
        src, dst = copy.ins[0], copy.outs[0]
        assert isinstance(src, Ap) and isinstance(dst, Ap)
        if not readable(at, src, dst, uses, owned, new):
            continue
        for reader in uses[dst.loc].reads:
            if (inst := new[reader]) is not None:
                new[reader] = pointed(inst, src, dst, owned)
        uses[src.loc].reads += uses[dst.loc].reads
        new[at] = None
        gone.add(dst.loc)
    if not gone:
        return module
    sets = tuple(x for x in func.sets if not (len(x.locs) == 1 and x.locs[0].name in gone))
    return with_insts(module, tuple(x for x in new if x is not None), sets=sets)


def plain(inst: Inst, owned: dict[str, Owned]) -> bool:
    """A copy inside SBUF of one type, the same walk on both sides, to a tile of its own."""
    src, dst = inst.ins[0], inst.outs[0]
    if not (isinstance(src, Ap) and isinstance(dst, Ap)) or src.dtype != dst.dtype:
        return False
    (_, a), (owner, b) = owned[src.loc], owned[dst.loc]
    if a.type != "SB" or b.type != "SB" or a.pinned or b.pinned or src.loc == dst.loc:
        return False
    if owner.ring or owner.kind != "Internal" or len(owner.locs) != 1:
        return False
    same = src.ap[0][1] == dst.ap[0][1] and src.ap[1:] == dst.ap[1:] and is_solid(dst, b)
    return same and src.offset // row_of(a, src.dtype) == dst.offset // row_of(b, dst.dtype)


def used(insts: tuple[Inst, ...]) -> dict[str, Use]:
    found: dict[str, Use] = {}
    for at, inst in enumerate(insts):
        for x in inst.ins:
            if type(x) is Ap:
                found.setdefault(x.loc, Use()).reads.append(at)
        for x in inst.outs:
            if type(x) is Ap:
                found.setdefault(x.loc, Use()).writes.append(at)
    return found


def readable(
    at: int,
    src: Ap,
    dst: Ap,
    uses: dict[str, Use],
    owned: dict[str, Owned],
    insts: list[Inst | None],
) -> bool:
    """Whether the source still holds the value wherever the copy is read, and nothing else is."""
    mine = uses[dst.loc]
    if mine.writes != [at] or not mine.reads or mine.reads[0] < at:
        return False
    last = max(mine.reads)
    if any(at < w <= last for w in uses[src.loc].writes):
        return False
    loc = owned[dst.loc][1]
    whole = box_of(dst, loc)
    for reader in mine.reads:
        inst = insts[reader]
        for x in inst.ins if inst else ():
            if type(x) is not Ap or x.loc != dst.loc:
                continue
            if x.dtype != dst.dtype or not whole.holds(box_of(x, loc)):
                return False
    return True


def pointed(inst: Inst, src: Ap, dst: Ap, owned: dict[str, Owned]) -> Inst:
    """The reader with the source in place of the copy."""
    here, there = row_of(owned[dst.loc][1], dst.dtype), row_of(owned[src.loc][1], src.dtype)
    shift = src.offset % there - dst.offset % here

    def new(x: Operand) -> Operand:
        if type(x) is not Ap or x.loc != dst.loc:
            return x
        partition, element = divmod(x.offset, here)
        pairs = ((there, x.ap[0][1]), *x.ap[1:])
        return Ap(src.loc, x.dtype, pairs, partition * there + element + shift)

    return attrs.evolve(inst, ins=tuple(map(new, inst.ins)), origin=inst.origin.by(ME))


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    required=False,
    after={"leave-ssa": "what is written once cannot change under a reader"},
    real="TensorCopyElim",
    job="W0",
    sure="confirmed",
)
