"""Give every array one layout, and copy where a reader wants another.

Before:
    HloModule meet

    ENTRY %main (a: f32[4,8], c: f32[4,8]) -> f32[4,8] {
      %a = f32[4,8]{1,0} parameter(0)
      %b = f32[4,8] exponential(%a)
      %c = f32[4,8]{0,1} parameter(1)
      ROOT %d = f32[4,8] add(%b, %c)
    }

After:
    HloModule meet

    ENTRY %main (a: f32[4,8], c: f32[4,8]) -> f32[4,8] {
      %a = f32[4,8]{1,0} parameter(0)
      %b = f32[4,8]{1,0} exponential(%a)
      %c = f32[4,8]{0,1} parameter(1)
      %c.0 = f32[4,8]{1,0} copy(%c)
      ROOT %d = f32[4,8]{1,0} add(%b, %c.0)
    }

Why: a layout that is written is kept, the operands and the result of a product are row-major, and
the rest follows its neighbours: elementwise ops take the layout of what they read, constants and
broadcasts that of their reader. Two sweeps do, one in each direction. After normalize-layouts all
of it is row-major and no copy appears; the choice of partitions, which matters, is Penguin's.
"""

from __future__ import annotations

import attrs

from ncc.ir.core import unchanged
from ncc.ir.hlo import (
    ArrayShape,
    Computation,
    Instruction,
    Layout,
    Module,
    Shape,
    TupleShape,
    called,
    descending,
)
from ncc.ir.hlo_laws import unique
from ncc.ir.hlo_literal import TYPES
from ncc.ir.hlo_shapes import is_elementwise
from ncc.passes.base import define
from ncc.target import Target

NAME = "assign-layouts"
FREE = ("constant", "broadcast", "iota", "reshape", "transpose")  # they can write any layout


def apply(module: Module, target: Target) -> Module:
    others = {x.name: x for x in module.computations}
    computations = tuple(assigned(x, others) for x in module.computations)
    if unchanged(computations, module.computations):
        return module
    return attrs.evolve(module, computations=computations)


def assigned(computation: Computation, others: dict[str, Computation]) -> Computation:
    shapes = chosen(computation)
    taken = {x.name for x in computation.instructions}
    copies: dict[tuple[str, Layout], str] = {}
    body: list[Instruction] = []
    for inst in computation.instructions:
        shape = shapes[inst.name]
        operands = list(inst.operands)
        ranks = tuple(
            len(s.dims) if isinstance(s := shapes[x], ArrayShape) else 0 for x in operands
        )
        for i, want in wanted(inst, shape, ranks, others).items():
            found = shapes[operands[i]]
            if not isinstance(found, ArrayShape) or order(found.layout) == order(want):
                continue
            if (operands[i], want) not in copies:
                name = unique(f"{operands[i]}.0", taken)
                copies[operands[i], want] = name
                as_read = attrs.evolve(found, layout=want)
                origin = inst.origin.by(NAME)
                body.append(Instruction(name, as_read, "copy", (operands[i],), origin=origin))
            operands[i] = copies[operands[i], want]
        if inst.opcode == "tuple":
            shape = TupleShape(tuple(shapes[x] for x in operands))
            shapes[inst.name] = shape
        if shape != inst.shape or tuple(operands) != inst.operands:
            inst = attrs.evolve(
                inst, shape=shape, operands=tuple(operands), origin=inst.origin.by(NAME)
            )
        body.append(inst)
    if unchanged(body, computation.instructions):
        return computation
    return attrs.evolve(computation, instructions=tuple(body))


def order(layout: Layout | None) -> tuple[int, ...]:
    return layout.minor_to_major if layout else ()


def chosen(computation: Computation) -> dict[str, Shape]:
    """Every value's shape with a layout: what is written, else what its neighbours have."""
    found: dict[str, Layout | None] = {}
    for inst in computation.instructions:  # forward: from what an op reads
        layout = fixed(inst)
        if layout is None and is_elementwise(inst.opcode):
            read = [found[x] for x in inst.operands if fits(found[x], inst)]
            layout = read[0] if read else None
        found[inst.name] = layout
    for inst in reversed(computation.instructions):  # backward: from who reads it
        if is_elementwise(inst.opcode) and (layout := found[inst.name]):
            for name in inst.operands:
                if found[name] is None:
                    found[name] = layout
    shapes: dict[str, Shape] = {}
    for inst in computation.instructions:
        if isinstance(inst.shape, ArrayShape) and inst.shape.layout is None:
            layout = found[inst.name]
            rank = len(inst.shape.dims)
            if layout is None or len(layout.minor_to_major) != rank:
                layout = descending(rank)
            shapes[inst.name] = with_layout(inst.shape, layout)
        else:
            shapes[inst.name] = filled(inst.shape)
    return shapes


def fixed(inst: Instruction) -> Layout | None:
    if not isinstance(inst.shape, ArrayShape):
        return None
    if inst.shape.layout or is_elementwise(inst.opcode) or inst.opcode in FREE:
        return inst.shape.layout
    return descending(len(inst.shape.dims))


def fits(layout: Layout | None, inst: Instruction) -> bool:
    rank = len(inst.shape.dims) if isinstance(inst.shape, ArrayShape) else -1
    return layout is not None and len(layout.minor_to_major) == rank


def with_layout(shape: ArrayShape, layout: Layout) -> ArrayShape:
    """Scalars, tokens and the like have no order to choose."""
    if not shape.dims or TYPES[shape.dtype][1] == "none":
        return shape
    return attrs.evolve(shape, layout=layout)


def filled(shape: Shape) -> Shape:
    """Row-major wherever nothing is written."""
    if isinstance(shape, TupleShape):
        parts = tuple(map(filled, shape.parts))
        return shape if unchanged(parts, shape.parts) else TupleShape(parts)
    return shape if shape.layout else with_layout(shape, descending(len(shape.dims)))


def wanted(
    inst: Instruction, shape: Shape, ranks: tuple[int, ...], others: dict[str, Computation]
) -> dict[int, Layout]:
    """The layouts that an instruction wants of its operands, by position."""
    if inst.opcode == "dot":
        return {i: descending(rank) for i, rank in enumerate(ranks)}
    if inst.opcode in ("call", "fusion"):
        (callee,) = called(inst)
        params = enumerate(others[callee].params())
        return {
            i: p.shape.layout or descending(len(p.shape.dims))
            for i, p in params
            if isinstance(p.shape, ArrayShape) and p.shape.dims
        }
    if is_elementwise(inst.opcode) and isinstance(shape, ArrayShape) and shape.layout:
        return {i: shape.layout for i, rank in enumerate(ranks) if rank == len(shape.dims)}
    return {}


PASS = define(
    __name__,
    __doc__,
    apply,
    source="hlo",
    gives=("every-array-has-a-layout",),
    after={"normalize-layouts": "the entry's layout is what the rest is propagated from"},
    real="LayoutAssignment",
    job="F2",
    sure="inferred",
)
