"""Tile-level Penguin written by hand: a matmul with ragged tiles, as the front end would emit it."""

from __future__ import annotations

from ncc.ir.affine import Extent, Least, affine
from ncc.ir.penguin import (
    ActivationOp,
    Axis,
    Function,
    Loop,
    MatMulOp,
    Tensor,
    TensorCopyOp,
    TensorScalarOp,
    TileCopyOp,
    TileTransposeOp,
    View,
)

Axes = tuple[Axis, ...]


def at(const=0, **terms):
    return affine(const, terms)


def extent(axis: str, tile: int, whole: int) -> Extent:
    return tile if whole % tile == 0 else Least(tile, affine(whole, {axis: -tile}))


def matmul(m=128, k=512, n=256, dtype="bfloat16", turn="dma", relu="", result="float32"):
    """out = lhs · rhs, lhs turned by `dma` or `pe`; `relu` says who rectifies: ACT or DVE."""
    outer = {
        axis: -(-size // tile) for axis, size, tile in (("m", m, 128), ("k", k, 128), ("n", n, 512))
    }
    wide = min(n, 512)
    mi = Axis("m_i", extent("m_o", 128, m))
    ki = Axis("k_i", extent("k_o", 128, k))
    ni = Axis("n_i", extent("n_o", wide, n))
    tensors = [
        Tensor("lhs", dtype, (m, k), "input", "dram"),
        Tensor("rhs", dtype, (k, n), "input", "dram"),
        Tensor("out", result, (m, n), "output", "dram"),
        Tensor("lhs_t", dtype, (outer["k"], 128, 128), home="sbuf", blocks=1),
        Tensor("rhs_t", dtype, (outer["k"], 128, wide), home="sbuf", blocks=1),
        Tensor("acc", "float32", (128, wide), home="psum"),
        Tensor("out_t", result, (128, wide), home="sbuf"),
    ]
    turned = View("lhs_t", (at(k_o=1), at(k_i=1), at(m_i=1)))
    source = View("lhs", (at(m_o=128, m_i=1), at(k_o=128, k_i=1)))
    if turn == "dma":
        loads = [TileTransposeOp("turn", turned, (ki,), (mi,), source, "dma")]
    else:
        tensors.append(Tensor("nat", dtype, (outer["k"], 128, 128), home="sbuf", blocks=1))
        tensors.append(Tensor("tp", "float32", (outer["k"], 128, 128), home="psum", blocks=1))
        natural = View("nat", (at(k_o=1), at(m_i=1), at(k_i=1)))
        across = View("tp", (at(k_o=1), at(k_i=1), at(m_i=1)))
        loads = [
            TileCopyOp("load_l", natural, (mi,), (ki,), source),
            TileTransposeOp("turn", across, (ki,), (mi,), natural, "pe"),
            TensorCopyOp("back", turned, (ki,), (mi,), across, engines=("DVE", "Activation")),
        ]
    moving = View("rhs_t", (at(k_o=1), at(k_i=1), at(n_i=1)))
    right = View("rhs", (at(k_o=128, k_i=1), at(n_o=512, n_i=1)))
    loads.append(TileCopyOp("load_r", moving, (ki,), (ni,), right))
    acc, out_t = View("acc", (at(m_i=1), at(n_i=1))), View("out_t", (at(m_i=1), at(n_i=1)))
    product = MatMulOp("mm", acc, (mi,), (ni,), turned, moving, (ki,), ("k_o",))
    out = View("out", (at(m_o=128, m_i=1), at(n_o=512, n_i=1)))
    body = (
        Loop("k_o", outer["k"], "parallel", tuple(loads)),
        Loop("k_o", outer["k"], "accumulate", (product,)),
        evict(relu, out_t, acc, mi, ni),
        TileCopyOp("store", out, (mi,), (ni,), out_t),
    )
    across_n = Loop("n_o", outer["n"], "parallel", body)
    return Function("dot", tuple(tensors), (Loop("m_o", outer["m"], "parallel", (across_n,)),))


def evict(relu: str, out_t: View, acc: View, mi: Axis, ni: Axis):
    if relu == "ACT":
        return ActivationOp("evict", out_t, (mi,), (ni,), acc, "Relu", engines=("Activation",))
    if relu == "DVE":
        return TensorScalarOp("evict", out_t, (mi,), (ni,), acc, "max", 0.0, engines=("DVE",))
    return TensorCopyOp("evict", out_t, (mi,), (ni,), acc, engines=("DVE", "Activation"))
