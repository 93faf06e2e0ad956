"""Turn whole-tensor ops into loops over tiles that fit the machine.

Before:
    from ncc.penguin import *
    with function("layer") as f:
        x = tensor("x", "float32", (300, 70), kind="input", home="dram")
        w = tensor("w", "float32", (300, 600), kind="input", home="dram")
        y = tensor("y", "float32", (70, 600), kind="output", home="dram")
        m, n, k = axis("m n k")
        TensorContractOp("y", y[m, n], x[k, m], w[k, n], axes=axes(m=70, n=600, k=300),
            contract_axes=("k",), lhs_free_axes=("m",), rhs_free_axes=("n",), partition=("m",),
            group=0, cuts=(Cut("contract", loops=("k_o",), tiles=("k_i",), axis="k", tile=128),
            Cut("stationary", loops=(), tiles=("m",)),
            Cut("moving", loops=("n_o",), tiles=("n_i",), axis="n", tile=512)))

After:
    from ncc.penguin import *
    with function("layer") as f:
        x = tensor("x", "float32", (300, 70), kind="input", home="dram")
        w = tensor("w", "float32", (300, 600), kind="input", home="dram")
        y = tensor("y", "float32", (70, 600), kind="output", home="dram")
        w_t = tensor("w_t", "float32", (3, 128, 600), home="sbuf", blocks=1)
        x_t = tensor("x_t", "float32", (3, 128, 70), home="sbuf", blocks=1)
        y_acc = tensor("y_acc", "float32", (2, 70, 512), home="sbuf", blocks=1, ring=True)
        k_i, m, n_w, n_i = axis("k_i m n_w n_i")
        for k_o in loop("k_o", 3, "parallel"):
            TileCopyOp("load_x", x_t[k_o, k_i, m], par=axes(k_i=min(128, 300-128*k_o)),
                free=axes(m=70), src=x[k_i+128*k_o, m])
            TileCopyOp("load_w", w_t[k_o, k_i, n_w], par=axes(k_i=min(128, 300-128*k_o)),
                free=axes(n_w=600), src=w[k_i+128*k_o, n_w])
        for n_o in loop("n_o", 2, "parallel"):
            for k_o in loop("k_o", 3, "accumulate"):
                MatMulOp("y", y_acc[(n_o)%2, m, n_i], par=axes(m=70),
                    free=axes(n_i=min(512, 600-512*n_o)), stationary=x_t[k_o, k_i, m],
                    moving=w_t[k_o, k_i, n_i+512*n_o], contract=axes(k_i=min(128, 300-128*k_o)),
                    accumulate=("k_o",))
            TileCopyOp("store_y", y[m, n_i+512*n_o], par=axes(m=70),
                free=axes(n_i=min(512, 600-512*n_o)), src=y_acc[(n_o)%2, m, n_i])

Why: from here on the program says what moves where, and when. Each nest walks its batch axes, then
panels of moving columns, then rows of stationary tiles, then the tiles of a panel, and innermost the
contraction, whose loop accumulates; a bias or a relu is done on the result tile at once, and the
tile is stored. How much of an operand stays on chip is decided once a nest, by `ncc.ir.tile_reuse`:
a panel as wide as fits, so that rows pass by it without loading it again; the stationary tiles of
a row, or of all rows; and what does not fit comes step by step. Buffers that are filled again take
turns in rings. A tensor at home in SBUF is read where it lies when its partitions suit the reader;
when they do not, the nests are planned anew with that tensor in DRAM.
"""

from __future__ import annotations

import attrs

from ncc.errors import NccError
from ncc.ir.contract_nest import ContractNest
from ncc.ir.nests import Nest, plan
from ncc.ir.penguin import (
    Function,
    Statement,
    Tensor,
    TensorContractOp,
    TensorOp,
)
from ncc.ir.penguin_print import kernels_of
from ncc.ir.penguin_views import sizes_of, views_read
from ncc.ir.tile_builder import Builder, Site, sums
from ncc.ir.tile_epilogue import Epilogue
from ncc.ir.tile_layouts import Misfit, layout
from ncc.ir.tile_walk import apart, tile_ops
from ncc.ir.tiling import put_sum, walk
from ncc.passes.base import define
from ncc.target import Target


def apply(module: Function, target: Target) -> Function:
    if not any(isinstance(op, TensorOp) for op in module.body):
        return module
    to_dram: frozenset[str] = frozenset()
    while True:
        try:
            return emit(module, target, to_dram)
        except Misfit as found:
            if found.tensor in to_dram:
                said = f"{found.tensor} cannot be cut into tiles that its readers can use"
                place = module.tensor(found.tensor).origin.place(found.tensor, "emit-tiles")
                raise NccError("NCC263", said, place) from None
            to_dram |= {found.tensor}


def emit(module: Function, target: Target, to_dram: frozenset[str]) -> Function:
    """The function in tiles, with the tensors of `to_dram` kept in DRAM."""
    build = Builder(module, target, plan(module, to_dram))
    body: list[Statement] = []
    for number, nest in enumerate(build.plan.nests):
        body += [kernel for at, kernel in build.plan.kernels if at == number]
        place_tensors(build, nest)
        body += emit_nest(build, nest)
    body += [kernel for at, kernel in build.plan.kernels if at == len(build.plan.nests)]
    tensors = tensors_of(module, build, body)
    return attrs.evolve(module, tensors=tensors, body=apart(tuple(body), tensors), pags=(), pgs=())


def place_tensors(build: Builder, nest: Nest) -> None:
    """Give the whole tensors that this nest leaves in SBUF their places there."""
    anchor = nest.anchor
    role = "stationary" if isinstance(anchor, TensorContractOp) else "partition"
    cut = next(cut for cut in anchor.cuts if cut.role == role)
    for op in nest.ops:
        name = op.dst.tensor
        if name not in build.plan.kept and build.plan.home[name] == "sbuf":
            view = attrs.evolve(anchor.dst, tensor=name)
            build.layouts[name] = layout(view, build.tensors[name].shape, cut)


def emit_nest(build: Builder, nest: Nest) -> list[Statement]:
    if isinstance(nest.anchor, TensorContractOp):
        return ContractNest(build, nest, nest.anchor).statements()
    return tile_nest(build, nest)


def tile_nest(build: Builder, nest: Nest) -> list[Statement]:
    """A nest without a contraction: every tile is read, computed and stored once."""
    op = nest.anchor
    cuts = {cut.role: walk(cut, sizes_of(op)) for cut in op.cuts}
    par, free = cuts["partition"], cuts["free"]
    build.ring = 2
    top = Site()
    with top.loops((*free.trips, *par.trips), "parallel", op.origin.by("emit-tiles")) as site:
        where = {**par.where, **free.where}
        index = tuple(put_sum(i, where) for i in sums(op.dst))
        Epilogue(build, site, par.tiles, free.tiles, index).run(nest.ops, {})
    return top.body


def tensors_of(module: Function, build: Builder, body: list[Statement]) -> tuple[Tensor, ...]:
    """Inputs and outputs, what the tiles use of the other tensors, and the tiles' buffers."""
    used = {v.tensor for op in tile_ops(tuple(body)) for v in (op.dst, *views_read(op))}
    used -= {t.name for t in build.buffers}
    used |= {tensor for one in kernels_of(module) for _, tensor in (*one.args, *one.outs)}
    found: list[Tensor] = []
    for tensor in module.tensors:
        name = tensor.name
        if name in build.layouts:
            place = build.layouts[name]
            found.append(
                attrs.evolve(
                    tensor, shape=place.storage, blocks=len(place.outer), partition_dims=()
                )
            )
        elif tensor.kind in ("input", "output") or name in used:
            found.append(attrs.evolve(tensor, home="dram", partition_dims=()))
    return (*found, *build.buffers)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    needs=("contractions-are-tiled", "only-contraction-axes-accumulate"),
    gives=("tiles-fit-the-machine",),
    ends=(  # what was true of whole-tensor ops, of which none is left
        "every-op-is-used",
        "contraction-axes-are-last",
        "requirements-are-stated",
        "dimensions-are-grouped",
        "layouts-are-solved",
        "edges-agree",
        "groups-are-built",
        "partition-tiles-fit",
        "free-tiles-fit",
        "contractions-are-tiled",
    ),
    exact=False,
    after={"tile-contract": "loops are made of the cuts"},
    real="MacroGeneration",
    job="F2",
    sure="inferred",
)
