"""Affine index tensors: what `nl.arange` and `nl.mgrid` give, and the masks that compare them.

An `Index` is `offset + Σ steps[d]·i[d]` over its shape; sums with numbers and other indices and
multiples by numbers stay of that form, with NumPy's rules of broadcasting. Every loop index is a
plain int while a kernel is traced, so all of it is known then.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from operator import index as as_int
from typing import TYPE_CHECKING, Any, NoReturn

from ncc.nki.old.sequences import items
from ncc.nki.trace import wrong_shape, wrong_type

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Axes = tuple[frozenset[int], ...]
_serial = count()
NO_AXES: frozenset[int] = frozenset()
BRANCH = "nl.arange gives indices, not numbers: use mask=, nl.where or nisa.affine_select"
JOIN = "comparisons of nl.arange, nl.mgrid and numbers, joined with &"


def whole(value: Any) -> int | None:
    """A whole number of any library; None for everything else."""
    try:
        return as_int(value)
    except TypeError:
        return None


class Index:
    """One index tensor. `axes` says which of the `nl.arange`s walk each dimension."""

    __slots__ = ("axes", "offset", "shape", "steps")
    __array_ufunc__ = None  # NumPy's integers leave operators to the index

    def __init__(
        self, shape: tuple[int, ...], steps: tuple[int, ...], offset: int, axes: Axes
    ) -> None:
        self.shape, self.steps, self.offset, self.axes = shape, steps, offset, axes

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        n = 1
        for one in self.shape:
            n *= one
        return n

    def reach(self) -> tuple[int, int]:
        """The least and the largest value."""
        low = high = self.offset
        for n, step in zip(self.shape, self.steps, strict=True):
            far = (n - 1) * step
            low, high = (low + far, high) if far < 0 else (low, high + far)
        return low, high

    def plain_steps(self) -> tuple[int, ...]:
        """The steps, none where there is one element."""
        return tuple(0 if n == 1 else s for n, s in zip(self.shape, self.steps, strict=True))

    def wide(self, shape: tuple[int, ...]) -> Index:
        """The same values read in a shape that it broadcasts to: missing dimensions come first."""
        more = len(shape) - len(self.shape)
        steps = (0,) * more + tuple(
            0 if n == 1 else s for n, s in zip(self.shape, self.steps, strict=True)
        )
        axes = (NO_AXES,) * more + self.axes
        return Index(shape, steps, self.offset, axes)

    def values(self) -> NDArray[np.int64]:
        import numpy as np

        found = np.full(self.shape, self.offset, np.int64)
        for d, (n, step) in enumerate(zip(self.shape, self.steps, strict=True)):
            form = [1] * len(self.shape)
            form[d] = n
            found = found + (np.arange(n) * step).reshape(form)
        return found

    # --- shape --------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Index:
        """`i[:, None]`: new dimensions of size 1; slices cut."""
        given = _several(index)
        shape: list[int] = []
        steps: list[int] = []
        axes: list[frozenset[int]] = []
        offset, k = self.offset, 0
        if Ellipsis in [g for g in given if g is Ellipsis]:
            at = next(n for n, g in enumerate(given) if g is Ellipsis)
            spare = self.ndim - sum(g is not None and g is not Ellipsis for g in given)
            given = (*given[:at], *[slice(None)] * spare, *given[at + 1 :])
        for one in given:
            if one is None:
                shape.append(1)
                steps.append(0)
                axes.append(NO_AXES)
                continue
            if k >= self.ndim:
                said = f"an index tensor of {self.ndim} dimensions takes no more indices"
                raise wrong_shape("NCC313", said, "add a dimension with None")
            n, step = self.shape[k], self.steps[k]
            number = whole(one)
            if number is not None:
                offset += step * (number % n)
            else:
                first, last, by = one.indices(n)
                shape.append(len(range(first, last, by)))
                steps.append(step * by)
                axes.append(self.axes[k])
                offset += step * first
            k += 1
        shape.extend(self.shape[k:])
        steps.extend(self.steps[k:])
        axes.extend(self.axes[k:])
        return Index(tuple(shape), tuple(steps), offset, tuple(axes))

    def __setitem__(self, index: Any, value: Any) -> NoReturn:
        raise wrong_type("NCC324", "an index tensor is assigned to", "make another with nl.arange")

    def reshape(self, *shape: Any) -> Index:
        sizes = _several(shape[0]) if len(shape) == 1 else shape
        return fitted(self.values().reshape(sizes), self, "reshape")

    # --- arithmetic ---------------------------------------------------------------------------

    def _plus(self, other: Any, sign: int) -> Any:
        number = whole(other)
        if number is not None:
            return Index(self.shape, self.steps, self.offset + sign * number, self.axes)
        if isinstance(other, float):
            _fraction(other)
        if not isinstance(other, Index):
            return NotImplemented
        shape = common(self.shape, other.shape)
        a, b = self.wide(shape), other.wide(shape)
        steps = tuple(x + sign * y for x, y in zip(a.steps, b.steps, strict=True))
        axes = tuple(x | y for x, y in zip(a.axes, b.axes, strict=True))
        return Index(shape, steps, a.offset + sign * b.offset, axes)

    def __add__(self, other: Any) -> Any:
        return self._plus(other, 1)

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        return self._plus(other, -1)

    def __rsub__(self, other: Any) -> Any:
        return (-self)._plus(other, 1)

    def __mul__(self, other: Any) -> Any:
        number = whole(other)
        if number is None:
            if isinstance(other, Index):
                if other.size == 1:
                    return self * other.offset
                if self.size == 1:
                    return other * self.offset
                shape = common(self.shape, other.shape)
                found = self.wide(shape).values() * other.wide(shape).values()
                return fitted(found, self + other, "a product")
            if isinstance(other, float):
                _fraction(other)
            return NotImplemented
        steps = tuple(s * number for s in self.steps)
        return Index(self.shape, steps, self.offset * number, self.axes)

    __rmul__ = __mul__

    def __neg__(self) -> Index:
        made: Index = self * -1
        return made

    def __pos__(self) -> Index:
        return self

    def __floordiv__(self, other: Any) -> Any:
        number = whole(other)
        if number is None:
            return NotImplemented
        return fitted(self.values() // number, self, f"// {number}")

    def __truediv__(self, other: Any) -> NoReturn:
        said = f"an index tensor divided by {other!r:.40} with / is no index tensor"
        raise wrong_type("NCC371", said, "indices are whole numbers: divide with //")

    __rtruediv__ = __truediv__

    def __mod__(self, other: Any) -> Any:
        number = whole(other)
        if number is None:
            return NotImplemented
        return fitted(self.values() % number, self, f"% {number}")

    # --- comparison ---------------------------------------------------------------------------

    def _compared(self, other: Any, op: str) -> Any:
        number = whole(other)
        if number is None and not isinstance(other, Index):
            return NotImplemented
        return Mask(((self - other, op),))

    def __lt__(self, other: Any) -> Any:
        return self._compared(other, "less")

    def __le__(self, other: Any) -> Any:
        return self._compared(other, "less_equal")

    def __gt__(self, other: Any) -> Any:
        return self._compared(other, "greater")

    def __ge__(self, other: Any) -> Any:
        return self._compared(other, "greater_equal")

    def __eq__(self, other: object) -> Any:
        return False if other is None else self._compared(other, "equal")

    def __ne__(self, other: object) -> Any:
        return True if other is None else self._compared(other, "not_equal")

    __hash__ = object.__hash__

    # --- what Python may not ask --------------------------------------------------------------

    def __bool__(self) -> NoReturn:
        raise wrong_type("NCC317", "the truth value of an index tensor is not one value", BRANCH)

    def __index__(self) -> NoReturn:
        raise TypeError("an index tensor is no number")

    def __repr__(self) -> str:
        parts = [f"{s}*i{d}" for d, s in enumerate(self.steps) if s]
        return " + ".join([*parts, str(self.offset)]) if parts else str(self.offset)


def _several(value: Any) -> tuple[Any, ...]:
    found = items(value)
    return (value,) if found is None else tuple(found)


def _fraction(value: float) -> NoReturn:
    said = f"an index tensor computes with whole numbers, not with {value}"
    raise wrong_type("NCC313", said, "divide with //")


def common(a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that two index tensors broadcast to."""
    if a == b or not b:
        return a
    if not a:
        return b
    rank = max(len(a), len(b))
    one, two = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    if any(m != n and 1 not in (m, n) for m, n in zip(one, two, strict=True)):
        said = f"index tensors of shapes {a} and {b} do not broadcast"
        raise wrong_shape("NCC313", said, "give each nl.arange a dimension of its own: [:, None]")
    return tuple(n if m == 1 else m for m, n in zip(one, two, strict=True))


def fitted(values: NDArray[np.int64], like: Index, what: str) -> Index:
    """The affine form of values that have one; NCC371 for those that do not."""
    import numpy as np

    start = int(values.flat[0])
    steps: list[int] = []
    for d, n in enumerate(values.shape):
        at = [0] * values.ndim
        at[d] = 1
        steps.append(int(values[tuple(at)]) - start if n > 1 else 0)
    axes = like.axes if len(like.axes) == values.ndim else (NO_AXES,) * values.ndim
    made = Index(values.shape, tuple(steps), start, axes)
    if not np.array_equal(made.values(), values):
        said = f"{what} of an index tensor gives values that no constant steps describe"
        hint = "walk the parts with index tensors of their own, or with a Python loop"
        raise wrong_type("NCC371", said, hint)
    return made


def arange(*args: Any, **ignored: Any) -> Index:
    """`nl.arange(stop)`, `nl.arange(start, stop)`, `nl.arange(start, stop, step)`."""
    numbers = [whole(a) for a in args]
    if not 1 <= len(args) <= 3 or None in numbers:
        said = f"nl.arange takes whole numbers that are known while tracing, not {args!r:.60}"
        raise wrong_type("NCC371", said, "pass one to three ints: start, stop and step")
    steps = range(*(n for n in numbers if n is not None))
    if not len(steps):
        said = f"nl.arange{tuple(numbers)} is empty"
        raise wrong_shape("NCC371", said, "leave the call out when there is nothing to do")
    return Index((len(steps),), (steps.step,), steps.start, (frozenset((next(_serial),)),))


class Grid:
    """What `nl.mgrid[0:p, 0:f]` gives: an index tensor for each dimension, by position and name."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple[Index, ...]) -> None:
        self.parts = parts

    def __iter__(self) -> Iterator[Index]:
        return iter(self.parts)

    def __len__(self) -> int:
        return len(self.parts)

    def __getitem__(self, k: int) -> Index:
        return self.parts[k]

    @property
    def p(self) -> Index:
        return self.parts[0]

    @property
    def x(self) -> Index:
        return self.parts[1]

    @property
    def y(self) -> Index:
        return self.parts[2]

    @property
    def z(self) -> Index:
        return self.parts[3]

    @property
    def w(self) -> Index:
        return self.parts[4]


class _Mgrid:
    def __getitem__(self, index: Any) -> Any:
        given = _several(index)
        parts: list[Index] = []
        for d, one in enumerate(given):
            one = slice(0, one) if whole(one) is not None else one
            made = arange(one.start or 0, one.stop, 1 if one.step is None else one.step)
            form: tuple[Any, ...] = tuple(
                slice(None) if k == d else None for k in range(len(given))
            )
            parts.append(made[form])
        return Grid(tuple(parts)) if len(parts) > 1 else parts[0]


mgrid = _Mgrid()


class Mask:
    """Comparisons `expression op 0` that all hold."""

    __slots__ = ("terms",)
    __array_ufunc__ = None

    def __init__(self, terms: tuple[tuple[Index, str], ...]) -> None:
        self.terms = terms

    def __and__(self, other: Any) -> Any:
        if other is None:
            return self
        number = whole(other)
        if number is not None:
            return self if number else False
        if not isinstance(other, Mask):
            return NotImplemented
        return Mask((*self.terms, *other.terms))

    __rand__ = __and__

    @property
    def shape(self) -> tuple[int, ...]:
        found: tuple[int, ...] = ()
        for term, _ in self.terms:
            found = common(found, term.shape)
        return found

    def _refused(self, word: str) -> NoReturn:
        raise wrong_type("NCC372", f"a mask cannot be built with {word}", JOIN)

    def __or__(self, other: Any) -> NoReturn:
        self._refused("|")

    __ror__ = __or__

    def __xor__(self, other: Any) -> NoReturn:
        self._refused("^")

    __rxor__ = __xor__

    def __invert__(self) -> NoReturn:
        self._refused("~")

    def __bool__(self) -> NoReturn:
        said = "a comparison of index tensors is no single truth value"
        raise wrong_type("NCC317", said, f"{BRANCH}; join masks with &")
