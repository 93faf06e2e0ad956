"""DVE and Pool, elementwise: copies and arithmetic (ISA reference 5.7 to 5.10, 5.12, 5.14)."""

from __future__ import annotations

import numpy as np

from ncc import numerics
from ncc import numerics_rows as rows_of
from ncc.encode.codes import ALU
from ncc.errors import NccError
from ncc.ir.data import FLOATS, numpy_type
from ncc.sim.act import element_bits, merged_marks
from ncc.sim.engine import Engine, Fields, Scalar, flat, together
from ncc.sim.memory import Array
from ncc.sim.views import View

OPS = {code: name for name, code in ALU.items()}
FIRST, SECOND = 1, 2  # bits of `reverse`
FOLDS = ("add", "subtract", "mult", "max", "min")  # what an accumulator takes


def op_name(code: int) -> str:
    """The ALU operation of a wire code; NCC900 for one that the machine has not."""
    name = OPS.get(code, "")
    if name not in numerics.ALU and name not in numerics.BITVEC:
        raise NccError("NCC900", f"ALU code {code:#04x} is not modelled")
    return name


def read(e: Engine, f: Fields, name: str = "src", tag: str = "in_dtype") -> View:
    return e.source(f[name], f.get("nchan", 0), e.dtype(f.get(tag, 0)))


def into(e: Engine, f: Fields) -> tuple[View, str]:
    dtype = e.dtype(f.get("out_dtype", 0))
    return e.target(f["dst"], f.get("nchan", 0), dtype), dtype


def copy(e: Engine, f: Fields) -> None:
    """Moves bits."""
    source, (to, dtype) = read(e, f), into(e, f)
    if dtype != e.dtype(f.get("in_dtype", 0)):
        raise NccError("NCC912", "a Copy has one dtype", hint="Cast converts")
    x, _ = together(source, to)
    e.write(to, x, e.marks(source))


def cast(e: Engine, f: Fields) -> None:
    """Converts, through float32."""
    source, (to, dtype) = read(e, f), into(e, f)
    x, _ = together(source, to)
    e.put(to, numerics.widen(x), dtype, e.marks(source))


def reciprocal(e: Engine, f: Fields) -> None:
    source, (to, dtype) = read(e, f), into(e, f)
    x, _ = together(source, to)
    e.put(
        to,
        numerics.alu("divide", np.ones((), np.float32), x),
        dtype,
        e.marks(source),
    )


def memset(e: Engine, f: Fields) -> None:
    to, dtype = into(e, f)
    count = to.array.size // to.array.shape[0]
    if f.get("count", 0) != count:
        raise NccError("NCC912", f"counts {f.get('count', 0)} elements for a pattern of {count}")
    e.write(to, np.broadcast_to(element_bits(f.get("set_value", 0), dtype), to.array.shape))


# --- two tensors ----------------------------------------------------------------------------------


def tensor_tensor(e: Engine, f: Fields) -> None:
    """src0 op src1 in float32; the integer codes in the operands' own type, exactly."""
    a, b = read(e, f, "src0", "src0_dtype"), read(e, f, "src1", "src1_dtype")
    _one_in_psum(a, b)
    to, dtype = into(e, f)
    x, y, _ = together(a, b, to)
    code = f.get("op", 0)
    if code >= 0xC4:
        e.write(to, _integers(code, x, y, dtype), e.marks(a, b))
        return
    e.put(to, numerics.alu(arith(code), x, y), dtype, e.marks(a, b))


def _one_in_psum(a: View, b: View) -> None:
    if a.space.states is not None and b.space.states is not None:
        raise NccError("NCC913", "reads two operands from PSUM, where one may stand")


def arith(code: int) -> str:
    name = op_name(code)
    if name not in numerics.ALU:
        raise NccError("NCC912", f"{name} works on bits, not in float32")
    return name


def _integers(code: int, x: Array, y: Array, dtype: str) -> Array:
    """Operations of integers in their own type, in which sums and products wrap around."""
    name = OPS.get(code, "").removesuffix("_int")
    if name not in numerics.INTEGER:
        raise NccError("NCC900", f"ALU code {code:#04x} is not modelled")
    if dtype in FLOATS or x.dtype.kind == "f" or y.dtype.kind == "f":
        raise NccError("NCC912", "an integer operation on a float type")
    return numerics.integer(name, x, y, dtype)


def tensor_tensor_bits(e: Engine, f: Fields) -> None:
    a, b = read(e, f, "src0", "src0_dtype"), read(e, f, "src1", "src1_dtype")
    _one_in_psum(a, b)
    to, dtype = into(e, f)
    x, y, _ = together(a, b, to)
    e.write(to, bits(op_name(f.get("op", 0)), x, y, dtype), e.marks(a, b))


def bits(name: str, x: Array, y: Array, dtype: str) -> Array:
    """A bit operation on integers of one type, or on the bits of floats of one type."""
    if x.dtype != numpy_type(dtype):
        raise NccError("NCC912", "a bit operation has one dtype for operands and result")
    kind = (
        np.dtype(f"i{x.dtype.itemsize}")
        if x.dtype.kind == "i"
        else np.dtype(f"u{x.dtype.itemsize}")
    )
    a, b = x.view(kind), y.view(kind) if y.dtype.itemsize == x.dtype.itemsize else y.astype(kind)
    if name == "bypass":
        return np.broadcast_arrays(a, b)[0].view(x.dtype)
    if name not in numerics.BITVEC:
        raise NccError("NCC912", f"{name} is not a bit operation")
    return np.asarray(numerics.bitvec(name, a, b), kind).view(x.dtype)


# --- a tensor and scalars -------------------------------------------------------------------------


def stage(name: str, x: Array, scalar: Array, swapped: bool) -> Array:
    """One stage of the vector pipeline in float32."""
    if name == "bypass":
        return numerics.widen(x)
    one = scalar if scalar.ndim == 0 else scalar.reshape(scalar.shape[0], *(1,) * (x.ndim - 1))
    return numerics.alu(name, one, x) if swapped else numerics.alu(name, x, one)


def _two_scalars(e: Engine, f: Fields) -> tuple[Scalar, Scalar]:
    rows = f.get("nchan", 0)
    return (
        e.scalar(f.get("imm0", 0), f.get("imm0_src", 0), rows),
        e.scalar(f.get("imm1", 0), f.get("imm1_src", 0), rows),
    )


def tensor_scalar(e: Engine, f: Fields) -> None:
    """(x op0 s0) op1 s1; `reverse` swaps tensor and scalar of a stage."""
    source, (s0, s1), (to, dtype) = read(e, f), _two_scalars(e, f), into(e, f)
    first, second = arith(f.get("op0", 0)), arith(f.get("op1", 0))
    if first == "bypass" != second:
        raise NccError("NCC912", "op0 is bypass and op1 is not")
    x, _ = together(source, to)
    swap = f.get("reverse", 0)
    y = stage(second, stage(first, x, s0.value, bool(swap & FIRST)), s1.value, bool(swap & SECOND))
    used = [s for s, n in ((s0, first), (s1, second)) if n != "bypass"]
    e.put(to, y, dtype, merged_marks(e.marks(source), x.size // x.shape[0], *used))


def tensor_scalar_bits(e: Engine, f: Fields) -> None:
    """The same on bits; the scalars are raw words of the element's width."""
    rows, kind = f.get("nchan", 0), e.dtype(f.get("in_dtype", 0))
    source, (to, dtype) = read(e, f), into(e, f)
    x, _ = together(source, to)
    y, known, swap = x, e.marks(source), f.get("reverse", 0)
    for n, bit in ((0, FIRST), (1, SECOND)):
        name = op_name(f.get(f"op{n}", 0))
        if name == "bypass":
            continue
        how, raw = f.get(f"imm{n}_src", 0), f.get(f"imm{n}", 0)
        one = (
            e.scalar(raw, 1, rows, kind)
            if how == 1
            else Scalar(
                element_bits(e.register(raw) if how == 2 else raw, kind)[0:1].reshape(()), None
            )
        )
        value = one.value if one.value.ndim == 0 else one.value.reshape(rows, *(1,) * (x.ndim - 1))
        value = np.broadcast_to(value, y.shape)
        y = bits(name, value, y, kind) if swap & bit else bits(name, y, value, kind)
        known = merged_marks(known, x.size // rows, one)
    if dtype != kind:
        raise NccError("NCC912", "a bit operation has one dtype for operands and result")
    e.write(to, y, known)


def cache_reduce(e: Engine, f: Fields) -> None:
    """t = x op0 s0 to the destination, folded with op1 into the accumulator (9A)."""
    _fold(e, f, running=False)


def cache_cumulative(e: Engine, f: Fields) -> None:
    """The accumulator becomes t op1 accumulator at every element, and is written there (E6)."""
    _fold(e, f, running=True)


def _fold(e: Engine, f: Fields, running: bool) -> None:
    source, (s0, s1), (to, dtype) = read(e, f), _two_scalars(e, f), into(e, f)
    name, command = arith(f.get("op1", 0)), f.get("accumulator_cmd", 0)
    if name not in FOLDS or command not in (2, 3, 4):
        raise NccError("NCC912", f"cannot fold with {name} under accumulator command {command}")
    x, _ = together(source, to)
    rows = x.shape[0]
    t = stage(arith(f.get("op0", 0)), x, s0.value, False)
    known = merged_marks(e.marks(source), x.size // rows, s0)
    seed = np.full((rows, 1), rows_of.IDENTITY[name], np.float32)
    seed_known = np.ones((rows, 1), np.bool_)
    if command == 4:
        seed = np.broadcast_to(numerics.widen(s1.value), (rows, 1))
        seed_known = seed_known if s1.known is None else s1.known
    elif command == 2:
        seed, seed_known = e.sums[:rows].reshape(rows, 1), e.sums_known[:rows].reshape(rows, 1)
    marks = None
    if known is not None or not seed_known.all():
        own = np.ones(flat(t).shape, np.bool_) if known is None else flat(known)
        marks = np.concatenate([seed_known, own], axis=1)
    if running:
        steps = np.concatenate([seed, flat(t)], axis=1)
        walk = rows_of.running(name, steps, swapped=True)
        ways = None if marks is None else np.logical_and.accumulate(marks, axis=1)
        e.sums[:rows] = walk[:, -1]
        e.sums_known[:rows] = True if ways is None else ways[:, -1]
        e.put(to, walk[:, 1:], dtype, None if ways is None else ways[:, 1:])
        return
    e.sums[:rows] = rows_of.folded(name, flat(t), seed)
    e.sums_known[:rows] = True if marks is None else marks.all(axis=1)
    e.put(to, t, dtype, known)


def scalar_tensor_tensor(e: Engine, f: Fields) -> None:
    """(src0 op0 s) op1 src1."""
    a, b = read(e, f, "src0", "src0_dtype"), read(e, f, "src1", "src1_dtype")
    _one_in_psum(a, b)
    s = _third(e, f)
    to, dtype = into(e, f)
    x, y, _ = together(a, b, to)
    swap = f.get("reverse", 0)
    t = stage(arith(f.get("op0", 0)), x, s.value, bool(swap & FIRST))
    name = arith(f.get("op1", 0))
    found = (
        t
        if name == "bypass"
        else (numerics.alu(name, y, t) if swap & SECOND else numerics.alu(name, t, y))
    )
    e.put(to, found, dtype, merged_marks(e.marks(a, b), x.size // x.shape[0], s))


def _third(e: Engine, f: Fields) -> Scalar:
    """The scalar of the two-source structs, with a dtype of its own."""
    how, dtype = f.get("imm0_src", 0), e.dtype(f.get("imm0_dtype", 0xA))
    found = e.scalar(f.get("imm0", 0), how, f.get("nchan", 0), dtype if how == 1 else "float32")
    return Scalar(numerics.widen(found.value), found.known)


def scan(e: Engine, f: Fields) -> None:
    """d[i] = (d[i−1] op0 src0[i]) op1 src1[i], from the scalar; the carried value is float32."""
    a, b = read(e, f, "src0", "src0_dtype"), read(e, f, "src1", "src1_dtype")
    _one_in_psum(a, b)
    s = _third(e, f)
    to, dtype = into(e, f)
    x, y = flat(numerics.widen(together(a, b, to)[0])), flat(numerics.widen(together(a, b, to)[1]))
    op0, op1, swap = arith(f.get("op0", 0)), arith(f.get("op1", 0)), f.get("reverse", 0)
    first = np.broadcast_to(s.value.reshape(-1), (x.shape[0],))
    out = rows_of.scan(op0, op1, x, y, first, bool(swap & FIRST), bool(swap & SECOND))
    known = merged_marks(e.marks(a, b), x.shape[1], s)
    e.put(to, out, dtype, None if known is None else np.logical_and.accumulate(flat(known), axis=1))


EFFECTS = {
    "Copy": copy,
    "Cast": cast,
    "Reciprocal": reciprocal,
    "Memset": memset,
    "TensorTensor": tensor_tensor,
    "TensorTensorBitvec": tensor_tensor_bits,
    "TensorScalar": tensor_scalar,
    "TensorScalarBitvec": tensor_scalar_bits,
    "TensorScalarCacheReduce": cache_reduce,
    "TensorScalarCacheCumulative": cache_cumulative,
    "ScalarTensorTensor": scalar_tensor_tensor,
    "TensorTensorScan": scan,
}
