"""Split every access that no record or descriptor can express.

Before:
    module f gen3
      func sg0000
        set x bfloat16 (19,4) kind=ExternalInput
          loc x DRAM (1,152)
        set a bfloat16 (4,19) memory=SB
          loc a SB (4,38)
        block Block1
          i0 = DMACopy DMA a:bfloat16[[19,4],[1,1],[1,1],[1,19]] <- x:bfloat16[[4,19],[1,1],[1,1],[1,4]] mode=Transpose transpose_op=XZYW

After:
    module f gen3
      func sg0000
        set x bfloat16 (19,4) kind=ExternalInput
          loc x DRAM (1,152)
        set a bfloat16 (4,19) memory=SB
          loc a SB (4,38)
        block Block1
          i0.0 = DMACopy DMA a:bfloat16[[19,4],[1,1],[1,1],[1,16]] <- x:bfloat16[[4,16],[1,1],[1,1],[1,4]] mode=Transpose transpose_op=XZYW
          i0.1 = Load DMA a:bfloat16[[19,4],[1,3]]+16 <- x:bfloat16[[1,4],[4,3]]+64

Why: a step is a 16-bit field, a record has two to four of them, and a DMA descriptor has two above
one contiguous run. Whoever writes bytes later must be able to trust that each instruction is one
record. Splitting here, while nothing has a place or an order, costs nothing but instructions.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod

import attrs

from ncc.errors import NccError
from ncc.ir.bir import Ap, Inst, Module, Operand, with_insts
from ncc.ir.bir_loops import line
from ncc.ir.bir_opcodes import OPCODES, keyed
from ncc.ir.bir_operands import free_pairs
from ncc.ir.bir_patterns import canonical
from ncc.ir.core import unchanged
from ncc.ir.data import size_of
from ncc.ir.dma_patterns import (
    ROWS,
    STRIPES,
    WIDE,
    is_transposing,
    sides,
    transposes,
    unequal,
)
from ncc.ir.dma_runs import runs
from ncc.ir.dma_split import parted
from ncc.ir.engine_patterns import COUNT, complaints, misfit
from ncc.ir.indirect import INDIRECT, is_one
from ncc.ir.indirect import pieces as index_pieces
from ncc.ir.locations import Owned, owners
from ncc.ir.walks import Joint, merged, together
from ncc.passes.base import define
from ncc.target import Target

ME = "legalize-sizes"
PIECES = 16  # an engine instruction is cut into at most so many
# operands of `ins` that are walked along with the destination; the others are one value a partition
WALKED = {
    "TensorCopy": 1,
    "GenericCopy": 1,
    "Activation": 1,
    "TensorScalar": 1,
    "TensorScalarPtr": 1,
    "TensorTensor": 2,
    "Matmult": 1,
    "Memset": 0,
}


def apply(module: Module, target: Target) -> Module:
    func = module.main
    owned = owners(func.sets)
    for owner, loc in owned.values():
        if loc.type == "SB" and loc.dims[1] > target.sbuf_usable and not loc.runtime_reserved:
            said = f"{loc.name} takes {loc.dims[1]} bytes a partition, and {target} has "
            said = f"{said}{target.sbuf_usable}"
            place = owner.origin.place(loc.name, ME)
            raise NccError("NCC501", said, place, "cut the tile into smaller ones")
    insts = line(func)
    legal: list[Inst] = []
    for inst in insts:
        if OPCODES[inst.opcode].family == "dma":
            legal += dma(inst, owned, target)
        else:
            legal += engine(inst, owned)
    if unchanged(legal, insts):
        return module
    return with_insts(module, tuple(renamed(insts, legal)))


def renamed(insts: Sequence[Inst], legal: list[Inst]) -> list[Inst]:
    """The pieces with edges that name pieces: who waited for an instruction waits for its last."""
    wanted = {name for inst in legal for name, _ in inst.deps}
    if not wanted:
        return legal
    there = {inst.name for inst in legal}
    lost = wanted - there
    if not lost:
        return legal
    last: dict[str, str] = {}
    for inst in legal:
        whole = inst.name
        while "." in whole:
            whole = whole.rpartition(".")[0]
            if whole in lost:
                last[whole] = inst.name
    return [
        attrs.evolve(x, deps=tuple((last.get(name, name), kind) for name, kind in x.deps))
        if any(name in last for name, _ in x.deps)
        else x
        for x in legal
    ]


def engine(inst: Inst, owned: dict[str, Owned]) -> list[Inst]:
    """An engine's instruction as one or several that its record can hold."""
    bad = complaints(inst, owned, ME)
    if bad is None:
        return [inst]
    walked = WALKED.get(inst.opcode) if free_pairs(inst) == OPCODES[inst.opcode].free else None
    if bad.code == "NCC505" or walked is None:
        raise bad
    operands = [x for x in (*inst.ins[:walked], *inst.outs) if type(x) is Ap]
    joints = together([ap.ap[1:] for ap in operands])
    if joints is None:
        raise bad
    found: list[Inst] = []
    for part, start in chunks(merged(joints), (0,) * len(operands)):
        inner, outer = cut(part, OPCODES[inst.opcode].free)
        if prod(num for num, _ in outer) > PIECES:
            raise bad
        for at in product(*(range(num) for num, _ in outer)):
            new: list[Operand] = []
            for k, ap in enumerate(operands):
                jumps = [i * steps[k] for i, (_, steps) in zip(at, outer, strict=True)]
                pairs = canonical((ap.ap[0], *((steps[k], num) for num, steps in inner)))
                new.append(Ap(ap.loc, ap.dtype, pairs, ap.offset + start[k] + sum(jumps)))
            split = len(new) - len(inst.outs)
            ins = (*new[:split], *inst.ins[walked:])
            found.append(piece(inst, len(found), ins, tuple(new[split:])))
    for one in found:
        if bad := complaints(one, owned, ME):
            raise bad
    return found


def chunks(
    joints: list[Joint], start: tuple[int, ...]
) -> list[tuple[list[Joint], tuple[int, ...]]]:
    """A walk in parts of at most 65535 elements each, with where each part begins."""
    if prod(num for num, _ in joints) <= COUNT:
        return [(joints, start)]
    (num, steps), *rest = joints
    size = COUNT // prod(n for n, _ in rest)
    found: list[tuple[list[Joint], tuple[int, ...]]] = []
    for at in range(0, num, max(size, 1)):
        here = tuple(a + at * s for a, s in zip(start, steps, strict=True))
        if size:
            found.append(([(min(size, num - at), steps), *rest], here))
        else:
            found += chunks(rest, here)
    return found


def cut(joints: list[Joint], free: int) -> tuple[list[Joint], list[Joint]]:
    """The pairs that stay in a record, and those that become one instruction a step."""
    inner: list[Joint] = []
    outer: list[Joint] = []
    for num, steps in joints:
        wide = any(misfit(((1, 1), (s, num)), free) for s in steps)
        (outer if wide else inner).append((num, steps))
    while len(inner) > free:
        least = min(range(len(inner)), key=lambda i: (inner[i][0], i))
        outer.append(inner.pop(least))
    return inner, outer


def piece(inst: Inst, number: int, ins: tuple[Operand, ...], outs: tuple[Operand, ...]) -> Inst:
    return Inst(
        f"{inst.name}.{number}",
        inst.opcode,
        inst.engine,
        ins,
        outs,
        inst.keys,
        inst.deps,
        loopnest=inst.loopnest,
        origin=inst.origin.by(ME),
    )


def dma(inst: Inst, owned: dict[str, Owned], target: Target) -> list[Inst]:
    """A DMA as one or several that one descriptor each can hold."""
    if inst.opcode in INDIRECT:
        return indirect(inst)
    both = sides(inst)
    if both is None:
        return [inst]
    if is_transposing(inst):
        return transposing(inst, *both, owned, target)
    src, dst = both
    locs = owned[src.loc][1], owned[dst.loc][1]
    if runs(src, dst, locs[0].type != "DRAM", locs[1].type != "DRAM"):
        return [inst]
    made = parted(src, dst, *locs)
    if not made:
        raise unequal(inst, src, dst, ME)
    adds = len(inst.ins) == 2
    return [piece(inst, n, (b, a) if adds else (a,), (b,)) for n, (a, b) in enumerate(made)]


def indirect(inst: Inst) -> list[Inst]:
    """A DMA by an index as several that one descriptor each can hold, all by the same index."""
    src, dst = inst.ins[0], inst.outs[0]
    if not isinstance(src, Ap) or not isinstance(dst, Ap) or is_one(inst):
        return [inst]
    made = index_pieces(inst)
    if not made:
        raise unequal(inst, src, dst, ME)
    return [piece(inst, n, (a, *inst.ins[1:]), (b,)) for n, (a, b) in enumerate(made)]


def transposing(
    inst: Inst, src: Ap, dst: Ap, owned: dict[str, Owned], target: Target
) -> list[Inst]:
    """Tiles of 16 rows as the DMA unit transposes them, and the rows that are left one by one."""
    (row, rows), *stripes, (column, columns) = src.ap
    partition, *places, (step, _) = dst.ap
    aligned = all(s * size_of(dst.dtype) % WIDE == 0 for s, num in places if num > 1)
    whole = rows // ROWS * ROWS if aligned and transposes(src, dst, owned, target) else 0
    if whole == rows and tuple(stripes) == tuple(places) == STRIPES:
        return [inst]
    found: list[Inst] = []
    if whole:
        for at in product(*(range(num) for _, num in stripes)):
            a = src.offset + sum(i * s for i, (s, _) in zip(at, stripes, strict=True))
            b = dst.offset + sum(i * s for i, (s, _) in zip(at, places, strict=True))
            ins = Ap(src.loc, src.dtype, ((row, whole), *STRIPES, (column, columns)), a)
            outs = Ap(dst.loc, dst.dtype, (partition, *STRIPES, (step, whole)), b)
            found.append(piece(inst, len(found), (ins,), (outs,)))
    if rows > whole:
        walk = tuple(p for p in stripes if p[1] > 1)
        over = tuple(p for p in places if p[1] > 1)
        pairs = ((column, columns), *walk, (row, rows - whole))
        ins = Ap(src.loc, src.dtype, pairs, src.offset + row * whole)
        pairs = (partition, *over, (step, rows - whole))
        outs = Ap(dst.loc, dst.dtype, pairs, dst.offset + step * whole)
        found += dma(plain(inst, ins, outs, owned, len(found)), owned, target)
    return found


def plain(inst: Inst, src: Ap, dst: Ap, owned: dict[str, Owned], number: int) -> Inst:
    """A copy between the same memories without the transposing mode."""
    memories = owned[src.loc][1].type, owned[dst.loc][1].type
    opcode = {("DRAM", "SB"): "Load", ("SB", "DRAM"): "Save"}.get(memories, "DMACopy")
    keys = () if opcode != "DMACopy" else keyed(opcode, inst.keys, mode="Copy", transpose_op="None")
    name = inst.name if number == 0 else f"{inst.name}.{number}"
    origin = inst.origin.by(ME)
    return Inst(name, opcode, inst.engine, (src,), (dst,), keys, inst.deps, origin=origin)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("patterns-are-expressible",),
    after={
        "unroll": "only a straight line has patterns without loop variables",
        "leave-ssa": "the pieces of a split write would look like partial writes",
    },
    real="SBSizeLegalization",
    job="W0",
    sure="confirmed",
)
