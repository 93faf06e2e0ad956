"""Nothing of the API is left out: operators and functions by name, signature and generated test.

The tables are the reference's sections 6 and 8; the calls of section 7 have theirs in
`test_nki_isa.py` (signatures) and `test_nki_ops_move.py` (each op a meaning and a test).
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path

import pytest
import test_nki_language as functions
import test_nki_ops_arith as arithmetic

import ncc.nki.language as nl
from ncc.nki.operators import spelled

HERE = Path(__file__).parent
TEXTS = {
    f.stem: f.read_text() for f in sorted(HERE.glob("test_nki_*.py")) if "complete" not in f.stem
}

OPERATORS = [
    "invert",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
    "add",
    "multiply",
    "subtract",
    "maximum",
    "minimum",
    "power",
    "abs_max",
    "abs_min",
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "logical_not",
    "abs",
    "rsqrt",
    "reciprocal",
    "square",
    "relu",
    "bypass",
]
FOLDS = [
    "add",
    "multiply",
    "subtract",
    "maximum",
    "minimum",
    "logical_and",
    "logical_or",
    "logical_xor",
]
BIT_FOLDS = ["bitwise_and", "bitwise_or", "bitwise_xor"]
ACTIVATIONS = [
    "copy",
    "square",
    "abs",
    "sign",
    "relu",
    "prelu",
    "sigmoid",
    "tanh",
    "exp",
    "erf",
    "softplus",
    "mish",
    "silu",
    "silu_dx",
    "gelu",
    "gelu_dx",
    "gelu_apprx_tanh",
    "gelu_apprx_sigmoid",
    "gelu_apprx_sigmoid_dx",
    "erf_dx",
    "log",
    "sqrt",
    "rsqrt",
    "reciprocal",
    "sin",
    "arctan",
]

ONE = [
    "abs",
    "square",
    "exp",
    "log",
    "sqrt",
    "rsqrt",
    "tanh",
    "sigmoid",
    "relu",
    "gelu",
    "gelu_dx",
    "gelu_apprx_tanh",
    "gelu_apprx_sigmoid",
    "gelu_apprx_sigmoid_dx",
    "silu",
    "silu_dx",
    "softplus",
    "mish",
    "erf",
    "erf_dx",
    "reciprocal",
    "sin",
    "cos",
    "tan",
    "arctan",
    "sign",
    "negative",
    "ceil",
    "floor",
    "trunc",
    "invert",
    "logical_not",
    "copy",
    "bypass",
]
TWO = [
    "add",
    "subtract",
    "multiply",
    "maximum",
    "minimum",
    "abs_max",
    "abs_min",
    "power",
    "equal",
    "not_equal",
    "greater",
    "greater_equal",
    "less",
    "less_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
    "divide",
    "mod",
    "fmod",
]
OVER = ["sum", "max", "min", "prod", "mean", "var", "all", "average"]
MADE = "buffer=sbuf, name=, address=None"
SIGNATURES = {
    **dict.fromkeys(ONE, "x, dtype=None"),
    **dict.fromkeys(TWO, "x, y, dtype=None"),
    **dict.fromkeys(OVER, "x, axis=None, dtype=None, keepdims=False"),
    "ndarray": f"shape, dtype, {MADE}",
    "zeros": f"shape, dtype, {MADE}",
    "ones": f"shape, dtype, {MADE}",
    "full": f"shape, fill_value, dtype, {MADE}",
    "empty_like": "x, dtype=None, buffer=None, name=, address=None",
    "zeros_like": "x, dtype=None, buffer=None, name=, address=None",
    "rand": "shape, dtype, buffer=sbuf, name=, **more",
    "load": "src, dtype=None",
    "store": "dst, value",
    "load_transpose2d": "src, dtype=None",
    "softmax": "x, axis=-1, dtype=None, **older",
    "rms_norm": "x, w, axis, n, epsilon=1e-06, dtype=None, compute_dtype=None",
    "matmul": "x, y, transpose_x=False",
    "transpose": "x, dtype=None",
    "where": "condition, x, y, dtype=None",
    "dropout": "x, rate, dtype=None",
    "gather_flattened": "data, indices, axis=0, dtype=None",
    "broadcast_to": "x, shape, dtype=None",
    "expand_dims": "x, axis",
    "ds": "start, size",
    "shared_constant": "constant, dtype=None, name=",
    "shared_identity_matrix": "n, dtype=uint8, dst=None",
    "program_id": "axis=0",
    "num_programs": "axes=0",
    "program_ndim": "",
    "device_print": "prefix, tensor=None, *more, **ignored",
    "random_seed": "seed",
    "no_reorder": "*ignored, **more",
    "fori_loop": "lower, upper, body_fun, step=1",
    "while_loop": "init, body_fun",
    "dynamic_range": "start, stop=None, step=1, **ignored",
}
TABLES = {
    *functions.UNARY,
    *functions.BINARY,
    *functions.REDUCE,
    *(x for m in functions.test_bits.pytestmark if m.args[0] == "name" for x in m.args[1]),
}


def written(function) -> str:
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    found = []
    for p in inspect.signature(function).parameters.values():
        word = stars.get(p.kind, "") + p.name
        found.append(word if p.default is p.empty else f"{word}={p.default}")
    return ", ".join(found)


@pytest.mark.parametrize("name", SIGNATURES)
def test_a_function_has_its_signature_and_a_test(name):
    assert written(getattr(nl, name)) == SIGNATURES[name]
    called = re.compile(rf"\bnl\.{name}[(,]")
    assert name in TABLES or any(called.search(text) for text in TEXTS.values())


def test_every_function_of_the_module_is_in_the_table():
    others = {*["bool", "range", "affine_range", "sequential_range", "static_range", "prelu"]}
    others |= {
        name for name in nl.__all__ if name.startswith("is_") or hasattr(getattr(nl, name), "dtype")
    }
    public = {
        n for n in nl.__all__ if callable(getattr(nl, n)) and not inspect.isclass(getattr(nl, n))
    }
    assert public - others == set(SIGNATURES) - (set(SIGNATURES) - public)


def test_every_operator_has_a_definition_in_the_tests():
    tables = {*arithmetic.BINARY, *arithmetic.UNARY, *arithmetic.BITS}
    for name in OPERATORS:
        assert spelled(getattr(nl, name)) == name
        assert name in tables or f'"{name}"' in TEXTS["test_nki_ops_arith"], name
    assert {*FOLDS, *BIT_FOLDS} <= {*arithmetic.FOLDS, *arithmetic.BITS}


def test_every_activation_has_a_definition_in_the_tests():
    for name in ACTIVATIONS:
        assert spelled(getattr(nl, name)) == name
        assert name in arithmetic.FUNCTIONS or f'op="{name}"' in TEXTS["test_nki_ops_arith"], name
