"""Which operator a kernel means: `nl.add`, `np.add`, `np.max`, `max` or `"add"` to its one name.

The names are NKI's own (`add`, `maximum`, `gelu_apprx_tanh`); they stay as they are until BIR.
"""

from __future__ import annotations

from typing import Any

from ncc.errors import listed, nearest
from ncc.nki.trace import NkiTypeError, invalid, wrong_type

BITVEC = frozenset(
    {"invert", "bitwise_and", "bitwise_or", "bitwise_xor", "left_shift", "right_shift"}
)
COMPARE = frozenset({"equal", "not_equal", "greater", "greater_equal", "less", "less_equal"})
LOGICAL = frozenset({"logical_and", "logical_or", "logical_xor", "logical_not"})
# one operand: a `tensor_scalar` that applies them reads no operand
UNARY = frozenset(
    {"abs", "rsqrt", "reciprocal", "square", "relu", "sqrt", "invert", "logical_not", "bypass"}
)
SIMULATED = frozenset({"fmod"})  # the simulator has it, no engine has
ARITHMETIC = (
    frozenset({"add", "subtract", "multiply", "maximum", "minimum", "power", "abs_max", "abs_min"})
    | COMPARE
    | LOGICAL
    | (UNARY - BITVEC)
    | {"divide", "mod"}
    | SIMULATED
)
ALU = BITVEC | ARITHMETIC
REDUCE = frozenset(
    {"add", "subtract", "multiply", "maximum", "minimum"}
    | {"bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or", "logical_xor"}
)
ACTIVATIONS = frozenset(
    {"copy", "square", "abs", "sign", "relu", "prelu", "sigmoid", "tanh", "exp", "erf"}
    | {"softplus", "mish", "silu", "silu_dx", "gelu", "gelu_dx", "gelu_apprx_tanh"}
    | {"gelu_apprx_sigmoid", "gelu_apprx_sigmoid_dx", "erf_dx", "log", "sqrt", "rsqrt"}
    | {"reciprocal", "sin", "arctan"}
)
KNOWN = ALU | ACTIVATIONS | {"average"}

# other spellings: numpy's, Python's, the tile functions that fold, the older API's
ALIASES = {
    "max": "maximum",
    "amax": "maximum",
    "fmax": "maximum",
    "min": "minimum",
    "amin": "minimum",
    "fmin": "minimum",
    "sum": "add",
    "prod": "multiply",
    "mul": "multiply",
    "sub": "subtract",
    "pow": "power",
    "float_power": "power",
    "mean": "average",
    "all": "logical_and",
    "any": "logical_or",
    "absolute": "abs",
    "fabs": "abs",
    "bitwise_not": "invert",
    "bitwise_invert": "invert",
    "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
    "logical_shift_left": "left_shift",
    "logical_shift_right": "right_shift",
    "true_divide": "divide",
    "remainder": "mod",
    "identity": "copy",
    "positive": "copy",
    "swish": "silu",
    "atan": "arctan",
    "sigmoid_linear_unit": "silu",
}


def spelled(op: Any) -> str:
    """The operator's one name; "" when `op` names none."""
    word = getattr(op, "nki_op", None)
    if word is None:
        word = op if isinstance(op, str) else getattr(op, "__name__", None)
    if not isinstance(word, str):
        return ""
    name = ALIASES.get(word, word)
    return name if name in KNOWN else ""


def symbol(op: Any, call: str, role: str, among: frozenset[str]) -> str:
    """The name of a required operator; it must be one of `among` (NCC341)."""
    name = spelled(op)
    if name in among:
        return name
    if not name:
        raise unknown(op, call, role, among)
    if name in ACTIVATIONS - ALU and among <= ALU:
        hint = f"functions of one number go through nisa.activation(op=nl.{name})"
    elif name in ALU - ACTIVATIONS and among <= ACTIVATIONS:
        hint = f"operators of two numbers go through nisa.tensor_tensor(op=nl.{name})"
    elif len(among) < 12:
        hint = f"it takes {listed(sorted(among))}"
    else:
        hint = f"it takes operators such as {example(among)}"
    raise invalid("NCC341", f"{call} cannot apply {name} as {role}", hint)


def unknown(op: Any, call: str, role: str, among: frozenset[str]) -> NkiTypeError:
    """`op` is no operator at all: ready to raise."""
    shown = getattr(op, "nki_op", None) or getattr(op, "__name__", None) or repr(op)
    hint = nearest(str(shown).rpartition(".")[2], among) or f"pass one of nl's: {example(among)}"
    return wrong_type("NCC341", f"{call} was given {shown} as {role}, which is no operator", hint)


def example(among: frozenset[str]) -> str:
    return ", ".join(f"nl.{x}" for x in sorted(among)[:4])


def optional(op: Any, call: str, role: str, among: frozenset[str]) -> str:
    """As `symbol`; None is "" (the operator was left out)."""
    return "" if op is None else symbol(op, call, role, among)
