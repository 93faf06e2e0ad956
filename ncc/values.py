"""The arrays of a run: drawn, read from a file, converted to the parameters' types."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ncc import files
from ncc.errors import NccError, listed, nearest
from ncc.ir.data import DTYPES, numpy_type
from ncc.stages import Stage, level

Array = NDArray[np.generic]
Wanted = Sequence[tuple[str, str, tuple[int, ...]]]  # name, dtype, shape

# How wide and how dense whole numbers are drawn; the first draw whose sums stay exact is taken.
DRAWS = ((4, 1.0), (2, 1.0), (1, 1.0), (1, 0.3), (1, 0.1), (1, 0.03), (1, 0.01))
EXACT = float(1 << 24)  # float32 holds every whole number up to here


def signature(stage: Stage) -> tuple[Wanted, Wanted]:
    """Inputs and outputs of a stage, in order: name, dtype (BIR's name) and shape of each."""
    found: tuple[Wanted, Wanted] = level(stage.level).get("signature")(stage.module)
    return found


def whole(stage: Stage, seed: int) -> list[Array]:
    """Whole numbers whose sums are exact, so that every level must give the very same result.

    For an HLO program the numbers are made smaller, then sparser, until no sum can pass 2²⁴.
    """
    inputs = drawable(stage)
    drawn: list[Array] = []
    for most, density in DRAWS:
        rng = np.random.default_rng(seed)
        drawn = [_draw(rng, dtype, shape, most, density) for _, dtype, shape in inputs]
        if stage.level != "hlo" or _largest_sum(stage, drawn) < EXACT:
            break
    return drawn


def drawable(stage: Stage) -> Wanted:
    """The inputs of a stage, when every array of its signature can be made here.

    NCC116 for an element type that is not computed with, NCC011 for more bytes than there are.
    """
    inputs, outputs = signature(stage)
    elements = 0
    for name, dtype, shape in (*inputs, *outputs):
        if dtype not in DTYPES:
            said = f"{name} is {dtype}, and ncc computes with {listed(DTYPES)}"
            raise NccError("NCC116", said)
        elements += math.prod(shape)
    if 8 * elements > memory():
        said = f"inputs and outputs have {elements} elements, more than fit the memory here"
        raise NccError("NCC011", said, hint="try it with smaller shapes")
    return inputs


def memory() -> int:
    """Bytes of memory that this computer has; a large number where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 1 << 40


def _draw(
    rng: np.random.Generator, dtype: str, shape: tuple[int, ...], most: int, density: float
) -> Array:
    numbers = rng.integers(-most, most + 1, shape).astype(np.float32)
    if density < 1:
        numbers *= rng.random(shape) < density
    if "int" in dtype:  # of whatever sign, most are indices or counts
        numbers = np.abs(numbers)
    return numbers.astype(numpy_type(dtype))


def _largest_sum(stage: Stage, inputs: Sequence[Array]) -> float:
    from ncc.interp.bounds import largest_sum

    return largest_sum(stage.module, stage.target, inputs)


def random(stage: Stage, seed: int) -> list[Array]:
    """Numbers between −2 and 2 that each parameter's type holds exactly; no integer is negative."""
    from ncc.numerics import cast

    rng = np.random.default_rng(seed)
    drawn: list[Array] = []
    for _, dtype, shape in drawable(stage):
        numbers = rng.uniform(-2, 2, shape).astype(np.float32)
        drawn.append(cast(np.abs(numbers) if "int" in dtype else numbers, dtype))
    return drawn


def fitted(wanted: Wanted, given: Sequence[Array]) -> list[Array]:
    """The given arrays in the parameters' types; NCC006 for another number, shape or kind."""
    from ncc.numerics import cast

    arrays = shaped(wanted, given, "input")
    pairs = zip(arrays, wanted, strict=True)
    return [a if a.dtype == numpy_type(dtype) else cast(a, dtype) for a, (_, dtype, _) in pairs]


def shaped(wanted: Wanted, given: Sequence[Array], what: str = "output") -> list[Array]:
    """The arrays, when there are as many as the program has, each of the right shape; NCC006."""
    if len(given) != len(wanted):
        said = f"the program has {len(wanted)} {what}s, {len(given)} were given"
        raise NccError("NCC006", said)
    found: list[Array] = []
    for one, (name, _, shape) in zip(given, wanted, strict=True):
        array = np.asarray(one)
        if tuple(array.shape) != tuple(shape):
            said = f"{what} {name} is {by(shape)}, was given {by(array.shape)}"
            raise NccError("NCC006", said)
        plain(array, f"{what} {name}")
        found.append(array)
    return found


def plain(array: Array, what: str) -> None:
    """NCC006 for an array that holds no real numbers."""
    narrow = array.dtype.kind == "V" and array.dtype.names is None and array.dtype.num >= 256
    if array.dtype.kind not in "iufb" and not narrow:
        said = f"{what} holds values of numpy's type {array.dtype}, which are no real numbers"
        raise NccError("NCC006", said, hint="store narrow floats as float32")


def by(shape: Sequence[int]) -> str:
    """`4x8`, or `a scalar`."""
    return "x".join(map(str, shape)) or "a scalar"


def read_arrays(path: str) -> dict[str, Array]:
    """The arrays of an .npz file by name. NCC003 without a file, NCC006 for one of another kind."""
    import io
    import zipfile
    import zlib

    raw = files.read(path)
    name = Path(path).name
    if not raw.startswith(b"PK"):
        hint = "numpy.savez(FILE, in0=..., in1=...) writes one"
        raise NccError("NCC006", f"{name} is no .npz file", hint=hint)
    try:
        with np.load(io.BytesIO(raw), allow_pickle=False) as held:
            arrays: dict[str, Any] = {key: held[key] for key in held.files}
    except (zipfile.BadZipFile, zlib.error, ValueError, OSError, EOFError, KeyError, SyntaxError):
        raise NccError("NCC006", f"{name} is damaged, or holds more than plain arrays") from None
    for key, array in arrays.items():
        if not isinstance(array, np.ndarray):
            raise NccError("NCC006", f"{name} holds {key}, which is no array")
    return arrays


def read_inputs(path: str, stage: Stage) -> list[Array]:
    """The inputs in an .npz file: in0, in1, ... or the parameters' names. NCC003, NCC006."""
    return picked(path, "in", signature(stage)[0])


def read_outputs(path: str, stage: Stage) -> list[Array]:
    """out0, out1, ... (or the outputs' names) of an .npz, in result order. NCC003, NCC006."""
    return picked(path, "out", signature(stage)[1])


def picked(path: str, word: str, wanted: Wanted) -> list[Array]:
    """One array for each of `wanted`, and no more, from an .npz file."""
    arrays = read_arrays(path)
    file = Path(path).name
    found: list[Array] = []
    for number, (name, _, shape) in enumerate(wanted):
        key = next((key for key in (f"{word}{number}", name) if key in arrays), "")
        if not key:
            hint = nearest(name, arrays)
            raise NccError("NCC006", f"{file} lacks {word}{number} (or {name})", hint=hint)
        array = arrays.pop(key)
        if tuple(array.shape) != tuple(shape):
            said = f"{file}: {key} is {by(array.shape)}, but {name} is {by(shape)}"
            raise NccError("NCC006", said)
        plain(array, f"{file}: {key}")
        found.append(array)
    if arrays:
        verb = "take" if word == "in" else "give"
        said = f"{file} holds {sorted(arrays)[0]}, which the program does not {verb}"
        raise NccError("NCC006", said)
    return found


def write_outputs(path: str, outputs: Sequence[Array]) -> None:
    """out0, out1, ... in result order; floats narrower than 32 bits are stored as float32."""
    import io

    held = io.BytesIO()
    arrays: dict[str, Any] = {f"out{i}": stored(array) for i, array in enumerate(outputs)}
    np.savez(held, **arrays)
    files.write(path, held.getvalue())


def stored(array: Array) -> Array:
    """The array in a type that every numpy reads."""
    return array if array.dtype.kind in "iub" or array.dtype.itemsize >= 4 else array.astype("f4")
