"""From a traced kernel to a BIR function: buffers become location sets, calls instructions.

Every op has one function, found by its name in the tables of this folder; they share the
`Lowering`, which knows the buffers, makes temporary tiles and collects instructions. A loop whose
bounds are numbers is unrolled, and its register is a number in every access; one whose bounds only
the machine knows becomes a region (`ncc.ir.lower.device`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ncc.ir.bir import Ap, Block, Function, Imm, Inst, Operand
from ncc.ir.bir_walk import all_insts
from ncc.ir.kernel import Access, DeviceFor, Kernel, KernelOp, Reg, Statement
from ncc.ir.kernel_axes import unrolled
from ncc.ir.kernel_walks import Walk
from ncc.ir.lower.device import Loop, begin, device_loop
from ncc.ir.lower.make import Making
from ncc.ir.lower.pieces import clash
from ncc.ir.lower.tables import ME, MOST_TURNS
from ncc.target import Target


def lower(kernel: Kernel, target: Target) -> Function:
    """The BIR function of one core's kernel. Its sets have the names of the buffers."""
    return Lowering(unrolled(kernel), target).function()


class Lowering(Making):
    """One kernel on its way down."""

    # --- the whole --------------------------------------------------------------------------------

    def function(self) -> Function:
        from ncc.ir.lower.groups import started
        from ncc.ir.lower.sets import sets_of

        begin(self)
        self.body(self.kernel.body)
        every = all_insts((Block("", tuple(self.insts)),))
        used = {x.loc for i in every for x in (*i.ins, *i.outs) if isinstance(x, Ap)}
        exits = Inst(self.label("exit"), "Exit", "ALL", origin=self.kernel.origin.by(ME))
        sets = (*sets_of(self.kernel, used, self.free_places), *self.temps)
        more, insts = started(sets, self.insts, self.target.arch)
        sets = (*sets, *more)
        block = Block("Block1", (*insts, exits))
        return Function(self.kernel.name, sets, (block,), ("nki",))

    def body(self, body: tuple[Statement, ...]) -> None:
        from ncc.ir.lower.moving import put_back, staged
        from ncc.ir.lower.ops import LOWER

        for one in body:
            if isinstance(one, Loop) and one.name in self.plan.loops:
                device_loop(self, one)
            elif isinstance(one, DeviceFor):
                self.unrolled(one)
            elif isinstance(one, KernelOp):
                self.op = one
                self.after = tuple((self.last[x], "Ordered") for x in one.after if x in self.last)
                begun = len(self.insts)
                make = LOWER.get(one.op)
                if make is None:
                    raise self.refuse("has no machine instruction that ncc makes yet")
                self.op, back = staged(self, one)
                make(self)
                if back:
                    put_back(self, one, back)
                if len(self.insts) > begun:
                    self.last[one.name] = self.insts[-1].name

    def unrolled(self, one: DeviceFor) -> None:
        """A loop between two numbers, one turn after the other."""
        lower, upper = (self.number(x) or 0 for x in (one.lower, one.upper))
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

    # --- operands that a record takes -------------------------------------------------------------

    def scalar(self, role: str, rows: int, dtype: str = "float32") -> Operand | None:
        """A number, or a column of one number a partition in SBUF; None when it was left out."""
        arg = self.op.arg(role)
        if arg is None:
            return None
        if isinstance(arg, Access):
            return self.column(self.walked(arg), rows, dtype)
        if isinstance(arg, Reg):
            from ncc.ir.lower.moving import column_of

            value = self.env.get(arg.name)
            if value is not None:
                return Imm(value, dtype)
            held = column_of(self, arg, rows, dtype)
            if held is None:
                raise self.dynamic(f"{self.op.op} reads {role} from a register", self.op.origin)
            return held.ap()
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

    def narrow(self, walk: Walk) -> Walk:
        """The elements of a tile in the kernel's type: a 16-bit tile in PSUM is copied out."""
        if self.wants(walk) == walk.dtype:
            return walk
        held = self.temp(walk)
        self.copy(held, walk)
        return held.with_free(_contiguous(walk.free))

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
        pieces = self.accesses((*srcs, out), free)
        if len(pieces) > 1 and any(clash(src, dst) for src in srcs):
            out = self.temp(dst)  # a later piece must not read what an earlier one wrote
            pieces = self.accesses((*srcs, out), free)
        for *reads, result in pieces:
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
