"""Calls that run on the DMA engines: copies, transposes and sums between HBM and SBUF."""

from __future__ import annotations

from typing import Any

from ncc.errors import listed
from ncc.ir.data import size_of
from ncc.ir.kernel import Rows
from ncc.nki import operators
from ncc.nki.isa import constants as c
from ncc.nki.isa.calls import call, engine_of, member
from ncc.nki.isa.operands import (
    DMA,
    SBUF,
    Tile,
    number,
    record,
    register,
    same_dtype,
    since,
    tile,
    whole,
)
from ncc.nki.trace import Instruction, current, invalid, wrong_shape
from ncc.nki.views import several

AXES = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}
MOST_SOURCES = 16


def rows(one: Tile) -> Rows | None:
    """The one start a row that the access has, if any."""
    return next((m for m in one.access.moves if isinstance(m, Rows)), None)


def _mode(where: str, dge_mode: Any, *tiles: Tile) -> c.dge_mode:
    """The way that descriptors are made, checked against the operands (NCC352)."""
    mode = member(c.dge_mode, dge_mode, where, "dge_mode")
    if mode is c.dge_mode.hwdge:
        since(where, 3, f"dge_mode.hwdge of {where}")
        first, *rest = tiles
        for one in rest:
            if one.dtype != first.dtype:
                raise invalid(
                    "NCC352",
                    f"{where} with dge_mode.hwdge converts nothing: {first.show()} is {first.name},"
                    f" {one.show()} is {one.name}",
                    "use one dtype, or leave dge_mode out",
                )
        for one in tiles:
            if rows(one) is not None:
                raise invalid(
                    "NCC352",
                    f"{where}: {one.show()} has a vector_offset, which dge_mode.swdge serves",
                    "leave dge_mode out, or pass nisa.dge_mode.swdge",
                )
    for one in tiles:
        if rows(one) is not None and one.memory == "sbuf":
            raise invalid(
                "NCC352",
                f"{where}: {one.show()} has a vector_offset and is in SBUF",
                "a vector_offset picks rows of a tensor in HBM",
            )
    return mode


def _priority(where: str, priority: Any) -> None:
    if priority is not None:
        whole(priority, where, "priority", 0, 3)


def _counts(where: str, to: Tile, *sources: Tile) -> None:
    for one in sources:
        if one.count != to.count:
            raise wrong_shape(
                "NCC334",
                f"{where} moves equally many elements: {to.show()} has {to.count},"
                f" {one.show()} has {one.count}",
                "slice both alike",
            )


@call
def dma_copy(
    dst: Any,
    src: Any,
    priority: int | None = None,
    oob_mode: Any = c.oob_mode.error,
    dge_mode: Any = c.dge_mode.unknown,
    engine: Any = c.engine.unknown,
    name: str | None = None,
    dst_rmw_op: Any = None,
    unique_indices: bool = True,
) -> Instruction:
    """dst = src, element by element in the order of the two views, between HBM and SBUF.

    `dst_rmw_op` and `unique_indices` are those of the first releases: dst += src."""
    where = "dma_copy"
    rmw = operators.optional(dst_rmw_op, where, "dst_rmw_op", frozenset({"add"}))
    if rmw:
        _unique(where, unique_indices)
    to = tile(dst, where, "dst", DMA)
    held = register(src)
    if held is not None:
        if to.count != 1:
            said = f"{where} of a register writes one element, {to.show()} has {to.count}"
            raise wrong_shape("NCC357", said, "slice one element")
        return record("register_store", {"dst": to, "src": held}, name=name)
    data = tile(src, where, "src", DMA)
    _counts(where, to, data)
    _priority(where, priority)
    mode = _mode(where, dge_mode, to, data)
    chosen = engine_of(engine, where, "sync", "scalar", "gpsimd", "dma")
    if chosen in ("sync", "scalar") and mode in (c.dge_mode.swdge, c.dge_mode.none):
        raise invalid(
            "NCC352",
            f"{where} with dge_mode.{mode.name} has no engine to choose, was given {chosen}",
            "leave engine out, or pass nisa.dge_mode.hwdge",
        )
    outside = member(c.oob_mode, oob_mode, where, "oob_mode").name
    keys = {"oob_mode": outside, "rmw": rmw}
    return record(where, {"dst": to, "src": data}, keys, engine=chosen, name=name)


def _unique(where: str, unique_indices: bool) -> None:
    if not unique_indices:
        raise invalid(
            "NCC352",
            f"{where} adds each picked row once: unique_indices=False has no such order",
            "make the indices unique, or add the rows one call after the other",
        )


@call
def dma_transpose(
    dst: Any,
    src: Any,
    axes: Any = None,
    priority: int | None = None,
    dge_mode: Any = c.dge_mode.unknown,
    oob_mode: Any = c.oob_mode.error,
    name: str | None = None,
) -> Instruction:
    """dst = src with its first and last dimension swapped, on the way."""
    where = "dma_transpose"
    if not current(where).target.transposing_dma:
        since(where, 3, hint="on trn1 load the tile and use nisa.nc_transpose")
    to, data = tile(dst, where, "dst", SBUF), tile(src, where, "src", DMA)
    same_dtype(where, to, data)
    rank = len(data.shape)
    if rank not in AXES:
        said = f"{where} takes src of 2 to 4 dimensions, {data.show()} has {rank}"
        raise wrong_shape("NCC353", said, "reshape src")
    order = AXES[rank]
    if axes is not None:
        given = tuple(whole(x, where, "axes", -rank, rank - 1) % rank for x in several(axes))
        if given != order:
            said = f"{where} of {rank} dimensions takes axes {order}, was given {given}"
            raise invalid("NCC353", said, "permute a view of src so that these axes fit")
    _turned(where, to, data, order)
    _priority(where, priority)
    if member(c.dge_mode, dge_mode, where, "dge_mode") is c.dge_mode.hwdge:
        _hardware(where, data)
    if rows(data) is not None:
        _indirect(where, data)
    outside = member(c.oob_mode, oob_mode, where, "oob_mode").name
    keys = {"axes": order, "oob_mode": outside}
    return record(where, {"dst": to, "src": data}, keys, name=name)


def _turned(where: str, to: Tile, data: Tile, order: tuple[int, ...]) -> None:
    """dst has the permuted shape of src; with another rank, its partitions and its count."""
    wanted = tuple(data.shape[k] for k in order)
    alike = to.shape == wanted
    if len(to.shape) != len(wanted):
        alike = to.parts == wanted[0] and to.count == data.count
    if not alike:
        raise wrong_shape(
            "NCC353",
            f"{where} turns {data.show()} into {wanted}, {to.show()} has another shape",
            f"allocate dst as {wanted}",
        )


def _hardware(where: str, data: Tile) -> None:
    since(where, 3, f"dge_mode.hwdge of {where}")
    first, last, rank = data.shape[0], data.shape[-1], len(data.shape)
    said = ""
    if size_of(data.dtype) != 2:
        said = f"moves elements of 2 bytes, {data.show()} is {data.name}"
    elif last > 128:
        said = f"takes a last dimension of at most 128, {data.show()} has {last}"
    elif rank == 2 and first != 16:
        said = f"takes 16 rows, {data.show()} has {first}"
    elif rank > 2 and (first not in (1, 2, 4, 8, 16) or first * data.shape[-2] % 16):
        said = (
            "takes a first dimension of 1, 2, 4, 8 or 16 whose product with the last but one is a"
            f" multiple of 16, {data.show()} has {first} and {data.shape[-2]}"
        )
    if said:
        hint = "leave dge_mode out: the compiler then picks a way that fits"
        raise invalid("NCC353", f"{where} with dge_mode.hwdge {said}", hint)


def _indirect(where: str, data: Tile) -> None:
    """The rules of a transpose whose rows are picked at run time."""
    picked = rows(data)
    if picked is None:
        return
    said = ""
    shape = picked.source.shape
    count, columns = shape[0], (shape[1] if len(shape) > 1 else 1)
    if size_of(data.dtype) != 2:
        said = f"moves elements of 2 bytes, {data.show()} is {data.name}"
    elif picked.source.dtype not in ("uint32", "int32"):
        said = f"takes indices of uint32, they are {picked.source.dtype}"
    elif count % 16 or not 16 <= count <= 128:
        said = f"takes 16 to 128 rows of indices, a multiple of 16, there are {count}"
    elif columns > 1 and count != 128:
        said = f"takes several columns of indices only in 128 rows, there are {count}"
    elif data.shape[0] % 16:
        said = f"picks a multiple of 16 rows, {data.show()} has {data.shape[0]}"
    if said:
        raise invalid("NCC353", f"{where} of picked rows {said}", "pad the indices")


@call
def dma_compute(
    dst: Any,
    srcs: Any,
    reduce_op: Any,
    scales: Any = None,
    unique_indices: bool = True,
    oob_mode: Any = c.oob_mode.error,
    name: str | None = None,
) -> Instruction:
    """dst = the sum of the sources; with picked rows (`vector_offset`) dst itself is one of two
    sources, and the other one is added to it."""
    where = "dma_compute"
    if hasattr(reduce_op, "__iter__") and not isinstance(
        reduce_op, str
    ):  # an earlier release: scales before reduce_op
        reduce_op, scales = scales, reduce_op
    op = operators.symbol(reduce_op, where, "reduce_op", frozenset({"add"}))
    to = tile(dst, where, "dst", DMA)
    given: list[Any] = list(several(srcs))
    if not 1 <= len(given) <= MOST_SOURCES:
        said = f"{where} takes 1 to {MOST_SOURCES} sources, was given {len(given)}"
        raise invalid("NCC351", said, "sum in several calls")
    sources = [tile(s, where, f"srcs[{k}]", DMA) for k, s in enumerate(given)]
    _counts(where, to, *sources)
    for scale in () if scales is None else several(scales):
        if number(scale, where, "scales") != 1:
            said = f"{where} adds sources as they are: a scale must be 1.0, was given {scale}"
            raise invalid("NCC352", said, "multiply the source with nisa.tensor_scalar first")
    _unique(where, unique_indices)
    into = any(rows(t) is not None for t in (to, *sources))
    if into:
        others = [s for s in sources if s.access != to.access]
        if len(sources) != 2 or len(others) != 1:
            names = listed([s.show() for s in sources])
            raise invalid(
                "NCC352",
                f"{where} with picked rows takes two sources, one of them dst {to.show()};"
                f" it was given {names}",
                "pass srcs=[other, dst]",
            )
        sources = others
    args = {"dst": to, **{f"srcs{k}": s for k, s in enumerate(sources)}}
    outside = member(c.oob_mode, oob_mode, where, "oob_mode").name
    keys = {"reduce_op": op, "into": into, "oob_mode": outside}
    return record(where, args, keys, name=name)
