"""HLO text to the HLO level: the grammar's tokens become frozen nodes that know their line."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib.util import cache_from_source
from pathlib import Path, PurePath
from typing import Any, TypeVar

import lark
from lark import Token, Transformer
from lark.exceptions import UnexpectedCharacters, UnexpectedInput

from ncc.errors import NccError, Place, listed
from ncc.ir.core import Origin
from ncc.ir.hlo import (
    ArrayShape,
    Attributes,
    Computation,
    Instruction,
    Literal,
    Module,
    Section,
    Shape,
    TupleLiteral,
    TupleShape,
    Value,
    same,
)
from ncc.ir.hlo_literal import Elided, read_literal
from ncc.ir.hlo_text import DEEPEST, read_array, read_value, show_shape, unread

T = TypeVar("T")

# what a reader calls a terminal of the grammar, in the order in which a message lists them
WORDS = {
    "HLOMODULE": "`HloModule`",
    "ENTRY": "`ENTRY`",
    "SECTION": "a table such as `FileNames`",
    "ROW": 'a row such as `1 "f.py"`',
    "ROOT": "`ROOT`",
    "NAME": "a name",
    "EQUAL": "`=`",
    "COLON": "`:`",
    "ARRAY": "a shape such as `f32[2,3]{1,0}`",
    "OPCODE": "an operation such as `add(`",
    "CONSTANT": "",
    "KEY": "an attribute such as `dimensions=`",
    "VALUE": "a value",
    "LPAR": "`(`",
    "RPAR": "`)`",
    "LBRACE": "`{`",
    "RBRACE": "`}`",
    "COMMA": "`,`",
    "__ANON_0": "`->`",
    "$END": "the end of the text",
}


def parse(text: str, file: str = "", first_line: int = 1) -> Module:
    """The module that `text` spells; NCC102 for a text that is no HLO, NCC101 for a slip in one."""
    name = PurePath(file).name
    _is_hlo(text, name, first_line)
    parser, reader = _parser()
    reader.begin(name, first_line)
    try:
        module: Module = parser.parse(text)
    except UnexpectedInput as fault:
        raise _slip(fault, text, name, first_line) from None
    return module


@cache
def _parser() -> tuple[Any, Reader]:
    """lark's parser with its reader; made once, because the tables take longer than a program.

    They are kept beside this file's bytecode, where Python keeps any; lark makes them anew when the
    grammar, its own version or Python's is another.
    """
    untyped: Any = lark
    reader: Reader = untyped.v_args(inline=True)(Reader)()
    parser = untyped.Lark.open(
        "hlo.lark",
        rel_to=__file__,
        parser="lalr",
        lexer="contextual",
        start="module",
        transformer=reader,
        cache=str(Path(cache_from_source(__file__)).with_suffix(".lark")),
    )
    return parser, reader


def _is_hlo(text: str, file: str, first_line: int) -> None:
    bare = re.sub(r"\A(?:\s+|/\*.*?\*/|//[^\n]*)*", "", text, flags=re.S)
    if re.match(r"HloModule\b", bare):
        return
    place = Place(file, first_line)
    if not bare.strip():
        raise NccError("NCC102", "the text is empty, expected `HloModule NAME`", place)
    hint = ""
    if "\0" in bare[:4096]:
        raise NccError("NCC102", "this is not text, expected `HloModule NAME`", place)
    if re.match(r"module\b|func\.func\b|#loc", bare):
        hint = "this looks like StableHLO; in JAX, `lowered.as_text(dialect='hlo')` gives HLO text"
    word = bare.split(None, 1)[0][:40]
    line = first_line + text[: len(text) - len(bare)].count("\n")
    said = f"this is not HLO text: it begins with `{word}`, expected `HloModule NAME`"
    raise NccError("NCC102", said, Place(file, line), hint)


def _slip(fault: Any, text: str, file: str, first_line: int) -> NccError:
    """What was found, where, and what could have stood there."""
    at: int = fault.pos_in_stream or 0
    before = text[:at].rstrip()
    if isinstance(fault, UnexpectedCharacters):
        expected, found = fault.allowed, text[at:].split("\n")[0][:30].rstrip()
    else:
        expected, found = fault.accepts or fault.expected, str(fault.token).split("\n")[0][:30]
    place = Place(file, first_line + fault.line - 1, fault.column)
    if not text[at:].strip() or not found:
        said = f"the text ends where {_choice(expected)} must stand"
        return NccError("NCC101", said, Place(file, first_line + text.rstrip().count("\n")))
    if found[0] == "{" and ("VALUE" in expected or re.search(r"constant\s*\(\Z", before)):
        return NccError("NCC101", "this { is not closed", place)
    if found[0] == '"' and "VALUE" in expected:
        return NccError("NCC101", "this quote is not closed", place)
    return NccError("NCC101", f"found `{found}`, expected {_choice(expected)}", place)


def _choice(expected: Any) -> str:
    names = [said for word, said in WORDS.items() if word in set(expected) and said]
    return listed(names).replace(" and ", " or ") if names else "nothing more"


def _clean(name: str) -> str:
    return str(name[1:] if name[0] == "%" else name)


class Reader(Transformer[Token, Module]):
    """One method a rule of the grammar; lark calls it with the rule's children."""

    def begin(self, file: str, first_line: int) -> None:
        self.file = file
        self.shift = first_line - 1
        self.last = Token("ARRAY", "", line=1, column=1)
        self.kept: list[TupleShape] = []  # so that no identity is used again
        self.depths: dict[int, int] = {}  # of the tuple shapes, by identity

    def fault(self, at: Token, code: str, said: str, hint: str = "", value: str = "") -> NccError:
        line, column = at.line or 0, at.column or 0
        return NccError(code, said, Place(self.file, line + self.shift, column, "", value), hint)

    def reading(self, at: Token, read: Callable[..., T], *words: Any) -> T:
        """`read(*words)`, with the place of `at` in what it refuses."""
        try:
            return read(*words)
        except Elided as elided:
            raise self.fault(at, "NCC103", str(elided)) from None
        except ValueError as said:
            fault = unread(said)
            raise self.fault(at, fault.code, fault.said, fault.hint) from None

    # ------------------------------------------------------------------------------- shapes

    def array(self, token: Token) -> ArrayShape:
        self.last = token
        return self.reading(token, read_array, str(token))

    def tuple(self, *parts: Shape | None) -> TupleShape:
        shape = TupleShape(tuple(x for x in parts if x is not None))
        depth = 1 + max((self.depths.get(id(x), 0) for x in shape.parts), default=0)
        if depth > DEEPEST:
            said = f"tuples nest more than {DEEPEST} deep"
            raise self.fault(self.last, "NCC101", said)
        self.depths[id(shape)] = depth
        self.kept.append(shape)
        return shape

    # -------------------------------------------------------------------------- instructions

    def attribute(self, key: Token, text: Token) -> tuple[Token, Value]:
        name = str(key)[:-1].rstrip()
        return key.update(value=name), self.reading(text, read_value, name, str(text))

    def operand(self, shape: Shape | None, name: Token) -> tuple[Shape | None, Token]:
        return shape, name

    def constant(self, token: Token) -> Token:
        return token

    def apply(self, opcode: Token, *operands: Any) -> tuple[Token, list[Any]]:
        return opcode, [x for x in operands if x is not None]

    def instruction(
        self, root: Token | None, name: Token, shape: Shape, op: Any, *rest: Any
    ) -> Any:
        origin = Origin(self.file, (name.line or 0) + self.shift, name.column or 0)
        attributes = self.distinct(rest)
        called = _clean(name)
        if isinstance(op, Token):
            literal = self.literal(op, shape, called)
            made = Instruction(called, shape, "constant", (), attributes, -1, literal, origin)
            return root, made, name, ()
        opcode: Token
        opcode, operands = op
        if str(opcode) == "parameter":
            number = self.number(opcode, operands, called)
            made = Instruction(called, shape, "parameter", (), attributes, number, None, origin)
            return root, made, name, ()
        names = tuple(_clean(x) for _, x in operands)
        made = Instruction(called, shape, str(opcode), names, attributes, -1, None, origin)
        return root, made, name, operands

    def distinct(self, pairs: tuple[tuple[Token, Value], ...]) -> Attributes:
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise self.fault(key, "NCC101", f"the attribute {key} stands twice")
            seen.add(str(key))
        return tuple((str(key), value) for key, value in pairs)

    def literal(self, token: Token, shape: Shape, name: str) -> Literal | TupleLiteral:
        inside = str(token)[str(token).index("(") + 1 : -1]
        try:
            return read_literal(inside, shape)
        except Elided as elided:
            raise self.fault(token, "NCC103", str(elided), value=name) from None
        except ValueError as said:
            raise self.fault(token, "NCC104", str(said), value=name) from None

    def number(self, opcode: Token, operands: list[Any], name: str) -> int:
        words = [str(x) for shape, x in operands if shape is None]
        if len(operands) != 1 or not words or not words[0].isdecimal():
            said = "a parameter has its number in parentheses, as in `parameter(0)`"
            raise self.fault(opcode, "NCC101", said, value=name)
        return int(words[0])

    # -------------------------------------------------------------------------- computations

    def field(self, name: Token, shape: Shape) -> tuple[Token, Shape]:
        return name, shape

    def header(self, *parts: Any) -> tuple[list[tuple[Token, Shape]], Shape]:
        return [x for x in parts[:-1] if x is not None], parts[-1]

    def computation(self, entry: Token | None, name: Token, header: Any, *rest: Any) -> Any:
        lines = [x for x in rest if len(x) == 4]
        attributes = self.distinct(tuple(x for x in rest if len(x) == 2))
        called = _clean(name)
        if not lines:
            raise self.fault(name, "NCC107", "the computation has no instruction", value=called)
        roots = [line for line in lines if line[0]]
        if len(roots) > 1:
            said = f"{called} has two ROOTs, {roots[0][1].name} and {roots[1][1].name}"
            raise self.fault(roots[1][0], "NCC107", said)
        root = roots[0][1].name if roots else lines[-1][1].name
        origin = Origin(self.file, (name.line or 0) + self.shift, name.column or 0)
        made = Computation(called, tuple(line[1] for line in lines), root, attributes, origin)
        self.operand_shapes(lines)
        if header:
            self.header_fits(name, header, made)
        return entry, made, name

    def operand_shapes(self, lines: list[Any]) -> None:
        """A shape that is written before an operand must be the operand's."""
        known: dict[str, Shape] | None = None
        for _, inst, _, operands in lines:
            for shape, token in operands:
                if shape is None:
                    continue
                known = known or {line[1].name: line[1].shape for line in lines}
                made = known.get(_clean(token))
                if made is not None and not same(shape, made):
                    said = f"reads {_clean(token)} as {show_shape(shape, False)}"
                    said += f", which is {show_shape(made, False)}"
                    raise self.fault(token, "NCC108", said, value=inst.name)

    def header_fits(self, at: Token, header: Any, made: Computation) -> None:
        fields, result = header
        params = made.params()
        if len(fields) != len(params):
            said = f"the header has {len(fields)} parameters, the body {len(params)}"
            raise self.fault(at, "NCC107", said, value=made.name)
        for (name, shape), inst in zip(fields, params, strict=True):
            if not same(shape, inst.shape):
                said = f"the header says {show_shape(shape, False)}"
                said += f", the parameter is {show_shape(inst.shape, False)}"
                raise self.fault(name, "NCC107", said, value=inst.name)
        if not same(result, made.returned().shape):
            said = f"the header says that it returns {show_shape(result, False)}"
            said += f", its root is {show_shape(made.returned().shape, False)}"
            raise self.fault(at, "NCC107", said, value=made.name)

    # --------------------------------------------------------------------------------- module

    def row(self, number: Token, text: Token) -> tuple[int, str]:
        return int(number), self.reading(text, lambda: str(read_value("", str(text))))

    def section(self, title: Token, *rows: tuple[int, str]) -> Section:
        return Section(str(title), rows)

    def module(self, name: Token, *rest: Any) -> Module:
        pairs: list[Any] = [x for x in rest if not isinstance(x, Section)]
        computations = [x for x in pairs if len(x) == 3]
        attributes = self.distinct(tuple(x for x in pairs if len(x) == 2))
        entries = [x for x in computations if x[0]]
        if len(entries) > 1:
            said = f"two computations are marked ENTRY, {entries[0][1].name}"
            raise self.fault(entries[1][0], "NCC107", f"{said} and {entries[1][1].name}")
        if not entries and len(computations) != 1:
            raise self.fault(name, "NCC107", "no computation is marked ENTRY", value=str(name))
        entry = (entries or computations)[0][1].name
        made = tuple(x[1] for x in computations)
        sections = tuple(x for x in rest if isinstance(x, Section))
        return Module(_clean(name), made, entry, attributes, sections)
