"""Which part of a tile a mask leaves: rectangles, known while tracing.

Masks are read by position, with NumPy's rules of broadcasting: dimension d of the comparison is
dimension d of the tile, counted from the last. One comparison that mixes several dimensions gives
several rectangles.
"""

from __future__ import annotations

from itertools import combinations
from typing import TYPE_CHECKING, Any

from ncc.nki.old.index import Index, Mask, whole
from ncc.nki.trace import wrong_shape, wrong_type

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Box = tuple[tuple[int, int], ...]
MOST = 4096  # rectangles of one mask
KIND = "a mask is a comparison of nl.arange or nl.mgrid with numbers, joined with &"


def holds(values: Any, op: str) -> Any:
    """`values op 0`."""
    match op:
        case "less":
            return values < 0
        case "less_equal":
            return values <= 0
        case "greater":
            return values > 0
        case "greater_equal":
            return values >= 0
        case "equal":
            return values == 0
        case _:
            return values != 0


def plain(mask: Any, where: str) -> bool | Mask:
    """The mask, or whether all or nothing is left; NCC372 for what is none."""
    if mask is None:
        return True
    if isinstance(mask, Mask):
        return mask
    number = whole(mask)
    if number is not None and not hasattr(mask, "storage"):
        return bool(number)
    if hasattr(mask, "dtype") and getattr(mask, "ndim", 1) == 0 and not hasattr(mask, "storage"):
        return bool(mask)
    what = "a tensor" if hasattr(mask, "storage") else f"a {type(mask).__name__}"
    said = f"{where} takes mask= as something known while tracing, was given {what}"
    raise wrong_type("NCC372", said, f"{KIND}; choose by data with nl.where or a predicate")


def regions(mask: Any, shape: tuple[int, ...], where: str) -> list[Box] | None:
    """The rectangles that are left of a tile; None for all of it."""
    found = plain(mask, where)
    if found is True:
        return None
    if found is False:
        return []
    import numpy as np

    limits = [(0, n) for n in shape]
    mixed: list[tuple[Index, str]] = []
    for term, op in found.terms:
        one = aligned(term, shape, where)
        moving = [d for d, n in enumerate(shape) if one.steps[d] and n > 1]
        if not moving:
            if not holds(one.offset, op):
                return []
        elif len(moving) == 1:
            d = moving[0]
            ok = np.flatnonzero(holds(one.offset + one.steps[d] * np.arange(shape[d]), op))
            if not len(ok):
                return []
            first, last = int(ok[0]), int(ok[-1]) + 1
            if last - first != len(ok):
                mixed.append((one, op))
            limits[d] = max(limits[d][0], first), min(limits[d][1], last)
        else:
            mixed.append((one, op))
    if any(a >= b for a, b in limits):
        return []
    if not mixed:
        return (
            None
            if all(a == 0 and b == n for (a, b), n in zip(limits, shape, strict=True))
            else [tuple(limits)]
        )
    return _mixed(mixed, tuple(limits), shape, where)


def _mixed(
    terms: list[tuple[Index, str]], limits: Box, shape: tuple[int, ...], where: str
) -> list[Box] | None:
    whole = tuple(b - a for a, b in limits)
    left = _left(terms, limits)
    if left.all():
        return None if whole == shape else [limits]
    boxes = _rectangles(left)
    if len(boxes) > MOST:
        said = f"{where}: the mask leaves {len(boxes)} rectangles of {shape}"
        raise wrong_shape("NCC372", said, "use nisa.affine_select, which compares by element")
    return [_within(limits, box, left.shape) for box in boxes]


def _left(terms: list[tuple[Index, str]], limits: Box) -> NDArray[np.bool_]:
    """Where all terms hold; a dimension that no term walks has one element."""
    import numpy as np

    walked = [any(t.steps[d] for t, _ in terms) for d in range(len(limits))]
    sizes = tuple(b - a if w else 1 for (a, b), w in zip(limits, walked, strict=True))
    left = np.ones(sizes, bool)
    for term, op in terms:
        offset = term.offset + sum(a * s for (a, _), s in zip(limits, term.steps, strict=True))
        left &= holds(Index(sizes, term.steps, offset, term.axes).values(), op)
    return left


def _within(limits: Box, box: Box, sizes: tuple[int, ...]) -> Box:
    """A rectangle of `_left` in the whole tile."""
    found: list[tuple[int, int]] = []
    for (a, b), (low, high), n in zip(limits, box, sizes, strict=True):
        found.append((a, b) if n == 1 else (a + low, a + high))
    return tuple(found)


def folds_of(
    mask: Any, shape: tuple[int, ...], axes: tuple[int, ...], where: str
) -> list[tuple[Box, list[Box]]] | None:
    """For a fold over `axes`: rectangles of what is kept, and what the mask leaves to fold in each.
    Boxes are of the whole tile; None for all of it, one rectangle each time where it can be."""
    boxes = regions(mask, shape, where)
    if boxes is None:
        return None
    groups: dict[Box, list[Box]] = {}
    order = [d for d in range(len(shape)) if d not in axes]
    if len(boxes) > 1:
        boxes = _kept_first(mask, shape, order, axes)
    for box in boxes:
        key = tuple(box[d] for d in order)
        groups.setdefault(key, []).append(box)
    return list(groups.items())


def _kept_first(
    mask: Any, shape: tuple[int, ...], order: list[int], axes: tuple[int, ...]
) -> list[Box]:
    """The rectangles of a mask, cut along the kept dimensions first."""
    turn = [*order, *axes]
    limits = tuple((0, n) for n in shape)
    terms = [(aligned(term, shape, "a fold"), op) for term, op in mask.terms]
    left = _left(terms, limits).transpose(turn)
    found: list[Box] = []
    for box in _rectangles(left):
        back: list[tuple[int, int]] = [(0, 0)] * len(shape)
        for d, span in zip(turn, box, strict=True):
            back[d] = span
        sizes = tuple(left.shape[turn.index(d)] for d in range(len(shape)))
        found.append(_within(limits, tuple(back), sizes))
    return found


def _rectangles(left: NDArray[np.bool_]) -> list[Box]:
    """A cover of the true elements by disjoint rectangles, in order."""
    if left.ndim == 0:
        return [()] if left else []
    found: list[Box] = []
    start = 0
    for k in range(1, len(left) + 1):
        if k < len(left) and (left[k] == left[start]).all():
            continue
        if left[start].any():
            found.extend(((start, k), *rest) for rest in _rectangles(left[start]))
        start = k
    return found


def shortened(term: Index, shape: tuple[int, ...]) -> Index:
    """The comparison without dimensions of size 1, as many as the tile has fewer; the first choice
    that fits it."""
    ones = [d for d, n in enumerate(term.shape) if n == 1]
    for dropped in combinations(ones, len(term.shape) - len(shape)):
        kept = [d for d in range(len(term.shape)) if d not in dropped]
        sizes = tuple(term.shape[d] for d in kept)
        if all(a in (1, b) for a, b in zip(sizes, shape, strict=True)):
            steps = tuple(term.steps[d] for d in kept)
            return Index(sizes, steps, term.offset, tuple(term.axes[d] for d in kept))
    return term


def sole(term: Index, shape: tuple[int, ...]) -> Index | None:
    """A comparison of one index, put where the only dimension of its size is. Indices of several
    `nl.mgrid`s in one place leave their own dimensions behind: the first of two selects free
    elements beside the first of three."""
    long = [d for d, n in enumerate(term.shape) if n > 1]
    places = [d for d, n in enumerate(shape) if long and n == term.shape[long[0]]]
    if len(long) != 1 or len(places) != 1:
        return None
    (d,), (at,) = long, places
    steps = tuple(term.steps[d] if k == at else 0 for k in range(len(shape)))
    axes = tuple(term.axes[d] if k == at else frozenset[int]() for k in range(len(shape)))
    return Index(shape, steps, term.offset, axes)


def aligned(term: Index, shape: tuple[int, ...], where: str) -> Index:
    """A comparison read in the shape of a tile (NCC373)."""
    given, rank = term.shape, len(shape)
    if len(given) > rank:
        term = shortened(term, shape)
        given = term.shape
    fits = len(given) <= rank and all(
        a in (1, b) for a, b in zip(given, shape[rank - len(given) :], strict=True)
    )
    if not fits and (moved := sole(term, shape)) is not None:
        return moved
    if not fits:
        said = f"{where}: the mask compares indices of shape {given}, the tile has {shape}"
        raise wrong_shape("NCC373", said, "build the mask of the indices that select the tile")
    return term.wide(shape)
