"""Penguin: tensors and named axes; whole-tensor ops first, loops over tiles after.

Two families share the level and never mix in one function:

*Tensor level* (from mhlo-to-penguin to tile-contract). A function is a list of whole-tensor ops,
each with its own iteration axes. A view indexes every dimension of a tensor by one axis (or by 0
where the dimension is 1 or is repeated). `TensorContractOp` is the contraction here. The analyses
write what they find into the fields: `requires`, `swap_operands`, `partition`, `group`, `cuts`.

*Tile level* (from emit-tiles on). A function is a nest of loops over tile ops. A view indexes a
tensor by affine expressions of loop variables and of the op's own tile axes: `par` (walked over
partitions, first one slowest) and `free` (walked inside a partition). `MatMulOp` is the contraction
here: one pass of the PE array. The two are different classes and are never confused.

A kernel written by hand enters as one statement: `KernelCall`, until nki-trace runs its Python;
`KernelNode` after. It stands in no loop, at both levels beside the ops, and what it takes and gives
lies in DRAM. The statements before a kernel run before it, and those after it after.

Names of tensors, axes and ops are Python identifiers; dtypes are BIR's names.
"""

from __future__ import annotations

from typing import Protocol

import attrs

from ncc.ir.affine import Affine, Extent, Index
from ncc.ir.core import NOWHERE, Origin
from ncc.ir.data import Data
from ncc.ir.kernel import Kernel
from ncc.target import Target


@attrs.frozen
class Axis:
    """A named iteration axis. At tile level the extent may be a Least: a tile that ends early."""

    name: str
    extent: Extent


@attrs.frozen
class Tensor:
    """A tensor of the function.

    `home` says where it lives: `dram`; `sbuf`, a whole tensor that stays on chip between the loop
    nests that write and read it; `stream`, which exists only tile by tile inside the nests that
    read it (tensor level only); `psum` (tile level only); `unplaced` before mark-nonlocal.
    A tensor in `sbuf` or `psum` has, at tile level, `blocks` leading dimensions that choose one of
    its locations, then the partition dimension (at most 128), then free dimensions. `ring` marks a
    tile buffer whose locations are written again and again; its `blocks` dimensions are indexed
    modulo their extents or by loop variables.
    """

    name: str
    dtype: str
    shape: tuple[int, ...]
    kind: str = "internal"  # input, output, const, internal
    home: str = "unplaced"
    blocks: int = 0
    ring: bool = False
    data: Data | None = None  # of a const
    declared: str = ""  # an input's dtype in the source when `dtype` is a wider stand-in for it
    origin: Origin = attrs.field(default=NOWHERE, eq=False)
    # of a whole tensor in `sbuf`: the dimensions on its partitions, slowest first; the others lie
    # inside a partition, row-major
    partition_dims: tuple[int, ...] = attrs.field(default=(), kw_only=True)


@attrs.frozen
class View:
    """Elements of a tensor: one index expression a dimension."""

    tensor: str
    index: tuple[Index, ...]


Operand = View | float  # a scalar operand is a plain float


@attrs.frozen
class Cut:
    """One axis list of an op, cut at a tile (cut_axes of the passes reference, 3.10).

    `axis` is split into `outer` (loops) and `inner` (in the tile) at `tile` elements; the last tile
    may be shorter. `loops` are the axes that stay outside, slowest first, `outer` among them;
    `tiles` those inside, slowest first, `inner` among them. Without a split `axis` is empty.
    `role` names the list: `partition` or `free` of an elementwise op or a transpose; `contract`,
    `stationary`, `moving` of a contraction.
    """

    role: str
    loops: tuple[str, ...]
    tiles: tuple[str, ...]
    axis: str = ""
    tile: int = 0


# ---- tensor level -------------------------------------------------------------------------------


@attrs.frozen
class TensorContractOp:
    """dst[batch, lhs_free, rhs_free] = Σ over contract_axes of lhs · rhs, whole tensors.

    `swap_operands` False: lhs is stationary, and its free axes are the result's partitions; True:
    rhs. A list that has no axis in the source gets one of extent 1, which indexes no dimension.
    """

    name: str
    dst: View
    lhs: View
    rhs: View
    axes: tuple[Axis, ...]
    contract_axes: tuple[str, ...]
    lhs_free_axes: tuple[str, ...]
    rhs_free_axes: tuple[str, ...]
    batch_axes: tuple[str, ...] = ()
    swap_operands: bool = False
    requires: tuple[
        tuple[str, tuple[str, ...]], ...
    ] = ()  # (operand, axes that must be partitions)
    partition: tuple[str, ...] = ()  # partition axes of dst, slowest first
    group: int = -1  # the partition group's loop nest
    cuts: tuple[Cut, ...] = ()
    origin: Origin = attrs.field(default=NOWHERE, eq=False)


@attrs.frozen
class ElementwiseOp:
    """dst = op(srcs), element by element: add, maximum, copy (which also converts).

    A source that lacks an axis of dst is repeated along it.
    """

    name: str
    op: str
    dst: View
    srcs: tuple[Operand, ...]
    axes: tuple[Axis, ...]
    requires: tuple[tuple[str, tuple[str, ...]], ...] = ()
    partition: tuple[str, ...] = ()
    group: int = -1
    cuts: tuple[Cut, ...] = ()
    origin: Origin = attrs.field(default=NOWHERE, eq=False)


@attrs.frozen
class TensorTransposeOp:
    """dst is src with `partition` axes on partitions instead of where src has them.

    `kind`: `dma` (while it is loaded), `pe` (by the PE array), `element` (a load element by
    element, the general and slow way).
    """

    name: str
    dst: View
    src: View
    axes: tuple[Axis, ...]
    kind: str
    partition: tuple[str, ...] = ()  # of dst
    src_partition: tuple[str, ...] = ()  # of src; empty when src is in DRAM
    group: int = -1
    cuts: tuple[Cut, ...] = ()
    origin: Origin = attrs.field(default=NOWHERE, eq=False)


TensorOp = TensorContractOp | ElementwiseOp | TensorTransposeOp


# ---- tile level ---------------------------------------------------------------------------------


@attrs.frozen
class Loop:
    """Run the body for axis = 0, 1, ..., trips − 1.

    `kind`: `parallel` (iterations in any order), `sequential`, or `accumulate` (a contraction's
    loop: its matmuls form one accumulation group). Prints as `for m_o in loop(4, 'parallel'):`.
    """

    axis: str
    trips: int
    kind: str
    body: tuple[Statement, ...]
    origin: Origin = attrs.field(default=NOWHERE, eq=False)


@attrs.frozen
class TileOp:
    """What every tile op has: where it writes, and the axes of one tile.

    `par` and `free` are the axes of the result's tile: `par` over partitions, `free` inside one.
    """

    name: str
    dst: View
    par: tuple[Axis, ...]
    free: tuple[Axis, ...]
    engines: tuple[str, ...] = attrs.field(
        default=(), kw_only=True
    )  # who may run it, after select-insts
    origin: Origin = attrs.field(default=NOWHERE, eq=False, kw_only=True)


@attrs.frozen
class TileCopyOp(TileOp):
    """dst = src, between any two memories; the type may change on an engine, never in a DMA.

    Where the two sides order their axes differently a DMA walks element by element.
    """

    src: View


@attrs.frozen
class TileTransposeOp(TileOp):
    """dst[par, free] = src, which has `free` on its partitions (or rows, in DRAM), `par` inside.

    `kind`: `dma` from DRAM; `pe` from SBUF, through PSUM.
    """

    src: View
    kind: str


@attrs.frozen
class TileElementwiseOp(TileOp):
    """dst = op(srcs) on one tile; op level, gone after select-insts."""

    op: str
    srcs: tuple[Operand, ...]


@attrs.frozen
class MatMulOp(TileOp):
    """One pass of the PE array: dst[par, free] += Σ over `contract` of stationary · moving.

    `par` are the stationary operand's free axes (at most 128), `free` the moving operand's (at most
    512), `contract` the partitions of both (at most 128). `accumulate` names the loops whose
    iterations add into one result. `outputs` of the real op is `dst`.
    """

    stationary: View
    moving: View
    contract: tuple[Axis, ...]
    accumulate: tuple[str, ...] = ()
    perf_mode: str = "none"
    tile_position: tuple[int, ...] = ()
    tile_size: tuple[int, ...] = ()


@attrs.frozen
class MatMulMXOp(MatMulOp):
    """The MX sibling exists by name; every pass refuses it until the formats are there."""


@attrs.frozen
class MatMulSparseOp(MatMulOp):
    """The sparse sibling exists by name; every pass refuses it."""


@attrs.frozen
class ActivationOp(TileOp):
    """dst = func(scale · src + bias); bias is a float, or a column with one value a partition."""

    src: View
    func: str  # Identity, Copy, Relu, ... (BIR reference 9.4)
    scale: float = 1.0
    bias: Operand = 0.0


@attrs.frozen
class TensorScalarOp(TileOp):
    """dst = (src op0 operand0) op1 operand1; an operand is a float or a column; op1 may be bypass.

    `reverse0` swaps the two arguments of the first step.
    """

    src: View
    op0: str  # add, max, ... (BIR reference 9.2)
    operand0: Operand
    reverse0: bool = False
    op1: str = "bypass"
    operand1: Operand = 0.0


@attrs.frozen
class TensorTensorOp(TileOp):
    """dst = src0 op src1."""

    op: str
    src0: View
    src1: View


@attrs.frozen
class TensorCopyOp(TileOp):
    """dst = src on an engine; converts when the types differ."""

    src: View


@attrs.frozen
class TileMemsetOp(TileOp):
    """dst = one value everywhere."""

    value: float


# ---- kernels ------------------------------------------------------------------------------------


class Traceable(Protocol):
    """A kernel with its arguments bound: running its Python gives what each core does."""

    def trace(self, target: Target) -> tuple[Kernel, ...]: ...


@attrs.frozen
class KernelCall:
    """A call of a kernel whose Python has not run yet; gone after nki-trace.

    `args` are (buffer of a parameter, tensor), `outs` are (buffer that is written, tensor), both in
    the kernel's order. A parameter that the kernel writes stands in both, with two tensors: the
    value that goes in and the value that comes out. A source that is a `Request` prints and reads
    back; one that came from a user's call is a live object, and its text only names it.
    """

    name: str
    source: Traceable
    args: tuple[tuple[str, str], ...]
    outs: tuple[tuple[str, str], ...]
    form: str = "bir"  # how the body travels through penguin-to-bir: bir or klir
    origin: Origin = attrs.field(default=NOWHERE, eq=False)


@attrs.frozen
class KernelNode:
    """What a kernel's Python recorded, one body a core; every core runs its own on these tensors.

    `kind`: `external` (a call of the user's kernel) or `internal` (a kernel that the compiler put
    in itself). `sealed` after nki-seal: nothing may change inside any more.
    """

    name: str
    bodies: tuple[Kernel, ...]
    args: tuple[tuple[str, str], ...]
    outs: tuple[tuple[str, str], ...]
    kind: str = "external"
    form: str = "bir"
    sealed: bool = False
    origin: Origin = attrs.field(default=NOWHERE, eq=False)


Statement = Loop | TileOp | TensorOp | KernelCall | KernelNode


@attrs.frozen
class Function:
    """The module: one function. Inputs and outputs are tensors of that kind, in parameter and
    result order; `pags` and `pgs` are what build-pags and build-pgs found."""

    name: str
    tensors: tuple[Tensor, ...]
    body: tuple[Statement, ...]
    pags: tuple[tuple[str, ...], ...] = ()  # groups of `tensor.dim` that are partitioned together
    pgs: tuple[
        tuple[int, tuple[str, ...], tuple[str, ...]], ...
    ] = ()  # (number, ops, partition axes)

    def tensor(self, name: str) -> Tensor:
        """The tensor called `name`; KeyError when there is none. Linear: build a dict for many."""
        for tensor in self.tensors:
            if tensor.name == name:
                return tensor
        raise KeyError(name)


def axis_index(name: str) -> Affine:
    """The index expression that is one axis."""
    return Affine(0, ((name, 1),))
