"""The Activation engine: f(scale · x + bias) and its running sum (ISA reference 5.5, 5.6, 6.4)."""

from __future__ import annotations

import numpy as np

from ncc import numerics
from ncc import numerics_rows as rows_of
from ncc.encode.codes import ACT_FUNC, HARD_WIRED, PARAMETRIC, TABLE_SETS
from ncc.errors import NccError
from ncc.ir.data import numpy_type
from ncc.sim.engine import Engine, Fields, Scalar, flat, together
from ncc.sim.memory import Array, Marks

# The listing's name of a function, where BIR and numerics have a longer one
LONG = {
    "Gelu_tanh": "Gelu_apprx_tanh",
    "Gelu_sigmoid": "Gelu_apprx_sigmoid",
    "dGelu_sigmoid": "Derivative_Gelu_apprx_sigmoid",
    "dGelu": "Derivative_Gelu",
    "dErf": "Derivative_Erf",
    "AbsRecipSqrt": "Abs_reciprocal_sqrt",
    "dSilu": "Derivative_silu",
    "IsFinite": "Is_finite",
}
NAMES = {code: name for name, code in ACT_FUNC.items()}
IDLE, ZERO, ACCUMULATE, ZERO_ACCUMULATE = range(4)


def activate(e: Engine, f: Fields) -> None:
    """One function on every element; its sum a row feeds the accumulator, before the rounding."""
    rows, out = f.get("nchan", 0), e.dtype(f.get("out_dtype", 0))
    name = _function(e, f)
    source = e.source(f["src"], rows, e.dtype(f.get("in_dtype", 0)))
    scale = e.scalar(f.get("scale", 0), f.get("scale_src", 0), rows)
    bias = _bias(e, f, rows)
    alpha = 0.0
    if f.get("act_func", 0) in PARAMETRIC:
        alpha = float(e.scalar(f.get("imm", 0), 2 * (f.get("imm_src", 0) == 2), rows).value)
    to = e.target(f["dst"], rows, out)
    x, _ = together(source, to)
    known = merged_marks(e.marks(source), x.size // rows, scale, bias)
    by, to_add = _raised(scale.value, x.ndim), _raised(bias.value, x.ndim)
    if name == "Copy" and out == e.dtype(f.get("in_dtype", 0)):
        y = x  # bits, so that every NaN and every integer survives
        e.write(to, y, known)
    else:
        y = numerics.activation(name, x, by, to_add, alpha)
        e.put(to, y, out, known)
    if command := f.get("accumulator_cmd", 0):
        _accumulate(e, command, flat(numerics.widen(y)), known)


def _function(e: Engine, f: Fields) -> str:
    code = f.get("act_func", 0)
    name = NAMES.get(code)
    if name is None:
        raise NccError("NCC900", f"activation function {code} is not known")
    if name not in HARD_WIRED:
        loaded = TABLE_SETS[e.table_set] if e.table_set >= 0 else ("no set", ())
        if name not in loaded[1]:
            have = loaded[0] if e.table_set < 0 else f"set {e.table_set}, {loaded[0]},"
            raise NccError("NCC917", f"{name} is not in the table, where {have} is loaded")
    return LONG.get(name, name)


def _bias(e: Engine, f: Fields, rows: int) -> Scalar:
    how = {0: 1, 1: 0, 2: 2}.get(f.get("bias_src_n", 0))  # the bias counts the other way round
    if how is None:
        raise NccError("NCC900", f"a bias from source {f['bias_src_n']} is not known")
    if how != 1:
        return e.scalar(f.get("bias", 0), how, rows)
    dtype = e.dtype(f.get("bias_dtype", 0))
    found = e.scalar(f.get("bias", 0), 1, rows, dtype)
    return Scalar(numerics.widen(found.value), found.known)


def _raised(x: Array, axes: int) -> Array:
    """A column with as many axes as the operand it meets."""
    return x if x.ndim == 0 else x.reshape(x.shape[0], *(1,) * (axes - 1))


def merged_marks(known: Marks | None, count: int, *scalars: Scalar) -> Marks | None:
    """The marks of a result of `count` elements a row, scalars included."""
    for one in scalars:
        if one.known is not None:
            column = np.broadcast_to(one.known, (one.known.shape[0], count))
            known = column if known is None else known & column
    return known


def _accumulate(e: Engine, command: int, y: Array, known: Marks | None) -> None:
    rows = y.shape[0]
    if command == ZERO:
        e.sums[:rows], e.sums_known[:rows] = 0, True
        return
    if command not in (ACCUMULATE, ZERO_ACCUMULATE):
        raise NccError("NCC900", "a load of the accumulator has no seed field in this record")
    written = np.ones(rows, np.bool_) if known is None else flat(known).all(axis=1)
    before = np.zeros(rows, np.float32)
    if command == ACCUMULATE:
        before, written = e.sums[:rows], written & e.sums_known[:rows]
    e.sums[:rows] = rows_of.folded("add", y, before)
    e.sums_known[:rows] = written


def read_accumulator(e: Engine, f: Fields) -> None:
    """The accumulator of each row to a column; negated where the bundle says so."""
    rows, out = f.get("nchan", 0), e.dtype(f.get("out_dtype", 0))
    to = e.target(f["dst"], rows, out)
    if f.get("count", 1) != 1 or to.array.size != rows:
        raise NccError("NCC912", "an accumulator holds one element a row")
    values = e.sums[:rows].reshape(rows, 1)
    known = None if e.sums_known[:rows].all() else e.sums_known[:rows].reshape(rows, 1)
    e.put(to, -values if f.get("negated", 0) else values, out, known)


def load_table(e: Engine, f: Fields) -> None:
    number = f.get("table_set", 0)
    if number >= len(TABLE_SETS):
        raise NccError("NCC917", f"there is no table set {number}")
    e.table_set = number


def element_bits(raw: int, dtype: str) -> Array:
    """The element whose bit pattern stands, low-aligned, in 32 bits."""
    return np.array([raw & 0xFFFFFFFF], np.uint64).view(numpy_type(dtype))[:1]


EFFECTS = {
    "Activate": activate,
    "ActivationReadAccumulator": read_accumulator,
    "DveReadAccumulator": read_accumulator,
    "ActivationTableLoad": load_table,
}
