"""Store the tiles that found no place to DRAM, and load them again before each use.

Before:
    # ncc bir target=trn2,sbuf=96 after=alloc-sbuf facts=live-ranges-are-measured,live-tiles-are-disjoint,tiles-are-aligned
    module f gen3
      func sg0000
        set x float32 (128,8) kind=ExternalInput
          loc x DRAM (1,4096)
        set w float32 (128,8) kind=ExternalInput
          loc w DRAM (1,4096)
        set y float32 (128,8) kind=ExternalOutput
          loc y DRAM (1,4096)
        set z float32 (128,8) kind=ExternalOutput
          loc z DRAM (1,4096)
        set a float32 (128,8) memory=SB
          loc a SB (128,32) live=(0,5)
        set b float32 (128,8) memory=SB
          loc b SB (128,32) addr=64 allocated=true live=(1,3)
        set c float32 (128,8) memory=SB
          loc c SB (128,32) allocated=true live=(2,3)
        set d float32 (128,8) memory=SB
          loc d SB (128,32) addr=32 allocated=true live=(3,4)
        block Block1
          i0 = Memset DVE a:float32[[8,128],[1,8]] constant=3
          i1 = Load DMA b:float32[[8,128],[1,8]] <- x:float32[[8,128],[1,8]]
          i2 = Load DMA c:float32[[8,128],[1,8]] <- w:float32[[8,128],[1,8]]
          i3 = TensorTensor DVE d:float32[[8,128],[1,8]] <- b:float32[[8,128],[1,8]] c:float32[[8,128],[1,8]] op=add
          i4 = Save DMA z:float32[[8,128],[1,8]] <- d:float32[[8,128],[1,8]]
          i5 = Save DMA y:float32[[8,128],[1,8]] <- a:float32[[8,128],[1,8]]

After:
    module f gen3
      func sg0000
        set x float32 (128,8) kind=ExternalInput
          loc x DRAM (1,4096)
        set w float32 (128,8) kind=ExternalInput
          loc w DRAM (1,4096)
        set y float32 (128,8) kind=ExternalOutput
          loc y DRAM (1,4096)
        set z float32 (128,8) kind=ExternalOutput
          loc z DRAM (1,4096)
        set a float32 (128,8) memory=SB
          loc a SB (128,32) allocated=true live=(0,1)
        set b float32 (128,8) memory=SB
          loc b SB (128,32) addr=64 allocated=true live=(2,4)
        set c float32 (128,8) memory=SB
          loc c SB (128,32) allocated=true live=(3,4)
        set d float32 (128,8) memory=SB
          loc d SB (128,32) addr=32 allocated=true live=(4,5)
        set a_Home float32 (128,8)
          loc a_Home DRAM (1,4096) live=(1,6)
        set a_Reload float32 (128,8) memory=SB
          loc a_Reload SB (128,32) allocated=true live=(6,7)
        block Block1
          i0 = Memset DVE a:float32[[8,128],[1,8]] constant=3
          i0.spill = Save DMA a_Home:float32[[1,1],[1,1024]] <- a:float32[[8,128],[1,8]]
          i1 = Load DMA b:float32[[8,128],[1,8]] <- x:float32[[8,128],[1,8]]
          i2 = Load DMA c:float32[[8,128],[1,8]] <- w:float32[[8,128],[1,8]]
          i3 = TensorTensor DVE d:float32[[8,128],[1,8]] <- b:float32[[8,128],[1,8]] c:float32[[8,128],[1,8]] op=add
          i4 = Save DMA z:float32[[8,128],[1,8]] <- d:float32[[8,128],[1,8]]
          i5.reload = Load DMA a_Reload:float32[[8,128],[1,8]] <- a_Home:float32[[1,1],[1,1024]]
          i5 = Save DMA y:float32[[8,128],[1,8]] <- a_Reload:float32[[8,128],[1,8]]

Why: a tile that is needed early and late, and not in between, holds bytes that others could use.
Its value goes home to DRAM, and each group of uses loads a short-lived copy. A value that came from
an input needs no home: it is loaded again from there. Then all is placed anew, until every tile
has a place. Double buffers are given up last. What one instruction needs at one moment cannot be
spilled; where that does not fit, the program is refused.
"""

from __future__ import annotations

from ncc.errors import NccError
from ncc.ir.bir import Module, with_insts, with_sets
from ncc.ir.bir_loops import line
from ncc.ir.colouring import INFINITE
from ncc.ir.intervals import measured
from ncc.ir.redefinitions import without_rings
from ncc.ir.sbuf_rectangles import allocated, placed, rectangles, too_much
from ncc.ir.spilling import Spiller
from ncc.passes.base import define
from ncc.target import Target

ME = "insert-spills"
MOST_RELOADS = 65536


def apply(module: Module, target: Target) -> Module:
    owned = [x for s in module.main.sets if s.memory == "SB" for x in s.locs]
    out = [x.name for x in owned if x.live and not x.allocated]
    if not out:
        return module
    spiller = Spiller(module, ME)
    while True:
        nodes = rectangles(module, target, spiller.short, again=True)
        found = allocated(nodes, target)
        if not found.unplaced:
            sets = placed(module.main.sets, found)
            return with_sets(module, sets)
        worth = [n.name for n in nodes if n.name in found.unplaced and n.cost < INFINITE]
        insts = line(module.main)
        if worth:
            module = rewritten(module, spiller, worth)
        elif plain := unrung(module):
            module = plain
        else:
            stuck = [n for n in nodes if n.cost == INFINITE]
            raise too_much(module, stuck, found.unplaced[0], spiller.roots, target)
        if spiller.reloads > MOST_RELOADS:
            said = f"{spiller.reloads} reloads, more than {MOST_RELOADS}"
            raise NccError("NCC502", said, insts[0].origin.place("", ME), "make the tiles smaller")


def rewritten(module: Module, spiller: Spiller, names: list[str]) -> Module:
    """The module with these tiles spilled, and its live ranges measured again."""
    func = module.main
    sets, insts = spiller.spill(sorted(names), func)
    return measured(with_insts(module, insts, sets=sets))


def unrung(module: Module) -> Module | None:
    """The module without its SBUF rings, whose values are then tiles like any other."""
    func = module.main
    rings = {x.name for x in func.sets if x.ring and x.memory == "SB"}
    found = without_rings(func, rings, ME) if rings else None
    return measured(with_insts(module, found[1], sets=found[0])) if found else None


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    needs=("live-ranges-are-measured",),
    gives=("every-tile-has-a-place",),
    after={"alloc-sbuf": "only what found no place is spilled"},
    real="SBAllocator",
    job="W0",
    sure="confirmed",
)
