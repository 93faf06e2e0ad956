"""What every call of the older API does: a tile for the result, its dtype, and the mask.

A masked call is recorded once for each rectangle that the mask leaves, with all operands cut alike;
what lies outside is undefined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, wraps
from inspect import signature
from typing import Any

from ncc.errors import listed
from ncc.nki import isa
from ncc.nki.dtypes import dtype_of
from ncc.nki.memory import allocate
from ncc.nki.old.dynamic import gathered, moves_on_chip
from ncc.nki.old.index import Index, Mask
from ncc.nki.old.keywords import passed_over
from ncc.nki.old.loops import scope
from ncc.nki.old.masks import Box, regions
from ncc.nki.old.tile import Tile, adopted
from ncc.nki.old.walks import RuntimeIndex
from ncc.nki.regions import MemoryRegion, psum, sbuf
from ncc.nki.tensor import NkiTensor
from ncc.nki.trace import current, wrong_shape, wrong_type

Write = Callable[..., Any]


def function(name: str, op: str = "") -> Callable[[Any], Any]:
    """A function as kernels see it: its name, and where it is an operator (`op=nl.add`) its
    symbolic one."""

    def made(plain: Any) -> Any:
        named = [
            p.name for p in signature(plain).parameters.values() if p.kind is not p.VAR_KEYWORD
        ]
        known = frozenset(named)

        @wraps(plain)
        def run(*args: Any, **kwargs: Any) -> Any:
            if not kwargs.keys() <= known:
                more = [word for word in kwargs if word not in known]
                passed_over(name, more, named, {*named[: len(args)], *kwargs})
            try:
                return plain(*args, **kwargs)
            except TypeError as wrong:
                trace = wrong.__traceback__
                if trace is None or trace.tb_next is not None:
                    raise  # from inside, not about the arguments
                said = str(wrong).replace(f"{plain.__name__}()", name, 1)
                hint = f"it takes {listed(signature(plain).parameters)}"
                raise wrong_type("NCC330", said, hint) from None

        run.__name__ = run.__qualname__ = name
        if op:
            run.__dict__["nki_op"] = op
        return run

    return made


# --- tiles ----------------------------------------------------------------------------------------


def tile(x: Any, where: str, role: str = "its operand") -> Tile:
    """An operand that must be a tile; NCC361 or NCC374 otherwise."""
    if isinstance(x, Tile):
        return x
    if isinstance(x, NkiTensor):
        return adopted(x)
    kind = type(x).__name__
    if isinstance(x, Index | Mask | RuntimeIndex):
        said = f"{where} takes a tile as {role}, was given an index expression"
        raise wrong_type("NCC361", said, "nisa.iota makes a tile of it")
    if kind == "Blocks":
        said = f"{where} takes one tile as {role}, was given {x!r}"
        raise wrong_type("NCC375", said, "index its block dimensions with numbers first")
    said = f"{where} takes a tile as {role}, was given {x!r:.40} of type {kind}"
    raise wrong_type("NCC361", said, "load a tile with nl.load, or make one with nl.ndarray")


def is_tile(x: Any) -> bool:
    return isinstance(x, NkiTensor)


def fresh(shape: Sequence[int], dtype: Any, buffer: MemoryRegion = sbuf) -> Tile:
    """A tile for a result."""
    sizes = tuple(shape) if len(shape) > 1 else (*shape, 1)
    made = Tile.whole(allocate(sizes, dtype, buffer).storage, dtype_of(dtype))
    current().temporary.add(made.name)
    made.storage.loop = scope()
    if buffer == psum:
        made.storage.written = _marked(made.size)  # one product writes it, and overwrites
    return made


@cache
def _marked(count: int) -> Any:
    """The marks of a PSUM tile that is written whole: one array for all of a size."""
    import numpy as np

    return np.ones(count, np.bool_)


def filled(shape: Sequence[int], dtype: Any, value: float) -> Tile:
    made = fresh(shape, dtype)
    isa.memset(made, value)
    return made


def in_sbuf(x: Tile) -> Tile:
    """The tile, or a copy of it when it is in PSUM."""
    if x.buffer != psum:
        return x
    return copied(x, x.dtype)


def copied(x: Tile, dtype: Any) -> Tile:
    """A copy in SBUF, which holds as much as `x` does."""
    made = fresh(x.shape, dtype)
    isa.tensor_copy(made, x)
    return held(made, x)


def held(made: Tile, x: Tile) -> Tile:
    """`made` is a copy of all of `x`: it is walked alike, and what `x` lacks it lacks."""
    made.axes = x.axes
    if is_whole(x):
        made.storage.left = x.storage.left
    elif x.storage.left is not None:
        made.storage.left = (left_rows(x), *((0, n) for n in x.shape[1:]))
    return made


def is_whole(x: Tile) -> bool:
    """Whether `x` is all of a tile of which a mask left a part."""
    return x.storage.left is not None and x.shape == (x.shape[0], x.row) and not x.offset


def cast_to(x: Tile, dtype: Any) -> Tile:
    """`x` in SBUF with this dtype: itself where it already is, else a copy."""
    wanted = dtype_of(dtype)
    if x.dtype == wanted and x.buffer == sbuf:
        return x
    return copied(x, wanted)


def not_both_psum(a: Any, b: Any) -> tuple[Any, Any]:
    """An instruction reads one operand from PSUM: the second is copied when both are there."""
    if is_tile(a) and is_tile(b) and a.buffer == psum and b.buffer == psum:
        return a, in_sbuf(b)
    return a, b


# --- masks ----------------------------------------------------------------------------------------


def cut(x: Any, box: Box, shape: tuple[int, ...], where: str) -> Any:
    """The part of an operand that belongs to a rectangle of `shape`; numbers stay."""
    if not isinstance(x, Tile):
        return x
    if x.shape == shape:
        return x.cut(box)
    if len(x.shape) == len(shape):
        fits = all(n in (1, m) for n, m in zip(x.shape, shape, strict=True))
        part = tuple((0, 1) if n == 1 else b for n, b in zip(x.shape, box, strict=True))
    else:
        fits = x.shape[0] in (1, shape[0])
        whole = tuple((0, n) for n in x.shape[1:])
        fits = fits and (x.size == x.shape[0] or box[1:] == tuple((0, n) for n in shape[1:]))
        part = ((0, 1) if x.shape[0] == 1 else box[0], *whole)
    if not fits:
        said = f"{where}: a mask over {shape} does not cut an operand of {x.shape}"
        raise wrong_shape("NCC373", said, "index all operands with the same index tensors")
    return x.cut(part)


def from_start(box: Box) -> Box:
    """A rectangle of a fresh tile whose first partition no engine could start at, grown to one
    that it can: what is masked out is undefined anyway."""
    (a, b), *rest = box
    while a and a % (32 if b - a <= 32 else 64 if b - a <= 64 else 128):
        a = a // 32 * 32 if a % 32 else 0 if b - a > 64 or a % 64 == 0 else a // 64 * 64
    return ((a, b), *rest)


def joint(mask: Any, operands: Sequence[Any]) -> Any:
    """The mask of a call and those of its operands (`t[mask]`) together."""
    for x in operands:
        if isinstance(x, Tile) and x.mask is not None:
            mask = x.mask if mask is None else mask & x.mask
    return mask


def written(
    where: str,
    shape: Sequence[int],
    dtype: Any,
    mask: Any,
    write: Write,
    operands: Sequence[Any] = (),
    buffer: MemoryRegion = sbuf,
    once: bool = False,
) -> Tile:
    """A fresh tile that `write(dst, *operands)` fills, inside the mask. `once`: the call folds what
    it computes, so it is one instruction over exactly one rectangle (NCC373)."""
    operands = [gathered(x) if moves_on_chip(x) else x for x in operands]
    made = fresh(shape, dtype, buffer)
    sizes = made.shape
    boxes = regions(joint(mask, operands), sizes, where)
    walked(made, operands)
    if boxes is None:
        write(made, *operands)
        return made
    made.valid = boxes
    if len(boxes) > 1:
        if once:
            said = f"{where}: the mask leaves {len(boxes)} rectangles, and one fold takes one"
            raise wrong_shape("NCC373", said, "fill the rest with nisa.affine_select first")
        boxes = around(boxes, operands, sizes, where)
    for box in boxes:
        grown = box if once else from_start(box)
        write(made.cut(grown), *[cut(x, grown, sizes, where) for x in operands])
    if made.valid and len(made.valid) == 1:
        made.storage.left = made.valid[0]
    return made


def walked(made: Tile, operands: Sequence[Any]) -> None:
    """The result is walked by the index tensors of the first operand of its shape."""
    for x in operands:
        if isinstance(x, Tile) and x.axes and x.shape == made.shape:
            made.axes = x.axes
            return


def left_rows(x: Tile) -> tuple[int, int]:
    """The partitions of a view that the mask of the call that made its tile left."""
    rows = x.shape[0]
    if x.storage.left is None or not x.row:
        return 0, rows
    first = x.offset // x.row
    low, high = x.storage.left[0]
    low, high = max(low - first, 0), min(high - first, rows)
    return (low, high) if low < high else (0, rows)


def around(
    boxes: list[Box], operands: Sequence[Any], shape: tuple[int, ...], where: str
) -> list[Box]:
    """One rectangle around all, where every operand holds elements: what is masked out of a fresh
    tile is undefined anyway."""
    spans = zip(*boxes, strict=True)
    hull = from_start(tuple((min(a for a, _ in s), max(b for _, b in s)) for s in spans))
    for x in operands:
        part = cut(x, hull, shape, where)
        if isinstance(part, Tile) and not part.fits():
            return boxes
    return [hull]


def into(where: str, dst: Tile, mask: Any, write: Write, operands: Sequence[Any] = ()) -> None:
    """`write(dst, *operands)` inside the mask, for a tile that there is already."""
    boxes = regions(joint(mask, (dst, *operands)), dst.shape, where)
    if boxes is None:
        write(dst, *operands)
        return
    for box in boxes:
        write(dst.cut(box), *[cut(x, box, dst.shape, where) for x in operands])


def alike(a: tuple[int, ...], b: tuple[int, ...]) -> bool:
    """Whether two shapes differ by free dimensions of size 1 only."""
    return a[0] == b[0] and [n for n in a[1:] if n != 1] == [n for n in b[1:] if n != 1]


# --- broadcasting ---------------------------------------------------------------------------------


def joined(where: str, *shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The shape that tiles broadcast to, dimensions of size 1 repeated (NCC362)."""
    rank = max(map(len, shapes))
    wide = [_wide(s, rank) for s in shapes]
    found: list[int] = []
    for d in range(rank):
        sizes = sorted({s[d] for s in wide} - {1})
        if len(sizes) > 1:
            shown = " and ".join(map(str, shapes))
            hint = "only dimensions of size 1 repeat"
            raise wrong_shape("NCC362", f"{where} cannot join tiles of {shown}", hint)
        found.append(sizes[0] if sizes else 1)
    return tuple(found)


def _wide(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    """A shape of lower rank: the partitions stay first."""
    return (shape[0], *[1] * (rank - len(shape)), *shape[1:])


def spread(x: Tile, shape: Sequence[int], where: str) -> Tile:
    """`x` read as `shape`: free dimensions repeat by a view, one partition by a copy to all."""
    wanted = tuple(shape)
    if x.shape == wanted:
        return x
    found = x
    if len(found.shape) != len(wanted):
        found = _of_rank(found, wanted, where) if not alike(x.shape, wanted) else _as(x, wanted)
    if found.shape != wanted:
        joined(where, found.shape, wanted)
    if found.shape[0] != wanted[0]:
        found = spread_rows(found, wanted[0])
    if any(m != n for m, n in zip(found.shape, wanted, strict=True)):
        strides = tuple(
            0 if m != n else s for m, n, s in zip(found.shape, wanted, found.strides, strict=True)
        )
        found = found.derived(wanted, strides)
    return found


def _as(x: Tile, wanted: tuple[int, ...]) -> Tile:
    """The same elements in a shape that differs by dimensions of size 1."""
    steps = [s for n, s in zip(x.shape[1:], x.strides[1:], strict=True) if n != 1]
    strides = [x.strides[0], *(1 if n == 1 else steps.pop(0) for n in wanted[1:])]
    return x.derived(wanted, tuple(strides))


def _of_rank(x: Tile, wanted: tuple[int, ...], where: str) -> Tile:
    """The same elements with as many dimensions as `wanted`."""
    rank, shape = len(wanted), x.shape
    if len(shape) < rank:
        gap = rank - len(shape)
        strides = (x.strides[0], *[1] * gap, *x.strides[1:])
        return x.derived(_wide(shape, rank), strides)
    ones = [k for k in range(1, len(shape)) if shape[k] == 1]
    drop = ones[: len(shape) - rank]
    if len(drop) < len(shape) - rank:
        said = f"{where} cannot read a tile of {shape} as {wanted}"
        raise wrong_shape("NCC362", said, "reshape it")
    kept = [k for k in range(len(shape)) if k not in drop]
    return x.derived(tuple(shape[k] for k in kept), tuple(x.strides[k] for k in kept))


def spread_rows(x: Tile, rows: int) -> Tile:
    """A tile whose `rows` partitions all hold the one of `x`."""
    made = fresh((rows, *x.shape[1:]), x.dtype)
    for start in range(0, rows, 32):
        isa.nc_stream_shuffle(made[start : min(start + 32, rows)], x, [0] * 32)
    return made


def is_column(x: Any) -> bool:
    """Whether a tile holds one value in each partition."""
    return isinstance(x, NkiTensor) and x.size == x.shape[0]


def column(x: Tile) -> Tile:
    return x if x.ndim == 2 else x.reshape((x.shape[0], 1))
