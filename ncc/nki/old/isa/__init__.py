"""`neuronxcc.nki.isa`: one call for each instruction; it returns a new tile."""

from __future__ import annotations

from typing import Any

from ncc.errors import nearest
from ncc.nki.isa import constants
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
from ncc.nki.isa.queries import get_nc_sub_version, get_nc_version
from ncc.nki.old.isa.choosing import (
    affine_select,
    bn_aggr,
    bn_stats,
    iota,
    max8,
    nc_find_index8,
    nc_match_replace8,
    range_select,
    select_reduce,
    sequence_bounds,
)
from ncc.nki.old.isa.computing import (
    activation,
    activation_reduce,
    dropout,
    reciprocal,
    scalar_tensor_tensor,
    tensor_partition_reduce,
    tensor_reduce,
    tensor_scalar,
    tensor_scalar_reduce,
    tensor_tensor,
    tensor_tensor_scan,
)
from ncc.nki.old.isa.matmul import nc_matmul, nc_transpose
from ncc.nki.old.isa.moving import (
    builtin_custom_op,
    dma_copy,
    dma_transpose,
    local_gather,
    memset,
    nc_stream_shuffle,
    tensor_copy,
    tensor_copy_dynamic_dst,
    tensor_copy_dynamic_src,
    tensor_copy_predicated,
)
from ncc.nki.trace import NkiAttributeError, place

__all__ = [
    "activation",
    "activation_reduce",
    "affine_select",
    "bn_aggr",
    "bn_stats",
    "builtin_custom_op",
    "constants",
    "dge_mode",
    "dma_copy",
    "dma_engine",
    "dma_transpose",
    "dropout",
    "engine",
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
    "nc_stream_shuffle",
    "nc_transpose",
    "nc_version",
    "oob_mode",
    "range_select",
    "reciprocal",
    "reduce_cmd",
    "scalar_engine",
    "scalar_tensor_tensor",
    "select_reduce",
    "sequence_bounds",
    "tensor_copy",
    "tensor_copy_dynamic_dst",
    "tensor_copy_dynamic_src",
    "tensor_copy_predicated",
    "tensor_engine",
    "tensor_partition_reduce",
    "tensor_reduce",
    "tensor_scalar",
    "tensor_scalar_reduce",
    "tensor_tensor",
    "tensor_tensor_scan",
    "unknown_engine",
    "vector_engine",
]


def __getattr__(name: str) -> Any:
    hint = nearest(name, __all__) or "the calls are listed by dir(nki.isa)"
    raise NkiAttributeError("NCC360", f"neuronxcc.nki.isa has no {name}", place(), hint)
