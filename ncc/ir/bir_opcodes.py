"""The 110 BIR opcodes as rows of one table: number, engines, operands and own keys.

An opcode is not a class: what passes, laws, interpreter, JSON and encoder want to know of one is
a column here. A position's letters say which operands it takes: `S` in SBUF, `P` in PSUM, `D` in
DRAM, `I` an immediate, `R` a register; a closing `*` repeats the last position. The engines are
those whose stream may hold the instruction (the ISA reference's table 4.3); `DMA` means that no
trigger is chosen yet. What the operands of an opcode are, in their order, and what is computed from
them: `ncc.ir.bir_operands`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import attrs

from ncc.ir.bir_keys import (
    ACTIVATE,
    BLOCK,
    COLLECTIVE,
    COPY,
    CUSTOM,
    DMA,
    INDIRECT,
    KLIR,
    LIBRARY,
    MATMUL,
    MOVE,
    NKI,
    POINTER,
    RANGE,
    SCALARS,
)

if TYPE_CHECKING:
    from ncc.ir.bir import Inst

ENGINES = ("Unassigned", "Pool", "Activation", "PE", "DMA", "DVE", "SP", "ALL")
STREAMS = ("PE", "Activation", "Pool", "DVE", "SP")  # engines with a stream, in wire order


@attrs.frozen
class Row:
    """What tells one opcode from the next.

    `least` operands of `ins` must be there; all of `outs` must. `free` is how many pairs beside the
    partition's the instruction's record can hold. `level` is the first architecture level that has
    the opcode. `family` groups what passes ask for together: generic, matmul, dma, descriptor,
    collective, terminator, sync, region, kernel.
    """

    number: int
    engines: tuple[str, ...] = ()
    ins: tuple[str, ...] = ()
    outs: tuple[str, ...] = ()
    least: int = 0
    keys: Mapping[str, Any] = attrs.field(factory=dict[str, Any])
    family: str = ""
    free: int = 4
    level: int = 20
    more_ins: bool = False  # the last position may repeat
    more_outs: bool = False
    abstract: bool = False


SHORT = {
    "V": ("DVE",),
    "G": ("Pool",),
    "VG": ("DVE", "Pool"),
    "VGA": ("DVE", "Pool", "Activation"),
    "A": ("Activation",),
    "T": ("PE",),
    "Q": ("DMA", "SP", "Activation", "DVE", "Pool"),
    "*": (*STREAMS, "ALL"),
    "": (),
}


def _row(
    number: int,
    engines: str = "",
    ins: str = "",
    outs: str = "",
    keys: Mapping[str, Any] | None = None,
    **more: Any,
) -> Row:
    """A row from short words; without `least` every position of `ins` must be there."""
    sources, results = tuple(ins.rstrip("*").split()), tuple(outs.rstrip("*").split())
    more.setdefault("least", 0 if ins.endswith("*") else len(sources))
    return Row(
        number,
        SHORT[engines],
        sources,
        results,
        keys=keys or {},
        more_ins=ins.endswith("*"),
        more_outs=outs.endswith("*"),
        **more,
    )


OPCODES: dict[str, Row] = {
    "Generic": _row(0, "", "SPDIR*", "SPD*", family="generic", abstract=True),
    "GenericCopy": _row(1, "VGA", "SP", "SP", {"can_read_uninit": False}, family="generic"),
    "GenericRelu": _row(2, "VGA", "SP", "SP", family="generic"),
    # `transpose` is ncc's own: element (r, c) of the source goes to (c, r)
    "AbstractCopy": _row(
        3, "Q", "SPD", "SPD", {"dma_qos": "Unassigned", "transpose": False}, family="generic"
    ),
    # a third operand is a column of scales, ncc's own
    "Activation": _row(4, "A", "SP SPI SP", "SP", ACTIVATE, least=1, free=3),
    "ReadActivationAccumulator": _row(5, "A", "", "SP"),
    "LoadActFuncSet": _row(6, "A", keys={"act_func_set_id": 0}),
    "MatmultBase": _row(7, "T", "S S", "P", MATMUL, family="matmul", free=3, abstract=True),
    "Matmult": _row(8, "T", "S S", "P", MATMUL, family="matmul", free=3),
    "MatmultSparse": _row(
        9, "T", "S S S", "P", {**MATMUL, "compress_ratio": 4}, family="matmul", level=30
    ),
    "Memset": _row(10, "VG", "", "SP", {"mode": "Const", "constant": 0}),
    "GetGlobalRankId": _row(11, "*", "", "R", {"world_size": 1}),
    "NoOp": _row(12, "*", family="sync"),
    "EventSemaphore": _row(13, "*", family="sync"),
    "GroupResetSemaphores": _row(
        14, "*", keys={"mode": "SemaphoreZero", "sema_group": 0}, family="sync"
    ),
    "AllEngineBarrier": _row(15, "*", keys={"engines": ()}, family="sync"),
    "Drain": _row(16, "*", keys={"is_reset_sema": False}, family="sync"),
    "Halt": _row(17, "*", family="sync"),
    "DMA": _row(18, "Q", "SD*", "SD*", DMA, family="dma", abstract=True),
    "Load": _row(19, "Q", "D", "S", MOVE, family="dma"),
    "Pool": _row(20, "VG", "SP", "SP", {"func": "Max"}),
    "Reciprocal": _row(21, "VG", "SP", "SP"),
    "Save": _row(22, "Q", "S", "D", MOVE, family="dma"),
    "TensorCopy": _row(23, "VGA", "SP", "SP", {"can_read_uninit": False}),
    "TensorCopyDynamicSrc": _row(24, "VG", "SP SR*", "SP", {"scale": 1, "can_read_uninit": False}),
    "TensorCopyDynamicDst": _row(25, "VG", "SP SR*", "SP", {"scale": 1, "can_read_uninit": False}),
    # `num_elem_per_idx` is ncc's own
    "IndirectCopy": _row(26, "G", "S S", "S", {"num_valid_indices": 0, "num_elem_per_idx": 1}),
    "TensorReduce": _row(
        27,
        "VG",
        "SP",
        "SP",
        {"op": "bypass", "axis": "X", "apply_transpose": False, "negate": False},
    ),
    "TensorScalar": _row(28, "VG", "SP", "SP", {**SCALARS, "const0": 0.0, "const1": 0.0}, free=3),
    "TensorScalarPtr": _row(29, "VGA", "SP SPI SPI", "SP", POINTER, least=2, free=3),
    "TensorScalarCache": _row(
        30, "V", "SP SPI SPI", "SP", {**SCALARS, "mode": "Reduce", "acc": "Idle"}, least=2, free=3
    ),
    # `integer` is ncc's own: Pool's operations on integers themselves
    "TensorTensor": _row(
        31, "VG", "SP SP", "SP", {"op": "bypass", "acc": "Idle", "integer": False}, free=3
    ),
    "DMACopy": _row(32, "Q", "SD*", "SD", COPY, family="dma"),
    "GPSIMDSB2SB": _row(33, "G", "S", "S", level=30),
    "BNStats": _row(34, "V", "SP", "SP", {"apply_transpose": False}),
    "BNStatsAggregate": _row(35, "V", "SP", "SP"),
    "BNGradients": _row(36, "V", "SP*", "SP*"),
    "BNBackprop": _row(37, "V", "SP*", "SP*", {"total_elements": 0}),
    "BNBackprop2": _row(38, "V", "SP*", "SP*", {"total_elements": 0}),
    "StreamShuffle": _row(39, "V", "SP", "SP", {"mask": ()}),
    "StreamTranspose": _row(40, "V", "SP", "SP"),
    "ReadVarAddr": _row(41, "Q", "D", "S", DMA, family="dma"),
    "GenericIndirectLoad": _row(42, "Q", "SD*", "S", {**DMA, "indirect_dims": ()}, family="dma"),
    "IndirectLoad": _row(43, "Q", "D S", "S", INDIRECT, family="dma"),
    "GenericIndirectSave": _row(
        44, "Q", "SD*", "D", {**DMA, "indirect_dims": (), "op": "bypass"}, family="dma"
    ),
    "IndirectSave": _row(45, "Q", "S S", "D", INDIRECT, family="dma"),
    "IndirectSaveAccumulate": _row(
        46,
        "Q",
        "S S",
        "D",
        {**INDIRECT, "num_indices": 0, "entry_step_elements": 0, "op": "add"},
        family="dma",
    ),
    "Collective": _row(47, "G", "SD*", "SD*", {"queue": ""}, family="collective", abstract=True),
    "CollectiveCompute": _row(48, "G", "SD*", "SD*", COLLECTIVE, family="collective"),
    "CollectiveSend": _row(
        49,
        "G",
        "SD*",
        "",
        {"queue": "", "peer_id": 0, "can_read_uninit": False},
        family="collective",
    ),
    "CollectiveRecv": _row(50, "G", "", "SD*", {"queue": "", "peer_id": 0}, family="collective"),
    "Select": _row(51, "V", "SP SPI SPI", "SP"),
    "CopyPredicated": _row(
        52,
        "V",
        "SP SPI SPI",
        "SP",
        {
            "can_read_uninit": False,
            "reverse_pred": False,
            "reduce_op": "bypass",
            "accumulator_cmd": "Idle",
        },
        least=2,
        free=3,
    ),
    "CustomOp": _row(53, "*", "SPDIR*", "SPD*", CUSTOM, family="kernel"),
    "BIRKernel": _row(54, "*", "SPDIR*", "SPD*", LIBRARY, family="kernel"),
    "NKIKernel": _row(55, "*", "SPDIR*", "SPD*", NKI, family="kernel"),
    "NKIKLIRKernel": _row(56, "*", "SPDIR*", "SPD*", KLIR, family="kernel"),
    "DevicePrint": _row(57, "*", "SPDIR*", "", {"prefix": "", "output_buffer": ""}),
    "GetRandState": _row(58, "VG", "", "SP"),
    "SetRandState": _row(59, "VG", "SPI", "", {"rng_engine": ""}),
    "Rand": _row(
        60,
        "V",
        "",
        "SP",
        {"random_algorithm": "LFSR", "rand_num_steps": 0, "distribution": "Raw", "params": ()},
    ),
    "Iota": _row(61, "G", "", "S", {"base": 0, "pattern": (), "channel_multiplier": 0}),
    "TensorScalarAffineSelect": _row(
        62,
        "G",
        "S",
        "S",
        {
            "base": 0,
            "pattern": (),
            "channel_multiplier": 0,
            "compare_op": "bypass",
            "fill_value": 0.0,
        },
        free=2,
    ),
    "RangeSelect": _row(63, "V", "SP SPI SPI", "SP", RANGE, free=2, level=30),
    "GetSequenceBounds": _row(64, "G", "S", "S", level=30),
    "Dropout": _row(65, "VG", "SP SPI", "SP", {"is_keep_threshold": False}, free=3),
    "GetCurProcessingRankID": _row(
        66, "*", "", "R", {"iter_id": 0, "channel_id": 0, "stream_id": 0, "replica_groups": ()}
    ),
    "DMATrigger": _row(67, "Q", "", "", {**DMA, "dma_blocks": ()}, family="dma"),
    "DMADescriptor": _row(
        68, "Q", "SD*", "SD*", {"num_tiling_dimensions": 0}, family="descriptor", abstract=True
    ),
    "DMADescriptorCopy": _row(
        69,
        "Q",
        "SD",
        "SD",
        {"num_tiling_dimensions": 0, "can_read_uninit": False},
        family="descriptor",
    ),
    "DMADescriptorCCE": _row(
        70,
        "Q",
        "SD*",
        "SD",
        {"num_tiling_dimensions": 0, "constants": (), "op": "bypass"},
        family="descriptor",
    ),
    "DMADescriptorTranspose": _row(
        71,
        "Q",
        "SD",
        "SD",
        {"num_tiling_dimensions": 0, "transpose_op": "None", "can_read_uninit": False},
        family="descriptor",
    ),
    "DMADescriptorReplicate": _row(
        72, "Q", "SD", "SD*", {"num_tiling_dimensions": 0}, family="descriptor"
    ),
    "RegisterAlu": _row(73, "*", "IR IR", "R", {"op": "bypass", "is_64bit": False}),
    "RegisterMove": _row(74, "*", "IR", "R"),
    "TensorLoad": _row(75, "*", "SPD", "R"),
    "TensorSave": _row(76, "*", "IR", "SPD"),
    "Terminator": _row(77, "*", family="terminator", abstract=True),
    "CompareAndBranch": _row(
        78,
        "*",
        "IR IR",
        "",
        {"comp_op": "Unsupported", "on_true": "", "on_false": ""},
        family="terminator",
    ),
    "UnconditionalBranch": _row(79, "*", keys={"target": ""}, family="terminator"),
    "BranchHint": _row(80, "*", keys={"hint": "LikelyTaken", "associate_branch": ""}),
    "Return": _row(81, "*", family="terminator"),
    "Exit": _row(82, "*", family="terminator"),
    "Break": _row(83, "*", family="terminator"),
    "Call": _row(84, "*", "SPDIR*", "SPD*", {"target": "", "arguments": (), "table_id": 0}),
    "SwitchQueueInstance": _row(85, "*", keys={"queue": "", "instance": 0, "no_rearm": False}),
    "ResetQueueInstance": _row(86, "*", keys={"queue": "", "instance": 0}),
    "CoreBarrier": _row(
        87, "*", "D*", "D*", {"runtime_semaphore": 0, "id": 0, "cores": ()}, family="sync", level=30
    ),
    "Max": _row(88, "V", "SP", "SP"),
    "MaxIndex": _row(89, "V", "SP SP", "SP"),
    "MatchReplace": _row(90, "V", "SP SP", "SP", {"imm_value": 0.0}),
    "MaxIndexAndMatchReplace": _row(91, "V", "SP SP", "SP SP", {"imm_value": 0.0}, level=30),
    "Gather": _row(92, "G", "S S", "S"),
    "InlineASMBytes": _row(
        93, "*", "SPDIR*", "SPD*", {"asm_bytes": "", "sync_type": "", "latency_estimate": 0}
    ),
    "TensorCompletion": _row(94, "*", "SPD*", "", {"mode": ""}),
    "MatmultMx": _row(95, "T", "S S S S", "P", MATMUL, family="matmul", level=40),
    "QuantizeMx": _row(96, "V", "SP", "S S", level=40),
    "Rand2": _row(97, "VG", "SPI*", "SP", level=40),
    "RandSetState": _row(98, "VG", "SPI", "", level=30),
    "RandGetState": _row(99, "VG", "", "SP", level=30),
    "Rng": _row(100, "VG", "", "SP"),
    "ActivationReadAccumulator": _row(101, "A", "", "SP"),
    "DveReadAccumulator": _row(102, "V", "", "SP", {"negated": False}),
    "Exponential": _row(103, "V", "SP SPI", "SP", {"reduce_cmd": "Idle"}, least=1, level=40),
    # both keys are ncc's own
    "NonzeroWithCount": _row(
        104, "G", "S", "S", {"index_offset": 0, "padding_val": -1}, free=3, level=30
    ),
    "Loop": _row(105, "", family="region"),
    "DynamicForLoop": _row(106, "", "IR IR", "R", {"step": 1}, family="region"),
    "DMABlock": _row(107, "Q", keys=BLOCK, family="region"),
    "DoWhile": _row(108, "", "R*", "", {"cond": "", "is_do_while": False}, family="region"),
    "TongaReduceMacroSymbolic": _row(
        109,
        "",
        "SP*",
        "SP*",
        {"op": "bypass", "is_first_reduce": False, "reduce_axes": ()},
        family="generic",
    ),
}


def key(inst: Inst, name: str) -> Any:
    """The value of one of the opcode's own keys, or its default; KeyError when it has none such."""
    for known, value in inst.keys:
        if known == name:
            return value
    return OPCODES[inst.opcode].keys[name]


def keyed(
    opcode: str, old: tuple[tuple[str, Any], ...] = (), /, **new: Any
) -> tuple[tuple[str, Any], ...]:
    """`Inst.keys` of an opcode: `old` changed by `new`, sorted, without what has its default."""
    values = {**dict(old), **new}
    default = OPCODES[opcode].keys
    return tuple((k, values[k]) for k in sorted(values) if not same(values[k], default[k]))


def same(value: Any, default: Any) -> bool:
    """Equal, and no negative zero for a positive one: max with -0.0 keeps a sign."""
    if value != default:
        return False
    return type(value) is not float or math.copysign(1.0, value) == math.copysign(1.0, default)
