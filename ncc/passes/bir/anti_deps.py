"""Each instruction gets an edge to every earlier one whose bytes it overwrites.

Before:
    module m gen3
      func sg0000
        set a float32 (4,8) memory=SB
          loc a SB (4,32) allocated=true
        set b float32 (4,8) memory=SB
          loc b SB (4,32) addr=16 allocated=true
        block Block1
          i0 = Memset DVE a:float32[[8,4],[1,8]]
          i1 = TensorCopy Pool a:float32[[8,4],[1,4]] <- a:float32[[8,4],[1,4]]+4 after i0(F)
          i2 = Memset DVE b:float32[[8,4],[1,8]]
          i3 = Exit ALL

After:
    module m gen3
      func sg0000
        set a float32 (4,8) memory=SB
          loc a SB (4,32) allocated=true
        set b float32 (4,8) memory=SB
          loc b SB (4,32) addr=16 allocated=true
        block Block1
          i0 = Memset DVE a:float32[[8,4],[1,8]]
          i1 = TensorCopy Pool a:float32[[8,4],[1,4]] <- a:float32[[8,4],[1,4]]+4 after i0(F)
          i2 = Memset DVE b:float32[[8,4],[1,8]] after i0(O) i1(A)
          i3 = Exit ALL

Why:
    A location is used again: by the next round of a ring, or because the allocator gave two
    locations the same bytes. Then a write must come after the last reads (Anti) and after the last
    writes (Output) of what lies there. It works on bytes and not on locations, so it stands after all
    allocation; where a pair has two reasons the stronger one is kept.
"""

from __future__ import annotations

from ncc.ir.bir import Module
from ncc.ir.conflicts import clashes, each_block, with_edges
from ncc.passes.base import define
from ncc.target import Target


def apply(module: Module, target: Target) -> Module:
    found = each_block(module, clashes)
    return with_edges(module, found, kept=("Flow", "Ordered"), by="anti-deps")


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("edges-cover-conflicts",),
    after={"flow-deps": "the two kinds of edges are only complete together"},
    real="anti_dependency_analyzer",
    job="W0",
    sure="confirmed",
)
