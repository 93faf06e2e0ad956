"""Replace each abstract copy by the load, save or engine copy that its two memories ask for.

Before:
    module cast gen3
      func sg0000
        set x bfloat16 (4,15) kind=ExternalInput
          loc x DRAM (1,120)
        set y float32 (5,12) kind=ExternalOutput
          loc y DRAM (1,240)
        set x_t bfloat16 (3,5,4) memory=SB partition_dim=1
          loc x_t_0 SB (5,8)
          loc x_t_1 SB (5,8)
          loc x_t_2 SB (5,8)
        set y_t float32 (3,5,4) memory=SB partition_dim=1
          loc y_t_0 SB (5,16)
          loc y_t_1 SB (5,16)
          loc y_t_2 SB (5,16)
        block Block1
          for.i = Loop ALL axis=(i,0,3,1)
            block block0
              turn = AbstractCopy DMA x_t(i):bfloat16[[4,5],[1,4]] <- x():bfloat16[[15,4],[1,5]]+5*i transpose=true loopnest=(i,)
              cast = TensorCopy DVE y_t(i):float32[[4,5],[1,4]] <- x_t(i):bfloat16[[4,5],[1,4]] loopnest=(i,)
              store = AbstractCopy DMA y():float32[[12,5],[1,4]]+4*i <- y_t(i):float32[[4,5],[1,4]] loopnest=(i,)
          exit = Exit ALL

After:
    module cast gen3
      func sg0000
        set x bfloat16 (4,15) kind=ExternalInput
          loc x DRAM (1,120)
        set y float32 (5,12) kind=ExternalOutput
          loc y DRAM (1,240)
        set x_t bfloat16 (3,5,4) memory=SB partition_dim=1
          loc x_t_0 SB (5,8)
          loc x_t_1 SB (5,8)
          loc x_t_2 SB (5,8)
        set y_t float32 (3,5,4) memory=SB partition_dim=1
          loc y_t_0 SB (5,16)
          loc y_t_1 SB (5,16)
          loc y_t_2 SB (5,16)
        block Block1
          for.i = Loop ALL axis=(i,0,3,1)
            block block0
              turn = DMACopy DMA x_t(i):bfloat16[[4,5],[1,1],[1,1],[1,4]] <- x():bfloat16[[15,4],[1,1],[1,1],[1,5]]+5*i mode=Transpose transpose_op=XZYW loopnest=(i,)
              cast = TensorCopy DVE y_t(i):float32[[4,5],[1,4]] <- x_t(i):bfloat16[[4,5],[1,4]] loopnest=(i,)
              store = Save DMA y():float32[[12,5],[1,4]]+4*i <- y_t(i):float32[[4,5],[1,4]] loopnest=(i,)
          exit = Exit ALL

Why: codegen only knew that data moves; which unit moves it follows from where the two ends are, and
from nothing else. No DMA reaches PSUM, so a copy between DRAM and PSUM is refused here by name: it
takes two steps through SBUF. A transposing copy is the DMA's own transpose where the machine has it
(2-byte types); elsewhere the source is walked in the destination's order, one element at a time.
"""

from __future__ import annotations

import attrs

from ncc.errors import NccError, Place
from ncc.ir.bir import Block, Function, Inst, LocSet, Module, SymAp
from ncc.ir.bir_opcodes import key, keyed
from ncc.ir.bir_patterns import SymPairs
from ncc.ir.data import size_of
from ncc.passes.base import define
from ncc.target import Target

NAME = "lower-ac"
OPCODE = {
    ("DRAM", "SB"): "Load",
    ("SB", "DRAM"): "Save",
    ("DRAM", "DRAM"): "DMACopy",
}


def four(pairs: SymPairs) -> SymPairs:
    """A matrix as the four pairs of a transposing DMA: rows, 1, 1, columns."""
    return (pairs[0], (1, 1), (1, 1), pairs[1])


def lowered(inst: Inst, sets: dict[str, LocSet], target: Target) -> Inst:
    source, result = inst.ins[0], inst.outs[0]
    if not isinstance(source, SymAp) or not isinstance(result, SymAp):
        raise NccError("NCC412", "an abstract copy has an operand that is not bound", place(inst))
    ends = sets[source.set].memory, sets[result.set].memory
    if "DRAM" in ends and "PSUM" in ends:
        raise NccError(
            "NCC412",
            f"copies {source.set} in {ends[0]} to {result.set} in {ends[1]}; no DMA reaches PSUM",
            place(inst),
            "copy through SBUF",
        )
    opcode = OPCODE.get(ends, "TensorCopy")
    if opcode != "TensorCopy" and source.dtype != result.dtype:
        raise NccError(
            "NCC413",
            f"a DMA copies {source.dtype} to {result.dtype}, and converts nothing",
            place(inst),
        )
    keys: dict[str, object] = {"dma_qos": key(inst, "dma_qos")} if opcode != "TensorCopy" else {}
    if key(inst, "transpose"):
        if target.transposing_dma and size_of(source.dtype) == 2 and ends == ("DRAM", "SB"):
            opcode = "DMACopy"
            keys |= {"mode": "Transpose", "transpose_op": "XZYW"}
            source, result = (attrs.evolve(x, ap=four(x.ap)) for x in (source, result))
        else:
            source = attrs.evolve(source, ap=(source.ap[1], source.ap[0]))
    return attrs.evolve(
        inst,
        opcode=opcode,
        ins=(source,),
        outs=(result,),
        keys=keyed(opcode, **keys),
        origin=inst.origin.by(NAME),
    )


def place(inst: Inst) -> Place:
    return inst.origin.place(inst.name, NAME)


def block(of: Block, sets: dict[str, LocSet], target: Target) -> Block:
    insts: list[Inst] = []
    for inst in of.insts:
        if inst.opcode == "AbstractCopy":
            insts.append(lowered(inst, sets, target))
        elif inst.blocks:
            inner = tuple(block(b, sets, target) for b in inst.blocks)
            insts.append(attrs.evolve(inst, blocks=inner))
        else:
            insts.append(inst)
    return Block(of.name, tuple(insts))


def apply(module: Module, target: Target) -> Module:
    functions: list[Function] = []
    for func in module.functions:
        sets = {of.name: of for of in func.sets}
        blocks = tuple(block(b, sets, target) for b in func.blocks)
        functions.append(attrs.evolve(func, blocks=blocks))
    return attrs.evolve(module, functions=tuple(functions))


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    needs=("operands-are-bound",),
    gives=("no-abstract-copy-is-left",),
    after={"finalize-insts": "an engine copy keeps the engine that was chosen for it"},
    real="lower_ac",
    job="W0",
    sure="confirmed",
)
