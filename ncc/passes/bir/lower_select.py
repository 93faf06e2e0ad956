"""Make two copies of a select: what is false everywhere, then what is true over it.

Before:
    module f gen3
      func sg0000
        set m uint8 (4,8) memory=SB
          loc m SB (4,8)
        set a float32 (4,8) memory=SB
          loc a SB (4,32)
        set b float32 (4,8) memory=SB
          loc b SB (4,32)
        set y float32 (4,8) memory=SB
          loc y SB (4,32)
        set z float32 (4,8) memory=SB
          loc z SB (4,32)
        block Block1
          i0 = Select DVE y:float32[[8,4],[1,8]] <- m:uint8[[8,4],[1,8]] a:float32[[8,4],[1,8]] b:float32[[8,4],[1,8]]
          i1 = Select DVE z:float32[[8,4],[1,8]] <- m:uint8[[8,4],[1,8]] a:float32[[8,4],[1,8]] 1.0:float32

After:
    module f gen3
      func sg0000
        set m uint8 (4,8) memory=SB
          loc m SB (4,8)
        set a float32 (4,8) memory=SB
          loc a SB (4,32)
        set b float32 (4,8) memory=SB
          loc b SB (4,32)
        set y float32 (4,8) memory=SB
          loc y SB (4,32)
        set z float32 (4,8) memory=SB
          loc z SB (4,32)
        block Block1
          i0.0 = TensorCopy DVE y:float32[[8,4],[1,8]] <- b:float32[[8,4],[1,8]]
          i0 = CopyPredicated DVE y:float32[[8,4],[1,8]] <- m:uint8[[8,4],[1,8]] a:float32[[8,4],[1,8]]
          i1.0 = Memset DVE z:float32[[8,4],[1,8]] constant=1065353216
          i1 = CopyPredicated DVE z:float32[[8,4],[1,8]] <- m:uint8[[8,4],[1,8]] a:float32[[8,4],[1,8]]

Why: the engine has a copy that a mask holds back, and no choice between two. Until here a choice is
one instruction, whose result is one value; from here on it writes its result twice, so it is taken
apart before leave-ssa asks which writes begin a value. Only kernels choose so far, and on trn2 one
record chooses between a tensor and a number: what this pass meets comes from kernels on trn1, and
from BIR that others wrote. A result on top of the mask, or of what is true, is refused: the first
copy would destroy them.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ncc.errors import NccError
from ncc.ir.bir import Ap, Imm, Inst, Loc, Module, with_insts
from ncc.ir.bir_change import fresh_names
from ncc.ir.bir_opcodes import keyed
from ncc.ir.locations import byte_box, owners
from ncc.ir.lower.move import bits_of
from ncc.passes.base import define
from ncc.target import Target

ME = "lower-select"


def apply(module: Module, target: Target) -> Module:
    func = module.main
    insts = func.blocks[0].insts
    if all(inst.opcode != "Select" for inst in insts):
        return module
    locs = {name: loc for name, (_, loc) in owners(func.sets).items()}
    taken = {inst.name for inst in insts}
    new: list[Inst] = []
    for inst in insts:
        new += two(inst, locs, taken) if inst.opcode == "Select" else (inst,)
    return with_insts(module, tuple(new))


def two(inst: Inst, locs: dict[str, Loc], taken: set[str]) -> Iterator[Inst]:
    """The two instructions; whoever waits for the select waits for the second."""
    (mask, on_true, on_false), out = inst.ins, inst.outs[0]
    assert isinstance(out, Ap)
    for x, what in ((mask, "mask"), (on_true, "tensor for true")):
        if isinstance(x, Ap) and x.loc == out.loc and meet(x, out, locs[x.loc]):
            said = f"writes its result over its {what}, which it still reads then"
            place = inst.origin.place(inst.name, ME)
            raise NccError("NCC439", said, place, "write to another tile")
    origin = inst.origin.by(ME)
    if on_false != out:
        (name,) = fresh_names(taken, inst.name, 1)
        if isinstance(on_false, Imm):
            keys = keyed("Memset", constant=bits_of(on_false.value, out.dtype))
            first = Inst(name, "Memset", inst.engine, (), (out,), keys, inst.deps, origin=origin)
        else:
            first = Inst(
                name, "TensorCopy", inst.engine, (on_false,), (out,), (), inst.deps, origin=origin
            )
        yield first
    yield attrs.evolve(inst, opcode="CopyPredicated", ins=(mask, on_true), origin=origin)


def meet(one: Ap, other: Ap, loc: Loc) -> bool:
    """Whether two accesses of a location may share bytes."""
    a, b = byte_box(one, loc), byte_box(other, loc)
    return a.p0 < b.p1 and b.p0 < a.p1 and a.e0 < b.e1 and b.e0 < a.e1


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("no-select-is-left",),
    needs=("patterns-are-physical",),
    after={"unroll": "whether a result lies on its mask is known of single instructions"},
    real="lower_select",
    job="W0",
    sure="confirmed",
)
