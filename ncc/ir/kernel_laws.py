"""The laws of a kernel inside Penguin: what must hold of the node with what a kernel recorded.

They are linear in a kernel's ops, of which there may be thousands.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, cast

import attrs

from ncc.errors import NccError, Place, listed, nearest
from ncc.ir import penguin as p
from ncc.ir.core import Origin
from ncc.ir.data import DTYPES, FP8, size_of
from ncc.ir.kernel import (
    AXES,
    Access,
    Arg,
    AxisLoop,
    Buffer,
    DeviceFor,
    Imm,
    Kernel,
    KernelOp,
    Reg,
    Rows,
    Statement,
    ops_of,
)
from ncc.ir.kernel_bounds import access_fault
from ncc.ir.kernel_ops import OPS, role_of, writes
from ncc.ir.kernel_print import show_op
from ncc.ir.partitions import PARTITIONS, too_many
from ncc.target import Target

Faults = Iterator[NccError]
MEMORIES = ("hbm", "shared_hbm", "sbuf", "psum")
KINDS = ("input", "inout", "output", "const", "internal")
NODE_KINDS = ("external", "internal")
FORMS = ("bir", "klir")
ENGINES = ("unknown", "tensor", "vector", "scalar", "gpsimd", "dma", "sync")


def kernels_are_sound(module: p.Function, target: Target) -> Faults:
    """Every buffer and op of a kernel is what the tables allow, and its bindings exist."""
    for one in module.body:
        if isinstance(one, p.KernelNode | p.KernelCall):
            yield from _kernel(one, module, target)


def _kernel(node: p.KernelNode | p.KernelCall, module: p.Function, target: Target) -> Faults:
    yield from _bindings(node, module)
    if isinstance(node, p.KernelNode):
        if not node.bodies:
            yield _fault("NCC294", node, "has no body")
        for body in node.bodies:
            yield from Body(body, target).faults()
            yield from _signature(node, body, module)
        yield from _written(node)


def _fault(code: str, of: Any, said: str, hint: str = "") -> NccError:
    origin: Origin = of.origin
    return NccError(code, said, origin.place(of.name), hint)


# ---- bindings -----------------------------------------------------------------------------------


def _bindings(node: p.KernelNode | p.KernelCall, module: p.Function) -> Faults:
    if node.form not in FORMS:
        yield _fault("NCC294", node, f"travels as {node.form!r}; there are {listed(FORMS)}")
    if isinstance(node, p.KernelNode) and node.kind not in NODE_KINDS:
        yield _fault("NCC294", node, f"is {node.kind!r}; a kernel is {listed(NODE_KINDS)}")
    tensors = {t.name: t for t in module.tensors}
    for pairs, what in ((node.args, "an argument"), (node.outs, "a result")):
        for name, count in Counter(buffer for buffer, _ in pairs).items():
            if count > 1:
                yield _fault("NCC294", node, f"{name} is {what} twice")
        for buffer, tensor in pairs:
            found = tensors.get(tensor)
            if found is None:
                hint = nearest(tensor, tensors)
                yield _fault("NCC294", node, f"{what} is {tensor}, which is no tensor", hint)
            elif found.home not in ("dram", "unplaced"):
                said = f"{buffer} is {tensor}, which is at home in {found.home}"
                yield _fault("NCC294", node, said, "what a kernel takes and gives lies in DRAM")


def _signature(node: p.KernelNode, body: Kernel, module: p.Function) -> Faults:
    """The buffers that are bound exist, are of the kind, and are as large as their tensors."""
    buffers = {b.name: b for b in body.buffers}
    tensors = {t.name: t for t in module.tensors}
    args, outs = dict(node.args), dict(node.outs)
    for name in body.params:
        if name not in args:
            yield _fault("NCC294", node, f"the parameter {name} is bound to no tensor")
    for name, bound in ((n, x) for pairs in (args, outs) for n, x in pairs.items()):
        if name not in buffers:
            if name in args and name not in body.params:
                yield _fault("NCC294", node, f"{name} is no parameter", nearest(name, body.params))
            continue
        tensor, buffer = tensors.get(bound), buffers[name]
        if tensor and (tensor.dtype, tensor.shape) != (buffer.dtype, buffer.shape):
            said = f"{name} is {_typed(buffer)}, and {bound} is {_typed(tensor)}"
            yield _fault("NCC294", node, said)
    for one in body.buffers:
        if one.kind == "output" and one.name not in outs:
            yield _fault("NCC294", node, f"the result {one.name} is bound to no tensor")
        if one.kind == "inout" and (one.name not in args or one.name not in outs):
            yield _fault("NCC294", node, f"{one.name} is written, so it is argument and result")


def _typed(x: Buffer | p.Tensor) -> str:
    return f"{x.dtype} {'x'.join(map(str, x.shape)) or 'scalar'}"


def _written(node: p.KernelNode) -> Faults:
    """Some core writes each result (a result that is an argument has its old value)."""
    done: set[str] = set(dict(node.args))
    empty: set[str] = set()
    for body in node.bodies:
        empty.update(b.name for b in body.buffers if 0 in b.shape)
        for op in ops_of(body.body):
            mine = writes(op.op) if op.op in OPS else frozenset[str]()
            done.update(a.buffer for r, a in op.args if r in mine and isinstance(a, Access))
    for buffer, _ in node.outs:
        if buffer not in done and buffer not in empty:
            hint = "copy the result into it before the kernel returns"
            yield _fault("NCC295", node, f"no instruction writes its result {buffer}", hint)


# ---- one body -----------------------------------------------------------------------------------


@attrs.define
class Body:
    """The checks of one core's body, and what they look up."""

    kernel: Kernel
    target: Target
    buffers: dict[str, Buffer] = attrs.field(factory=dict[str, Buffer])
    seen: set[str] = attrs.field(factory=set[str])  # ops so far
    good: set[Access] = attrs.field(factory=set[Access])
    turns: dict[str, int] = attrs.field(factory=dict[str, int])  # of the axes around what is read

    def faults(self) -> Faults:
        kernel = self.kernel
        self.buffers = {b.name: b for b in kernel.buffers}
        names = Counter([*(b.name for b in kernel.buffers), *_names(kernel.body)])
        for name, count in names.items():
            if count > 1 or not name:
                yield _fault("NCC290", kernel, f"{count} buffers or ops are called {name!r}")
        for buffer in kernel.buffers:
            if buffer.on_chip and buffer.shape and buffer.shape[0] > PARTITIONS:
                yield _fault("NCC310", buffer, *too_many(buffer.shape))
            elif said := buffer_fault(buffer, self.target):
                yield _fault("NCC291", buffer, said)
        for name in kernel.params:
            if name not in self.buffers or self.buffers[name].kind not in ("input", "inout"):
                yield _fault("NCC294", kernel, f"the parameter {name} is no input buffer")
        for buffer in kernel.buffers:
            if buffer.kind in ("input", "inout") and buffer.name not in kernel.params:
                yield _fault("NCC294", buffer, f"is {buffer.kind}, and no parameter")
        for result in kernel.results:
            if said := self.access(result):
                yield _fault("NCC292", kernel, f"a result {said}")
        yield from self.body(kernel.body, frozenset())

    def body(self, body: tuple[Statement, ...], registers: frozenset[str]) -> Faults:
        known = set(registers)
        for one in body:
            if isinstance(one, KernelOp):
                yield from self.op(one, known)
                continue
            if isinstance(one, AxisLoop):
                yield from self.axis(one, known)
                continue
            read = (one.lower, one.upper) if isinstance(one, DeviceFor) else (one.condition,)
            for arg in read:
                if isinstance(arg, Reg) and arg.name not in known:
                    yield _fault("NCC296", one, f"reads the register {arg.name}, never written")
            own = {one.var.name} if isinstance(one, DeviceFor) else set[str]()
            if isinstance(one, DeviceFor) and one.step == 0:
                yield _fault("NCC293", one, "counts by 0")
            yield from self.body(one.body, frozenset(known | own))
            known |= _written_registers(one.body)

    def axis(self, one: AxisLoop, registers: set[str]) -> Faults:
        if one.kind not in AXES or one.count < 1:
            said = f"an axis is {listed(AXES)} of at least 1 turn, this is {one.kind}({one.count})"
            yield _fault("NCC289", one, said)
            return
        self.turns[one.name] = one.count
        yield from self.body(one.body, frozenset(registers))
        del self.turns[one.name]
        registers |= _written_registers(one.body)

    def op(self, op: KernelOp, registers: set[str]) -> Faults:
        row = OPS.get(op.op)
        if row is None:
            said = f"no op of a kernel is called {op.op}"
            yield _fault("NCC293", op, said, nearest(op.op, OPS))
            return
        roles = [role for role, _ in op.args]
        for role in roles:
            if not role_of(op.op, role) or roles.count(role) > 1:
                yield _fault("NCC293", op, f"{op.op} takes no operand {role}, or takes it once")
        for wanted in (*row.writes, *row.reads):
            if wanted[-1] not in "?*" and wanted not in roles:
                yield _fault("NCC293", op, f"{op.op} lacks its operand {wanted}")
        for key, value in op.keys:
            if key not in row.keys:
                said = f"{op.op} has no key {key}"
                yield _fault("NCC293", op, said, nearest(key, row.keys))
            elif key == "accumulate" and isinstance(value, tuple):
                yield from self.known(op, cast("tuple[str, ...]", value))
            elif not _alike(value, row.keys[key]):
                yield _fault("NCC293", op, f"{key} of {op.op} cannot be {value!r:.40}")
        if [k for k, _ in op.keys] != sorted({k for k, _ in op.keys}):
            yield _fault("NCC293", op, "its keys are not in order")
        if ("perf_mode", "double_row") in op.keys:
            yield from _double_row(op)
        if op.engine not in ENGINES:
            yield _fault("NCC293", op, f"no engine is called {op.engine}; {listed(ENGINES)} are")
        for name in op.after:
            if name not in self.seen:
                yield _fault("NCC293", op, f"must follow {name}, which is no earlier op")
        self.seen.add(op.name)
        mine = writes(op.op)
        for role, arg in op.args:
            yield from self.operand(op, role, arg, role in mine, registers)

    def operand(
        self, op: KernelOp, role: str, arg: Arg, written: bool, registers: set[str]
    ) -> Faults:
        match arg:
            case Imm():
                if written:
                    yield _fault("NCC293", op, f"writes its operand {role}, which is a number")
            case Reg(name):
                if written:
                    registers.add(name)
                elif name not in registers:
                    yield _fault("NCC296", op, f"reads the register {name} before it is written")
            case Access():
                yield from self.known(op, [axis for axis, _ in arg.terms])
                owner = self.buffers[arg.buffer].axis if arg.buffer in self.buffers else ""
                if owner:
                    yield from self.known(op, [owner])
                if said := self.access(arg):
                    yield NccError(
                        "NCC292",
                        f"{role} {said}",
                        op.origin.place(op.name),
                        show_op(op, self.buffers),
                    )
                for move in arg.moves:
                    if isinstance(move.source, Reg) and move.source.name not in registers:
                        said = f"reads the register {move.source.name} before it is written"
                        yield _fault("NCC296", op, said)
                kind = self.buffers[arg.buffer].kind if arg.buffer in self.buffers else ""
                if written and kind in ("input", "const"):
                    yield _fault("NCC292", op, f"writes {arg.buffer}, which is {kind}")

    def known(self, op: KernelOp, axes: Iterable[str]) -> Faults:
        for axis in axes:
            if axis not in self.turns:
                said = f"{axis} is no axis of a loop around {op.op}"
                yield _fault("NCC289", op, said, nearest(axis, self.turns))

    def access(self, access: Access) -> str:
        """What is wrong with an access; "" when nothing is."""
        if access in self.good:
            return ""
        buffer = self.buffers.get(access.buffer)
        if buffer is None:
            hint = nearest(access.buffer, self.buffers)
            return (
                f"names {access.buffer}, which is no buffer {f'({hint})' if hint else ''}".strip()
            )
        said = "has an unknown dtype"
        if access.dtype in DTYPES:
            said = access_fault(access, buffer, self.turns)
        for move in access.moves:
            if isinstance(move.source, Access):
                said = said or self.access(move.source)
                if not said and isinstance(move, Rows) and math.prod(move.source.shape) < 1:
                    said = "has no row to start from"
        if not said:
            self.good.add(access)
        return said


def _double_row(op: KernelOp) -> Faults:
    """The array takes rows two by two in 8-bit floats only (NKI reference 7.2)."""
    for role in ("stationary", "moving"):
        arg = op.arg(role)
        if not isinstance(arg, Access):
            continue
        if arg.dtype not in FP8:
            said = f"{role} of {op.op} in double_row is {arg.dtype}, and no 8-bit float"
            yield _fault("NCC293", op, said, "leave perf_mode out")
        elif len(arg.pairs) < 3 or arg.pairs[1][1] != 2:
            yield _fault("NCC293", op, f"{role} of {op.op} in double_row is no [K, 2, n]")


def _names(body: tuple[Statement, ...]) -> Iterator[str]:
    for one in body:
        yield one.name
        if not isinstance(one, KernelOp):
            yield from _names(one.body)


def _written_registers(body: tuple[Statement, ...]) -> set[str]:
    """A loop may write registers that its outside reads."""
    return {
        arg.name
        for op in ops_of(body)
        for role, arg in op.args
        if isinstance(arg, Reg) and role in writes(op.op)
    }


def _alike(value: Any, usual: Any) -> bool:
    """Whether a key's value is of the kind that its default is."""
    numbers = (int, float)
    if type(usual) in numbers:
        return type(value) in numbers
    return type(value) is type(usual)


def buffer_fault(buffer: Buffer, target: Target) -> str:
    """What is wrong with a buffer; "" when nothing is."""
    if buffer.dtype not in DTYPES:
        return f"no dtype is called {buffer.dtype}"
    if buffer.memory not in MEMORIES or buffer.kind not in KINDS:
        return (
            f"is {buffer.kind} in {buffer.memory}; there are {listed(KINDS)}, in {listed(MEMORIES)}"
        )
    if any(n < 0 for n in buffer.shape) or (buffer.on_chip and not buffer.shape):
        return f"its shape {buffer.shape} is none"
    if (buffer.kind == "const") != (buffer.data is not None):
        return "a const has data, and nothing else has"
    if buffer.blocks < 0 or ((buffer.blocks or buffer.axis) and buffer.kind != "internal"):
        return f"is {buffer.kind} and has {buffer.blocks} blocks; only internal ones have some"
    if buffer.data and (buffer.data.dtype, buffer.data.shape) != (buffer.dtype, buffer.shape):
        return "its data has another dtype or shape"
    if buffer.address is not None:
        if not buffer.on_chip or len(buffer.address) != 2:
            return "only a buffer on chip has an address (first partition, byte)"
        first, byte = buffer.address
        if not 0 <= first <= target.partitions - buffer.shape[0] or byte < 0:
            return f"lies on {buffer.shape[0]} partitions from {first}, byte {byte}"
        if byte % size_of(buffer.dtype):
            return (
                f"lies at byte {byte}, no multiple of the {size_of(buffer.dtype)} of its elements"
            )
    return ""


# ---- facts --------------------------------------------------------------------------------------


def kernels_are_traced(module: p.Function, target: Target) -> Faults:
    """No call is left whose Python has not run."""
    for one in module.body:
        if isinstance(one, p.KernelCall):
            yield _fault("NCC297", one, "is still a call; nki-trace runs it")


def kernels_are_sealed(module: p.Function, target: Target) -> Faults:
    """Every kernel is sealed, and each op of it says which line of the kernel it is."""
    for one in module.body:
        if not isinstance(one, p.KernelNode):
            continue
        if not one.sealed:
            yield _fault("NCC299", one, "is not sealed; nki-seal does that")
        for body in one.bodies:
            for op in ops_of(body.body):
                if not op.origin.file:
                    yield NccError("NCC298", f"{op.op} has no line", Place(value=op.name))
