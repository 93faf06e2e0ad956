"""Drop instructions whose result nobody reads, and the locations that nobody uses then.

Before:
    PLACEHOLDER

After:
    PLACEHOLDER

Why: one walk from the end meets every reader before what it reads, so a chain of dead instructions
goes at once. What can be seen from outside stays: a write to an output, an instruction that steers
or synchronises. A location that only dead instructions touched would still cost SBUF bytes.
"""

from __future__ import annotations

import attrs

from ncc.ir.bir import Ap, Function, Inst, LocSet, Module, with_insts
from ncc.ir.bir_opcodes import OPCODES
from ncc.passes.base import define
from ncc.target import Target

# families whose instructions do more than write their results
KEEPING = {"terminator", "sync", "collective", "kernel", "region", "descriptor"}
SEEN = {"ExternalOutput", "ExternalOutputParameter", "Output"}


def has_effect(inst: Inst) -> bool:
    """Kept even when nobody reads it: it has no result of its own, or its family does more."""
    if OPCODES[inst.opcode].family in KEEPING or not inst.outs:
        return True
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
    insts = func.blocks[0].insts
    seen = {loc.name for of in func.sets if of.kind in SEEN for loc in of.locs}
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
