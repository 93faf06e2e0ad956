"""Copy every output that is not row-major into one that is.

Before:
    HloModule turned

    ENTRY %main (a: f32[4,8]) -> (f32[4,8], f32[4,8]) {
      %a = f32[4,8]{1,0} parameter(0)
      %b = f32[4,8]{0,1} copy(%a)
      ROOT %r = (f32[4,8]{0,1}, f32[4,8]{0,1}) tuple(%b, %b)
    }

After:
    HloModule turned

    ENTRY %main (a: f32[4,8]) -> (f32[4,8], f32[4,8]) {
      %a = f32[4,8]{1,0} parameter(0)
      %b = f32[4,8]{0,1} copy(%a)
      %b.0 = f32[4,8]{1,0} copy(%b)
      ROOT %r = (f32[4,8]{1,0}, f32[4,8]{1,0}) tuple(%b.0, %b.0)
    }

Why: parameters are the caller's duty, outputs are the compiler's. What layout assignment left at
the outputs is repaired here, late, with one copy for each value however often it is returned.
"""

from __future__ import annotations

import attrs

from ncc.errors import NccError
from ncc.ir.hlo import (
    ArrayShape,
    Computation,
    EntryLayout,
    Instruction,
    Module,
    Shape,
    TupleShape,
    Value,
    descending,
    is_descending,
)
from ncc.ir.hlo_laws import unique
from ncc.ir.hlo_text import show_shape
from ncc.passes.base import define
from ncc.target import Target

NAME = "descending-root"


def apply(module: Module, target: Target) -> Module:
    main = module.main()
    for inst in main.params():
        if not is_descending(inst.shape):
            said = f"the parameter is not row-major, {show_shape(inst.shape)}"
            raise NccError("NCC113", said, inst.origin.place(inst.name, NAME))
    if is_descending(main.returned().shape):
        return module
    repaired = with_copies(main)
    computations = tuple(repaired if x is main else x for x in module.computations)
    attributes = tuple((key, result_only(value)) for key, value in module.attributes)
    return attrs.evolve(module, computations=computations, attributes=attributes)


def with_copies(main: Computation) -> Computation:
    root = main.returned()
    body = list(main.instructions)
    taken = {x.name for x in main.instructions}
    if not isinstance(root.shape, TupleShape):
        copy = copied(root, taken)
        return attrs.evolve(main, instructions=(*body, copy), root=copy.name)
    if root.opcode != "tuple" or any(isinstance(x, TupleShape) for x in root.shape.parts):
        said = f"the root {show_shape(root.shape)} is no flat tuple of row-major arrays"
        raise NccError("NCC113", said, root.origin.place(root.name, NAME))
    made = {x.name: x for x in main.instructions}
    copies: dict[str, Instruction] = {}
    for name, part in zip(root.operands, root.shape.parts, strict=True):
        if not is_descending(part) and name not in copies:
            copies[name] = copied(made[name], taken)
    operands = tuple(copies[x].name if x in copies else x for x in root.operands)
    shape = row_major(root.shape)
    new = attrs.evolve(root, operands=operands, shape=shape, origin=root.origin.by(NAME))
    at = body.index(root)
    body[at : at + 1] = [*copies.values(), new]
    return attrs.evolve(main, instructions=tuple(body))


def copied(inst: Instruction, taken: set[str]) -> Instruction:
    name = unique(f"{inst.name}.0", taken)
    shape = row_major(inst.shape)
    return Instruction(name, shape, "copy", (inst.name,), origin=inst.origin.by(NAME))


def row_major(shape: Shape) -> Shape:
    if isinstance(shape, TupleShape):
        return TupleShape(tuple(map(row_major, shape.parts)))
    return ArrayShape(shape.dtype, shape.dims, descending(len(shape.dims)), shape.dynamic)


def result_only(value: Value) -> Value:
    if not isinstance(value, EntryLayout):
        return value
    return EntryLayout(value.params, row_major(value.result))


PASS = define(
    __name__,
    __doc__,
    apply,
    source="hlo",
    gives=("outputs-are-descending",),
    after={"assign-layouts": "it repairs the outputs' layouts, so they must be settled"},
    real="EnsureDescendingLayoutInRoot",
    job="F2",
    sure="confirmed",
)
