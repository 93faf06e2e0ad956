"""Element types as a kernel names them.

A `Dtype` prints as its `nl` name and equals every spelling of itself: the name, numpy's and
ml_dtypes' types, torch's, BIR's name. It hashes like its name, so it can key a dictionary that is
asked by name and the other way round. numpy takes it wherever it takes a dtype.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ncc.errors import nearest
from ncc.nki.trace import wrong_type

if TYPE_CHECKING:
    import numpy as np

    from ncc.target import Target


class Dtype:
    """One element type. `bir` is its name below the API, `size` its bytes."""

    __slots__ = ("bir", "name", "numpy_name", "size")

    def __init__(self, name: str, bir: str, size: int, numpy_name: str = "") -> None:
        self.name, self.bir, self.size, self.numpy_name = name, bir, size, numpy_name or name

    @property
    def itemsize(self) -> int:
        return self.size

    @property
    def is_float(self) -> bool:
        return "float" in self.bir

    @property
    def dtype(self) -> np.dtype[Any]:
        """The type that holds it in an array; numpy asks for it by this name."""
        import ml_dtypes
        import numpy as np

        return np.dtype(getattr(ml_dtypes, self.numpy_name, None) or self.numpy_name)

    def __call__(self, value: Any = 0) -> Any:
        """A number of this type, as `numpy.float32(1)`."""
        return self.dtype.type(value)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if other is None or isinstance(other, Dtype):
            return False
        return found(other) is self

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(self.name)

    def __str__(self) -> str:
        return self.name

    def __repr__(self) -> str:
        return self.name

    def __copy__(self) -> Dtype:
        return self

    def __deepcopy__(self, memo: object) -> Dtype:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (dtype_of, (self.name,))


bool_ = Dtype("bool_", "uint8", 1, "bool")
int8 = Dtype("int8", "int8", 1)
uint8 = Dtype("uint8", "uint8", 1)
int16 = Dtype("int16", "int16", 2)
uint16 = Dtype("uint16", "uint16", 2)
int32 = Dtype("int32", "int32", 4)
uint32 = Dtype("uint32", "uint32", 4)
int64 = Dtype("int64", "int64", 8)
uint64 = Dtype("uint64", "uint64", 8)
float32 = Dtype("float32", "float32", 4)
tfloat32 = Dtype("tfloat32", "float32", 4, "float32")
bfloat16 = Dtype("bfloat16", "bfloat16", 2)
float16 = Dtype("float16", "float16", 2)
float8_e3m4 = Dtype("float8_e3m4", "float8e3", 1)
float8_e4m3 = Dtype("float8_e4m3", "float8e4", 1)
float8_e4m3fn = Dtype("float8_e4m3fn", "float8_e4m3fn", 1)
float8_e5m2 = Dtype("float8_e5m2", "float8e5", 1)
# Types of the MX instructions: bits that are moved, never computed with here.
float8_e8m0fnu = Dtype("float8_e8m0fnu", "uint8", 1)
float8_e4m3fn_x4 = Dtype("float8_e4m3fn_x4", "uint32", 4, "uint32")
float8_e5m2_x4 = Dtype("float8_e5m2_x4", "uint32", 4, "uint32")
float4_e2m1fn_x4 = Dtype("float4_e2m1fn_x4", "uint16", 2, "uint16")

PLAIN = (
    bool_,
    int8,
    uint8,
    int16,
    uint16,
    int32,
    uint32,
    int64,
    uint64,
    float32,
    tfloat32,
    bfloat16,
    float16,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3fn,
    float8_e5m2,
)
MX = (float8_e8m0fnu, float8_e4m3fn_x4, float8_e5m2_x4, float4_e2m1fn_x4)
ALL = {d.name: d for d in (*PLAIN, *MX)}
NAMES = {
    **{d.bir: d for d in PLAIN if d not in (bool_, tfloat32)},
    **ALL,
    "bool": bool_,
    "bf16": bfloat16,
    "fp16": float16,
    "fp32": float32,
    "f16": float16,
    "f32": float32,
    "half": float16,
    "float": float32,
    "int": int32,
    **{f"{s}{n}": d for s in "si" for n, d in ((8, int8), (16, int16), (32, int32))},
    **{f"u{n}": d for n, d in ((8, uint8), (16, uint16), (32, uint32))},
    "tf32": tfloat32,
    "fp8_e4m3": float8_e4m3,
    "fp8_e5m2": float8_e5m2,
}
PYTHON: dict[object, Dtype] = {bool: bool_, int: int32, float: float32}
_seen: dict[Any, Dtype | None] = {}


def found(spelling: Any) -> Dtype | None:
    """The dtype that a spelling means; None for what is none."""
    if isinstance(spelling, Dtype):
        return spelling
    try:
        if spelling in _seen:
            return _seen[spelling]
    except TypeError:
        return None
    known = _search(spelling)
    if isinstance(spelling, str | type):
        _seen[spelling] = known
    return known


def _search(spelling: Any) -> Dtype | None:
    if isinstance(spelling, str):
        return NAMES.get(spelling.rsplit(".", 1)[-1])
    if isinstance(spelling, type) and spelling in PYTHON:
        return PYTHON[spelling]
    if str(spelling).startswith("torch."):
        return NAMES.get(str(spelling).removeprefix("torch."))
    if not isinstance(spelling, type):  # numpy's dtypes; neither arrays nor tensors
        plain = hasattr(spelling, "itemsize") and not hasattr(spelling, "dtype")
        return NAMES.get(getattr(spelling, "name", "")) if plain else None
    import numpy as np

    try:
        return NAMES.get(np.dtype(spelling).name)
    except TypeError:
        return None


def dtype_of(spelling: Any) -> Dtype:
    """The dtype of any spelling; NCC312 where there is none."""
    if isinstance(spelling, Dtype):
        return spelling
    known = found(spelling)
    if known is not None:
        return known
    word = getattr(spelling, "name", None) or getattr(spelling, "__name__", None) or str(spelling)
    hint = nearest(str(word), ALL) or "pass one of nl's, as nl.float32"
    if str(word) in ("float64", "double", "complex64", "complex128"):
        hint = "the machine computes in float32: convert the values to nl.float32"
    raise wrong_type("NCC312", f"{word} is no element type of the machine", hint)


def held(spelling: Any, target: Target) -> Dtype:
    """The type that a tensor has on a machine: before trn3 float8_e4m3fn is float8_e4m3, as
    arguments of kernels come too."""
    kind = dtype_of(spelling)
    return float8_e4m3 if kind is float8_e4m3fn and not target.fp8fn else kind


def bir_name(spelling: Any) -> str:
    """The name below the API: `bool_` is uint8, `float8_e4m3` is float8e4."""
    return dtype_of(spelling).bir


class Limits:
    """`nl.fp32.min`: the finite range of a float type."""

    def __init__(self, dtype: Dtype) -> None:
        self._dtype = dtype

    def _limit(self, name: str) -> float:
        import ml_dtypes

        finfo: Any = ml_dtypes.finfo
        return float(getattr(finfo(self._dtype.dtype), name))

    @property
    def min(self) -> float:
        return self._limit("min")

    @property
    def max(self) -> float:
        return self._limit("max")

    @property
    def eps(self) -> float:
        return self._limit("eps")

    @property
    def tiny(self) -> float:
        return self._limit("tiny")


fp32 = Limits(float32)
