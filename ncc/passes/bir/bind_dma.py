"""Every DMA gets the engine that triggers it, and with it the queue that moves it.

Before:
    module m gen3
      func sg0000
        set x float32 (4,8) kind=ExternalInput
          loc x DRAM (1,128) allocated=true
        set y float32 (4,8) kind=ExternalOutput
          loc y DRAM (1,128) allocated=true
        set t float32 (4,8) memory=SB
          loc t SB (4,32) allocated=true
        block Block1
          i0 = Load DMA t:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]]
          i1 = Save DMA y:float32[[8,4],[1,8]] <- t:float32[[8,4],[1,8]]
          i2 = Exit ALL

After:
    module m gen3
      queue qActivation Activation
      queue qSP SP
      func sg0000
        set x float32 (4,8) kind=ExternalInput
          loc x DRAM (1,128) allocated=true
        set y float32 (4,8) kind=ExternalOutput
          loc y DRAM (1,128) allocated=true
        set t float32 (4,8) memory=SB
          loc t SB (4,32) allocated=true
        block Block1
          i0 = Load SP t:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]] queue=qSP
          i1 = Save Activation y:float32[[8,4],[1,8]] <- t:float32[[8,4],[1,8]] queue=qActivation
          i2 = Exit ALL

Why:
    An engine triggers a DMA by a record in its own stream, and each engine has one direct queue. A
    stream is in order: a save that waits for its data would hold up the loads behind it. So what
    comes on chip is triggered by SP and what leaves it by Activation. Dependences need the stream
    and the queue of both ends, hence this comes before them.
"""

from __future__ import annotations

import attrs

from ncc.errors import NccError
from ncc.ir.bir import Ap, Inst, Module, Queue, with_insts
from ncc.ir.bir_change import with_keys
from ncc.ir.bir_loops import line
from ncc.ir.clocks import DMAS, QUEUES
from ncc.ir.core import unchanged
from ncc.ir.indirect import INDIRECT
from ncc.passes.base import define
from ncc.target import Target

NAME = "bind-dma"


def apply(module: Module, target: Target) -> Module:
    on_chip = {
        loc.name for owner in module.main.sets for loc in owner.locs if loc.type in ("SB", "PSUM")
    }
    old = line(module.main)
    insts = tuple([bind(i, on_chip, target) if i.opcode in DMAS else i for i in old])
    used = {i.engine for i in insts if i.opcode in DMAS}
    queues = tuple(Queue(QUEUES[e], e) for e in QUEUES if e in used)
    if unchanged(insts, old) and queues == module.queues:
        return module
    return attrs.evolve(with_insts(module, insts), queues=queues)


def bind(inst: Inst, on_chip: set[str], target: Target) -> Inst:
    engine = inst.engine
    if engine in ("DMA", "Unassigned"):
        leaves = not any(isinstance(out, Ap) and out.loc in on_chip for out in inst.outs)
        engine = "Activation" if leaves else "SP"
        if inst.opcode in INDIRECT:
            engine = "Pool"  # which makes the descriptors by software
    if engine not in target.dma_engines:
        allowed = ", ".join(target.dma_engines)
        said = f"{engine} cannot trigger a DMA on {target.name}; {allowed} can"
        raise NccError("NCC601", said, inst.origin.place(inst.name))
    keys = dict(inst.keys)
    if engine == inst.engine and keys.get("queue") == QUEUES[engine]:
        return inst
    return with_keys(inst, NAME, engine, queue=QUEUES[engine])


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("every-dma-has-a-queue",),
    after={"insert-spills": "what it stores and loads again moves by DMA, too"},
    real="AssignHWDGEEngine",
    job="W0",
    sure="inferred",
)
