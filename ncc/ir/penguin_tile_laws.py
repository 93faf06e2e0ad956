"""Facts of tiles, from cut-partition on: what each pass of tiling promises.

A fact about cuts is about whole-tensor ops and ends where emit-tiles replaces them; a fact about
tiles begins there. Only that nothing but contraction axes accumulates is said of both.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from ncc.errors import NccError, listed
from ncc.ir.core import Law
from ncc.ir.penguin import (
    ActivationOp,
    Cut,
    Function,
    Loop,
    MatMulOp,
    TensorContractOp,
    TensorCopyOp,
    TensorOp,
    TensorScalarOp,
    TensorTensorOp,
    TensorTransposeOp,
    TileCopyOp,
    TileElementwiseOp,
    TileMemsetOp,
    TileOp,
    TileTransposeOp,
    View,
)
from ncc.ir.penguin_views import sizes_of, views_read, whole_ops
from ncc.ir.tile_walk import nested, tile_ops
from ncc.ir.tiling import axes_written, inner_of, outer_of, partition_of, size
from ncc.target import Target

LONGEST = 512  # matmuls in one accumulation group
ON_ENGINES = (ActivationOp, TensorScalarOp, TensorTensorOp, TensorCopyOp, TileMemsetOp)
Complaints = Iterator[NccError]


def fault(code: str, op: TensorOp | TileOp, said: str, hint: str = "") -> NccError:
    return NccError(code, said, op.origin.place(op.name), hint)


# ---- cuts ----------------------------------------------------------------------------------------


def cut_faults(op: TensorOp, role: str, names: Sequence[str], budget: int) -> Complaints:
    """Complaints about the cut of one axis list: it must cover the list and fit the budget."""
    cut = next((cut for cut in op.cuts if cut.role == role), None)
    if cut is None:
        yield fault("NCC260", op, f"its {role} axes are not cut")
        return
    sizes = sizes_of(op)
    if covered(cut) != tuple(names):
        found, wanted = listed(covered(cut)), listed(names)
        said = f"the loops and tiles of its {role} cut walk {found}, and should walk {wanted}"
        yield fault("NCC260", op, said, "each axis once, slowest first; a split one as _o and _i")
        return
    split = {inner_of(cut.axis): cut.tile} if cut.axis else {}
    if cut.axis and cut.tile < 1:
        yield fault("NCC260", op, f"its {role} tile has {cut.tile} elements")
    elements = math.prod(split.get(name) or sizes[name] for name in cut.tiles)
    if elements > budget:
        said = f"its {role} tile has {elements} elements, and {budget} fit"
        yield fault("NCC260", op, said, f"cut {listed(names)} so that a tile has at most {budget}")


def covered(cut: Cut) -> tuple[str, ...]:
    """The axes that a cut walks, slowest first, a split one named once."""
    if not cut.axis:
        return (*cut.loops, *cut.tiles)
    if cut.loops[-1:] != (outer_of(cut.axis),) or cut.tiles[:1] != (inner_of(cut.axis),):
        return (*cut.loops, *cut.tiles)
    return (*cut.loops[:-1], cut.axis, *cut.tiles[1:])


def partition_tiles_fit(module: Function, target: Target) -> Complaints:
    for op in whole_ops(module):
        contracts = isinstance(op, TensorContractOp)
        role, names = ("contract", op.contract_axes) if contracts else ("partition", op.partition)
        yield from cut_faults(op, role, names, target.partitions)


def free_tiles_fit(module: Function, target: Target) -> Complaints:
    bank = min(target.moving_free, target.psum_bank_bytes // 4)
    for op in whole_ops(module):
        if isinstance(op, TensorContractOp):
            names = op.lhs_free_axes if op.swap_operands else op.rhs_free_axes
            yield from cut_faults(op, "moving", names, bank)
        else:
            names = tuple(name for name in axes_written(op) if name not in op.partition)
            turns = isinstance(op, TensorTransposeOp) and op.kind != "element"
            yield from cut_faults(op, "free", names, target.partitions if turns else bank)


def contractions_are_tiled(module: Function, target: Target) -> Complaints:
    for op in whole_ops(module):
        if isinstance(op, TensorContractOp):
            yield from cut_faults(op, "stationary", partition_of(op), target.stationary_free)


# ---- loops and tiles -----------------------------------------------------------------------------


def only_contraction_axes_accumulate(module: Function, target: Target) -> Complaints:
    """Loops inside an accumulation group run over contraction axes; none moves the result."""
    for op in whole_ops(module):
        adding = [n for cut in op.cuts if cut.role == "contract" for n in covered(cut)]
        summed = op.contract_axes if isinstance(op, TensorContractOp) else ()
        yield from (
            fault("NCC265", op, f"{name} accumulates, and is not contracted")
            for name in adding
            if name not in summed
        )
    for op, loops in nested(module.body):
        if isinstance(op, MatMulOp):
            yield from _group_faults(op, loops)


def _group_faults(op: MatMulOp, loops: tuple[Loop, ...]) -> Complaints:
    adding = [loop.axis for loop in loops if loop.kind == "accumulate"]
    if sorted(adding) != sorted(op.accumulate):
        said = f"it accumulates over {listed(op.accumulate)}, inside accumulate loops over"
        yield fault("NCC265", op, f"{said} {listed(adding)}")
    inside = [loop.axis for loop in loops[len(loops) - len(adding) :]]
    if adding != inside:
        yield fault("NCC265", op, "a loop that is no part of its sum runs inside the accumulation")
    moved = [name for index in op.dst.index for name in index.names() if name in adding]
    if moved:
        yield fault("NCC265", op, f"{moved[0]} moves the result while it accumulates")


def tiles_fit_the_machine(module: Function, target: Target) -> Complaints:
    tensors = {t.name: t for t in module.tensors}
    for t in module.tensors:
        on_chip = t.home in ("sbuf", "psum") and bool(list(tile_ops(module.body)))
        if on_chip and t.blocks < len(t.shape) and t.shape[t.blocks] > target.partitions:
            said = f"{t.name} has {t.shape[t.blocks]} partitions, and {target.partitions} exist"
            yield NccError("NCC264", said, t.origin.place(t.name))
    for op in tile_ops(module.body):
        limits = [("partitions", size(op.par), target.partitions)]
        if isinstance(op, MatMulOp):
            limits += [
                ("contracted rows", size(op.contract), target.partitions),
                ("stationary columns", size(op.par), target.stationary_free),
                ("moving columns", size(op.free), target.moving_free),
                ("bytes in a bank", 4 * size(op.free), target.psum_bank_bytes),
            ]
        elif isinstance(op, TileTransposeOp) and op.kind == "pe":
            limits.append(("rows to transpose", size(op.free), target.partitions))
        elif tensors[op.dst.tensor].home == "dram":
            limits = []
        for what, has, most in limits:
            if has > most:
                yield fault("NCC264", op, f"its tile has {has} {what}, and {most} fit")


def accumulators_are_fp32(module: Function, target: Target) -> Complaints:
    types = {t.name: t.dtype for t in module.tensors}
    for op in tile_ops(module.body):
        if isinstance(op, MatMulOp):
            if types[op.dst.tensor] != "float32":
                has = types[op.dst.tensor]
                yield fault("NCC266", op, f"it adds up in {op.dst.tensor}, which is {has}")
            pair = [types[v.tensor] for v in (op.stationary, op.moving)]
            if "float32" in pair and pair[0] != pair[1]:
                yield fault("NCC266", op, f"it multiplies {listed(pair)}")


def types_are_the_targets(module: Function, target: Target) -> Complaints:
    for t in module.tensors:
        if t.dtype == target.lacked_e4m3:
            said = f"{t.name} is {t.dtype}, a type that {target.name} lacks"
            yield NccError("NCC261", said, t.origin.place(t.name), "trn3 has the type")


def every_tile_op_is_an_instruction(module: Function, target: Target) -> Complaints:
    homes = {t.name: t.home for t in module.tensors}
    for op in tile_ops(module.body):
        if isinstance(op, TileElementwiseOp):
            yield fault("NCC268", op, f"{op.op} is not an instruction yet")
        elif isinstance(op, ON_ENGINES) and not op.engines:
            yield fault("NCC268", op, "no engine is named that may run it")
        elif "Pool" in op.engines and "psum" in {
            homes[v.tensor] for v in (op.dst, *views_read(op))
        }:
            yield fault("NCC268", op, "Pool may run it, and cannot reach PSUM")


def the_pe_array_writes_psum(module: Function, target: Target) -> Complaints:
    homes = {t.name: t.home for t in module.tensors}
    for op in tile_ops(module.body):
        by_pe = isinstance(op, MatMulOp) or (isinstance(op, TileTransposeOp) and op.kind == "pe")
        home = homes[op.dst.tensor]
        if by_pe and home != "psum":
            yield fault("NCC269", op, f"the PE array writes {op.dst.tensor}, which is in {home}")
        if home == "psum" and isinstance(op, TileCopyOp):
            yield fault("NCC269", op, f"a DMA writes {op.dst.tensor}, which is in psum")


def psum_is_read_by_engines(module: Function, target: Target) -> Complaints:
    homes = {t.name: t.home for t in module.tensors}
    for op in tile_ops(module.body):
        held = [v.tensor for v in views_read(op) if homes[v.tensor] == "psum"]
        match op:
            case TileCopyOp() | TileTransposeOp() | MatMulOp() if held:
                yield fault("NCC270", op, f"it reads {held[0]} in PSUM, which only ACT and DVE can")
            case TensorTensorOp() if len(held) == 2:
                yield fault("NCC270", op, "both of its tiles are in PSUM")
            case ActivationOp(bias=View(name)) | TensorScalarOp(operand0=View(name)) if (
                homes[name] == "psum"
            ):
                yield fault("NCC270", op, f"its column {name} is in PSUM")
            case _:
                pass


def accumulation_groups_are_short(module: Function, target: Target) -> Complaints:
    for op, loops in nested(module.body):
        if isinstance(op, MatMulOp):
            count = math.prod(loop.trips for loop in loops if loop.axis in op.accumulate)
            if count > LONGEST:
                said = f"{count} matmuls hold one bank, and {LONGEST} may"
                yield fault("NCC271", op, said)


FACTS: tuple[Law, ...] = tuple(
    Law(check.__name__, check, reads=lambda m: (m.tensors, m.body))
    for check in (
        partition_tiles_fit,
        free_tiles_fit,
        contractions_are_tiled,
        only_contraction_axes_accumulate,
        tiles_fit_the_machine,
        accumulators_are_fp32,
        types_are_the_targets,
        every_tile_op_is_an_instruction,
        the_pe_array_writes_psum,
        psum_is_read_by_engines,
        accumulation_groups_are_short,
    )
)
