"""A kernel's functions in the place of their call: what translate-nki and inline-kernels share.

A call site (55) names one function for each core, whose locations are called `FUNCTION:BUFFER`. Its
parameters are sets of the caller, bound by the buffers' names; all else moves into the caller.
A call of one function is one core's. That of several is woven into one program
(`ncc.ir.kernel_cores`).
"""

from __future__ import annotations

from typing import Any

import attrs

from ncc.errors import NccError
from ncc.ir.bir import SHARED, Ap, Block, Function, Inst, Loc, LocSet, Module, Operand
from ncc.ir.bir_opcodes import OPCODES, key, keyed
from ncc.ir.bir_patterns import loc_dims
from ncc.ir.data import size_of
from ncc.ir.kernel_carriers import BETA2, BETA3, called, fault, functions_of, prefixed
from ncc.ir.kernel_cores import woven
from ncc.ir.kernel_rectangles import View, rectangles
from ncc.target import BANK, Target

Bound = dict[str, str]  # buffer of a parameter -> the caller's set


def materialised(
    inst: Inst, module: Module, target: Target, taken: set[str]
) -> tuple[tuple[Function, ...], Inst]:
    """The functions of a carrier (56), under names that nobody has, and the call of them (55)."""
    functions: list[Function] = []
    for func in functions_of(inst, module, target):
        name = func.name
        while name in taken:
            name += "_"
        taken.add(name)
        functions.append(attrs.evolve(prefixed(func, name), name=name))
    names = tuple(func.name for func in functions)
    form = key(inst, "kernel_format")
    keys = keyed(
        "NKIKernel",
        func=names[0] if len(names) == 1 else names,
        func_args=key(inst, "func_args"),
        func_outs=key(inst, "func_outs"),
        kernel_source_val=BETA3 if form == "bir" else BETA2,
        sb_buf_shape=scratch(functions, "SB"),
        psum_buf_shape=scratch(functions, "PSUM"),
    )
    call = attrs.evolve(inst, opcode="NKIKernel", keys=keys, origin=inst.origin.by("translate-nki"))
    return tuple(functions), call


def scratch(functions: list[Function], memory: str) -> tuple[int, ...]:
    """What placed locations take: (partitions, bytes) of SBUF, or (partitions, banks, bytes)."""
    placed = [
        loc
        for func in functions
        for of in func.sets
        for loc in of.locs
        if loc.allocated and loc.type == memory
    ]
    if not placed:
        return ()
    end = max(loc.addr + loc.dims[1] for loc in placed)
    return (128, end) if memory == "SB" else (128, -(-end // BANK), BANK)


@attrs.frozen
class Expansion:
    """What stands in the place of a call: the caller's sets that need a location, the kernel's own
    sets, and the instructions."""

    bound: dict[str, LocSet]  # by set name
    sets: tuple[LocSet, ...]
    insts: tuple[Inst, ...]


def expansion(inst: Inst, module: Module) -> Expansion:
    """The body of a call site (55), over the caller's sets."""
    functions = called(inst, module)
    mine = {of.name: of for of in module.main.sets}
    pairs = (*key(inst, "func_args"), *key(inst, "func_outs"))
    try:
        bound: dict[str, str] = dict(pairs)
    except (TypeError, ValueError):
        raise fault("NCC394", inst, "has a binding that is no pair of names") from None
    for name, of in bound.items():
        if of not in mine:
            raise fault("NCC394", inst, f"binds {name} to {of}, which is no set of its caller")
    placed = {of: with_location(mine[of]) for of in bound.values()}
    sets: dict[str, LocSet] = {}
    streams: list[list[Inst]] = []
    for number, func in enumerate(functions):
        if len(func.blocks) != 1:
            said = f"calls {func.name}, which has {len(func.blocks)} blocks; one is spliced in"
            raise fault("NCC394", inst, said)
        splice = Splice(inst, func, bound, placed, number)
        for of in splice.sets:
            sets.setdefault(of.name, of)
        streams.append([splice.inst(x) for x in func.blocks[0].insts if not ends(x)])
    if len(streams) == 1:
        return Expansion(placed, tuple(sets.values()), tuple(streams[0]))
    for loop in (x for stream in streams for x in stream if x.blocks):
        said = "turns as often as a register says; on one core only kernels of one core may"
        raise fault("NCC398", loop, said, "launch the kernel on one core, or compile for trn2")
    own = [private(of) for of in sets.values()]
    return Expansion(placed, tuple(own), tuple(woven(inst, streams)))


def private(of: LocSet) -> LocSet:
    """A set of cores that have become one program, which shares nothing with anybody."""
    return attrs.evolve(of, kind="Internal") if of.kind == SHARED else of


def ends(inst: Inst) -> bool:
    return OPCODES[inst.opcode].family == "terminator"


def with_location(of: LocSet) -> LocSet:
    """A tensor in DRAM with its one location, called as bind-memlocs calls it."""
    return of if of.locs else attrs.evolve(of, locs=(Loc(of.name, of.memory, loc_dims(of)),))


class Splice:
    """One function's sets and operands, as its caller has them."""

    def __init__(
        self,
        call: Inst,
        func: Function,
        bound: Bound,
        placed: dict[str, LocSet],
        core: int,
    ) -> None:
        self.call = call
        self.moved: dict[str, str] = {}  # a location by its name in the function -> in the caller
        self.views: dict[str, View] = {}  # a location that is part of a rectangle now
        self.made: dict[int, tuple[Operand, Operand]] = {}
        own: list[LocSet] = []
        prefix = f"{func.name}:"
        for of in func.sets:
            name = of.name.removeprefix(prefix)
            if name in bound:
                self.bind(of, placed[bound[name]])
            elif of.kind == SHARED:
                own.append(self.shared(of, f"{call.name}:{name}"))
            else:
                own.append(self.internal(of))
        self.sets, self.views = rectangles(call, own, pinned=core == 0)

    def bind(self, of: LocSet, to: LocSet) -> None:
        have, want = (sum(loc.dims[1] for loc in x.locs) for x in (to, of))
        if have != want or size_of(to.dtype) != size_of(of.dtype):
            said = f"binds {of.name} ({of.dtype}, {want} bytes) to {to.name} ({to.dtype}, {have})"
            raise fault("NCC394", self.call, said)
        for loc in of.locs:
            self.moved[loc.name] = to.locs[0].name

    def shared(self, of: LocSet, name: str) -> LocSet:
        """A tensor of both cores: one set, whichever core asks first."""
        loc = attrs.evolve(of.locs[0], name=name)
        self.moved[of.locs[0].name] = name
        return attrs.evolve(of, name=name, locs=(loc,))

    def internal(self, of: LocSet) -> LocSet:
        if of.kind in ("Const", "Internal"):
            return of
        if of.data is not None:
            return attrs.evolve(of, kind="Const")
        return attrs.evolve(of, kind="Internal")

    def inst(self, inst: Inst) -> Inst:
        return Inst(
            inst.name,
            inst.opcode,
            inst.engine,
            tuple([self.operand(x) for x in inst.ins]),
            tuple([self.operand(x) for x in inst.outs]),
            inst.keys,
            inst.deps,
            inst.waits,
            inst.updates,
            inst.loopnest,
            inst.axis,
            tuple(Block(b.name, tuple(self.inst(x) for x in b.insts)) for b in inst.blocks),
            inst.origin.by("inline-kernels"),
        )

    def operand(self, x: Operand) -> Operand:
        found = self.made.get(id(x))
        if found is None:
            found = self.made[id(x)] = (x, self.rebound(x))
        return found[1]

    def rebound(self, x: Operand) -> Operand:
        if not isinstance(x, Ap):
            return x
        if x.loc in self.views:
            return self.views[x.loc].access(x, self.call)
        if x.loc in self.moved:
            return Ap(self.moved[x.loc], x.dtype, x.ap, x.offset)
        return x


def refused(inst: Inst) -> NccError:
    """NCC397 for what carries no kernel that could be inlined."""
    what: Any = key(inst, "opFunctionName" if inst.opcode == "CustomOp" else "kernel_name")
    return fault("NCC397", inst, f"{inst.opcode} {what} is read and printed, and not compiled")
