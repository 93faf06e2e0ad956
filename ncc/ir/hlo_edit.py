"""What the passes of HLO that rewrite share: calls inlined, users, what nothing reads."""

from __future__ import annotations

from collections.abc import Iterable

import attrs

from ncc.ir.hlo import ArrayShape, Computation, Instruction, Literal, Module, called
from ncc.ir.hlo_laws import unique


def inlined(module: Module) -> Computation:
    """The entry with every call of a computation replaced by what it does."""
    others = {x.name: x for x in module.computations}
    taken = {inst.name for inst in module.main().instructions}
    body: list[Instruction] = []

    def put(computation: Computation, args: tuple[str, ...] | None) -> str:
        now: dict[str, str] = {}
        for inst in computation.instructions:
            read = tuple(now[name] for name in inst.operands)
            if inst.opcode == "parameter" and args is not None:
                now[inst.name] = args[inst.number]
            elif inst.opcode == "call":
                now[inst.name] = put(others[called(inst)[0]], read)
            else:
                name = inst.name if args is None else unique(inst.name, taken)
                now[inst.name] = name
                same = name == inst.name and read == inst.operands
                body.append(inst if same else attrs.evolve(inst, name=name, operands=read))
        return now[computation.root]

    root = put(module.main(), None)
    return attrs.evolve(module.main(), instructions=tuple(body), root=root)


def users(computation: Computation) -> dict[str, list[Instruction]]:
    """Who reads each value, in order."""
    found: dict[str, list[Instruction]] = {inst.name: [] for inst in computation.instructions}
    for inst in computation.instructions:
        for name in dict.fromkeys(inst.operands):
            found[name].append(inst)
    return found


def pruned(body: Iterable[Instruction], root: str) -> tuple[Instruction, ...]:
    """The instructions without those that nothing reads; parameters stay, they are the caller's."""
    kept: list[Instruction] = []
    wanted = {root}
    for inst in reversed(tuple(body)):
        if inst.name in wanted or inst.opcode == "parameter":
            wanted.update(inst.operands)
            kept.append(inst)
    return tuple(reversed(kept))


def entry_replaced(module: Module, entry: Computation) -> Module:
    """The module with another entry, and without the computations that nothing calls any more."""
    others = {x.name: x for x in module.computations}
    reached, todo = {entry.name}, [entry]
    while todo:
        for inst in todo.pop().instructions:
            for name in called(inst):
                if name not in reached:
                    reached.add(name)
                    todo.append(others[name])
    kept = tuple(
        entry if x.name == entry.name else x for x in module.computations if x.name in reached
    )
    return attrs.evolve(module, computations=kept)


def dims_of(inst: Instruction) -> tuple[int, ...]:
    return inst.shape.dims if isinstance(inst.shape, ArrayShape) else ()


def number_of(inst: Instruction) -> float | None:
    """The number that all elements of a constant are, if they are one."""
    from ncc.ir.data import FROM_HLO, Data

    if not isinstance(inst.literal, Literal) or inst.literal.dtype not in (*FROM_HLO, "pred"):
        return None
    if inst.literal.dtype == "pred":
        values = set(inst.literal.raw)
        return float(min(values)) if len(values) == 1 else None
    known = Data(FROM_HLO[inst.literal.dtype], inst.literal.shape, inst.literal.raw)
    if not known.raw or not known.word().startswith("splat:"):
        return None
    return float(known.array().reshape(-1)[0])
