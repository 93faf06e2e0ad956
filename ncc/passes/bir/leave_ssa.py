"""Give each value that is written over a used one a location of its own.

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
          i2 = TensorCopy DVE a:float32[[8,4],[1,8]] <- b:float32[[8,4],[1,8]]
          i3 = Save DMA y:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]

After:
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
        set a_SsaClone0 float32 (4,8) memory=SB
          loc a_SsaClone0 SB (4,32)
        block Block1
          i0 = Load DMA a:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]]
          i1 = TensorCopy DVE b:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]
          i2 = TensorCopy DVE a_SsaClone0:float32[[8,4],[1,8]] <- b:float32[[8,4],[1,8]]
          i3 = Save DMA y:float32[[8,4],[1,8]] <- a_SsaClone0:float32[[8,4],[1,8]]

Why: a location that holds one value after the other lives through the pause between them, and its
second writer has to wait for the first value's readers. With one value a location the allocators
see the pause and may use it. Ring buffers are left alone: their loop wants exactly this.
"""

from __future__ import annotations

import attrs

from ncc.ir.bir import Ap, Inst, Loc, LocSet, Module, Operand, with_insts
from ncc.ir.locations import fresh, owners
from ncc.ir.redefinitions import Version, versions
from ncc.passes.base import define
from ncc.target import Target

ME = "leave-ssa"


def apply(module: Module, target: Target) -> Module:
    func = module.main
    insts = func.blocks[0].insts
    split = versions(func.sets, insts)
    if not split:
        return module
    owned = owners(func.sets)
    taken = set(owned)
    reads: dict[int, dict[str, str]] = {}
    writes: dict[int, dict[str, str]] = {}
    clones: list[LocSet] = []
    for name, found in split.items():
        for number, version in enumerate(found[1:]):
            clone = fresh(f"{name}_SsaClone{number}", taken)
            clones.append(cloned(*owned[name], clone))
            rebind(version, name, clone, reads, writes)
    new = tuple(renamed(x, reads.get(i), writes.get(i)) for i, x in enumerate(insts))
    return with_insts(module, new, sets=(*func.sets, *clones))


def cloned(owner: LocSet, loc: Loc, name: str) -> LocSet:
    """A set of one location like `loc`."""
    shape = owner.shape[owner.partition_dim :] if loc.type != "DRAM" else owner.shape
    new = Loc(name, loc.type, loc.dims)
    return attrs.evolve(owner, name=name, shape=shape, partition_dim=0, locs=(new,))


def rebind(
    version: Version,
    old: str,
    new: str,
    reads: dict[int, dict[str, str]],
    writes: dict[int, dict[str, str]],
) -> None:
    for at in version.reads:
        reads.setdefault(at, {})[old] = new
    for at in version.writes:
        writes.setdefault(at, {})[old] = new


def renamed(inst: Inst, reads: dict[str, str] | None, writes: dict[str, str] | None) -> Inst:
    if reads is None and writes is None:
        return inst
    return attrs.evolve(
        inst,
        ins=tuple(moved(x, reads or {}) for x in inst.ins),
        outs=tuple(moved(x, writes or {}) for x in inst.outs),
        origin=inst.origin.by(ME),
    )


def moved(operand: Operand, names: dict[str, str]) -> Operand:
    if type(operand) is Ap and operand.loc in names:
        return Ap(names[operand.loc], operand.dtype, operand.ap, operand.offset)
    return operand


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("each-value-has-its-location",),
    after={
        "bir-dce": "a dead write would be taken for the beginning of a new value",
        "unroll": "which write comes after which read is known on a straight line",
    },
    real="NonSSALegalization",
    job="W0",
    sure="confirmed",
)
