"""The numbers that stand for words in a bundle: dtypes, operations, functions, modes.

Each table maps the word to its wire code (ISA reference, section 6). Records hold codes; the
listing shows words.
"""

from __future__ import annotations

from ncc.target import Target

# BIR dtype -> wire tag. Several dtypes share a tag: the tag's own name is the one in TAGS.
DTYPE = {
    "uint64": 0x1,
    "int8": 0x2,
    "uint8": 0x3,
    "int16": 0x4,
    "uint16": 0x5,
    "bfloat16": 0x6,
    "float16": 0x7,
    "int32": 0x8,
    "uint32": 0x9,
    "float32": 0xA,
    "float32r": 0xB,
    "int64": 0xC,
    "float8e3": 0xD,
    "float8e4": 0xE,
    "float8_e4m3fn": 0xE,
    "float8e5": 0xF,
}
TAGS = {tag: name for name, tag in reversed(DTYPE.items())}
TAG_SIZE = {  # bytes of an element
    **dict.fromkeys((0x2, 0x3, 0xD, 0xE, 0xF), 1),
    **dict.fromkeys((0x4, 0x5, 0x6, 0x7), 2),
    **dict.fromkeys((0x8, 0x9, 0xA, 0xB), 4),
    **dict.fromkeys((0x1, 0xC), 8),
}


def dtype_of(tag: int, target: Target) -> str:
    """The dtype that a tag means on a machine: 0E is float8_e4m3fn where that is a type."""
    return "float8_e4m3fn" if tag == 0xE and target.fp8fn else TAGS[tag]


ALU = {
    "bypass": 0x00,
    "bitwise_not": 0x01,
    "arith_shift_left": 0x02,
    "arith_shift_right": 0x03,
    "add": 0x04,
    "subtract": 0x05,
    "mult": 0x06,
    "divide": 0x07,
    "max": 0x08,
    "min": 0x09,
    "bitwise_and": 0x0A,
    "bitwise_or": 0x0B,
    "bitwise_xor": 0x0C,
    "logical_and": 0x0D,
    "logical_or": 0x0E,
    "logical_xor": 0x0F,
    "logical_shift_left": 0x10,
    "logical_shift_right": 0x11,
    "is_equal": 0x12,
    "is_gt": 0x13,
    "is_ge": 0x14,
    "is_le": 0x15,
    "is_lt": 0x16,
    "abs_diff": 0x17,
    "not_equal": 0x18,
    "abs": 0x19,
    "pow": 0x1A,
    "mod": 0x1B,
    "crc32": 0x1C,
    "rsqrt": 0x1D,
    "add_int": 0xC4,
    "mult_int": 0xC5,
    "subtract_int": 0xC6,
    "divide_int": 0xC7,
    "mod_int": 0xC8,
    "is_equal_int": 0xC9,
    "not_equal_int": 0xCA,
    "max_int": 0xCF,
    "min_int": 0xD0,
    "is_gt_int": 0xD1,
    "is_ge_int": 0xD2,
    "is_le_int": 0xD3,
    "is_lt_int": 0xD4,
}
GENERAL_ARITH = frozenset({0, *range(4, 7), 8, 9, *range(0xD, 0x10), *range(0x12, 0x1A)})
GENERAL_BITVEC = frozenset({0, 1, 2, 3, 0xA, 0xB, 0xC, 0x10, 0x11})
EXTRA_ARITH = frozenset({0x07, 0x1A, 0x1B, 0x1D})  # accepted where ncc's machine has them
INTEGER_BAND = frozenset(range(0xC4, 0xE2))

ACT_FUNC = {
    "Identity": 1,
    "Relu": 2,
    "Lrelu": 3,
    "Prelu": 4,
    "Sigmoid": 5,
    "Tanh": 6,
    "Exp": 7,
    "Sqrt": 8,
    "Softplus": 9,
    "Ln": 10,
    "Sin": 19,
    "Erf": 21,
    "dErf": 22,
    "Gelu": 23,
    "Mish": 24,
    "Gelu_tanh": 25,
    "Gelu_sigmoid": 26,
    "Arctan": 28,
    "Rsqrt": 29,
    "Square": 30,
    "Sign": 31,
    "dGelu": 32,
    "Abs": 33,
    "AbsRecipSqrt": 34,
    "IsFinite": 35,
    "Silu": 36,
    "dSilu": 37,
    "dGelu_sigmoid": 38,
    "Copy": 128,
    "Reciprocal": 129,
}
PARAMETRIC = frozenset({3, 4, 128, 129})  # Lrelu, Prelu; Copy and Reciprocal carry imm_src 1
HARD_WIRED = ("Identity", "Square", "Relu", "Lrelu", "Prelu", "Sign", "Copy", "Abs", "IsFinite")

# Activation table sets in order of their id: name, functions beyond the hard-wired ones.
TABLE_SETS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("exp_and_others", ("Exp", "Tanh")),
    ("softplus_and_others", ("Softplus",)),
    ("sigmoid_and_others", ("Sigmoid", "Tanh", "Erf", "Arctan")),
    ("sqrt_and_others", ("Sqrt",)),
    ("small", ()),
    ("natural_log", ("Ln",)),
    ("natural_log_exp_and_others", ("Ln", "Exp")),
    ("sigmoid_derivative", ()),
    ("tanh_and_derivative", ("Tanh",)),
    ("trig_and_small", ("Sin", "Arctan")),
    ("gelu_and_others", ("Gelu", "dGelu", "Tanh")),
    ("gelu_apprx_tanh_and_others", ("Gelu_tanh", "Tanh")),
    ("gelu_apprx_sigmoid_and_others", ("Gelu_sigmoid", "Tanh")),
    ("reciprocal_and_small", ("Reciprocal",)),
    ("reciprocal_sqrt_and_small", ("Rsqrt",)),
    ("abs_reciprocal_sqrt_and_small", ("AbsRecipSqrt",)),
    ("mish_and_others", ("Mish",)),
    ("erf_derivative", ("dErf",)),
    ("silu_and_others", ("Silu", "Tanh", "Sin")),
    ("derivative_silu_and_others", ("dSilu", "Tanh", "Sin")),
    ("derivative_gelu_apprx_sigmoid_and_others", ("dGelu_sigmoid", "Tanh")),
)

IMM_SRC = {"instruction": 0, "pointer": 1, "register": 2}
BIAS_SRC = {"pointer": 0, "instruction": 1, "register": 2}  # the bias counts the other way round
ACCUMULATE = {
    "idle": 0,
    "zero": 1,
    "accumulate": 2,
    "zero_accumulate": 3,
    "load_accumulate": 4,
}
FP32_MODE = {"none": 0, "low": 1, "high": 2, "both": 3}
DGE_OP = {"copy": 0, "indirect": 1, "transpose": 2, "gather_transpose": 3}

WAIT_COMPARE = {0x01: "==", 0x02: "<", 0x03: "<=", 0x04: ">", 0x05: ">="}  # + 80: with a register
WAIT_EVENT = {
    0x06: "set",
    0x07: "set-then-clear",
    0x0E: "clear",
    0x0F: "clear-then-set",
}
WAIT_GE, WAIT_GE_REG = 0x05, 0x85
WAIT_EVENT_CLEAR, EVENT_SET = 0x07, 0x11
UPDATE_INC, UPDATE_DEC, UPDATE_ADD, UPDATE_SUB, UPDATE_SET = 0x13, 0x14, 0x15, 0x17, 0x19

# gen2: xbus_sel that goes with a column group; 8 alone does not work there
XBUS = {0xF: 0x10, 0x3: 0x01, 0xC: 0x04, 0x1: 0x01, 0x2: 0x02, 0x4: 0x04}
# first partition of what a row or column group names, and how many partitions it has
GROUP = {
    0x1: (0, 32),
    0x2: (32, 32),
    0x4: (64, 32),
    0x8: (96, 32),
    0x3: (0, 64),
    0xC: (64, 64),
    0xF: (0, 128),
}


def group(start: int, size: int) -> int:
    """The code of the array rows or columns that hold `size` partitions from `start`."""
    if size <= 32:
        return {0: 1, 32: 2, 64: 4, 96: 8}[start]
    if size <= 64:
        return {0: 3, 64: 0xC}[start]
    return 0xF


def wait_uses_value(mode: int) -> bool:
    return mode & 0x7F in WAIT_COMPARE


def update_uses_value(mode: int) -> bool:
    return mode & 0x6F in (0x05, 0x07, 0x09)
