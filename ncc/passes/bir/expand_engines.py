"""What all engines do becomes one instruction for each engine that has something to do.

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
    There is no stream called ALL: a record stands in one engine's stream. What steers a loop has a
    copy on each engine, but nobody computes a register that it never reads. Each stream that is not
    empty ends with an Exit of its own, and an engine may only leave when the DMAs that it triggered
    are complete; the Ordered edge from the last one on its queue says so.
"""

from __future__ import annotations

from collections.abc import Sequence

from ncc.errors import NccError
from ncc.ir.bir import Inst, Module, Reg, with_insts
from ncc.ir.bir_change import with_deps
from ncc.ir.bir_loops import is_terminator, line
from ncc.ir.bir_opcodes import keyed
from ncc.ir.clocks import DMAS, ENGINES
from ncc.ir.locations import fresh
from ncc.passes.base import define
from ncc.target import Target

NAME = "expand-engines"
MEETING = ("Exit", "AllEngineBarrier")  # where an engine has done with its DMAs
EACH = ("AllEngineBarrier", "RegisterMove", "RegisterAlu", "TensorLoad")  # and terminators
SUFFIX = {"PE": "pe", "Activation": "act", "Pool": "pool", "DVE": "dve", "SP": "sp"}


def apply(module: Module, target: Target) -> Module:
    insts = line(module.main)
    if not any(inst.engine == "ALL" for inst in insts):
        return module
    busy = {inst.engine for inst in insts}
    # a program that does nothing leaves too
    engines = tuple(engine for engine in ENGINES if engine in busy) or ("SP",)
    taken = {inst.name for inst in insts}
    wanted = {engine: registers_of(engine, insts) for engine in engines}
    copies: dict[str, tuple[str, ...]] = {}
    new: list[Inst] = []
    for block in module.main.blocks:
        last = {inst.engine: inst.name for inst in block.insts if inst.opcode in DMAS}
        for inst in block.insts:
            if inst.engine != "ALL":
                new.append(after_all(inst, copies))
            elif inst.opcode in EACH or is_terminator(inst):
                mine = tuple(e for e in engines if needs(inst, wanted[e]))
                made = divided(inst, mine, last, taken)
                copies[inst.name] = tuple(x.name for x in made)
                new += [after_all(x, copies) for x in made]
            else:
                said = f"{inst.opcode} on all engines cannot be divided among them"
                raise NccError("NCC602", said, inst.origin.place(inst.name))
    return with_insts(module, tuple(new))


def registers_of(engine: str, insts: Sequence[Inst]) -> set[str]:
    """The registers that an engine reads in the end: to branch, to store, or for another one."""
    mine = [inst for inst in insts if inst.engine in (engine, "ALL")]
    found: set[str] = set()
    known = -1
    while known < len(found):
        known = len(found)
        for inst in mine:
            if inst.engine == engine or needs(inst, found):
                found |= {x.name for x in inst.ins if isinstance(x, Reg)}
    return found


def needs(inst: Inst, wanted: set[str]) -> bool:
    """Whether an engine that reads these registers has to do what stands on all engines."""
    results = [x.name for x in inst.outs if isinstance(x, Reg)]
    return not results or any(name in wanted for name in results)


def divided(
    inst: Inst, engines: tuple[str, ...], last: dict[str, str], taken: set[str]
) -> list[Inst]:
    """One instruction for each engine. Who leaves or meets has waited for its own DMAs."""
    made: list[Inst] = []
    keys = inst.keys
    if inst.opcode == "AllEngineBarrier":
        keys = keyed(inst.opcode, inst.keys, engines=engines)
    for n, engine in enumerate(engines):
        name = inst.name if n == 0 else fresh(f"{inst.name}_{SUFFIX[engine]}", taken)
        deps = dict(inst.deps)
        if engine in last and inst.opcode in MEETING:
            deps.setdefault(last[engine], "Ordered")
        own = Inst(name, inst.opcode, engine, inst.ins, inst.outs, keys, origin=inst.origin)
        made.append(with_deps(own, tuple(deps.items()), NAME))
    return made


def after_all(inst: Inst, copies: dict[str, tuple[str, ...]]) -> Inst:
    """An edge from an instruction on all engines is one from each of its copies."""
    if all(copies.get(name, (name,)) == (name,) for name, _ in inst.deps):
        return inst
    deps = [(copy, kind) for name, kind in inst.deps for copy in copies.get(name, (name,))]
    return with_deps(inst, tuple(deps), NAME)


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
