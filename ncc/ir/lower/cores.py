"""Where the cores of a kernel meet: barriers, and transfers through HBM that both cores know.

A barrier reads and writes all that the cores share. So to every pass that follows, what stands
before it and what stands behind it touch the same bytes as the barrier does, and keep their order.
"""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ncc.errors import NccError
from ncc.ir.bir import SHARED, Ap, Loc, LocSet
from ncc.ir.data import size_of
from ncc.ir.kernel_walks import Walk
from ncc.ir.lower.dma import flat, move

if TYPE_CHECKING:
    from ncc.ir.lower.kernel import Lowering


def core_barrier(m: Lowering) -> None:
    """Wait for the others. One core alone waits for nobody."""
    cores = m.key("cores")
    named = {cores} if isinstance(cores, int) else set(cores)
    if named <= {m.kernel.core} or m.target.level < 30:
        return
    if m.shared is None:
        m.shared = shared(m)
    meet(m, 0, m.shared)


def meet(m: Lowering, tag: int, touched: tuple[Ap, ...]) -> None:
    m.emit("CoreBarrier", "Pool", touched, touched, id=tag, cores=(0, 1))


def shared(m: Lowering) -> tuple[Ap, ...]:
    """All of each tensor that both cores know and some core may write."""
    return tuple(
        whole(x.name, x.dtype, x.shape)
        for x in m.kernel.buffers
        if x.kind in ("inout", "output") or (x.kind == "internal" and x.memory == "shared_hbm")
    )


def whole(loc: str, dtype: str, shape: tuple[int, ...]) -> Ap:
    """All elements of a tensor in DRAM."""
    count = prod(shape)
    return Ap(loc, dtype, ((count, 1), (1, count)))


def sendrecv(m: Lowering) -> None:
    """Exchange a tile with another core: each writes its own into HBM, they meet, and each reads
    the other's. `pipe_id` tells the meetings of several transfers apart."""
    dst, src = m.walk("dst"), m.walk("src")
    me, to, by = m.kernel.core, m.key("send_to_rank"), m.key("recv_from_rank")
    if to == by == me:
        move(m, dst, src)
        return
    if to != by or {me, to} != {0, 1}:
        said = f"sendrecv of core {me} sends to {to} and receives from {by}"
        hint = "two cores exchange: each sends to the other and receives from it"
        raise NccError("NCC396", said, m.op.origin.place(m.op.name), hint)
    shape = tuple(num for _, num in flat(src)) or (1,)
    count, dtype = prod(shape), src.dtype
    name = f"exchange.{m.exchanges}"
    m.exchanges += 1
    while name in m.taken:
        name += "_"
    m.taken.add(name)
    loc = Loc(name, "DRAM", (1, 2 * count * size_of(dtype)))
    origin = m.op.origin.by("lower-kernel")
    m.temps.append(LocSet(name, dtype, (2, *shape), SHARED, locs=(loc,), origin=origin))

    def of(core: int) -> Walk:
        return Walk(name, dtype, "DRAM", 0, core * count, ((1, count),))

    move(m, of(me), src)
    both = whole(name, dtype, (2, *shape))
    meet(m, 1 + m.key("pipe_id"), (both,))
    move(m, dst, of(by))


LOWER = {"core_barrier": core_barrier, "sendrecv": sendrecv}
