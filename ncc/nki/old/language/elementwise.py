"""Functions of one and two operands, element by element: new tiles, broadcasting, masks."""

from __future__ import annotations

from typing import Any

from ncc.nki import isa
from ncc.nki.dtypes import Dtype, bool_, dtype_of, float32, int32, uint8
from ncc.nki.isa.operands import record
from ncc.nki.isa.operands import tile as operand
from ncc.nki.language import elementwise as today
from ncc.nki.language import rounding
from ncc.nki.language.base import host
from ncc.nki.old.index import Index, Mask
from ncc.nki.old.promote import result_type
from ncc.nki.old.results import (
    alike,
    cast_to,
    column,
    filled,
    fresh,
    function,
    in_sbuf,
    is_column,
    is_tile,
    joined,
    not_both_psum,
    spread,
    tile,
    written,
)
from ncc.nki.old.tile import Tile, adopted
from ncc.nki.old.walks import RuntimeIndex
from ncc.nki.operators import BITVEC, COMPARE, LOGICAL

TESTS = COMPARE | LOGICAL
COMMUTES = today.COMMUTES
# not of the gpsimd engine's reach, or of the scalar column's form
ALONE = frozenset({"power", "mod", "divide"})


def python_value(value: Any) -> Any:
    """A number of NumPy as Python has it."""
    if hasattr(value, "item") and not is_tile(value) and getattr(value, "size", 1) == 1:
        return value.item()
    return value


# --- one operand ----------------------------------------------------------------------------------


def activated(name: str, op: str = "") -> Any:
    @function(name, op or name)
    def run(x: Any, *, dtype: Any = None, mask: Any = None, **ignored: Any) -> Any:
        if host(x):
            return today.at_once(name, x)
        where = f"nl.{name}"
        data = tile(x, where)

        def write(dst: Tile, source: Tile) -> None:
            isa.activation(dst, op or name, source)

        return written(where, data.shape, dtype or data.dtype, mask, write, (data,))

    run.__doc__ = f"{name} of every element."
    return run


def composed(name: str, plain: Any, *, in_psum: bool = True) -> Any:
    """A function that today's API has as a sequence of instructions."""

    @function(name, name)
    def run(x: Any, *, dtype: Any = None, mask: Any = None, **ignored: Any) -> Any:
        if host(x):
            return today.at_once(name, x)
        where = f"nl.{name}"
        data = tile(x, where)
        data = data if in_psum else in_sbuf(data)

        def write(dst: Tile, source: Tile) -> None:
            isa.tensor_copy(dst, plain(source, dtype=dst.dtype))

        return written(where, data.shape, dtype or data.dtype, mask, write, (data,))

    run.__doc__ = f"{name} of every element."
    return run


FUNCTIONS: dict[str, Any] = {name: activated(name) for name in today.ACTIVATIONS}
for _name in ("sin", "cos", "tan", "floor", "ceil", "trunc"):
    FUNCTIONS[_name] = composed(_name, getattr(rounding, _name))


@function("reciprocal", "reciprocal")
def reciprocal(x: Any, *, dtype: Any = None, mask: Any = None, **ignored: Any) -> Any:
    """1/x, on the vector engine."""
    if host(x):
        return today.at_once("reciprocal", x)
    data = tile(x, "nl.reciprocal")
    return written("nl.reciprocal", data.shape, dtype or data.dtype, mask, isa.reciprocal, (data,))


@function("negative", "negative")
def negative(x: Any, *, dtype: Any = None, mask: Any = None, **ignored: Any) -> Any:
    """−x."""
    return combined("multiply", x, -1, dtype, mask) if is_tile(x) else -x


@function("invert", "invert")
def invert(x: Any, *, dtype: Any = None, mask: Any = None, **ignored: Any) -> Any:
    """Every bit of an integer turned round."""
    if host(x):
        return today.at_once("invert", x)
    data = tile(x, "nl.invert")

    def write(dst: Tile, source: Tile) -> None:
        isa.tensor_scalar(dst, source, "invert", None)

    return written("nl.invert", data.shape, dtype or data.dtype, mask, write, (data,))


@function("logical_not", "logical_not")
def logical_not(x: Any, *, dtype: Any = bool_, mask: Any = None, **ignored: Any) -> Any:
    """1 where x is 0, else 0."""
    return combined("equal", x, 0, dtype, mask)


# --- two operands ---------------------------------------------------------------------------------


def combined(name: str, x: Any, y: Any, dtype: Any = None, mask: Any = None) -> Any:
    """`x name y`, dimensions of size 1 repeated on free dimensions and on partitions."""
    where = f"nl.{name}"
    if isinstance(x, Index | RuntimeIndex) or isinstance(y, Index | RuntimeIndex):
        found = _indexed(name, x, y)
        if found is not None:
            return found
    x, y = python_value(_known(x)), python_value(_known(y))
    if not is_tile(x) and not is_tile(y):
        return today.at_once(name, x, y)
    x, y = (v if host(v) else tile(v, where) for v in (x, y))
    if dtype is None and name in TESTS:
        dtype = bool_
    kind = result_type([x, y], dtype)
    if not is_tile(x) or not is_tile(y):
        return _with_number(name, x, y, kind, mask)
    if x.shape == y.shape:
        return _tiles(name, x, y, x.shape, kind, mask)
    if alike(x.shape, y.shape) and x.ndim != y.ndim:
        shape = x.shape if x.ndim < y.ndim else y.shape
        return _tiles(name, spread(x, shape, where), spread(y, shape, where), shape, kind, mask)
    shape = joined(where, x.shape, y.shape)
    for one, other, reverse in ((x, y, False), (y, x, True)):
        if one.shape == shape and is_column(other) and other.shape[0] == shape[0]:
            return _with_column(name, one, other, reverse, kind, mask)
    return _tiles(name, spread(x, shape, where), spread(y, shape, where), shape, kind, mask)


def _known(value: Any) -> Any:
    """An index expression as a tile of its values."""
    if isinstance(value, Index):
        from ncc.nki.old.isa import iota

        return iota(value, dtype=int32)
    if isinstance(value, Mask):
        from ncc.nki.old.language.picking import predicate_of

        return predicate_of(value)
    return value


def _indexed(name: str, x: Any, y: Any) -> Any:
    """A run-time index and a walk from it; None for what is arithmetic on values."""
    if isinstance(x, RuntimeIndex) or isinstance(y, RuntimeIndex):
        return None
    one, other = (x, y) if isinstance(y, Index) else (y, x)
    integer = is_tile(one) and not one.dtype.is_float
    if name == "add" and integer and isinstance(other, Index):
        return RuntimeIndex(tile(one, "an index"), other)
    if name == "subtract" and integer and isinstance(y, Index):
        return RuntimeIndex(tile(x, "an index"), -y)
    return None


def _tiles(name: str, x: Tile, y: Tile, shape: Any, kind: Dtype, mask: Any) -> Tile:
    def write(dst: Tile, one: Tile, two: Tile) -> None:
        tiles_into(name, dst, one, two)

    return written(f"nl.{name}", shape, kind, mask, write, (x, y))


def tiles_into(name: str, dst: Tile, x: Tile, y: Tile) -> None:
    """One instruction for two tiles of one shape."""
    if name == "power":
        isa.tensor_tensor(dst, in_sbuf(x), in_sbuf(y), name)
        return
    if name == "fmod":
        isa.tensor_copy(dst, today.fmod(x, y, dtype=dst.dtype))
        return
    x, y = not_both_psum(x, y)
    if name in ("divide", "mod"):
        to, one, two = operand(dst, name, "dst"), operand(x, name, "x"), operand(y, name, "y")
        args = {"dst": to, "data1": one, "data2": two}
        record("tensor_tensor", args, {"op": name}, engine="vector")
        return
    if name in BITVEC and len({x.dtype, y.dtype, dst.dtype}) > 1:
        x, y = cast_to(x, dst.dtype), cast_to(y, dst.dtype)
    isa.tensor_tensor(dst, x, y, name)


def _with_column(name: str, x: Tile, y: Tile, reverse: bool, kind: Dtype, mask: Any) -> Tile:
    """A tile with one value for each partition."""
    if name in BITVEC or name in ALONE or name == "fmod" or not y.dtype.is_float:
        wide = spread(y, x.shape, f"nl.{name}")
        one, two = (wide, x) if reverse else (x, wide)
        return _tiles(name, one, two, x.shape, kind, mask)
    turn = reverse and name not in COMMUTES

    def write(dst: Tile, source: Tile, value: Tile) -> None:
        isa.tensor_scalar(dst, source, name, column(value), reverse0=turn)

    return written(f"nl.{name}", x.shape, kind, mask, write, (x, y))


def _with_number(name: str, x: Any, y: Any, kind: Dtype, mask: Any) -> Tile:
    data, value, reverse = (x, y, False) if is_tile(x) else (y, x, True)
    if name in ALONE or name == "fmod":
        return _alone(name, data, value, reverse, kind, mask)
    turn = reverse and name not in COMMUTES
    if name in BITVEC and data.dtype != kind and not kind.is_float:
        data = cast_to(data, kind)

    def write(dst: Tile, source: Tile) -> None:
        isa.tensor_scalar(dst, source, name, value, reverse0=turn)

    return written(f"nl.{name}", data.shape, kind, mask, write, (data,))


def _alone(name: str, data: Tile, value: Any, reverse: bool, kind: Dtype, mask: Any) -> Tile:
    """Operators that have no form with a number on the engine that runs them."""
    if name == "power" and not reverse and value in (2, 2.0):
        return FUNCTIONS["square"](data, dtype=kind, mask=mask)
    wide = spread(filled((data.shape[0], 1), float32, float(value)), data.shape, f"nl.{name}")
    one, two = (wide, data) if reverse else (data, wide)
    return _tiles(name, one, two, data.shape, kind, mask)


def operator(name: str, default: Any = None) -> Any:
    @function(name, name)
    def run(x: Any, y: Any, *, dtype: Any = default, mask: Any = None, **ignored: Any) -> Any:
        return combined(name, x, y, dtype, mask)

    run.__doc__ = f"x {name} y."
    return run


for _name in today.OPERATORS:
    FUNCTIONS[_name] = operator(_name, bool_ if _name in TESTS else None)


def loose(name: str) -> Any:
    """`nl.mod` and `nl.fmod` take dtype by position, too."""

    @function(name, name)
    def run(x: Any, y: Any, dtype: Any = None, mask: Any = None, **ignored: Any) -> Any:
        return combined(name, x, y, dtype, mask)

    return run


FUNCTIONS.update({"mod": loose("mod"), "fmod": loose("fmod")})
FUNCTIONS.update(
    {
        "reciprocal": reciprocal,
        "negative": negative,
        "invert": invert,
        "logical_not": logical_not,
    }
)


def operate(name: str, a: Any, b: Any) -> Any:
    """What Python's operators on tiles do."""
    if name in ("negative", "invert", "abs"):
        return FUNCTIONS[name](a)
    if name == "floor_divide":
        kind = result_type([a, b])
        whole = combined("subtract", a, combined("mod", a, b, float32), float32)
        return combined("divide", whole, b, kind)
    return combined(name, a, b)


__all__ = [
    "FUNCTIONS",
    "adopted",
    "combined",
    "dtype_of",
    "fresh",
    "operate",
    "tiles_into",
    "uint8",
]
