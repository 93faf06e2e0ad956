"""DVE and Pool, over axes: reductions, running values, windows (ISA reference 5.11, 5.13)."""

from __future__ import annotations

from functools import reduce
from math import prod

import numpy as np

from ncc import numerics
from ncc import numerics_rows as rows_of
from ncc.errors import NccError
from ncc.sim.act import element_bits
from ncc.sim.engine import Engine, Fields, flat, together
from ncc.sim.memory import Array, Marks
from ncc.sim.vector import arith, bits, into, op_name, read
from ncc.sim.views import View


def _inner(f: Fields, count: int) -> int:
    """How many elements the named innermost axes hold: `count` counts axes."""
    if not 1 <= count <= 4:
        raise NccError("NCC912", f"reduces {count} axes, where 1 to 4 can be named")
    return prod(num for _, num in f["src"].dims[:count])


def _grouped(e: Engine, f: Fields, axes: int) -> tuple[View, Array, Marks | None, int]:
    source = read(e, f)
    inner, rows = _inner(f, axes), source.array.shape[0]
    known = e.marks(source)
    marks = None if known is None else known.reshape(rows, -1, inner)
    return source, source.array.reshape(rows, -1, inner), marks, rows


def tensor_reduce(e: Engine, f: Fields) -> None:
    """Folds the innermost axes; the kept ones are walked in order."""
    _, x, known, rows = _grouped(e, f, f.get("op_dim", 0) - 1)
    to, dtype = into(e, f)
    if to.array.size != x.shape[0] * x.shape[1]:
        raise NccError("NCC912", f"keeps {x.shape[1]} elements of {to.array.size // rows} places")
    y = numerics.reduce(arith(f.get("op", 0)), x, (2,))
    y = -y if f.get("negated", 0) else y
    e.put(to, y, dtype, None if known is None else np.logical_and.reduce(known, axis=2))


def tensor_reduce_bits(e: Engine, f: Fields) -> None:
    _, x, known, rows = _grouped(e, f, f.get("op_dim", 0) - 1)
    to, dtype = into(e, f)
    if to.array.size != x.shape[0] * x.shape[1]:
        raise NccError("NCC912", f"keeps {x.shape[1]} elements of {to.array.size // rows} places")
    name = op_name(f.get("op", 0))
    y = reduce(lambda a, b: bits(name, a, b, dtype), (x[..., i] for i in range(x.shape[2])))
    e.write(to, y, None if known is None else np.logical_and.reduce(known, axis=2))


def tensor_cumulative(e: Engine, f: Fields) -> None:
    """The running value at each element of the named axes."""
    source, x, known, rows = _grouped(e, f, max(1, f.get("op_dim", 2) - 1))
    to, dtype = into(e, f)
    together(source, to)
    y = rows_of.running(arith(f.get("op", 0)), x.reshape(-1, x.shape[2]))
    marks = None if known is None else np.logical_and.accumulate(known, axis=2).reshape(rows, -1)
    e.put(to, y.reshape(rows, -1), dtype, marks)


def cross_lane(e: Engine, f: Fields) -> None:
    """A fold over partitions; partition 0 receives the result."""
    source = read(e, f)
    x, known = flat(source.array), e.marks(source)
    whole = f.get("reduce_axis", 0) == 0
    dtype = e.dtype(f.get("out_dtype", 0))
    to = e.target(f["dst"], 1, dtype)
    x = x.reshape(-1, 1) if whole else x
    if to.array.size != x.shape[1]:
        raise NccError("NCC912", f"keeps {x.shape[1]} elements of {to.array.size} places")
    if known is not None:
        known = np.logical_and.reduce(flat(known).reshape(x.shape)).reshape(1, -1)
    which = f.get("reduce_op", 0)
    if which in (0, 1, 2):
        y = numerics.reduce("max" if which == 2 else "add", x, (0,)).reshape(1, -1)
        if which == 1:
            y = numerics.alu("mult", y, element_bits(f.get("scale", 0), "float32"))
        e.put(to, y, dtype, known)
        return
    names = {3: "bitwise_or", 4: "bitwise_and", 5: "bitwise_xor"}
    if which not in names:
        raise NccError("NCC912", f"there is no cross-lane operation {which}")
    y = reduce(lambda a, b: bits(names[which], a, b, dtype), list(x))
    e.write(to, y.reshape(1, -1), known)


def pool(e: Engine, f: Fields) -> None:
    """The largest or the scaled sum of each window: the innermost axes of the source."""
    _, x, known, rows = _grouped(e, f, f.get("pool_dim", 0) - 1)
    to, dtype = into(e, f)
    if to.array.size != rows * x.shape[1]:
        raise NccError("NCC912", f"keeps {x.shape[1]} elements of {to.array.size // rows} places")
    which = f.get("pool_func", 0)
    if which not in (1, 2):
        raise NccError("NCC912", f"there is no pool function {which}")
    y = numerics.reduce("max" if which == 1 else "add", x, (2,))
    if which == 2:
        y = numerics.alu("mult", y, element_bits(f.get("scale", 0), "float32"))
    e.put(to, y, dtype, None if known is None else np.logical_and.reduce(known, axis=2))


EFFECTS = {
    "TensorReduce": tensor_reduce,
    "TensorReduceBitvec": tensor_reduce_bits,
    "TensorCumulative": tensor_cumulative,
    "CrossLaneReduce": cross_lane,
    "CrossLaneReduceBitvec": cross_lane,
    "Pool": pool,
}
