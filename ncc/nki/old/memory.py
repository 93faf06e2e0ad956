"""Allocation in the older API: block dimensions, and the directives of `nki.compiler`."""

from __future__ import annotations

import math
from typing import Any

from ncc.nki import memory
from ncc.nki.dtypes import dtype_of
from ncc.nki.old.blocks import Blocks, ParDim
from ncc.nki.old.loops import running, scope
from ncc.nki.old.places import Directive
from ncc.nki.old.results import function
from ncc.nki.old.tile import Tile, adopted
from ncc.nki.regions import MemoryRegion, hbm, psum, sbuf
from ncc.nki.trace import current, wrong_shape, wrong_type
from ncc.nki.views import several, whole_number


def region_of(buffer: Any) -> MemoryRegion:
    return buffer.region if isinstance(buffer, Directive) else buffer


def _allocated(shape: Any, dtype: Any, buffer: Any, name: Any, fill: Any = None) -> Any:
    """The tensor: blocks, where dimensions come before the partitions."""
    trace = current("nl.ndarray")
    buffer = sbuf if buffer is None else buffer
    if not isinstance(buffer, Directive) and callable(buffer):
        buffer = buffer()  # `buffer=nki.compiler.sbuf.auto_alloc`
    if isinstance(buffer, str):
        word = buffer.rsplit(".", 1)[-1]
        buffer = memory.REGIONS.get("hbm" if word == "private_hbm" else word, buffer)
    sizes = several(shape)
    kind, region = dtype_of(dtype), region_of(buffer)
    parts = [k for k, n in enumerate(sizes) if isinstance(n, ParDim)]
    if len(parts) > 1:
        said = f"the shape {tuple(sizes)} names its partitions twice"
        raise wrong_shape("NCC374", said, "one nl.par_dim in a shape")
    lead = parts[0] if parts else 0
    if region not in (sbuf, psum):
        lead = 0
    numbers = tuple(whole_number(n, "a size") for n in sizes)
    if len(numbers) - lead == 1 and region in (sbuf, psum):
        numbers = (*numbers, 1)
    blocks, rest = numbers[:lead], numbers[lead:]
    loop = scope() if region in (sbuf, psum) else None
    if isinstance(buffer, Directive):  # the older compiler saw each loop's body once
        buffer = trace.places.setdefault(running(trace).here(), buffer)

    def make(block: tuple[int, ...]) -> Tile:
        address = buffer.address(block, rest, kind) if isinstance(buffer, Directive) else None
        label = "_".join([str(name or ""), *map(str, block)]) if name or block else ""
        label = label if name else ""
        made = Tile.whole(memory.allocate(rest, kind, region, label, address).storage, kind)
        made.storage.loop = loop
        if fill is not None:
            filled_with(made, fill)
        return made

    if not blocks:
        return make(())
    if rest[0] > 128 or len(rest) < 2:
        make((0,) * lead)  # which says what is wrong
    found = Blocks(blocks, rest, kind, region, str(name or ""), make)
    if fill is not None and not trace.bodies[1:]:
        list(found.all())
    return found


def filled_with(made: Tile, value: float) -> None:
    """The initial value; zeros in PSUM are left to the first product."""
    if made.buffer == psum and not value:
        made.storage.zero = True
        return
    memory.fill(made, value)


def _checked(value: Any, dtype: Any) -> Any:
    value = value.item() if hasattr(value, "item") else value
    if not isinstance(value, int | float):
        said = f"a tensor is filled with a number, not {value!r:.60}"
        raise wrong_type("NCC325", said, "assign the tile to nl.ndarray(...)[...]")
    if dtype_of(dtype).is_float:
        return value
    if not (math.isfinite(value) and value == int(value)):
        said = f"a tensor of {dtype_of(dtype)} cannot hold {value}"
        raise wrong_type("NCC325", said, "a whole number, or a float dtype")
    return int(value)


@function("ndarray")
def ndarray(shape: Any, dtype: Any, *, buffer: Any = None, name: Any = "", **ignored: Any) -> Any:
    """A new tensor; dimensions before `nl.par_dim` are blocks."""
    return _allocated(shape, dtype, buffer, name)


@function("full")
def full(
    shape: Any, fill_value: Any, dtype: Any, *, buffer: Any = None, name: Any = "", **ignored: Any
) -> Any:
    """A new tensor that holds one value."""
    return _allocated(shape, dtype, buffer, name, _checked(fill_value, dtype))


@function("zeros")
def zeros(shape: Any, dtype: Any, *, buffer: Any = None, name: Any = "", **ignored: Any) -> Any:
    return _allocated(shape, dtype, buffer, name, 0)


@function("ones")
def ones(shape: Any, dtype: Any, *, buffer: Any = None, name: Any = "", **ignored: Any) -> Any:
    return _allocated(shape, dtype, buffer, name, 1)


def _shape_of(a: Any) -> tuple[Any, ...]:
    """A tensor's shape, its partitions marked where blocks come before them."""
    if not isinstance(a, Blocks):
        return tuple(a.shape)
    return (*a.lead, ParDim(a.rest[0]), *a.rest[1:])


@function("empty_like")
def empty_like(
    a: Any, dtype: Any = None, *, buffer: Any = None, name: Any = "", **more: Any
) -> Any:
    return _allocated(_shape_of(a), dtype or a.dtype, buffer, name)


@function("zeros_like")
def zeros_like(
    a: Any, dtype: Any = None, *, buffer: Any = None, name: Any = "", **more: Any
) -> Any:
    return _allocated(_shape_of(a), dtype or a.dtype, buffer, name, 0)


@function("full_like")
def full_like(
    a: Any, fill_value: Any, dtype: Any = None, *, buffer: Any = None, name: Any = "", **more: Any
) -> Any:
    kind = dtype or a.dtype
    return _allocated(_shape_of(a), kind, buffer, name, _checked(fill_value, kind))


@function("shared_constant")
def shared_constant(constant: Any, dtype: Any = None, **ignored: Any) -> Any:
    """A tensor in HBM whose values are known now."""
    return adopted(memory.shared_constant(constant, dtype))


@function("shared_identity_matrix")
def shared_identity_matrix(n: Any, dtype: Any = "uint8", **ignored: Any) -> Any:
    """The n x n identity, in HBM."""
    import numpy as np

    kind = dtype_of(dtype)
    made = memory.shared_constant(np.eye(whole_number(n, "a size"), dtype=np.float32), kind)
    return adopted(made)


__all__ = [
    "empty_like",
    "full",
    "full_like",
    "hbm",
    "ndarray",
    "ones",
    "shared_constant",
    "shared_identity_matrix",
    "zeros",
    "zeros_like",
]
