"""Kernels' matmuls: products into one bank at a time, and transposes by the identity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from ncc.ir.data import FLOATS, size_of
from ncc.ir.kernel_walks import Walk
from ncc.ir.walks import collapsed

if TYPE_CHECKING:
    from ncc.ir.lower.kernel import Lowering


def nc_matmul(m: Lowering) -> None:
    stationary, moving, dst = m.walk("stationary"), m.walk("moving"), m.walk("dst")
    turned = bool(m.key("is_transpose")) and moving.rows == moving.count
    if turned and m.target.pe_copies_transpose:
        spread(m, dst, stationary, moving)
        return
    adds = bool(m.key("accumulate"))
    if m.key("perf_mode") == "double_row":
        # rows that are fed in pairs: two products into one sum
        for n, (w, x) in enumerate(zip(_halves(m, stationary), _halves(m, moving), strict=True)):
            product(m, dst, w, x, adds or n > 0)
        return
    product(m, dst, stationary, moving, adds)


def _halves(m: Lowering, walk: Walk) -> tuple[Walk, Walk]:
    (step, num), *rest = walk.free
    if num != 2 or not rest:
        raise m.refuse(f"in double_row takes [K, 2, …] and was given {walk.free}")
    return walk.with_free(tuple(rest)), walk.with_free(tuple(rest), step)


def product(m: Lowering, dst: Walk, stationary: Walk, moving: Walk, adds: bool) -> None:
    """dst (+)= stationaryᵀ · moving, in pieces of columns that one bank holds."""
    stationary, moving = operands(m, stationary, moving)
    keys: dict[str, Any] = {"accumulate": adds}
    if m.key("tile_position") and m.key("tile_size"):
        keys["tile_position"] = tuple(m.key("tile_position"))
        keys["tile_size"] = tuple(m.key("tile_size"))
    if m.key("is_stationary_onezero"):
        keys["is_weight_onezero"] = True
    if m.key("is_moving_onezero"):
        keys["is_fmap_onezero"] = True
    weights = stationary.ap()
    for x, out in m.accesses((moving, dst), 3, m.target.moving_free):
        m.emit("Matmult", "PE", (out,), (x, weights), **keys)


def operands(m: Lowering, stationary: Walk, moving: Walk) -> tuple[Walk, Walk]:
    """Both where PE reads them: in SBUF, on the same rows of the array, in at most three pairs."""
    if stationary.memory != "SB" or len(collapsed(stationary.free)) > 3 or _far(stationary):
        stationary = m.compact(stationary)
    if moving.memory != "SB":
        moving = m.compact(moving)
    if m.stands(stationary) != m.stands(moving):
        rows = m.stands(stationary) + moving.rows
        held = m.tile(rows, (moving.count,), moving.dtype)
        held = held.partition(m.stands(stationary), moving.rows)
        m.copy(held, moving)
        moving = held
    return stationary, moving


def _far(walk: Walk) -> bool:
    return any(abs(step) > 0x7FFF for step, _ in collapsed(walk.free))


def transposed(m: Lowering, dst: Walk, data: Walk) -> None:
    """dst = dataᵀ through the array, exactly."""
    rows = m.stands(data)
    dtype = data.dtype
    if dtype not in FLOATS and size_of(dtype) == 4:
        dtype = "float32"  # four bytes are copied as they are
    elif dtype not in FLOATS:
        held = m.temp(data, "int32")
        m.copy(held, data)
        data, dtype = held, "float32"
    identity = m.identity(dtype)
    moving = identity.partition(rows, data.rows).with_free(((1, data.rows),), rows)
    spread(m, dst, attrs.evolve(data, dtype=dtype), moving)


def spread(m: Lowering, dst: Walk, data: Walk, moving: Walk) -> None:
    """The transposed bits; 8-bit elements may come out as 16-bit ones with an empty upper byte."""
    if size_of(data.dtype) == 1 and dst.count == 2 * moving.count:
        free = collapsed(dst.free)
        step, num = free[-1]
        if num % 2:
            raise m.refuse("spreads 8-bit elements over an odd number of places")
        even = (*free[:-1], (step * 2, num // 2))
        for ap in m.accesses((dst.with_free(tuple(even), step),), 4):
            m.emit("Memset", "DVE", ap, constant=0)
        dst = dst.with_free(tuple(even))
    data, moving = operands(m, data, moving)
    if data.dtype not in FLOATS and size_of(data.dtype) == 4:
        data = attrs.evolve(data, dtype="float32")  # four bytes are copied as they are
    if moving.dtype not in FLOATS:
        moving = m.identity(data.dtype).partition(m.stands(data), data.rows)
        moving = moving.with_free(((1, data.rows),), m.stands(data))
    if dst.dtype not in FLOATS:
        dst = attrs.evolve(dst, dtype="float32")
    if m.stands(dst):  # a transpose takes all columns of the array: it lands on partition 0
        held = m.bank(dst)
        spread(m, held, data, moving)
        m.copy(dst, held)
        return
    weights = data.ap()
    for x, out in m.accesses((moving, dst), 3, m.target.moving_free):
        m.emit("Matmult", "PE", (out,), (x, weights), is_transpose=True)


LOWER = {"nc_matmul": nc_matmul}
