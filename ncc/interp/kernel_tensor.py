"""NKI, the tensor engine: products and transposes (NKI reference 7.2)."""

from __future__ import annotations

import numpy as np

from ncc import numerics
from ncc.interp.kernel_call import Call
from ncc.interp.kernel_memory import Array
from ncc.ir.kernel_axes import adds_in


def nc_matmul(c: Call) -> None:
    """dst (+)= stationaryᵀ · moving, the contraction over partitions (and over a size-2 dimension
    of rows that are fed in pairs)."""
    stationary, moving = c.read("stationary"), c.read("moving")
    down = stationary.shape[0]
    if c.key["perf_mode"] == "double_row":
        down *= 2
    w, x = stationary.reshape(down, -1), moving.reshape(down, -1)
    if c.key["is_transpose"] and c.core.target.pe_copies_transpose:
        copied = _moved(w, x)
        if copied is not None:
            _spread(c, copied)
            return
    shape = w.shape[1], x.shape[1]
    parts = numerics.matmul_passes(w, x)
    total = parts[0]
    if adds_in(c.key["accumulate"], c.core.memory.turns):
        total = numerics.add(numerics.widen(c.read("dst")).reshape(shape), total)
    for part in parts[1:]:
        total = numerics.add(total, part)
    c.store("dst", total)


def _moved(w: Array, x: Array) -> Array | None:
    """The bits that a product with an identity moves: the transposed weights."""
    if w.shape[0] != x.shape[0]:
        return None
    if x.shape[0] == x.shape[1] and bool((numerics.widen(x) == np.eye(len(x))).all()):
        return w.T
    return None


def _spread(c: Call, turned: Array) -> None:
    """Write transposed bits; 8-bit elements come out as 16-bit ones with an empty upper byte."""
    size = c.read("dst").size
    if turned.dtype.itemsize == 1 and size == 2 * turned.size:
        pairs = np.zeros((*turned.shape, 2), turned.dtype)
        pairs[..., 0] = turned
        turned = pairs.reshape(turned.shape[0], -1)
    c.write(
        "dst",
        turned
        if turned.dtype == c.read("dst").dtype
        else numerics.cast(numerics.widen(turned), c.dtype("dst")),
    )


def nc_transpose(c: Call) -> None:
    _spread(c, c.rows("data").T)


MEANING = {"nc_matmul": nc_matmul, "nc_transpose": nc_transpose}
