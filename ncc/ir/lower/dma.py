"""Kernels' DMAs: between any two patterns, with or without a conversion, transposing, adding.

On chip a DMA's partitions are its first pair and follow each other; whatever walks them otherwise
becomes several DMAs. What one descriptor holds is cut later, by legalize-sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from math import prod
from typing import TYPE_CHECKING, Any

from ncc.errors import NccError
from ncc.ir.bir import Ap, Loc, LocSet
from ncc.ir.data import size_of
from ncc.ir.kernel import Access
from ncc.ir.kernel_walks import Part, Walk, aligned
from ncc.ir.walks import Joint, collapsed

if TYPE_CHECKING:
    from ncc.ir.lower.kernel import Lowering

UNIT = 1 << 40  # a step to the next partition, in a walk that has all dimensions in one list
TRIGGERS = {"sync": "SP", "scalar": "Activation", "gpsimd": "Pool", "vector": "DVE"}
ORDER = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}
MOST = 4  # free pairs that a pattern has beside the partition's
ROWS = 16  # what the transposing DMA takes at a time
WIDE = 32  # a tile that it writes begins at a multiple of so many bytes

Pairs = tuple[tuple[int, int], ...]


def flat(walk: Walk) -> Pairs:
    """All pairs of an operand in one list; steps to other partitions count in UNITs."""
    if walk.memory == "DRAM":
        return walk.free
    return ((UNIT * walk.jump, walk.rows), *walk.free)


def accessed(walk: Walk, pairs: Sequence[tuple[int, int]], more: int) -> Ap | None:
    """An operand with other pairs of `flat`, begun `more` further on; None if BIR has no such."""
    if walk.memory == "DRAM":
        kept = collapsed(pairs)
        if len(kept) > MOST + 1:
            return None
        return walk.ap(kept or [(1, 1)], more)
    down = [(step // UNIT, num) for step, num in pairs if _partitions(step) and num > 1]
    free = collapsed([pair for pair in pairs if not _partitions(pair[0])])
    reach = 1
    for step, num in reversed(down):
        if step != reach:
            return None
        reach *= num
    lead = [_partitions(step) for step, num in pairs if num > 1]
    if len(free) > MOST or lead != sorted(lead, reverse=True):
        return None
    jump = (more + UNIT // 2) // UNIT
    first, inside = walk.first + jump, more - jump * UNIT
    offset = first * walk.row + walk.at + inside
    return Ap(walk.loc, walk.dtype, ((walk.row, reach), *(free or ((1, 1),))), offset)


def _partitions(step: int) -> bool:
    return abs(step) >= UNIT // 2


def together(m: Lowering, dst: Walk, src: Walk) -> list[tuple[Ap, Ap]]:
    """Both sides of a DMA, in as many pieces as patterns ask for."""
    walks = flat(src), flat(dst)
    if prod(n for _, n in walks[0]) != prod(n for _, n in walks[1]):
        counts = [prod(n for _, n in walk) for walk in walks]
        raise m.refuse(f"moves {counts[0]} elements to {counts[1]}")
    found: list[tuple[Ap, Ap]] = []
    for joints, more in aligned(walks):
        found += _pieces((src, dst), Part(tuple(joints), more))
    return found


def _pieces(sides: tuple[Walk, Walk], part: Part) -> list[tuple[Ap, Ap]]:
    """A part as accesses; some joints become one DMA a step where BIR has no pattern for all."""
    for inner, outer in _choices(list(part.joints)):
        tries = [_made(side, n, inner, part.more[n]) for n, side in enumerate(sides)]
        if None in tries:
            continue
        found: list[tuple[Ap, Ap]] = []
        for at in product(*(range(num) for num, _ in outer)):
            more = [
                start + sum(i * steps[k] for i, (_, steps) in zip(at, outer, strict=True))
                for k, start in enumerate(part.more)
            ]
            pair = [_made(side, n, inner, more[n]) for n, side in enumerate(sides)]
            assert pair[0] is not None and pair[1] is not None
            found.append((pair[0], pair[1]))
        return found
    raise AssertionError("a single element always has a pattern")


def _choices(joints: list[Joint]):
    """Which joints stay, in an order that both sides can walk, and which are unrolled; the fewest
    pieces first."""
    from itertools import combinations

    ways: list[tuple[int, list[Joint], list[Joint]]] = []
    for count in range(len(joints) + 1):
        for chosen in combinations(range(len(joints)), count):
            outer = [joints[i] for i in chosen]
            inner = [j for i, j in enumerate(joints) if i not in chosen]
            ways.append((prod(num for num, _ in outer), inner, outer))
    ways.sort(key=lambda way: (way[0], len(way[2])))
    for _, inner, outer in ways:
        yield inner, outer
        # the order of a DMA's elements is nobody's business: partitions may come first
        for side in (0, 1):
            moved = sorted(inner, key=lambda j, k=side: not _partitions(j[1][k]))
            if moved != inner:
                yield moved, outer


def _made(side: Walk, n: int, joints: Sequence[Joint], more: int) -> Ap | None:
    return accessed(side, [(steps[n], num) for num, steps in joints], more)


def move(m: Lowering, dst: Walk, src: Walk, engine: str = "", **keys: Any) -> None:
    """The DMAs that move `src` to `dst`."""
    from ncc.ir.lower.pieces import clash

    ends = src.memory, dst.memory
    if "PSUM" in ends:
        raise m.refuse("reaches PSUM, where no DMA goes", "copy through SBUF")
    if src == dst:
        return
    if clash(src, dst):
        held = scratch(m, [num for _, num in flat(src)] or [1], src.dtype)
        move(m, held, src, engine)
        src, ends = held, (held.memory, dst.memory)
    opcode = {("DRAM", "SB"): "Load", ("SB", "DRAM"): "Save"}.get(ends, "DMACopy")
    if src.dtype != dst.dtype:
        opcode = "DMACopy"
    for a, b in together(m, dst, src):
        m.emit(opcode, engine or trigger(m), (b,), (a,), **keys)


def trigger(m: Lowering) -> str:
    return TRIGGERS.get(m.op.engine, "DMA")


def dma_copy(m: Lowering) -> None:
    from ncc.ir.lower.indirect import indirect, moves

    if any(isinstance(x, Access) and moves(m, x) for _, x in m.op.args):
        indirect(m)
        return
    try:
        src, dst = m.walk("src"), m.walk("dst")
    except NccError as error:
        if error.code == "NCC280" and m.key("oob_mode") == "skip":
            return  # a start that is known, and outside
        raise
    if rmw := m.key("rmw"):
        if rmw != "add":
            raise m.refuse(f"combines with {rmw}, and the DMA only adds")
        add_to(m, dst, src)
    else:
        move(m, dst, src)


def add_to(m: Lowering, dst: Walk, src: Walk) -> None:
    """dst += src, in float32, rounded once."""
    for a, b in together(m, dst, src):
        m.emit("DMACopy", trigger(m), (b,), (b, a), mode="CCE", cce_op="add")


def scratch(m: Lowering, shape: Sequence[int], dtype: str) -> Walk:
    """A new tensor in DRAM."""
    wish, n = f"{m.op.name}{m.suffix}.h", 0
    while f"{wish}{n}" in m.taken:
        n += 1
    name = f"{wish}{n}"
    m.taken.add(name)
    loc = Loc(name, "DRAM", (1, prod(shape) * size_of(dtype)))
    origin = m.op.origin.by("lower-kernel")
    m.temps.append(LocSet(name, dtype, tuple(shape), locs=(loc,), origin=origin))
    return Walk(name, dtype, "DRAM", 0, 0, _row_major(shape))


def _row_major(shape: Sequence[int]) -> Pairs:
    steps = [prod(shape[i + 1 :]) for i in range(len(shape))]
    return tuple(zip(steps, shape, strict=True))


def dma_compute(m: Lowering) -> None:
    """The sum of several sources, one after the other, in float32."""
    if m.key("reduce_op") != "add":
        raise m.refuse(f"combines with {m.key('reduce_op')}, and the DMA only adds")
    roles = sorted((r for r, _ in m.op.args if r.startswith("srcs")), key=lambda r: int(r[4:] or 0))
    from ncc.ir.lower.indirect import indirect_sum, moves

    if any(isinstance(x, Access) and moves(m, x) for _, x in m.op.args):
        indirect_sum(m, roles)
        return
    dst, sources = m.walk("dst"), [m.walk(role) for role in roles]
    if m.key("into"):
        if len(sources) == 1 or dst.dtype == "float32":
            for one in sources:
                add_to(m, dst, one)
            return
        sources.insert(0, dst)
    if len(sources) == 1:
        move(m, dst, sources[0])
        return
    meets = any(x.loc == dst.loc for x in sources)
    exact = dst.dtype == "float32" or (len(sources) == 2 and sources[0].dtype == dst.dtype)
    if exact and not meets:
        total = dst
    else:
        shape = [num for _, num in flat(dst)] or [1]
        total = scratch(m, shape, dst.dtype if exact else "float32")
    move(m, total, sources[0])
    for one in sources[1:]:
        add_to(m, total, one)
    if total is not dst:
        move(m, dst, total)


def dma_transpose(m: Lowering) -> None:
    """The source's dimensions in another order; the unit transposes 2-byte matrices from DRAM."""
    from ncc.ir.lower.indirect import gathered, moves

    src_arg = m.op.arg("src")
    if isinstance(src_arg, Access) and moves(m, src_arg):
        src = gathered(m, src_arg)
    else:
        src = m.walk("src")
    dst = m.walk("dst")
    pairs = flat(src)
    axes = tuple(m.key("axes")) or ORDER.get(len(pairs), ())
    if sorted(axes) != list(range(len(pairs))):
        raise m.refuse(f"permutes {len(pairs)} dimensions by {axes}")
    if src.memory != "DRAM":  # through DRAM: on chip the partitions of both sides come first
        held = scratch(m, [num for _, num in pairs], src.dtype)
        move(m, held, src)
        src, pairs = held, held.free
    unit = m.target.transposing_dma and size_of(src.dtype) == 2 and src.dtype == dst.dtype
    if unit and dst.memory == "SB" and axes == ORDER[len(pairs)] and _matrices(m, dst, src, pairs):
        return
    turned = Walk(src.loc, src.dtype, "DRAM", 0, src.at, tuple(pairs[i] for i in axes))
    move(m, dst, turned)


def _matrices(m: Lowering, dst: Walk, src: Walk, pairs: Pairs) -> bool:
    """As DMAs in the transposing mode, where both sides have the shape that it takes."""
    first, *stripes, last = pairs
    shape = (last[1], *(num for _, num in stripes), first[1])
    if dst.rows != last[1] or last[0] != 1 or first[1] < ROWS or last[1] > 128:
        return False
    counts = tuple(num for _, num in dst.free)
    if counts != shape[1:] or dst.free[-1][0] != 1 or m.begin(dst) % WIDE:
        return False
    a = [first, *((1, 1),) * (2 - len(stripes)), *stripes, last]
    b = [*((1, 1),) * (2 - len(stripes)), *dst.free]
    out = Ap(dst.loc, dst.dtype, ((dst.row, dst.rows), *b), dst.first * dst.row + dst.at)
    source = Ap(src.loc, src.dtype, tuple(a), src.at)
    m.emit("DMACopy", "DMA", (out,), (source,), mode="Transpose", transpose_op="XZYW")
    return True


LOWER = {"dma_copy": dma_copy, "dma_compute": dma_compute, "dma_transpose": dma_transpose}
