"""How a kernel travels through BIR: the file that a carrier names, and the functions that it gives.

An NKIKLIRKernel (56) names a file of the module, in one of two forms. `bir`: a BIR document with
one function for each core. `klir`: the kernel itself, as `ncc.ir.kernel_binary` writes it. Either
gives the same functions; only the place where a kernel is lowered differs.
"""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any, cast

import attrs

from ncc.errors import NccError, listed, nearest
from ncc.ir import kernel_binary
from ncc.ir.bir import (
    SHARED,
    Ap,
    File,
    Function,
    Inst,
    LocSet,
    Module,
    Operand,
    Reg,
    SymAp,
    Tile,
)
from ncc.ir.bir_opcodes import key
from ncc.ir.kernel import Kernel
from ncc.ir.penguin import KernelNode
from ncc.target import Target

SUFFIX = {"bir": "json", "klir": "klir"}
BETA2, BETA3 = 1, 2  # kernel_source_val of a call site: from a kernel's own file, from BIR


def carried(node: KernelNode, target: Target) -> File:
    """The file with a kernel's bodies, in the form that it asks for."""
    name = f"{node.name}.{SUFFIX[node.form]}"
    if node.form == "klir":
        return File(name, f"hex:{kernel_binary.pack(node.bodies).hex()}")
    functions = lowered(node.name, node.bodies, target)
    from ncc.ir.bir_json import document

    held = document(Module(node.name, target.arch, functions))
    text = json.dumps(held, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return File(name, text)


def lowered(
    name: str, bodies: tuple[Kernel, ...], target: Target, core: int = -1
) -> tuple[Function, ...]:
    """A function for each core, named after the kernel: `scale`, or `scale_0` and `scale_1`.
    Only that of one `core` if asked for."""
    from ncc.ir.lower.kernel import lower

    if len(bodies) == 1:
        made = lower(bodies[0], target)
        return (Function(name, made.sets, made.blocks, made.attributes),)
    found: list[Function] = []
    for number, body in enumerate(bodies):
        if core not in (-1, number):
            continue
        made = lower(body, target)
        both = {b.name for b in body.buffers if b.memory == "shared_hbm" and b.kind == "internal"}
        sets = tuple(attrs.evolve(x, kind=SHARED) if x.name in both else x for x in made.sets)
        found.append(Function(f"{name}_{body.core}", sets, made.blocks, made.attributes))
    return tuple(found)


def functions_of(inst: Inst, module: Module, target: Target) -> tuple[Function, ...]:
    """The functions that a carrier gives: one a core, or that of the one core it names."""
    form, core = key(inst, "kernel_format"), key(inst, "core")
    if form not in SUFFIX:
        raise fault("NCC391", inst, f"travels as {form!r}; there are {listed(SUFFIX)}")
    version = key(inst, "nki_binary_version_identifier")
    if version != kernel_binary.VERSION:
        said = f"has the version {version!r}; {kernel_binary.VERSION} is read here"
        raise fault("NCC393", inst, said)
    wanted = key(inst, "klir_binary")
    content = {file.name: file.content for file in module.files}
    if wanted not in content:
        hint = nearest(wanted, content)
        raise fault("NCC391", inst, f"names the file {wanted!r}, which the module lacks", hint)
    if form == "klir":
        head, _, digits = content[wanted].partition(":")
        try:
            raw = bytes.fromhex(digits if head == "hex" else "?")
        except ValueError:
            raise fault("NCC392", inst, f"{wanted} does not hold bytes") from None
        return lowered(inst.name, kernel_binary.unpack(raw, wanted), target, core)
    found = functions_in(content[wanted], wanted)
    return found if core < 0 else found[core : core + 1]


@lru_cache(maxsize=4)
def functions_in(text: str, name: str) -> tuple[Function, ...]:
    """The functions of a BIR document; the interpreter and the pass ask for the same."""
    from ncc.ir.bir_json import from_json

    return from_json(text, name).functions


def fault(code: str, inst: Inst, said: str, hint: str = "") -> NccError:
    return NccError(code, said, inst.origin.place(inst.name), hint)


def names_of(inst: Inst) -> tuple[str, ...]:
    """The functions that a call site runs, one a core."""
    found: Any = key(inst, "func")
    return cast("tuple[str, ...]", found) if isinstance(found, tuple) else (str(found),)


def called(inst: Inst, module: Module) -> tuple[Function, ...]:
    """The functions of a call site (55). NCC394 for one that does not exist."""
    known = {func.name: func for func in module.functions[1:]}
    for name in names_of(inst):
        if name not in known:
            hint = nearest(name, known)
            raise fault("NCC394", inst, f"calls {name!r}, which is no function of a kernel", hint)
    return tuple(known[name] for name in names_of(inst))


# ---- names --------------------------------------------------------------------------------------


def prefixed(func: Function, prefix: str, keep: frozenset[str] = frozenset()) -> Function:
    """The function with every name in it after `prefix` and a colon; `keep` are sets that stay."""
    named = {of.name: of.name if of.name in keep else f"{prefix}:{of.name}" for of in func.sets}
    locs = {
        loc.name: loc.name if of.name in keep else f"{prefix}:{loc.name}"
        for of in func.sets
        for loc in of.locs
    }
    made: dict[int, Operand] = {}

    def operand(x: Operand) -> Operand:
        found = made.get(id(x))
        if found is None:
            match x:
                case Ap(loc, dtype, ap, offset):
                    found = Ap(locs.get(loc, loc), dtype, ap, offset)
                case SymAp(of, block, dtype, ap, offset):
                    found = SymAp(named.get(of, of), block, dtype, ap, offset)
                case Tile(of, index, par, free):
                    found = Tile(named.get(of, of), index, par, free)
                case Reg(name, dtype):
                    found = Reg(f"{prefix}:{name}", dtype)
                case _:
                    found = x
            made[id(x)] = found
        return found

    sets = tuple(_renamed(of, named[of.name], locs) for of in func.sets)
    blocks = tuple(
        type(block)(block.name, tuple(_inst(x, prefix, operand) for x in block.insts))
        for block in func.blocks
    )
    return Function(func.name, sets, blocks, func.attributes)


def _renamed(of: LocSet, name: str, locs: dict[str, str]) -> LocSet:
    if name == of.name:
        return of
    placed = tuple(attrs.evolve(loc, name=locs[loc.name]) for loc in of.locs)
    return attrs.evolve(of, name=name, locs=placed)


def _inst(inst: Inst, prefix: str, operand: Any) -> Inst:
    blocks = tuple(
        type(block)(block.name, tuple(_inst(x, prefix, operand) for x in block.insts))
        for block in inst.blocks
    )
    return Inst(
        f"{prefix}:{inst.name}",
        inst.opcode,
        inst.engine,
        tuple([operand(x) for x in inst.ins]),
        tuple([operand(x) for x in inst.outs]),
        inst.keys,
        tuple([(f"{prefix}:{name}", kind) for name, kind in inst.deps]),
        inst.waits,
        inst.updates,
        inst.loopnest,
        inst.axis,
        blocks,
        inst.origin,
    )
