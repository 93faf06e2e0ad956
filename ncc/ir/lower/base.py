"""What every lowering of a kernel's op asks for: keys, operands as walks, refusals."""

from __future__ import annotations

from math import prod
from typing import Any

from ncc.errors import NccError
from ncc.ir.bir import Ap, Inst, LocSet
from ncc.ir.core import Origin
from ncc.ir.data import size_of
from ncc.ir.kernel import Access, Arg, Buffer, Kernel, KernelOp, Reg, Scalar
from ncc.ir.kernel import Imm as Number
from ncc.ir.kernel_starts import CLAMP, outside
from ncc.ir.kernel_walks import Walk
from ncc.ir.lower.device import plan
from ncc.ir.lower.sets import bank_safe
from ncc.ir.lower.tables import MEMORY, MOVES, cell
from ncc.target import Target


class Operands:
    """One kernel on its way down, the op at hand, and its operands."""

    def __init__(self, kernel: Kernel, target: Target) -> None:
        self.kernel, self.target = kernel, target
        self.buffers = {x.name: x for x in kernel.buffers}
        self.free_places = bank_safe(kernel.buffers)  # PSUM buffers that lose their address
        self.temps: list[LocSet] = []
        self.taken = set(self.buffers)
        self.labels: set[str] = set()
        self.insts: list[Inst] = []
        self.last: dict[str, str] = {}  # of each op: its last instruction so far
        self.env: dict[str, int | float] = {}  # registers whose value is known
        self.cells: dict[str, Walk] = {}  # registers that hold what an element on chip held
        self.suffix = ""
        self.plan = plan(kernel)
        self.around: list[list[Inst]] = []  # what stands around the loops that are open
        self.identities: dict[str, Walk] = {}
        self.op = KernelOp("", "", ())
        self.after: tuple[tuple[str, str], ...] = ()
        self.known: set[str] = {x.name for x in kernel.buffers if x.kind in ("input", "const")}
        self.filled: set[str] = {x.name for x in kernel.buffers if x.data is None or not x.on_chip}
        self.shared: tuple[Ap, ...] | None = None  # what the cores share, as a barrier has it
        self.exchanges = 0  # transfers between cores so far

    def number(self, arg: Arg | None) -> int | None:
        """The whole number that an immediate or a known register is; None for others."""
        if isinstance(arg, Number):
            return int(arg.value)
        found = self.env.get(arg.name) if isinstance(arg, Reg) else None
        return None if found is None else int(found)

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
                value = self.number(move.source)
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
