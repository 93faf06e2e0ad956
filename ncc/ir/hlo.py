"""HLO: XLA's module of computations, each a list of instructions with shapes and layouts.

Names are kept without their `%`. Values are logical: a layout says how an array lies in memory and
never what its elements are, so a literal's elements stand in row-major order whatever its layout.
"""

from __future__ import annotations

import attrs

from ncc.ir.core import NOWHERE, Origin


@attrs.frozen
class Layout:
    """Dimensions from the fastest to the slowest, then what XLA writes after the colon, in order.

    `{1,0:T(8,128)(2,1)S(1)}` has the properties `("T", "(8,128)(2,1)")` and `("S", "(1)")`: tiles
    and memory space; `E` is the bits of an element.
    """

    minor_to_major: tuple[int, ...]
    properties: tuple[tuple[str, str], ...] = ()


@attrs.frozen
class ArrayShape:
    """Element type and dimensions. `?` is dimension -1; `dynamic` marks the upper bounds `<=n`."""

    dtype: str
    dims: tuple[int, ...]
    layout: Layout | None = None
    dynamic: tuple[bool, ...] = ()  # one a dimension, or nothing when no bound is dynamic


@attrs.frozen
class TupleShape:
    """Several shapes as one."""

    parts: tuple[Shape, ...]


Shape = ArrayShape | TupleShape


@attrs.frozen
class Literal:
    """The elements of a constant: row-major, little-endian, one byte for types below eight bits."""

    dtype: str
    shape: tuple[int, ...]
    raw: bytes = attrs.field(repr=False)


@attrs.frozen
class TupleLiteral:
    """The parts of a constant tuple."""

    parts: tuple[Literal | TupleLiteral, ...]


@attrs.frozen
class Called:
    """An attribute that names computations or instructions: `%add`, or `{%a, %b}`."""

    names: tuple[str, ...]
    braces: bool = False


@attrs.frozen
class EntryLayout:
    """The shapes, with layouts, that the caller of the entry passes and receives."""

    params: tuple[Shape, ...]
    result: Shape


# A list of numbers, names, the entry's layout; everything else is kept as it is written.
Value = tuple[int, ...] | Called | EntryLayout | str
Attributes = tuple[tuple[str, Value], ...]


@attrs.frozen
class Instruction:
    """One value: `%name = shape opcode(operands), key=value, ...`."""

    name: str
    shape: Shape
    opcode: str
    operands: tuple[str, ...] = ()
    attributes: Attributes = ()
    number: int = -1  # of a parameter
    literal: Literal | TupleLiteral | None = None  # of a constant
    origin: Origin = attrs.field(default=NOWHERE, eq=False)

    def get(self, key: str) -> Value | None:
        """The attribute `key`, if there is one."""
        for name, value in self.attributes:
            if name == key:
                return value
        return None

    def ints(self, key: str) -> tuple[int, ...]:
        """The list of numbers `key={...}`; nothing when it is absent or no list of numbers."""
        value = self.get(key)
        return value if isinstance(value, tuple) else ()


@attrs.frozen
class Computation:
    """A function: instructions in an order in which every value is made before it is read."""

    name: str
    instructions: tuple[Instruction, ...]
    root: str  # the name of the instruction that it returns
    attributes: Attributes = ()
    origin: Origin = attrs.field(default=NOWHERE, eq=False)

    def returned(self) -> Instruction:
        return next(x for x in self.instructions if x.name == self.root)

    def params(self) -> tuple[Instruction, ...]:
        """The parameters, in the order of their numbers."""
        found = [x for x in self.instructions if x.opcode == "parameter"]
        return tuple(sorted(found, key=lambda x: x.number))


@attrs.frozen
class Section:
    """A numbered table that metadata refers to, such as FileNames or StackFrames."""

    title: str
    rows: tuple[tuple[int, str], ...]


@attrs.frozen
class Module:
    """A whole program. `entry` is the name of the computation that is marked ENTRY."""

    name: str
    computations: tuple[Computation, ...]
    entry: str
    attributes: Attributes = ()
    sections: tuple[Section, ...] = ()

    def main(self) -> Computation:
        return next(x for x in self.computations if x.name == self.entry)

    def layout(self) -> EntryLayout | None:
        """`entry_computation_layout`, if it is written."""
        for _, value in self.attributes:
            if isinstance(value, EntryLayout):
                return value
        return None


# Attributes whose value names computations; `control-predecessors` names instructions.
CALLS = (
    "to_apply",
    "calls",
    "body",
    "condition",
    "true_computation",
    "false_computation",
    "branch_computations",
    "called_computations",
    "select",
    "scatter",
    "comparator",
)
PREDECESSORS = "control-predecessors"


def called(inst: Instruction) -> tuple[str, ...]:
    """The computations that an instruction calls, in the order written."""
    names: tuple[str, ...] = ()
    for key, value in inst.attributes:
        if isinstance(value, Called) and key in CALLS:
            names += value.names
    return names


def descending(rank: int) -> Layout:
    """Row-major: the last dimension is the fastest."""
    return Layout(tuple(range(rank - 1, -1, -1)))


def is_descending(shape: Shape) -> bool:
    """Whether every array of the shape is row-major; an array without a layout counts as such."""
    if isinstance(shape, TupleShape):
        return all(map(is_descending, shape.parts))
    rank = len(shape.dims)
    return not shape.layout or shape.layout.minor_to_major == tuple(range(rank - 1, -1, -1))


def leaves(shape: Shape) -> tuple[ArrayShape, ...]:
    """The arrays of a shape, from left to right."""
    if isinstance(shape, ArrayShape):
        return (shape,)
    return tuple(leaf for part in shape.parts for leaf in leaves(part))


def same(a: Shape, b: Shape) -> bool:
    """Whether two shapes hold the same elements, whatever their layouts."""
    if isinstance(a, TupleShape) or isinstance(b, TupleShape):
        return (
            isinstance(a, TupleShape)
            and isinstance(b, TupleShape)
            and len(a.parts) == len(b.parts)
            and all(map(same, a.parts, b.parts))
        )
    return a.dtype == b.dtype and a.dims == b.dims
