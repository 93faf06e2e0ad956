"""The tensor of the older API: index tensors, masks to come, stores by assignment, operators."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Self

from ncc.ir.kernel import Access, Rows, Scalar
from ncc.nki.layout import span
from ncc.nki.old.index import NO_AXES, Axes, Index, Mask, common, whole
from ncc.nki.old.loops import in_scope
from ncc.nki.old.masks import Box
from ncc.nki.old.walks import RuntimeIndex, bounds_of, spread_grids
from ncc.nki.tensor import DynSlice, NkiTensor
from ncc.nki.tensor_base import TensorBase
from ncc.nki.trace import Storage, current, invalid, is_tracing, wrong_shape, wrong_type
from ncc.nki.views import ints, scalar_source, vector_source, whole_number

# dimension, its size, and the affine index that walks it: checked when an instruction uses the view
Bound = tuple[int, int, int, tuple[int, ...]]
MIXED = "index every dimension with nl.arange or nl.mgrid, or every one with slices"


def walked_dims(shape: tuple[int, ...], axes: Sequence[frozenset[int]], rank: int) -> list[int]:
    """The dimensions of a result that stay. An index of `nl.mgrid` has a dimension for each part of
    the grid; those of parts that select nothing here are dropped, down to `rank`."""
    spare = [d for d in range(1, len(shape)) if shape[d] == 1 and not axes[d]]
    dropped = spare[: max(len(shape) - rank, 0)]
    return [d for d in range(len(shape)) if d not in dropped]


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
        given = spread_grids(index)
        if len(given) == len(self.shape) and (plain := self._static(given)) is not None:
            return plain
        for one in given:
            if isinstance(one, Index | RuntimeIndex | TensorBase):
                return self._walked(self._whole_index(given))
            if isinstance(one, Mask):
                return self._masked(given)
        if self._leaves(given):
            return self._walked(self._whole_index(given))
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

    def _walked(self, given: tuple[Any, ...]) -> Self:
        """Index tensors for the dimensions: their common shape is that of the result."""
        indices, runtime = self._indices(given)
        shape: tuple[int, ...] = ()
        for one in indices:
            shape = common(shape, one.shape)
        for _, source, _ in runtime:
            if source.size > 1:
                shape = common(shape, source.shape)
        offset, strides = self.offset, [0] * len(shape)
        bounds: list[Bound] = []
        axes: list[frozenset[int]] = [NO_AXES] * len(shape)
        dynamic = {k for k, _, _ in runtime}
        for k, one in enumerate(indices):
            wide = one.wide(shape)
            offset += wide.offset * self.strides[k]
            for d, step in enumerate(wide.steps):
                strides[d] += step * self.strides[k]
                axes[d] |= wide.axes[d]
            if k not in dynamic:
                bounds.append((k, self.shape[k], wide.offset, wide.steps))
            if self.row and k == 0 and any(wide.steps[1:]):
                raise self._no_tile()
            if self.row and k and wide.steps and wide.steps[0]:
                raise self._no_tile()
        moves = [*self.moves]
        for k, source, reach in runtime:
            moves.append(self._move(k, source, reach, strides))
        if self.row:
            if len(shape) < 2:
                raise self._no_tile()
            if shape[0] > 1 and not strides[0]:
                raise self._no_tile()
            strides[0] = self.row if shape[0] == 1 else strides[0]
        elif not shape:
            shape, strides, axes = (1,), [1], [NO_AXES]
            bounds = [(k, n, o, (0,)) for k, n, o, _ in bounds]
        kept = walked_dims(shape, axes, max(2, len(given)))
        made = self.derived(
            tuple(shape[d] for d in kept), tuple(strides[d] for d in kept), offset, tuple(moves)
        )
        made.bounds = tuple((k, n, o, tuple(steps[d] for d in kept)) for k, n, o, steps in bounds)
        made.axes = tuple(axes[d] for d in kept)
        return made

    def _no_tile(self) -> Exception:
        said = f"the index of {self.name} walks partitions in a dimension that is not the first"
        hint = "partitions: nl.arange(p)[:, None]; free elements: nl.arange(f)[None, :]"
        return wrong_shape("NCC316", said, hint)

    def _indices(
        self, given: tuple[Any, ...]
    ) -> tuple[list[Index], list[tuple[int, Tile, tuple[int, int]]]]:
        """An affine index for each dimension, and what the machine adds to it."""
        static = any(isinstance(one, Index | RuntimeIndex) for one in given)
        slices = [k for k, one in enumerate(given) if isinstance(one, slice | DynSlice)]
        rows = any(isinstance(one, TensorBase) and one.size > 1 for one in given)
        if static and slices:
            said = f"an index of {self.name} mixes index tensors and slices"
            raise wrong_type("NCC313", said, MIXED)
        kept = [0] if self.row and 0 not in slices and slices else []
        order = sorted([*kept, *slices])
        first = 1 if rows and slices else 0
        rank = len(order) + first
        if self.row and order and rank < 2:
            rank = 2
        found: list[Index] = []
        runtime: list[tuple[int, Tile, tuple[int, int]]] = []
        for k, one in enumerate(given):
            constant = Index((), (), 0, ())
            if k in order:
                start, count, step = self._steps(k, one)
                place = first + order.index(k)
                form = tuple(count if d == place else 1 for d in range(rank))
                steps = tuple(step if d == place else 0 for d in range(rank))
                found.append(Index(form, steps, start, (NO_AXES,) * rank))
            elif isinstance(one, Index):
                if one.ndim < 2 and one.size > 1:
                    said = f"an index of {self.name} is nl.arange of one dimension"
                    hint = "give it its place: nl.arange(n)[:, None] or nl.arange(n)[None, :]"
                    raise wrong_shape("NCC370", said, hint)
                found.append(one)
            elif isinstance(one, RuntimeIndex):
                found.append(one.index)
                runtime.append((k, one.tile, one.index.reach()))
            elif isinstance(one, Tile):
                found.append(constant)
                runtime.append((k, one, (0, 0)))
            else:
                number = whole(one)
                if number is None:
                    said = f"{self.name} cannot be indexed with {one!r:.60}"
                    raise wrong_type("NCC313", said, "an int, a slice, nl.ds or an index tensor")
                found.append(constant + (number + self.shape[k] if number < 0 else number))
        return found, runtime

    def _steps(self, k: int, one: Any) -> tuple[int, int, int]:
        """Start, count and step of a slice that may end behind its dimension."""
        if isinstance(one, DynSlice):
            start = whole_number(one.start, "nl.ds: the start")
            return start, whole_number(one.size, "nl.ds: the size"), 1
        if not isinstance(one, slice):
            return whole_number(one, f"an index of {self.name}"), 1, 1
        n = self.shape[k]
        first, last, by = bounds_of(one)
        start, stop = whole(first), whole(last)
        step = 1 if by is None else whole_number(by, "a step")
        start = 0 if start is None else start + n if start < 0 else start
        stop = n if stop is None else stop + n if stop < 0 else stop
        return start, len(range(start, stop, step)), step

    def _move(self, k: int, source: Tile, reach: tuple[int, int], strides: list[int]) -> Any:
        _, high = reach
        if source.size == 1:
            if k == 0 and self.row:
                said = f"dimension 0 of {self.name}, its partitions, at a run-time index"
                raise invalid("NCC322", said, "move the rows by nl.load from HBM")
            return Scalar(scalar_source(source), self.strides[k], self.shape[k] - high)
        if self.row:
            said = f"{self.name} is on chip, and one index for each row chooses in HBM only"
            raise invalid("NCC322", said, "nl.gather_flattened, or nl.load from HBM")
        if source.size != source.shape[0]:
            said = f"the row indices {source.name} have the shape {source.shape}"
            raise wrong_shape("NCC322", said, "one index a row: (rows, 1)")
        if strides and strides[0]:
            said = f"the rows of {self.name} are walked by an index tile and by an index tensor"
            raise wrong_shape("NCC322", said, "the index tile alone chooses the rows")
        access, _ = vector_source(source)
        return Rows(access, self.strides[k], self.shape[k] - high)

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
