"""The dtype of a result that the kernel does not name."""

from __future__ import annotations

from typing import Any

from ncc.nki.dtypes import (
    Dtype,
    bfloat16,
    bool_,
    dtype_of,
    float8_e4m3,
    float8_e4m3fn,
    float8_e5m2,
    float16,
    float32,
    int8,
    int16,
    int32,
    tfloat32,
    uint8,
    uint16,
    uint32,
)

BITS = {int8: 8, int16: 16, int32: 32, uint8: 8, uint16: 16, uint32: 32, bool_: 8}
SIGNED = {8: int8, 16: int16, 32: int32}
UNSIGNED = {8: uint8, 16: uint16, 32: uint32}
NARROW = (float8_e4m3, float8_e4m3fn, float8_e5m2)


def is_signed(one: Dtype) -> bool:
    return one in (int8, int16, int32)


def promoted(a: Dtype, b: Dtype) -> Dtype:
    """Floats beat integers, the wider float wins, integers widen until they hold both ranges."""
    if a is b:
        return a
    if a.is_float != b.is_float:
        return a if a.is_float else b
    if a.is_float:
        return _floats(a, b)
    if bool_ in (a, b):
        return b if a is bool_ else a
    wide = max(BITS[a], BITS[b])
    if is_signed(a) == is_signed(b):
        return (SIGNED if is_signed(a) else UNSIGNED)[wide]
    signed, unsigned = (a, b) if is_signed(a) else (b, a)
    if BITS[signed] > BITS[unsigned]:
        return signed
    return SIGNED.get(2 * BITS[unsigned], float32)


def _floats(a: Dtype, b: Dtype) -> Dtype:
    if float32 in (a, b):
        return float32
    if tfloat32 in (a, b):
        return tfloat32
    if a.size != b.size:
        return a if a.size > b.size else b
    return float32 if {a, b} == {bfloat16, float16} else bfloat16


def scalar_type(value: Any) -> Dtype:
    """What a number is when it stands alone."""
    if isinstance(value, bool):
        return uint8
    if isinstance(value, int) or getattr(getattr(value, "dtype", None), "kind", "f") in "iu":
        return int32
    return float32


def with_number(tile: Dtype, value: Any) -> Dtype:
    """A number gives way to a tile: only a fraction makes a float of integers."""
    if tile.is_float:
        return tile
    return float32 if scalar_type(value) is float32 else tile


def result_type(operands: list[Any], dtype: Any = None) -> Dtype:
    """The dtype of a result of these operands, unless the call names it."""
    if dtype is not None:
        return dtype_of(dtype)
    tiles = [dtype_of(x.dtype) for x in operands if hasattr(x, "storage")]
    numbers = [x for x in operands if x is not None and not hasattr(x, "storage")]
    if not tiles:
        return scalar_type(numbers[0]) if numbers else float32
    found = tiles[0]
    for one in tiles[1:]:
        found = promoted(found, one)
    for value in numbers:
        found = with_number(found, value)
    return found
