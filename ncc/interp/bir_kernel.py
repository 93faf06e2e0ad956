"""What a kernel means in BIR before it is inlined: its functions run, over the caller's tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from ncc.ir.bir import Block, Function, Inst, Module
from ncc.ir.kernel_inline import expansion, materialised, refused

if TYPE_CHECKING:
    from ncc.interp.bir import Interpreter


def call(m: Interpreter, inst: Inst, module: Module) -> None:
    """Run a call site (55): its locations are fresh, its parameters are the caller's."""
    made = expansion(inst, module)
    body = Function(inst.name, made.sets, (Block("Block1", made.insts),))
    inner = type(m)(Module(module.name, module.arch, (body,)), m.target)
    memory, outer = inner.memory, m.memory
    memory.tainted = outer.tainted
    for of in made.bound.values():
        memory.places[of.locs[0].name] = outer.places[of.locs[0].name]
        memory.sets[of.name] = of
    if m.together is not None:
        inner.join(m.core, m.together)
    for block in body.blocks:
        inner.block(block, {})
    outer.tainted |= memory.tainted


def nki_kernel(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Any) -> None:
    call(m, inst, m.module)


def carrier(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Any) -> None:
    """A carrier (56) means the call of what its file holds."""
    taken = {func.name for func in m.module.functions}
    functions, site = materialised(inst, m.module, m.target, taken)
    with_them = attrs.evolve(m.module, functions=(m.module.main, *functions))
    call(m, site, with_them)


def opaque(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Any) -> None:
    raise refused(inst)


MEANING = {
    "NKIKernel": nki_kernel,
    "NKIKLIRKernel": carrier,
    "BIRKernel": opaque,
}
