"""What a call gives back: results in the caller's kind of array, written arguments in place."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ncc.nki.arguments import walked
from ncc.nki.arrays import Array, kind_of, like, prepared, stored, to_numpy
from ncc.nki.dtypes import bool_
from ncc.nki.specialise import Returned, Specialisation

Runner = Callable[[Specialisation, Mapping[str, Array]], Mapping[str, Array]]


def delivered(found: Specialisation, arrays: Sequence[Any], run: Runner) -> Any:
    """Run a specialisation on the caller's arrays; its results as the kernel returned them.

    `run` takes the arrays by the names of the parameters' buffers and gives every buffer that is
    written or returned.
    """
    inputs = {
        spec.name: prepared(to_numpy(array), spec.dtype, spec.name, found.place)
        for spec, array in zip(found.specs, arrays, strict=True)
    }
    kinds = {kind_of(array) for array in arrays}
    kind = next((k for k in ("torch", "jax") if k in kinds), "numpy")
    values = {**inputs, **run(found, inputs)}
    for spec, array in zip(found.specs, arrays, strict=True):
        if spec.name in found.written:
            new = values[spec.name]
            stored(array, new.view(bool) if spec.dtype is bool_ else new, spec.name, found.place)

    def leaf(one: Returned, name: str) -> Any:
        return like(array_of(one, values[one.access.buffer]), kind)

    return walked(found.results, "", lambda v: isinstance(v, Returned), leaf)


def array_of(one: Returned, values: Array) -> Array:
    """The returned view of a buffer's values, in the type that the kernel named."""
    from ncc.interp.kernel import viewed

    found = np.array(viewed(values, one.access)).reshape(one.shape)
    wanted = one.dtype.dtype
    if one.dtype is bool_:
        return found.astype(bool)
    return found if found.dtype == wanted else found.view(wanted)
