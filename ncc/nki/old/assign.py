"""`t[...] = value` and `t[...] += value`: stores of the older API."""

from __future__ import annotations

from typing import Any

from ncc.ir.kernel import Access, KernelOp
from ncc.nki import isa
from ncc.nki.dtypes import float32
from ncc.nki.isa import written
from ncc.nki.memory import is_hbm
from ncc.nki.old.dynamic import gathered, moves_on_chip, scattered
from ncc.nki.old.index import Index
from ncc.nki.old.results import (
    cut,
    fresh,
    in_sbuf,
    is_tile,
    joined,
    not_both_psum,
    spread,
    tile,
)
from ncc.nki.old.tile import Tile
from ncc.nki.operators import BITVEC
from ncc.nki.regions import psum
from ncc.nki.trace import current, invalid, wrong_shape


def assign(target: Tile, value: Any) -> None:
    """What the tile `value` (or a number) holds, into elements that there are already.

    A product goes straight to PSUM and overwrites; a value of `nl.loop_reduce` is folded into what
    the target holds; of a masked result only what the mask left is stored.
    """
    if is_hbm(target):
        from ncc.nki.old.language import store

        store(target, value)
        return
    if not is_tile(value):
        value = number(value, target)
        if value is None:
            return
    value = tile(value, "an assignment", "its value")
    if is_hbm(value):
        isa.dma_copy(target, shaped(value, target))
        return
    if moves_on_chip(value):
        value = gathered(value)
    if moves_on_chip(target):
        held = shaped(value, target)
        if held.dtype != target.dtype or held.buffer == psum:
            held = fresh(target.shape, target.dtype)
            isa.tensor_copy(held, shaped(value, target))
        scattered(target, held)
        return
    if value.folds:
        in_place(value.folds, target, value)
        return
    if value.redo is not None and target.buffer == psum and target.dtype == value.dtype:
        into_psum(value, target, False)
        return
    if value.valid is None:
        isa.tensor_copy(target, shaped(value, target))
        return
    same = target.shape == value.shape
    for box in value.valid:
        part = box if same else _other_rank(box, value, target)
        if part is None:
            whole = spread(value, target.shape, "an assignment")
            copied(target.cut(box), cut(whole, box, whole.shape, "an assignment"))
        else:
            copied(target.cut(part), value.cut(box))


def copied(to: Tile, source: Tile) -> None:
    """A copy on chip; rows where no engine starts go by DMA."""
    if all(starts_well(t) for t in (to, source)) or to.buffer == psum:
        isa.tensor_copy(to, source)
    else:
        isa.dma_copy(to, in_sbuf(source))


def starts_well(x: Tile) -> bool:
    """Whether an engine can begin at the first partition of a view."""
    first, rows = x.offset // x.row, x.shape[0]
    return not first % (32 if rows <= 32 else 64 if rows <= 64 else 128)


def into_psum(value: Tile, target: Tile, accumulate: bool | None) -> None:
    """The product behind `value` once more, into the target."""
    if recorded_again(value, target, accumulate):
        return
    again = value.redo
    assert again is not None
    again(target if target.shape == value.shape else spread(target, value.shape, "+="), accumulate)


def recorded_again(value: Tile, target: Tile, accumulate: bool | None) -> bool:
    """The product that was just recorded, with another destination: where that lies in one bank
    and is written all or not at all, nothing else needs to be looked at."""
    body = current().bodies[-1]
    last = body[-1] if body else None
    if not isinstance(last, KernelOp) or last.op != "nc_matmul" or value.valid is not None:
        return False
    to = last.arg("dst")
    fits = (
        target.shape == value.shape
        and target.row * target.dtype.size <= current().target.psum_bank_bytes
    )
    if not isinstance(to, Access) or to.buffer != value.name or not fits or target.address:
        return False
    access = target.access("nc_matmul: dst", write=True)
    flag = False
    if accumulate is None:
        state = written.state(target.storage, access)
        if not written.uniform(state):
            return False
        flag = bool(state[0, 0])
    args = {role: access if role == "dst" else arg for role, arg in last.args}
    keys = {k: v for k, v in last.keys if k != "accumulate"}
    current().emit("nc_matmul", args, {**keys, "accumulate": flag})
    written.mark(target.storage, access)
    return True


def number(value: Any, target: Tile) -> Tile | None:
    """A number fills the target; an index expression becomes a tile."""
    if isinstance(value, Index):
        from ncc.nki.old.isa import iota

        made: Tile = iota(value, dtype=target.dtype)
        return made
    if hasattr(value, "item") and getattr(value, "size", 2) == 1:
        value = value.item()
    if isinstance(value, int | float):
        isa.memset(target, value if target.dtype.is_float else int(value))
        return None
    return tile(value, "an assignment", "its value")


def _other_rank(box: Any, value: Tile, target: Tile) -> Any:
    """The rectangle of `value` in the target's dimensions, when they differ by ones only."""
    if [n for n in value.shape[1:] if n != 1] != [n for n in target.shape[1:] if n != 1]:
        return None
    rest = [b for b, n in zip(box[1:], value.shape[1:], strict=True) if n != 1]
    found = [box[0]]
    for n in target.shape[1:]:
        found.append((0, 1) if n == 1 else rest.pop(0))
    return tuple(found)


def shaped(value: Tile, target: Tile) -> Tile:
    """A value with as many elements as the target, dimensions of size 1 repeated (NCC334)."""
    if value.shape == target.shape:
        return value
    if value.shape[0] == target.shape[0] and value.size == target.size:
        return value
    if is_hbm(value) and value.size == target.size:
        return value
    try:
        wide = joined("an assignment", value.shape, target.shape)
    except AssertionError:
        wide = ()
    if wide != target.shape:
        said = f"{target.name}[...] has the shape {target.shape}, the value {value.shape}"
        raise wrong_shape("NCC334", said, "give both one shape; dimensions of size 1 repeat")
    return spread(value, target.shape, "an assignment")


def in_place(name: str, target: Tile, value: Any) -> Tile:
    """`target op= value`: computed in float32, rounded to the target's dtype. A product is added
    in PSUM, where the first one overwrites."""
    target = tile(target, "an assignment", "its target")
    if is_hbm(target):
        from ncc.nki.old.language import elementwise, load, store

        store(target, elementwise.combined(name, load(target), value, target.dtype))
        return target
    if not is_tile(value):
        _with_number(name, target, value)
        return target
    value = tile(value, "an assignment", "its value")
    product = name == "add" and value.redo is not None and not value.turns
    if product and target.buffer == psum and target.dtype == float32:
        into_psum(value, target, None)
        return target
    other = in_sbuf(value) if value.buffer == psum and target.buffer == psum else value
    if is_hbm(value):
        other = fresh(value.shape, value.dtype)
        isa.dma_copy(other, value)
    boxes = value.valid
    if boxes is None:
        _combine(name, target, shaped(other, target))
        return target
    for box in boxes:
        part = box if target.shape == value.shape else _other_rank(box, value, target)
        if part is None:
            said = f"{target.name} of {target.shape} is combined with a masked {value.shape}"
            raise wrong_shape("NCC373", said, "give both one shape")
        _combine(name, target.cut(part), other.cut(box))
    return target


def _combine(name: str, target: Tile, value: Tile) -> None:
    one, two = not_both_psum(target, value)
    if name in BITVEC and two.dtype != target.dtype:
        two = fresh(value.shape, target.dtype)
        isa.tensor_copy(two, value)
    if name == "divide":
        from ncc.nki.old.language.elementwise import tiles_into

        tiles_into(name, target, one, two)
        return
    if name in ("power", "mod"):
        raise invalid("NCC341", f"{name} in place has no instruction", "write t[...] = ...")
    isa.tensor_tensor(target, one, two, name)


def _with_number(name: str, target: Tile, value: Any) -> None:
    if isinstance(value, Index):
        from ncc.nki.old.isa import iota

        _combine(name, target, iota(value, dtype=target.dtype))
        return
    if hasattr(value, "item") and getattr(value, "size", 2) == 1:
        value = value.item()
    if isinstance(value, int | float):
        isa.tensor_scalar(target, target, name, value)
        return
    tile(value, "an assignment", "its value")
