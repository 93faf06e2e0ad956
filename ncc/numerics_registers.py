"""Whole numbers in the registers of the sequencers: 32 bits, read as int32 or uint32."""

from __future__ import annotations

import operator
from collections.abc import Callable

WORD = 1 << 32
COUNT = 62  # registers of a program: an engine has 64, and two are the encoder's


def _far(count: int) -> int:
    """A shift's count, read as uint32: from 32 on, and below 0, nothing of the number is left."""
    return min(count % WORD, 32)


_OPS: dict[str, Callable[[int, int], int]] = {
    "bypass": lambda a, b: a,
    "add": operator.add,
    "subtract": operator.sub,
    "mult": operator.mul,
    "max": max,
    "min": min,
    "bitwise_not": lambda a, b: ~a,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "arith_shift_left": lambda a, b: a << _far(b),
    "logical_shift_left": lambda a, b: a << _far(b),
    "arith_shift_right": lambda a, b: a >> _far(b),
    "logical_shift_right": lambda a, b: (a % WORD) >> _far(b),
    "is_equal": lambda a, b: int(a == b),
    "not_equal": lambda a, b: int(a != b),
    "is_gt": lambda a, b: int(a > b),
    "is_ge": lambda a, b: int(a >= b),
    "is_lt": lambda a, b: int(a < b),
    "is_le": lambda a, b: int(a <= b),
}
COMPARE: dict[str, Callable[[float, float], bool]] = {
    "LT": operator.lt,
    "LE": operator.le,
    "EQ": operator.eq,
    "NE": operator.ne,
    "GE": operator.ge,
    "GT": operator.gt,
}
NEGATED = {"LT": "GE", "LE": "GT", "EQ": "NE", "NE": "EQ", "GE": "LT", "GT": "LE"}
OPS = frozenset(_OPS)


def apply(op: str, a: int, b: int) -> int:
    """`a op b` as the 32 bits of a register."""
    return _OPS[op](a, b) % WORD


def signed(bits: int) -> int:
    """32 bits as an int32."""
    bits %= WORD
    return bits - WORD if bits >> 31 else bits
