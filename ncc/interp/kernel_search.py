"""NKI, whole rows: statistics, the eight largest, searches, segment bounds (NKI reference 7.3)."""

from __future__ import annotations

import numpy as np

from ncc import numerics, numerics_groups, numerics_rows
from ncc.interp.kernel_call import Call
from ncc.interp.kernel_memory import kind_of


def bn_stats(c: Call) -> None:
    c.store("dst", numerics_rows.bn_stats(numerics.widen(c.rows("data"))))


def bn_aggr(c: Call) -> None:
    c.store("dst", numerics_rows.bn_merge(numerics.widen(c.rows("data"))))


def max8(c: Call) -> None:
    c.store("dst", numerics_rows.largest8(c.rows("src")))


def nc_find_index8(c: Call) -> None:
    """Where each value stands first; equal ones take successive places; all ones where nowhere."""
    found = numerics_rows.positions8(c.rows("data"), c.rows("vals"))
    c.write("dst", numerics_rows.indices8(found, kind_of(c.dtype("dst"))))


def nc_match_replace8(c: Call) -> None:
    """The first occurrence of each value replaced; values are served from slot 7 down."""
    x = c.rows("data")
    found = numerics_rows.positions8(x, c.rows("vals"), downward=True)
    by = float(c.number("imm", c.key["imm"]))
    c.store("dst", numerics_rows.replaced8(x, found, by))
    if c.has("dst_idx"):
        c.write("dst_idx", numerics_rows.indices8(found, kind_of(c.dtype("dst_idx"))))


def sequence_bounds(c: Call) -> None:
    c.store("dst", numerics_groups.sequence_bounds(c.read("segment_ids")))


def nonzero_with_count(c: Call) -> None:
    """Places of what is not zero, and how many; the first partition of every core only."""
    x, out = c.rows("src"), np.array(c.rows("dst"))
    offset, padding = int(c.key["index_offset"]), int(c.key["padding_val"])
    for row in range(0, x.shape[0], numerics_groups.CORE):
        found = numerics_groups.nonzero_with_count(x[row], offset, padding)
        out[row] = found.astype(out.dtype)
    c.write("dst", out)


def topk(c: Call) -> None:
    """The k largest of each core's snake, ascending, laid down as a snake; k is the free size of
    the values. A destination of fewer partitions than a core has takes them one after the other.
    """
    x, n = c.rows("src"), int(c.key["n"])
    values, index = np.array(c.rows("val_dst")), np.array(c.rows("idx_dst"))
    if values.shape[0] < numerics_groups.CORE:
        best, at = numerics_groups.topk(x[: numerics_groups.CORE], n, values.size)
        c.store("val_dst", best.reshape(values.shape))
        c.write("idx_dst", at.astype(index.dtype).reshape(index.shape))
        return
    k = values.shape[1]
    for top in range(0, x.shape[0], numerics_groups.CORE):
        core = slice(top, top + numerics_groups.CORE)
        best, at = numerics_groups.topk(x[core], n, k)
        best = numerics.cast(best, c.dtype("val_dst"))
        values[core] = numerics_groups.snake(best, k, values[core])
        index[core] = numerics_groups.snake(at.astype(index.dtype), k, index[core])
    c.write("val_dst", values)
    c.write("idx_dst", index)


MEANING = {
    "bn_stats": bn_stats,
    "bn_aggr": bn_aggr,
    "max8": max8,
    "nc_find_index8": nc_find_index8,
    "nc_match_replace8": nc_match_replace8,
    "sequence_bounds": sequence_bounds,
    "nonzero_with_count": nonzero_with_count,
    "topk": topk,
}
