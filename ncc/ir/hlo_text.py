"""HLO prints as XLA's text: one instruction a line, `%` before names, `/*index=5*/` in lists."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from ncc.errors import NccError, nearest
from ncc.ir.hlo import (
    CALLS,
    PREDECESSORS,
    ArrayShape,
    Attributes,
    Called,
    Computation,
    EntryLayout,
    Instruction,
    Layout,
    Module,
    Shape,
    TupleShape,
    Value,
)
from ncc.ir.hlo_literal import TYPES, show_literal

DEEPEST = 64  # tuples in tuples; no compiler writes more, and the walk over them is recursive

ARRAY = re.compile(r"([a-z]\w*)\[([^\[\]{}]*)\](?:\{([^{}]*)\})?\Z")
DIMENSION = re.compile(r"\s*(<=)?\s*(\d+|\?)\s*\Z")
LAYOUT = re.compile(r"\s*([\d,\s]*)(?::(.*))?\Z", re.S)
PROPERTY = re.compile(r"([A-Z]+|[#*])((?:\([^()]*\))+)\s*")
PIECE = re.compile(r"\s*(->|[(),]|[a-z]\w*\[[^\[\]{}]*\](?:\{[^{}]*\})?)\s*")
QUIET = re.compile(r'("(?:[^"\\]|\\.)*")|/\*.*?\*/|\s+', re.S)
INTS = re.compile(r"\{\s*(?:-?\d+\s*(?:,\s*-?\d+\s*)*)?\}\Z")
NAME = r"%?[\w.$-]+"
ONE = re.compile(rf"{NAME}\Z")
MANY = re.compile(rf"\{{\s*(?:{NAME}\s*(?:,\s*{NAME}\s*)*)?\}}\Z")

# --------------------------------------------------------------------------------------- reading
# ValueErrors are sentences; the reader of modules adds the place.


class UnknownType(ValueError):
    """An element type that HLO has not."""

    def __init__(self, dtype: str) -> None:
        super().__init__(f"HLO has no element type {dtype}")
        self.hint = nearest(dtype, TYPES)


@lru_cache(4096)
def read_array(text: str) -> ArrayShape:
    """`bf16[128,<=512]{1,0:T(8,128)}` as a shape."""
    found = ARRAY.match(text)
    if not found:
        raise ValueError(f"cannot read {text!r} as a shape")
    dtype, inside, layout = found.groups()
    if dtype not in TYPES:
        raise UnknownType(dtype)
    dims: list[int] = []
    dynamic: list[bool] = []
    for word in inside.split(",") if inside.strip() else ():
        part = DIMENSION.match(word)
        if not part:
            raise ValueError(f"cannot read {word.strip()!r} as a dimension of {text}")
        dims.append(-1 if part[2] == "?" else int(part[2]))
        dynamic.append(bool(part[1]))
    marks = tuple(dynamic) if any(dynamic) else ()
    return ArrayShape(dtype, tuple(dims), None if layout is None else _layout(layout), marks)


def _layout(text: str) -> Layout:
    found = LAYOUT.match(text)
    if not found:
        raise ValueError(f"cannot read {{{text}}} as a layout")
    order = [word.strip() for word in found[1].split(",")] if found[1].strip() else []
    if "" in order:
        raise ValueError(f"cannot read {{{text}}} as a layout")
    rest, at = (found[2] or "").strip(), 0
    properties: list[tuple[str, str]] = []
    while at < len(rest):
        part = PROPERTY.match(rest, at)
        if not part:
            raise ValueError(f"cannot read {rest[at:]!r} in the layout {{{text}}}")
        properties.append((part[1], part[2].replace(" ", "")))
        at = part.end()
    return Layout(tuple(map(int, order)), tuple(properties))


def read_value(key: str, text: str) -> Value:
    """The value of an attribute: numbers, names and the entry's layout are understood."""
    text = QUIET.sub(lambda m: m[1] or " ", text).strip() if QUIET.search(text) else text
    if INTS.match(text):
        inside = text[1:-1].strip()
        return tuple(map(int, inside.split(","))) if inside else ()
    if key == "entry_computation_layout":
        return _entry_layout(text)
    named = key in CALLS or key == PREDECESSORS
    if (named or text.startswith("%")) and ONE.match(text):
        return Called((text.lstrip("%"),))
    if (named or text.startswith("{%")) and MANY.match(text):
        return Called(tuple(x.strip().lstrip("%") for x in text[1:-1].split(",")), True)
    return text


def _entry_layout(text: str) -> EntryLayout:
    pieces: list[str] = []
    at, inside = 0, text[1:-1]
    while at < len(inside):
        found = PIECE.match(inside, at)
        if not found:
            raise ValueError(f"cannot read {inside[at : at + 40]!r} as the layout of the entry")
        pieces.append(found[1])
        at = found.end()
    params, rest = _shape(pieces, 0, 0)
    if not isinstance(params, TupleShape) or pieces[rest : rest + 1] != ["->"]:
        raise ValueError("the layout of the entry has the form {(shape, ...)->shape}")
    result, end = _shape(pieces, rest + 1, 0)
    if end != len(pieces):
        raise ValueError("the layout of the entry has the form {(shape, ...)->shape}")
    return EntryLayout(params.parts, result)


def _shape(pieces: list[str], at: int, depth: int) -> tuple[Shape, int]:
    if depth > DEEPEST:
        raise ValueError(f"tuples nest more than {DEEPEST} deep")
    if pieces[at : at + 1] != ["("]:
        return read_array(pieces[at] if at < len(pieces) else ""), at + 1
    parts: list[Shape] = []
    at += 1
    while pieces[at : at + 1] != [")"]:
        part, at = _shape(pieces, at, depth + 1)
        parts.append(part)
        if pieces[at : at + 1] == [","]:
            at += 1
        elif pieces[at : at + 1] != [")"]:
            raise ValueError("a tuple of shapes lacks its )")
    return TupleShape(tuple(parts)), at + 1


# -------------------------------------------------------------------------------------- printing


def show(module: Module) -> str:
    """The whole module as text, which reads back to an equal module."""
    lines = [f"HloModule {module.name}{_attributes(module.attributes)}", ""]
    for section in module.sections:
        lines += [section.title, *(f"{n} {text}" for n, text in section.rows), ""]
    for computation in module.computations:
        lines += [*_computation(computation, computation.name == module.entry), ""]
    return "\n".join(lines)


def _computation(computation: Computation, entry: bool) -> list[str]:
    params = ", ".join(f"{x.name}: {show_shape(x.shape, False)}" for x in computation.params())
    result = show_shape(computation.returned().shape, False)
    first = f"{'ENTRY ' if entry else ''}%{computation.name} ({params}) -> {result} {{"
    lines = [
        f"  {show_instruction(x, x.name == computation.root)}" for x in computation.instructions
    ]
    return [first, *lines, f"}}{_attributes(computation.attributes)}"]


def show_instruction(inst: Instruction, root: bool = False) -> str:
    """One line, without its indentation."""
    if inst.literal is not None:
        inside = show_literal(inst.literal)
    elif inst.number >= 0:
        inside = str(inst.number)
    else:
        inside = _indexed([f"%{name}" for name in inst.operands])
    mark = "ROOT " if root else ""
    shape = show_shape(inst.shape)
    return f"{mark}%{inst.name} = {shape} {inst.opcode}({inside}){_attributes(inst.attributes)}"


def _indexed(words: Sequence[str]) -> str:
    """As XLA prints a long list: every fifth element says which it is."""
    shown = [f"/*index={i}*/{word}" if i and i % 5 == 0 else word for i, word in enumerate(words)]
    return ", ".join(shown)


def show_shape(shape: Shape, layouts: bool = True) -> str:
    """`bf16[128,512]{1,0}`, or `(f32[2], s32[])`."""
    if isinstance(shape, TupleShape):
        return f"({_indexed([show_shape(part, layouts) for part in shape.parts])})"
    dims = ["?" if n < 0 else str(n) for n in shape.dims]
    if shape.dynamic:
        dims = [f"<={n}" if d else n for n, d in zip(dims, shape.dynamic, strict=True)]
    layout = show_layout(shape.layout) if layouts and shape.layout else ""
    return f"{shape.dtype}[{','.join(dims)}]{layout}"


def show_layout(layout: Layout) -> str:
    order = ",".join(map(str, layout.minor_to_major))
    rest = "".join(letter + text for letter, text in layout.properties)
    return f"{{{order}:{rest}}}" if rest else f"{{{order}}}"


def _attributes(attributes: Attributes) -> str:
    return "".join(f", {key}={show_attribute(value)}" for key, value in attributes)


def show_attribute(value: Value) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, EntryLayout):
        return (
            f"{{({_indexed([show_shape(x) for x in value.params])})->{show_shape(value.result)}}}"
        )
    if isinstance(value, Called):
        names = ", ".join(f"%{name}" for name in value.names)
        return f"{{{names}}}" if value.braces else names
    return f"{{{','.join(map(str, value))}}}"


def unread(fault: ValueError) -> NccError:
    """The NccError, without a place, of a ValueError that reading a shape or a value raised."""
    if isinstance(fault, UnknownType):
        return NccError("NCC105", str(fault), hint=fault.hint)
    return NccError("NCC101", str(fault))
