"""Each instruction gets an edge to every earlier one that wrote bytes which it reads.

Before:
    module m gen3
      func sg0000
        set a float32 (4,8) memory=SB
          loc a SB (4,32) allocated=true
        set b float32 (4,8) memory=SB
          loc b SB (4,32) addr=32 allocated=true
        block Block1
          i0 = Memset DVE a:float32[[8,4],[1,8]]
          i1 = Memset DVE a:float32[[8,4],[1,4]]+4
          i2 = TensorCopy Pool b:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]
          i3 = Memset DVE a:float32[[8,4],[1,8]]
          i4 = TensorCopy Pool b:float32[[8,4],[1,4]] <- a:float32[[8,4],[1,4]]
          i5 = Exit ALL

After:
    module m gen3
      func sg0000
        set a float32 (4,8) memory=SB
          loc a SB (4,32) allocated=true
        set b float32 (4,8) memory=SB
          loc b SB (4,32) addr=32 allocated=true
        block Block1
          i0 = Memset DVE a:float32[[8,4],[1,8]]
          i1 = Memset DVE a:float32[[8,4],[1,4]]+4
          i2 = TensorCopy Pool b:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]] after i0(F) i1(F)
          i3 = Memset DVE a:float32[[8,4],[1,8]]
          i4 = TensorCopy Pool b:float32[[8,4],[1,4]] <- a:float32[[8,4],[1,4]] after i3(F)
          i5 = Exit ALL

Why:
    Engines run on their own, so what a program's order says must become edges. A read depends on
    the writes that reach it: those that no later write covers. A matmul without START reads its
    destination, because it adds to it; a START writes all that it zeroes, not only its destination.
    Edges from an earlier run are made anew, since the flags change what a matmul touches; an Ordered
    edge is somebody's wish and stays.
"""

from __future__ import annotations

from ncc.ir.bir import Module
from ncc.ir.conflicts import each_block, flows, with_edges
from ncc.passes.base import define
from ncc.target import Target


def apply(module: Module, target: Target) -> Module:
    return with_edges(module, each_block(module, flows), kept=("Ordered",), by="flow-deps")


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    ends=("edges-cover-conflicts",),
    after={"bind-dma": "an edge is kept by the stream or the queue of its ends"},
    real="build_fdeps",
    job="W0",
    sure="confirmed",
)
