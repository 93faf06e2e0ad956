"""A program with a kernel for two cores becomes one program a core.

Before:
    module halves gen3
      file half.json "{\\"functions\\": []}"
      func sg0000
        set x float32 (4,8) kind=ExternalInput
        set h float32 (4,8)
        set y float32 (4,8) kind=ExternalOutput
        set t float32 (4,8) memory=SB
        block Block1
          half = NKIKLIRKernel ALL h[d0,d1|d0:4|d1:8] <- x[d0,d1|d0:4|d1:8] func_args=((a,x),) func_outs=((b,h),) kernel_format=bir klir_binary=half.json lnc_size=2 nki_binary_version_identifier="1.0.0"
          load = AbstractCopy DMA t[d0,d1|d0:4|d1:8] <- h[d0,d1|d0:4|d1:8]
          save = AbstractCopy DMA y[d0,d1|d0:4|d1:8] <- t[d0,d1|d0:4|d1:8]
          exit = Exit ALL

After:
    core 0
    module halves gen3
      file half.json "{\\"functions\\": []}"
      func sg0000
        set x float32 (4,8) kind=ExternalInput
        set h float32 (4,8) kind=InternalInterface
          loc h DRAM (1,128)
        set y float32 (4,8) kind=ExternalOutput
        set t float32 (4,8) memory=SB
        block Block1
          half = NKIKLIRKernel ALL h[d0,d1|d0:4|d1:8] <- x[d0,d1|d0:4|d1:8] core=0 func_args=((a,x),) func_outs=((b,h),) kernel_format=bir klir_binary=half.json lnc_size=2 nki_binary_version_identifier="1.0.0"
          load.meet.0 = CoreBarrier Pool h:float32[[32,1],[1,32]] <- h:float32[[32,1],[1,32]] cores=(0,1)
          load = AbstractCopy DMA t[d0,d1|d0:4|d1:8] <- h[d0,d1|d0:4|d1:8]
          save = AbstractCopy DMA y[d0,d1|d0:4|d1:8] <- t[d0,d1|d0:4|d1:8]
          exit = Exit ALL
    core 1
    module halves gen3
      file half.json "{\\"functions\\": []}"
      func sg0000
        set x float32 (4,8) kind=ExternalInput
        set h float32 (4,8) kind=InternalInterface
          loc h DRAM (1,128)
        set y float32 (4,8) kind=ExternalOutput
        block Block1
          half = NKIKLIRKernel ALL h[d0,d1|d0:4|d1:8] <- x[d0,d1|d0:4|d1:8] core=1 func_args=((a,x),) func_outs=((b,h),) kernel_format=bir klir_binary=half.json lnc_size=2 nki_binary_version_identifier="1.0.0"
          load.meet.0 = CoreBarrier Pool h:float32[[32,1],[1,32]] <- h:float32[[32,1],[1,32]] cores=(0,1)
          exit = Exit ALL

Why: a logical core is two cores with one HBM. A kernel's Python has run once for each, so each gets
its own body; everything else stays on core 0. A tensor that a kernel takes or gives is one variable
of both cores, what lies on chip belongs to one. Where one core could see what another has written,
or write what another still reads, they meet at a barrier. It reads and writes all that they share,
so no pass ever moves anything across it that the other core could notice.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ncc.ir.bir import SHARED, Ap, Block, Inst, LocSet, Module, Operand, SymAp, Tile
from ncc.ir.bir_change import fresh_names
from ncc.ir.bir_opcodes import key, keyed
from ncc.ir.core import Cores
from ncc.ir.kernel_inline import with_location
from ncc.ir.lower.cores import whole
from ncc.passes.base import define
from ncc.target import Target

NAME = "lnc-split"


def apply(module: Module, target: Target) -> Module | Cores:
    """The program of each core. Chips before trn2 have no pairs: one core does the work of both."""
    insts = module.main.blocks[0].insts
    calls = [inst for inst in insts if is_shared(inst)]
    if not calls or target.level < 30:
        return module
    both = {
        of for call in calls for name in ("func_args", "func_outs") for _, of in key(call, name)
    }
    sets = tuple(of_both(of) if of.name in both else of for of in module.main.sets)
    met = meeting(insts, both, sets)
    cores = range(max(key(call, "lnc_size") for call in calls))
    return Cores(tuple(of_core(core, module, sets, met) for core in cores))


def is_shared(inst: Inst) -> bool:
    return inst.opcode == "NKIKLIRKernel" and key(inst, "lnc_size") > 1


def of_both(of: LocSet) -> LocSet:
    """A tensor of both cores. One that is only read needs nothing else."""
    if of.kind in ("ExternalInput", "Const"):
        return of
    kind = SHARED if of.kind == "Internal" else of.kind
    return with_location(attrs.evolve(of, kind=kind, origin=of.origin.by(NAME)))


def meeting(
    insts: tuple[Inst, ...], both: set[str], sets: tuple[LocSet, ...]
) -> list[tuple[Inst, bool]]:
    """The instructions with the barriers between them, and whether both cores run each.

    Work of core 0 and a call for both meet where a tensor of both is written, and so do two calls.
    """
    changed = [of for of in sets if of.name in both and of.kind not in ("ExternalInput", "Const")]
    shared = tuple(whole(of.locs[0].name, of.dtype, of.shape) for of in changed)
    watched = {of.name for of in changed}
    found: list[tuple[Inst, bool]] = []
    names = {inst.name for inst in insts}
    ahead = ""  # who has touched what is shared since the cores last met
    for inst in insts:
        now = "both" if is_shared(inst) else "one" if touched(inst) & watched else ""
        if now and ahead and "both" in (now, ahead):
            (name,) = fresh_names(names, f"{inst.name}.meet", 1)
            keys = keyed("CoreBarrier", cores=(0, 1))
            origin = inst.origin.by(NAME)
            barrier = Inst(name, "CoreBarrier", "Pool", shared, shared, keys, origin=origin)
            found.append((barrier, True))
            ahead = ""
        if now == "both" or not ahead:
            ahead = now
        found.append((inst, now == "both" or inst.opcode == "Exit"))
    return found


def touched(inst: Inst) -> set[str]:
    """The sets that an instruction, or one inside it, names."""
    found = {name for x in (*inst.ins, *inst.outs) for name in set_of(x)}
    for block in inst.blocks:
        for inner in block.insts:
            found |= touched(inner)
    return found


def set_of(x: Operand) -> Iterator[str]:
    if isinstance(x, (Tile, SymAp)):
        yield x.set
    elif isinstance(x, Ap):
        yield x.loc


def of_core(
    core: int, module: Module, sets: tuple[LocSet, ...], met: list[tuple[Inst, bool]]
) -> Module:
    """One core's program: core 0 also runs what is no kernel."""
    insts = tuple(mine(inst, core) for inst, both in met if both or core == 0)
    if core:
        named = set[str]().union(*map(touched, insts))
        sets = tuple(of for of in sets if of.name in named or of.kind.startswith("External"))
    block = Block(module.main.blocks[0].name, insts)
    main = attrs.evolve(module.main, sets=sets, blocks=(block,))
    return attrs.evolve(module, functions=(main, *module.functions[1:]))


def mine(inst: Inst, core: int) -> Inst:
    if not is_shared(inst):
        return inst
    keys = keyed(inst.opcode, inst.keys, core=core)
    return attrs.evolve(inst, keys=keys, origin=inst.origin.by(NAME))


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    after={"penguin-to-bir": "it makes the carriers, which say how many cores they are for"},
    real="lnc_splitter",
    job="W0",
    together=True,
)
