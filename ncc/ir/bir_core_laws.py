"""What holds of the cores of a program together: they meet, and know the same shared tensors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest

from ncc.errors import NccError
from ncc.ir.bir import SHARED, Inst, LocSet, Module
from ncc.ir.bir_opcodes import key
from ncc.ir.core import Cores, Law, modules_of
from ncc.ir.kernel_cores import alone
from ncc.target import Target

KNOWN = (SHARED, "ExternalInput", "ExternalOutput")


def barriers(module: Module) -> list[Inst]:
    """The barriers of a core, in program order."""
    found: list[Inst] = []
    for func in module.functions:
        for block in func.blocks:
            found += [inst for inst in block.insts if inst.opcode == "CoreBarrier"]
    return found


def cores_meet(program: Module | Cores, target: Target) -> Iterator[NccError]:
    """Each core comes to the same barriers in the same order."""
    modules = modules_of(program)
    if len(modules) < 2:
        return
    for row in zip_longest(*map(barriers, modules)):
        if len({None if inst is None else key(inst, "id") for inst in row}) > 1:
            yield next(alone(core, inst) for core, inst in enumerate(row) if inst is not None)
            return


def shared_tensors_agree(program: Module | Cores, target: Target) -> Iterator[NccError]:
    """A tensor of several cores has one kind, type and shape; all know inputs and outputs."""
    modules = modules_of(program)
    if len(modules) < 2:
        return
    known: dict[str, LocSet] = {}
    outside: list[list[str]] = []
    for module in modules:
        sets = [of for of in module.main.sets if of.kind in KNOWN]
        outside.append([of.name for of in sets if of.kind != SHARED])
        for of in sets:
            first = known.setdefault(of.name, of)
            if (first.kind, first.dtype, first.shape) != (of.kind, of.dtype, of.shape):
                said = f"is {first.kind} {first.dtype} {first.shape} on one core and "
                said += f"{of.kind} {of.dtype} {of.shape} on another"
                yield NccError("NCC438", said, of.origin.place(of.name))
    if any(names != outside[0] for names in outside):
        said = "the cores do not have the same inputs and outputs, in one order"
        yield NccError("NCC438", said)


LAWS: tuple[Law, ...] = (
    Law("cores_meet", cores_meet, together=True),
    Law("shared_tensors_agree", shared_tensors_agree, together=True),
)
