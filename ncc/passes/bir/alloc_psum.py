"""Give every PSUM tile its banks.

Before:
    module f gen3
      func sg0000
        set p0 float32 (128,512) memory=PSUM
          loc p0 PSUM (128,2048) live=(0,2)
        set p1 float32 (128,1024) memory=PSUM
          loc p1 PSUM (128,4096) live=(1,4)
        set p2 float32 (128,512) memory=PSUM
          loc p2 PSUM (128,2048) live=(3,5)
        set o0 float32 (128,512) memory=SB
          loc o0 SB (128,2048) live=(2,2)
        set o1 float32 (128,512) memory=SB
          loc o1 SB (128,2048) live=(4,4)
        set o2 float32 (128,512) memory=SB
          loc o2 SB (128,2048) live=(5,5)
        block Block1
          i0 = Memset DVE p0:float32[[512,128],[1,512]]
          i1 = Memset DVE p1:float32[[1024,128],[1,512]]
          i2 = TensorCopy DVE o0:float32[[512,128],[1,512]] <- p0:float32[[512,128],[1,512]]
          i3 = Memset DVE p2:float32[[512,128],[1,512]]
          i4 = TensorCopy DVE o1:float32[[512,128],[1,512]] <- p1:float32[[1024,128],[1,512]]
          i5 = TensorCopy DVE o2:float32[[512,128],[1,512]] <- p2:float32[[512,128],[1,512]]

After:
    module f gen3
      func sg0000
        set p0 float32 (128,512) memory=PSUM
          loc p0 PSUM (128,2048) allocated=true live=(0,2)
        set p1 float32 (128,1024) memory=PSUM
          loc p1 PSUM (128,4096) addr=4096 bank=2 allocated=true live=(1,4)
        set p2 float32 (128,512) memory=PSUM
          loc p2 PSUM (128,2048) allocated=true live=(3,5)
        set o0 float32 (128,512) memory=SB
          loc o0 SB (128,2048) live=(2,2)
        set o1 float32 (128,512) memory=SB
          loc o1 SB (128,2048) live=(4,4)
        set o2 float32 (128,512) memory=SB
          loc o2 SB (128,2048) live=(5,5)
        block Block1
          i0 = Memset DVE p0:float32[[512,128],[1,512]]
          i1 = Memset DVE p1:float32[[1024,128],[1,512]]
          i2 = TensorCopy DVE o0:float32[[512,128],[1,512]] <- p0:float32[[512,128],[1,512]]
          i3 = Memset DVE p2:float32[[512,128],[1,512]]
          i4 = TensorCopy DVE o1:float32[[512,128],[1,512]] <- p1:float32[[1024,128],[1,512]]
          i5 = TensorCopy DVE o2:float32[[512,128],[1,512]] <- p2:float32[[512,128],[1,512]]

Why: PSUM comes first, since a sum cannot move while it grows. Tiles that live together never share
a bank, because the START of one clears the whole bank; a tile of several banks begins at a multiple
of its size for the same reason. A finished sum that finds no bank is copied to SBUF, where its
readers then read it. Double buffers that find none are given up: each of their sums then takes a
bank when it begins. Only open sums that outnumber the banks are an error.
"""

from __future__ import annotations

import attrs

from ncc.errors import NccError
from ncc.ir.allocators import allocate
from ncc.ir.bir import Ap, Inst, Loc, LocSet, Module, Operand, with_insts, with_sets
from ncc.ir.bir_loops import line, private
from ncc.ir.colouring import INFINITE, Colouring, Node
from ncc.ir.intervals import measured, peak
from ncc.ir.locations import box_of, fresh, owners, row_of, with_locs
from ncc.ir.redefinitions import without_rings
from ncc.ir.sbuf_rectangles import at_line, table
from ncc.passes.base import define
from ncc.target import Target

ME = "alloc-psum"
ACCESS = 200  # cycles of one access to PSUM, for comparing costs


def apply(module: Module, target: Target) -> Module:
    while True:
        nodes = tiles(module, target)
        found = allocate(together(nodes, module), target.psum_banks, target.allocator)
        if found.unplaced:
            found = allocate(nodes, target.psum_banks, target.allocator)
        worth = [n for n in nodes if n.name in found.unplaced and n.cost < INFINITE]
        if not found.unplaced:
            return placed(module, found, target)
        if worth:
            module = spilled(module, [n.name for n in worth])
        elif plain := unrung(module):
            module = plain
        else:
            raise too_many(nodes, module, target)


def unrung(module: Module) -> Module | None:
    """The module without its PSUM rings, whose values then take turns as there is room."""
    func = module.main
    rings = {x.name for x in func.sets if x.ring and x.memory == "PSUM"}
    found = without_rings(func, rings, ME) if rings else None
    return measured(with_insts(module, found[1], sets=found[0])) if found else None


def tiles(module: Module, target: Target) -> list[Node]:
    """The PSUM tiles that want banks, and those that a kernel has placed."""
    func = module.main
    finished = sums(line(func))
    nodes: list[Node] = []
    own = private(func)
    for name, (owner, loc) in owners(func.sets).items():
        if loc.type != "PSUM" or loc.live is None:
            continue
        lo, hi = loc.live
        start = loc.addr % target.psum_bank_bytes if loc.allocated else 0
        banks = -(-(start + loc.dims[1]) // target.psum_bank_bytes)
        align = 1 << (banks - 1).bit_length()
        done, reads = finished.get(name, (-1, 0))
        kept = own is not None and name not in own
        kept = kept or owner.ring or owner.no_spill or loc.allocated or done < 0 or hi <= done + 1
        cost = INFINITE if kept else float(ACCESS * banks * (reads + 1))
        fixed = (1, loc.addr // target.psum_bank_bytes) if loc.allocated else None
        nodes.append(Node(name, lo, hi, banks, (1,), align, cost, fixed))
    return nodes


def together(nodes: list[Node], module: Module) -> list[Node]:
    """The same, but a ring's tiles live as long as the ring: each keeps a bank of its own, so that
    the next sum starts while the one before is still copied out."""
    ends: dict[str, tuple[int, int]] = {}
    for owner in module.main.sets:
        lives = [loc.live for loc in owner.locs if loc.live] if owner.ring else []
        for loc in owner.locs if len(lives) > 1 else ():
            ends[loc.name] = min(lo for lo, _ in lives), max(hi for _, hi in lives)
    wide = ((n, *ends.get(n.name, (n.lo, n.hi))) for n in nodes)
    return [n if (n.lo, n.hi) == (lo, hi) else attrs.evolve(n, lo=lo, hi=hi) for n, lo, hi in wide]


def sums(insts: tuple[Inst, ...]) -> dict[str, tuple[int, int]]:
    """Of each location: its last write (-1 where a read comes before it), and how many reads."""
    last: dict[str, int] = {}
    reads: dict[str, int] = {}
    for at, inst in enumerate(insts):
        for x in inst.ins:
            if type(x) is Ap:
                reads[x.loc] = reads.get(x.loc, 0) + 1
        for x in inst.outs:
            if type(x) is Ap:
                last[x.loc] = -1 if x.loc in reads else at
    return {name: (at, reads.get(name, 0)) for name, at in last.items()}


def spilled(module: Module, names: list[str]) -> Module:
    """The module with some finished sums copied to SBUF, where their readers read them."""
    func = module.main
    insts = line(func)
    owned = owners(func.sets)
    taken, labels = set(owned), {x.name for x in insts}
    homes = {name: fresh(f"{name}_Spill", taken) for name in names}
    ends = {done: name for name, (done, _) in sums(insts).items() if name in homes}
    new: list[Inst] = []
    for at, inst in enumerate(insts):
        new.append(moved(inst, homes))
        if at in ends:
            name = ends[at]
            new.append(copied(inst, insts, owned[name][1], homes[name], labels))
    sets = [home(*owned[name], homes[name]) for name in names]
    return measured(with_insts(module, tuple(new), sets=(*func.sets, *sets)))


def home(owner: LocSet, loc: Loc, name: str) -> LocSet:
    """The SBUF set that takes a PSUM tile."""
    shape = owner.shape[owner.partition_dim :]
    new = Loc(name, "SB", loc.dims)
    origin = owner.origin.by(ME)
    return LocSet(name, owner.dtype, shape, memory="SB", locs=(new,), origin=origin)


def moved(inst: Inst, homes: dict[str, str]) -> Inst:
    if not any(type(x) is Ap and x.loc in homes for x in inst.ins):
        return inst

    def new(x: Operand) -> Operand:
        if type(x) is not Ap or x.loc not in homes:
            return x
        return Ap(homes[x.loc], x.dtype, x.ap, x.offset)

    return attrs.evolve(inst, ins=tuple(map(new, inst.ins)), origin=inst.origin.by(ME))


def copied(inst: Inst, insts: tuple[Inst, ...], loc: Loc, name: str, labels: set[str]) -> Inst:
    """The copy of all that was written of a tile, after its last writer."""
    outs = [x for i in insts for x in i.outs if type(x) is Ap and x.loc == loc.name]
    box = box_of(outs[0], loc)
    for x in outs[1:]:
        box = box.joined(box_of(x, loc))
    dtype, row = outs[0].dtype, row_of(loc, outs[0].dtype)
    pairs = ((row, box.p1 - box.p0), (1, box.e1 - box.e0))
    offset = box.p0 * row + box.e0
    src, dst = Ap(loc.name, dtype, pairs, offset), Ap(name, dtype, pairs, offset)
    label = fresh(f"{inst.name}.spill", labels)
    return Inst(label, "TensorCopy", "DVE", (src,), (dst,), origin=inst.origin.by(ME))


def placed(module: Module, found: Colouring, target: Target) -> Module:
    func = module.main
    owned = owners(func.sets)
    changed: dict[str, Loc] = {}
    for name, (_, bank) in found.places.items():
        loc = owned[name][1]
        if not loc.allocated:
            addr = bank * target.psum_bank_bytes
            changed[name] = attrs.evolve(loc, addr=addr, bank=bank, base=0, allocated=True)
    sets = with_locs(func.sets, changed)
    return module if sets is func.sets else with_sets(module, sets)


def too_many(nodes: list[Node], module: Module, target: Target) -> NccError:
    """NCC503: the tiles of the worst moment, each with its banks."""
    owned = owners(module.main.sets)
    insts = line(module.main)
    most, when = peak((n.lo, n.hi, n.size) for n in nodes)
    here = sorted((n for n in nodes if n.lo <= when <= n.hi), key=lambda n: (n.lo, n.name))
    rows = [(n.name, f"{n.size} bank{'s' * (n.size > 1)}", owned[n.name][0]) for n in here]
    said = (
        f"{len(here)} PSUM tiles that are live at {at_line(insts[when])} take {most} banks, and "
        f"{target} has {target.psum_banks}: {table(rows)}"
    )
    place = owned[here[0].name][0].origin.place(here[0].name, ME)
    return NccError("NCC503", said, place, "copy a finished sum to SBUF before the next one starts")


PASS = define(
    __name__,
    __doc__,
    apply,
    source="bir",
    needs=("live-ranges-are-measured", "psum-cells-are-four-bytes"),
    gives=("every-sum-has-banks", "live-sums-share-no-bank", "sums-are-aligned"),
    after={"widen-psum": "a bank is counted in the bytes that the machine uses"},
    real="PSUMAllocator",
    job="W0",
    sure="confirmed",
)
