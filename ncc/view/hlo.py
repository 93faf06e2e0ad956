"""HLO as a picture: one box an instruction, the computations one after the other."""

from __future__ import annotations

from collections.abc import Iterator

from ncc.ir.hlo import Instruction, Module, called, leaves
from ncc.view.dot import Box, picture


def draw(module: Module, fresh: frozenset[int]) -> str:
    return picture(module.name, boxes(module, fresh))


def boxes(module: Module, fresh: frozenset[int]) -> Iterator[Box]:
    for computation in module.computations:
        inside = f"{computation.name}/"
        for inst in computation.instructions:
            sources = [(inside + name, "") for name in inst.operands]
            for name in called(inst):
                other = next((c for c in module.computations if c.name == name), None)
                if other:
                    sources.append((f"{name}/{other.root}", "calls"))
            shape = "oval" if inst.opcode in ("parameter", "constant") else "box"
            new = id(inst) in fresh
            yield Box(inside + inst.name, lines(inst, computation.root), tuple(sources), shape, new)


def lines(inst: Instruction, root: str) -> tuple[str, ...]:
    """Name and opcode, shapes with layouts, and the lists of numbers among the attributes."""
    found = [f"{'ROOT ' if inst.name == root else ''}{inst.name} = {inst.opcode}"]
    for leaf in leaves(inst.shape):
        layout = leaf.layout.minor_to_major if leaf.layout else ()
        order = "{" + ",".join(map(str, layout)) + "}" if layout else ""
        found.append(f"{leaf.dtype}[{','.join(map(str, leaf.dims))}]{order}")
    for key, value in inst.attributes:
        if isinstance(value, tuple):
            found.append(f"{key}={{{','.join(map(str, value))}}}")
    return tuple(found)
