"""Open each carrier of a kernel: its file becomes a function, the carrier a call of it.

Before:
    module copy gen3
      file copy.klir hex:4e43432d4b4c49520d00000004000000dba6e7f61204636f7079017807666c6f617433320a7368617265645f68626d05696e707574000179066f75747075740174047362756608696e7465726e616c02693008646d615f636f7079036473740373726307756e6b6e6f776e07636f70792e70790269310701100500070311050105020702030803100503050400001b0505030003000300050511050605020702030803100503050700001b0505030003000300050511050805020702030803100509050a07020300038001001b0505030003000300050507010501070115050605020702070203100308070203020310030007000700070212050b050c07020702050d150508050207020702031003080702030203100300070007000702050e150501050207020702031003080702030203100300070007000700050f07001b0510030a0300120511050c07020702050d150506050207020702031003080702030203100300070007000702050e150508050207020702031003080702030203100300070007000700050f07001b0510030c030003001b050503000300
      func sg0000
        set x float32 (4,8) kind=ExternalInput
        set y float32 (4,8) kind=ExternalOutput
        block Block1
          copy = NKIKLIRKernel ALL y[d0,d1|d0:4|d1:8] <- x[d0,d1|d0:4|d1:8] func_args=((x,x),) func_outs=((y,y),) kernel_format=klir klir_binary=copy.klir nki_binary_version_identifier="1.0.0"  # copy.py:3
          exit = Exit ALL

After:
    module copy gen3
      func sg0000
        set x float32 (4,8) kind=ExternalInput
        set y float32 (4,8) kind=ExternalOutput
        block Block1
          copy = NKIKernel ALL y[d0,d1|d0:4|d1:8] <- x[d0,d1|d0:4|d1:8] func=copy func_args=((x,x),) func_outs=((y,y),) kernel_source_val=1 sb_buf_shape=(128,96)  # copy.py:3
          exit = Exit ALL
      func copy attributes=(nki,)
        set copy:x float32 (4,8) kind=ExternalInput
          loc copy:x DRAM (1,128)
        set copy:y float32 (4,8) kind=ExternalOutput
          loc copy:y DRAM (1,128)
        set copy:t float32 (4,8) memory=SB
          loc copy:t SB (4,32) addr=64 allocated=true pinned=true
        block Block1
          copy:i0 = Load DMA copy:t:float32[[8,4],[1,8]] <- copy:x:float32[[32,1],[1,32]]  # copy.py:5
          copy:i1 = Save DMA copy:y:float32[[32,1],[1,32]] <- copy:t:float32[[8,4],[1,8]]  # copy.py:6
          copy:exit = Exit ALL

Why: a kernel arrives as a file, so that whoever calls it needs to know nothing of it. Here the file
becomes a function of the module, in either of its two forms: BIR that was made where the kernel was
traced, or the kernel itself, which is lowered now. What stays in the caller is a call site that
binds parameters by name. Nothing is placed: an address is there only where the kernel chose one.
"""

from __future__ import annotations

import attrs

from ncc.ir.bir import Block, Function, Inst, Module
from ncc.ir.kernel_inline import materialised, refused
from ncc.passes.base import define
from ncc.target import Target

LEFT = ("CustomOp", "BIRKernel")


def apply(module: Module, target: Target) -> Module:
    insts = [inst for block in module.main.blocks for inst in block.insts]
    for inst in insts:
        if inst.opcode in LEFT and ("is_builtin", True) not in inst.keys:
            raise refused(inst)
    if all(inst.opcode != "NKIKLIRKernel" for inst in insts):
        return module
    taken = {func.name for func in module.functions}
    functions: list[Function] = []
    blocks: list[Block] = []
    for block in module.main.blocks:
        found: list[Inst] = []
        for inst in block.insts:
            if inst.opcode == "NKIKLIRKernel":
                made, inst = materialised(inst, module, target, taken)
                functions += made
            found.append(inst)
        blocks.append(Block(block.name, tuple(found)))
    main = attrs.evolve(module.main, blocks=tuple(blocks))
    return attrs.evolve(module, functions=(main, *module.functions[1:], *functions), files=())


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    gives=("no-carrier-is-left",),
    after={"penguin-to-bir": "it opens that pass's carriers"},
    real="TranslateNKIASTToBIR",
    job="W0",
    sure="confirmed",
)
