"""Arrays of the caller: numpy's (with ml_dtypes), torch's and jax's, to numpy and back.

torch and jax are never imported here: whoever passes their arrays has imported them.
"""

from __future__ import annotations

import sys
import warnings
from inspect import currentframe
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncc.errors import Place
from ncc.ir.data import numpy_type
from ncc.nki.dtypes import Dtype, bool_, dtype_of, held
from ncc.nki.trace import HERE, NkiTypeError, NkiValidationError
from ncc.target import Target

Array = NDArray[np.generic]
NARROWED = {"float64": "float32", "int64": "int32", "uint64": "uint32"}


def kind_of(value: Any) -> str:
    """numpy, torch or jax; empty for what is no array."""
    if isinstance(value, np.ndarray):
        return "numpy"
    torch = sys.modules.get("torch")
    if torch is not None and isinstance(value, getattr(torch, "Tensor", ())):
        return "torch"
    jax = sys.modules.get("jax")
    if jax is not None and isinstance(value, getattr(jax, "Array", ())):
        return "jax"
    return ""


def is_array(value: Any) -> bool:
    return bool(kind_of(value))


def to_numpy(value: Any) -> Array:
    """The values as a numpy array; of a narrow float as ml_dtypes has it."""
    if kind_of(value) != "torch":
        return np.asarray(value)
    held = value.detach().cpu().contiguous()
    name = str(held.dtype).removeprefix("torch.")
    if name == "bfloat16" or name.startswith("float8"):
        torch = sys.modules["torch"]
        bits = held.view(torch.int16 if name == "bfloat16" else torch.uint8).numpy()
        return bits.view(dtype_of(name).dtype)
    found: Array = held.numpy()
    return found


def to_torch(array: Array) -> Any:
    torch: Any = sys.modules["torch"]
    whole = np.array(array, order="C")
    name = whole.dtype.name
    if name == "bfloat16" or name.startswith("float8"):
        wide = getattr(torch, name, None)
        if wide is None:
            return torch.from_numpy(whole.astype(np.float32))
        return torch.from_numpy(whole.view(np.int16 if whole.itemsize == 2 else np.uint8)).view(
            wide
        )
    return torch.from_numpy(whole)


def like(array: Array, kind: str) -> Any:
    """An array of the caller's kind with these values."""
    if kind == "torch":
        return to_torch(array)
    if kind == "jax":
        return sys.modules["jax"].numpy.asarray(array)
    return array


def outside() -> int:
    """The level of the caller's frame, for a warning: the first outside of this package."""
    level, frame = 0, currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        level, frame = level + 1, frame.f_back
    return max(level, 1)


def dtype_seen(array: Any, name: str, target: Target, place: Place) -> Dtype:
    """The type that a kernel sees an array's elements have.

    64-bit numbers narrow, with a warning. NCC305 for what the machine cannot hold at all.
    """
    given = str(array.dtype).removeprefix("torch.")
    if given in NARROWED:
        said = f"{name}: {given} is passed to the kernel as {NARROWED[given]}"
        warnings.warn(said, stacklevel=outside())
        given = NARROWED[given]
    try:
        found = dtype_of(
            given if kind_of(array) == "torch" or given in NARROWED.values() else array.dtype
        )
    except NkiTypeError as fault:
        said = f"argument {name} holds {given}, which is no element type of the machine"
        raise NkiTypeError("NCC305", said, place, fault.hint) from None
    return held(found, target)


def prepared(array: Array, dtype: Dtype, name: str, place: Place) -> Array:
    """The values in the buffer's type, row-major, with at least one dimension."""
    wanted = numpy_type(dtype.bir)
    if dtype is bool_:
        array = array.astype(bool).view(np.uint8)
    if array.dtype.name in ("int64", "uint64") and array.size:
        low, high = int(array.min()), int(array.max())
        limits = np.iinfo(wanted.name)
        if low < limits.min or high > limits.max:
            worst = high if high > limits.max else low
            said = f"argument {name} holds {worst}, which {dtype} does not"
            raise NkiValidationError("NCC305", said, place, "the machine has no 64-bit integers")
    if array.dtype != wanted:
        from ncc.numerics import cast

        narrow = wanted.kind == "V" or array.dtype.kind == "V"
        array = cast(array.astype(np.float32), dtype.bir) if narrow else array.astype(wanted)
    found = np.ascontiguousarray(array)
    return found if found.ndim else found.reshape(1)


def stored(target: Any, values: Array, name: str, place: Place) -> None:
    """Put new values into the caller's array; NCC305 when it cannot be written."""
    kind = kind_of(target)
    if kind == "torch":
        target.detach().copy_(to_torch(values).reshape(target.shape).to(target.dtype))
        return
    if kind == "jax":
        return  # such arrays never change; the kernel returns the new one
    if not target.flags.writeable:
        said = f"the kernel writes its argument {name}, and the array is read-only"
        raise NkiValidationError("NCC305", said, place, "pass a copy of it")
    np.copyto(target, values.reshape(target.shape), casting="unsafe")
