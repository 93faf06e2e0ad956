"""The opcodes' own keys with their defaults, and the words that they take.

A key that has its default is left out of `Inst.keys`, of the text and of the JSON.
"""

from __future__ import annotations

from typing import Any

# How accumulation is written: before mm-acc-flags `accumulate` says that the product is added to
# what the group's earlier matmuls left (in a loop, `accumulate_over` names the loop variables that
# must all be 0 for a group's first matmul; `unroll` turns it into `accumulate`). From mm-acc-flags
# on `accumulation_flag` holds START 1, STOP 2, ACCUMULATE 4, is never 0, and decides alone.
MATMUL: dict[str, Any] = {
    "accumulation_flag": 0,
    "psum_zero_region": 0,
    "replication_resolution": 0,
    "replication_shift_amnt": 0,
    "replication_num_rows": 0,
    "is_transpose": False,
    "is_fmap_onezero": False,
    "is_weight_onezero": False,
    "tile_size": (-1, -1),
    "tile_position": (-1, -1),
    "perf_mode": "None",
    "ifmap_quant_offset": 0,
    "weights_quant_offset": 0,
    "weights_loaded": False,  # ncc's own: set by drop-warm-loads
    "accumulate": False,  # ncc's own, see above
    "accumulate_over": (),  # ncc's own, see above
}
START, STOP, ACCUMULATE = 1, 2, 4
DMA: dict[str, Any] = {"queue": "", "dge_type": "None", "duplicate": False}
MOVE: dict[str, Any] = {**DMA, "dma_qos": "Unassigned", "can_read_uninit": False}
# `index_scale` (elements a value of the index counts), `index_limit` (values that are inside) and
# `oob_is_err` are ncc's own
INDIRECT: dict[str, Any] = {
    **MOVE,
    "runtime_semaphore_wait_value": 0,
    "index_scale": 1,
    "index_limit": 0,
    "oob_is_err": True,
}
ACTIVATE: dict[str, Any] = {
    "func": "Unknown",
    "scale": 1.0,
    "alpha": 0.0,
    "acc": "Idle",
    "op0": "bypass",
    "op1": "bypass",
    "reduce_op": "bypass",
    "can_read_uninit": False,
    "is_activate2": False,
    "reverse0": False,
    "reverse1": False,
}
SCALARS: dict[str, Any] = {
    "op0": "bypass",
    "reverse0": False,
    "op1": "bypass",
    "reverse1": False,
}
POINTER: dict[str, Any] = {
    **SCALARS,
    "apply_transpose": False,
    "is_tensor_scalar_addr": False,
    "is_scalar_tensor_tensor": False,
    "is_tensor_tensor_scan": False,
    "negate_second_output": False,
    "acc": "Idle",
}
COPY: dict[str, Any] = {
    **MOVE,
    "mode": "Copy",
    "oob_is_err": True,
    "transpose_op": "None",
    "constants": (),
    "cce_op": "bypass",
    "replica_groups": (),
    "remote_notification": False,
    "use_gpsimd_dma": False,
}
COLLECTIVE: dict[str, Any] = {
    "queue": "",
    "kind": "AllReduce",
    "op": "bypass",
    "replica_groups": (),
    "src_target_pairs": (),
    "cc_dim": "Free",
    "cc_type_hint": "None",
    "stream_id": 0,
    "cc_channel": 0,
    "pipe_id": 0,
    "is_local": False,
    "can_read_uninit": False,
    "initial_corebarrier": False,
    "recv_from_rank": -1,
    "send_to_rank": -1,
    "permute_chain": (),
    "src1_bitmap": 0,
    "unique_tensors": False,
    "use_gpsimd_dma": False,
    "dma_qos": "Unassigned",
}
SCRATCH: dict[str, Any] = {"sb_buf_shape": (), "psum_buf_shape": ()}
CUSTOM: dict[str, Any] = {
    "opFunctionName": "",
    "opLibFile": "",
    "ulib_to_ucode_version": "",
    "ulib_to_isa_version": "",
    "srcsShape": (),
    "dstsShape": (),
    "is_builtin": False,
    "arguments": (),  # ncc's own: numbers that a function of its library takes
}
LIBRARY: dict[str, Any] = {
    **SCRATCH,
    "kernel_name": "",
    "kernel_attrs": "",
    "srcs_shape": (),
    "dsts_shape": (),
    "auto_cast": False,
    "auto_cast_type": "",
    "is_causal": False,
    "fused_rmsnorm": False,
    "norm_type": "",
    "lnc_size": 1,
    "lower_bound": 0,
    "store_add": False,
    "quant_kernel": "",
    "output_layout": "",
}
NKI: dict[str, Any] = {
    **SCRATCH,
    "func": "",
    "func_args": (),
    "func_outs": (),
    "kernel_source_val": 0,
    "address_rotation_scope_val": 0,
}
KLIR: dict[str, Any] = {
    **SCRATCH,
    "klir_binary": "",
    "kernel_format": "",
    "nki_binary_version_identifier": "",
    "func_args": (),
    "func_outs": (),
    "enable_device_dump": False,
    "lnc_size": 1,  # ncc's own: for how many cores the kernel was traced
    "core": -1,  # ncc's own: the one of them that runs it here; -1 for all
    "address_rotation_scope_val": 0,
}
RANGE: dict[str, Any] = {
    "base": 0,
    "compare_op0": "bypass",
    "compare_op1": "bypass",
    "reduce_op": "bypass",
    "reduce_cmd": "Idle",
    "fill_value": 0.0,
    "num_active_channels": 128,
}
BLOCK: dict[str, Any] = {
    "dma_trigger": "",
    "block_id": 0,
    "section_start": False,
    "priority_class": 0,
    "remote_notifications": (),
}
ALU_OPS = (
    "bypass",
    "bitwise_not",
    "arith_shift_left",
    "arith_shift_right",
    "add",
    "subtract",
    "mult",
    "divide",
    "max",
    "min",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_shift_left",
    "logical_shift_right",
    "is_equal",
    "not_equal",
    "is_gt",
    "is_ge",
    "is_lt",
    "is_le",
    "average",
    "elemwise_mul",
    "pow",
    "mod",
    "rsqrt",
    "abs",
    "abs_max",
    "abs_min",
    "mod_int",
)
FUNCTIONS = (
    "Identity",
    "Square",
    "Relu",
    "Lrelu",
    "Prelu",
    "Sigmoid",
    "Tanh",
    "Exp",
    "Softplus",
    "Sqrt",
    "Rsqrt",
    "Ln",
    "Erf",
    "Sin",
    "Arctan",
    "Sign",
    "Gelu",
    "Mish",
    "Gelu_apprx_tanh",
    "Gelu_apprx_sigmoid",
    "Derivative_Gelu_apprx_sigmoid",
    "Derivative_Gelu",
    "Derivative_Erf",
    "Copy",
    "Abs",
    "Reciprocal",
    "Abs_reciprocal_sqrt",
    "Silu",
    "Derivative_silu",
    "Is_finite",
    "Unknown",
)
EDGES = {"Ordered": "X", "Anti": "A", "Output": "O", "Flow": "F"}  # weakest first
