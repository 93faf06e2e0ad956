"""From a view to the operand of an instruction, and which elements of its buffer that is."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING

from ncc.ir.data import size_of
from ncc.ir.kernel import Access
from ncc.nki.layout import span
from ncc.nki.trace import Storage, invalid

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ncc.nki.tensor_base import TensorBase


INSIDE = "no bound is clamped: make the offset or the counts smaller"


def _named(tensor: TensorBase, role: str) -> str:
    return f"{role} ({tensor.shown})" if role else tensor.shown


def bounded(tensor: TensorBase, role: str) -> Access:
    """The access of a view whose every element is in its storage; NCC314 otherwise.

    With run-time moves only the extent is known here; their values are checked when they are read.
    """
    shape, strides, offset = tensor.shape, tensor.strides, tensor.offset
    if 0 in shape:
        dims = " x ".join(map(str, shape))
        said = f"{_named(tensor, role)} is {dims}: an instruction works on at least one element"
        raise invalid("NCC314", said, "leave the call out when the range is empty")
    if not tensor.row:
        low, high = span(shape, strides)
        if tensor.moves:
            low, high = 0, high - low
        else:
            low, high = low + offset, high + offset
        if low < 0 or high >= tensor.total:
            said = (
                f"{_named(tensor, role)}: the access reaches elements {low} to {high} "
                f"of a tensor of {tensor.total}"
            )
            raise invalid("NCC314", said, INSIDE)
    else:
        _inside_partitions(tensor, role)
    pairs = tuple(zip(strides, shape, strict=True))
    return Access(tensor.storage.buffer.name, tensor.dtype.bir, pairs, offset, tensor.moves)


def _inside_partitions(tensor: TensorBase, role: str) -> None:
    shape, strides, row = tensor.shape, tensor.strides, tensor.row
    first, begin = divmod(tensor.offset, row)
    low, high = span(shape[1:], strides[1:])
    if tensor.moves:
        low, high = 0, high - low
    else:
        low, high = low + begin, high + begin
    if low < 0 or high >= row:
        said = (
            f"{_named(tensor, role)}: the access reaches elements {low} to {high} "
            f"of a partition that has {row}"
        )
        raise invalid("NCC314", said, INSIDE)
    there = tensor.storage.buffer.shape[0]
    if first < 0 or first + shape[0] > there:
        said = (
            f"{_named(tensor, role)}: the access reaches partitions {first} to "
            f"{first + shape[0] - 1} of a tensor that has {there}"
        )
        raise invalid("NCC314", said, INSIDE)
    if shape[0] > 1 and strides[0] != row:
        said = (
            f"{_named(tensor, role)}: its partitions are {strides[0]} elements apart, "
            f"neighbours are {row}"
        )
        raise invalid("NCC315", said, "an engine works on neighbouring partitions")


def starts_well(tensor: TensorBase, role: str) -> None:
    """The engines' rule about the first partition, NCC315: more than 64 partitions start at 0,
    33 to 64 at 0 or 64, up to 32 at 0, 32, 64 or 96."""
    count, first = tensor.shape[0], tensor.offset // tensor.row
    address = tensor.storage.buffer.address
    if address is not None:
        first += address[0]
    if not first:
        return
    step = 32 if count <= 32 else 64 if count <= 64 else 128
    if first % step:
        may = "0" if count > 64 else "0 or 64" if count > 32 else "0, 32, 64 or 96"
        said = (
            f"{_named(tensor, role)} covers {count} partitions from partition {first}, "
            f"and {count} may start at {may}"
        )
        raise invalid("NCC315", said, "move the rows with nisa.dma_copy, or lay the tile out anew")


def written(storage: Storage, access: Access) -> NDArray[np.bool_]:
    """Which elements of an access were written, as a view of `storage.written` in the shape of the
    access: reading it asks, assigning to it marks.

    One mark stands for an element of the buffer, or for a byte once an access of another size
    came: then the view has one dimension more, the bytes. Run-time moves are not followed.
    """
    import numpy as np

    made = storage.buffer
    own, size = size_of(made.dtype), size_of(access.dtype)
    count = prod(made.shape)
    marks = storage.written
    if marks is None:
        marks = storage.written = np.zeros(count, np.bool_)
    grain = count * own // len(marks)
    if grain not in (1, size):
        marks = storage.written = np.repeat(marks, grain)
        grain = 1
    per = size // grain
    shape = access.shape if per == 1 else (*access.shape, per)
    strides = [step * per for step, _ in access.pairs]
    if per > 1:
        strides.append(1)
    return np.ndarray(shape, np.bool_, marks.data, access.offset * per, strides)
