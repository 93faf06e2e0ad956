"""NKI, moving data: DMA, copies, shuffles and gathers (NKI reference 7.1)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ncc import numerics, numerics_groups
from ncc.errors import NccError
from ncc.interp.kernel_call import Call
from ncc.interp.kernel_memory import Array, Moved, fresh, kind_of
from ncc.ir.kernel import Access, Imm, Reg
from ncc.ir.kernel_selectors import ALU

Spot = Array | Moved
QUADRANT, STAYS = 32, 255


def _spot(c: Call, role: str) -> Spot | None:
    """An operand of a DMA; None where all of it is outside and the call skips that."""
    memory, registers = c.core.memory, c.core.registers
    access = c.access(role)
    if not access.moves:
        return memory.view(access, registers)
    return memory.moved(access, registers, c.key["oob_mode"] == "skip")


def _read(spot: Spot) -> Array:
    return spot.get() if isinstance(spot, Moved) else spot


def _mask(spot: Spot) -> Array | None:
    return spot.mask() if isinstance(spot, Moved) else None


def _put(to: Spot, values: Array, keep: Array | None) -> None:
    """Write where `keep` says so, in the order of the destination's walk."""
    if isinstance(to, Moved):
        to.put(values, keep)
    elif keep is None:
        to[...] = values if values.shape == to.shape else values.reshape(to.shape)
    else:
        np.copyto(to, values.reshape(to.shape), where=keep.reshape(to.shape))


def converted(x: Array, dtype: str, exact: bool = False) -> Array:
    """The bits for an equal type; through float32 for another (`exact`: integers stay integers)."""
    if x.dtype == kind_of(dtype):
        return x
    if exact and x.dtype.kind in "iub":
        return numerics.cast(x, dtype)
    return numerics.cast(numerics.widen(x), dtype)


def dma_copy(c: Call) -> None:
    """dst = src, element by element; rows that are outside stay when the call skips them."""
    source, to = _spot(c, "src"), _spot(c, "dst")
    if source is None or to is None:
        return
    values, dtype = _read(source), c.dtype("dst")
    if c.key["rmw"]:
        old = _read(to)
        values = _combined(c.key["rmw"], old, values.reshape(old.shape))
    _put(to, converted(values, dtype, c.key["oob_mode"] == "skip"), _mask(source))


def _combined(op: str, old: Array, new: Array) -> Array:
    name = ALU.get(op, op)
    if name in numerics.BITVEC:
        return numerics.bitvec(name, old, new)
    return numerics.alu(name, old, new)


ORDER = {2: (1, 0), 3: (2, 1, 0), 4: (3, 1, 2, 0)}


def dma_transpose(c: Call) -> None:
    source, to = _spot(c, "src"), _spot(c, "dst")
    if source is None or to is None:
        return
    x, keep = _read(source), _mask(source)
    axes = tuple(c.key["axes"]) or ORDER[x.ndim]
    turned = x.transpose(axes)
    _put(to, converted(turned, c.dtype("dst")), None if keep is None else keep.transpose(axes))


def dma_compute(c: Call) -> None:
    """The sum of the sources in float32; `into` adds what the destination held."""
    to = _spot(c, "dst")
    if to is None:
        return
    old = _read(to)
    total: Array | None = old if c.key["into"] else None
    keep: Array | None = None
    op = c.key["reduce_op"]
    for role in sorted((r for r in c.args if r.startswith("srcs")), key=_place):
        source = _spot(c, role)
        if source is None:
            return
        x = _read(source).reshape(old.shape)
        mask = _mask(source)
        if mask is not None:
            mask = mask.reshape(old.shape)
            keep = mask if keep is None else keep & mask
        total = x if total is None else _combined(op, total, x)
    if total is not None:
        _put(to, converted(total, c.dtype("dst")), keep)


def _place(role: str) -> int:
    return int(role.removeprefix("srcs") or 0)


def tensor_copy(c: Call) -> None:
    """Bits for an equal type, except through the float32 of the scalar engine."""
    x = c.read("src")
    through = c.op.engine == "scalar" and x.dtype.kind in "iu"
    c.write(
        "dst",
        numerics.cast(numerics.widen(x), c.dtype("dst"))
        if through
        else converted(x, c.dtype("dst")),
    )


def tensor_copy_predicated(c: Call) -> None:
    """dst takes the source where the predicate is not zero, and stays elsewhere."""
    old = c.rows("dst")
    choose = c.rows("predicate") != 0
    if c.key["reverse_pred"]:
        choose = ~choose
    dtype = c.dtype("dst")
    if isinstance(c.args["src"], Access):
        new = converted(c.rows("src"), dtype)
    else:
        new = numerics.cast(np.asarray([[c.number("src")]]), dtype)
    c.write("dst", np.where(choose, new, old).astype(old.dtype, copy=False))


def memset(c: Call) -> None:
    value = c.number("value", c.key["value"])
    one = np.asarray([value])
    kind = kind_of(c.dtype("dst"))
    if one.dtype.kind in "iu" and kind.kind in "iu" and kind.itemsize < 8:
        width = 8 * kind.itemsize  # the bits of an integer that fits either reading of the type
        if -(1 << (width - 1)) <= int(value) < 1 << width:
            c.write("dst", np.asarray([int(value) & ((1 << width) - 1)], np.uint64).astype(kind))
            return
    c.store("dst", one)


def nc_stream_shuffle(c: Call) -> None:
    """In each quadrant partition i of dst takes partition mask[i] of src; 255 leaves it."""
    x, out = c.rows("src"), c.rows("dst").copy()
    mask = tuple(int(m) for m in c.key["shuffle_mask"])
    nothing = fresh(c.access("src").dtype)
    for top in range(0, max(x.shape[0], out.shape[0]), QUADRANT):
        for i, lane in enumerate(mask):
            if lane == STAYS or top + i >= out.shape[0]:
                continue
            row = top + lane
            out[top + i] = x[row] if row < x.shape[0] else nothing
    c.write("dst", out)


def local_gather(c: Call) -> None:
    rows, places = c.count()
    found = _picked(
        c,
        lambda: numerics_groups.local_gather(
            c.rows("src_buffer"),
            c.rows("index"),
            int(c.key["num_elem_per_idx"]),
            int(c.key["num_valid_indices"]),
            places,
        ),
    )
    out = np.array(c.rows("dst"))
    out[:, : found.shape[1]] = found[:rows]
    c.write("dst", out)


def nc_n_gather(c: Call) -> None:
    """dst[p, k] = data[p].flatten()[indices[p, k]]."""
    x, index = c.rows("data"), c.rows("indices").astype(np.int64)
    bad = (index < 0) | (index >= x.shape[1])
    if bad.any():
        row, at = (int(i) for i in np.argwhere(bad)[0])
        said = (
            f"index {int(index[row, at])} in partition {row} is outside the {x.shape[1]} "
            "elements that data has a partition"
        )
        raise NccError("NCC280", said, hint="clamp the indices")
    c.write("dst", converted(np.take_along_axis(x, index, axis=1), c.dtype("dst")))


def _picked(c: Call, gather: Any) -> Array:
    try:
        return gather()
    except IndexError as error:
        said = f"{c.op.op} reads {error}"
        raise NccError("NCC280", said, hint="clamp the indices") from None


def device_print(c: Call) -> None:
    found = c.args["tensor"]
    if isinstance(found, (Imm, Reg)):
        text = str(c.number("tensor"))
    else:
        x = c.read("tensor")
        shown = x if x.dtype.kind in "iu" else x.astype(np.float32)
        text = np.array2string(shown, threshold=1000, separator=", ")
    prefix = str(c.key["prefix"])
    c.core.say(f"{prefix} {text}" if prefix else text)


MEANING = {
    "dma_copy": dma_copy,
    "dma_transpose": dma_transpose,
    "dma_compute": dma_compute,
    "tensor_copy": tensor_copy,
    "tensor_copy_predicated": tensor_copy_predicated,
    "memset": memset,
    "nc_stream_shuffle": nc_stream_shuffle,
    "local_gather": local_gather,
    "nc_n_gather": nc_n_gather,
    "device_print": device_print,
}
