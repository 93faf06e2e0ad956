"""From a traced kernel to a BIR function: buffers become location sets, calls instructions.

Every op has one function, found by its name in the tables of the `kernel_lower_*` modules; they
share the `Lowering`, which knows the buffers, makes temporary tiles and collects instructions. What
the machine does while it runs (loops with bounds that only it knows, moving starts) has no form
here yet and is refused by name; a loop whose bounds are numbers is unrolled, and its register is a
number in every access.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any

import attrs

from ncc.errors import NccError
from ncc.ir.bir import Ap, Block, Function, Imm, Inst, Loc, LocSet, Operand
from ncc.ir.bir_opcodes import keyed
from ncc.ir.core import Origin
from ncc.ir.data import FLOATS, Data, data, eye, numpy_type, size_of
from ncc.ir.kernel import (
    Access,
    Arg,
    Buffer,
    DeviceFor,
    DeviceWhile,
    Kernel,
    KernelOp,
    Reg,
    Scalar,
    Statement,
)
from ncc.ir.kernel import Imm as Number
from ncc.ir.kernel_starts import CLAMP, outside
from ncc.ir.kernel_walks import Part, Walk, cut
from ncc.target import Target

ME = "lower-kernel"
MEMORY = {"hbm": "DRAM", "shared_hbm": "DRAM", "sbuf": "SB", "psum": "PSUM"}
KINDS = {
    "input": "ExternalInput",
    "inout": "ExternalOutput",
    "output": "ExternalOutput",
    "const": "Const",
    "internal": "Internal",
}
ENGINES = {"vector": "DVE", "scalar": "Activation", "gpsimd": "Pool", "tensor": "PE"}
BANK = 2048
MOVES = frozenset(("dma_copy", "dma_transpose", "tensor_copy", "nc_stream_shuffle"))
MOST_TURNS = 1 << 20  # iterations that are unrolled

Lower = Callable[["Lowering"], None]


def lower(kernel: Kernel, target: Target) -> Function:
    """The BIR function of one core's kernel. Its sets have the names of the buffers."""
    return Lowering(kernel, target).function()


def cell(dtype: str) -> str:
    """The 4-byte type of a PSUM cell that holds every value of `dtype`."""
    if size_of(dtype) >= 4:
        return dtype
    return "float32" if dtype in FLOATS else "uint32" if dtype.startswith("u") else "int32"


class Lowering:
    """One kernel on its way down, and the op at hand."""

    def __init__(self, kernel: Kernel, target: Target) -> None:
        from ncc.ir.kernel_lower_sets import bank_safe

        self.kernel, self.target = kernel, target
        self.buffers = {x.name: x for x in kernel.buffers}
        self.free_places = bank_safe(kernel.buffers)  # PSUM buffers that lose their address
        self.temps: list[LocSet] = []
        self.taken = set(self.buffers)
        self.labels: set[str] = set()
        self.insts: list[Inst] = []
        self.last: dict[str, str] = {}  # of each op: its last instruction so far
        self.env: dict[str, int] = {}  # registers whose value is known
        self.cells: dict[str, Walk] = {}  # registers that hold what an element on chip held
        self.suffix = ""
        self.identities: dict[str, Walk] = {}
        self.op = KernelOp("", "", ())
        self.after: tuple[tuple[str, str], ...] = ()
        self.known: set[str] = {x.name for x in kernel.buffers if x.kind in ("input", "const")}
        self.filled: set[str] = {x.name for x in kernel.buffers if x.data is None or not x.on_chip}
        self.shared: tuple[Ap, ...] | None = None  # what the cores share, as a barrier has it
        self.exchanges = 0  # transfers between cores so far

    # --- the whole --------------------------------------------------------------------------------

    def function(self) -> Function:
        from ncc.ir.kernel_lower_groups import started
        from ncc.ir.kernel_lower_sets import sets_of

        self.body(self.kernel.body)
        used = {x.loc for i in self.insts for x in (*i.ins, *i.outs) if isinstance(x, Ap)}
        exits = Inst(self.label("exit"), "Exit", "ALL", origin=self.kernel.origin.by(ME))
        sets = (*sets_of(self.kernel, used, self.free_places), *self.temps)
        more, insts = started(sets, self.insts, self.target.arch)
        sets = (*sets, *more)
        block = Block("Block1", (*insts, exits))
        return Function(self.kernel.name, sets, (block,), ("nki",))

    def body(self, body: tuple[Statement, ...]) -> None:
        from ncc.ir.kernel_lower_ops import LOWER

        for one in body:
            if isinstance(one, DeviceFor):
                self.loop(one)
            elif isinstance(one, DeviceWhile):
                said = f"{one.name} turns until a register of the machine is 0"
                raise self.dynamic(said, one.origin)
            else:
                self.op = one
                self.after = tuple((self.last[x], "Ordered") for x in one.after if x in self.last)
                begun = len(self.insts)
                make = LOWER.get(one.op)
                if make is None:
                    raise self.refuse("has no machine instruction that ncc makes yet")
                make(self)
                if len(self.insts) > begun:
                    self.last[one.name] = self.insts[-1].name

    def loop(self, one: DeviceFor) -> None:
        """A loop between two numbers, one turn after the other."""
        lower, upper = (self.number(x) for x in (one.lower, one.upper))
        if lower is None or upper is None:
            raise self.dynamic(f"{one.name} turns as often as a register says", one.origin)
        turns = range(lower, upper, one.step)
        if len(turns) > MOST_TURNS:
            said = f"{one.name} has {len(turns)} turns; at most {MOST_TURNS} are unrolled"
            raise self.dynamic(said, one.origin)
        suffix = self.suffix
        for value in turns:
            self.env[one.var.name] = value
            self.suffix = f"{suffix}.{value}"
            self.body(one.body)
        self.suffix = suffix
        self.env.pop(one.var.name, None)

    def number(self, arg: Arg | None) -> int | None:
        """The whole number that an immediate or a known register is; None for others."""
        if isinstance(arg, Number):
            return int(arg.value)
        return self.env.get(arg.name) if isinstance(arg, Reg) else None

    # --- errors -----------------------------------------------------------------------------------

    def dynamic(self, said: str, origin: Origin) -> NccError:
        hint = "bounds and offsets that are numbers while the kernel is traced always work"
        return NccError("NCC398", f"{said}; ncc compiles no such kernel yet", origin.place(), hint)

    def refuse(self, said: str, hint: str = "") -> NccError:
        return NccError("NCC398", f"{self.op.op} {said}", self.op.origin.place(self.op.name), hint)

    # --- operands ---------------------------------------------------------------------------------

    def key(self, name: str) -> Any:
        """A key of the op, or its default."""
        from ncc.ir.kernel_ops import default

        for known, value in self.op.keys:
            if known == name:
                return value
        return default(self.op.op, name)

    def buffer(self, access: Access) -> Buffer:
        return self.buffers[access.buffer]

    def walk(self, role: str) -> Walk:
        """The access that has this role."""
        arg = self.op.arg(role)
        if not isinstance(arg, Access):
            raise self.refuse(f"has no tensor as {role}")
        return self.walked(arg)

    def maybe(self, role: str) -> Walk | None:
        arg = self.op.arg(role)
        return self.walked(arg) if isinstance(arg, Access) else None

    def walked(self, access: Access) -> Walk:
        """An access as a walk, known registers put in."""
        buffer = self.buffer(access)
        offset = access.offset
        for move in access.moves:
            value = None
            if isinstance(move, Scalar) and isinstance(move.source, Reg):
                value = self.env.get(move.source.name)
            if value is None:
                said = f"{self.op.op} reads where {buffer.name} begins while it runs"
                raise self.dynamic(said, self.op.origin)
            if not 0 <= value < move.limit:
                said = outside(buffer, access.dtype, move.scale, value, move.limit)
                raise NccError("NCC280", said, self.op.origin.place(self.op.name), CLAMP)
            offset += move.scale * value
        memory, size = MEMORY[buffer.memory], size_of(access.dtype)
        dtype = access.dtype
        if dtype == self.target.lacked_e4m3:
            dtype = self.lacked(dtype)
        if memory == "DRAM":
            return Walk(buffer.name, dtype, memory, 0, offset, access.pairs)
        row = prod(buffer.shape[1:]) * size_of(buffer.dtype)
        if row % size:
            said = f"reads {buffer.name} as {dtype}, whose {size} bytes do not divide the {row} "
            raise self.refuse(f"{said}of a partition")
        row //= size
        if memory == "PSUM" and size_of(buffer.dtype) < 4:
            if dtype != buffer.dtype:
                said = f"reads the {buffer.dtype} cells of {buffer.name} in PSUM as {dtype}"
                raise self.refuse(said, "copy the tile to SBUF first")
            dtype = cell(dtype)
        first, at = divmod(offset, row)
        (step, rows), *free = access.pairs
        jump = 1 if rows == 1 else step // row
        if rows > 1 and step % row:
            raise self.refuse(f"walks the partitions of {buffer.name} by steps of {step} elements")
        return Walk(buffer.name, dtype, memory, row, at, tuple(free), first, rows, jump)

    def lacked(self, dtype: str) -> str:
        """A type that the machine has no tag for is moved as bytes, and never computed with."""
        others = {x.dtype for _, x in self.op.args if isinstance(x, Access)}
        if self.op.op in MOVES and others == {dtype}:
            return "uint8"
        has = "float8_e4m3fn" if self.target.fp8fn else "float8_e4m3"
        said = f"computes with {dtype}, which {self.target.name} has not; it has {has}"
        raise self.refuse(said, "choose the other of the two types, or bfloat16")

    def wants(self, walk: Walk) -> str:
        """The type that a kernel gave a tile: narrower than a PSUM cell that holds its elements."""
        buffer = self.buffers.get(walk.loc)
        narrow = walk.memory == "PSUM" and buffer is not None and size_of(buffer.dtype) < 4
        return buffer.dtype if buffer is not None and narrow else walk.dtype

    def stands(self, walk: Walk) -> int:
        """The partition that a walk starts at, as far as that is settled."""
        buffer = self.buffers.get(walk.loc)
        base = buffer.address[0] if buffer and buffer.address else 0
        return base + walk.first

    # --- making -----------------------------------------------------------------------------------

    def label(self, wish: str) -> str:
        name, n = wish, 0
        while name in self.labels:
            n += 1
            name = f"{wish}_{n}"
        self.labels.add(name)
        return name

    def emit(
        self,
        opcode: str,
        engine: str,
        outs: Iterable[Operand],
        ins: Iterable[Operand] = (),
        /,
        **keys: Any,
    ) -> None:
        """One instruction of the op at hand."""
        name = self.label(f"{self.op.name}{self.suffix}")
        made = keyed(opcode, **keys) if keys else ()
        reads, writes = tuple(ins), tuple(outs)
        for x in (*reads, *writes):
            if type(x) is Ap and x.loc in self.buffers and x.loc not in self.filled:
                self.fill(self.buffers[x.loc])
        for x in reads:
            if type(x) is Ap and x.loc not in self.known:
                self.fresh_values(x.loc)
        self.known.update([x.loc for x in writes if type(x) is Ap])
        origin = self.op.origin.by(ME)
        self.insts.append(
            Inst(name, opcode, engine, reads, writes, made, self.after, origin=origin)
        )

    def fill(self, buffer: Buffer) -> None:
        """A constant tile on chip is loaded before anything touches it."""
        self.filled.add(buffer.name)
        assert buffer.data is not None
        name = f"{buffer.name}.data"
        while name in self.taken:
            name += "_"
        self.taken.add(name)
        self.temps.append(self.const(name, buffer.data))
        self.known.add(name)
        rows, count = buffer.shape[0], prod(buffer.shape[1:])
        dtype = buffer.dtype
        source = Ap(name, dtype, ((count, rows), (1, count)))
        memory = MEMORY[buffer.memory]
        if memory == "SB":
            tile = Walk(buffer.name, dtype, memory, count, 0, ((1, count),), 0, rows)
            self.emit("Load", "DMA", (tile.ap(),), (source,))
            return
        held = self.tile(rows, (count,), dtype)
        self.emit("Load", "DMA", (held.ap(),), (source,))
        wide = cell(dtype)
        self.copy(Walk(buffer.name, wide, memory, count, 0, ((1, count),), 0, rows), held)

    def fresh_values(self, loc: str) -> None:
        """A tile that is read before anything wrote to it holds what nki.simulate shows there."""
        buffer = self.buffers.get(loc)
        self.known.add(loc)
        if buffer is None or not buffer.on_chip:
            return
        dtype = buffer.dtype if buffer.memory == "sbuf" else cell(buffer.dtype)
        count = prod(buffer.shape[1:])
        bits = 4 if dtype not in FLOATS else (1 << 8 * size_of(dtype)) - 1
        walk = Walk(loc, dtype, MEMORY[buffer.memory], count, 0, ((1, count),), 0, buffer.shape[0])
        self.memset(walk, bits)

    def memset(self, walk: Walk, bits: int) -> None:
        engine = "DVE" if walk.memory == "PSUM" else "DVE|Pool"
        for ap in self.accesses((walk,), 4):
            self.emit("Memset", engine, ap, constant=bits)

    def temp(self, like: Walk, dtype: str = "", free: Sequence[int] = ()) -> Walk:
        """A new SBUF tile that stands where `like` does and holds as many elements, in a row."""
        dtype = dtype or self.wants(like)
        counts = tuple(free) or (like.count,)
        rows = like.rows if like.memory == "DRAM" else like.first % 128 + like.rows
        return self.tile(rows, counts, dtype).partition(rows - like.rows, like.rows)

    def tile(self, rows: int, free: Sequence[int], dtype: str) -> Walk:
        """A new SBUF tile."""
        wish, n = f"{self.op.name}{self.suffix}.t", 0
        while f"{wish}{n}" in self.taken:
            n += 1
        name = f"{wish}{n}"
        self.taken.add(name)
        count = prod(free)
        loc = Loc(name, "SB", (rows, count * size_of(dtype)))
        origin = self.op.origin.by(ME)
        self.temps.append(
            LocSet(name, dtype, (rows, count), memory="SB", locs=(loc,), origin=origin)
        )
        return Walk(name, dtype, "SB", count, 0, ((1, count),), 0, rows)

    def bank(self, like: Walk) -> Walk:
        """A new PSUM tile of 4-byte elements on partition 0."""
        wish, n = f"{self.op.name}{self.suffix}.p", 0
        while f"{wish}{n}" in self.taken:
            n += 1
        name = f"{wish}{n}"
        self.taken.add(name)
        count = like.count
        loc = Loc(name, "PSUM", (like.rows, count * 4))
        origin = self.op.origin.by(ME)
        shape = (like.rows, count)
        self.temps.append(
            LocSet(name, like.dtype, shape, memory="PSUM", locs=(loc,), origin=origin)
        )
        return Walk(name, like.dtype, "PSUM", count, 0, ((1, count),), 0, like.rows)

    def identity(self, dtype: str) -> Walk:
        """The identity matrix in SBUF, loaded before its first reader."""
        if dtype not in self.identities:
            import numpy as np

            name = f"identity_{dtype}"
            while name in self.taken:
                name += "_"
            self.taken.add(name)
            one = data(dtype, np.ones((), numpy_type(dtype))).raw
            origin, size = self.op.origin.by(ME), size_of(dtype)
            kind = "IdentityWeightTensor"
            self.temps.append(self.const(name, eye(dtype, 128, one), kind))
            at = f"{name}.sb"
            self.taken.add(at)
            loc = Loc(at, "SB", (128, 128 * size))
            self.temps.append(
                LocSet(at, dtype, (128, 128), "Internal", "SB", kind, locs=(loc,), origin=origin)
            )
            walk = Walk(at, dtype, "SB", 128, 0, ((1, 128),), 0, 128)
            source = Ap(name, dtype, ((128, 128), (1, 128)))
            self.known.add(name)
            self.emit("Load", "DMA", (walk.ap(),), (source,))
            self.identities[dtype] = walk
        return self.identities[dtype]

    def const(self, name: str, values: Data, kind: str = "Tensor") -> LocSet:
        """A constant in DRAM."""
        size = prod(values.shape) * size_of(values.dtype)
        loc = Loc(name, "DRAM", (1, size))
        origin = self.op.origin.by(ME)
        return LocSet(
            name,
            values.dtype,
            values.shape,
            "Const",
            "DRAM",
            kind,
            locs=(loc,),
            data=values,
            origin=origin,
        )

    # --- pieces -----------------------------------------------------------------------------------

    def parts(self, walks: Sequence[Walk], free: int, most: int = 0xFFFF) -> list[Part]:
        """Pieces of walks of equal counts, each inside one bank of PSUM where it writes there."""
        counts = {walk.count for walk in walks}
        if len(counts) > 1:
            said = " and ".join(map(str, sorted(counts)))
            raise self.refuse(f"walks operands of {said} elements a partition side by side")
        found = cut([walk.free for walk in walks], free, most)
        out = walks[-1]
        if out.memory == "PSUM" and out.row * size_of(out.dtype) > BANK:
            found = [piece for part in found for piece in self.banked(part, out, len(walks) - 1)]
        return found

    def accesses(self, walks: Sequence[Walk], free: int, most: int = 0xFFFF) -> list[list[Ap]]:
        """The same as accesses, one a walk; the destination is the last."""
        return [
            [walk.ap(part.of(n), part.more[n]) for n, walk in enumerate(walks)]
            for part in self.parts(walks, free, most)
        ]

    def banked(self, part: Part, out: Walk, n: int) -> list[Part]:
        """A part in pieces that each stay in one bank of PSUM."""
        if self.in_bank(part, out, n):
            return [part]
        (num, steps), *rest = part.joints
        inside = Part(((1, steps), *rest), part.more)
        if not self.in_bank(inside, out, n):
            first = self.banked(Part(tuple(rest), part.more), out, n)
            size = 1
        else:
            size = next(
                k for k in range(num - 1, 0, -1)
                if self.in_bank(Part(((k, steps), *rest), part.more), out, n)
            )  # fmt: skip
            first = [Part(((size, steps), *rest), part.more)]
        if size == num:
            return first
        more = tuple(a + size * s for a, s in zip(part.more, steps, strict=True))
        return [*first, *self.banked(Part(((num - size, steps), *rest), more), out, n)]

    def in_bank(self, part: Part, out: Walk, n: int) -> bool:
        size = size_of(out.dtype)
        buffer = self.buffers.get(out.loc)
        begin = 0
        if buffer and buffer.address and out.loc not in self.free_places:
            begin = buffer.address[1]
        low = high = begin + (out.at + part.more[n]) * size
        for num, steps in part.joints:
            reach = steps[n] * (num - 1) * size
            low, high = low + min(reach, 0), high + max(reach, 0)
        return low // BANK == (high + size - 1) // BANK

    def engine(self, default: str, *walks: Walk) -> str:
        """The engine that the kernel named, or those of `default` that reach the operands."""
        chosen = ENGINES.get(self.op.engine)
        if chosen:
            return chosen
        if any(walk.memory == "PSUM" for walk in walks):
            kept = [x for x in default.split("|") if x != "Pool"]
            return "|".join(kept) or "DVE"
        return default

    def scalar(self, role: str, rows: int, dtype: str = "float32") -> Operand | None:
        """A number, or a column of one number a partition in SBUF; None when it was left out."""
        arg = self.op.arg(role)
        if arg is None:
            return None
        if isinstance(arg, Access):
            return self.column(self.walked(arg), rows, dtype)
        if isinstance(arg, Reg):
            value = self.env.get(arg.name)
            if value is None:
                raise self.dynamic(f"{self.op.op} reads {role} from a register", self.op.origin)
            return Imm(value, dtype)
        return Imm(arg.value, dtype)

    def column(self, walk: Walk, rows: int, dtype: str = "float32") -> Ap:
        if walk.count != 1 or walk.rows != rows:
            said = f"takes a column of {rows} partitions, and was given {walk.rows} × {walk.count}"
            raise self.refuse(said)
        if walk.memory == "SB" and walk.dtype == dtype:
            return walk.ap()
        held = self.temp(walk, dtype)
        self.copy(held, walk)
        return held.ap()

    def copy(self, dst: Walk, src: Walk, engine: str = "DVE") -> None:
        """An engine's copy, converting where the types differ."""
        for source, result in self.accesses((src, dst), 4):
            self.emit("TensorCopy", engine, (result,), (source,))

    def narrow(self, walk: Walk) -> Walk:
        """The elements of a tile in the kernel's type: a 16-bit tile in PSUM is copied out."""
        if self.wants(walk) == walk.dtype:
            return walk
        held = self.temp(walk)
        self.copy(held, walk)
        return held.with_free(_contiguous(walk.free))

    def compact(self, walk: Walk) -> Walk:
        """The same elements in a row, in SBUF."""
        held = self.temp(walk)
        self.copy(held, walk)
        return held

    def rounded(self, dst: Walk) -> Walk:
        """Where an instruction writes whose result a 16-bit PSUM tile takes: a tile of its type."""
        return dst if self.wants(dst) == dst.dtype else self.temp(dst)

    def finish(self, written: Walk, dst: Walk) -> None:
        """Copy what `rounded` gave to the real destination."""
        if written is not dst:
            self.copy(dst, written)

    def elementwise(
        self,
        opcode: str,
        engine: str,
        dst: Walk,
        srcs: Sequence[Walk],
        more: Sequence[Operand] = (),
        free: int = 3,
        **keys: Any,
    ) -> None:
        """One instruction for each piece; `more` operands are the same in each."""
        out = self.rounded(dst)
        for *reads, result in self.accesses((*srcs, out), free):
            self.emit(opcode, engine, (result,), (*reads, *more), **keys)
        self.finish(out, dst)

    def same_quadrant(self, a: Walk, b: Walk) -> Walk:
        """`b`, or a copy of it where the two sources could not start in one quadrant."""
        if a.memory != "SB" or b.memory != "SB" or self.stands(a) // 32 == self.stands(b) // 32:
            return b
        rows = self.stands(a) + b.rows
        held = self.tile(rows, (b.count,), b.dtype).partition(self.stands(a), b.rows)
        self.copy(held, b)
        return held


def _contiguous(free: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The same shape in a row."""
    found: list[tuple[int, int]] = []
    step = 1
    for _, num in reversed(free):
        found.append((step, num))
        step *= num
    return tuple(found[::-1])


def reshaped(walk: Walk, free: Sequence[tuple[int, int]]) -> Walk:
    return attrs.evolve(walk, free=tuple(free))
