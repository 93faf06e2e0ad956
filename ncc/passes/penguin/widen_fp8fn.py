"""Carry an e4m3 type that the target lacks in bfloat16: float8_e4m3fn before trn3, float8e4 on it.

Before:
    from ncc.penguin import *
    with function("layer") as f:
        x = tensor("x", "float8_e4m3fn", (8, 4), kind="input", home="dram")
        x_t = tensor("x_t", "float8_e4m3fn", (8, 4), home="sbuf")
        k, m = axis("k m")
        TileCopyOp("load_x", x_t[k, m], par=axes(k=8), free=axes(m=4), src=x[k, m])

After:
    from ncc.penguin import *
    with function("layer") as f:
        x = tensor("x", "bfloat16", (8, 4), kind="input", home="dram", declared="float8_e4m3fn")
        x_t = tensor("x_t", "bfloat16", (8, 4), home="sbuf")
        k, m = axis("k m")
        TileCopyOp("load_x", x_t[k, m], par=axes(k=8), free=axes(m=4), src=x[k, m])

Why: bfloat16 holds every value of both e4m3 types, so operands lose nothing. A machine has one tag
for them: it means float8e4 on trn1 and trn2, float8_e4m3fn on trn3. The input says which type the source declared, because whoever runs the program still
hands over 8-bit values. A value that the program itself would round to that type has no exact
stand-in, and is refused by name.
"""

from __future__ import annotations

from collections.abc import Iterator

import attrs

from ncc.errors import NccError
from ncc.ir.data import data
from ncc.ir.penguin import (
    Function,
    MatMulOp,
    Tensor,
    TileCopyOp,
    TileElementwiseOp,
    TileOp,
    TileTransposeOp,
)
from ncc.ir.penguin_views import views_read
from ncc.ir.tile_walk import tile_ops
from ncc.passes.base import define
from ncc.target import Target

WIDE = "bfloat16"
HINTS = {
    "float8_e4m3fn": "trn3 has the type; or convert to bf16 in the source",
    "float8e4": "trn1 and trn2 have the type; or convert to bf16 in the source",
}


def widen(tensor: Tensor) -> Tensor:
    """The tensor in the wider type; its values stay what they are."""
    if tensor.kind == "output":
        said = f"the output {tensor.name} is {tensor.dtype}, a type that this target lacks"
        place = tensor.origin.place(tensor.name, "widen-fp8fn")
        raise NccError("NCC261", said, place, HINTS[tensor.dtype])
    return attrs.evolve(
        tensor,
        dtype=WIDE,
        declared=tensor.dtype if tensor.kind == "input" else "",
        data=tensor.data and data(WIDE, tensor.data.array()),
        origin=tensor.origin.by("widen-fp8fn"),
    )


def rounds(op: TileOp, types: dict[str, str], narrow: str) -> bool:
    """The op computes a value of the narrow type instead of moving one."""
    match op:
        case TileCopyOp() | TileTransposeOp():
            return False
        case TileElementwiseOp(op="copy"):
            return any(types[v.tensor] != narrow for v in views_read(op)) or not views_read(op)
        case MatMulOp() | _:
            return True


def refusals(module: Function, narrow: str) -> Iterator[NccError]:
    types = {t.name: t.dtype for t in module.tensors}
    for op in tile_ops(module.body):
        if types[op.dst.tensor] == narrow and rounds(op, types, narrow):
            said = f"{op.name} rounds its result to {narrow}, a type that this target lacks"
            yield NccError("NCC262", said, op.origin.place(op.name, "widen-fp8fn"), HINTS[narrow])


def apply(module: Function, target: Target) -> Function:
    narrow = target.lacked_e4m3
    if all(t.dtype != narrow for t in module.tensors):
        return module
    for refusal in refusals(module, narrow):
        raise refusal
    tensors = tuple(widen(t) if t.dtype == narrow else t for t in module.tensors)
    return attrs.evolve(module, tensors=tensors)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    gives=("types-are-the-targets",),
    after={"set-precision": "casts between the two e4m3 types come first"},
    job="",
    sure="ours",
)
