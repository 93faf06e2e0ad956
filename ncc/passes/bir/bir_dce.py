"""Drop instructions whose result nobody reads, and the locations that nobody uses then.

Before:
    module dead gen3
      func sg0000
        set x float32 (4,3) kind=ExternalInput
          loc x DRAM (1,48)
        set y float32 (4,3) kind=ExternalOutput
          loc y DRAM (1,48)
        set x_t float32 (4,3) memory=SB
          loc x_t SB (4,12)
        set a float32 (4,3) memory=SB
          loc a SB (4,12)
        set b float32 (4,3) memory=SB
          loc b SB (4,12)
        block Block1
          i0 = Load DMA x_t:float32[[3,4],[1,3]] <- x:float32[[3,4],[1,3]]
          i1 = TensorCopy DVE a:float32[[3,4],[1,3]] <- x_t:float32[[3,4],[1,3]]
          i2 = Reciprocal DVE b:float32[[3,4],[1,3]] <- a:float32[[3,4],[1,3]]
          i3 = Save DMA y:float32[[3,4],[1,3]] <- x_t:float32[[3,4],[1,3]]
          i4 = Exit ALL

After:
    module dead gen3
      func sg0000
        set x float32 (4,3) kind=ExternalInput
          loc x DRAM (1,48)
        set y float32 (4,3) kind=ExternalOutput
          loc y DRAM (1,48)
        set x_t float32 (4,3) memory=SB
          loc x_t SB (4,12)
        block Block1
          i0 = Load DMA x_t:float32[[3,4],[1,3]] <- x:float32[[3,4],[1,3]]
          i3 = Save DMA y:float32[[3,4],[1,3]] <- x_t:float32[[3,4],[1,3]]
          i4 = Exit ALL

Why: one walk from the end meets every reader before what it reads, so a chain of dead instructions
goes at once. What can be seen from outside stays: a write to an output, an instruction that steers
or synchronises. A location that only dead instructions touched would still cost SBUF bytes.
"""

from __future__ import annotations

import attrs

from ncc.ir.bir import SHARED, Ap, Function, Inst, LocSet, Module, with_insts
from ncc.ir.bir_loops import line
from ncc.ir.bir_opcodes import OPCODES
from ncc.passes.base import define
from ncc.target import Target

# families whose instructions do more than write their results
KEEPING = {"terminator", "sync", "collective", "kernel", "region", "descriptor"}
DRAWS = {"Rng", "Rand", "Rand2", "Dropout", "SetRandState", "RandSetState"}
SEEN = {"ExternalOutput", "ExternalOutputParameter", "Output", SHARED}


def has_effect(inst: Inst) -> bool:
    """Kept even when nobody reads it: it has no result of its own, or its family does more."""
    if OPCODES[inst.opcode].family in KEEPING or not inst.outs:
        return True
    if inst.opcode in DRAWS or ("mode", "Random") in inst.keys:
        return True  # the next random number is another one without it
    return any(k in ("acc", "reduce_cmd", "accumulator_cmd") and v != "Idle" for k, v in inst.keys)


def live_insts(insts: tuple[Inst, ...], seen: set[str]) -> list[Inst]:
    """The instructions that count, in order; `seen` are the locations that are read at the end."""
    wanted = set(seen)
    kept: list[Inst] = []
    for inst in reversed(insts):
        if has_effect(inst) or any(not isinstance(x, Ap) or x.loc in wanted for x in inst.outs):
            kept.append(inst)
            wanted.update([x.loc for x in inst.ins if isinstance(x, Ap)])
    kept.reverse()
    return kept


def read_by(insts: list[Inst]) -> set[str]:
    return {x.loc for inst in insts for x in inst.ins if isinstance(x, Ap)}


def dropped(func: Function, insts: tuple[Inst, ...]) -> tuple[LocSet, ...]:
    """The sets that inputs, outputs or the instructions still need."""
    used = {x.loc for inst in insts for x in (*inst.ins, *inst.outs) if isinstance(x, Ap)}
    return tuple(
        of
        for of in func.sets
        if of.kind not in ("Internal", "Const")
        or any(loc.name in used or loc.runtime_reserved for loc in of.locs)
    )


def apply(module: Module, target: Target) -> Module:
    func = module.main
    insts = line(func)
    seen = {loc.name for of in func.sets if of.kind in SEEN for loc in of.locs}
    kept = live_insts(insts, seen)
    while len(func.blocks) > 1 and (more := read_by(kept) - seen):
        seen |= more  # a loop brings what is read before it is written
        kept = live_insts(insts, seen)
    if len(kept) < len(insts):
        gone = {x.name for x in insts} - {x.name for x in kept}
        kept = [
            x
            if all(name not in gone for name, _ in x.deps)
            else attrs.evolve(x, deps=tuple(d for d in x.deps if d[0] not in gone))
            for x in kept
        ]
    sets = dropped(func, tuple(kept))
    if len(kept) == len(insts) and len(sets) == len(func.sets):
        return module
    return with_insts(module, tuple(kept), sets=sets)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    needs=("no-loop-is-left",),
    required=False,
    after={"unroll": "it reads a straight line"},
    real="dead_code_elim",
    job="W0",
    sure="confirmed",
)
