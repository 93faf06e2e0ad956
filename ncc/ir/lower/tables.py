"""What the lowering of kernels looks up: BIR's words for a kernel's memories, kinds and engines."""

from __future__ import annotations

from ncc.ir.data import FLOATS, size_of

ME = "lower-kernel"
MEMORY = {"hbm": "DRAM", "shared_hbm": "DRAM", "sbuf": "SB", "psum": "PSUM"}
KINDS = {
    "input": "ExternalInput",
    "inout": "ExternalOutput",
    "output": "ExternalOutput",
    "const": "Const",
    "internal": "Internal",
}
ENGINES = {"vector": "DVE", "scalar": "Activation", "gpsimd": "Pool", "tensor": "PE"}
MOVES = frozenset(("dma_copy", "dma_transpose", "tensor_copy", "nc_stream_shuffle"))
MOST_TURNS = 1 << 12  # turns that are unrolled; a longer loop runs on the machine


def cell(dtype: str) -> str:
    """The 4-byte type of a PSUM cell that holds every value of `dtype`."""
    if size_of(dtype) >= 4:
        return dtype
    return "float32" if dtype in FLOATS else "uint32" if dtype.startswith("u") else "int32"
