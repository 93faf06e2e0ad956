"""The arrays of a run: drawn, read from a file, converted to the parameters' types."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ncc.errors import NccError, UsageError, nearest
from ncc.ir.data import numpy_type
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
    inputs, _ = signature(stage)
    drawn: list[Array] = []
    for most, density in DRAWS:
        rng = np.random.default_rng(seed)
        drawn = [_draw(rng, dtype, shape, most, density) for _, dtype, shape in inputs]
        if stage.level != "hlo" or _largest_sum(stage, drawn) < EXACT:
            break
    return drawn


def _draw(
    rng: np.random.Generator, dtype: str, shape: tuple[int, ...], most: int, density: float
) -> Array:
    numbers = rng.integers(-most, most + 1, shape).astype(np.float32)
    if density < 1:
        numbers *= rng.random(shape) < density
    if not np.issubdtype(numpy_type(dtype), np.signedinteger) and "uint" in dtype:
        numbers = np.abs(numbers)
    return numbers.astype(numpy_type(dtype))


def _largest_sum(stage: Stage, inputs: Sequence[Array]) -> float:
    from ncc.interp.bounds import largest_sum

    return largest_sum(stage.module, stage.target, inputs)


def random(stage: Stage, seed: int) -> list[Array]:
    """Numbers between −2 and 2 that each parameter's type holds exactly."""
    from ncc.numerics import cast

    rng = np.random.default_rng(seed)
    inputs, _ = signature(stage)
    return [cast(rng.uniform(-2, 2, shape).astype(np.float32), dtype) for _, dtype, shape in inputs]


def fitted(wanted: Wanted, given: Sequence[Array]) -> list[Array]:
    """The given arrays in the parameters' types; NCC006 for another number or shape."""
    from ncc.numerics import cast

    if len(given) != len(wanted):
        said = f"the program takes {len(wanted)} inputs, {len(given)} were given"
        raise NccError("NCC006", said)
    found: list[Array] = []
    for array, (name, dtype, shape) in zip(given, wanted, strict=True):
        if tuple(array.shape) != tuple(shape):
            takes, has = "x".join(map(str, shape)), "x".join(map(str, array.shape))
            said = f"input {name} takes {takes or 'a scalar'}, was given {has or 'a scalar'}"
            raise NccError("NCC006", said)
        found.append(array if array.dtype == numpy_type(dtype) else cast(array, dtype))
    return found


def read_inputs(path: str, stage: Stage) -> list[Array]:
    """The arrays of an .npz file: in0, in1, ... or the parameters' names. NCC003, NCC006."""
    file = Path(path)
    if not file.exists():
        raise UsageError("NCC003", f"there is no file {file}")
    try:
        with np.load(file) as held:
            arrays = {name: held[name] for name in held.files}
    except (ValueError, OSError, EOFError, KeyError):
        raise NccError("NCC006", f"{file.name} is no .npz file of plain arrays") from None
    inputs, _ = signature(stage)
    found: list[Array] = []
    for number, (name, _, _) in enumerate(inputs):
        for key in (f"in{number}", name):
            if key in arrays:
                found.append(arrays.pop(key))
                break
        else:
            hint = nearest(name, arrays)
            raise NccError("NCC006", f"{file.name} lacks in{number} (or {name})", hint=hint)
    if arrays:
        said = f"{file.name} holds {sorted(arrays)[0]}, which the program does not take"
        raise NccError("NCC006", said)
    return found


def read_outputs(path: str, stage: Stage) -> list[Array]:
    """out0, out1, ... (or the outputs' names) of an .npz, in result order. NCC003, NCC006."""
    file = Path(path)
    if not file.exists():
        raise UsageError("NCC003", f"there is no file {file}")
    with np.load(file) as held:
        arrays = {name: held[name] for name in held.files}
    found: list[Array] = []
    for number, (name, _, shape) in enumerate(signature(stage)[1]):
        key = f"out{number}" if f"out{number}" in arrays else name
        if key not in arrays or tuple(arrays[key].shape) != tuple(shape):
            said = f"{file.name} lacks out{number} (or {name}) of shape {'x'.join(map(str, shape))}"
            raise NccError("NCC006", said)
        found.append(arrays[key])
    return found


def write_outputs(path: str, outputs: Sequence[Array]) -> None:
    """out0, out1, ... in result order; floats narrower than 32 bits are stored as float32."""
    import os
    import tempfile

    arrays = {f"out{i}": stored(array) for i, array in enumerate(outputs)}
    target = Path(path)
    if target.is_dir() or not target.parent.is_dir():
        raise UsageError("NCC003", f"{path} cannot be written: it is a folder, or lies in none")
    handle, temporary = tempfile.mkstemp(dir=target.parent or Path(), suffix=".npz")
    try:
        with os.fdopen(handle, "wb") as file:
            np.savez(file, allow_pickle=False, **arrays)
        Path(temporary).replace(target)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def stored(array: Array) -> Array:
    """The array in a type that every numpy reads."""
    return array if array.dtype.kind in "iub" or array.dtype.itemsize >= 4 else array.astype("f4")
