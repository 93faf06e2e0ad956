"""The Activation engine loads the table set of a function before the function is used.

Before:
    module m gen3
      func sg0000
        set a float32 (4,8) memory=SB
          loc a SB (4,32) allocated=true
        block Block1
          i0 = Activation Activation a:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]] func=Relu
          i1 = Activation Activation a:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]] func=Exp
          i2 = Activation Activation a:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]] func=Ln
          i3 = Activation Activation a:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]] func=Sqrt
          i4 = Exit Activation

After:
    module m gen3
      func sg0000
        set a float32 (4,8) memory=SB
          loc a SB (4,32) allocated=true
        block Block1
          i0 = Activation Activation a:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]] func=Relu
          i1.0 = LoadActFuncSet Activation act_func_set_id=6
          i1 = Activation Activation a:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]] func=Exp
          i2 = Activation Activation a:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]] func=Ln
          i3.0 = LoadActFuncSet Activation act_func_set_id=3
          i3 = Activation Activation a:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]] func=Sqrt
          i4 = Exit Activation

Why:
    Functions such as exp are evaluated from tables, and one set of tables is resident at a time;
    others, such as relu, are wired in. Going along the stream, a run of functions grows as long as
    one set holds all of them: that is the least number of loads on a straight line. A load stands
    right before the first function that needs it. It comes after the waits are counted, so it
    counts nowhere and waits for nothing.
"""

from __future__ import annotations

from ncc.errors import NccError
from ncc.ir.act_tables import SETS, WIRED, sets_with
from ncc.ir.bir import Inst, Module, with_insts
from ncc.ir.bir_change import fresh_names
from ncc.ir.bir_loops import line
from ncc.ir.footprints import key_of
from ncc.passes.base import define
from ncc.target import Target

NAME = "load-act-tables"
NONE: frozenset[str] = frozenset()


def apply(module: Module, target: Target) -> Module:
    insts, loads = line(module.main), dict[int, int]()
    start = 0
    for block in module.main.blocks:  # which table is resident is known inside a block
        loads |= {at + start: table for at, table in plan(block.insts).items()}
        start += len(block.insts)
    if not loads:
        return module
    taken = {inst.name for inst in insts}
    new: list[Inst] = []
    for n, inst in enumerate(insts):
        if n in loads:
            (name,) = fresh_names(taken, inst.name, 1)
            keys = (("act_func_set_id", loads[n]),) if loads[n] else ()
            origin = inst.origin.by(NAME)
            new.append(Inst(name, "LoadActFuncSet", "Activation", keys=keys, origin=origin))
        new.append(inst)
    return with_insts(module, tuple(new))


def plan(insts: tuple[Inst, ...]) -> dict[int, int]:
    """Before which instruction which set is loaded."""
    loads: dict[int, int] = {}
    run = NONE
    first, resident = -1, -1
    for n, inst in enumerate(insts):
        if inst.opcode == "LoadActFuncSet":
            run, resident = NONE, int(key_of(inst, "act_func_set_id", 0))
        if inst.opcode != "Activation":
            continue
        func = str(key_of(inst, "func", ""))
        if func in WIRED or (not run and resident >= 0 and func in SETS[resident]):
            continue
        if not sets_with(frozenset((func,))):
            said = f"no table set holds {func}"
            raise NccError("NCC605", said, inst.origin.place(inst.name))
        longer = run | {func}
        if not run or not sets_with(longer):
            first, longer = n, frozenset((func,))
        run = longer
        loads[first] = sets_with(run)[0]
        resident = -1
    return loads


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("functions-have-tables",),
    after={"alloc-sems": "a load has no update, so nothing may count it"},
    real="lower_act",
    job="W0",
    sure="confirmed",
)
