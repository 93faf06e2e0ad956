"""`nc_matmul` with `accumulate=None`: one product, or one a part that is written or is not."""

from __future__ import annotations

from typing import Any

from ncc.ir.kernel import Access
from ncc.nki.isa import written
from ncc.nki.isa.operands import Tile, record
from ncc.nki.trace import Instruction, current, invalid


def accumulated(
    to: Tile, still: Tile, moved: Tile, keys: dict[str, Any], name: str | None
) -> Instruction:
    """One product where all elements of dst are alike, several where they are not."""
    where = "nc_matmul"
    state = written.state(to.storage, to.access)
    if written.uniform(state):
        first = bool(state[0, 0])
        args = {"dst": to, "stationary": still, "moving": moved}
        return record(where, args, {**keys, "accumulate": first}, name=name)
    if to.access.moves or moved.access.moves or still.access.moves or keys["perf_mode"] != "none":
        raise _mixed(where, to)
    made: Instruction | None = None
    if (state == state[0]).all():
        for a, b, old in written.runs(state[0]):
            for low, high in written.cuts(a, b, to.access, moved.access):
                part = written.columns(to.access, low, high)
                arriving = written.columns(moved.access, low, high)
                made = _product(to, part, still, still.access, moved, arriving, keys, old, name)
    elif (state == state[:, :1]).all() and written.row_length(still.access) == still.free:
        for a, b, old in written.runs(state[:, 0]):
            if a % 32 or (b - a > 32 and a % 64) or (b - a > 64 and a):
                raise _mixed(where, to)
            part = written.partitions(to.access, a, b)
            kept = written.columns(still.access, a, b)
            made = _product(to, part, still, kept, moved, moved.access, keys, old, name)
    if made is None:
        raise _mixed(where, to)
    return made


def _product(
    to: Tile,
    part: Access,
    still: Tile,
    kept: Access,
    moved: Tile,
    arriving: Access,
    keys: dict[str, Any],
    old: bool,
    name: str | None,
) -> Instruction:
    args = {"dst": part, "stationary": kept, "moving": arriving}
    made = current("nc_matmul").emit("nc_matmul", args, {**keys, "accumulate": old}, name=name)
    to.storage.touched = True
    written.mark(to.storage, part)
    return made


def _mixed(where: str, to: Tile) -> Exception:
    return invalid(
        "NCC350",
        f"{where} cannot settle accumulate=None: parts of {to.show()} were written since it was"
        " allocated and parts were not, in a pattern that no cut separates",
        "pass accumulate=True or False, or allocate a fresh PSUM tile",
    )
