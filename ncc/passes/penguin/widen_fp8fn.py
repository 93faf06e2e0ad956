"""Carry float8_e4m3fn values in bfloat16 on a target that has no such type.

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

Why: bfloat16 holds every value of float8_e4m3fn, so operands lose nothing; trn3 has the type and
keeps it. The input says which type the source declared, because whoever runs the program still
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

NARROW, WIDE = "float8_e4m3fn", "bfloat16"
HINT = "trn3 has the type; or convert to bf16 in the source"


def widen(tensor: Tensor) -> Tensor:
    """The tensor in the wider type; its values stay what they are."""
    if tensor.kind == "output":
        said = f"the output {tensor.name} is {NARROW}, a type that this target lacks"
        raise NccError("NCC261", said, tensor.origin.place(tensor.name, "widen-fp8fn"), HINT)
    return attrs.evolve(
        tensor,
        dtype=WIDE,
        declared=NARROW if tensor.kind == "input" else "",
        data=tensor.data and data(WIDE, tensor.data.array()),
        origin=tensor.origin.by("widen-fp8fn"),
    )


def rounds(op: TileOp, types: dict[str, str]) -> bool:
    """The op computes a value of the narrow type instead of moving one."""
    match op:
        case TileCopyOp() | TileTransposeOp():
            return False
        case TileElementwiseOp(op="copy"):
            return any(types[v.tensor] != NARROW for v in views_read(op)) or not views_read(op)
        case MatMulOp() | _:
            return True


def refusals(module: Function) -> Iterator[NccError]:
    types = {t.name: t.dtype for t in module.tensors}
    for op in tile_ops(module.body):
        if types[op.dst.tensor] == NARROW and rounds(op, types):
            said = f"{op.name} rounds its result to {NARROW}, a type that this target lacks"
            yield NccError("NCC262", said, op.origin.place(op.name, "widen-fp8fn"), HINT)


def apply(module: Function, target: Target) -> Function:
    if target.fp8fn or all(t.dtype != NARROW for t in module.tensors):
        return module
    for refusal in refusals(module):
        raise refusal
    tensors = tuple(widen(t) if t.dtype == NARROW else t for t in module.tensors)
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
