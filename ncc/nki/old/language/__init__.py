"""`neuronxcc.nki.language`: functions that return new tiles, index tensors, and loops.

Every range is Python iteration: loops are unrolled while a kernel is traced, and their indices are
plain ints. Masks and index tensors are known then, too.
"""

from __future__ import annotations

from typing import Any

from ncc.errors import nearest
from ncc.nki import dtypes as _dtypes
from ncc.nki.dtypes import (
    Limits,
    bfloat16,
    bool_,
    float8_e4m3,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    fp32,
    int8,
    int16,
    int32,
    tfloat32,
    uint8,
    uint16,
    uint32,
)
from ncc.nki.language.loops import no_reorder, static_range
from ncc.nki.language.programs import num_programs as _num_programs
from ncc.nki.language.programs import program_id, program_ndim
from ncc.nki.memory import (
    hbm,
    is_hbm,
    is_on_chip,
    is_psum,
    is_sbuf,
    private_hbm,
    psum,
    sbuf,
    shared_hbm,
    tile_size,
)
from ncc.nki.old.blocks import par_dim
from ncc.nki.old.grid import nc, spmd_dim
from ncc.nki.old.index import arange, mgrid
from ncc.nki.old.language.elementwise import FUNCTIONS, invert, logical_not, negative, reciprocal
from ncc.nki.old.language.elementwise import operate as _operate
from ncc.nki.old.language.folds import all_ as all
from ncc.nki.old.language.folds import max_ as max
from ncc.nki.old.language.folds import mean, prod, rms_norm, softmax, var
from ncc.nki.old.language.folds import min_ as min
from ncc.nki.old.language.folds import sum_ as sum
from ncc.nki.old.language.picking import gather_flattened, where
from ncc.nki.old.language.tiles import (
    all_reduce,
    atomic_rmw,
    broadcast_to,
    copy,
    dropout,
    expand_dims,
    load,
    load_transpose2d,
    loop_reduce,
    matmul,
    rand,
    random_seed,
    static_cast,
    store,
    transpose,
)
from ncc.nki.old.loops import affine_range, sequential_range
from ncc.nki.old.memory import (
    empty_like,
    full,
    full_like,
    ndarray,
    ones,
    shared_constant,
    shared_identity_matrix,
    zeros,
    zeros_like,
)
from ncc.nki.old.tile import Tile as tensor
from ncc.nki.tensor import ds
from ncc.nki.tensor_base import TensorBase
from ncc.nki.trace import NkiAttributeError, current, place

TensorBase.operate = _operate

abs: Any = FUNCTIONS["abs"]
square: Any = FUNCTIONS["square"]
exp: Any = FUNCTIONS["exp"]
log: Any = FUNCTIONS["log"]
sqrt: Any = FUNCTIONS["sqrt"]
rsqrt: Any = FUNCTIONS["rsqrt"]
sin: Any = FUNCTIONS["sin"]
cos: Any = FUNCTIONS["cos"]
tan: Any = FUNCTIONS["tan"]
arctan: Any = FUNCTIONS["arctan"]
tanh: Any = FUNCTIONS["tanh"]
sigmoid: Any = FUNCTIONS["sigmoid"]
relu: Any = FUNCTIONS["relu"]
sign: Any = FUNCTIONS["sign"]
floor: Any = FUNCTIONS["floor"]
ceil: Any = FUNCTIONS["ceil"]
trunc: Any = FUNCTIONS["trunc"]
gelu: Any = FUNCTIONS["gelu"]
gelu_dx: Any = FUNCTIONS["gelu_dx"]
gelu_apprx_tanh: Any = FUNCTIONS["gelu_apprx_tanh"]
gelu_apprx_sigmoid: Any = FUNCTIONS["gelu_apprx_sigmoid"]
gelu_apprx_sigmoid_dx: Any = FUNCTIONS["gelu_apprx_sigmoid_dx"]
silu: Any = FUNCTIONS["silu"]
silu_dx: Any = FUNCTIONS["silu_dx"]
softplus: Any = FUNCTIONS["softplus"]
mish: Any = FUNCTIONS["mish"]
erf: Any = FUNCTIONS["erf"]
erf_dx: Any = FUNCTIONS["erf_dx"]
add: Any = FUNCTIONS["add"]
subtract: Any = FUNCTIONS["subtract"]
multiply: Any = FUNCTIONS["multiply"]
divide: Any = FUNCTIONS["divide"]
mod: Any = FUNCTIONS["mod"]
fmod: Any = FUNCTIONS["fmod"]
power: Any = FUNCTIONS["power"]
maximum: Any = FUNCTIONS["maximum"]
minimum: Any = FUNCTIONS["minimum"]
equal: Any = FUNCTIONS["equal"]
not_equal: Any = FUNCTIONS["not_equal"]
greater: Any = FUNCTIONS["greater"]
greater_equal: Any = FUNCTIONS["greater_equal"]
less: Any = FUNCTIONS["less"]
less_equal: Any = FUNCTIONS["less_equal"]
logical_and: Any = FUNCTIONS["logical_and"]
logical_or: Any = FUNCTIONS["logical_or"]
logical_xor: Any = FUNCTIONS["logical_xor"]
bitwise_and: Any = FUNCTIONS["bitwise_and"]
bitwise_or: Any = FUNCTIONS["bitwise_or"]
bitwise_xor: Any = FUNCTIONS["bitwise_xor"]
left_shift: Any = FUNCTIONS["left_shift"]
right_shift: Any = FUNCTIONS["right_shift"]
bfp16 = Limits(bfloat16)
identity = copy


def num_programs(axes: Any = None) -> int:
    """How many programs there are on an axis, on several, or in all."""
    return _num_programs(axes)


def device_print(prefix: Any, x: Any = None, *, mask: Any = None, **ignored: Any) -> None:
    """Print what a tile holds when the machine gets here."""
    from ncc.nki.language.programs import device_print as printed
    from ncc.nki.old.masks import regions
    from ncc.nki.old.results import is_tile, tile

    current("nl.device_print")
    if not is_tile(x):
        printed(prefix, x)
        return
    shown = tile(x, "nl.device_print")
    boxes = regions(mask, shown.shape, "nl.device_print")
    for box in [None] if boxes is None else boxes:
        printed(prefix, shown if box is None else shown.cut(box))


def finfo(dtype: Any) -> Limits:
    """The finite range of a float type."""
    return Limits(_dtypes.dtype_of(dtype))


def gemm_grid() -> Any:
    """The index tensors of a product's result: 128 partitions, 512 columns."""
    return mgrid[0:128, 0:512]


gemm_moving_grid = gemm_grid


def gemm_stationary_grid() -> Any:
    """The index tensors of a stationary operand: 128 partitions, 128 columns."""
    return mgrid[0:128, 0:128]


__all__ = [
    "abs",
    "add",
    "affine_range",
    "all",
    "all_reduce",
    "arange",
    "arctan",
    "atomic_rmw",
    "bfloat16",
    "bfp16",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bool_",
    "broadcast_to",
    "ceil",
    "copy",
    "cos",
    "device_print",
    "divide",
    "dropout",
    "ds",
    "empty_like",
    "equal",
    "erf",
    "erf_dx",
    "exp",
    "expand_dims",
    "finfo",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e5m2",
    "float16",
    "float32",
    "floor",
    "fmod",
    "fp32",
    "full",
    "full_like",
    "gather_flattened",
    "gelu",
    "gelu_apprx_sigmoid",
    "gelu_apprx_sigmoid_dx",
    "gelu_apprx_tanh",
    "gelu_dx",
    "gemm_grid",
    "gemm_moving_grid",
    "gemm_stationary_grid",
    "greater",
    "greater_equal",
    "hbm",
    "identity",
    "int8",
    "int16",
    "int32",
    "invert",
    "is_hbm",
    "is_on_chip",
    "is_psum",
    "is_sbuf",
    "left_shift",
    "less",
    "less_equal",
    "load",
    "load_transpose2d",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "loop_reduce",
    "matmul",
    "max",
    "maximum",
    "mean",
    "mgrid",
    "min",
    "minimum",
    "mish",
    "mod",
    "multiply",
    "nc",
    "ndarray",
    "negative",
    "no_reorder",
    "not_equal",
    "num_programs",
    "ones",
    "par_dim",
    "power",
    "private_hbm",
    "prod",
    "program_id",
    "program_ndim",
    "psum",
    "rand",
    "random_seed",
    "reciprocal",
    "relu",
    "right_shift",
    "rms_norm",
    "rsqrt",
    "sbuf",
    "sequential_range",
    "shared_constant",
    "shared_hbm",
    "shared_identity_matrix",
    "sigmoid",
    "sign",
    "silu",
    "silu_dx",
    "sin",
    "softmax",
    "softplus",
    "spmd_dim",
    "sqrt",
    "square",
    "static_cast",
    "static_range",
    "store",
    "subtract",
    "sum",
    "tan",
    "tanh",
    "tensor",
    "tfloat32",
    "tile_size",
    "transpose",
    "trunc",
    "uint8",
    "uint16",
    "uint32",
    "var",
    "where",
    "zeros",
    "zeros_like",
]


def __getattr__(name: str) -> Any:
    if name in ("float64", "int64", "uint64") and hasattr(_dtypes, name):
        return getattr(_dtypes, name)
    if name.startswith("__"):
        raise AttributeError(f"neuronxcc.nki.language has no {name}")
    hint = nearest(name, __all__)
    raise NkiAttributeError("NCC360", f"neuronxcc.nki.language has no {name}", place(), hint)
