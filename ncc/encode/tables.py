"""One row per opcode, one layout per struct family: all that is known about the bytes of a bundle.

Encoder, decoder, listing, checks and machine read these rows. How a `Bundle` holds a field:

kind                    wire                         value in `Bundle.fields`       left out if
----------------------  ---------------------------  -----------------------------  -----------
u8 u16 u32 i32 i64 u64  a number                     int                            0
dtype alu func acc ...  a code of `ncc.encode.codes` int, the code                  0
lo, hi                  a nibble that holds a dtype  int, the wire tag              0
imm                     32 bits: fp32, raw, pointer  int, the bits: NaNs survive    0
T1D T2D T3D T4D         address, steps, nums         At(space, partition, byte,     never
                                                     dims); trailing (1, 1) pairs
                                                     of dims are left out
A4                      address                      At without dims                never
D4D                     base, steps, nums            (base, dims)                   never
A8                      DMA address                  Dram(var, byte), or At in sb;  never
                                                     another mode: int, 64 bits
steps                   two i32, bytes               (step0, step1)                 (0, 0)
nums                    two u16                      (num0, num1)                   (1, 1)
size                    u16, 0 is 65536              int, 1..65536                  never
name32, name36          text and NULs                str                            ""
bytesN                  N bytes                      bytes                          all zero

`At.space` is `sb` or `psum`; an address that is neither (a register form, an index list, a hole in
the map) has space `raw`, partition 0 and the 32-bit word as `byte`. `Bundle.fields` are sorted by
name. The fields' names are in `ncc.encode.layouts`; the ones that programs of dots meet:

    LoadStationary  src in_dtype fp32_mode transpose_mode num_active_rows num_active_cols
                    row_grp col_grp xbus_sel
    Matmul          moving dst psum_flags out_dtype psum_zero_region, and LoadStationary's others
    Activate        src dst in_dtype bias_dtype out_dtype nchan act_func scale scale_src bias
                    bias_src_n imm imm_src accumulator_cmd
    TensorTensor    src0 src1 dst src0_dtype src1_dtype out_dtype op nchan
    TensorScalar    src dst in_dtype out_dtype nchan op0 op1 imm0 imm1 imm0_src imm1_src reverse
    Copy, Cast      src dst in_dtype out_dtype nchan (Reciprocal, StreamTranspose likewise)
    TensorReduce    the same, and op op_dim negated
    Memset          dst out_dtype nchan count set_value
    DmaDirect2d     src src_step src_num src_size src_dtype, dst likewise, dge_op semaphore
                    sem_increment qos
    Extension       tile_src_row_step tile_src_rows tile_src_cols
    EventSemaphore  wait2_mode wait2_idx wait2_value update2_mode update2_idx update2_value
    ActivationTableLoad  table_set
    Exit            nothing
"""

from __future__ import annotations

import re

import attrs

from ncc.encode.layouts import LAYOUTS


@attrs.frozen
class Field:
    """A field of a layout: `at` and `width` in bytes."""

    name: str
    at: int
    kind: str
    width: int


@attrs.frozen
class Row:
    """An opcode: its name in listings, its layout, who executes it, since when.

    `fixed` is a byte that belongs to the opcode: Exit and LibraryReload share DF and differ in it.
    """

    mnemonic: str
    opcode: int
    struct: str
    engines: tuple[str, ...]  # streams that may hold it
    gens: tuple[int, ...]  # generations of records that have it
    fields: tuple[Field, ...]
    fixed: tuple[int, int] | None = None

    @property
    def known(self) -> bool:
        """Whether the layout is known, so that fields can be told apart."""
        return self.struct != "RAW"


WIDTH = {
    "u16": 2,
    "u32": 4,
    "i32": 4,
    "i64": 8,
    "u64": 8,
    "imm": 4,
    "T1D": 8,
    "T2D": 12,
    "T3D": 16,
    "T4D": 20,
    "A4": 4,
    "D4D": 20,
    "A8": 8,
    "steps": 8,
    "nums": 4,
    "size": 2,
}  # every other kind without digits is one byte


def width(kind: str) -> int:
    digits = re.fullmatch(r"(?:name|bytes)(\d+)", kind)
    return int(digits[1]) if digits else WIDTH.get(kind, 1)


def layout(name: str) -> tuple[Field, ...]:
    """The fields of a struct family, in the order of their bytes."""
    words = LAYOUTS[name].split()
    return tuple(
        Field(field, int(at, 16), kind, width(kind))
        for at, kind, field in zip(words[::3], words[1::3], words[2::3], strict=True)
    )


# opcode, mnemonic, struct, streams, generations. Streams: V is DVE, G is Pool (GPSIMD), A is
# Activation, P is PE, * is every stream. Generation 4 has no records of its own here.
OPCODES = """
01 LoadStationary S3_LW P 23            02 Matmul S3D3_MM P 23
03 PeRegWrite RAW P 23                  05 WeightShift RAW P 23
06 LdTags S3_LT P 3                     07 MatmulSparse S4D3_MM P 3
21 Activate S3D3_AC A 23                22 ActivateQuantize S3D3_AQ A 23
23 ActivationTableLoad TABLE A 23       24 ActivationReadAccumulator D1_RD A 23
41 TensorTensor S3S3D3_TT VG 23         51 TensorTensorBitvec S3S3D3_TT VG 23
42 TensorReduce S4D4_TR VG 23           52 TensorReduceBitvec S4D4_TR VG 23
43 TensorScalar S3D3_TS VG 23           53 TensorScalarBitvec S3D3_TS VG 23
44 TensorScalarPtr RAW VG 23            54 TensorScalarPtrBitvec RAW VG 23
45 Pool S4D4_PL GV 23                   46 Copy S4D4_TR VGA 23
47 Cast S4D4_TR VGA 23                  48 Reciprocal S4D4_TR VG 23
49 Memset D4_MR VG 23                   4A RegLoad RAW VG 23
4B RegStore D4_MR VG 23                 4C RegShuffle RAW VG 23
4D Rng D4_MR VG 23                      4E TensorCumulative S4D4_TR V 23
5E TensorCumulativeBitvec S4D4_TR V 23  4F TensorScalarPtrMulti RAW VG 23
5F TensorScalarPtrMultiBitvec RAW VG 23 58 MaxPoolSelect S4D4_PL V 23
60 BatchNormStats S4D2_BN V 23          61 BatchNormStats2 S4D2_BN V 23
62 BatchNormAggregate S4D2_BN V 23      63 BatchNormGradAccumulate RAW V 23
94 BatchNormGradAccumulate2 RAW V 23    64 BatchNormParamLoad RAW V 23
8E BatchNormParamLoad2 RAW V 23         65 BatchNormBackProp S3S3D3_TT V 23
66 LoadParameterRam RAW G 23            67 PoolBufferLoad BUFFER G 23
68 Gather CORES G 23                      69 LoadMaskSelect MASK V 23
6A StreamShuffle S4D4_TR V 23           6B StreamTranspose S4D4_TR V 23
6C Max8 S4D2_BN V 23                    6D MatchValueLoad MATCH V 23
6E FindIndex8 S4D2_BN V 23              6F MatchReplace8 S4D4_MR V 23
70 TensorScalarImmLd RAW VG 23          71 TensorScalarImmLdBitvec RAW VG 23
72 CopyPredicated S3S3D3_TT V 23        73 RoiAlign RAW G 23
74 TensorScalarAddr RAW V 2             76 Rand RAW VG 23
77 RandGetState STATE VG 23               78 RandSetState BUFFER VG 23
79 EmbeddingUpdate RAW G 23             7A LoadPoolArgument RAW G 23
7B TensorDequantize RAW G 23            7C CrossLaneReduce S4D4_CR G 23
7D CrossLaneReduceBitvec S4D4_CR G 23   7E Iota D4_IOTA G 23
7F Dropout DROPOUT VG 23                81 JpegDecode RAW G 23
82 TransposeBatchNormStats2 S4D2_BN V 23
83 TransposeTensorReduce S4D4_TR V 23   84 TransposeTensorReduceBitvec S4D4_TR V 23
85 CustomOpHeader CUSTOM G 23              86 CustomOpPayload CUSTOM_OPERAND G 23
92 AffineSelect S2D2_TS_AS GV 23        93 TransposeTensorScalar S3D3_TS V 23
95 ModifyPoolConfig RAW G 23            96 Sort RAW G 23
98 TensorScalarSelect RAW VG 23         99 CastPredicated S3S3D3_TT V 23
9A TensorScalarCacheReduce S3D3_TS V 23 9B DveReadAccumulator D1_RD V 23
9C TensorReduceRangeCheck RAW VG 23     9D ScalarTensorTensor S2S2D2_STT V 23
9E ScalarTensorTensorBitvec S2S2D2_STT V 23
B2 MoveShape RAW G 23                   BC RangeSelect S2D2_RS V 3
BE GetSequenceBounds CORES G 3           E0 SparsityCompress RAW VG 3
E1 SparsityCompressTag RAW VG 3         E2 Rand2 UNIFORM VG 3
E5 TensorTensorScan S2S2D2_STT V 3      E6 TensorScalarCacheCumulative S3D3_TS V 3
E7 IndirectCopy INDIRECT G 23           E8 CopyPredicatedScalar S3D3_CP_PRED_SCALAR V 3
E9 DveReadIndices D4_MR V 3             EA SelectReduce S2S2D2_STT V 3
F0 ExtendedInst RAW * 23                F2 NonzeroWithCount NONZERO G 3
9F EngineNop NONE * 23                  A0 EventSemaphore EVENTS * 23
A1 Halt NONE * 23                       A2 Drain DRAIN * 23
A3 InstructionFlush NONE * 23           A4 Nop NONE * 23
A5 Write RAW * 23                       A6 Notify NONE * 23
A7 RegisterMove MOVE * 23               A8 RegisterAlu CTRL_AL * 23
A9 CompareAndBranch BRANCH * 23         AA TensorLoad REG_TENSOR * 23
AB TensorStore REG_TENSOR * 23          B0 EventSemaphoreRangeClear RANGE * 23
B1 SetOrderingMode ORDER * 23           B3 PollSem RAW * 23
B4 TestEventSem RAW * 23                B5 BranchPrefetchHint RAW * 23
B7 UcodeConfig RAW * 23                 EB Hint RAW * 23
B8 DMAMemcpy MEMCPY * 23                BB DmaIndirect RAW * 23
BD DmaTranspose DMA_TRANSPOSE * 3       BF Sb2sbCollective SB2SB G 23
F1 DmaGatherTranspose RAW * 23          C1 DMATrigger TRIGGER * 23
C2 DMARearm REARM * 23                  C3 DMABarrier RAW * 23
C4 DMAMemcpyFullInd GATHER G 23         C5 SemaphoreSet RAW * 23
C6 LoadActFuncSet RAW * 23              C7 TriggerAllReduce RAW G 23
C8 TriggerCollective COLLECTIVE_OLD G 23
C9 ReadVarAddr RAW * 23                 CA PseudoEmbeddingUpdate EMBEDDING * 23
CB SendRecv SEND * 23                   CC BranchLabel LABEL * 23
CD TensorStoreVar REG_TENSOR * 23       CE TensorLoadVar REG_TENSOR * 23
CF DMASwapQueueSet SWAP * 23            D0 SetRngSeed BUFFER VG 23
D1 FunctionBegin BEGIN * 23             D2 FunctionReturn NONE * 23
D3 FunctionCall CALL * 23               D4 DmaDirect2d DIRECT2D * 23
D5 SyncBarrier NONE * 23                D6 RangeCheck RAW * 23
D7 PseudoJpegDecode RAW * 23            D8 CoreBarrier BARRIER * 3
D9 TriggerCollective2 COLLECTIVE G 23   DA Extension DA * 23
DB CurProcessingRankID RANK * 23        DC GidLoad GID * 23
DD PseudoBranchPrefetchHint RAW * 23    DE TensorCompletion COMPLETION * 23
DF Exit NONE * 23                       DF LibraryReload NONE * 23
"""
FIXED = {"Exit": (0x0C, 1), "LibraryReload": (0x0C, 2)}
LETTERS = {"P": "PE", "A": "Activation", "G": "Pool", "V": "DVE", "S": "SP"}


def _rows() -> dict[str, Row]:
    words = OPCODES.split()
    found: dict[str, Row] = {}
    for opcode, name, struct, who, gens in zip(*(words[i::5] for i in range(5)), strict=True):
        engines = tuple(e for x, e in LETTERS.items() if who == "*" or x in who)
        found[name] = Row(
            name,
            int(opcode, 16),
            struct,
            engines,
            tuple(map(int, gens)),
            layout(struct),
            FIXED.get(name),
        )
    return found


ROWS = _rows()
EXTENSION = ROWS["Extension"]
