"""The words of a kernel in a Penguin program that runs: what `ncc.penguin` offers for them.

    with KernelNode("copy"):
        args(("x", x))
        outs(("y", y))
        with body("copy"):
            x = buffer("x", "float32", (4, 8), "shared_hbm", kind="input")
            y = buffer("y", "float32", (4, 8), "shared_hbm", kind="output")
            params(x)
            i0 = nisa.dma_copy(dst=y, src=x)
            results(y)

An op is called as the variable that it is assigned to, which is seen when its body ends.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, cast

import attrs

from ncc.ir import kernel as k
from ncc.ir.affine import Affine
from ncc.ir.data import read_data
from ncc.ir.kernel_ops import role_of
from ncc.ir.kernel_print import Index, pairs_of, strides_of
from ncc.ir.kernel_request import read
from ncc.ir.penguin import KernelCall as CallNode
from ncc.ir.penguin import KernelNode as Node


@attrs.frozen(eq=False)
class Part:
    """A buffer, or a part of one, while a body is written."""

    of: k.Buffer
    access: k.Access

    @property
    def name(self) -> str:
        return self.of.name

    def __getitem__(self, index: Any) -> Part:
        given = cast("tuple[Any, ...]", index) if isinstance(index, tuple) else (index,)
        shape = self.of.whole
        at = [_index(x, n) for x, n in zip(given, shape, strict=True)]
        pairs, offset = pairs_of(shape, [index for index, _ in at])
        terms = Affine()
        for (_, moved), step in zip(at, strides_of(shape), strict=True):
            terms = terms.plus(moved, step)
        access = k.Access(self.of.name, self.of.dtype, pairs, offset, (), terms.terms)
        return Part(self.of, access)

    def ap(self, *pairs: tuple[int, int], offset: Any = 0, dtype: str = "") -> Part:
        """Any access of the buffer, by its pairs."""
        at, kind = _sum(offset), dtype or self.of.dtype
        return Part(self.of, k.Access(self.of.name, kind, pairs, at.const, (), at.terms))

    def by(self, start: k.Reg | Part, scale: int, limit: int) -> Part:
        """The same elements, from where a register or an element says."""
        source = start.access if isinstance(start, Part) else start
        return self._moved(k.Scalar(source, scale, limit))

    def rows(self, starts: Part, scale: int, limit: int) -> Part:
        """The same elements, each row from where `starts` says."""
        return self._moved(k.Rows(starts.access, scale, limit))

    def _moved(self, move: k.Scalar | k.Rows) -> Part:
        moves = (*self.access.moves, move)
        return Part(self.of, attrs.evolve(self.access, moves=moves))


def _sum(x: Any) -> Affine:
    """A number, or the arithmetic that axes are written in."""
    return Affine(x) if isinstance(x, int) else x.of


def _index(x: Any, extent: int) -> tuple[Index, Affine]:
    """An index in the first turns, and what axes add to it."""
    if not hasattr(x, "stop"):
        at = _sum(x)
        return at.const, Affine(0, at.terms)
    start = Affine() if x.start is None else _sum(x.start)
    stop = Affine(extent) if x.stop is None else _sum(x.stop)
    return (start.const, stop.const, x.step or 1), Affine(0, start.terms)


@attrs.define(eq=False)
class Op:
    """One op while its body is written: it has no name before the body ends, or the one given."""

    op: k.KernelOp


@attrs.define(eq=False)
class Body:
    """One core's body while it is written."""

    buffers: dict[str, Part] = attrs.field(factory=dict[str, Part])
    params: tuple[str, ...] = ()
    results: tuple[k.Access, ...] = ()
    statements: list[list[Any]] = attrs.field(factory=lambda: [[]])


@attrs.define(eq=False)
class Statement:
    """One kernel statement while it is written."""

    args: tuple[tuple[str, str], ...] = ()
    outs: tuple[tuple[str, str], ...] = ()
    bodies: list[k.Kernel] = attrs.field(factory=list[k.Kernel])


_statements: list[Statement] = []
_bodies: list[Body] = []


def statements(add: Callable[[Any], None]) -> tuple[Any, Any]:
    """`KernelNode` and `KernelCall` as context managers; `add` takes the node that is written."""

    @contextmanager
    def node(name: str, **fields: Any) -> Generator[None]:
        with _written() as held:
            yield
        add(Node(name, tuple(held.bodies), held.args, held.outs, **fields))

    @contextmanager
    def call(name: str, source: str = "", **fields: Any) -> Generator[None]:
        with _written() as held:
            yield
        of = k.Recorded(tuple(held.bodies)) if held.bodies else read(source) or k.Unread(source)
        add(CallNode(name, of, held.args, held.outs, **fields))

    return node, call


@contextmanager
def _written() -> Generator[Statement]:
    _statements.append(Statement())
    try:
        yield _statements[-1]
    finally:
        _statements.pop()


def args(*pairs: tuple[str, Any]) -> None:
    """(buffer of a parameter, tensor) each."""
    _statements[-1].args = tuple((buffer, tensor.name) for buffer, tensor in pairs)


def outs(*pairs: tuple[str, Any]) -> None:
    """(buffer that is written, tensor) each."""
    _statements[-1].outs = tuple((buffer, tensor.name) for buffer, tensor in pairs)


class body:  # spelled as the text has it
    """What one core runs: `with body("copy", core=0):`."""

    def __init__(self, name: str, core: int = 0) -> None:
        self.name, self.core = name, core

    def __enter__(self) -> None:
        _bodies.append(Body())

    def __exit__(self, kind: Any, value: Any, trace: Any) -> None:
        held = _bodies.pop()
        if kind is not None:
            return
        frame = inspect.currentframe()
        outside: Mapping[str, Any] = frame.f_back.f_locals if frame and frame.f_back else {}
        names = {id(v): name for name, v in outside.items() if isinstance(v, Op)}
        made = _named(held.statements[0], names)
        buffers = tuple(part.of for part in held.buffers.values())
        kernel = k.Kernel(self.name, buffers, held.params, held.results, made, self.core)
        _statements[-1].bodies.append(kernel)


def _named(found: list[Any], names: dict[int, str]) -> tuple[k.Statement, ...]:
    made: list[k.Statement] = []
    for one in found:
        if isinstance(one, Op):
            name = one.op.name or names.get(id(one), "")
            made.append(attrs.evolve(one.op, name=name))
        else:
            kind, fields, inside = one
            made.append(kind(**fields, body=_named(inside, names)))
    return tuple(made)


def buffer(name: str, dtype: str, shape: tuple[int, ...], memory: str, **fields: Any) -> Part:
    """A tensor of the kernel; the fields are those of `ncc.ir.kernel.Buffer`."""
    if isinstance(fields.get("data"), str):
        fields["data"] = read_data(fields["data"], dtype, shape)
    of = k.Buffer(name, dtype, shape, memory, **fields)
    pairs, _ = pairs_of(of.whole, [(0, n, 1) for n in of.whole])
    found = _bodies[-1].buffers[name] = Part(of, k.Access(name, dtype, pairs))
    return found


def the(name: str) -> Part:
    """The buffer whose name is no name of Python."""
    return _bodies[-1].buffers[name]


def params(*given: Part) -> None:
    _bodies[-1].params = tuple(part.name for part in given)


def results(*given: Part) -> None:
    _bodies[-1].results = tuple(part.access for part in given)


reg = k.Reg


class _Calls:
    """`nisa.OP(ROLE=..., KEY=..., engine=..., after=..., name=...)`."""

    def __getattr__(self, op: str) -> Callable[..., Op]:
        def write(
            *, engine: str = "unknown", after: tuple[str, ...] = (), name: str = "", **words: Any
        ) -> Op:
            operands = tuple((w, _arg(x)) for w, x in words.items() if role_of(op, w))
            keys = tuple(sorted((w, x) for w, x in words.items() if not role_of(op, w)))
            made = Op(k.KernelOp(name, op, operands, keys, engine, after))
            _bodies[-1].statements[-1].append(made)
            return made

        return write


def _arg(x: Any) -> k.Arg:
    if isinstance(x, Part):
        return x.access
    return x if isinstance(x, k.Reg) else k.Imm(x)


nisa = _Calls()


@contextmanager
def _loop(kind: type[Any], **fields: Any) -> Generator[None]:
    held = _bodies[-1].statements
    held.append([])
    yield
    inside = held.pop()
    held[-1].append((kind, fields, inside))


def fori_loop(name: str, var: k.Reg, lower: Any, upper: Any, *, step: int) -> Any:
    """A loop that the machine counts."""
    ends = {"lower": _arg(lower), "upper": _arg(upper)}
    return _loop(k.DeviceFor, name=name, var=var, step=step, **ends)


def axis_loop(kind: str, count: int, name: str, index: Any) -> Generator[Any]:
    """The loop over an axis, whose body is written once; `index` is what it is called there."""
    held = _bodies[-1].statements
    held.append([])
    yield index
    inside = held.pop()
    held[-1].append((k.AxisLoop, {"name": name, "kind": kind, "count": count}, inside))


def while_loop(name: str, condition: k.Reg) -> Any:
    """A loop that the machine ends when a register is 0."""
    return _loop(k.DeviceWhile, name=name, condition=condition)
