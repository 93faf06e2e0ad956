"""Which shapes fit which opcode: one small rule a family, asked by the laws of HLO.

A rule gets the instruction and its operands' shapes, and yields sentences that continue the
opcode. An opcode without a row here is not checked: a later issue compiles it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import NamedTuple

from ncc.ir.hlo import ArrayShape, Computation, Instruction, Shape, TupleShape, called, same
from ncc.ir.hlo_literal import TYPES
from ncc.ir.hlo_text import show_shape

Rule = Callable[[Instruction, tuple[ArrayShape, ...], ArrayShape], Iterator[str]]


class Row(NamedTuple):
    """How many operands an opcode takes (None: any number), and what fits them."""

    operands: int | None
    rule: Rule


def _shown(shape: Shape) -> str:
    return show_shape(shape, False)


def _bare(dims: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, dims))}]"


def _gives(inst: Instruction, dtype: str, dims: tuple[int, ...]) -> Iterator[str]:
    """The result must be exactly this."""
    want = ArrayShape(dtype, dims)
    if not same(inst.shape, want):
        yield f"gives {_shown(want)}, written as {_shown(inst.shape)}"


def _elementwise(inst: Instruction, args: tuple[ArrayShape, ...], out: ArrayShape) -> Iterator[str]:
    if any(not same(a, args[0]) for a in args):
        yield f"takes operands of one shape, was given {' and '.join(map(_shown, args))}"
    else:
        yield from _gives(inst, args[0].dtype, args[0].dims)


def _sized(inst: Instruction, args: tuple[ArrayShape, ...], out: ArrayShape) -> Iterator[str]:
    """Any element types, one size: convert, compare, is-finite, real, ..."""
    for arg in args:
        if arg.dims != out.dims:
            yield f"keeps the dimensions {_bare(arg.dims)}, written as {_bare(out.dims)}"
            return


def _compare(inst: Instruction, args: tuple[ArrayShape, ...], out: ArrayShape) -> Iterator[str]:
    if not same(args[0], args[1]):
        yield f"takes operands of one shape, was given {_shown(args[0])} and {_shown(args[1])}"
    else:
        yield from _gives(inst, "pred", args[0].dims)


def _select(inst: Instruction, args: tuple[ArrayShape, ...], out: ArrayShape) -> Iterator[str]:
    if args[0].dtype != "pred" or args[0].dims not in ((), args[1].dims):
        yield f"chooses by pred{_bare(args[1].dims)}, was given {_shown(args[0])}"
    else:
        yield from _elementwise(inst, args[1:], out)


def _clamp(inst: Instruction, args: tuple[ArrayShape, ...], out: ArrayShape) -> Iterator[str]:
    for bound in (args[0], args[2]):
        if bound.dtype != args[1].dtype or bound.dims not in ((), args[1].dims):
            yield f"takes bounds of {_shown(args[1])}, was given {_shown(bound)}"
            return
    yield from _gives(inst, args[1].dtype, args[1].dims)


def _dot(inst: Instruction, args: tuple[ArrayShape, ...], out: ArrayShape) -> Iterator[str]:
    lhs, rhs = args
    sides: list[tuple[int, ...]] = []
    for side, shape in (("lhs", lhs), ("rhs", rhs)):
        batch = inst.ints(f"{side}_batch_dims")
        contract = inst.ints(f"{side}_contracting_dims")
        named = (*batch, *contract)
        if wrong := [d for d in named if not 0 <= d < len(shape.dims)]:
            yield f"names dimension {wrong[0]} of {side}, which is {_shown(shape)}"
            return
        if len(set(named)) != len(named):
            yield f"names a dimension of {side} twice: {', '.join(map(str, named))}"
            return
        sides += [batch, contract]
    left_batch, left, right_batch, right = sides
    for word, of_lhs, of_rhs in (("contracts", left, right), ("batches", left_batch, right_batch)):
        if len(of_lhs) != len(of_rhs):
            yield f"{word} {len(of_lhs)} dimensions of lhs with {len(of_rhs)} of rhs"
            return
        for i, j in zip(of_lhs, of_rhs, strict=True):
            if lhs.dims[i] != rhs.dims[j]:
                where = f"dimension {i} of {_shown(lhs)} and {j} of {_shown(rhs)}"
                yield f"{word} {lhs.dims[i]} with {rhs.dims[j]}: {where}"
                return
    if inst.get("sparsity") is not None:
        return
    free = [n for i, n in enumerate(lhs.dims) if i not in (*left_batch, *left)]
    free += [n for i, n in enumerate(rhs.dims) if i not in (*right_batch, *right)]
    yield from _gives(inst, out.dtype, (*(lhs.dims[i] for i in left_batch), *free))


def _broadcast(inst: Instruction, args: tuple[ArrayShape, ...], out: ArrayShape) -> Iterator[str]:
    dims, given = inst.ints("dimensions"), args[0].dims
    if len(dims) != len(given):
        yield f"takes one dimension for each of {_shown(args[0])}, was given {len(dims)}"
        return
    for i, d in enumerate(dims):
        if not 0 <= d < len(out.dims):
            yield f"puts dimension {i} at {d}, the result is {_shown(out)}"
            return
        if out.dims[d] != given[i]:
            yield f"puts dimension {i} of size {given[i]} at {d}, which has size {out.dims[d]}"
            return
    if len(set(dims)) != len(dims):
        yield f"names a dimension twice: {', '.join(map(str, dims))}"
    yield from _gives(inst, args[0].dtype, out.dims)


def _reshape(inst: Instruction, args: tuple[ArrayShape, ...], out: ArrayShape) -> Iterator[str]:
    if args[0].dtype != out.dtype or math.prod(args[0].dims) != math.prod(out.dims):
        yield f"keeps every element of {_shown(args[0])}, written as {_shown(out)}"


def _transpose(inst: Instruction, args: tuple[ArrayShape, ...], out: ArrayShape) -> Iterator[str]:
    order = inst.ints("dimensions")
    if sorted(order) != list(range(len(args[0].dims))):
        yield f"takes a permutation of {len(args[0].dims)} dimensions, was given {_bare(order)}"
        return
    yield from _gives(inst, args[0].dtype, tuple(args[0].dims[i] for i in order))


def _concatenate(inst: Instruction, args: tuple[ArrayShape, ...], out: ArrayShape) -> Iterator[str]:
    along = inst.ints("dimensions")
    if len(along) != 1 or not 0 <= along[0] < len(out.dims):
        yield f"takes one dimension of {_shown(out)}, was given {_bare(along)}"
        return
    d = along[0]
    total = 0
    for arg in args:
        if len(arg.dims) != len(out.dims) or arg.dims[:d] + arg.dims[d + 1 :] != (
            out.dims[:d] + out.dims[d + 1 :]
        ):
            yield f"joins along dimension {d}, {_shown(arg)} does not fit {_shown(out)}"
            return
        total += arg.dims[d]
    yield from _gives(
        inst, args[0].dtype if args else out.dtype, (*out.dims[:d], total, *out.dims[d + 1 :])
    )


def _reverse(inst: Instruction, args: tuple[ArrayShape, ...], out: ArrayShape) -> Iterator[str]:
    if wrong := [d for d in inst.ints("dimensions") if not 0 <= d < len(args[0].dims)]:
        yield f"names dimension {wrong[0]} of {_shown(args[0])}"
    yield from _gives(inst, args[0].dtype, args[0].dims)


def _iota(inst: Instruction, args: tuple[ArrayShape, ...], out: ArrayShape) -> Iterator[str]:
    along = inst.get("iota_dimension")
    if not isinstance(along, str) or not along.isdecimal() or int(along) >= len(out.dims):
        yield f"takes iota_dimension= within {_shown(out)}, was given {along}"


def _nothing(inst: Instruction, args: tuple[ArrayShape, ...], out: ArrayShape) -> Iterator[str]:
    yield from ()


UNARY = (
    "negate exponential exponential-minus-one log log-plus-one tanh tan sine cosine sqrt rsqrt "
    "cbrt logistic sign floor ceil round-nearest-afz round-nearest-even not popcnt "
    "count-leading-zeros erf copy"
)
BINARY = (
    "add subtract multiply divide maximum minimum power remainder atan2 and or xor shift-left "
    "shift-right-arithmetic shift-right-logical"
)
RULES: dict[str, Row] = {
    **{
        opcode: Row(1, _elementwise) for opcode in UNARY.split() if opcode != "optimization-barrier"
    },
    **{opcode: Row(2, _elementwise) for opcode in BINARY.split()},
    **{opcode: Row(1, _sized) for opcode in ("convert", "abs", "real", "imag", "is-finite")},
    "compare": Row(2, _compare),
    "select": Row(3, _select),
    "clamp": Row(3, _clamp),
    "dot": Row(2, _dot),
    "broadcast": Row(1, _broadcast),
    "reshape": Row(1, _reshape),
    "transpose": Row(1, _transpose),
    "concatenate": Row(None, _concatenate),
    "reverse": Row(1, _reverse),
    "iota": Row(0, _iota),
    "constant": Row(0, _nothing),
    "parameter": Row(0, _nothing),
}


LAYOUT_KEEPING = frozenset(
    opcode for opcode, row in RULES.items() if row.rule in (_elementwise, _sized, _compare, _select)
) - {"copy"}


def is_elementwise(opcode: str) -> bool:
    """Whether element i of the result depends on element i of the operands alone; not for a copy,
    which may change the layout."""
    return opcode in LAYOUT_KEEPING


def complaints(
    inst: Instruction, operands: tuple[Shape, ...], computations: dict[str, Computation]
) -> Iterator[str]:
    """What does not fit, in sentences that continue the opcode."""
    match inst.opcode:
        case "tuple":
            if not same(inst.shape, TupleShape(operands)):
                yield f"gives {_shown(TupleShape(operands))}, written as {_shown(inst.shape)}"
        case "get-tuple-element":
            yield from _element(inst, operands)
        case "call" | "fusion" | "map" | "reduce" | "while":
            yield from _calling(inst, operands, computations)
        case "copy" if len(operands) == 1 and isinstance(operands[0], TupleShape):
            if not same(inst.shape, operands[0]):
                yield f"gives {_shown(operands[0])}, written as {_shown(inst.shape)}"
        case _:
            yield from _by_row(inst, operands)


def _by_row(inst: Instruction, operands: tuple[Shape, ...]) -> Iterator[str]:
    row = RULES.get(inst.opcode)
    if not row:
        return
    if row.operands is not None and len(operands) != row.operands:
        one = "operand" if row.operands == 1 else "operands"
        yield f"takes {row.operands} {one}, was given {len(operands)}"
        return
    if inst.opcode in ("parameter", "constant"):
        return
    arrays = tuple(x for x in operands if isinstance(x, ArrayShape))
    if len(arrays) != len(operands) or not isinstance(inst.shape, ArrayShape):
        yield "works on arrays, was given a tuple"
        return
    if any(x.dynamic or -1 in x.dims for x in (*arrays, inst.shape)):
        return  # bounds are compared by those who compile dynamic shapes
    if any(TYPES[x.dtype][1] == "none" for x in (*arrays, inst.shape)):
        yield f"works on numbers, was given {' and '.join(map(_shown, arrays))}"
        return
    yield from row.rule(inst, arrays, inst.shape)


def _element(inst: Instruction, operands: tuple[Shape, ...]) -> Iterator[str]:
    index = inst.get("index")
    whole = operands[0] if len(operands) == 1 else None
    if not isinstance(whole, TupleShape):
        yield "takes one tuple"
    elif not isinstance(index, str) or not index.isdecimal() or int(index) >= len(whole.parts):
        yield f"takes index= below {len(whole.parts)}, was given {index}"
    elif not same(inst.shape, whole.parts[int(index)]):
        yield f"gives {_shown(whole.parts[int(index)])}, written as {_shown(inst.shape)}"


def _calling(
    inst: Instruction, operands: tuple[Shape, ...], computations: dict[str, Computation]
) -> Iterator[str]:
    """A call passes what the computation takes, and gives what it returns."""
    names = called(inst)
    if inst.opcode in ("call", "fusion") and len(names) != 1:
        key = "calls=" if inst.opcode == "fusion" else "to_apply="
        yield f"names one computation with {key}"
        return
    if inst.opcode == "reduce":
        yield from _reduce(inst, operands)
        return
    if inst.opcode == "map" or any(name not in computations for name in names):
        return
    for name in names:
        params = computations[name].params()
        if len(params) != len(operands):
            yield f"passes {len(operands)} operands to {name}, which takes {len(params)}"
            return
        for operand, param in zip(operands, params, strict=True):
            if not same(operand, param.shape):
                said = f"passes {_shown(operand)} to {name}"
                yield f"{said}, whose {param.name} is {_shown(param.shape)}"
                return
        result = computations[name].returned().shape
        if inst.opcode != "while" and not same(inst.shape, result):
            yield f"gives {_shown(result)}, written as {_shown(inst.shape)}"


def _reduce(inst: Instruction, operands: tuple[Shape, ...]) -> Iterator[str]:
    """n arrays and n initial values; the named dimensions go."""
    arrays = [x for x in operands if isinstance(x, ArrayShape)]
    if len(arrays) != len(operands) or len(operands) % 2 or not operands:
        yield f"takes arrays, then as many initial values, was given {len(operands)} operands"
        return
    gone = inst.ints("dimensions")
    half = len(arrays) // 2
    if wrong := [d for d in gone if not 0 <= d < len(arrays[0].dims)]:
        yield f"names dimension {wrong[0]} of {_shown(arrays[0])}"
        return
    results: list[Shape] = [
        ArrayShape(x.dtype, tuple(n for i, n in enumerate(x.dims) if i not in gone))
        for x in arrays[:half]
    ]
    want = results[0] if half == 1 else TupleShape(tuple(results))
    dims = [x.dims for x in arrays if x.dynamic]
    if not dims and not same(inst.shape, want):
        yield f"gives {_shown(want)}, written as {_shown(inst.shape)}"
