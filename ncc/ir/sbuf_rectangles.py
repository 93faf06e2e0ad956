"""SBUF tiles as rectangles to place: their height class, alignment and cost, and their places."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import attrs

from ncc.errors import NccError
from ncc.ir.allocators import allocate
from ncc.ir.bir import Ap, Inst, Loc, LocSet, Module
from ncc.ir.bir_loops import line
from ncc.ir.bir_opcodes import OPCODES
from ncc.ir.colouring import INFINITE, Bands, Colouring, Node
from ncc.ir.dma_patterns import WIDE, is_transposing
from ncc.ir.intervals import peak
from ncc.ir.locations import Owned, owners, row_of, with_locs
from ncc.target import Target

UNIT = 8  # bytes: what every address is a multiple of
ROUND_TRIP = 2000  # cycles of one access to DRAM, beside its bytes (a cost to compare, not a time)
TALL, LOWER, QUADRANT = (0b1111,), (0b0011, 0b1100), (0b0001, 0b0010, 0b0100, 0b1000)


def rectangles(
    module: Module, target: Target, kept: Collection[str] = (), again: bool = False
) -> list[Node]:
    """The tiles that want a place; the places that a kernel chose stand.

    `kept` must not be spilled. `again` places all from the start, else what has a place keeps it.
    """
    func = module.main
    insts = line(func)
    owned = owners(func.sets)
    wide = _transposed(insts)
    low = [n for n, (_, loc) in owned.items() if loc.type == "SB" and loc.dims[0] <= 64]
    tied = _tied(insts, owned) if low else set[str]()
    uses = _uses(insts)
    nodes: list[Node] = []
    for name, (owner, loc) in owned.items():
        if loc.type != "SB" or loc.live is None or loc.runtime_reserved:
            continue
        lo, hi = loc.live
        bands = classes(loc.dims[0], name in tied)
        stands = loc.allocated and (loc.pinned or not again)
        units = -(-(loc.addr % UNIT + loc.dims[1]) // UNIT) if stands else -(-loc.dims[1] // UNIT)
        align = WIDE // UNIT if name in wide else 1
        endless = owner.ring or owner.no_spill or name in kept or stands or hi - lo <= 1
        cost = INFINITE if endless else float(uses.get(name, 0) * (ROUND_TRIP + loc.dims[1]))
        fixed = (mask_of(loc), loc.addr // UNIT) if stands else None
        nodes.append(Node(name, lo, hi, units, bands, align, cost, fixed))
    return nodes


def classes(partitions: int, tied: bool) -> Bands:
    """The positions of a tile on the partitions, lowest first, as bits of the four quadrants."""
    if partitions > 64:
        return TALL
    free = LOWER if partitions > 32 else QUADRANT
    return free[:1] if tied else free


def mask_of(loc: Loc) -> int:
    """The quadrants that a placed location takes."""
    first, last = loc.base // 32, (loc.base + loc.dims[0] - 1) // 32
    return (1 << (last + 1)) - (1 << first)


def _transposed(insts: Sequence[Inst]) -> set[str]:
    """Destinations of the transposing DMA: it writes 32 bytes at a time."""
    found: set[str] = set()
    for inst in insts:
        if inst.opcode == "DMACopy" and is_transposing(inst):
            found.update(x.loc for x in inst.outs if type(x) is Ap)
    return found


def _tied(insts: Sequence[Inst], owned: dict[str, Owned]) -> set[str]:
    """Tiles that must start at partition 0: those that PE or one instruction reads together, and
    those of which an engine touches partitions from the middle on."""
    found: set[str] = set()
    for inst in insts:
        if OPCODES[inst.opcode].family == "dma":
            continue
        reads = [x for x in inst.ins if type(x) is Ap]
        if len(reads) > 1 or inst.engine == "PE":
            found.update(x.loc for x in reads)
        for x in (*reads, *inst.outs):
            if type(x) is Ap and x.offset >= row_of(owned[x.loc][1], x.dtype):
                found.add(x.loc)
    return found


def _uses(insts: Sequence[Inst]) -> dict[str, int]:
    """How often each location is touched."""
    count: dict[str, int] = {}
    for inst in insts:
        for x in (*inst.ins, *inst.outs):
            if type(x) is Ap:
                count[x.loc] = count.get(x.loc, 0) + 1
    return count


def allocated(nodes: Sequence[Node], target: Target) -> Colouring:
    """A place for as many tiles as possible, by the allocator of the target."""
    return allocate(nodes, target.sbuf_usable // UNIT, target.allocator)


def placed(sets: tuple[LocSet, ...], found: Colouring) -> tuple[LocSet, ...]:
    """The sets with each tile at its place; one without has no `allocated`."""
    owned = owners(sets)
    changed: dict[str, Loc] = {}
    for name, (mask, start) in found.places.items():
        loc = owned[name][1]
        if loc.pinned:
            continue
        base = 32 * ((mask & -mask).bit_length() - 1)
        if not (loc.allocated and (loc.addr, loc.base) == (start * UNIT, base)):
            changed[name] = attrs.evolve(loc, addr=start * UNIT, base=base, allocated=True)
    for name in found.unplaced:
        if owned[name][1].allocated:
            changed[name] = attrs.evolve(owned[name][1], addr=0, base=0, allocated=False)
    return with_locs(sets, changed)


def too_much(
    module: Module, nodes: Sequence[Node], out: str, roots: Mapping[str, str], target: Target
) -> NccError:
    """NCC502: the tiles of the worst moment in the life of `out`, each with its bytes and line.

    `roots` says of a copy that an earlier round made which tile of the program it is.
    """
    owned = owners(module.main.sets)
    insts = line(module.main)
    lost = next(n for n in nodes if n.name == out)
    near = [n for n in nodes if n.lo <= lost.hi and n.hi >= lost.lo]
    most, when = peak(
        (max(n.lo, lost.lo), min(n.hi, lost.hi), owned[n.name][1].dims[1]) for n in near
    )
    here = [(roots.get(n.name, n.name), *owned[n.name]) for n in near if n.lo <= when <= n.hi]
    here.sort(key=lambda row: (-row[2].dims[1], row[0]))
    rows = [(name, f"{loc.dims[1]} bytes", owner) for name, owner, loc in here]
    verb = "take" if most > target.sbuf_usable else "find no places side by side in their"
    said = (
        f"{len(here)} tiles that are live at {at_line(insts[when])} {verb} {most} bytes a "
        f"partition, and {target} has {target.sbuf_usable}: {table(rows)}"
    )
    hint = "make the tiles smaller, or keep fewer of them at a time"
    return NccError("NCC502", said, here[0][1].origin.place(here[0][0], "insert-spills"), hint)


def at_line(inst: Inst) -> str:
    """`mm2 (x.hlo:7)`: an instruction and its line, in a sentence."""
    return f"{inst.name} ({inst.origin})" if inst.origin.file else inst.name


def table(rows: Sequence[tuple[str, str, LocSet]], most: int = 12) -> str:
    """`a 512 bytes (x.hlo:3), b 256 bytes and 2 more`: names, amounts and lines in one sentence."""
    words: list[str] = []
    for name, amount, owner in rows[:most]:
        words.append(f"{name} {amount}" + (f" ({owner.origin})" if owner.origin.file else ""))
    if len(rows) > most:
        words.append(f"{len(rows) - most} more")
    return " and ".join((", ".join(words[:-1]), words[-1])) if len(words) > 1 else words[0]
