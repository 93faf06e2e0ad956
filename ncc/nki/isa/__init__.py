"""`nki.isa`: one call for each instruction of the machine, destination first.

A call checks its operands by the rules of the instruction and records one op of the live trace;
nothing is computed here. Rule numbers: `ncc explain NCC330` to `NCC359`.
"""

from __future__ import annotations

from typing import Any

from ncc.errors import nearest
from ncc.nki.isa import constants
from ncc.nki.isa.activation import activate2, activation, activation_reduce, exponential
from ncc.nki.isa.constants import (
    dge_mode,
    dma_engine,
    engine,
    gpsimd_engine,
    matmul_perf_mode,
    nc_version,
    oob_mode,
    reduce_cmd,
    scalar_engine,
    tensor_engine,
    unknown_engine,
    vector_engine,
)
from ncc.nki.isa.dma import dma_compute, dma_copy, dma_transpose
from ncc.nki.isa.folds import (
    tensor_partition_reduce,
    tensor_reduce,
    tensor_scalar_cumulative,
    tensor_scalar_reduce,
    tensor_tensor_scan,
)
from ncc.nki.isa.matmul import nc_matmul, nc_matmul_mx, nc_transpose, quantize_mx, sparse
from ncc.nki.isa.movement import (
    core_barrier,
    local_gather,
    memset,
    nc_n_gather,
    nc_stream_shuffle,
    sendrecv,
    tensor_copy,
    tensor_copy_predicated,
)
from ncc.nki.isa.queries import get_nc_sub_version, get_nc_version
from ncc.nki.isa.random import dropout, rand2, rand_get_state, rand_set_state, rng, set_rng_seed
from ncc.nki.isa.registers import (
    register_alloc,
    register_load,
    register_move,
    register_store,
    scalar_load,
    scalar_store,
)
from ncc.nki.isa.search import (
    bn_aggr,
    bn_stats,
    max8,
    nc_find_index8,
    nc_match_replace8,
    nonzero_with_count,
    sequence_bounds,
    topk,
)
from ncc.nki.isa.select import affine_select, iota, range_select, select_reduce
from ncc.nki.isa.vector import reciprocal, scalar_tensor_tensor, tensor_scalar, tensor_tensor
from ncc.nki.registers import NkiScalar, VirtualRegister
from ncc.nki.trace import Instruction as NkiInstruction
from ncc.nki.trace import NkiAttributeError, NkiValidationError, place

__all__ = [
    "NkiInstruction",
    "NkiScalar",
    "NkiValidationError",
    "VirtualRegister",
    "activate2",
    "activation",
    "activation_reduce",
    "affine_select",
    "bn_aggr",
    "bn_stats",
    "constants",
    "core_barrier",
    "dge_mode",
    "dma_compute",
    "dma_copy",
    "dma_engine",
    "dma_transpose",
    "dropout",
    "engine",
    "exponential",
    "get_nc_sub_version",
    "get_nc_version",
    "gpsimd_engine",
    "iota",
    "local_gather",
    "matmul_perf_mode",
    "max8",
    "memset",
    "nc_find_index8",
    "nc_match_replace8",
    "nc_matmul",
    "nc_matmul_mx",
    "nc_n_gather",
    "nc_stream_shuffle",
    "nc_transpose",
    "nc_version",
    "nonzero_with_count",
    "oob_mode",
    "quantize_mx",
    "rand2",
    "rand_get_state",
    "rand_set_state",
    "range_select",
    "reciprocal",
    "reduce_cmd",
    "register_alloc",
    "register_load",
    "register_move",
    "register_store",
    "rng",
    "scalar_engine",
    "scalar_load",
    "scalar_store",
    "scalar_tensor_tensor",
    "select_reduce",
    "sendrecv",
    "sequence_bounds",
    "set_rng_seed",
    "tensor_copy",
    "tensor_copy_predicated",
    "tensor_engine",
    "tensor_partition_reduce",
    "tensor_reduce",
    "tensor_scalar",
    "tensor_scalar_cumulative",
    "tensor_scalar_reduce",
    "tensor_tensor",
    "tensor_tensor_scan",
    "topk",
    "unknown_engine",
    "vector_engine",
]


def __getattr__(name: str) -> Any:
    """Sparse products are refused when they are called; other names get the nearest spelling."""
    if "sparse" in name and not name.startswith("_"):
        return sparse(name)
    hint = nearest(name, __all__) or "the calls are listed by dir(nki.isa)"
    raise NkiAttributeError("NCC360", f"nki.isa has no {name}", place(), hint)
