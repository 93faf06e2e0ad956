"""A kernel inside a JAX function: where JAX traces, the call becomes a custom call of HLO.

`jax.jit(f).lower(...).as_text("hlo")` then has the kernel by its name, and ncc compiles the whole
program. JAX itself has no machine for such a call. On arrays of values a kernel runs as ever.

The operands are the kernel's first parameters, and numbers, texts and tuples of numbers follow as
the call's configuration, as the call of HLO has them. JAX's arrays never change: what a kernel
writes in place comes back as one more result, behind those that it returns.

JAX is not needed by ncc: it is here if the caller has it (`pip install 'ncc[jax]'`).
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ncc.errors import listed
from ncc.ir.data import numpy_type
from ncc.kernels import KERNELS
from ncc.nki import dtypes
from ncc.nki.arguments import ArraySpec
from ncc.nki.binding import bind, place_of
from ncc.nki.trace import NkiTypeError
from ncc.target import Target

if TYPE_CHECKING:
    from ncc.nki.call import JitKernel

HINT = "give arrays first, then numbers, texts or tuples of numbers"


def is_traced(args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
    """Whether JAX is tracing this call: an argument has no values yet."""
    if "jax" not in sys.modules:
        return False
    tracer = cast(Any, import_module("jax.core")).Tracer
    return any(isinstance(x, tracer) for x in (*args, *kwargs.values()))


def custom_call(
    kernel: JitKernel, args: Sequence[Any], kwargs: Mapping[str, Any], target: Target
) -> Any:
    """The call in HLO: an array, or a tuple where the kernel gives several.

    NCC302 for arguments that a custom call cannot have, NCC303 for a kernel without a name that
    finds it again, NCC122 for results that are no whole arrays.
    """
    from ncc.kernels.calls import misfits, outputs, params

    jax: Any = import_module("jax")
    arrays, config = divided(kernel, args, kwargs)
    given = [ArraySpec("", dtypes.dtype_of(x.dtype), tuple(x.shape)) for x in arrays]
    made = kernel.specialisation(bind(kernel.func, given, config, target), target)
    gives, operands = outputs(made), params(made)
    aliases = {n: operands.index(name) for n, (name, _) in enumerate(gives) if name in operands}
    name = name_in_hlo(kernel)
    for code, said in misfits(made, name, [x for _, x in gives], list(aliases.items())):
        raise NkiTypeError(code, said, place_of(kernel.func))
    results = [jax.ShapeDtypeStruct(shape, numpy_type(dtype)) for _, (dtype, shape) in gives]
    call = jax.ffi.ffi_call(
        name,
        results if len(results) > 1 else results[0],
        input_output_aliases={operand: output for output, operand in aliases.items()},
    )
    found = call(*arrays, **{key: attribute(value) for key, value in config.items()})
    return tuple(found) if len(results) > 1 else found


def divided(
    kernel: JitKernel, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arrays, which have to be the first parameters, and the other values by name."""
    try:
        bound = inspect.signature(kernel.func).bind(*args, **kwargs)
    except TypeError as fault:
        raise NkiTypeError("NCC302", f"{kernel.__name__}: {fault}", place_of(kernel.func)) from None
    arrays: list[Any] = []
    config: dict[str, Any] = {}
    for name, value in bound.arguments.items():
        if hasattr(value, "shape") and hasattr(value, "dtype") and value.shape is not None:
            if config:
                said = f"{kernel.__name__} takes the array {name} behind {listed(config)}, and in a"
                said = f"{said} custom call operands come first"
                raise NkiTypeError("NCC302", said, place_of(kernel.func), HINT)
            arrays.append(value)
        elif value is not None:
            config[name] = value
    for name, value in config.items():
        parts = cast("Sequence[Any]", value) if isinstance(value, tuple | list) else (value,)
        if not all(isinstance(x, bool | int | float | str) for x in parts):
            said = f"{kernel.__name__} has {name}={value!r}, which no custom call can hold"
            raise NkiTypeError("NCC302", said, place_of(kernel.func), HINT)
    return arrays, config


def attribute(value: Any) -> Any:
    """A value as JAX writes it into a custom call: numbers of 64 bits."""
    if isinstance(value, tuple | list):
        return np.array(cast("Sequence[Any]", value))
    if isinstance(value, bool | str):
        return value
    return np.float64(value) if isinstance(value, float) else np.int64(value)


def name_in_hlo(kernel: JitKernel) -> str:
    """The name by which a custom call finds the kernel; NCC303 for one inside a function."""
    func: Any = kernel.func
    path = Path(inspect.getfile(func))
    own = {f"ncc.kernels.{place.partition(':')[0]}": name for name, place in KERNELS.items()}
    if own.get(func.__module__) == func.__name__:
        return func.__name__
    if "<" in func.__qualname__ or not path.is_file():
        said = f"{kernel.__name__} lies inside a function, and a custom call names FILE.py:NAME"
        hint = "move the kernel to the top of a file"
        raise NkiTypeError("NCC303", said, place_of(func), hint)
    here = Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    grid = f"[{','.join(map(str, kernel.grid))}]" if kernel.grid else ""
    return f"{shown}:{func.__qualname__}{grid}"
