"""Turn an attention call that no kernel takes back into dot, softmax and dot.

Before:
    HloModule wide

    ENTRY %main (q: f32[4,160], k: f32[8,160], v: f32[8,160]) -> f32[4,160] {
      %q = f32[4,160]{1,0} parameter(0)
      %k = f32[8,160]{1,0} parameter(1)
      %v = f32[8,160]{1,0} parameter(2)
      ROOT %o = f32[4,160]{1,0} custom-call(%q, %k, %v), custom_call_target="AttentionMMSoftmaxMMWithoutSwap", backend_config={"psum_shape":[128,512],"sb_shape":[128,1,160],"auto_cast":"none","auto_cast_type":"fp32","kernel_name":"attention_cte"}
    }

After:
    HloModule wide

    %largest (a: f32[], b: f32[]) -> f32[] {
      %a = f32[] parameter(0)
      %b = f32[] parameter(1)
      ROOT %c = f32[] maximum(%a, %b)
    }

    %total (a: f32[], b: f32[]) -> f32[] {
      %a = f32[] parameter(0)
      %b = f32[] parameter(1)
      ROOT %c = f32[] add(%a, %b)
    }

    ENTRY %main (q: f32[4,160], k: f32[8,160], v: f32[8,160]) -> f32[4,160] {
      %q = f32[4,160]{1,0} parameter(0)
      %k = f32[8,160]{1,0} parameter(1)
      %v = f32[8,160]{1,0} parameter(2)
      %o.q = f32[1,1,4,160]{3,2,1,0} reshape(%q)
      %o.k = f32[1,8,160]{2,1,0} reshape(%k)
      %o.v = f32[1,8,160]{2,1,0} reshape(%v)
      %o.scores = f32[1,1,4,8]{3,2,1,0} dot(%o.q, %o.k), lhs_batch_dims={0}, lhs_contracting_dims={3}, rhs_batch_dims={0}, rhs_contracting_dims={2}
      %o.top.start = f32[] constant(-inf)
      %o.top = f32[1,1,4]{2,1,0} reduce(%o.scores, %o.top.start), dimensions={3}, to_apply=%largest
      %o.spread = f32[1,1,4,8]{3,2,1,0} broadcast(%o.top), dimensions={0,1,2}
      %o.shifted = f32[1,1,4,8]{3,2,1,0} subtract(%o.scores, %o.spread)
      %o.e = f32[1,1,4,8]{3,2,1,0} exponential(%o.shifted)
      %o.sum.start = f32[] constant(0)
      %o.sum = f32[1,1,4]{2,1,0} reduce(%o.e, %o.sum.start), dimensions={3}, to_apply=%total
      %o.spread_2 = f32[1,1,4,8]{3,2,1,0} broadcast(%o.sum), dimensions={0,1,2}
      %o.p = f32[1,1,4,8]{3,2,1,0} divide(%o.e, %o.spread_2)
      %o.o = f32[1,1,4,160]{3,2,1,0} dot(%o.p, %o.v), lhs_batch_dims={0}, lhs_contracting_dims={3}, rhs_batch_dims={0}, rhs_contracting_dims={1}
      ROOT %o = f32[4,160]{1,0} reshape(%o.o)
    }

Why: a call of a kernel that is not there, or that does not take these sizes, would be an error; what
it means is not. The softmax takes its maximum off first, so no exponential overflows. (The kernel
takes heads of up to 128 elements; these have 160.) What the ops after it cannot be compiled to is
refused by name later, and a warning says here why the call was turned back.
"""

from __future__ import annotations

import struct
import warnings
from typing import Any

import attrs

from ncc.errors import NccError
from ncc.ir import attention
from ncc.ir.core import Origin
from ncc.ir.custom_call import Asked, asked
from ncc.ir.data import FROM_HLO
from ncc.ir.hlo import (
    ArrayShape,
    Called,
    Computation,
    Instruction,
    Literal,
    Module,
    descending,
)
from ncc.ir.hlo_edit import dims_of
from ncc.ir.hlo_laws import unique
from ncc.ir.kernel_request import Request
from ncc.passes.base import define
from ncc.target import Target

NAME = "decompose-attention"
LOWEST = struct.unpack("<f", b"\xff\xff\x7f\xff")[0]  # of float32
FOLDS = (("maximum", "largest"), ("add", "total"))


def apply(module: Module, target: Target) -> Module:
    main = module.main()
    made = {inst.name: inst for inst in main.instructions}
    body: list[Instruction] = []
    build = Builder({*made}, {x.name for x in module.computations})
    for inst in main.instructions:
        call = attention_call(inst)
        given = [made[name] for name in inst.operands]
        why = refusal(inst, call, given, target) if call else ""
        if call and why:
            said = (
                f"NCC125 {inst.origin.place(inst.name, NAME)}: {call.target} has no kernel: {why}"
            )
            warnings.warn(said, stacklevel=2)
            body += build.plain(inst, call, given)
        else:
            body.append(inst)
    if len(body) == len(main.instructions):
        return module
    entry = attrs.evolve(main, instructions=tuple(body))
    kept = tuple(entry if x is main else x for x in module.computations)
    return attrs.evolve(module, computations=(*build.computations(), *kept))


def attention_call(inst: Instruction) -> Asked | None:
    if inst.opcode != "custom-call":
        return None
    try:
        call = asked(inst)
    except ValueError:
        return None
    return call if call.target in attention.TARGETS else None


def refusal(inst: Instruction, call: Asked, given: list[Instruction], target: Target) -> str:
    """Why no kernel takes the call; nothing where one does, or where the call itself is wrong."""
    shapes = [dims_of(x) for x in given]
    if attention.complaint(call.target, shapes, dims_of(inst)):
        return ""
    types = [x.shape.dtype for x in given[:3] if isinstance(x.shape, ArrayShape)]
    if any(dtype not in FROM_HLO for dtype in types):
        return ""
    takes = tuple((FROM_HLO[dtype], shape) for dtype, shape in zip(types, shapes, strict=False))
    try:
        plain = attention.plain_call(call, dims_of(inst), 1.0)
    except (ValueError, NccError):
        return ""
    return Request(plain.target, takes, plain.config).refusal(target)


class Builder:
    """The ops in the making, and the names that are taken."""

    def __init__(self, taken: set[str], computations: set[str]) -> None:
        self.taken = taken
        self.folds = {opcode: unique(name, computations) for opcode, name in FOLDS}
        self.body: list[Instruction] = []
        self.base, self.origin = "", Origin()

    def plain(self, inst: Instruction, call: Asked, given: list[Instruction]) -> list[Instruction]:
        """The ops of one call: heads in one dimension, those that share keys in the next."""
        self.body, self.base, self.origin = [], inst.name, inst.origin.by(NAME)
        q, k, v = given[:3]
        assert isinstance(q.shape, ArrayShape) and isinstance(inst.shape, ArrayShape)
        (rows, d), (keys, width) = dims_of(q)[-2:], dims_of(v)[-2:]
        n = attention.heads(dims_of(k))
        shared = attention.heads(dims_of(q)) // max(1, n)
        q, k, v = (
            self.shaped(x, (n, *dims))
            for x, dims in ((q, (shared, rows, d)), (k, (keys, d)), (v, (keys, width)))
        )
        size = (n, shared, rows, keys)
        s = self.dot("scores", "f32", size, (q, k), (3, 2))
        if given[3:]:
            factor = self.op("factor", "convert", "f32", (), (given[3],))
            s = self.op("scaled", "multiply", "f32", size, (s, self.spread(factor, size, ())))
        if call.target == attention.CAUSAL:
            s = self.masked(s, size)
        top = self.fold("top", "maximum", s, -float("inf"))
        x = self.op("shifted", "subtract", "f32", size, (s, self.spread(top, size, (0, 1, 2))))
        e = self.op("e", "exponential", "f32", size, (x,))
        total = self.fold("sum", "add", e, 0.0)
        p = self.op("p", "divide", "f32", size, (e, self.spread(total, size, (0, 1, 2))))
        if q.shape != ArrayShape("f32", dims_of(q), descending(4)):
            p = self.op("weights", "convert", str(getattr(q.shape, "dtype", "")), size, (p,))
        self.product(inst, call, p, v, (n, shared, rows, width))
        return self.body

    def product(
        self, inst: Instruction, call: Asked, p: Instruction, v: Instruction, size: Any
    ) -> None:
        """The second dot, and its result in the shape of the call."""
        assert isinstance(inst.shape, ArrayShape)
        dtype, (n, shared, rows, width) = inst.shape.dtype, size
        if call.target == attention.SWAPPED:
            out = self.dot("o", dtype, (n, width, shared, rows), (v, p), (1, 3))
            order = (("dimensions", (0, 2, 1, 3)),)
            out = self.op("turned", "transpose", dtype, (n, shared, width, rows), (out,), order)
        else:
            out = self.dot("o", dtype, size, (p, v), (3, 1))
        last = "copy" if dims_of(out) == dims_of(inst) else "reshape"
        self.body.append(Instruction(inst.name, inst.shape, last, (out.name,), origin=self.origin))

    def op(
        self,
        what: str,
        opcode: str,
        dtype: str,
        dims: tuple[int, ...],
        operands: tuple[Instruction, ...] = (),
        attributes: Any = (),
        literal: Literal | None = None,
    ) -> Instruction:
        """One more op, named after the call and what it is of it."""
        name = unique(f"{self.base}.{what}", self.taken)
        shape = ArrayShape(dtype, dims, descending(len(dims)) if dims else None)
        read = tuple(x.name for x in operands)
        self.body.append(
            Instruction(name, shape, opcode, read, attributes, literal=literal, origin=self.origin)
        )
        return self.body[-1]

    def shaped(self, x: Instruction, dims: tuple[int, ...]) -> Instruction:
        assert isinstance(x.shape, ArrayShape)
        if dims_of(x) == dims:
            return x
        return self.op(f"{x.name}", "reshape", x.shape.dtype, dims, (x,))

    def dot(
        self, what: str, dtype: str, dims: tuple[int, ...], sides: Any, summed: tuple[int, int]
    ) -> Instruction:
        keys = (
            ("lhs_batch_dims", (0,)),
            ("lhs_contracting_dims", summed[:1]),
            ("rhs_batch_dims", (0,)),
            ("rhs_contracting_dims", summed[1:]),
        )
        return self.op(what, "dot", dtype, dims, sides, keys)

    def number(self, what: str, value: float) -> Instruction:
        literal = Literal("f32", (), struct.pack("<f", value))
        return self.op(what, "constant", "f32", (), literal=literal)

    def spread(self, x: Instruction, dims: tuple[int, ...], along: tuple[int, ...]) -> Instruction:
        assert isinstance(x.shape, ArrayShape)
        key = (("dimensions", along),)
        return self.op("spread", "broadcast", x.shape.dtype, dims, (x,), key)

    def fold(self, what: str, opcode: str, x: Instruction, start: float) -> Instruction:
        """A reduction over the keys alone."""
        keys = (("dimensions", (3,)), ("to_apply", Called((self.folds[opcode],))))
        first = self.number(f"{what}.start", start)
        return self.op(what, "reduce", "f32", dims_of(x)[:3], (x, first), keys)

    def masked(self, s: Instruction, size: tuple[int, ...]) -> Instruction:
        """Scores of keys that come after their query are as low as can be."""
        row, column = (
            self.op(what, "iota", "s32", size, (), (("iota_dimension", str(i)),))
            for what, i in (("row", 2), ("column", 3))
        )
        key = (("direction", "GE"),)
        seen = self.op("seen", "compare", "pred", size, (row, column), key)
        low = self.spread(self.number("lowest", LOWEST), size, ())
        return self.op("masked", "select", "f32", size, (seen, s, low))

    def computations(self) -> tuple[Computation, ...]:
        """What the reductions fold with."""
        found: list[Computation] = []
        for opcode, name in self.folds.items():
            scalar = ArrayShape("f32", ())
            a, b = (Instruction(x, scalar, "parameter", number=i) for i, x in enumerate("ab"))
            found.append(
                Computation(name, (a, b, Instruction("c", scalar, opcode, ("a", "b"))), "c")
            )
        return tuple(found)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="hlo",
    exact=False,
    after={"raise-attention": "what that pass made is put back where no kernel takes it"},
    real="DecomposeAttention",
    job="F0",
    sure="confirmed",
)
