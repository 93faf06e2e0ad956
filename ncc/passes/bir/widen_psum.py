"""Give every PSUM element a cell of four bytes.

Before:
    module f gen3
      func sg0000
        set a bfloat16 (4,8) memory=SB
          loc a SB (4,16)
        set b bfloat16 (4,8) memory=PSUM
          loc b PSUM (4,16)
        block Block1
          i0 = TensorCopy DVE b:bfloat16[[8,4],[1,8]] <- a:bfloat16[[8,4],[1,8]]

After:
    module f gen3
      func sg0000
        set a bfloat16 (4,8) memory=SB
          loc a SB (4,16)
        set b float32 (4,8) memory=PSUM
          loc b PSUM (4,32)
        block Block1
          i0 = TensorCopy DVE b:float32[[8,4],[1,8]] <- a:bfloat16[[8,4],[1,8]]

Why: the memory behind the PE array adds 32-bit floats in place and knows no narrower cell. A tile
declared narrower therefore takes twice the bytes, and its readers convert on the way out. Whoever
counts banks must see the real bytes, so this comes before the allocators.
"""

from __future__ import annotations

import attrs

from ncc.errors import NccError
from ncc.ir.bir import Ap, Inst, Loc, LocSet, Module, Operand, with_insts
from ncc.ir.bir_loops import line
from ncc.ir.data import FLOATS, size_of
from ncc.ir.locations import Owned, box_of, owners
from ncc.passes.base import define
from ncc.target import Target

ME = "widen-psum"


def cell(dtype: str) -> str:
    """The 4-byte type that holds every value of `dtype`."""
    if size_of(dtype) == 4:
        return dtype
    return "float32" if dtype in FLOATS else "uint32" if dtype.startswith("u") else "int32"


def apply(module: Module, target: Target) -> Module:
    func = module.main
    insts = line(func)
    narrow = {x.name: x for x in func.sets if x.memory == "PSUM" and size_of(x.dtype) < 4}
    if narrow:
        owned = owners(func.sets)
        insts = tuple(widened(inst, owned, narrow) for inst in insts)
        sets = tuple(wide(x) if x.name in narrow else x for x in func.sets)
        module = with_insts(module, insts, sets=sets)
    check(module, target)
    return module


def wide(of: LocSet) -> LocSet:
    """The set with 4-byte elements; a place that a kernel chose stays."""
    factor = 4 // size_of(of.dtype)
    locs = tuple(attrs.evolve(x, dims=(x.dims[0], x.dims[1] * factor)) for x in of.locs)
    return attrs.evolve(of, dtype=cell(of.dtype), locs=locs, origin=of.origin.by(ME))


def widened(inst: Inst, owned: dict[str, Owned], narrow: dict[str, LocSet]) -> Inst:
    if not any(type(x) is Ap and owned[x.loc][0].name in narrow for x in (*inst.ins, *inst.outs)):
        return inst

    def new(x: Operand) -> Operand:
        if type(x) is not Ap or (of := owned[x.loc][0]).name not in narrow:
            return x
        if x.dtype != of.dtype:
            said = f"reads the {of.dtype} cells of {x.loc} as {x.dtype}"
            raise NccError("NCC513", said, inst.origin.place(inst.name, ME), "copy the tile first")
        return Ap(x.loc, cell(x.dtype), x.ap, x.offset)

    return attrs.evolve(
        inst,
        ins=tuple(map(new, inst.ins)),
        outs=tuple(map(new, inst.outs)),
        origin=inst.origin.by(ME),
    )


def check(module: Module, target: Target) -> None:
    """Refuse what no bank can hold: a tile wider than PSUM, an access that leaves its bank."""
    owned = owners(module.main.sets)
    limit = target.psum_banks * target.psum_bank_bytes
    tall: dict[str, Loc] = {}
    for owner, loc in owned.values():
        if loc.type != "PSUM":
            continue
        if loc.dims[1] > limit:
            said = f"{loc.name} takes {loc.dims[1]} bytes a partition, and the {target.psum_banks} "
            said = f"{said}banks of {target} have {limit}"
            raise NccError("NCC504", said, owner.origin.place(loc.name, ME), "cut the tile")
        start = loc.addr % target.psum_bank_bytes if loc.allocated else 0
        if start + loc.dims[1] > target.psum_bank_bytes:
            tall[loc.name] = loc
    for inst in line(module.main) if tall else ():
        for x in inst.outs:
            if type(x) is Ap and x.loc in tall:
                one_bank(inst, x, tall[x.loc], target.psum_bank_bytes)


def one_bank(inst: Inst, ap: Ap, loc: Loc, bank: int) -> None:
    box, size = box_of(ap, loc), size_of(ap.dtype)
    start = loc.addr if loc.allocated else 0
    if (start + box.e0 * size) // bank != (start + box.e1 * size - 1) // bank:
        first, end = box.e0 * size, box.e1 * size
        said = f"{inst.opcode} touches bytes {first} to {end} of {loc.name}; a bank ends every "
        said = f"{said}{bank} bytes, and no access may pass its end"
        place = inst.origin.place(inst.name, ME)
        raise NccError("NCC504", said, place, "cut the access where the bank ends")


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("psum-cells-are-four-bytes",),
    exact=False,  # what a narrow cell would round at each write is now rounded once
    after={"legalize-sizes": "it may cut the accesses that this pass looks at"},
    real="PSUMLegalization",
    job="W0",
    sure="confirmed",
)
