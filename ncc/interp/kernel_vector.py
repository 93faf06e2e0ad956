"""NKI, elementwise arithmetic and folds of the vector engines (NKI reference 6.1, 7.3)."""

from __future__ import annotations

from functools import reduce

import numpy as np

from ncc import numerics
from ncc.errors import NccError
from ncc.interp.kernel_call import Call, against, alike
from ncc.interp.kernel_memory import Array
from ncc.ir.kernel import Access
from ncc.ir.kernel_selectors import ALU, BITVEC

WORDS = ("int32", "uint32")
ONE, ZERO = np.ones((), np.float32), np.zeros((), np.float32)


def alu_name(op: str) -> str:
    """numerics' name of an operator."""
    found = ALU.get(op)
    if found is None:
        raise NccError("NCC282", f"{op} is no operator of the vector engines")
    return found


def unary(op: str, x: Array) -> Array | None:
    """An operator of one operand, in float32; None for the others."""
    if op in ("bypass", "copy"):
        return numerics.widen(x)
    if op in ("abs", "rsqrt"):
        return numerics.alu(op, x, ZERO)
    if op == "reciprocal":
        return numerics.alu("divide", ONE, x)
    if op == "square":
        return numerics.alu("mult", x, x)
    if op == "relu":
        return numerics.alu("max", x, ZERO)
    if op == "sqrt":
        return numerics.activation("Sqrt", x)
    if op == "logical_not":
        return numerics.alu("is_equal", x, ZERO)
    return None


def arithmetic(op: str, a: Array, b: Array) -> Array:
    """a op b in float32."""
    if op == "fmod":
        with np.errstate(all="ignore"):
            return np.fmod(numerics.widen(a), numerics.widen(b))
    if op in BITVEC:
        return bitwise(op, a, b)
    return numerics.alu(alu_name(op), a, b)


def stage(op: str, x: Array, scalar: Array, reverse: bool) -> Array:
    """One step of a tensor-scalar instruction."""
    found = unary(op, x)
    if found is not None:
        return found
    one = against(x, scalar)
    return arithmetic(op, one, x) if reverse else arithmetic(op, x, one)


def bits(x: Array) -> Array:
    """The bits of an operand as integers of its width."""
    return x if x.dtype.kind in "iu" else x.view(np.dtype(f"u{x.dtype.itemsize}"))


def bitwise(op: str, a: Array, b: Array) -> Array:
    """a op b on bits, in the wider of the two types."""
    a, b = bits(a), bits(b)
    if b.dtype.itemsize > a.dtype.itemsize:
        a = a.astype(b.dtype)
    return np.asarray(numerics.bitvec(ALU[op], a, b))


def _raw(c: Call, values: Array) -> None:
    """Write integers without a conversion: bits, cut or widened to the destination's width."""
    kind = c.read("dst").dtype
    if kind.kind not in "iu" and values.dtype.itemsize == kind.itemsize:
        c.write("dst", values.view(kind))
    elif kind.kind in "iu":
        c.write("dst", values.astype(kind))
    else:
        c.store("dst", numerics.widen(values))


# --- two tensors ----------------------------------------------------------------------------------


def tensor_tensor(c: Call) -> None:
    a, b = alike(c.read("data1"), c.read("data2"))
    op = c.key["op"]
    if op in BITVEC:
        _raw(c, bitwise(op, a, b))
    elif ALU.get(op) in numerics.INTEGER and _integers(c):
        c.write("dst", numerics.integer(ALU[op], a, b, c.dtype("dst")))
    else:
        c.store("dst", arithmetic(op, a, b))


def _integers(c: Call) -> bool:
    """Whether the op runs in the integer unit, exactly: 32-bit integers only, on gpsimd."""
    roles = ("dst", "data1", "data2")
    if any(c.dtype(role) not in WORDS for role in roles):
        return False
    if c.op.engine == "unknown":
        return not any(c.on(role, "psum") for role in roles)
    return c.op.engine == "gpsimd"


def scalar_tensor_tensor(c: Call) -> None:
    """(data op0 operand0) op1 operand1."""
    x, y = alike(c.read("data"), c.read("operand1"))
    t = stage(c.key["op0"], x, c.scalar("operand0"), c.key["reverse0"])
    op = c.key["op1"]
    if op in ("", "bypass"):
        c.store("dst", t)
    else:
        c.store("dst", arithmetic(op, y, t) if c.key["reverse1"] else arithmetic(op, t, y))


# --- a tensor and scalars -------------------------------------------------------------------------


def tensor_scalar(c: Call) -> None:
    """(data op0 operand0) op1 operand1; `reverse` swaps tensor and scalar of a stage."""
    x = c.read("data")
    if c.key["op0"] in BITVEC:
        x = _bit_stage(c, 0, bits(x))
        if c.key["op1"] in BITVEC:
            x = _bit_stage(c, 1, x)
        if c.key["op1"] in BITVEC or not c.key["op1"]:
            _raw(c, x)
            return
    else:
        x = stage(c.key["op0"], x, c.scalar("operand0"), c.key["reverse0"])
    if c.key["op1"]:
        x = stage(c.key["op1"], x, c.scalar("operand1"), c.key["reverse1"])
    c.store("dst", x)


def _bit_stage(c: Call, number: int, x: Array) -> Array:
    op, role = c.key[f"op{number}"], f"operand{number}"
    if op == "invert":
        return np.invert(x)
    found = c.args.get(role)
    if isinstance(found, Access):
        one = bits(c.read(role)).reshape(x.shape[0], *[1] * (x.ndim - 1)).astype(x.dtype)
    else:
        width = (1 << 8 * x.dtype.itemsize) - 1
        one = np.asarray(int(c.number(role)) & width, np.uint64).astype(x.dtype)
    one = np.broadcast_to(one, x.shape)
    if c.key[f"reverse{number}"]:
        return np.asarray(numerics.bitvec(ALU[op], np.array(one), x))
    return np.asarray(numerics.bitvec(ALU[op], x, np.array(one)))


def reciprocal(c: Call) -> None:
    c.store("dst", numerics.alu("divide", ONE, c.read("data")))


# --- folds ----------------------------------------------------------------------------------------


def tensor_reduce(c: Call) -> None:
    """A fold over the named axes, times −1 where the call negates."""
    x, op = c.read("data"), c.key["op"]
    axis = c.key["axis"]
    named = (axis,) if isinstance(axis, int) else tuple(axis)
    axes = tuple(sorted({a % x.ndim for a in named})) or tuple(range(1, x.ndim))
    if op in BITVEC:
        _raw(c, fold_bits(op, x, axes))
        return
    y = fold(op, x, axes)
    c.store("dst", -y if c.key["negate"] else y)


def fold(op: str, x: Array, axes: tuple[int, ...]) -> Array:
    """A fold in float32 (sums and products: float64, rounded once)."""
    return numerics.reduce(alu_name(op), x, axes)


def fold_bits(op: str, x: Array, axes: tuple[int, ...]) -> Array:
    kept = [i for i in range(x.ndim) if i not in axes]
    shape = tuple(x.shape[i] for i in kept)
    flat = bits(x).transpose(*kept, *axes).reshape(*shape, -1)
    return reduce(lambda a, b: bitwise(op, a, b), (flat[..., i] for i in range(flat.shape[-1])))


def tensor_partition_reduce(c: Call) -> None:
    """A fold across partitions; only the first partition of the destination is written."""
    x, op = c.rows("data"), c.key["op"]
    out = np.array(c.rows("dst"))
    if op in BITVEC:
        found = fold_bits(op, x, (0,)).astype(out.dtype)
    else:
        y = fold("add" if op == "average" else op, x, (0,))
        if op == "average":
            y = numerics.alu("mult", y, np.asarray(1 / x.shape[0], np.float32))
        found = numerics.cast(y, c.dtype("dst"))
    out[0] = found.reshape(-1)
    c.write("dst", out)


MEANING = {
    "tensor_tensor": tensor_tensor,
    "tensor_scalar": tensor_scalar,
    "scalar_tensor_tensor": scalar_tensor_tensor,
    "reciprocal": reciprocal,
    "tensor_reduce": tensor_reduce,
    "tensor_partition_reduce": tensor_partition_reduce,
}
