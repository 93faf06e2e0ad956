"""The programs of rules 5: each breaks its rule, and the replacements beside it repair it."""

from __future__ import annotations

FACTS = (
    "every-instruction-has-one-engine,"
    "no-abstract-copy-is-left,"
    "no-loop-is-left,"
    "no-matmul-has-a-flag,"
    "operands-are-bound,"
    "patterns-are-physical,"
)


def example(code: str) -> tuple[str, str]:
    """The program that breaks a rule, and the repaired one; "" where none compiles."""
    wrong, repairs = WRONG[code]
    right = wrong = wrong.replace("FACTS", FACTS.rstrip(","))
    for old, new in repairs:
        right = right.replace(old, new)
    return wrong, right if repairs else ""


WRONG: dict[str, tuple[str, tuple[tuple[str, str], ...]]] = {
    "NCC500": (
        """\
# ncc bir target=trn2 after=bir-dce facts=FACTS
module f gen3
  func sg0000
    set x float32 (4,8) kind=ExternalInput
      loc x DRAM (1,128)
    set y float32 (4,8) kind=ExternalOutput
      loc y DRAM (1,128)
    set a float32 (4,8) memory=SB
      loc a SB (4,32)
    block Block1
      i0 = Save DMA y:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]
      exit = Exit ALL
""",
        (("i0", "i0 = Load DMA a:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]]\n      i1"),),
    ),
    "NCC501": (
        """\
# ncc bir target=trn2,sbuf=128 after=bir-dce facts=FACTS
module f gen3
  func sg0000
    set x float32 (4,64) kind=ExternalInput
      loc x DRAM (1,1024)
    set y float32 (4,64) kind=ExternalOutput
      loc y DRAM (1,1024)
    set a float32 (4,64) memory=SB
      loc a SB (4,256)
    block Block1
      i0 = Load DMA a:float32[[64,4],[1,64]] <- x:float32[[64,4],[1,64]]
      i1 = Save DMA y:float32[[64,4],[1,64]] <- a:float32[[64,4],[1,64]]
      exit = Exit ALL
""",
        (("target=trn2,sbuf=128", "target=trn2"),),
    ),
    "NCC502": (
        """\
# ncc bir target=trn2,sbuf=128 after=bir-dce facts=FACTS
module f gen3
  func sg0000
    set x float32 (128,16) kind=ExternalInput
      loc x DRAM (1,8192)
    set y float32 (128,16) kind=ExternalOutput
      loc y DRAM (1,8192)
    set a float32 (128,16) memory=SB
      loc a SB (128,64)
    set b float32 (128,16) memory=SB
      loc b SB (128,64)
    set c float32 (128,16) memory=SB
      loc c SB (128,64)
    block Block1
      i0 = Load DMA a:float32[[16,128],[1,16]] <- x:float32[[16,128],[1,16]]
      i1 = Load DMA b:float32[[16,128],[1,16]] <- x:float32[[16,128],[1,16]]
      i2 = TensorTensor DVE c:float32[[16,128],[1,16]] <- a:float32[[16,128],[1,16]] b:float32[[16,128],[1,16]] op=add
      i3 = Save DMA y:float32[[16,128],[1,16]] <- c:float32[[16,128],[1,16]]
      exit = Exit ALL
""",
        (("target=trn2,sbuf=128", "target=trn2"),),
    ),
    "NCC503": (
        """\
# ncc bir target=trn2,psum=1 after=bir-dce facts=FACTS
module f gen3
  func sg0000
    set x float32 (4,8) kind=ExternalInput
      loc x DRAM (1,128)
    set y float32 (4,8) kind=ExternalOutput
      loc y DRAM (1,128)
    set a float32 (4,8) memory=SB
      loc a SB (4,32)
    set z float32 (8,8) kind=ExternalOutput
      loc z DRAM (1,256)
    set p0 float32 (8,8) memory=PSUM
      loc p0 PSUM (8,32)
    set p1 float32 (8,8) memory=PSUM
      loc p1 PSUM (8,32)
    set o float32 (8,8) memory=SB
      loc o SB (8,32)
    set o1 float32 (8,8) memory=SB
      loc o1 SB (8,32)
    block Block1
      i0 = Load DMA a:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]]
      i1 = Matmult PE p0:float32[[8,8],[1,8]] <- a:float32[[8,4],[1,8]] a:float32[[8,4],[1,8]]
      i2 = Matmult PE p1:float32[[8,8],[1,8]] <- a:float32[[8,4],[1,8]] a:float32[[8,4],[1,8]]
      i3 = Matmult PE p0:float32[[8,8],[1,8]] <- a:float32[[8,4],[1,8]] a:float32[[8,4],[1,8]] accumulate=true
      i4 = Matmult PE p1:float32[[8,8],[1,8]] <- a:float32[[8,4],[1,8]] a:float32[[8,4],[1,8]] accumulate=true
      i5 = TensorCopy DVE o:float32[[8,8],[1,8]] <- p0:float32[[8,8],[1,8]]
      i6 = TensorTensor DVE o1:float32[[8,8],[1,8]] <- o:float32[[8,8],[1,8]] p1:float32[[8,8],[1,8]] op=add
      i7 = Save DMA z:float32[[8,8],[1,8]] <- o1:float32[[8,8],[1,8]]
      i8 = Save DMA y:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]
      exit = Exit ALL
""",
        (("target=trn2,psum=1", "target=trn2"),),
    ),
    "NCC504": (
        """\
# ncc bir target=trn2 after=bir-dce facts=FACTS
module f gen3
  func sg0000
    set y float32 (4,8) kind=ExternalOutput
      loc y DRAM (1,128)
    set ps float32 (4,1024) memory=PSUM
      loc ps PSUM (4,4096)
    set a float32 (4,8) memory=SB
      loc a SB (4,32)
    block Block1
      i0 = Memset DVE ps:float32[[1024,4],[1,8]]+508
      i1 = TensorCopy DVE a:float32[[8,4],[1,8]] <- ps:float32[[1024,4],[1,8]]+508
      i2 = Save DMA y:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]
      exit = Exit ALL
""",
        (
            (
                "ps:float32[[1024,4],[1,8]]+508\n      i1 = TensorCopy DVE a:float32[[8,4],[1,8]] <- ps:float32[[1024,4],[1,8]]+508\n",
                "ps:float32[[1024,4],[1,8]]+512\n      i1 = TensorCopy DVE a:float32[[8,4],[1,8]] <- ps:float32[[1024,4],[1,8]]+512\n",
            ),
        ),
    ),
    "NCC505": (
        """\
# ncc bir target=trn2 after=bir-dce facts=FACTS
module f gen3
  func sg0000
    set x float32 (4,8) kind=ExternalInput
      loc x DRAM (1,128)
    set y float32 (4,8) kind=ExternalOutput
      loc y DRAM (1,128)
    set a float32 (128,8) memory=SB
      loc a SB (128,32)
    block Block1
      i0 = Memset DVE a:float32[[8,4],[1,8]]+40
      i1 = Save DMA y:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]+40
      exit = Exit ALL
""",
        (
            (
                "a:float32[[8,4],[1,8]]+40\n      i1 = Save DMA y:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]+40\n",
                "a:float32[[8,4],[1,8]]+256\n      i1 = Save DMA y:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]+256\n",
            ),
        ),
    ),
    "NCC510": (
        """\
# ncc bir target=trn2 after=bir-dce facts=FACTS
module f gen3
  func sg0000
    set x bfloat16 (4,8) kind=ExternalInput
      loc x DRAM (1,64)
    set y float32 (2,8) kind=ExternalOutput
      loc y DRAM (1,64)
    set a bfloat16 (4,8) memory=SB
      loc a SB (4,16)
    set w bfloat16 (4,80000) memory=SB
      loc w SB (4,160000)
    set ps float32 (2,8) memory=PSUM
      loc ps PSUM (2,32)
    set o float32 (2,8) memory=SB
      loc o SB (2,32)
    block Block1
      i0 = Load DMA a:bfloat16[[8,4],[1,8]] <- x:bfloat16[[8,4],[1,8]]
      i1 = Memset DVE w:bfloat16[[80000,4],[1,80000]]
      i2 = Matmult PE ps:float32[[8,2],[1,8]] <- a:bfloat16[[8,4],[1,8]] w:bfloat16[[80000,4],[40000,2]]
      i3 = TensorCopy DVE o:float32[[8,2],[1,8]] <- ps:float32[[8,2],[1,8]]
      i4 = Save DMA y:float32[[8,2],[1,8]] <- o:float32[[8,2],[1,8]]
      exit = Exit ALL
""",
        (("w:bfloat16[[80000,4],[40000,2]]\n", "w:bfloat16[[80000,4],[1,2]]\n"),),
    ),
    "NCC511": (
        """\
# ncc bir target=trn2 after=bir-dce facts=FACTS
module f gen3
  func sg0000
    set x float32 (4,160) kind=ExternalInput
      loc x DRAM (1,2560)
    set y float32 (4,16) kind=ExternalOutput
      loc y DRAM (1,256)
    set a float32 (4,160) memory=SB
      loc a SB (4,640)
    set b float32 (4,16) memory=SB
      loc b SB (4,64)
    block Block1
      i0 = Load DMA a:float32[[160,4],[1,160]] <- x:float32[[160,4],[1,160]]
      i1 = TensorScalarCache DVE b:float32[[16,4],[1,16]] <- a:float32[[160,4],[80,2],[30,2],[10,2],[3,2]] 1.0:float32 acc=ZeroAccumulate op0=add op1=add
      i2 = Save DMA y:float32[[16,4],[1,16]] <- b:float32[[16,4],[1,16]]
      exit = Exit ALL
""",
        (),
    ),
    "NCC512": (
        """\
# ncc bir target=trn2 after=bir-dce facts=FACTS
module f gen3
  func sg0000
    set x float32 (30,30) kind=ExternalInput
      loc x DRAM (1,3600)
    set y float32 (4,9) kind=ExternalOutput
      loc y DRAM (1,144)
    set a float32 (4,9) memory=SB
      loc a SB (4,36)
    block Block1
      i0 = Load DMA a:float32[[9,4],[1,9]] <- x:float32[[30,9],[2,4]]
      i1 = Save DMA y:float32[[9,4],[1,9]] <- a:float32[[9,4],[1,9]]
      exit = Exit ALL
""",
        (("x:float32[[30,9],[2,4]]\n", "x:float32[[30,4],[2,9]]\n"),),
    ),
    "NCC513": (
        """\
# ncc bir target=trn2 after=bir-dce facts=FACTS
module f gen3
  func sg0000
    set x bfloat16 (4,8) kind=ExternalInput
      loc x DRAM (1,64)
    set y bfloat16 (4,8) kind=ExternalOutput
      loc y DRAM (1,64)
    set a bfloat16 (4,8) memory=SB
      loc a SB (4,16)
    set ps bfloat16 (4,8) memory=PSUM
      loc ps PSUM (4,16)
    set b float16 (4,8) memory=SB
      loc b SB (4,16)
    block Block1
      i0 = Load DMA a:bfloat16[[8,4],[1,8]] <- x:bfloat16[[8,4],[1,8]]
      i1 = TensorCopy DVE ps:bfloat16[[8,4],[1,8]] <- a:bfloat16[[8,4],[1,8]]
      i2 = TensorCopy DVE b:float16[[8,4],[1,8]] <- ps:float16[[8,4],[1,8]]
      i3 = Save DMA y:bfloat16[[8,4],[1,8]] <- b:bfloat16[[8,4],[1,8]]
      exit = Exit ALL
""",
        (
            ("b float16", "b bfloat16"),
            (
                "b:float16[[8,4],[1,8]] <- ps:float16[[8,4],[1,8]]\n",
                "b:bfloat16[[8,4],[1,8]] <- ps:bfloat16[[8,4],[1,8]]\n",
            ),
        ),
    ),
    "NCC521": (
        """\
# ncc bir target=trn2 after=alloc-sbuf facts=FACTS,live-ranges-are-measured,live-tiles-are-disjoint,tiles-are-aligned
module f gen3
  func sg0000
    set x float32 (128,8) kind=ExternalInput
      loc x DRAM (1,4096)
    set y float32 (128,8) kind=ExternalOutput
      loc y DRAM (1,4096)
    set a float32 (128,8) memory=SB
      loc a SB (128,32) allocated=true live=(0,2)
    set b float32 (128,8) memory=SB
      loc b SB (128,32) addr=16 allocated=true live=(1,2)
    set c float32 (128,8) memory=SB
      loc c SB (128,32) addr=64 allocated=true live=(2,3)
    set EvalAccelReservedLoc uint8 (128,16392) memory=SB
      loc EvalAccelReservedLoc SB (128,16392) addr=212984 allocated=true pinned=true runtime_reserved=true
    block Block1
      i0 = Load DMA a:float32[[8,128],[1,8]] <- x:float32[[8,128],[1,8]]
      i1 = Load DMA b:float32[[8,128],[1,8]] <- x:float32[[8,128],[1,8]]
      i2 = TensorTensor DVE c:float32[[8,128],[1,8]] <- a:float32[[8,128],[1,8]] b:float32[[8,128],[1,8]] op=add
      i3 = Save DMA y:float32[[8,128],[1,8]] <- c:float32[[8,128],[1,8]]
      exit = Exit ALL
""",
        (("addr=16", "addr=32"),),
    ),
    "NCC522": (
        """\
# ncc bir target=trn2 after=alloc-sbuf facts=FACTS,live-ranges-are-measured,live-tiles-are-disjoint,tiles-are-aligned
module f gen3
  func sg0000
    set x float32 (128,8) kind=ExternalInput
      loc x DRAM (1,4096)
    set y float32 (128,8) kind=ExternalOutput
      loc y DRAM (1,4096)
    set a float32 (128,8) memory=SB
      loc a SB (128,32) allocated=true live=(0,2)
    set b float32 (128,8) memory=SB
      loc b SB (128,32) addr=100 allocated=true live=(1,2)
    set c float32 (128,8) memory=SB
      loc c SB (128,32) addr=64 allocated=true live=(2,3)
    set EvalAccelReservedLoc uint8 (128,16392) memory=SB
      loc EvalAccelReservedLoc SB (128,16392) addr=212984 allocated=true pinned=true runtime_reserved=true
    block Block1
      i0 = Load DMA a:float32[[8,128],[1,8]] <- x:float32[[8,128],[1,8]]
      i1 = Load DMA b:float32[[8,128],[1,8]] <- x:float32[[8,128],[1,8]]
      i2 = TensorTensor DVE c:float32[[8,128],[1,8]] <- a:float32[[8,128],[1,8]] b:float32[[8,128],[1,8]] op=add
      i3 = Save DMA y:float32[[8,128],[1,8]] <- c:float32[[8,128],[1,8]]
      exit = Exit ALL
""",
        (("addr=100", "addr=32"),),
    ),
    "NCC525": (
        """\
# ncc bir target=trn2 after=widen-psum facts=FACTS,psum-cells-are-four-bytes
module f gen3
  func sg0000
    set x bfloat16 (4,8) kind=ExternalInput
      loc x DRAM (1,64)
    set y bfloat16 (4,8) kind=ExternalOutput
      loc y DRAM (1,64)
    set a bfloat16 (4,8) memory=SB
      loc a SB (4,16)
    set b bfloat16 (4,8) memory=SB
      loc b SB (4,16)
    set ps bfloat16 (4,8) memory=PSUM
      loc ps PSUM (4,16)
    block Block1
      i0 = Load DMA a:bfloat16[[8,4],[1,8]] <- x:bfloat16[[8,4],[1,8]]
      i1 = TensorCopy DVE ps:bfloat16[[8,4],[1,8]] <- a:bfloat16[[8,4],[1,8]]
      i2 = TensorCopy DVE b:bfloat16[[8,4],[1,8]] <- ps:bfloat16[[8,4],[1,8]]
      i3 = Save DMA y:bfloat16[[8,4],[1,8]] <- b:bfloat16[[8,4],[1,8]]
      exit = Exit ALL
""",
        (
            (
                "bfloat16 (4,8) memory=PSUM\n      loc ps PSUM (4,16)\n",
                "float32 (4,8) memory=PSUM\n      loc ps PSUM (4,32)\n",
            ),
            (
                "ps:bfloat16[[8,4],[1,8]] <- a:bfloat16[[8,4],[1,8]]\n      i2 = TensorCopy DVE b:bfloat16[[8,4],[1,8]] <- ps:bfloat16[[8,4],[1,8]]\n",
                "ps:float32[[8,4],[1,8]] <- a:bfloat16[[8,4],[1,8]]\n      i2 = TensorCopy DVE b:bfloat16[[8,4],[1,8]] <- ps:float32[[8,4],[1,8]]\n",
            ),
        ),
    ),
    "NCC526": (
        """\
# ncc bir target=trn2 after=leave-ssa facts=FACTS,each-value-has-its-location
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
      exit = Exit ALL
""",
        (
            ("loc b", "loc b SB (4,32)\n    set c float32 (4,8) memory=SB\n      loc c"),
            (
                "a:float32[[8,4],[1,8]] <- b:float32[[8,4],[1,8]]\n      i3 = Save DMA y:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]\n",
                "c:float32[[8,4],[1,8]] <- b:float32[[8,4],[1,8]]\n      i3 = Save DMA y:float32[[8,4],[1,8]] <- c:float32[[8,4],[1,8]]\n",
            ),
        ),
    ),
    "NCC527": (
        """\
# ncc bir target=trn2 after=reserve-runtime facts=FACTS,psum-cells-are-four-bytes,the-runtime-has-its-region
module f gen3
  func sg0000
    set x float32 (4,8) kind=ExternalInput
      loc x DRAM (1,128)
    set y float32 (4,8) kind=ExternalOutput
      loc y DRAM (1,128)
    set a float32 (4,8) memory=SB
      loc a SB (4,32)
    set EvalAccelReservedLoc uint8 (128,16392) memory=SB
      loc EvalAccelReservedLoc SB (128,16392) allocated=true pinned=true runtime_reserved=true
    block Block1
      i0 = Load DMA a:float32[[8,4],[1,8]] <- x:float32[[8,4],[1,8]]
      i1 = Save DMA y:float32[[8,4],[1,8]] <- a:float32[[8,4],[1,8]]
      exit = Exit ALL
""",
        (("SB (128,16392)", "SB (128,16392) addr=212984"),),
    ),
}
