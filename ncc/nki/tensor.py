"""The tensor of a kernel: indexing, `.ap`, and the access that an instruction uses."""

from __future__ import annotations

from math import prod
from operator import index as as_int
from typing import Any, Self

from ncc.ir.kernel import Access, Rows, Scalar
from ncc.nki.access import bounded, starts_well
from ncc.nki.dtypes import held
from ncc.nki.tensor_base import Move, TensorBase, register_of
from ncc.nki.tensor_operators import Operators
from ncc.nki.trace import current, invalid, wrong_shape, wrong_type
from ncc.nki.views import CHOSEN, ONCE, Views, scalar_source, several, vector_source, whole_number

FULL = slice(None)
WHOLE = "no bound is clamped: end the last slice with min(start + size, extent)"


class DynSlice:
    """`nl.ds(start, size)`: `size` elements from `start`, which may be a register."""

    __slots__ = ("size", "start")

    def __init__(self, start: Any, size: Any) -> None:
        self.start, self.size = start, size

    def __repr__(self) -> str:
        return f"ds({self.start!r}, {self.size!r})"


def ds(start: Any, size: Any) -> DynSlice:
    """The elements `start` to `start + size` of a dimension."""
    return DynSlice(start, size)


class NkiTensor(Operators, Views):
    """A tensor or a view of one; made by `nl.ndarray` and its kin, by views, and for arguments."""

    __slots__ = ()

    def __new__(cls, shape: Any, dtype: Any, buffer: Any = None, name: Any = "") -> Any:
        """What `nl.ndarray` makes; views and arguments come from `whole` and `derived`."""
        from ncc.nki.memory import allocate

        return allocate(shape, dtype, buffer, name)

    def __class_getitem__(cls, shape: Any) -> type[NkiTensor]:
        return cls

    # --- indexing -----------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Self:
        given = several(index, tuple)
        dims = self.shape
        if len(given) != len(dims) or Ellipsis in [one for one in given if one is Ellipsis]:
            given = self._full(given)
        chip = self.row > 0
        shape: list[int] = []
        strides: list[int] = []
        offset = self.offset
        for k, one in enumerate(given):
            if type(one) is not slice and type(one) is not int:
                one = _plain(one)
            if type(one) is slice:
                if one == FULL:
                    shape.append(dims[k])
                    strides.append(self.strides[k])
                    continue
                bounds = self._bounds(k, one)
                if bounds is None:
                    return self._unusual(given)
                start, count, by = bounds
                if not k and ((chip and by != 1) or self.moves):
                    self._cut(0, start, count, by)  # which refuses what rows do not do
                offset += start * self.strides[k]
                shape.append(count)
                strides.append(self.strides[k] * by)
            elif type(one) is int:
                if not -dims[k] <= one < dims[k]:
                    raise self._outside(k, f"index {one}")
                if not k and self.moves and self.rows_dim:
                    raise self._refused("an index", CHOSEN, ONCE)
                offset += one % dims[k] * self.strides[k]
                if not k and chip:
                    shape.append(1)
                    strides.append(self.strides[0])
            else:
                return self._unusual(given)
        if len(shape) < (2 if chip else 1):
            shape.append(1)
            strides.append(1)
        return self.derived(tuple(shape), tuple(strides), offset)

    def _full(self, index: tuple[Any, ...]) -> tuple[Any, ...]:
        """The index with `...` written out and the dimensions that it leaves open."""
        given = sum(one is not None and one is not Ellipsis for one in index)
        spare = len(self.shape) - given
        if spare < 0:
            said = f"{given} indices for {self.shown}, which has {len(self.shape)} dimensions"
            raise wrong_shape("NCC314", said, "give at most one index for each dimension")
        dots = [k for k, one in enumerate(index) if one is Ellipsis]
        if len(dots) > 1:
            said = f"an index of {self.shown} holds `...` twice"
            raise wrong_type("NCC313", said, "write `:` for the dimensions of one of them")
        at = dots[0] if dots else len(index)
        return (*index[:at], *[FULL] * spare, *index[at + 1 :])

    def _bounds(self, k: int, one: Any) -> tuple[int, int, int] | None:
        """Start, count and step of a slice; None when it starts or ends at a run-time value."""
        n = self.shape[k]
        a, b, by = one.start, one.stop, one.step
        try:
            a = 0 if a is None else as_int(a)
            b = n if b is None else as_int(b)
            by = 1 if by is None else as_int(by)
        except TypeError:
            for bound in (one.start, one.stop):
                if isinstance(bound, float):
                    whole_number(bound, f"a bound of a slice of {self.shown}")
            return None
        a, b = a + n if a < 0 else a, b + n if b < 0 else b
        if not 0 <= a <= n or not 0 <= b <= n:
            raise self._outside(k, f"slice {_written(one)}")
        if by < 1:
            said = f"a slice of {self.shown} with step {by}"
            raise wrong_shape("NCC314", said, "take a step of 1 or more")
        return a, max(0, -((a - b) // by)), by

    def _outside(self, k: int, what: str) -> Exception:
        dims = " x ".join(map(str, self.shape))
        said = (
            f"{what} of dimension {k} of {self.shown} ({dims}) leaves its {self.shape[k]} elements"
        )
        return wrong_shape("NCC314", said, WHOLE)

    def _unusual(self, index: tuple[Any, ...]) -> Self:
        """Indices of every other kind, one dimension after the other from the last."""
        made = self
        k = len(self.shape)
        for one in reversed(index):
            if one is None:
                made = made.expand_dim(k)
                continue
            k -= 1
            plain = _plain(one)
            if type(plain) is int:
                made = made[(*[FULL] * k, plain)]
            elif type(plain) is slice:
                bounds = made._bounds(k, plain)
                made = made._moving(k, plain) if bounds is None else made._cut(k, *bounds)
            elif isinstance(plain, DynSlice):
                made = made.dynamic_cut(k, plain.start, whole_number(plain.size, "ds: the size"))
            elif register_of(plain) is not None:
                made = made.selected(k, plain)
            elif isinstance(plain, NkiTensor) and not current("an index").old:
                made = made.selected(k, plain) if plain.size == 1 else made.vector_select(k, plain)
            elif TensorBase.advanced is not None:
                found: Self = TensorBase.advanced(self, index)
                return found
            else:
                said = f"{self.shown} cannot be indexed with {plain!r:.60} ({type(plain).__name__})"
                hint = "use an int, a slice, nl.ds or a register, or a view such as .ap"
                if isinstance(plain, float):
                    hint = "an index is a whole number: divide with //"
                raise wrong_type("NCC313", said, hint)
        return made

    def _moving(self, k: int, one: Any) -> Self:
        """`t[r : r + 2]` with a register r: the size must be a number while tracing."""
        width = getattr(one.stop, "distance", None)
        size = width(0 if one.start is None else one.start) if width is not None else None
        if one.step not in (None, 1):
            size = None
        if size is None:
            said = f"a slice of {self.shown} starts or ends at a run-time value"
            raise wrong_type("NCC322", said, "write nl.ds(register, size), the size a number")
        return self.dynamic_cut(k, one.start, size)

    # --- access patterns ----------------------------------------------------------------------

    def ap(
        self,
        pattern: Any,
        offset: Any = None,
        scalar_offset: Any = None,
        vector_offset: Any = None,
        indirect_dim: int = 0,
        dtype: Any = None,
    ) -> Self:
        """`[[stride, count], ...]`, slowest first, over the storage: what the machine walks.

        `offset` is added to the view's own. Bounds are checked where an instruction uses it.
        """
        pairs = self._pairs(pattern)
        new = self.dtype if dtype is None else held(dtype, current(".ap").target)
        old = self.dtype
        start = self._scaled(self.offset, old.size, new.size)
        start += 0 if offset is None else whole_number(offset, ".ap: the offset")
        moves = tuple(self._moved(m, old.size, new.size) for m in self.moves)
        base = self.base
        if scalar_offset is not None or vector_offset is not None:
            k = whole_number(indirect_dim, ".ap: indirect_dim")
            if not -len(base) <= k < len(base):
                said = (
                    f".ap: indirect_dim {k} of {self.shown}, whose base has {len(base)} dimensions"
                )
                raise wrong_shape("NCC314", said, f"indirect_dim is 0 to {len(base) - 1}")
            k %= len(base)
            scale = self._scaled(prod(base[k + 1 :]), old.size, new.size)
            if scalar_offset is not None and vector_offset is not None:
                said = f".ap of {self.shown} takes scalar_offset or vector_offset, was given both"
                raise wrong_shape("NCC321", said, "add the scalar to the starts of the rows")
            if vector_offset is not None:
                pairs, move = self._by_row(pairs, vector_offset, k, scale)
                moves = (*moves, move)
            elif (number := _whole(scalar_offset)) is not None:
                start += scale * number
            else:
                moves = (*moves, Scalar(scalar_source(scalar_offset), scale, base[k]))
        shape, strides = tuple(n for _, n in pairs), tuple(s for s, _ in pairs)
        if new is old:
            made = self.derived(shape, strides, start, moves)
        else:
            kept = base
            if old.size != new.size:
                kept = (*base[:-1], base[-1] * old.size // new.size)
            made = self.retyped(new, shape, strides, start, kept)
            made.moves = moves
        return made._rows_of_partitions(self) if made.row else made

    def _pairs(self, pattern: Any) -> list[tuple[int, int]]:
        try:
            pairs = [(as_int(step), as_int(count)) for step, count in pattern]
        except (TypeError, ValueError):
            said = f".ap of {self.shown}: cannot read the pattern {pattern!r:.80}"
            hint = "write [[stride, count], ...] in whole numbers, slowest first"
            raise wrong_type("NCC321", said, hint) from None
        if not pairs or any(count < 1 for _, count in pairs):
            said = f".ap of {self.shown}: {pattern!r:.80} has a count below 1"
            raise wrong_shape("NCC321", said, "leave the call out when the range is empty")
        return pairs

    def _scaled(self, elements: int, old: int, new: int) -> int:
        """A number of elements of `old` bytes in elements of `new` bytes."""
        if elements * old % new:
            said = (
                f".ap of {self.shown}: {elements} elements of {old} bytes are no whole number "
                f"of elements of {new} bytes"
            )
            raise wrong_shape("NCC321", said, f"use multiples of {new} bytes")
        return elements * old // new

    def _moved(self, move: Move, old: int, new: int) -> Move:
        if isinstance(move, Rows):
            raise self._refused(".ap", "its rows are chosen one by one already", ONCE)
        return Scalar(move.source, self._scaled(move.scale, old, new), move.limit)

    def _by_row(
        self, pairs: list[tuple[int, int]], index: Any, k: int, scale: int
    ) -> tuple[list[tuple[int, int]], Rows]:
        if self.row or k:
            why = "vector_offset chooses rows (indirect_dim=0) of an HBM tensor"
            raise self._refused(".ap", why, "on chip: nisa.nc_n_gather or nisa.local_gather")
        source, count = vector_source(index)
        if pairs[0][1] > count:
            why = f"{pairs[0][1]} rows, and vector_offset has {count} starts"
            raise self._refused(".ap", why, "count as many rows as there are starts")
        return [(0, pairs[0][1]), *pairs[1:]], Rows(source, scale, self.base[0])

    def _rows_of_partitions(self, view: TensorBase) -> Self:
        """The first pair of an on-chip pattern counts partitions: its stride is that of the storage
        whatever view the kernel had in mind. A pattern of one pair gets a second."""
        shape, strides = self.shape, self.strides
        inside = prod(view.shape[1:])
        fits = (self.row, view.row, inside, inside * view.dtype.size // self.dtype.size)
        if shape[0] > 1 and strides[0] not in fits:
            said = (
                f".ap of {self.shown}: the first pair is [{strides[0]}, {shape[0]}], and the "
                f"partitions of its storage are {self.row} elements apart"
            )
            hint = f"write [{self.row}, {shape[0]}]: neighbouring partitions only"
            raise invalid("NCC315", said, hint)
        if len(shape) == 1:
            return self.derived((shape[0], 1), (self.row, 1))
        return self if strides[0] == self.row else self.derived(shape, (self.row, *strides[1:]))

    # --- use ----------------------------------------------------------------------------------

    def access(self, role: str = "", *, compute: bool = True, write: bool = False) -> Access:
        """What an instruction records as its operand, when it may use this view at all.

        `role` names the operand in an error. `compute`: the rule of the engines about the first
        partition holds (it does not for DMA). `write`: the instruction writes it.
        """
        storage, trace = self.storage, current()
        if storage.owner is not trace and storage.owner is not None:
            said = f"{self.shown} belongs to another run of a kernel"
            hint = "allocate tensors in the kernel that uses them, or pass them as arguments"
            raise wrong_type("NCC319", said, hint)
        if storage.scope and storage.scope not in trace.scopes:
            said = f"{self.shown} was allocated in the body of a device loop that has ended"
            raise invalid("NCC318", said, "allocate it before the loop")
        made = self._access
        if made is None:
            made = self._access = bounded(self, role)
        if compute and self.row:
            starts_well(self, role)
        if write:
            storage.touched = True
        return made


def _plain(one: Any) -> Any:
    """An index in its plainest form: ints of other libraries as int, ranges and `ds` as slices."""
    if type(one) is slice or isinstance(one, TensorBase):
        return one
    if isinstance(one, DynSlice):
        start, size = _whole(one.start), whole_number(one.size, "ds: the size")
        return one if start is None else slice(start, start + size)
    number = _whole(one)
    if number is not None and not isinstance(one, bool):
        return number
    if all(hasattr(one, part) for part in ("start", "stop", "step")):  # range and its kin
        steps: Any = one
        first, count = steps.start, len(steps)
        return slice(first, first + (count - 1) * steps.step + 1 if count else first, steps.step)
    return one


def _whole(value: Any) -> int | None:
    """A whole number of any library; None for tensors, registers and everything else."""
    if isinstance(value, TensorBase):
        return None
    try:
        return as_int(value)
    except TypeError:
        return None


def _written(one: Any) -> str:
    """A slice as the kernel wrote it."""
    bounds = [one.start, one.stop] if one.step is None else [one.start, one.stop, one.step]
    return ":".join("" if b is None else str(b) for b in bounds)
