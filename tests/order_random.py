"""Random programs of placed BIR, and what their accesses touch, byte by byte."""

from __future__ import annotations

import random
from itertools import product

from order_programs import SIZE, chip, dram, module

from ncc.errors import NccError
from ncc.ir.bir import Ap, Inst, Loc, LocSet, Module, with_insts
from ncc.passes import load
from ncc.target import TARGETS, Target

Byte = tuple[str, int, int]


def program(seed: int, count: int = 20) -> Module:
    """Copies, transfers and products over locations that overlap in every way."""
    draw = random.Random(seed)
    sets = (
        dram("x", "float32", (64, 6), "ExternalInput"),
        dram("y", "float32", (64, 6), "ExternalOutput"),
        scratch("s", (64, 6), 0),
        scratch("r", (32, 6), 768),
        scratch("u", (32, 6), 2304),
        chip("a", "float32", (64, 8), (0,)),
        chip("b", "float32", (64, 8), (16,)),
        chip("c", "float32", (32, 8), (2032,), base=32),
        chip("w", "bfloat16", (64, 8), (4096,)),
        chip("v", "bfloat16", (64, 8), (4104,)),
        chip("p", "float32", (8, 8), (0,), "PSUM"),
        chip("q", "float32", (8, 8), (32,), "PSUM"),
        chip("h", "float32", (8, 8), (2048,), "PSUM", base=32),
    )
    shapes = {of.name: of for of in sets}
    insts: list[Inst] = []
    for n in range(count):
        kind = draw.choice(
            ["load", "save", "copy", "copy", "memset", "spill", "mm", "mm", "mm", "evict"]
        )
        insts.append(one(draw, f"i{n}", kind, shapes))
    return module(sets, insts)


def scratch(name: str, shape: tuple[int, int], addr: int) -> LocSet:
    locs = (Loc(name, "DRAM", (1, shape[0] * shape[1] * 4), addr, allocated=True),)
    return LocSet(name, "float32", shape, locs=locs)


def tile(draw: random.Random, of: LocSet, rows: int, columns: int) -> Ap:
    """`columns` elements of some rows: next to each other, or every second one."""
    height, width = of.shape
    row = draw.randrange(0, height - rows + 1, 1 if of.memory == "DRAM" else 32)
    step = draw.choice((1, 1, 2)) if 2 * columns <= width else 1
    column = draw.randrange(0, width - step * (columns - 1))
    start = row * width + column
    return Ap(of.name, of.dtype, ((width, rows), (step, columns)), start)


def one(draw: random.Random, name: str, kind: str, sets: dict[str, LocSet]) -> Inst:
    rows, columns = draw.choice((1, 8, 16)), draw.choice((1, 2, 4))
    pick = draw.choice
    if kind == "load":
        source = tile(draw, sets[pick("xsru")], rows, columns)
        return Inst(name, "Load", "DMA", (source,), (tile(draw, sets[pick("abc")], rows, columns),))
    if kind == "save":
        source = tile(draw, sets[pick("abc")], rows, columns)
        return Inst(
            name, "Save", "DMA", (source,), (tile(draw, sets[pick("ysru")], rows, columns),)
        )
    if kind == "spill":
        ends = pick(("xs", "xr", "xu", "sy", "ry", "uy", "us", "ur", "su", "ru"))
        source, made = (tile(draw, sets[name], rows, columns) for name in ends)
        return Inst(name, "DMACopy", "DMA", (source,), (made,))
    if kind == "memset":
        made = tile(draw, sets[pick("abcwv")], rows, columns)
        return Inst(name, "Memset", pick(("DVE", "Pool")), (), (made,))
    if kind == "copy":
        ends = pick(("ac", "bc", "ca", "cb", "aw", "bv", "cw", "cv"))
        source, made = (tile(draw, sets[name], rows, columns) for name in ends)
        return Inst(name, "TensorCopy", pick(("DVE", "Pool", "Activation")), (source,), (made,))
    bank = sets[pick("pqh")]
    if kind == "evict":
        source = Ap(bank.name, "float32", ((8, 8), (1, columns)), pick((0, 4)))
        made = tile(draw, sets[pick("abc")], 8, columns)
        return Inst(name, "TensorCopy", pick(("DVE", "Activation")), (source,), (made,))
    moving, weights = sets[pick("wv")], sets[pick("wv")]
    ins = (
        Ap(moving.name, "bfloat16", ((8, 16), (1, 4)), pick((0, 4))),
        Ap(weights.name, "bfloat16", ((8, 16), (1, 8))),
    )
    made = Ap(bank.name, "float32", ((8, 8), (1, 4)), pick((0, 4)))
    keys = (("accumulate", True),) if pick((True, False)) else ()
    return Inst(name, "Matmult", "PE", ins, (made,), keys)


def flagged(program: Module, target: Target = TARGETS["trn2"]) -> Module:
    """The program with flags, less the matmuls that can have no right ones."""
    while True:
        try:
            return load("bir.mm_acc_flags").apply(program, target)
        except NccError as fault:
            assert fault.code in ("NCC603", "NCC604")
            insts = program.main.blocks[0].insts
            program = with_insts(program, tuple(i for i in insts if i.name != fault.place.value))


def touched(program: Module) -> list[tuple[set[Byte], set[Byte]]]:
    """For each instruction the bytes that it reads and writes, one by one."""
    locs = {loc.name: (of, loc) for of in program.main.sets for loc in of.locs}
    found: list[tuple[set[Byte], set[Byte]]] = []
    for inst in program.main.blocks[0].insts:
        reads: set[Byte] = set()
        writes: set[Byte] = set()
        for ap in inst.ins:
            if isinstance(ap, Ap):
                reads |= bytes_of_access(ap, *locs[ap.loc])
        for ap in inst.outs:
            if isinstance(ap, Ap):
                writes |= bytes_of_access(ap, *locs[ap.loc])
        if inst.opcode == "Matmult":
            flag = dict(inst.keys).get("accumulation_flag")
            adds = dict(inst.keys).get("accumulate", False) if flag is None else not flag & 1
            if adds:
                reads |= writes
            elif flag:
                writes = zeroed(writes)
        found.append((reads, writes))
    return found


def bytes_of_access(ap: Ap, of: LocSet, loc: Loc) -> set[Byte]:
    size = SIZE[ap.dtype]
    found: set[Byte] = set()
    for index in product(*(range(num) for _, num in ap.ap)):
        at = size * (ap.offset + sum(i * step for i, (step, _) in zip(index, ap.ap, strict=True)))
        for byte in range(at, at + size):
            if loc.type == "DRAM":
                space, place = (of.name, 0) if of.kind != "Internal" else ("scratch", loc.addr)
                found.add((space, 0, place + byte))
            else:
                row, inside = divmod(byte, loc.dims[1])
                found.add((loc.type, loc.base + row, loc.addr + inside))
    return found


def zeroed(writes: set[Byte]) -> set[Byte]:
    """The bank of the destination on the quadrant of its 8 columns (what of it anybody uses)."""
    (bank,) = {byte // 2048 for _, _, byte in writes}
    (quadrant,) = {row // 32 for _, row, _ in writes}
    rows = range(32 * quadrant, 32 * quadrant + 32)
    return {("PSUM", r, b) for r in rows for b in range(2048 * bank, 2048 * bank + 64)}
