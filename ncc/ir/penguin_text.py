"""Penguin as Python: printed as a program that builds the module, read back without running it.

The text is read with `ast` and never executed here; a person who runs it under `ncc.penguin` builds
an equal module. Printer (`ncc.ir.penguin_print`) and reader follow the fields of the nodes, so an
op needs neither of its own.
"""

from __future__ import annotations

import ast
import math
import types
import typing
from functools import cache
from typing import Any, NoReturn, cast

from ncc.errors import NccError, Place, nearest
from ncc.ir import penguin as p
from ncc.ir.affine import Affine, Floor, Least, Mod, index_of
from ncc.ir.core import NOWHERE, Origin
from ncc.ir.data import DTYPES, read_data
from ncc.ir.penguin_print import FIRST, OPS, RESERVED, WORDS, printed_fields, quoted, show
from ncc.ir.text import split_origin

__all__ = ["parse", "show"]


def parse(text: str, file: str = "", first_line: int = 1) -> p.Function:
    """The module that printed as `text`; NCC009 with line and column for anything else."""
    try:
        tree = ast.parse(text)
    except SyntaxError as wrong:
        place = Place(file, (wrong.lineno or 1) + first_line - 1, wrong.offset or 0)
        raise NccError("NCC009", f"cannot read the program: {wrong.msg}", place) from None
    except (ValueError, RecursionError, MemoryError):
        said = "cannot read the program: it is not Python syntax"
        raise NccError("NCC009", said, Place(file, first_line)) from None
    reader = Reader(text.split("\n"), file, first_line)
    try:
        return reader.module(tree)
    except RecursionError:
        said = "cannot read the program: an expression is nested too deeply"
        raise NccError("NCC009", said, Place(file, first_line)) from None


PG = tuple[int, tuple[str, ...], tuple[str, ...]]


class Reader:
    """One reading of one text; it knows what the names stand for."""

    def __init__(self, lines: list[str], file: str, first_line: int) -> None:
        self.lines, self.file, self.first_line = lines, file, first_line
        self.names: dict[str, str] = {}  # what each name is: tensor or axis
        self.tensors: list[p.Tensor] = []
        self.pags: list[tuple[str, ...]] = []
        self.pgs: list[tuple[int, tuple[str, ...], tuple[str, ...]]] = []

    def wrong(self, node: Any, said: str, hint: str = "") -> NoReturn:
        line = getattr(node, "lineno", 1) + self.first_line - 1
        column = getattr(node, "col_offset", -1) + 1
        raise NccError("NCC009", said, Place(self.file, line, column), hint)

    def unread(self, node: ast.AST, expected: str) -> NoReturn:
        found = ast.unparse(node).split("\n")[0][:60]
        self.wrong(node, f"cannot read `{found}`, expected {expected}")

    def origin(self, line: int | None) -> Origin:
        return split_origin(self.lines[line - 1])[1] if line else NOWHERE

    def module(self, tree: ast.Module) -> p.Function:
        match tree.body:
            case [ast.ImportFrom("ncc.penguin", [ast.alias("*")], 0), ast.With() as main]:
                pass
            case _:
                at = tree.body[1] if len(tree.body) > 1 else tree
                self.wrong(at, f"a program is `{FIRST}`, then `with function(NAME) as f:`")
        match main.items:
            case [
                ast.withitem(
                    ast.Call(ast.Name("function"), [ast.Constant(str(name))], []), ast.Name("f")
                )
            ]:
                body = self.body(main.body, top=True)
                return p.Function(
                    name, tuple(self.tensors), body, tuple(self.pags), tuple(self.pgs)
                )
            case _:
                self.wrong(main, "a program begins with `with function(NAME) as f:`")

    def body(self, statements: list[ast.stmt], top: bool = False) -> tuple[p.Statement, ...]:
        found: list[p.Statement] = []
        for one in statements:
            match one:
                case ast.Pass():
                    pass
                case ast.For(ast.Name(axis), ast.Call() as head, inside, []):
                    found.append(self.loop(one, axis, head, inside))
                case ast.With() if top:
                    from ncc.ir.kernel_text import read_statement

                    found.append(read_statement(self, one))
                case ast.Expr(ast.Call(ast.Name("pag" | "pg")) as said) if top:
                    self.analysis(said)
                case ast.Expr(ast.Call() as said):
                    found.append(self.op(said, self.origin(one.end_lineno)))
                case ast.Assign([target], ast.Call(ast.Name("tensor" | "axis")) as said) if top:
                    self.define(target, said, self.origin(one.end_lineno))
                case _:
                    self.unread(one, "a tensor, axes, an op or a loop")
        return tuple(found)

    def loop(self, one: ast.For, axis: str, head: ast.Call, inside: list[ast.stmt]) -> p.Loop:
        match head:
            case ast.Call(
                ast.Name("loop"),
                [ast.Constant(str(name)), ast.Constant(int(trips)), ast.Constant(str(kind))],
                [],
            ) if name == axis:
                pass
            case _:
                self.unread(head, f"loop({quoted(axis)}, TRIPS, KIND)")
        before = self.names.get(axis)
        self.names[axis] = "axis"
        body = self.body(inside)
        if before is None:
            del self.names[axis]
        return p.Loop(axis, trips, kind, body, self.origin(head.end_lineno))

    def define(self, target: ast.expr, said: ast.Call, origin: Origin) -> None:
        if isinstance(said.func, ast.Name) and said.func.id == "axis":
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            found = [x.id for x in names if isinstance(x, ast.Name)]
            match said:
                case ast.Call(_, [ast.Constant(str(words))], []) if words.split() == found:
                    for name in found:
                        self.bind(said, name, "axis")
                case _:
                    self.unread(said, f"axis({quoted(' '.join(found))})")
            return
        if isinstance(target, ast.Name) and said.args:
            match said.args[0]:
                case ast.Constant(str(name)) if name == target.id:
                    self.bind(said, name, "tensor")
                    self.tensors.append(self.tensor(said, origin))
                    return
                case _:
                    pass
        self.unread(said, f"tensor({quoted(ast.unparse(target))}, DTYPE, SHAPE)")

    def bind(self, node: ast.AST, name: str, kind: str) -> None:
        if name in self.names or name in RESERVED:
            what = f"{self.names[name]} of" if name in self.names else "word of the text by"
            self.wrong(node, f"{name} is already a {what} that name".replace("a axis", "an axis"))
        self.names[name] = kind

    def tensor(self, said: ast.Call, origin: Origin) -> p.Tensor:
        given = self.given(said, p.Tensor, {"data": str})
        if given.get("data") is not None:
            try:
                if given["dtype"] not in DTYPES:
                    raise ValueError(f"no dtype is called {given['dtype']}")
                given["data"] = read_data(given["data"], given["dtype"], given["shape"])
            except ValueError as wrong:
                self.wrong(said, str(wrong))
        return p.Tensor(**given, origin=origin)

    def analysis(self, said: ast.Call) -> None:
        values: list[Any] = [self.value(x) for x in said.args]
        match said.func, values:
            case ast.Name("pag"), [*names] if fits(tuple(names), tuple[str, ...]):
                self.pags.append(tuple(names))
            case ast.Name("pg"), [_, _, _] if fits(tuple(values), PG):
                self.pgs.append((values[0], values[1], values[2]))
            case _:
                self.unread(said, "pag(DIM, ...) or pg(NUMBER, OPS, AXES)")

    def op(self, said: ast.Call, origin: Origin) -> p.TileOp | p.TensorOp:
        name = ast.unparse(said.func)
        if name not in OPS:
            hint = nearest(name, (*OPS, *WORDS))
            self.wrong(said, f"{name[:60]} is not an op of Penguin", hint)
        return OPS[name](**self.given(said, OPS[name], {}), origin=origin)

    def given(self, said: ast.Call, kind: type[Any], instead: dict[str, Any]) -> dict[str, Any]:
        """The fields that a call gives, each of the type that the node's class asks for."""
        types_of = field_types(kind) | instead
        order = [name for name, _ in printed_fields(kind)]
        found: dict[str, ast.expr] = dict(zip(order, said.args, strict=False))
        if len(said.args) > len(order):
            self.wrong(said, f"{kind.__name__} has {len(order)} fields, was given more")
        for word in said.keywords:
            if word.arg not in types_of:
                hint = nearest(word.arg or "", types_of)
                self.wrong(word, f"{kind.__name__} has no field {word.arg or '**'}", hint)
            if word.arg in found:
                self.wrong(word, f"{kind.__name__} is given {word.arg} twice")
            found[str(word.arg)] = word.value
        for name, default in printed_fields(kind):
            if default is None and name not in found:
                self.wrong(said, f"{kind.__name__} lacks its field {name}")
        values: dict[str, Any] = {}
        for name, tree in found.items():
            values[name] = self.value(tree)
            if not fits(values[name], types_of[name]):
                self.wrong(tree, f"{name} of {kind.__name__} cannot be `{ast.unparse(tree)[:60]}`")
        return values

    def value(self, tree: ast.expr) -> Any:
        match tree:
            case ast.Constant(str() | int() | float() | None):
                return tree.value
            case ast.Name("inf"):
                return math.inf
            case ast.Name("nan"):
                return math.nan
            case ast.UnaryOp(ast.USub(), ast.Constant(int() | float()) | ast.Name("inf")):
                return -self.value(tree.operand)
            case ast.Tuple(items):
                return tuple(self.value(x) for x in items)
            case ast.Subscript(ast.Name(tensor), index):
                return self.view(tree, tensor, index)
            case ast.Call(ast.Name("axes"), [], words):
                return tuple(p.Axis(str(w.arg), self.extent(w.value)) for w in words)
            case ast.Call(ast.Name("Cut")):
                return p.Cut(**self.given(tree, p.Cut, {}))
            case _:
                self.unread(tree, "a number, a word, a tuple, a view, axes or a cut")

    def view(self, tree: ast.expr, tensor: str, index: ast.expr) -> p.View:
        if self.names.get(tensor) != "tensor":
            known = [x for x, kind in self.names.items() if kind == "tensor"]
            self.wrong(tree, f"no tensor is called {tensor}", nearest(tensor, known))
        trees = index.elts if isinstance(index, ast.Tuple) else [index]
        found = [self.arithmetic(x) for x in trees]
        kept = tuple(x for x in found if not isinstance(x, Least))
        if len(kept) != len(found):
            self.unread(tree, "an index without min")
        return p.View(tensor, kept)

    def extent(self, tree: ast.expr) -> int | Least:
        found = self.arithmetic(tree)
        if isinstance(found, Affine) and not found.terms:
            return found.const
        if not isinstance(found, Least):
            self.unread(tree, "a number or min(TILE, REST)")
        return found

    def arithmetic(self, tree: ast.expr) -> Affine | Mod | Floor | Least:
        try:
            found = index_of(tree)
        except ValueError as wrong:
            self.wrong(tree, str(wrong))
        for name in found.names():
            if self.names.get(name) != "axis":
                known = [x for x, kind in self.names.items() if kind == "axis"]
                self.wrong(tree, f"no axis is called {name}", nearest(name, known))
        return found


@cache
def field_types(kind: type[Any]) -> dict[str, Any]:
    found = typing.get_type_hints(kind)
    return {name: found[name] for name, _ in printed_fields(kind)}


def fits(x: Any, kind: Any) -> bool:
    """Whether a value read from the text is of a field's type."""
    inside = typing.get_args(kind)
    match typing.get_origin(kind):
        case typing.Union | types.UnionType:
            return any(fits(x, one) for one in inside)
        case origin if origin is tuple:
            if not isinstance(x, tuple):
                return False
            items = cast("tuple[Any, ...]", x)
            if inside[-1] is ...:
                return all(fits(one, inside[0]) for one in items)
            return len(items) == len(inside) and all(map(fits, items, inside))
        case _:
            return type(x) is kind
