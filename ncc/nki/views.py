"""The view methods of a tensor: other walks over the same elements, nothing copied.

Dimension 0 of an on-chip tensor is its partitions; no view may move, merge or drop it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index as as_int
from typing import Any, Self

from ncc.ir.kernel import Rows, Scalar
from ncc.nki.dtypes import held
from ncc.nki.layout import Ints, filled, reshaped, row_major
from ncc.nki.tensor_base import Move, TensorBase, register_of
from ncc.nki.trace import current, invalid, wrong_shape, wrong_type

CHOSEN = "its rows are chosen one by one at run time"
ONCE = "slice the starts instead, or copy the rows to a tile first"
TURN = "transpose with nisa.nc_transpose or nisa.dma_transpose"
KEPT = "dimension 0 of an on-chip tensor is its partitions"


def whole_number(value: Any, what: str) -> int:
    """An int of any integer type, NumPy's included; NCC313 for anything else."""
    try:
        return as_int(value)
    except TypeError:
        hint = "divide with //" if isinstance(value, float) else "pass an int"
        said = f"{what} must be a whole number, not {value!r:.60}"
        if register_of(value) is not None:
            hint = "a size is known while tracing: a register can only be a start, as nl.ds(r, 2)"
        raise wrong_type("NCC313", said, hint) from None


def several(value: Any, kind: type = Sequence) -> tuple[Any, ...]:
    """A sequence as a tuple; anything else as a tuple of one."""
    return tuple(value) if isinstance(value, kind) else (value,)


def ints(values: Sequence[Any], what: str) -> Ints:
    """Several of them, given one by one or as one sequence."""
    one = len(values) == 1
    return tuple(whole_number(v, what) for v in (several(values[0]) if one else values))


class Views(TensorBase):
    __slots__ = ()

    def access(self, role: str = "", *, compute: bool = True, write: bool = False) -> Any:
        raise TypeError("a tensor knows its access")  # NkiTensor does

    # --- dimensions ---------------------------------------------------------------------------

    def _dim(self, dim: Any, call: str, *, first: bool = True, end: int = 0) -> int:
        """A dimension's number, counted from the end when negative; NCC314 when there is none."""
        rank = len(self.shape) + end
        k = whole_number(dim, f"{call}: the dimension")
        if not -rank <= k < rank:
            said = f"{call}: {self.shown} has {len(self.shape)} dimensions, not one numbered {k}"
            raise wrong_shape("NCC314", said, f"dimensions are numbered 0 to {rank - 1}")
        k %= rank
        if k == 0 and not first and self.row:
            raise self._refused(f"{call}({k})", KEPT, "choose another dimension, or copy by DMA")
        if k == 0 and self.rows_dim and not first:
            raise self._refused(f"{call}({k})", CHOSEN, ONCE)
        return k

    def _refused(self, call: str, why: str, hint: str = "") -> Exception:
        dims = " x ".join(map(str, self.shape))
        return wrong_shape("NCC316", f"{call} of {self.shown} ({dims}): {why}", hint)

    def _without(self, k: int, offset: int, moves: tuple[Move, ...] | None = None) -> Self:
        """Dimension k taken at one index. On chip dimension 0 stays with size 1, and the result
        has at least two dimensions; off chip at least one."""
        shape, strides = self.shape, self.strides
        if (self.row and k == 0) or len(shape) <= (2 if self.row else 1):
            shape = (*shape[:k], 1, *shape[k + 1 :])
        else:
            shape = shape[:k] + shape[k + 1 :]
            strides = strides[:k] + strides[k + 1 :]
        return self.derived(shape, strides, offset, moves)

    def slice(self, dim: int, start: Any, end: Any, step: int = 1) -> Self:
        """`start` to `end` (not included) of one dimension."""
        k = self._dim(dim, "slice")
        a, b, s = ints((start, end, step), "slice: a bound")
        if not 0 <= a < b <= self.shape[k] or s < 1:
            said = f"slice({k}, {a}, {b}, {s}) of {self.shown}: dimension {k} has {self.shape[k]}"
            hint = "0 <= start < end <= size and step >= 1; nothing is clamped"
            raise wrong_shape("NCC314", said, hint)
        return self._cut(k, a, (b - a + s - 1) // s, s)

    def _cut(self, k: int, start: int, count: int, step: int) -> Self:
        shape, strides = self.shape, self.strides
        if k == 0 and (start or count != shape[0]) and self.rows_dim:
            raise self._refused("a slice", CHOSEN, ONCE)
        if k == 0 and step != 1 and self.row and count > 1:
            said = f"a slice of {self.shown}: partitions are taken one after the other, step {step}"
            raise invalid("NCC315", said, "a step of 1 on dimension 0; use DMA to gather rows")
        new = (*strides[:k], strides[k] * step, *strides[k + 1 :])
        return self.derived(
            (*shape[:k], count, *shape[k + 1 :]), new, self.offset + start * strides[k]
        )

    def select(self, dim: int, index: Any) -> Self:
        """One index of a dimension: a number, or a register or 1x1 tensor read at run time."""
        k = self._dim(dim, "select")
        if isinstance(index, TensorBase) or register_of(index) is not None:
            if any(isinstance(m, Scalar) for m in self.moves):
                why = "a view has one run-time index"
                raise self._refused("select", why, "add the two indices in a register")
            return self.selected(k, index)
        i = whole_number(index, "select: the index")
        size = self.shape[k]
        if not -size <= i < size:
            said = f"select({k}, {i}) of {self.shown}: dimension {k} has {size}"
            raise wrong_shape("NCC314", said, f"an index is at most {size - 1}")
        return self._without(k, self.offset + i % size * self.strides[k])

    def selected(self, k: int, index: Any) -> Self:
        """Dimension k at an index that is read when the instruction runs."""
        if k == 0 and self.row:
            raise self._refused("a run-time index on dimension 0", KEPT, "move the rows by DMA")
        if k == 0 and self.rows_dim:
            raise self._refused("a run-time index", CHOSEN, ONCE)
        move = Scalar(scalar_source(index), self.strides[k], self.shape[k])
        return self._without(k, self.offset, (*self.moves, move))

    def dynamic_cut(self, k: int, start: Any, count: int) -> Self:
        """`count` elements of dimension k from a start that is read at run time."""
        if k == 0 and self.row:
            raise self._refused("a run-time start on dimension 0", KEPT, "move the rows by DMA")
        if not 0 < count <= self.shape[k]:
            said = f"{count} elements of dimension {k} of {self.shown}, which has {self.shape[k]}"
            raise wrong_shape("NCC314", said, f"take 1 to {self.shape[k]} elements")
        move = Scalar(scalar_source(start), self.strides[k], self.shape[k] - count + 1)
        shape = (*self.shape[:k], count, *self.shape[k + 1 :])
        return self.derived(shape, self.strides, None, (*self.moves, move))

    def vector_select(self, dim: int, vector_offset: Any) -> Self:
        """Row `vector_offset[r]` of dimension 0 as row r of the result; HBM only."""
        if self._dim(dim, "vector_select") != 0 or self.row:
            why = "rows are chosen on dimension 0 of an HBM tensor"
            raise self._refused("vector_select", why, "on chip: nisa.nc_n_gather")
        source, count = vector_source(vector_offset)
        if count != source.shape[0]:
            why = f"it takes one column of starts, not {source.shape[1:]}"
            raise self._refused("vector_select", why, "pass them as a (rows, 1) tile")
        move = Rows(source, self.strides[0], self.shape[0])
        shape, strides = (count, *self.shape[1:]), (0, *self.strides[1:])
        if self.rows_dim:
            raise self._refused("vector_select", CHOSEN, ONCE)
        return self.derived(shape, strides, None, (*self.moves, move))

    def permute(self, *dims: Any) -> Self:
        """The dimensions in another order."""
        order = tuple(self._dim(d, "permute") for d in ints(dims, "permute: a dimension"))
        if sorted(order) != list(range(len(self.shape))):
            hint = "write every dimension once"
            raise self._refused(f"permute{order}", "each dimension stands in it once", hint)
        if order[0] != 0 and (self.row or self.rows_dim):
            why, hint = (KEPT, TURN) if self.row else ("dimension 0 stays first", "")
            raise self._refused(f"permute{order}", why, hint)
        return self.derived(
            tuple(self.shape[k] for k in order), tuple(self.strides[k] for k in order)
        )

    def broadcast(self, dim: int, size: int) -> Self:
        """A dimension of size 1 read `size` times."""
        k = self._dim(dim, "broadcast", first=False)
        n = whole_number(size, "broadcast: the size")
        if self.shape[k] != 1 or n < 1:
            why = f"dimension {k} has {self.shape[k]} elements, one can be repeated"
            hint = "slice the element that is repeated, or add a dimension with expand_dim"
            raise self._refused(f"broadcast({k}, {n})", why, hint)
        return self.derived(
            (*self.shape[:k], n, *self.shape[k + 1 :]),
            (*self.strides[:k], 0, *self.strides[k + 1 :]),
        )

    def broadcast_to(self, *shape: Any) -> Self:
        """Every dimension of size 1 repeated to the given size; the rank stays."""
        new = ints(shape, "broadcast_to: a size")
        if len(new) != len(self.shape):
            raise self._refused(f"broadcast_to{new}", "the rank stays", "expand_dim first")
        made = self
        for k, n in enumerate(new):
            if n != made.shape[k]:
                made = made.broadcast(k, n)
        return made

    def expand_dim(self, dim: int) -> Self:
        """A new dimension of size 1."""
        k = self._dim(dim, "expand_dim", first=False, end=1)
        shape, strides = self.shape, self.strides
        step = strides[k] * shape[k] if k < len(shape) else 1
        return self.derived((*shape[:k], 1, *shape[k:]), (*strides[:k], step, *strides[k:]))

    def squeeze_dim(self, dim: int) -> Self:
        """A dimension of size 1 taken out."""
        k = self._dim(dim, "squeeze_dim", first=False)
        if self.shape[k] != 1:
            why = f"dimension {k} has {self.shape[k]} elements"
            raise self._refused(f"squeeze_dim({k})", why, "only a dimension of 1 can go")
        return self._without(k, self.offset)

    def reshape_dim(self, dim: int, shape: Any) -> Self:
        """One dimension split into several; one of them may be −1."""
        k = self._dim(dim, "reshape_dim", first=False)
        wish = ints((shape,), "reshape_dim: a size")
        parts = filled(wish, self.shape[k])
        if parts is None or not parts:
            why = f"dimension {k} has {self.shape[k]} elements"
            raise self._refused(f"reshape_dim({k}, {wish})", why, "keep the product of the sizes")
        steps = tuple(n * self.strides[k] for n in row_major(parts))
        return self.derived(
            (*self.shape[:k], *parts, *self.shape[k + 1 :]),
            (*self.strides[:k], *steps, *self.strides[k + 1 :]),
        )

    def flatten_dims(self, start_dim: int, end_dim: int) -> Self:
        """Neighbouring dimensions (both named ones included) as one; they must lie contiguous."""
        a = self._dim(start_dim, "flatten_dims", first=False)
        b = self._dim(end_dim, "flatten_dims")
        if a > b:
            why = "the first stands before the last"
            raise self._refused(f"flatten_dims({a}, {b})", why, "name the smaller one first")
        total = math.prod(self.shape[a : b + 1])
        steps = reshaped(self.shape[a : b + 1], self.strides[a : b + 1], (total,))
        if steps is None:
            why = f"strides {self.strides[a : b + 1]} do not follow one another"
            raise self._refused(f"flatten_dims({a}, {b})", why, "copy it to a tile of its own")
        return self.derived(
            (*self.shape[:a], total, *self.shape[b + 1 :]),
            (*self.strides[:a], *steps, *self.strides[b + 1 :]),
        )

    def reshape(self, *shape: Any) -> Self:
        """The same elements in another shape; on chip the partitions stay."""
        wish = ints(shape, "reshape: a size")
        new = filled(wish, self.size)
        if new is None:
            why = f"it has {self.size} elements, the new shape {math.prod(wish)}"
            if -1 in wish:
                why = f"its {self.size} elements are no multiple of the other sizes"
            raise self._refused(f"reshape{wish}", why, "keep the number of elements")
        if new == self.shape:
            return self
        if self.row and (len(new) < 2 or new[0] != self.shape[0]):
            raise self._refused(f"reshape{new}", KEPT, "keep it; reshape the others")
        if self.rows_dim and new[0] != self.shape[0]:
            raise self._refused(f"reshape{new}", CHOSEN, ONCE)
        apart = 1 if self.row or self.rows_dim else 0
        steps = reshaped(self.shape[apart:], self.strides[apart:], new[apart:])
        if steps is None:
            why = f"its strides {self.strides} do not allow it without a copy"
            raise self._refused(f"reshape{new}", why, "copy it to a tile of its own")
        return self.derived(new, (*self.strides[:apart], *steps), base=new)

    def rearrange(self, src_pattern: Any, dst_pattern: Any, fixed_sizes: Any = None) -> Self:
        """`rearrange((('b', 's'), 'd'), ('b', 'd', 's'), {'b': 2})`: split, reorder, merge."""
        sizes = {str(k): whole_number(v, f"size {k}") for k, v in dict(fixed_sizes or {}).items()}
        source, wanted = _groups(src_pattern), _groups(dst_pattern)
        names = [n for group in source for n in group]
        order = [n for group in wanted for n in group]
        call = f"rearrange({src_pattern!r}, {dst_pattern!r})"
        if len(source) != len(self.shape):
            why = f"the pattern has {len(source)} dimensions"
            raise self._refused(call, why, "write a name or group for each dimension")
        if len(set(names)) != len(names) or sorted(names) != sorted(order):
            why = "each name stands once on either side"
            raise self._refused(call, why, "use other names where they repeat")
        made = self
        for k in range(len(source) - 1, -1, -1):
            if len(source[k]) != 1:
                made = made.reshape_dim(k, tuple(sizes.get(n, -1) for n in source[k]))
            elif sizes.get(source[k][0], made.shape[k]) != made.shape[k]:
                why = f"{source[k][0]} has {made.shape[k]} elements, not {sizes[source[k][0]]}"
                raise self._refused(call, why, "correct fixed_sizes")
        made = made.permute(tuple(names.index(n) for n in order))
        for k in range(len(wanted)):
            if len(wanted[k]) > 1:
                made = made.flatten_dims(k, k + len(wanted[k]) - 1)
            elif not wanted[k]:
                made = made.expand_dim(k)
        return made

    def view(self, dtype: Any, shape: Any = None) -> Self:
        """The same bytes as another type: the last dimension grows or shrinks with the size."""
        new = held(dtype, current("view").target)
        old, size = self.dtype.size, new.size
        last = self.shape[-1]
        call = f"view({new})"
        if old == size:
            made = self.retyped(new, self.shape, self.strides, self.offset, self.base)
            return made if shape is None else made.reshape(shape)
        if self.moves:
            raise self._refused(
                call, "a view with a run-time index keeps its type", "view it before"
            )
        if self.strides[-1] != 1 and last != 1:
            why = "its last dimension is not contiguous"
            raise self._refused(call, why, "copy it to a tile of its own")
        steps = self.strides[:-1]
        if size > old and any(n % (size // old) for n in (last, self.offset, *steps)):
            why = f"{last} elements of {self.dtype} from {self.offset}, strides {self.strides}"
            why += f", do not lie on whole elements of {size} bytes"
            raise self._refused(call, why, f"slice and step by multiples of {size // old}")
        made = self.retyped(
            new,
            (*self.shape[:-1], last * old // size),
            (*(n * old // size for n in steps), 1),
            self.offset * old // size,
            (*self.base[:-1], self.base[-1] * old // size),
        )
        return made if shape is None else made.reshape(shape)

    def reinterpret_cast(self, dtype: Any) -> Self:
        return self.view(dtype)

    def indirect(self, index: Any, num_elem: Any = None) -> Any:
        """Elements that an index tile chooses, (partitions, num_elem): an operand of trn3."""
        from ncc.nki.indirect import Gathered

        return Gathered.of(self, index, num_elem)

    # --- queries ------------------------------------------------------------------------------

    def is_contiguous(self) -> bool:
        """Whether the view walks neighbouring elements in order (on chip: in each partition)."""
        first = 1 if self.row else 0
        shape, strides = self.shape[first:], self.strides[first:]
        steps = zip(shape, strides, row_major(shape), strict=True)
        return not self.moves and all(n == 1 or a == b for n, a, b in steps)

    def is_indirect(self) -> bool:
        return bool(self.moves)

    def get_pattern(self) -> list[list[int]]:
        """`[[stride, count], ...]`, slowest first."""
        return self.pattern


def _groups(pattern: Any) -> list[tuple[str, ...]]:
    if isinstance(pattern, str):
        pattern = pattern.split()
    return [(g,) if isinstance(g, str) else tuple(map(str, g)) for g in pattern]


def scalar_source(index: Any) -> Any:
    """What a run-time index is read from: a register, or the access of one integer in SBUF."""
    reg = register_of(index)
    if reg is not None:
        return reg
    if not isinstance(index, Views):
        said = f"a run-time index is a register or a 1x1 tensor, not {index!r:.60}"
        raise wrong_type("NCC322", said, "load it with nisa.register_load first")
    if index.size != 1 or "int" not in index.dtype.bir:
        dims = " x ".join(map(str, index.shape))
        said = f"the run-time index {index.shown} is {index.dtype} {dims}"
        hint = "it is one integer: copy it into a (1, 1) int32 tile in SBUF"
        raise wrong_shape("NCC322", said, hint)
    return index.access("run-time index", compute=False)


def vector_source(index: Any) -> tuple[Any, int]:
    """The access of one integer a row, and how many rows there are.

    Of several columns the rows run down the first one, then the second.
    """
    if not isinstance(index, Views) or len(index.shape) < 2 or not index.row:
        said = f"one start a row is read from a (rows, 1) integer tile in SBUF, not {index!r:.80}"
        raise wrong_shape("NCC322", said, "load the starts into such a tile first")
    if "int" not in index.dtype.bir:
        said = f"the row starts {index.shown} are {index.dtype}, not integers"
        raise wrong_type("NCC322", said, "convert them with nisa.tensor_copy into an int32 tile")
    return index.access("row starts", compute=False), index.size
