"""Make every array row-major, and move the bytes of the constants that were not.

Before:
    HloModule columns

    ENTRY %main () -> f32[2,3] {
      ROOT %c = f32[2,3]{0,1} constant({ {1, 2, 3}, {4, 5, 6} })
    }

After:
    HloModule columns

    ENTRY %main () -> f32[2,3] {
      %c.0 = f32[3,2]{1,0} constant({ {1, 4}, {2, 5}, {3, 6} })
      ROOT %c = f32[2,3]{1,0} transpose(%c.0), dimensions={1,0}
    }

Why: below this point nobody wants to know how a caller laid its arrays out. A layout field may only
be overwritten where nothing was stored yet: parameters and results belong to the caller, who is
told by the entry's new layout; a constant's bytes are stored, so they are permuted and a transpose
undoes it for the readers. Values are logical, so the program computes what it did.
"""

from __future__ import annotations

import attrs

from ncc.ir.core import unchanged
from ncc.ir.hlo import (
    ArrayShape,
    Attributes,
    Computation,
    EntryLayout,
    Instruction,
    Literal,
    Module,
    Shape,
    TupleShape,
    Value,
    descending,
    is_descending,
)
from ncc.ir.hlo_laws import unique
from ncc.ir.hlo_literal import array_of
from ncc.passes.base import define
from ncc.target import Target

NAME = "normalize-layouts"


def apply(module: Module, target: Target) -> Module:
    computations = tuple(map(normal, module.computations))
    attributes = tuple((key, entry_layout(value)) for key, value in module.attributes)
    if attributes == module.attributes and unchanged(computations, module.computations):
        return module
    return attrs.evolve(module, computations=computations, attributes=attributes)


def normal(computation: Computation) -> Computation:
    taken = {x.name for x in computation.instructions}
    body: list[Instruction] = []
    for inst in computation.instructions:
        shape = row_major(inst.shape)
        if shape == inst.shape:
            body.append(inst)
        elif isinstance(inst.literal, Literal) and not is_descending(inst.shape):
            body += repacked(inst, inst.literal, taken)
        else:
            body.append(attrs.evolve(inst, shape=shape, origin=inst.origin.by(NAME)))
    if unchanged(body, computation.instructions):
        return computation
    return attrs.evolve(computation, instructions=tuple(body))


def repacked(inst: Instruction, literal: Literal, taken: set[str]) -> list[Instruction]:
    """A row-major constant with the same bytes in memory, and the transpose that undoes it."""
    assert isinstance(inst.shape, ArrayShape) and inst.shape.layout
    major_to_minor = inst.shape.layout.minor_to_major[::-1]
    turned = array_of(literal).transpose(major_to_minor)
    dims = tuple(map(int, turned.shape))
    packed = Instruction(
        unique(f"{inst.name}.0", taken),
        ArrayShape(literal.dtype, dims, descending(len(dims))),
        "constant",
        literal=Literal(literal.dtype, dims, turned.tobytes()),
        origin=inst.origin.by(NAME),
    )
    back = tuple(major_to_minor.index(i) for i in range(len(dims)))
    shape = ArrayShape(literal.dtype, literal.shape, descending(len(dims)))
    keys: Attributes = (("dimensions", back), *inst.attributes)
    transposed = Instruction(
        inst.name, shape, "transpose", (packed.name,), keys, origin=inst.origin.by(NAME)
    )
    return [packed, transposed]


def row_major(shape: Shape) -> Shape:
    """The shape with every written layout descending. Tiles and memory space go with the old one."""
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(map(row_major, shape.parts)))
    if not shape.layout or shape.layout == descending(len(shape.dims)):
        return shape
    return attrs.evolve(shape, layout=descending(len(shape.dims)))


def entry_layout(value: Value) -> Value:
    if not isinstance(value, EntryLayout):
        return value
    return EntryLayout(tuple(map(row_major, value.params)), row_major(value.result))


PASS = define(
    __name__,
    __doc__,
    apply,
    source="hlo",
    gives=("entry-is-descending",),
    after={"check-sharding": "a sharded value has other dimensions on each device"},
    real="IOLayoutNormalization",
    job="F2",
    sure="confirmed",
)
