"""The meetings of the cores are numbered, alike on both.

Before:
    core 0
    module m gen3
      func sg0000
        set y float32 (4,8) kind=ExternalOutput
          loc y DRAM (1,128) allocated=true
        block Block1
          i0 = CoreBarrier Pool y:float32[[32,1],[1,32]] <- y:float32[[32,1],[1,32]] cores=(0,1)
          i1 = CoreBarrier Pool y:float32[[32,1],[1,32]] <- y:float32[[32,1],[1,32]] cores=(0,1) after i0(O)
          i2 = Exit Pool
    core 1
    module m gen3
      func sg0000
        set y float32 (4,8) kind=ExternalOutput
          loc y DRAM (1,128) allocated=true
        block Block1
          i3 = CoreBarrier Pool y:float32[[32,1],[1,32]] <- y:float32[[32,1],[1,32]] cores=(0,1)
          i4 = CoreBarrier Pool y:float32[[32,1],[1,32]] <- y:float32[[32,1],[1,32]] cores=(0,1) after i3(O)
          i5 = Exit Pool

After:
    core 0
    module m gen3
      func sg0000
        set y float32 (4,8) kind=ExternalOutput
          loc y DRAM (1,128) allocated=true
        block Block1
          i0 = CoreBarrier Pool y:float32[[32,1],[1,32]] <- y:float32[[32,1],[1,32]] cores=(0,1) id=1
          i1 = CoreBarrier Pool y:float32[[32,1],[1,32]] <- y:float32[[32,1],[1,32]] cores=(0,1) id=2 after i0(O)
          i2 = Exit Pool
    core 1
    module m gen3
      func sg0000
        set y float32 (4,8) kind=ExternalOutput
          loc y DRAM (1,128) allocated=true
        block Block1
          i3 = CoreBarrier Pool y:float32[[32,1],[1,32]] <- y:float32[[32,1],[1,32]] cores=(0,1) id=1
          i4 = CoreBarrier Pool y:float32[[32,1],[1,32]] <- y:float32[[32,1],[1,32]] cores=(0,1) id=2 after i3(O)
          i5 = Exit Pool

Why: a core that waits at a barrier goes on when the other has come to the same one. If one core had
a barrier more, or had them in another order, both would wait for ever; that both have the same is
a law, and nothing is left to chance when each has its number. A barrier holds up the engine that it
stands on; its edges to what is shared become waits like all others.
"""

from __future__ import annotations

import attrs

from ncc.ir.bir import Block, Inst, Module
from ncc.ir.bir_opcodes import keyed
from ncc.ir.core import Cores, each
from ncc.passes.base import define
from ncc.target import Target

NAME = "lnc-barriers"


def apply(program: Module | Cores, target: Target) -> Module | Cores:
    return each(program, numbered) if isinstance(program, Cores) else program


def numbered(module: Module) -> Module:
    count = 0

    def change(inst: Inst) -> Inst:
        nonlocal count
        if inst.opcode != "CoreBarrier":
            return inst
        count += 1
        keys = keyed(inst.opcode, inst.keys, id=count)
        return attrs.evolve(inst, keys=keys, origin=inst.origin.by(NAME))

    blocks = tuple(Block(b.name, tuple(map(change, b.insts))) for b in module.main.blocks)
    if not count:
        return module
    main = attrs.evolve(module.main, blocks=blocks)
    return attrs.evolve(module, functions=(main, *module.functions[1:]))


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    needs=("every-engine-is-named",),
    after={"expand-engines": "no instruction is added behind it but helpers that count nothing"},
    real="lnc_barriercheck",
    job="W0",
    sure="confirmed",
    together=True,
)
