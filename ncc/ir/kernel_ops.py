"""Every op that a kernel can record: the operands it writes and reads, and its keys.

A row serves tracer, printer, reader, laws, interpreter and lowering. Operand roles are the names of
the parameters of the `nki.isa` call; `*` after a role stands for several (`srcs0`, `srcs1`, ...); a
role with `?` may be left out. `more` says which written operands are read as well.
Source: NKI reference, section 7.
"""

from __future__ import annotations

from typing import Any

import attrs


@attrs.frozen
class Row:
    writes: tuple[str, ...]
    reads: tuple[str, ...]
    keys: dict[str, Any]
    engines: tuple[str, ...]  # that may run it, the default first
    more: tuple[str, ...] = ()  # written operands whose old values matter too


def row(writes: str, reads: str, engines: str, more: str = "", /, **keys: Any) -> Row:
    w, r, e, m = (tuple(x.split()) for x in (writes, reads, engines, more))
    return Row(w, r, keys, e, m)


ACC = {"reduce_op": "", "reduce_cmd": "idle"}  # accumulator of ACT and DVE; "" = no reduction

OPS: dict[str, Row] = {
    # data movement
    "dma_copy": row("dst", "src", "dma sync scalar gpsimd vector", oob_mode="error", rmw=""),
    "dma_transpose": row("dst", "src", "dma", axes=(), oob_mode="error"),
    # into: dst is one more of the sources (its picked rows are added to)
    "dma_compute": row("dst", "srcs*", "dma", "dst", reduce_op="add", into=False, oob_mode="error"),
    "tensor_copy": row("dst", "src", "vector scalar gpsimd"),
    "tensor_copy_predicated": row("dst", "src predicate", "vector", "dst", reverse_pred=False),
    "memset": row("dst", "", "vector gpsimd", value=0),
    "nc_stream_shuffle": row("dst", "src", "vector", "dst", shuffle_mask=()),
    "local_gather": row(
        "dst", "src_buffer index", "gpsimd", num_elem_per_idx=1, num_valid_indices=-1
    ),
    "nc_n_gather": row("dst", "data indices", "gpsimd"),
    "sendrecv": row("dst", "src", "dma gpsimd", send_to_rank=0, recv_from_rank=0, pipe_id=0),
    "core_barrier": row("", "data?", "gpsimd", cores=(0, 1)),
    # tensor engine. accumulate: add to dst (the tracer has settled what None means)
    "nc_matmul": row(
        "dst",
        "stationary moving",
        "tensor",
        "dst",
        accumulate=False,
        is_transpose=False,
        perf_mode="none",
        tile_position=(),
        tile_size=(),
        is_stationary_onezero=False,
        is_moving_onezero=False,
    ),
    "nc_transpose": row("dst", "data", "tensor vector"),
    # vector, scalar, gpsimd
    "tensor_tensor": row("dst", "data1 data2", "vector gpsimd", op=""),
    "tensor_scalar": row(
        "dst",
        "data operand0? operand1?",
        "vector scalar gpsimd",
        op0="",
        reverse0=False,
        op1="",
        reverse1=False,
    ),
    "scalar_tensor_tensor": row(
        "dst", "data operand0 operand1", "vector", op0="", op1="", reverse0=False, reverse1=False
    ),
    "tensor_reduce": row("dst", "data", "vector", op="", axis=(), negate=False),
    "tensor_partition_reduce": row("dst", "data", "gpsimd", op=""),
    "tensor_scalar_reduce": row(
        "dst reduce_res?",
        "data operand0 reduce_init?",
        "vector",
        op0="",
        reverse0=False,
        reduce_op="",
        reduce_cmd="reset_reduce",
        reduce_res_negate=False,
    ),
    "tensor_scalar_cumulative": row(
        "dst", "src imm0 imm1?", "vector", op0="", op1="", reduce_cmd="reset_reduce"
    ),
    "tensor_tensor_scan": row(
        "dst", "data0 data1 initial", "vector", op0="", op1="", reverse0=False, reverse1=False
    ),
    "activation": row("dst reduce_res?", "data bias? scale?", "scalar", op="", **ACC),
    "activate2": row(
        "dst reduce_res?",
        "data imm0 imm1",
        "scalar",
        op="",
        op0="",
        op1="",
        relu_param=0.0,
        reverse0=False,
        reverse1=False,
        **ACC,
    ),
    "reciprocal": row("dst", "data", "vector"),
    "exponential": row(
        "dst reduce_res?", "src max_value? reduce_init?", "vector", reduce_cmd="idle"
    ),
    "select_reduce": row(
        "dst reduce_res?",
        "predicate on_true on_false",
        "vector",
        reverse_pred=False,
        reduce_op="maximum",
        reduce_cmd="idle",
    ),
    "range_select": row(
        "dst reduce_res?",
        "on_true_tile bound0 bound1",
        "vector",
        comp_op0="",
        comp_op1="",
        range_start=0,
        reduce_op="maximum",
        reduce_cmd="reset_reduce",
    ),
    "affine_select": row(
        "dst",
        "on_true_tile",
        "gpsimd",
        pattern=(),
        channel_multiplier=0,
        offset=0,
        cmp_op="equal",
        on_false_value=0.0,
    ),
    "iota": row("dst", "offset?", "gpsimd", pattern=(), channel_multiplier=0),
    "bn_stats": row("dst", "data", "vector"),
    "bn_aggr": row("dst", "data", "vector"),
    "max8": row("dst", "src", "vector"),
    "nc_find_index8": row("dst", "data vals", "vector"),
    "nc_match_replace8": row("dst dst_idx?", "data vals", "vector", imm=0.0),
    "sequence_bounds": row("dst", "segment_ids", "gpsimd"),
    "nonzero_with_count": row("dst", "src", "gpsimd", "dst", index_offset=0, padding_val=-1),
    "topk": row("val_dst idx_dst", "src", "gpsimd", n=0),
    # random numbers
    "dropout": row("dst", "data prob", "vector"),
    "rng": row("dst", "", "vector gpsimd"),
    "set_rng_seed": row("", "src_seeds", "gpsimd vector"),
    "rand_set_state": row("", "src_seeds", "gpsimd vector"),
    "rand_get_state": row("dst", "", "gpsimd vector"),
    "rand2": row("dst", "min max", "vector"),
    # registers: dst of the first, second and fourth is a Reg
    "register_move": row("dst", "src", "sync"),
    "register_load": row("dst", "src", "sync"),
    "register_store": row("dst", "src", "sync"),
    "register_alu": row("dst", "a b", "sync", op=""),
    "device_print": row("", "tensor", "sync", prefix=""),
}


def default(op: str, key: str) -> Any:
    """A key's value where an op does not name it."""
    return OPS[op].keys[key]


def writes(op: str) -> frozenset[str]:
    """The roles that an op writes, without their marks."""
    return _WRITES[op]


_WRITES = {name: frozenset(x.rstrip("?*") for x in r.writes) for name, r in OPS.items()}


def role_of(op: str, word: str) -> str:
    """The role that an operand's name plays in an op: itself, `srcs*` for `srcs1`; "" for none."""
    if word in _ROLES[op]:
        return word
    several = f"{word.rstrip('0123456789')}*"
    return several if several in _ROLES[op] and several[:-1] != word else ""


_ROLES = {name: frozenset(x.rstrip("?") for x in (*r.writes, *r.reads)) for name, r in OPS.items()}
