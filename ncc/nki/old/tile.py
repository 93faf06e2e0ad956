"""The tensor of the older API: index tensors, masks to come, stores by assignment, operators."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

from ncc.ir.kernel import Access, Rows
from ncc.nki.layout import span
from ncc.nki.old.index import NO_AXES, Axes, Index, Mask, whole
from ncc.nki.old.loops import in_scope
from ncc.nki.old.masks import Box
from ncc.nki.old.walks import RuntimeIndex, bounds_of, spread_grids
from ncc.nki.tensor import DynSlice, NkiTensor
from ncc.nki.tensor_base import TensorBase
from ncc.nki.trace import Storage, current, is_tracing, wrong_shape, wrong_type
from ncc.nki.views import ints

# dimension, its size, and the affine index that walks it: checked when an instruction uses the view
Bound = tuple[int, int, int, tuple[int, ...]]


class Tile(NkiTensor):
    """A view whose index may leave the tensor until a mask cuts it.

    `bounds`: what is still to be checked. `valid`: the rectangles that a masked call wrote (None:
    all). `redo` writes the product (`turns`: transpose) that this tile holds into another one
    instead. `folds` is the operator of `nl.loop_reduce`. `axes`: which `nl.arange`s walk each
    dimension. `mask`: what `t[mask]` leaves.
    """

    __slots__ = ("axes", "bounds", "folds", "mask", "redo", "turns", "valid")

    axes: Axes
    bounds: tuple[Bound, ...]
    folds: str
    mask: Mask | bool | None
    redo: Callable[[Tile, bool | None], None] | None
    turns: bool
    valid: list[Box] | None

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        return object.__new__(cls)

    def plain(self) -> Self:
        self.axes, self.bounds, self.folds = (), (), ""
        self.mask = self.redo = self.valid = None
        self.turns = False
        return self

    @classmethod
    def whole(cls, storage: Storage, dtype: Any) -> Self:
        return super().whole(storage, dtype).plain()

    def derived(self, *args: Any, **more: Any) -> Self:
        if self.bounds:
            self.inside()
        return super().derived(*args, **more).plain()

    # --- bounds -------------------------------------------------------------------------------

    def fits(self) -> bool:
        """Whether every index lies in its dimension."""
        for _, size, offset, steps in self.bounds:
            low, high = span(self.shape, steps)
            if low + offset < 0 or high + offset >= size:
                return False
        return True

    def inside(self) -> None:
        """NCC314 unless every index lies in its dimension."""
        for k, size, offset, steps in self.bounds:
            low, high = span(self.shape, steps)
            low, high = low + offset, high + offset
            if low < 0 or high >= size:
                said = f"dimension {k} of {self.name} has {size} elements, the index covers {low}"
                hint = "add mask= to the call, or end the last tile earlier"
                raise wrong_shape("NCC314", f"{said} to {high}", hint, self.name)

    def access(self, role: str = "", *, compute: bool = True, write: bool = False) -> Access:
        if self.bounds:
            self.inside()
        if self.storage.loop is not None:
            in_scope(self.storage)
        if write:
            self.storage.left = None
        return super().access(role, compute=compute, write=write)

    def cut(self, box: Box) -> Self:
        """The rectangle of a view."""
        offset = self.offset + sum(a * s for (a, _), s in zip(box, self.strides, strict=True))
        shape = tuple(b - a for a, b in box)
        bounds = self.bounds
        self.bounds = ()
        made = self.derived(shape, self.strides, offset, self._moved_rows(box))
        self.bounds = bounds
        made.bounds = tuple(
            (k, n, o + sum(a * s for (a, _), s in zip(box, steps, strict=True)), steps)
            for k, n, o, steps in bounds
        )
        made.axes = self.axes
        return made

    def _moved_rows(self, box: Box) -> tuple[Any, ...]:
        """Row starts follow a cut of the rows."""
        first, last = box[0]
        if not self.rows_dim or (first, last) == (0, self.shape[0]):
            return self.moves
        found: list[Any] = []
        for move in self.moves:
            if isinstance(move, Rows):
                source = move.source
                step, _ = source.pairs[0]
                pairs = ((step, last - first), *source.pairs[1:])
                source = Access(
                    source.buffer, source.dtype, pairs, source.offset + first * step, source.moves
                )
                move = Rows(source, move.scale, move.limit)
            found.append(move)
        return tuple(found)

    # --- indexing -----------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Self:
        from ncc.nki.old.walked import walked

        given = spread_grids(index)
        if len(given) == len(self.shape) and (plain := self._static(given)) is not None:
            return plain
        for one in given:
            if isinstance(one, Index | RuntimeIndex | TensorBase):
                return walked(self, self._whole_index(given))
            if isinstance(one, Mask):
                return self._masked(given)
        if self._leaves(given):
            return walked(self, self._whole_index(given))
        return super().__getitem__(given)

    def _static(self, given: tuple[Any, ...]) -> Self | None:
        """The plain case, index tensors of one rank and numbers; None for every other."""
        rank = max((one.ndim for one in given if type(one) is Index), default=0)
        if rank < 2 or rank > max(2, len(given)) or self.bounds:
            return None
        sizes, strides, axes = [1] * rank, [0] * rank, [NO_AXES] * rank
        bounds: list[Bound] = []
        offset = self.offset
        for k, one in enumerate(given):
            n, by = self.shape[k], self.strides[k]
            if type(one) is int and 0 <= one < n:
                offset += one * by
                continue
            if type(one) is not Index or one.ndim != rank:
                return None
            offset += one.offset * by
            low = high = one.offset
            for d, (count, step) in enumerate(zip(one.shape, one.steps, strict=True)):
                if count == 1:
                    continue
                if sizes[d] not in (1, count) or (self.row and step and (k == 0) != (d == 0)):
                    return None
                sizes[d] = count
                strides[d] += step * by
                axes[d] |= one.axes[d]
                far = (count - 1) * step
                low, high = (low + far, high) if far < 0 else (low, high + far)
            if low < 0 or high >= n:
                bounds.append((k, n, one.offset, one.plain_steps()))
        if self.row:
            if sizes[0] > 1 and not strides[0]:
                return None
            strides[0] = strides[0] or self.row
        made = self.derived(tuple(sizes), tuple(strides), offset)
        made.bounds, made.axes = tuple(bounds), tuple(axes)
        return made

    def _masked(self, given: tuple[Any, ...]) -> Self:
        """`t[mask]`: the whole view, of which an instruction uses what the mask leaves."""
        if len(given) != 1:
            said = f"an index of {self.name} holds a comparison beside other indices"
            raise wrong_type("NCC313", said, "pass it as mask= of the call")
        bounds, axes, before = self.bounds, self.axes, self.mask
        self.bounds = ()
        made = self.derived(self.shape, self.strides)
        self.bounds = bounds
        made.bounds, made.axes = bounds, axes
        made.mask = given[0] if before is None else before & given[0]
        return made

    def _whole_index(self, given: tuple[Any, ...]) -> tuple[Any, ...]:
        if any(one is None for one in given):
            said = f"an index of {self.shown} mixes None and index tensors"
            raise wrong_type("NCC313", said, "give the index tensors their dimensions instead")
        if len(given) != len(self.shape) or any(one is Ellipsis for one in given):
            return self._full(given)
        return given

    def _leaves(self, given: tuple[Any, ...]) -> bool:
        """Whether a slice ends behind its dimension: a mask may cut it yet."""
        if any(one is None or one is Ellipsis for one in given) or len(given) > len(self.shape):
            return False
        for one, size in zip(given, self.shape, strict=False):
            if isinstance(one, DynSlice):
                start, width = whole(one.start), whole(one.size)
                if start is not None and width is not None and start + width > size:
                    return True
            elif isinstance(one, slice):
                stop = whole(bounds_of(one)[1])
                if stop is not None and stop > size:
                    return True
        return False

    # --- stores -------------------------------------------------------------------------------

    def __setitem__(self, index: Any, value: Any) -> None:
        from ncc.nki.old.assign import assign

        target = self[index]
        if isinstance(value, Tile) and value.same_view(target):
            return  # `t[i] += x`, done in place
        assign(target, value)

    def same_view(self, other: Tile) -> bool:
        mine = (self.offset, self.shape, self.strides, self.moves, self.dtype)
        theirs = (other.offset, other.shape, other.strides, other.moves, other.dtype)
        return self.storage is other.storage and mine == theirs

    def _in_place(self, name: str, other: Any) -> Any:
        from ncc.nki.old.assign import in_place

        return in_place(name, self, other)

    def __iadd__(self, other: Any) -> Any:
        if isinstance(other, Index):
            return RuntimeIndex(self, other)
        return self._in_place("add", other)

    def __isub__(self, other: Any) -> Any:
        return self._in_place("subtract", other)

    def __imul__(self, other: Any) -> Any:
        return self._in_place("multiply", other)

    def __itruediv__(self, other: Any) -> Any:
        return self._in_place("divide", other)

    def __iand__(self, other: Any) -> Any:
        return self._in_place("bitwise_and", other)

    def __ior__(self, other: Any) -> Any:
        return self._in_place("bitwise_or", other)

    def __eq__(self, other: object) -> Any:
        number = isinstance(other, int | float | Tile)
        if number and other is not self and is_tracing() and current().old:
            return self._compute("equal", self, other)
        return self is other

    def __ne__(self, other: object) -> Any:
        number = isinstance(other, int | float | Tile)
        if number and other is not self and is_tracing() and current().old:
            return self._compute("not_equal", self, other)
        return self is not other

    __hash__ = object.__hash__

    # --- methods ------------------------------------------------------------------------------

    def astype(self, dtype: Any) -> Any:
        from ncc.nki.old.language import copy

        return copy(self, dtype=dtype)

    def broadcast_to(self, *shape: Any) -> Any:
        from ncc.nki.old.language import broadcast_to

        return broadcast_to(self, shape=ints(shape, "broadcast_to: a size"))

    def expand_dims(self, axis: Any) -> Any:
        from ncc.nki.old.language import expand_dims

        return expand_dims(self, axis)

    def reshape(self, *sizes: Any, shape: Any = None) -> Self:
        return super().reshape(*(sizes if shape is None else (shape,)))

    def as_tile(self) -> Self:
        return self

    @property
    def shape_2d(self) -> tuple[int, int]:
        """Partitions, and elements in each of them."""
        return self.shape[0], self.size // self.shape[0]

    def assert_shape(self, shape: Any) -> Self:
        """The tile itself; NCC374 when it has another shape."""
        wanted = ints((shape,), "assert_shape: a size")
        if wanted != self.shape:
            said = f"{self.name} has the shape {self.shape}, asserted is {wanted}"
            raise wrong_shape("NCC374", said, "correct one of the two")
        return self

    @property
    def itemsize(self) -> int:
        return self.dtype.size


def adopted(tensor: NkiTensor) -> Tile:
    """Any tensor as a tile of the older API."""
    if isinstance(tensor, Tile):
        return tensor
    made: Tile = object.__new__(Tile)
    for name in TensorBase.__slots__:
        setattr(made, name, getattr(tensor, name))
    return made.plain()
