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

from ncc.ir.bir import Module, with_insts
from ncc.ir.bir_loops import line
from ncc.ir.redefinitions import parted, versions
from ncc.passes.base import define
from ncc.target import Target


def apply(module: Module, target: Target) -> Module:
    func = module.main
    found = versions(func)
    if not found:
        return module
    sets, insts = parted(func.sets, line(func), found, "leave-ssa")
    return with_insts(module, insts, sets=sets)


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
