"""Kernels' exact arithmetic on 32-bit integers, which Pool does in one type: int32 or uint32.

A sum or a product has the same low 32 bits whichever type its operands are read as. A comparison
and an extreme of an int32 and a uint32 have not, and are said with several of one type: a negative
int32 is below every uint32, and what is not negative is the same number in both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from ncc.ir.kernel_walks import Walk

if TYPE_CHECKING:
    from ncc.ir.lower.kernel import Lowering

SUMS = ("add", "subtract", "mult")
SWAPPED = {"is_lt": "is_gt", "is_gt": "is_lt", "is_le": "is_ge", "is_ge": "is_le"}
BELOW = ("is_lt", "is_le", "not_equal")  # true of a negative int32 and any uint32


def words(m: Lowering, op: str, dst: Walk, a: Walk, b: Walk) -> None:
    """dst = a op b in 32-bit integers."""
    if a.dtype == b.dtype or op in SUMS:
        kind = dst.dtype if op in SUMS else a.dtype
        unit(m, op, typed(dst, kind), typed(a, kind), typed(b, kind))
        return
    if a.dtype == "uint32":
        a, b, op = b, a, SWAPPED.get(op, op)
    if op == "max":  # of what is not negative
        held = m.temp(dst, "int32")
        unit(m, "max", held, a, number(m, a, 0))
        unit(m, "max", typed(dst, "uint32"), typed(held, "uint32"), b)
    elif op == "min":  # with the greatest int32 first
        held = m.temp(dst, "uint32")
        unit(m, "min", held, b, number(m, b, 0x7FFFFFFF))
        unit(m, "min", typed(dst, "int32"), a, typed(held, "int32"))
    else:
        low, same = m.temp(dst, "int32"), m.temp(dst, "uint32")
        unit(m, "is_lt", low, a, number(m, a, 0))
        unit(m, op, same, typed(a, "uint32"), b)
        last = "max" if op in BELOW else "is_gt"
        unit(m, last, typed(dst, "int32"), typed(same, "int32"), low)


def typed(walk: Walk, dtype: str) -> Walk:
    return attrs.evolve(walk, dtype=dtype)


def number(m: Lowering, like: Walk, value: int) -> Walk:
    """One number for every element of a walk, where the walk stands."""
    rows = m.stands(like) + like.rows
    held = m.tile(rows, (1,), like.dtype).partition(m.stands(like), like.rows)
    m.memset(held, value)
    return held.with_free(((0, like.count),))


def unit(m: Lowering, op: str, dst: Walk, a: Walk, b: Walk) -> None:
    """One record of Pool's integer unit."""
    m.elementwise("TensorTensor", "Pool", dst, (a, b), op=op, integer=True)
