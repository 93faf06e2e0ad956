"""Functions of several blocks: their instructions in one line, their loops, what lives around them.

Blocks stand in program order, and a loop is what lies between a block and a later one that branches
back to it: nothing jumps into its middle. All engines meet at the end of every block
(`ncc.encode.records_control`), so order inside a block is all that later passes have to settle. A
block ends with its terminators, which is how a line of instructions is parted again.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ncc.ir.bir import Ap, Block, Function, Inst
from ncc.ir.bir_opcodes import OPCODES, key
from ncc.ir.locations import Box, Cover, byte_box, owners, reads_and_writes
from ncc.ir.recent import Recent

Span = tuple[int, int]


def line(func: Function) -> tuple[Inst, ...]:
    """All instructions in program order; of a function of one block, its own tuple."""
    if len(func.blocks) == 1:
        return func.blocks[0].insts
    return tuple([inst for block in func.blocks for inst in block.insts])


def is_terminator(inst: Inst) -> bool:
    return OPCODES[inst.opcode].family == "terminator"


def parted(func: Function, insts: Sequence[Inst]) -> tuple[Block, ...]:
    """A line of instructions in the blocks of `func`: each ends behind its terminators."""
    if len(func.blocks) == 1:
        return (Block(func.blocks[0].name, tuple(insts)),)
    found: list[list[Inst]] = [[]]
    ended: set[str] = set()  # engines that have left the block at hand
    for inst in insts:
        ends = is_terminator(inst)
        more = ends and inst.engine not in ended and inst.engine != "ALL"
        if ended and not more and len(found) < len(func.blocks):
            found.append([])
            ended = set()
        found[-1].append(inst)
        if ends:
            ended.add(inst.engine)
    names = [block.name for block in func.blocks]
    return tuple(Block(n, tuple(x)) for n, x in zip(names, found, strict=True))


def spans_of_blocks(func: Function) -> list[Span]:
    """The first and the last position of each block in the line."""
    found: list[Span] = []
    at = 0
    for block in func.blocks:
        found.append((at, at + len(block.insts) - 1))
        at += len(block.insts)
    return found


def ways(block: Block) -> list[str]:
    """The blocks that a block's terminators lead to."""
    found: list[str] = []
    for inst in block.insts:
        if inst.opcode == "UnconditionalBranch":
            found.append(str(key(inst, "target")))
        elif inst.opcode == "CompareAndBranch":
            found += (str(key(inst, "on_true")), str(key(inst, "on_false")))
    return list(dict.fromkeys(found))


def loops(func: Function) -> list[Span]:
    """The loops as their first and last block, inner ones before those around them."""
    number = {block.name: n for n, block in enumerate(func.blocks)}
    found = {
        (number[way], n)
        for n, block in enumerate(func.blocks)
        for way in ways(block)
        if number.get(way, n + 1) <= n
    }
    return sorted(found, key=lambda loop: (loop[1] - loop[0], loop))


def turns(func: Function) -> list[Span]:
    """The loops as their first and last position in the line, inner ones first."""
    if len(func.blocks) == 1:
        return []
    blocks = spans_of_blocks(func)
    return [(blocks[first][0], blocks[last][1]) for first, last in loops(func)]


def touches(insts: Sequence[Inst]) -> dict[str, list[int]]:
    """Where each location is touched, in order."""
    found: dict[str, list[int]] = {}
    for at, inst in enumerate(insts):
        for x in (*inst.outs, *inst.ins):
            if type(x) is Ap:
                here = found.setdefault(x.loc, [])
                if not here or here[-1] != at:
                    here.append(at)
    return found


@attrs.frozen
class Lives:
    """From which position to which the bytes of each location are needed, and which of them a turn
    of some loop shares with what is outside of it or with the next turn."""

    spans: dict[str, Span]
    shared: frozenset[str]


_lives = Recent[Lives]()


def lives(func: Function) -> Lives:
    """What is touched inside a loop and outside of it is needed in every turn; so is what a turn
    reads before it has written all of it."""
    return _lives.get(func, lambda: _measured(func))


def _measured(func: Function) -> Lives:
    insts = line(func)
    used = touches(insts)
    found = {name: (at[0], at[-1]) for name, at in used.items()}
    shared: set[str] = set()
    around = turns(func)
    for number, (first, last) in enumerate(around):
        inner = around[:number]
        for name, at in used.items():
            if not any(first <= n <= last for n in at):
                continue
            low, high = found[name]
            if low < first or high > last or carried(func, insts, name, at, (first, last), inner):
                found[name] = min(low, first), max(high, last)
                shared.add(name)
    return Lives(found, frozenset(shared))


def carried(
    func: Function, insts: Sequence[Inst], name: str, at: list[int], loop: Span, inner: list[Span]
) -> bool:
    """Whether a location that only a loop touches may be read before the turn has written it."""
    for low, high in inner:
        if low >= loop[0] and high <= loop[1] and low <= at[0] <= high and at[-1] > high:
            return True  # written where no turn may come
    block = next(span for span in spans_of_blocks(func) if span[0] <= at[0] <= span[1])
    owner = owners(func.sets).get(name)
    if owner is None:
        return True
    cover, needs, writing = Cover(), None, True
    for n in at:
        reads, writes = reads_and_writes(insts[n])
        mine = [byte_box(x, owner[1]) for x in reads if x.loc == name]
        writing = writing and not mine and n <= block[1]
        for box in mine:
            needs = joined(needs, box)
        for x in writes if writing else ():
            if x.loc == name:
                cover.add(x, owner[1])
    return needs is not None and not cover.holds(needs)


def joined(a: Box | None, b: Box) -> Box:
    return a.joined(b) if a else b


def private(func: Function) -> frozenset[str] | None:
    """The locations that one block alone touches, anew in each turn; None where that is all.

    Only of these may a pass that looks at one block change where they hold what.
    """
    if len(func.blocks) == 1:
        return None
    found = lives(func)
    blocks = spans_of_blocks(func)
    return frozenset(
        name
        for name, (low, high) in found.spans.items()
        if name not in found.shared and any(a <= low and high <= b for a, b in blocks)
    )


def crossing(func: Function, number: int, memory: str) -> frozenset[str]:
    """The locations of a memory that hold something at a border of block `number`."""
    own = private(func)
    if own is None:
        return frozenset()
    first, last = spans_of_blocks(func)[number]
    kinds = {loc.name: loc.type for of in func.sets for loc in of.locs}
    return frozenset(
        name
        for name, (low, high) in lives(func).spans.items()
        if low <= last and high >= first and kinds.get(name) == memory and name not in own
    )
