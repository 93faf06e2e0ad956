"""`nki.language`: tensors, dtypes, loops, and functions on tiles.

A function allocates its result and records the `nki.isa` instructions that compute it. Functions
that are operators also serve as `op=` of an instruction: nisa.tensor_tensor(dst, a, b, op=nl.add).
"""

from __future__ import annotations

from typing import Any

from ncc.errors import nearest
from ncc.nki import dtypes as _dtypes
from ncc.nki.dtypes import (
    bfloat16,
    bool_,
    float4_e2m1fn_x4,
    float8_e4m3,
    float8_e4m3fn,
    float8_e4m3fn_x4,
    float8_e5m2,
    float8_e5m2_x4,
    float8_e8m0fnu,
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
from ncc.nki.language.elementwise import (
    FUNCTIONS,
    fmod,
    invert,
    logical_not,
    negative,
    prelu,
    reciprocal,
)
from ncc.nki.language.folds import all_ as all
from ncc.nki.language.folds import average, mean, prod, rms_norm, softmax, var
from ncc.nki.language.folds import max_ as max
from ncc.nki.language.folds import min_ as min
from ncc.nki.language.folds import sum_ as sum
from ncc.nki.language.loops import (
    affine_range,
    dynamic_range,
    fori_loop,
    no_reorder,
    sequential_range,
    static_range,
    while_loop,
)
from ncc.nki.language.loops import range_ as range
from ncc.nki.language.objects import NKIObject
from ncc.nki.language.programs import device_print, num_programs, program_id, program_ndim
from ncc.nki.language.rounding import ceil, cos, floor, sin, tan, trunc
from ncc.nki.language.tiles import (
    broadcast_to,
    bypass,
    copy,
    dropout,
    expand_dims,
    gather_flattened,
    load,
    load_transpose2d,
    matmul,
    rand,
    random_seed,
    store,
    transpose,
    where,
)
from ncc.nki.memory import (
    MemoryRegion,
    empty_like,
    full,
    hbm,
    is_hbm,
    is_on_chip,
    is_psum,
    is_sbuf,
    ndarray,
    ones,
    private_hbm,
    psum,
    sbuf,
    shared_constant,
    shared_hbm,
    shared_identity_matrix,
    tile_size,
    zeros,
    zeros_like,
)
from ncc.nki.registers import NkiScalar, VirtualRegister
from ncc.nki.tensor import NkiTensor, ds
from ncc.nki.trace import NkiAttributeError, place

bool = bool_
abs: Any = FUNCTIONS["abs"]
square: Any = FUNCTIONS["square"]
exp: Any = FUNCTIONS["exp"]
log: Any = FUNCTIONS["log"]
sqrt: Any = FUNCTIONS["sqrt"]
rsqrt: Any = FUNCTIONS["rsqrt"]
tanh: Any = FUNCTIONS["tanh"]
sigmoid: Any = FUNCTIONS["sigmoid"]
relu: Any = FUNCTIONS["relu"]
sign: Any = FUNCTIONS["sign"]
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
arctan: Any = FUNCTIONS["arctan"]
add: Any = FUNCTIONS["add"]
subtract: Any = FUNCTIONS["subtract"]
multiply: Any = FUNCTIONS["multiply"]
divide: Any = FUNCTIONS["divide"]
mod: Any = FUNCTIONS["mod"]
power: Any = FUNCTIONS["power"]
maximum: Any = FUNCTIONS["maximum"]
minimum: Any = FUNCTIONS["minimum"]
abs_max: Any = FUNCTIONS["abs_max"]
abs_min: Any = FUNCTIONS["abs_min"]
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

__all__ = [
    "MemoryRegion",
    "NKIObject",
    "NkiScalar",
    "NkiTensor",
    "VirtualRegister",
    "abs",
    "abs_max",
    "abs_min",
    "add",
    "affine_range",
    "all",
    "arctan",
    "average",
    "bfloat16",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "bool",
    "bool_",
    "broadcast_to",
    "bypass",
    "ceil",
    "copy",
    "cos",
    "device_print",
    "divide",
    "dropout",
    "ds",
    "dynamic_range",
    "empty_like",
    "equal",
    "erf",
    "erf_dx",
    "exp",
    "expand_dims",
    "float4_e2m1fn_x4",
    "float8_e4m3",
    "float8_e4m3fn",
    "float8_e4m3fn_x4",
    "float8_e5m2",
    "float8_e5m2_x4",
    "float8_e8m0fnu",
    "float16",
    "float32",
    "floor",
    "fmod",
    "fori_loop",
    "fp32",
    "full",
    "gather_flattened",
    "gelu",
    "gelu_apprx_sigmoid",
    "gelu_apprx_sigmoid_dx",
    "gelu_apprx_tanh",
    "gelu_dx",
    "greater",
    "greater_equal",
    "hbm",
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
    "matmul",
    "max",
    "maximum",
    "mean",
    "min",
    "minimum",
    "mish",
    "mod",
    "multiply",
    "ndarray",
    "negative",
    "no_reorder",
    "not_equal",
    "num_programs",
    "ones",
    "power",
    "prelu",
    "private_hbm",
    "prod",
    "program_id",
    "program_ndim",
    "psum",
    "rand",
    "random_seed",
    "range",
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
    "sqrt",
    "square",
    "static_range",
    "store",
    "subtract",
    "sum",
    "tan",
    "tanh",
    "tfloat32",
    "tile_size",
    "transpose",
    "trunc",
    "uint8",
    "uint16",
    "uint32",
    "var",
    "where",
    "while_loop",
    "zeros",
    "zeros_like",
]

# names of the older API, and what today's kernels write
OLDER = {
    "arange": "slices, or a view such as .ap([[step, count], ...])",
    "mgrid": "slices, or a view such as .ap([[step, count], ...])",
    "par_dim": "a Python list of tiles in the place of block dimensions",
    "atomic_rmw": "nisa.dma_compute, which adds",
    "loop_reduce": "an accumulation of its own",
    "all_reduce": "nki.collectives.all_reduce",
    "spmd_dim": "kernel[cores](...)",
    "nc": "kernel[cores](...)",
    "static_cast": "nl.copy(x, dtype=...)",
    "gemm_grid": "kernel[cores](...)",
    "finfo": "nl.fp32.min and nl.fp32.max",
    "tensor_copy": "nisa.tensor_copy",
    "zeros_psum": "nl.zeros(shape, dtype, buffer=nl.psum)",
}


def __getattr__(name: str) -> Any:
    if name in ("float64", "int64", "uint64") and hasattr(_dtypes, name):
        return getattr(_dtypes, name)
    if name.startswith("__"):
        raise AttributeError(f"nki.language has no {name}")
    if name in OLDER:
        said = f"nl.{name} is of the older API (neuronxcc.nki), and this kernel imports nki"
        raise NkiAttributeError("NCC360", said, place(), f"write {OLDER[name]}")
    hint = nearest(name, __all__) or "ncc explain NCC360 lists where the names are"
    raise NkiAttributeError("NCC360", f"nki.language has no {name}", place(), hint)
