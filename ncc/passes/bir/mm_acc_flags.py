"""Each matmul is told whether it starts, continues or ends an accumulation group in PSUM.

Before:
    module m gen3
      func sg0000
        set x bfloat16 (4,4) memory=SB
          loc x SB (4,8) allocated=true
        set w bfloat16 (4,8) memory=SB
          loc w SB (4,16) addr=8 allocated=true
        set p float32 (8,4) memory=PSUM
          loc p PSUM (8,16) allocated=true
        set q float32 (8,4) memory=PSUM
          loc q PSUM (8,16) addr=16 allocated=true
        set a float32 (8,4) memory=SB
          loc a SB (8,16) addr=32 allocated=true
        set b float32 (8,4) memory=SB
          loc b SB (8,16) addr=48 allocated=true
        block Block1
          i0 = Matmult PE p:float32[[4,8],[1,4]] <- x:bfloat16[[4,4],[1,4]] w:bfloat16[[8,4],[1,8]]
          i1 = Matmult PE q:float32[[4,8],[1,4]] <- x:bfloat16[[4,4],[1,4]] w:bfloat16[[8,4],[1,8]]
          i2 = Matmult PE p:float32[[4,8],[1,4]] <- x:bfloat16[[4,4],[1,4]] w:bfloat16[[8,4],[1,8]] accumulate=true
          i3 = TensorCopy DVE a:float32[[4,8],[1,4]] <- p:float32[[4,8],[1,4]]
          i4 = TensorCopy DVE b:float32[[4,8],[1,4]] <- q:float32[[4,8],[1,4]]
          i5 = Exit ALL

After:
    module m gen3
      func sg0000
        set x bfloat16 (4,4) memory=SB
          loc x SB (4,8) allocated=true
        set w bfloat16 (4,8) memory=SB
          loc w SB (4,16) addr=8 allocated=true
        set p float32 (8,4) memory=PSUM
          loc p PSUM (8,16) allocated=true
        set q float32 (8,4) memory=PSUM
          loc q PSUM (8,16) addr=16 allocated=true
        set a float32 (8,4) memory=SB
          loc a SB (8,16) addr=32 allocated=true
        set b float32 (8,4) memory=SB
          loc b SB (8,16) addr=48 allocated=true
        block Block1
          i0 = Matmult PE p:float32[[4,8],[1,4]] <- x:bfloat16[[4,4],[1,4]] w:bfloat16[[8,4],[1,8]] accumulation_flag=1
          i1 = Matmult PE q:float32[[4,8],[1,4]] <- x:bfloat16[[4,4],[1,4]] w:bfloat16[[8,4],[1,8]] accumulation_flag=6
          i2 = Matmult PE p:float32[[4,8],[1,4]] <- x:bfloat16[[4,4],[1,4]] w:bfloat16[[8,4],[1,8]] accumulation_flag=6
          i3 = TensorCopy DVE a:float32[[4,8],[1,4]] <- p:float32[[4,8],[1,4]]
          i4 = TensorCopy DVE b:float32[[4,8],[1,4]] <- q:float32[[4,8],[1,4]]
          i5 = Exit ALL

Why:
    The PE array only adds. START makes it zero first, and what it zeroes is not the destination but
    the whole bank, on the partitions of the column group. So the first matmul of a group gets START
    only where nothing else is alive in that window. Two groups that share a bank still work: the
    second begins on the zeros that the first one's START left, and only adds. STOP closes a group,
    so that it may be read. A PE transpose on trn2 copies, and touches its destination only.
"""

from __future__ import annotations

from ncc.ir.bir import Inst, Module, with_insts
from ncc.ir.bir_change import with_keys
from ncc.ir.bir_keys import START, STOP
from ncc.ir.bir_loops import crossing, line
from ncc.ir.core import unchanged
from ncc.ir.footprints import is_copying_transpose
from ncc.ir.psum_groups import Groups
from ncc.ir.psum_zeros import Zeros
from ncc.passes.base import define
from ncc.target import Target

NAME = "mm-acc-flags"


def apply(module: Module, target: Target) -> Module:
    new: list[Inst] = []
    for number, block in enumerate(module.main.blocks):
        new += flagged(module, block.insts, crossing(module.main, number, "PSUM"))
    return module if unchanged(new, line(module.main)) else with_insts(module, tuple(new))


def flagged(
    module: Module, insts: tuple[Inst, ...], crossing: frozenset[str] = frozenset()
) -> list[Inst]:
    """The instructions of one block; `crossing` are the locations that hold sums at its borders."""
    groups = Groups(module, insts, crossing)
    flags = Zeros(insts).flags(groups)
    new = list(insts)
    for n, inst in enumerate(insts):
        if inst.opcode == "Matmult":
            copies = is_copying_transpose(inst, groups.footprints.gen)
            flag = START | STOP if copies else flags[n]
            new[n] = with_keys(inst, NAME, accumulation_flag=flag, accumulate=None)
    return new


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("accumulation-flags-are-set",),
    ends=("edges-cover-conflicts", "no-matmul-has-a-flag"),
    after={
        "alloc-psum": "START zeroes a bank: what else lies there is known only now",
        "pre-sched": "the flags depend on the order of the matmuls",
    },
    real="legalize_mm_accumulation_groups",
    job="W0",
    sure="confirmed",
)
