"""BIR as a picture: instructions, and the edges (or locations) that link them."""

from __future__ import annotations

from collections.abc import Iterator

from ncc.ir.bir import Ap, Block, Inst, Module, Operand, SymAp, Tile
from ncc.ir.core import Cores
from ncc.view.dot import Box, picture, together


def draw(program: Module | Cores, fresh: frozenset[int]) -> str:
    return picture(program.name, together(program, fresh, boxes))


def boxes(module: Module, fresh: frozenset[int]) -> Iterator[Box]:
    made: dict[str, str] = {}
    for one in module.main.sets:
        if one.kind in ("ExternalInput", "Const"):
            shape = "x".join(map(str, one.shape))
            made[one.name] = f"set {one.name}"
            for loc in one.locs:
                made[loc.name] = made[one.name]
            lines = (f"{one.name}: {one.dtype} {shape}", one.kind)
            yield Box(made[one.name], lines, shape="oval", new=id(one) in fresh)
    for block in module.main.blocks:
        yield from instructions(block, (), made, fresh)


def instructions(
    block: Block, loops: tuple[str, ...], made: dict[str, str], fresh: frozenset[int]
) -> Iterator[Box]:
    for inst in block.insts:
        if inst.blocks:
            axis, low, high, _ = inst.axis or ("", 0, 0, 1)
            for inner in inst.blocks:
                yield from instructions(inner, (*loops, f"{axis} {low}..{high}"), made, fresh)
            continue
        sources = {made[n]: n for n in map(place, inst.ins) if n in made}
        sources |= dict(inst.deps)
        yield Box(inst.name, lines(inst, loops), tuple(sources.items()), new=id(inst) in fresh)
        for out in inst.outs:
            made[place(out)] = inst.name


def place(operand: Operand) -> str:
    """The set or location that an operand touches; "" for an immediate."""
    match operand:
        case Tile(name) | SymAp(name) | Ap(name):
            return name
        case _:
            return ""


def lines(inst: Inst, loops: tuple[str, ...]) -> tuple[str, ...]:
    """What an instruction's box says."""
    found = [f"for {loop}" for loop in loops]
    found.append(f"{inst.name} {inst.opcode} on {inst.engine}")
    found += [f"{key} {value}" for key, value in inst.keys]
    found += [f"reads {place(x)}" for x in inst.ins if place(x)]
    found += [f"writes {place(x)}" for x in inst.outs]
    found += [f"wait {w.unit}>={w.count}" for w in inst.waits]
    return tuple(found)
