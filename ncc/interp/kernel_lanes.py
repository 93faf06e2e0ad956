"""NKI, values by position: iota and affine_select (NKI reference 7.3)."""

from __future__ import annotations

import numpy as np

from ncc import numerics, numerics_rows
from ncc.errors import NccError
from ncc.interp.kernel_call import Call
from ncc.interp.kernel_move import converted
from ncc.interp.kernel_vector import alu_name
from ncc.numerics_rows import I64


def affine(c: Call, offset: int) -> I64:
    """The affine value at every element of the destination."""
    rows, places = c.count()
    dims = tuple((int(step), int(num)) for step, num in c.key["pattern"])
    found = numerics_rows.affine(offset, dims, rows, int(c.key["channel_multiplier"]))
    if found.shape[1] != places:
        said = f"the pattern counts {found.shape[1]} values for {places} elements a partition"
        raise NccError("NCC282", said, hint="the product of the pattern's counts is the free size")
    return found


def iota(c: Call) -> None:
    found = affine(c, int(c.number("offset")))
    c.store("dst", found.astype(np.uint32).view(np.int32))


def affine_select(c: Call) -> None:
    """on_true where the affine value compares so with 0, else on_false_value."""
    x = c.rows("on_true_tile")
    offset = int(c.number("offset", c.key["offset"]))
    where = affine(c, offset)
    keep = numerics.ALU[alu_name(c.key["cmp_op"])](where, np.zeros((), np.int64)) != 0
    dtype = c.dtype("dst")
    fill = np.asarray([c.number("on_false_value", c.key["on_false_value"])], np.float32)
    c.write("dst", np.where(keep, converted(x, dtype), numerics.cast(fill, dtype)))


MEANING = {"iota": iota, "affine_select": affine_select}
