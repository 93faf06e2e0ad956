"""Rules 5: memory and allocation."""

from __future__ import annotations

import attrs

from ncc.rules import Rule
from ncc.rules.memory_examples import WRONG, example

_TEXTS: tuple[Rule, ...] = (
    Rule(
        "NCC500",
        "a read before any write",
        "An instruction may read a location only after another one has written it.",
        "Write the location first, or drop the read.",
        names=("no first def", "bad input"),
    ),
    Rule(
        "NCC501",
        "a tile larger than SBUF",
        "One tile may take at most the bytes a partition that the target lets a program use.",
        "Cut the tile into smaller ones, or choose a target with more memory.",
        names=("too big for SB", "sb_size_legalization"),
    ),
    Rule(
        "NCC502",
        "tiles that do not fit SBUF together",
        "What one instruction needs at one moment, and every buffer of a ring, must be in SBUF at "
        "once; nothing of it can be spilled.",
        "Make the tiles smaller, or keep fewer of them at a time.",
        names=("couldn't allocate every tensor in SB and spilling can't help", "H01"),
    ),
    Rule(
        "NCC503",
        "more open sums than PSUM has banks",
        "Sums that are open at one moment need banks of their own: eight of 2 KiB a partition.",
        "Copy a finished sum to SBUF before the next one starts.",
        names=("requires n banks", "H02c"),
    ),
    Rule(
        "NCC504",
        "more than a PSUM bank holds",
        "A PSUM tile fits the banks, and no access passes the end of a bank.",
        "Cut the tile, or the access, into parts of 2048 bytes a partition.",
        names=("psum_legalization", "H02a", "A6"),
    ),
    Rule(
        "NCC505",
        "partitions that an engine cannot start at",
        "Up to 32 partitions start at 0, 32, 64 or 96; up to 64 at 0 or 64; more at 0 only.",
        "Move the data to the start of a quadrant, or cut the instruction there.",
        names=("A1", "BIR429"),
    ),
    Rule(
        "NCC510",
        "a step or a count that does not fit its field",
        "A step is between −32768 and 32767 elements, and a count between 1 and 65535.",
        "Split the access where the step is taken, or make the tile narrower.",
        names=("H05", "L4"),
    ),
    Rule(
        "NCC511",
        "a pattern with too many pairs",
        "A record holds two to four pairs beside the partition's, by the kind of its instruction.",
        "Copy the operand into an order with fewer jumps.",
        names=("A3", "BIR049"),
    ),
    Rule(
        "NCC512",
        "a DMA that no descriptor holds",
        "Both sides of a DMA are cut into the same contiguous runs, with two steps above them; the "
        "transposing DMA takes 16 rows of 2-byte elements at a time, at multiples of 32 bytes.",
        "Give both sides equal counts in the same order, with fewer jumps.",
        names=("L29", "DMA legalization"),
    ),
    Rule(
        "NCC513",
        "PSUM cells read as another type",
        "A PSUM cell holds one 4-byte number and is read as the tile's own type.",
        "Copy the tile to SBUF and read it there.",
        names=("widen-psum",),
    ),
    Rule(
        "NCC520",
        "a live range that is not so",
        "`live` is the number of the first and of the last instruction that touches the location.",
        "Run the pass liveness again, or repair the two numbers.",
    ),
    Rule(
        "NCC521",
        "two live locations at one place",
        "Locations that are live at one moment share no byte of a partition; in PSUM, no bank.",
        "Leave one of them without a place and let the allocators choose.",
        names=("allocation check",),
    ),
    Rule(
        "NCC522",
        "a place that is not legal",
        "A tile starts at a multiple of 8 bytes (32 under the transposing DMA) and at a legal "
        "partition, and ends inside what the target has; a PSUM tile of several banks starts at a "
        "multiple of its size; scratch in DRAM at a multiple of 4096.",
        "Leave it without a place and let the allocators choose.",
        names=("BIR429 placement",),
    ),
    Rule(
        "NCC523",
        "a location without a place",
        "Whatever an instruction touches on chip has a place once its allocator has run.",
        "Run alloc-psum, alloc-sbuf and insert-spills.",
    ),
    Rule(
        "NCC525",
        "a narrow PSUM cell",
        "Every element in PSUM has four bytes.",
        "Declare the tile float32, int32 or uint32, or run widen-psum.",
        names=("BIR310", "BIR311"),
    ),
    Rule(
        "NCC526",
        "a location written over after a read",
        "Outside rings and open sums a location holds one value: nobody writes all of it again "
        "after it was read.",
        "Give the second value a location of its own.",
        names=("non_ssa_legalization",),
    ),
    Rule(
        "NCC527",
        "the runtime's region",
        "From trn2 on one location, EvalAccelReservedLoc, covers the top of SBUF.",
        "Leave it as reserve-runtime wrote it.",
        names=("RuntimeMemoryReservation",),
    ),
)

RULES: tuple[Rule, ...] = tuple(
    attrs.evolve(rule, wrong=example(rule.code)[0], right=example(rule.code)[1])
    if rule.code in WRONG
    else rule
    for rule in _TEXTS
)
