"""The Exit on all engines becomes one Exit for each engine that has something to do.

Before:
    module m gen3
      queue qSP SP
      func sg0000
        set x float32 (4,8) kind=ExternalInput
          loc x DRAM (1,128) allocated=true
        set t float32 (4,8) memory=SB
          loc t SB (4,32) allocated=true
        block Block1
          i0 = Load SP t:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]] queue=qSP
          i1 = TensorCopy DVE t:float32[[8,4],[1,4]] <- t:float32[[8,4],[1,4]]+4 after i0(F)
          i2 = Exit ALL

After:
    module m gen3
      queue qSP SP
      func sg0000
        set x float32 (4,8) kind=ExternalInput
          loc x DRAM (1,128) allocated=true
        set t float32 (4,8) memory=SB
          loc t SB (4,32) allocated=true
        block Block1
          i0 = Load SP t:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]] queue=qSP
          i1 = TensorCopy DVE t:float32[[8,4],[1,4]] <- t:float32[[8,4],[1,4]]+4 after i0(F)
          i2 = Exit DVE
          i2_sp = Exit SP after i0(X)

Why:
    There is no stream called ALL: a record stands in one engine's stream. Each stream that is not
    empty ends with an Exit of its own, and an engine may only leave when the DMAs that it triggered
    are complete; the Ordered edge from the last one on its queue says so.
"""

from __future__ import annotations

from ncc.errors import NccError
from ncc.ir.bir import Inst, Module, with_insts
from ncc.ir.bir_change import with_deps
from ncc.ir.clocks import DMAS, ENGINES
from ncc.passes.base import define
from ncc.target import Target

NAME = "expand-engines"
SUFFIX = {"PE": "pe", "Activation": "act", "Pool": "pool", "DVE": "dve", "SP": "sp"}


def apply(module: Module, target: Target) -> Module:
    insts = module.main.blocks[0].insts
    if not any(inst.engine == "ALL" for inst in insts):
        return module
    busy = {inst.engine for inst in insts}
    last = {inst.engine: inst.name for inst in insts if inst.opcode in DMAS}
    new: list[Inst] = []
    for inst in insts:
        if inst.engine != "ALL":
            new.append(inst)
        elif inst.opcode == "Exit":
            engines = [engine for engine in ENGINES if engine in busy]
            new += exits(inst, engines or ["SP"], last)  # a program that does nothing leaves too
        else:
            said = f"{inst.opcode} on all engines cannot be divided among them; only Exit can"
            raise NccError("NCC602", said, inst.origin.place(inst.name))
    return with_insts(module, tuple(new))


def exits(inst: Inst, engines: list[str], last: dict[str, str]) -> list[Inst]:
    made: list[Inst] = []
    for n, engine in enumerate(engines):
        name = inst.name if n == 0 else f"{inst.name}_{SUFFIX[engine]}"
        deps = dict(inst.deps)
        if engine in last:
            deps.setdefault(last[engine], "Ordered")
        own = Inst(name, inst.opcode, engine, keys=inst.keys, origin=inst.origin)
        made.append(with_deps(own, tuple(deps.items()), NAME))
    return made


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("every-engine-is-named", "every-stream-ends"),
    needs=("every-dma-has-a-queue",),
    after={"anti-deps": "an Exit touches no bytes, so nothing would order it but its own edges"},
    real="expand_all_engine",
    job="W0",
    sure="confirmed",
)
