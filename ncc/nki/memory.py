"""Allocation: `nl.ndarray` and its kin, constants, and what the memories of the machine hold."""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Callable, Sequence
from inspect import signature
from pathlib import Path
from typing import Any, ParamSpec

from ncc.ir.data import data, numpy_type
from ncc.ir.kernel import Access
from ncc.ir.partitions import PARTITIONS, too_many
from ncc.nki.dtypes import MX, Dtype, bir_name, dtype_of, held, uint8
from ncc.nki.layout import Ints
from ncc.nki.regions import (
    REGIONS,
    MemoryRegion,
    Part,
    hbm,
    is_hbm,
    is_on_chip,
    is_psum,
    is_sbuf,
    private_hbm,
    psum,
    sbuf,
    shared_hbm,
)
from ncc.nki.targets import default_target
from ncc.nki.tensor import NkiTensor
from ncc.nki.trace import current, invalid, is_tracing, wrong_shape, wrong_type
from ncc.nki.views import several, whole_number
from ncc.target import Target

__all__ = [
    "MemoryRegion",
    "empty_like",
    "full",
    "hbm",
    "is_hbm",
    "is_on_chip",
    "is_psum",
    "is_sbuf",
    "machine",
    "ndarray",
    "ones",
    "private_hbm",
    "psum",
    "sbuf",
    "shared_constant",
    "shared_hbm",
    "shared_identity_matrix",
    "tile_size",
    "zeros",
    "zeros_like",
]


def machine() -> Target:
    """The target of the run; outside of one, that of the environment, else trn2."""
    return current().target if is_tracing() else default_target()


class TileSize:
    """`nl.tile_size`: what one instruction and one partition hold, for the target at hand."""

    pmax = 128
    psum_fmax = 512
    psum_bank_fmax = 512
    psum_bank_fmax_bytes = 2048
    psum_num_banks = 8
    gemm_stationary_fmax = 128
    gemm_moving_fmax = 512
    bn_stats_fmax = 512
    psum_min_align = 4
    sbuf_min_align = 1

    @property
    def sbuf_fmax_bytes(self) -> int:
        return machine().sbuf_usable

    @property
    def total_available_sbuf_size(self) -> int:
        return machine().sbuf_usable

    @property
    def sbuf_fmax(self) -> int:
        return machine().sbuf_usable // 4

    @property
    def sbuf_size_bytes(self) -> int:
        return machine().sbuf_size * 128


tile_size = TileSize()
P = ParamSpec("P")


# of a tensor in HBM, and of one partition of a tile: far more than any machine has, since a
# simulated kernel may take more than there is
MOST_BYTES = (1 << 40, 1 << 24)


def _sizes(shape: Any, what: str) -> Ints:
    sizes = tuple(whole_number(n, f"a size of {what}") for n in several(shape))
    if not sizes or any(n < 1 for n in sizes):
        said = f"{what} has the shape {sizes}: every size is 1 or more"
        raise wrong_shape("NCC311", said, "leave the tensor out when it holds nothing")
    return sizes


def _region(buffer: Any) -> MemoryRegion:
    if isinstance(buffer, MemoryRegion):
        return buffer
    if buffer is None:
        return sbuf
    word = str(buffer).rsplit(".", 1)[-1]
    known = "pass nl.sbuf, nl.psum, nl.hbm or nl.shared_hbm"
    hint = f"write buffer=nl.{word}" if word in REGIONS else known
    raise wrong_type("NCC320", f"{buffer!r:.60} is no memory", hint)


def _check_partitions(sizes: Ints, region: MemoryRegion, what: str) -> None:
    if len(sizes) == 1:
        said = f"{what} in {region} has 1 dimension, and needs two, partitions first"
        raise wrong_shape("NCC311", said, f"write ({sizes[0]}, 1) or (1, {sizes[0]})")
    if sizes[0] > PARTITIONS:
        said, hint = too_many(sizes)
        raise invalid("NCC310", said, hint, what)


def _check_bytes(sizes: Ints, kind: Dtype, region: MemoryRegion, what: str) -> None:
    """No more than there can be, on any computer: who asks for that mistook a number (NCC311)."""
    chip = region in (sbuf, psum)
    size, most = math.prod(sizes[chip:]) * kind.size, MOST_BYTES[chip]
    if size > most:
        each = " a partition" if chip else ""
        said = f"{what} in {region} has the shape {sizes}: {size} bytes{each}, more than {most}"
        raise wrong_shape("NCC311", said, "look at its sizes, and cut it into tiles")


def _address(address: Any, sizes: Ints, dtype: Dtype, region: MemoryRegion, what: str) -> Any:
    """(first partition, byte) of a tile that the kernel places."""
    pair: Any = address
    if not isinstance(address, Sequence) or len(pair) != 2:
        said = f"{what} has address={pair!r:.60}, which is no place"
        raise wrong_type("NCC326", said, "write (first partition, byte inside a partition)")
    first, byte = (whole_number(x, f"a part of the address of {what}") for x in pair)
    if region not in (sbuf, psum):
        hint = "leave address out, or allocate it in nl.sbuf or nl.psum"
        raise invalid("NCC326", f"{what} is in {region}, which takes no address", hint)
    target = current().target
    size = math.prod(sizes[1:]) * dtype.size
    most = target.psum_banks * target.psum_bank_bytes if region == psum else target.sbuf_usable
    if first < 0 or first + sizes[0] > 128:
        said = f"{what} covers partitions {first} to {first + sizes[0] - 1}, and there are 128"
        hint = f"{sizes[0]} partitions start at {128 - sizes[0]} or below"
        raise invalid("NCC326", said, hint)
    if byte < 0 or (byte + size > most and not current().simulated):
        said = f"{what} covers bytes {byte} to {byte + size - 1} of the {most} in a partition"
        hint = f"start at byte {most - size} or below" if size <= most else "make the tile smaller"
        raise invalid("NCC326", said, hint)
    if byte % dtype.size:
        said = (
            f"{what} starts at byte {byte}, and {dtype} elements lie at multiples of {dtype.size}"
        )
        raise invalid("NCC326", said, f"start at byte {byte - byte % dtype.size}")
    return first, byte


def allocate(
    shape: Any, dtype: Any, buffer: Any = sbuf, name: Any = "", address: Any = None
) -> NkiTensor:
    """What `nl.ndarray` does."""
    trace = current("nl.ndarray")
    if isinstance(buffer, Part):
        return buffer.view(dtype, shape)
    what = f"the tensor {name}" if name else "the tensor"
    sizes, kind, region = _sizes(shape, what), held(dtype, trace.target), _region(buffer)
    if region in (sbuf, psum):
        _check_partitions(sizes, region, what)
    _check_bytes(sizes, kind, region, what)
    at = None if address is None else _address(address, sizes, kind, region, what)
    made = trace.allocate(str(name or ""), kind.bir, sizes, region.name, address=at)
    return NkiTensor.whole(made, kind)


def _checked(function: Callable[P, NkiTensor]) -> Callable[P, NkiTensor]:
    """`function` with the answer of every call of the API to an unknown keyword."""
    ready: list[Callable[P, NkiTensor]] = []

    @functools.wraps(function)
    def run(*args: P.args, **kwargs: P.kwargs) -> NkiTensor:
        if not ready:
            from ncc.nki.isa.calls import call  # which stands on this module

            ready.append(call(function))
        return ready[0](*args, **kwargs)

    return run


def _new(
    shape: Any, dtype: Any, buffer: Any = sbuf, name: Any = "", address: Any = None
) -> NkiTensor:
    return allocate(shape, dtype, buffer, name, address)


_new.__name__ = "ndarray"
_ndarray = _checked(_new)


class _Array(type):
    """`isinstance(x, nl.ndarray)` is true of every tensor."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, NkiTensor)

    def __call__(cls, *args: Any, **kwargs: Any) -> NkiTensor:
        return _ndarray(*args, **kwargs)


class ndarray(metaclass=_Array):
    """`nl.ndarray(shape, dtype, buffer=nl.sbuf, name='', address=None)`: a new tensor.

    A class only by its looks, so that it works as an annotation and in `isinstance`.
    """

    __signature__ = signature(_new)

    def __class_getitem__(cls, shape: Any) -> type[NkiTensor]:
        return NkiTensor


def fill(tensor: NkiTensor, value: float) -> None:
    """Write one value into all of a tensor: a memset, and for HBM a copy of a small tile."""
    from ncc.nki.isa import written

    trace = current()
    if trace.old and tensor.buffer == psum and not value:
        return  # the first product overwrites
    if tensor.row:
        dst = tensor.access("dst", write=True)
        trace.emit("memset", {"dst": dst}, {"value": value})
        if tensor.buffer == psum:
            tensor.storage.filled = bool(value)
            written.mark(tensor.storage, dst)
        return
    total, width = tensor.total, min(tensor.total, 2048)
    tile = allocate((1, width), tensor.dtype, sbuf, f"{tensor.name}_fill")
    trace.emit("memset", {"dst": tile.access("dst", write=True)}, {"value": value})
    repeats, tail = divmod(total, width)
    own = tensor.storage.buffer.name
    for count, size, start in ((repeats, width, 0), (1, tail, repeats * width)):
        if size:
            dst = Access(own, tensor.dtype.bir, ((width, count), (1, size)), start)
            src = tile.ap([[width, 1], [0, count], [1, size]]).access("src", compute=False)
            trace.emit("dma_copy", {"dst": dst, "src": src})
    tensor.storage.touched = True


@_checked
def full(
    shape: Any, fill_value: Any, dtype: Any, buffer: Any = sbuf, name: Any = "", address: Any = None
) -> NkiTensor:
    """A new tensor that holds one value."""
    made = allocate(shape, dtype, buffer, name, address)
    value = fill_value
    if hasattr(value, "item") and getattr(value, "size", 0) == 1:
        value = value.item()  # of numpy
    if not isinstance(value, int | float):
        said = f"a tensor is filled with a number, not {value!r:.60}"
        raise wrong_type("NCC325", said, "allocate it with nl.ndarray and copy into it")
    if not made.dtype.is_float and not (math.isfinite(value) and value == int(value)):
        what = f"the tensor {name}" if name else "the tensor"
        said = f"{what} is {made.dtype} and cannot hold {value}"
        raise wrong_type("NCC325", said, "fill it with a whole number, or give it a float dtype")
    fill(made, value)
    return made


@_checked
def zeros(
    shape: Any, dtype: Any, buffer: Any = sbuf, name: Any = "", address: Any = None
) -> NkiTensor:
    return full(shape, 0, dtype, buffer, name, address)


@_checked
def ones(
    shape: Any, dtype: Any, buffer: Any = sbuf, name: Any = "", address: Any = None
) -> NkiTensor:
    return full(shape, 1, dtype, buffer, name, address)


def _like(x: object, call: str) -> None:
    if not isinstance(x, NkiTensor):
        said = f"nl.{call} takes a tensor, was given {x!r:.40} of type {type(x).__name__}"
        raise wrong_type("NCC331", said, "give a shape and dtype to nl.ndarray or nl.zeros")


@_checked
def empty_like(
    x: NkiTensor, dtype: Any = None, buffer: Any = None, name: Any = "", address: Any = None
) -> NkiTensor:
    """A new tensor with the shape, and unless told otherwise the dtype and memory, of `x`."""
    _like(x, "empty_like")
    memory = x.buffer if buffer is None else buffer
    return allocate(x.shape, dtype or x.dtype, memory, name, address)


@_checked
def zeros_like(
    x: NkiTensor, dtype: Any = None, buffer: Any = None, name: Any = "", address: Any = None
) -> NkiTensor:
    _like(x, "zeros_like")
    return full(x.shape, 0, dtype or x.dtype, x.buffer if buffer is None else buffer, name, address)


@_checked
def shared_constant(constant: Any, dtype: Any = None, name: Any = "") -> NkiTensor:
    """A tensor in HBM whose values are known now: an array, or the path of an `.npy` file."""
    import numpy as np

    trace = current("nl.shared_constant")
    if isinstance(constant, str | os.PathLike):
        file = Path(os.fspath(constant))
        try:
            constant = np.load(file)
        except (OSError, ValueError) as fault:
            said = f"cannot read the constant {file.name}: {fault}"
            raise invalid("NCC325", said, "a file that numpy.save wrote") from None
    try:
        array = np.asarray(constant)
    except TypeError:
        said = f"a constant is an array or the path of one, not {constant!r:.60}"
        raise wrong_type("NCC325", said, "pass numpy.array(...) of it") from None
    if dtype is None and array.dtype == np.float64:
        array = array.astype(np.float32)
    if dtype is None and not hasattr(constant, "dtype") and array.dtype == np.int64:
        array = array.astype(np.int32)
    kind = dtype_of(array.dtype if dtype is None else dtype)
    if kind in MX:
        array = array.view(numpy_type(kind.bir))  # its bits
    values = data(kind.bir, array if array.ndim else array.reshape(1))
    wish = str(name or "constant")
    made = trace.allocate(wish, kind.bir, values.shape, "hbm", kind="const", data=values)
    return NkiTensor.whole(made, kind)


@_checked
def shared_identity_matrix(n: Any, dtype: Any = uint8, dst: NkiTensor | None = None) -> NkiTensor:
    """The n x n identity in SBUF: copied from a constant."""
    import numpy as np

    size = whole_number(n, "the size of the identity")
    if dst is not None:
        _like(dst, "shared_identity_matrix")
    kind = dtype_of(dtype) if dst is None else dst.dtype
    if not 1 <= size <= PARTITIONS:
        said = f"an identity has 1 to {PARTITIONS} partitions, not {size}"
        raise invalid("NCC310", said, f"an identity of {PARTITIONS} serves every transpose")
    tile = allocate((size, size), kind, sbuf, f"identity{size}") if dst is None else dst
    ready = shared_constant(np.eye(size, dtype=numpy_type(bir_name(kind))), kind, "eye")
    src = ready.access("src", compute=False)
    part = tile[:size, :size]
    current().emit("dma_copy", {"dst": part.access("dst", compute=False, write=True), "src": src})
    return tile
