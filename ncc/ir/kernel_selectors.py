"""NKI's names of operators and functions, and what BIR calls them.

`UNARY` are operators of one operand: BIR has some as ALU codes of their own; the others are said
with two operands (`square`: x mult x).
"""

from __future__ import annotations

ALU: dict[str, str] = {
    "bypass": "bypass",
    "copy": "bypass",
    "add": "add",
    "subtract": "subtract",
    "multiply": "mult",
    "divide": "divide",
    "maximum": "max",
    "minimum": "min",
    "abs_max": "abs_max",
    "abs_min": "abs_min",
    "power": "pow",
    "mod": "mod",
    "equal": "is_equal",
    "not_equal": "not_equal",
    "greater": "is_gt",
    "greater_equal": "is_ge",
    "less": "is_lt",
    "less_equal": "is_le",
    "logical_and": "logical_and",
    "logical_or": "logical_or",
    "logical_xor": "logical_xor",
    "abs": "abs",
    "rsqrt": "rsqrt",
    "bitwise_and": "bitwise_and",
    "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor",
    "invert": "bitwise_not",
    "left_shift": "logical_shift_left",
    "right_shift": "logical_shift_right",
}

UNARY = frozenset(
    {"abs", "rsqrt", "reciprocal", "square", "relu", "sqrt"}
    | {"invert", "logical_not", "bypass", "copy"}
)

BITVEC = frozenset(
    ["bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"]
)

ACTIVATION: dict[str, str] = {
    "copy": "Copy",
    "square": "Square",
    "abs": "Abs",
    "sign": "Sign",
    "relu": "Relu",
    "prelu": "Prelu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "exp": "Exp",
    "erf": "Erf",
    "softplus": "Softplus",
    "mish": "Mish",
    "silu": "Silu",
    "silu_dx": "Derivative_silu",
    "gelu": "Gelu",
    "gelu_dx": "Derivative_Gelu",
    "gelu_apprx_tanh": "Gelu_apprx_tanh",
    "gelu_apprx_sigmoid": "Gelu_apprx_sigmoid",
    "gelu_apprx_sigmoid_dx": "Derivative_Gelu_apprx_sigmoid",
    "erf_dx": "Derivative_Erf",
    "log": "Ln",
    "sqrt": "Sqrt",
    "rsqrt": "Rsqrt",
    "reciprocal": "Reciprocal",
    "sin": "Sin",
    "arctan": "Arctan",
}
