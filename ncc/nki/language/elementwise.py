"""Functions and operators that work element by element, as `nki.isa` instructions.

Each function allocates a tile in SBUF for its result: of the first tile's dtype, unless `dtype`
says otherwise. On numbers of Python or numpy they compute at once, as numpy does.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ncc.errors import listed
from ncc.nki.isa.operands import not_both_psum, record, same, short
from ncc.nki.isa.operands import tile as operand
from ncc.nki.language.base import (
    NkiTensor,
    cast_to,
    column,
    dims,
    dtype_of,
    filled,
    float32,
    function,
    host,
    is_float,
    isa,
    new,
    not_a_tile,
    spread,
)
from ncc.nki.operators import BITVEC
from ncc.nki.regions import sbuf
from ncc.nki.trace import wrong_shape, wrong_type

Unary = Callable[..., Any]
Binary = Callable[..., Any]

# one activation each
ACTIVATIONS = (
    *("abs", "square", "exp", "log", "sqrt", "rsqrt", "tanh", "sigmoid", "relu", "sign"),
    *("gelu", "gelu_dx", "gelu_apprx_tanh", "gelu_apprx_sigmoid", "gelu_apprx_sigmoid_dx"),
    *("silu", "silu_dx", "softplus", "mish", "erf", "erf_dx", "arctan"),
)
# one tensor_tensor or tensor_scalar each
OPERATORS = (
    *("add", "subtract", "multiply", "maximum", "minimum", "power", "abs_max", "abs_min"),
    *("equal", "not_equal", "greater", "greater_equal", "less", "less_equal"),
    *("logical_and", "logical_or", "logical_xor"),
    *("bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"),
    *("divide", "mod"),
)
DIRECT = frozenset({"divide", "mod"})  # not calls of nki.isa, but the vector engine has both
COMMUTES = frozenset(
    {"add", "multiply", "maximum", "minimum", "equal", "not_equal"}
    | {"logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"}
)


def at_once(name: str, *values: Any) -> Any:
    """What numpy gives for values that are known while tracing."""
    import numpy as np

    # what numpy has no name for
    own: dict[str, Callable[[Any], Any]] = {
        "rsqrt": lambda a: np.reciprocal(np.sqrt(a)),
        "relu": lambda a: np.maximum(a, 0),
        "sigmoid": lambda a: np.reciprocal(np.add(1, np.exp(-a))),
        "silu": lambda a: np.multiply(a, np.reciprocal(np.add(1, np.exp(-a)))),
        "softplus": lambda a: np.logaddexp(a, 0.0),
        "reciprocal": lambda a: np.divide(1.0, a),
    }
    found: Callable[..., Any] | None = own.get(name) or getattr(np, name, None)
    strange = [v for v in values if not host(v)]
    if found is None or strange:
        raise not_a_tile(strange[0] if strange else values[0], name)
    try:
        result = found(*values)
    except (TypeError, ValueError) as fault:
        said = f"nl.{name} of {listed(map(short, values))} has no value: {fault}"
        raise wrong_type("NCC361", said, "give it numbers, or arrays of one shape") from None
    return result.item() if getattr(result, "ndim", 1) == 0 else result


# --- one operand ----------------------------------------------------------------------------------


def activated(name: str) -> Unary:
    """The function that is one activation."""

    @function(name, name)
    def run(x: Any, dtype: Any = None) -> Any:
        if not isinstance(x, NkiTensor):
            return at_once(name, x)
        made = new(x.shape, dtype or x.dtype)
        isa.activation(made, name, x)
        return made

    run.__doc__ = f"{name} of every element."
    return run


FUNCTIONS: dict[str, Any] = {name: activated(name) for name in ACTIVATIONS}


@function("reciprocal", "reciprocal")
def reciprocal(x: Any, dtype: Any = None) -> Any:
    """1/x, on the vector engine."""
    if not isinstance(x, NkiTensor):
        return at_once("reciprocal", x)
    made = new(x.shape, dtype or x.dtype)
    isa.reciprocal(made, x)
    return made


@function("negative")
def negative(x: Any, dtype: Any = None) -> Any:
    """−x."""
    if not isinstance(x, NkiTensor):
        return at_once("negative", x)
    made = new(x.shape, dtype or x.dtype)
    isa.tensor_scalar(made, x, "multiply", -1.0)
    return made


@function("invert", "invert")
def invert(x: Any, dtype: Any = None) -> Any:
    """Every bit of an integer turned round."""
    if not isinstance(x, NkiTensor):
        return at_once("invert", x)
    made = new(x.shape, dtype or x.dtype)
    isa.tensor_scalar(made, x, "invert", None)
    return made


@function("logical_not", "logical_not")
def logical_not(x: Any, dtype: Any = None) -> Any:
    """1 where x is 0, else 0."""
    if not isinstance(x, NkiTensor):
        return at_once("logical_not", x)
    made = new(x.shape, dtype or x.dtype)
    isa.tensor_scalar(made, x, "equal", 0.0)
    return made


@function("prelu", "prelu")
def prelu(x: Any, relu_param: float = 0.0, dtype: Any = None) -> Any:
    """x where it is not negative, else relu_param·x."""
    x = x if isinstance(x, NkiTensor) else at_once("prelu", x)
    low = new(x.shape, float32)
    isa.tensor_scalar(low, x, "minimum", 0.0, op1="multiply", operand1=float(relu_param))
    made = new(x.shape, dtype or x.dtype)
    isa.scalar_tensor_tensor(made, x, "maximum", 0.0, "add", low)
    return made


# --- two operands ---------------------------------------------------------------------------------


def combined(name: str, x: Any, y: Any, dtype: Any = None) -> Any:
    """`x name y` for two tiles of one shape, or a tile and a number or column (P, 1)."""
    one, two = isinstance(x, NkiTensor), isinstance(y, NkiTensor)
    if not one and not two:
        return at_once(name, x, y)
    for value, is_tile in ((x, one), (y, two)):
        if not is_tile and not host(value):
            raise not_a_tile(value, name)
    if not one:
        return with_scalar(name, y, x, True, dtype)
    if not two:
        return with_scalar(name, x, y, False, dtype)
    if x.shape == y.shape:
        return with_tile(name, x, y, dtype or x.dtype)
    if x.shape[0] == y.shape[0] and column(y):
        return with_column(name, x, y, False, dtype or x.dtype)
    if x.shape[0] == y.shape[0] and column(x):
        return with_column(name, y, x, True, dtype or x.dtype)
    hint = "one shape for both; view.broadcast(dim, size) repeats a dimension of size 1"
    said = f"nl.{name} takes tiles of one shape, was given {dims(x)} and {dims(y)}"
    raise wrong_shape("NCC362", said, hint)


def with_tile(name: str, x: NkiTensor, y: NkiTensor, dtype: Any) -> NkiTensor:
    made = new(x.shape, dtype)
    if name == "power":
        x, y = _in_sbuf(x), _in_sbuf(y)
    if name in DIRECT:
        _direct(name, made, x, y)
    elif name in BITVEC:
        kinds = {x.dtype, y.dtype, made.dtype}
        if len(kinds) > 1 and all(not is_float(k) for k in kinds):
            x, y = cast_to(x, made.dtype), cast_to(y, made.dtype)
        isa.tensor_tensor(made, x, y, name)
    else:
        isa.tensor_tensor(made, x, y, name)
    return made


def with_column(name: str, x: NkiTensor, y: NkiTensor, reverse: bool, dtype: Any) -> NkiTensor:
    """A tile with one value for each partition."""
    plain = name not in BITVEC and name not in DIRECT and name != "power"
    if plain and is_float(y.dtype):
        made = new(x.shape, dtype)
        reverse = reverse and name not in COMMUTES
        isa.tensor_scalar(made, x, name, _column(y), reverse0=reverse)
        return made
    wide = spread(y, x.shape, name)
    return with_tile(name, wide, x, dtype) if reverse else with_tile(name, x, wide, dtype)


def _column(y: NkiTensor) -> NkiTensor:
    return y if y.ndim == 2 else y.reshape((y.shape[0], 1))


def with_scalar(name: str, x: NkiTensor, value: Any, reverse: bool, dtype: Any) -> Any:
    """A tile with a number."""
    kind = dtype_of(dtype or x.dtype)
    if name in DIRECT or name == "power":
        wide = filled((x.shape[0], 1), float32, float(value))
        return with_column(name, x, wide, reverse, kind)
    made = new(x.shape, kind)
    if name in BITVEC and not is_float(kind):
        x = cast_to(x, kind) if x.dtype != kind and not is_float(x.dtype) else x
    reverse = reverse and name not in COMMUTES
    isa.tensor_scalar(made, x, name, value, reverse0=reverse)
    return made


def _in_sbuf(x: NkiTensor) -> NkiTensor:
    return x if x.buffer == sbuf else cast_to(x, x.dtype)


def _direct(name: str, made: NkiTensor, x: NkiTensor, y: NkiTensor) -> None:
    to = operand(made, name, "dst")
    one, two = operand(x, name, "x"), operand(y, name, "y")
    same(name, to, one, two)
    not_both_psum(name, one, two)
    args = {"dst": to, "data1": one, "data2": two}
    record("tensor_tensor", args, {"op": name}, engine="vector")


def operator(name: str) -> Binary:
    """The function that is one operator."""

    @function(name, name)
    def run(x: Any, y: Any, dtype: Any = None) -> Any:
        return combined(name, x, y, dtype)

    run.__doc__ = f"x {name} y."
    return run


FUNCTIONS.update({name: operator(name) for name in OPERATORS})
EXTRA = {"reciprocal": reciprocal, "negative": negative, "invert": invert}
FUNCTIONS.update({**EXTRA, "logical_not": logical_not, "prelu": prelu})


@function("fmod", "fmod")
def fmod(x: Any, y: Any, dtype: Any = None) -> Any:
    """The remainder with the sign of x: that of the magnitudes, with the sign put back."""
    if not isinstance(x, NkiTensor) and not isinstance(y, NkiTensor):
        return at_once("fmod", x, y)
    kind = dtype or (x if isinstance(x, NkiTensor) else y).dtype
    rest = combined("mod", _magnitude(x), _magnitude(y), float32)
    signs = FUNCTIONS["sign"](x, float32) if isinstance(x, NkiTensor) else (-1.0 if x < 0 else 1.0)
    return combined("multiply", rest, signs, kind)


def _magnitude(x: Any) -> Any:
    return FUNCTIONS["abs"](x, float32) if isinstance(x, NkiTensor) else abs(x)
