"""Facts of memory and allocation, from leave-ssa to alloc-dram.

Each is checked from scratch: from `Loc` fields and instructions alone, never from what an allocator
remembered. The facts about places read only the sets, and are asked again when those change.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from typing import Any

from ncc.errors import NccError, Place
from ncc.ir.bir import Ap, Inst, Loc, LocSet, Module
from ncc.ir.bir_loops import line, lives
from ncc.ir.bir_opcodes import OPCODES
from ncc.ir.core import Law
from ncc.ir.data import size_of
from ncc.ir.dma_patterns import WIDE, dma_error, is_transposing
from ncc.ir.engine_patterns import complaints, may_start
from ncc.ir.intervals import has_life
from ncc.ir.locations import Owned, owners
from ncc.ir.recent import Recent
from ncc.ir.redefinitions import versions
from ncc.target import TARGETS, Target

PAGE = 4096


def each_value_has_its_location(module: Module, target: Target) -> Iterator[NccError]:
    """No location is written over after somebody read it, except rings and open sums."""
    insts = line(module.main)
    for name, found in versions(module.main).items():
        again = insts[found[1].writes[0]]
        said = f"writes {name} over a value that {insts[found[0].reads[0]].name} reads"
        yield NccError("NCC526", said, again.origin.place(again.name))


def patterns_are_expressible(node: Any, module: Module, target: Target) -> Iterator[NccError]:
    """Every access fits the record or the descriptor that its opcode has."""
    if not isinstance(node, Inst):
        return
    inst: Inst = node
    sets = module.main.sets
    fitting = _fitting.get(sets, _Fitting)
    last = fitting.get(id(inst.outs))
    if (
        last
        and last[0] is inst.outs
        and last[1] is inst.ins
        and last[2] is target
        and last[3] == inst.opcode
    ):
        return
    owned = owners(sets)
    if OPCODES[inst.opcode].family == "dma":
        bad = dma_error(inst, owned, target)
    else:
        bad = complaints(inst, owned)
    if bad:
        yield bad
        return
    fitting[id(inst.outs)] = (inst.outs, inst.ins, target, inst.opcode)


# Operands that passed, by their sets and identity: most passes give an instruction new edges and
# old operands.
_Fitting = dict[int, tuple[object, object, object, str]]
_fitting = Recent[_Fitting]()


def psum_cells_are_four_bytes(module: Module, target: Target) -> Iterator[NccError]:
    """Every PSUM tile has elements of four bytes."""
    for of in module.main.sets:
        if of.memory == "PSUM" and size_of(of.dtype) != 4:
            said = f"a PSUM tile of {of.dtype}; a cell there has four bytes"
            yield NccError("NCC525", said, of.origin.place(of.name))


def the_runtime_has_its_region(module: Module, target: Target) -> Iterator[NccError]:
    """From trn2 on, exactly one location covers the top of SBUF."""
    found = [x for of in module.main.sets for x in of.locs if x.runtime_reserved]
    start = TARGETS[target.name].sbuf_usable
    wanted = 1 if target.level >= 30 else 0
    if len(found) != wanted:
        said = f"{len(found)} locations are reserved for the runtime, and {target} wants {wanted}"
        yield NccError("NCC527", said, Place("", 0, 0, "", found[1].name if found[1:] else ""))
    for loc in found[:wanted]:
        if loc.addr != start or loc.addr + loc.dims[1] < target.sbuf_size:
            said = f"covers bytes {loc.addr} to {loc.addr + loc.dims[1]}, and the runtime has "
            said = f"{said}{start} to {target.sbuf_size}"
            yield NccError("NCC527", said, Place("", 0, 0, "", loc.name))


def live_ranges_are_measured(module: Module, target: Target) -> Iterator[NccError]:
    """`Loc.live` is the first and the last instruction that touches the location."""
    found = lives(module.main).spans
    for name, (of, loc) in owners(module.main.sets).items():
        live = found.get(name) if has_life(of, loc) else None
        if live != loc.live:
            said = f"live is written as {loc.live}, and the instructions say {live}"
            yield NccError("NCC520", said, of.origin.place(name))


def _alive(module: Module, memory: str) -> list[Owned]:
    """The placed locations of a memory, with the time that they live."""
    return [
        (of, loc)
        for of, loc in owners(module.main.sets).values()
        if loc.type == memory and loc.allocated and (loc.live or loc.runtime_reserved)
    ]


def _in_time(locs: list[Owned]) -> Iterator[tuple[bool, int]]:
    """Who comes (True) and who goes, by number, in order of time; who goes makes room first."""
    last = max((loc.live[1] for _, loc in locs if loc.live), default=0)
    events: list[tuple[int, bool, int]] = []
    for number, (_, loc) in enumerate(locs):
        lo, hi = loc.live or (0, last)
        events += [(lo, True, number), (hi + 1, False, number)]
    for _, coming, number in sorted(events):
        yield coming, number


def _first_meeting(locs: list[Owned], bands: Callable[[Loc], range]) -> Iterator[NccError]:
    """The first location that comes upon bytes of another one, live too, in one of its bands."""
    rows: dict[int, list[tuple[int, int]]] = {}  # start and number of who is there, by start
    for coming, number in _in_time(locs):
        of, loc = locs[number]
        for band in bands(loc):
            row = rows.setdefault(band, [])
            at = bisect_left(row, (loc.addr, number))
            if not coming:
                del row[at]
                continue
            for _, near in row[max(at - 1, 0) : at + 1]:
                other = locs[near][1]
                if other.addr < loc.addr + loc.dims[1] and loc.addr < other.addr + other.dims[1]:
                    yield _meeting(of, loc, other)
                    return
            row.insert(at, (loc.addr, number))


def _meeting(of: LocSet, loc: Loc, other: Loc) -> NccError:
    said = f"has bytes {loc.addr} to {loc.addr + loc.dims[1]}, and {other.name}, live too, has "
    said = f"{said}{other.addr} to {other.addr + other.dims[1]}"
    return NccError("NCC521", said, of.origin.place(loc.name))


def live_tiles_are_disjoint(module: Module, target: Target) -> Iterator[NccError]:
    """No two SBUF tiles that are live together share a byte of a partition."""
    yield from _first_meeting(_alive(module, "SB"), _quadrants)


def _quadrants(loc: Loc) -> range:
    return range(loc.base // 32, (loc.base + loc.dims[0] - 1) // 32 + 1)


def live_sums_share_no_bank(module: Module, target: Target) -> Iterator[NccError]:
    """No two PSUM tiles that are live together share a bank, unless a kernel put both there."""
    locs = _alive(module, "PSUM")
    banks: dict[int, list[int]] = {}
    for coming, number in _in_time(locs):
        of, loc = locs[number]
        for bank in _banks(loc, target):
            there = banks.setdefault(bank, [])
            if not coming:
                there.remove(number)
                continue
            for other in (locs[n][1] for n in there):
                if not (loc.pinned and other.pinned):
                    yield _meeting(of, loc, other)
                    return
            there.append(number)


def _banks(loc: Loc, target: Target) -> range:
    size = target.psum_bank_bytes
    return range(loc.addr // size, (loc.addr + loc.dims[1] - 1) // size + 1)


def sums_are_aligned(module: Module, target: Target) -> Iterator[NccError]:
    """A PSUM tile starts at a bank that is a multiple of its size, and ends in the last at most."""
    for of, loc in _alive(module, "PSUM"):
        banks = _banks(loc, target)
        said = ""
        if banks[-1] >= target.psum_banks:
            said = f"ends in bank {banks[-1]}, and {target} has {target.psum_banks} banks"
        elif not loc.pinned and banks[0] % (1 << (len(banks) - 1).bit_length()):
            said = f"has {len(banks)} banks from {banks[0]} on, and a START clears aligned ones"
        if said:
            yield NccError("NCC522", said, of.origin.place(loc.name))


def tiles_are_aligned(module: Module, target: Target) -> Iterator[NccError]:
    """A placed SBUF tile starts at a legal partition and byte, and ends inside the budget."""
    wide: set[str] = set()
    for inst in line(module.main):
        if inst.opcode == "DMACopy" and is_transposing(inst):
            wide.update(x.loc for x in inst.outs if type(x) is Ap)
    for of, loc in _alive(module, "SB"):
        unit = WIDE if loc.name in wide else 8
        end = loc.addr + loc.dims[1]
        said = ""
        if loc.runtime_reserved:
            continue
        if loc.addr % unit and not (loc.pinned and unit < WIDE):
            said = f"starts at byte {loc.addr}, which is no multiple of {unit}"
        elif end > target.sbuf_usable:
            said = f"ends at byte {end}, and {target} has {target.sbuf_usable}"
        elif not loc.pinned and not may_start(loc.base, loc.dims[0]):
            said = f"has {loc.dims[0]} partitions from {loc.base} on, where they may not start"
        if said:
            yield NccError("NCC522", said, of.origin.place(loc.name))


def _unplaced(memory: str) -> Callable[[Module, Target], Iterator[NccError]]:
    def check(module: Module, target: Target) -> Iterator[NccError]:
        for of, loc in owners(module.main.sets).values():
            if loc.type == memory and loc.live and not loc.allocated:
                yield NccError("NCC523", f"is used and has no place in {memory}", _spot(of, loc))

    return check


def _spot(of: LocSet, loc: Loc) -> Place:
    return of.origin.place(loc.name)


def scratch_is_disjoint(module: Module, target: Target) -> Iterator[NccError]:
    """Scratch tensors that are live together have bytes of their own, from whole pages on."""
    locs = [(of, loc) for of, loc in _alive(module, "DRAM") if of.kind == "Internal"]
    for of, loc in locs:
        if loc.addr % PAGE:
            said = f"starts at byte {loc.addr} of the scratchpad, which is no multiple of {PAGE}"
            yield NccError("NCC522", said, _spot(of, loc))
    yield from _first_meeting(locs, lambda loc: range(1))


def _sets(module: Module) -> tuple[object, ...]:
    return (module.main.sets,)


def _sets_and_insts(module: Module) -> tuple[object, ...]:
    return module.main.sets, *[block.insts for block in module.main.blocks]


FACTS: tuple[Law, ...] = (
    Law("each_value_has_its_location", each_value_has_its_location, reads=_sets_and_insts),
    Law("patterns_are_expressible", patterns_are_expressible, node=True),
    Law("psum_cells_are_four_bytes", psum_cells_are_four_bytes, reads=_sets),
    Law("the_runtime_has_its_region", the_runtime_has_its_region, reads=_sets),
    Law("live_ranges_are_measured", live_ranges_are_measured, reads=_sets_and_insts),
    Law("every_sum_has_banks", _unplaced("PSUM"), reads=_sets),
    Law("live_sums_share_no_bank", live_sums_share_no_bank, reads=_sets),
    Law("sums_are_aligned", sums_are_aligned, reads=_sets),
    Law("every_tile_has_a_place", _unplaced("SB"), reads=_sets),
    Law("live_tiles_are_disjoint", live_tiles_are_disjoint, reads=_sets),
    Law("tiles_are_aligned", tiles_are_aligned, reads=_sets),
    Law("scratch_is_disjoint", scratch_is_disjoint, reads=_sets),
)
