"""Refuse a program of which no profile of DVE has every opcode.

Before:
    module m gen3
      func sg0000
        set a float32 (4,8) memory=SB
          loc a SB (4,32) allocated=true
        block Block1
          i0 = Memset DVE a:float32[[8,4],[1,8]] constant=1065353216
          i1 = Reciprocal DVE a:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]
          i2 = Exit DVE

After:
    module m gen3
      func sg0000
        set a float32 (4,8) memory=SB
          loc a SB (4,32) allocated=true
        block Block1
          i0 = Memset DVE a:float32[[8,4],[1,8]] constant=1065353216
          i1 = Reciprocal DVE a:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]
          i2 = Exit DVE

Why: the sequencer of DVE is set up once for a program, with a list of the opcodes that it may meet.
So it is a question about all of them together, asked when no pass adds an instruction to DVE any
more. The real pass chooses among several lists and writes the choice into the container; here each
generation has one (`ncc.ir.dve_profiles`), which leaves the check.
"""

from __future__ import annotations

from ncc.errors import NccError, listed
from ncc.ir.bir import Module
from ncc.ir.bir_opcodes import OPCODES
from ncc.ir.dve_profiles import profiles
from ncc.passes.base import define
from ncc.target import Target


def apply(module: Module, target: Target) -> Module:
    insts = [inst for inst in module.main.blocks[0].insts if inst.engine == "DVE"]
    used = {inst.opcode for inst in insts}
    own = {x for x in used if "SP" not in (OPCODES[x].engines or ("SP",))}  # SP only controls
    lacking = min((own - one for one in profiles(target.level)), key=len)
    if lacking:
        first = next(inst for inst in insts if inst.opcode in lacking)
        said = f"no profile of DVE on {target} has {listed(sorted(lacking))}"
        raise NccError("NCC609", said, first.origin.place(first.name))
    return module


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    after={"expand-engines": "what stood on all engines stands on DVE by then"},
    real="lower_dve",
    job="W0",
    sure="confirmed",
)
