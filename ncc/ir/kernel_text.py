"""Reading a kernel back from Penguin's text: the other half of `ncc.ir.kernel_print`.

The text is read with `ast` and never executed. A word of a call is an operand where the op's row
in `OPS` has a role of that name, and a key otherwise.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, cast

import attrs

from ncc.errors import nearest
from ncc.ir import penguin as p
from ncc.ir.affine import Affine, index_of
from ncc.ir.data import DTYPES, read_data
from ncc.ir.kernel import (
    AXES,
    Access,
    Arg,
    AxisLoop,
    Buffer,
    DeviceFor,
    DeviceWhile,
    Imm,
    Kernel,
    KernelOp,
    Recorded,
    Reg,
    Rows,
    Scalar,
    Statement,
    Unread,
)
from ncc.ir.kernel_ops import OPS, role_of
from ncc.ir.kernel_print import Index, pairs_of, strides_of
from ncc.ir.kernel_request import read as read_request

if TYPE_CHECKING:
    from ncc.ir.penguin_text import Reader

HEADS = ("KernelNode", "KernelCall")
FIELDS = {
    "KernelNode": {"kind": str, "form": str, "sealed": bool},
    "KernelCall": {"source": str, "form": str},
}
OPERAND = "a buffer, a part of one, a number or a register"


def read_statement(reader: Reader, one: ast.With) -> p.KernelNode | p.KernelCall:
    """A kernel statement: `with KernelNode(NAME, ...):` and what stands in it."""
    call = one.items[0].context_expr
    name = ""
    match one.items:
        case [ast.withitem(ast.Call(ast.Name(str(head)), [ast.Constant(str(name))], words), None)]:
            pass
        case _:
            reader.unread(call, "KernelNode(NAME, ...) or KernelCall(NAME, ...)")
    if head not in HEADS:
        reader.wrong(call, f"{head[:40]} is no statement of Penguin", nearest(head, HEADS))
    fields = {w.arg or "": reader.value(w.value) for w in words}
    for key, value in fields.items():
        wanted = FIELDS[head].get(key)
        if wanted is None or type(value) is not wanted:
            reader.wrong(call, f"{head} has no {key}={value!r:.40}", nearest(key, FIELDS[head]))
    found: dict[str, tuple[tuple[str, str], ...]] = {"args": (), "outs": ()}
    bodies: list[Kernel] = []
    for inside in one.body:
        match inside:
            case ast.Expr(ast.Call(ast.Name("args" | "outs" as which), pairs, [])):
                found[which] = tuple(read_binding(reader, x) for x in pairs)
            case ast.With([ast.withitem(ast.Call(ast.Name("body")) as given, None)]):
                bodies.append(BodyReader(reader).kernel(inside, given))
            case _:
                reader.unread(inside, "args(...), outs(...) or `with body(NAME):`")
    origin = reader.origin(call.end_lineno)
    if head == "KernelNode":
        return p.KernelNode(name, tuple(bodies), **found, **fields, origin=origin)
    label = fields.pop("source", "")
    source = Recorded(tuple(bodies)) if bodies else read_request(label) or Unread(label)
    return p.KernelCall(name, source, **found, **fields, origin=origin)


def read_binding(reader: Reader, tree: ast.expr) -> tuple[str, str]:
    """`("x", t)`: the buffer of a parameter, and the tensor that it is."""
    match tree:
        case ast.Tuple([ast.Constant(str(buffer)), ast.Name(tensor)]):
            if reader.names.get(tensor) != "tensor":
                known = [x for x, kind in reader.names.items() if kind == "tensor"]
                reader.wrong(tree, f"no tensor is called {tensor}", nearest(tensor, known))
            return buffer, tensor
        case _:
            reader.unread(tree, "(BUFFER, tensor)")


class BodyReader:
    """One reading of one core's body."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.buffers: dict[str, Buffer] = {}
        self.axes: list[str] = []  # the axes around what is read

    def kernel(self, one: ast.With, given: ast.Call) -> Kernel:
        reader = self.reader
        match given:
            case ast.Call(_, [ast.Constant(str(name))], []):
                core = 0
            case ast.Call(_, [ast.Constant(str(name))], [ast.keyword("core", ast.Constant(core))]):
                if type(core) is not int:
                    reader.unread(given, "core=NUMBER")
            case _:
                reader.unread(given, "body(NAME, core=NUMBER)")
        params: tuple[str, ...] = ()
        results: tuple[Access, ...] = ()
        left: list[ast.stmt] = []
        for inside in one.body:
            match inside:
                case ast.Expr(ast.Call(ast.Name("buffer")) as call):
                    self.buffer(call, "", inside.end_lineno)
                case ast.Assign([ast.Name(bound)], ast.Call(ast.Name("buffer")) as call):
                    self.buffer(call, bound, inside.end_lineno)
                case ast.Expr(ast.Call(ast.Name("params"), trees, [])):
                    params = tuple(self.name(x) for x in trees)
                case ast.Expr(ast.Call(ast.Name("results"), trees, [])):
                    results = tuple(self.access(x) for x in trees)
                case _:
                    left.append(inside)
        body = tuple(self.statements(left))
        origin = reader.origin(given.end_lineno)
        return Kernel(name, tuple(self.buffers.values()), params, results, body, core, origin)

    def buffer(self, call: ast.Call, bound: str, line: int | None) -> None:
        wrong = self.reader.wrong
        values = [self.reader.value(x) for x in call.args]
        more = {w.arg or "": self.reader.value(w.value) for w in call.keywords}
        match values:
            case [str(name), str(dtype), tuple(), str(memory)] if bound in ("", name):
                shape: Any = values[2]
            case _:
                self.reader.unread(call, "buffer(NAME, DTYPE, SHAPE, MEMORY)")
        known = {"kind": str, "address": tuple, "data": str, "blocks": int, "axis": str}
        for key, value in more.items():
            if key not in known or type(value) is not known[key]:
                wrong(call, f"a buffer has no {key}={value!r:.40}", nearest(key, known))
        if any(type(x) is not int for x in (*shape, *more.get("address", ()))):
            wrong(call, f"{name} needs whole numbers as its shape and address")
        if name in self.buffers:
            wrong(call, f"{name} is already a buffer of this body")
        if "data" in more:
            try:
                if dtype not in DTYPES:
                    raise ValueError(f"no dtype is called {dtype}")
                more["data"] = read_data(more["data"], dtype, shape)
            except ValueError as said:
                wrong(call, str(said))
        origin = self.reader.origin(line)
        self.buffers[name] = Buffer(name, dtype, shape, memory, **more, origin=origin)

    # ---- statements -----------------------------------------------------------------------------

    def statements(self, trees: list[ast.stmt]) -> Iterator[Statement]:
        for one in trees:
            match one:
                case ast.Pass():
                    pass
                case ast.Assign([ast.Name(name)], ast.Call(ast.Attribute()) as call):
                    yield self.op(call, name, one.end_lineno)
                case ast.Expr(ast.Call(ast.Attribute()) as call):
                    yield self.op(call, "", one.end_lineno)
                case ast.With([ast.withitem(ast.Call(ast.Name(str(head))) as call, None)], inside):
                    yield self.loop(head, call, inside)
                case ast.For(ast.Name(name), ast.Call(ast.Name(str(kind)), [count], []), inside):
                    yield self.axis(one, name, kind, count)
                case _:
                    self.reader.unread(one, "an op `i0 = nisa.OP(...)`, or a loop")

    def loop(self, head: str, call: ast.Call, inside: list[ast.stmt]) -> Statement:
        body = tuple(self.statements(inside))
        origin = self.reader.origin(call.end_lineno)
        match head, call.args, call.keywords:
            case "fori_loop", [ast.Constant(str(name)), var, lower, upper], [ast.keyword("step")]:
                step = self.reader.value(call.keywords[0].value)
                found = [self.arg(x) for x in (var, lower, upper)]
                match found:
                    case [Reg() as count, Imm() | Reg() as low, Imm() | Reg() as high]:
                        if type(step) is int:
                            return DeviceFor(name, count, low, high, step, body, origin)
                    case _:
                        pass
            case "while_loop", [ast.Constant(str(name)), condition], []:
                register = self.arg(condition)
                if isinstance(register, Reg):
                    return DeviceWhile(name, register, body, origin)
            case _:
                pass
        self.reader.unread(
            call, "fori_loop(NAME, reg(VAR), LOWER, UPPER, step=N) or while_loop(NAME, reg(VAR))"
        )

    def axis(self, one: ast.For, name: str, kind: str, count: ast.expr) -> AxisLoop:
        turns = self.reader.value(count)
        if kind not in AXES or type(turns) is not int or one.orelse:
            self.reader.unread(one.iter, "affine_range(TURNS) or sequential_range(TURNS)")
        if name in self.axes:
            self.reader.wrong(one.iter, f"{name} is already the axis of a loop around this one")
        self.axes.append(name)
        body = tuple(self.statements(one.body))
        self.axes.pop()
        return AxisLoop(name, kind, turns, body, self.reader.origin(one.iter.end_lineno))

    def affine(self, tree: ast.expr) -> Affine:
        """A number, or a sum of numbers and multiples of the axes."""
        try:
            found = index_of(tree)
        except ValueError as said:
            self.reader.wrong(tree, str(said))
        if not isinstance(found, Affine):
            self.reader.unread(tree, "a sum of numbers and multiples of axes")
        for name in found.names():
            if name not in self.axes:
                hint = nearest(name, self.axes)
                self.reader.wrong(tree, f"{name} is no axis of a loop around this", hint)
        return found

    def op(self, call: ast.Call, bound: str, line: int | None) -> KernelOp:
        wrong = self.reader.wrong
        match call.func:
            case ast.Attribute(ast.Name("nisa"), op) if not call.args:
                pass
            case _:
                self.reader.unread(call, "nisa.OP(ROLE=..., KEY=...)")
        if op not in OPS:
            wrong(call, f"no op of a kernel is called {op[:40]}", nearest(op, OPS))
        args: list[tuple[str, Arg]] = []
        keys: list[tuple[str, Any]] = []
        own: dict[str, Any] = {"name": bound, "engine": "unknown", "after": ()}
        for given in call.keywords:
            key = given.arg or ""
            if role_of(op, key):
                args.append((key, self.arg(given.value)))
            elif key in OPS[op].keys:
                keys.append((key, self.reader.value(given.value)))
            elif key in own:
                own[key] = self.reader.value(given.value)
            else:
                known = (*OPS[op].writes, *OPS[op].reads, *OPS[op].keys, *own)
                wrong(call, f"{op} has no {key}", nearest(key, (x.strip("?*") for x in known)))
        after = cast("tuple[Any, ...]", own["after"])
        if not isinstance(own["after"], tuple) or any(type(x) is not str for x in after):
            wrong(call, "after= takes the names of ops, such as ('i0',)")
        if type(own["name"]) is not str or type(own["engine"]) is not str or not own["name"]:
            wrong(call, "an op has a name and an engine, which are words")
        origin = self.reader.origin(line)
        ordered = tuple(sorted(keys, key=lambda pair: pair[0]))
        return KernelOp(own["name"], op, tuple(args), ordered, own["engine"], after, origin)

    # ---- operands -------------------------------------------------------------------------------

    def arg(self, tree: ast.expr) -> Arg:
        match tree:
            case ast.Constant(int() | float()) | ast.UnaryOp() | ast.Name("inf" | "nan"):
                return Imm(self.reader.value(tree))
            case ast.Call(ast.Name("reg"), [ast.Constant(str(name))], []):
                return Reg(name)
            case ast.Call(ast.Name("reg"), [ast.Constant(str(name)), ast.Constant(str(kind))], []):
                return Reg(name, kind)
            case _:
                return self.access(tree)

    def name(self, tree: ast.expr) -> str:
        match tree:
            case ast.Name(name) | ast.Call(ast.Name("the"), [ast.Constant(str(name))], []):
                if name not in self.buffers:
                    hint = nearest(name, self.buffers)
                    self.reader.wrong(tree, f"no buffer is called {name}", hint)
                return name
            case _:
                self.reader.unread(tree, OPERAND)

    def access(self, tree: ast.expr) -> Access:
        match tree:
            case ast.Call(ast.Attribute(of, "by" | "rows" as how), [source, scale, limit], []):
                held = self.access(of)
                start = self.arg(source)
                times, most = self.reader.value(scale), self.reader.value(limit)
                if type(times) is not int or type(most) is not int:
                    self.reader.unread(tree, f".{how}(START, SCALE, LIMIT)")
                return self.moved(tree, held, how, start, (times, most))
            case ast.Call(ast.Attribute(of, "ap"), pairs, words):
                return self.pattern(tree, self.buffers[self.name(of)], pairs, words)
            case ast.Subscript(of, index):
                return self.part(tree, self.buffers[self.name(of)], index)
            case _:
                buffer = self.buffers[self.name(tree)]
                pairs, _ = pairs_of(buffer.whole, [(0, n, 1) for n in buffer.whole])
                return Access(buffer.name, buffer.dtype, pairs)

    def part(self, tree: ast.expr, buffer: Buffer, index: ast.expr) -> Access:
        """A subscript: a number or a slice for each dimension, which axes may move."""
        items = index.elts if isinstance(index, ast.Tuple) else [index]
        if len(items) != len(buffer.whole):
            has, given = len(buffer.whole), len(items)
            said = f"{buffer.name} has {has} dimensions, was indexed by {given}"
            self.reader.wrong(tree, said)
        at: list[Index] = []
        terms = Affine()
        steps = strides_of(buffer.whole)
        for one, extent, step in zip(items, buffer.whole, steps, strict=True):
            found, moved = self.index(one, extent)
            at.append(found)
            terms = terms.plus(moved, step)
        pairs, offset = pairs_of(buffer.whole, at)
        return Access(buffer.name, buffer.dtype, pairs, offset, (), terms.terms)

    def moved(self, tree: ast.expr, held: Access, how: str, start: Arg, by: Any) -> Access:
        match how, start:
            case "by", Reg() | Access():
                move = Scalar(start, *by)
            case "rows", Access():
                move = Rows(start, *by)
            case _:
                self.reader.unread(tree, f".{how} of a register or of part of a buffer")
        return attrs.evolve(held, moves=(*held.moves, move))

    def pattern(
        self, tree: ast.expr, buffer: Buffer, trees: list[ast.expr], words: list[ast.keyword]
    ) -> Access:
        pairs = tuple(self.reader.value(x) for x in trees)
        more: dict[str, Any] = {"offset": Affine(), "dtype": buffer.dtype}
        for given in words:
            if given.arg not in more:
                self.reader.unread(tree, "ap((STEP, NUM), ..., offset=N, dtype=WORD)")
            read = self.affine if given.arg == "offset" else self.reader.value
            more[given.arg] = read(given.value)
        good = all(isinstance(x, tuple) and len(cast("tuple[Any, ...]", x)) == 2 for x in pairs)
        if (
            not good
            or any(type(n) is not int for pair in pairs for n in pair)
            or type(more["dtype"]) is not str
        ):
            self.reader.unread(tree, "ap((STEP, NUM), ..., offset=N, dtype=WORD)")
        start: Affine = more["offset"]
        return Access(buffer.name, more["dtype"], pairs, start.const, (), start.terms)

    def index(self, tree: ast.expr, extent: int) -> tuple[Index, Affine]:
        """One index in the first turns, and what axes add to it."""
        if not isinstance(tree, ast.Slice):
            found = self.affine(tree)
            return found.const, Affine(0, found.terms)
        start = Affine() if tree.lower is None else self.affine(tree.lower)
        stop = Affine(extent) if tree.upper is None else self.affine(tree.upper)
        step = 1 if tree.step is None else self.reader.value(tree.step)
        if type(step) is not int or step == 0:
            self.reader.unread(tree, "START:STOP:STEP in whole numbers")
        if start.terms != stop.terms:
            self.reader.unread(tree, "a slice whose ends move together")
        return (start.const, stop.const, step), Affine(0, start.terms)
