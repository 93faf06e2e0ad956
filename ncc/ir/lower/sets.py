"""A kernel's buffers as location sets: where the kernel placed them, and where its PSUM tiles fit.

A PSUM cell has four bytes, so a tile of 16 or 8 bits takes twice or four times what the kernel
counted. Its address stays as long as the wide tile ends inside its bank and meets no tile that the
kernel kept apart from it; else it and those that share its bytes are placed anew.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod

from ncc.ir.bir import Loc, LocSet
from ncc.ir.data import size_of
from ncc.ir.kernel import Buffer, Kernel
from ncc.ir.lower.tables import KINDS, MEMORY, cell
from ncc.target import BANK

Place = tuple[int, int, int, int]  # partitions and bytes: first, end, low, high


def sets_of(kernel: Kernel, used: Collection[str], moved: Collection[str]) -> list[LocSet]:
    """The sets of the buffers that are used, and of parameters and results in any case."""
    found: list[LocSet] = []
    for buffer in kernel.buffers:
        if buffer.name in used or buffer.kind in ("input", "inout", "output"):
            found.append(set_of(buffer, buffer.name in moved))
    return found


def set_of(buffer: Buffer, moved: bool) -> LocSet:
    memory, shape = MEMORY[buffer.memory], buffer.shape or (1,)
    dtype = cell(buffer.dtype) if memory == "PSUM" else buffer.dtype
    size = size_of(dtype)
    if memory == "DRAM":
        loc = Loc(buffer.name, memory, (1, prod(shape) * size))
    elif buffer.address is None or moved:
        loc = Loc(buffer.name, memory, (shape[0], prod(shape[1:]) * size))
    else:
        base, addr = buffer.address
        loc = Loc(
            buffer.name,
            memory,
            (shape[0], prod(shape[1:]) * size),
            addr,
            base,
            addr // BANK if memory == "PSUM" else 0,
            allocated=True,
            pinned=True,
        )
    kind = KINDS[buffer.kind] if memory == "DRAM" else "Internal"
    return LocSet(
        buffer.name,
        dtype,
        shape,
        kind,
        memory,
        locs=(loc,),
        data=buffer.data if memory == "DRAM" else None,
        origin=buffer.origin.by("lower-kernel"),
    )


def bank_safe(buffers: Sequence[Buffer]) -> frozenset[str]:
    """The PSUM tiles with an address that cannot keep it when their elements take four bytes."""
    placed = [x for x in buffers if x.memory == "psum" and x.address is not None]
    if all(size_of(x.dtype) == 4 for x in placed):
        return frozenset()
    asked = [_place(x, size_of(x.dtype)) for x in placed]
    wide = [_place(x, 4) for x in placed]
    shared = _sharing(asked)
    gone: set[int] = set()
    for n, one in enumerate(placed):
        if size_of(one.dtype) < 4 and _ends(wide[n]) > max(_ends(asked[n]), 1):
            gone.add(n)
    for n in range(len(placed)):
        for k in range(n):
            if _meet(wide[n], wide[k]) and not _meet(asked[n], asked[k]):
                gone |= {i for i in (n, k) if size_of(placed[i].dtype) < 4}
    groups = {shared[n] for n in gone}
    return frozenset(x.name for n, x in enumerate(placed) if shared[n] in groups)


def sharing(buffer: Buffer, others: Mapping[str, Buffer]) -> set[str]:
    """The tiles that the kernel placed on bytes of this one."""
    if buffer.address is None:
        return set()
    mine = _place(buffer, size_of(buffer.dtype))
    return {
        x.name
        for x in others.values()
        if x is not buffer
        and x.address is not None
        and x.memory == buffer.memory
        and _meet(mine, _place(x, size_of(x.dtype)))
    }


def _place(buffer: Buffer, size: int) -> Place:
    base, addr = buffer.address or (0, 0)
    return base, base + buffer.shape[0], addr, addr + prod(buffer.shape[1:]) * size


def _ends(place: Place) -> int:
    """How many banks a place touches."""
    return (place[3] - 1) // BANK - place[2] // BANK + 1


def _meet(a: Place, b: Place) -> bool:
    return a[0] < b[1] and b[0] < a[1] and a[2] < b[3] and b[2] < a[3]


def _sharing(places: Sequence[Place]) -> list[int]:
    """Of each place the number of its group: those that share bytes, directly or through others."""
    group = list(range(len(places)))

    def root(n: int) -> int:
        while group[n] != n:
            n = group[n]
        return n

    for n in range(len(places)):
        for k in range(n):
            if _meet(places[n], places[k]):
                group[root(n)] = root(k)
    return [root(n) for n in range(len(places))]
