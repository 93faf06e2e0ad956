"""Constant bytes as one immutable value, from HLO's literals to the files of a NEFF."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import attrs

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# name in the IR from Penguin on (BIR's), name of the numpy type, bytes, name in HLO
DTYPES: dict[str, tuple[str, int, str]] = {
    "bfloat16": ("bfloat16", 2, "bf16"),
    "float16": ("float16", 2, "f16"),
    "float32": ("float32", 4, "f32"),
    "float8e4": ("float8_e4m3", 1, "f8e4m3"),
    "float8_e4m3fn": ("float8_e4m3fn", 1, "f8e4m3fn"),
    "float8e5": ("float8_e5m2", 1, "f8e5m2"),
    "float8e3": ("float8_e3m4", 1, "f8e3m4"),
    "int8": ("int8", 1, "s8"),
    "uint8": ("uint8", 1, "u8"),
    "int16": ("int16", 2, "s16"),
    "uint16": ("uint16", 2, "u16"),
    "int32": ("int32", 4, "s32"),
    "uint32": ("uint32", 4, "u32"),
    "int64": ("int64", 8, "s64"),
    "uint64": ("uint64", 8, "u64"),
}
FLOATS = frozenset(d for d in DTYPES if "float" in d)
FP8 = frozenset(d for d in FLOATS if DTYPES[d][1] == 1)
FROM_HLO = {hlo: name for name, (_, _, hlo) in DTYPES.items()}


def size_of(dtype: str) -> int:
    """Bytes of one element."""
    return DTYPES[dtype][1]


@cache
def numpy_type(dtype: str) -> np.dtype[np.generic]:
    """The numpy (or ml_dtypes) type that holds this dtype."""
    import ml_dtypes
    import numpy as np

    name = DTYPES[dtype][0]
    return np.dtype(getattr(ml_dtypes, name, None) or name)


def name_of(dtype: np.dtype[np.generic]) -> str:
    """The dtype that a numpy (or ml_dtypes) type holds."""
    return next(name for name, (kept, _, _) in DTYPES.items() if kept == dtype.name)


@attrs.frozen
class Data:
    """An array of known values: dtype, shape, and the bytes, row-major and little-endian.

    Its text form is one word: `splat:HEX` when every element is the same, `eye:HEX` for a square
    matrix with HEX on the diagonal and 0 elsewhere, `hex:HEX` otherwise; HEX is the bytes.
    """

    dtype: str
    shape: tuple[int, ...]
    raw: bytes = attrs.field(repr=False)

    def array(self) -> NDArray[np.generic]:
        """The values, read-only."""
        import numpy as np

        return np.frombuffer(self.raw, numpy_type(self.dtype)).reshape(self.shape)

    def word(self) -> str:
        size = size_of(self.dtype)
        one = self.raw[:size]
        if self.raw and one * (len(self.raw) // size) == self.raw:
            return f"splat:{one.hex()}"
        if (
            len(self.shape) == 2
            and self.shape[0] == self.shape[1]
            and self == eye(self.dtype, self.shape[0], one)
        ):
            return f"eye:{one.hex()}"
        return f"hex:{self.raw.hex()}"


def data(dtype: str, array: NDArray[np.generic]) -> Data:
    """Data from an array, whose values are rounded to `dtype`."""
    import numpy as np

    kept = np.ascontiguousarray(np.asarray(array).astype(numpy_type(dtype)))
    return Data(dtype, tuple(map(int, np.shape(array))), kept.tobytes())


def eye(dtype: str, n: int, one: bytes) -> Data:
    """The n × n matrix with the element `one` on its diagonal."""
    size = size_of(dtype)
    row = bytes(size * n)
    raw = b"".join(row[: i * size] + one + row[(i + 1) * size :] for i in range(n))
    return Data(dtype, (n, n), raw)


def read_data(word: str, dtype: str, shape: tuple[int, ...]) -> Data:
    """Data from its word; ValueError with a sentence when the bytes do not fit dtype and shape."""
    import math

    form, _, digits = word.partition(":")
    count, size = math.prod(shape), size_of(dtype)
    try:
        raw = bytes.fromhex(digits)
    except ValueError:
        raise ValueError(f"cannot read {word[:40]!r} as bytes") from None
    if form == "splat" and len(raw) == size:
        return Data(dtype, shape, raw * count)
    if form == "eye" and len(raw) == size and len(shape) == 2 and shape[0] == shape[1]:
        return eye(dtype, shape[0], raw)
    if form == "hex" and len(raw) == count * size:
        return Data(dtype, shape, raw)
    dims = "x".join(map(str, shape))
    raise ValueError(f"{word[:40]!r} does not hold the {count * size} bytes of {dtype} {dims}")
