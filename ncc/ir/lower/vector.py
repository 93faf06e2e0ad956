"""Kernels' arithmetic: two tensors, a tensor and scalars, folds."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

import attrs

from ncc.ir.bir import Ap, Imm, Operand
from ncc.ir.data import FLOATS, size_of
from ncc.ir.kernel import Access
from ncc.ir.kernel_selectors import ALU, BITVEC
from ncc.ir.kernel_walks import Walk, cut
from ncc.ir.lower.magnitude import COMPARES, tensors
from ncc.ir.lower.magnitude import scalars as of_magnitude
from ncc.ir.lower.words import words
from ncc.ir.walks import collapsed

if TYPE_CHECKING:
    from ncc.ir.lower.kernel import Lowering

STEP = 0x7FFF  # of a record's pair
AXES = ("X", "XY", "XYZ", "XYZW")
WORDS = ("int32", "uint32")
# what Pool does with integers themselves; other operations on them go through float32
INTEGER = frozenset(
    [
        "add",
        "subtract",
        "multiply",
        "maximum",
        "minimum",
        "equal",
        "not_equal",
        "greater",
        "greater_equal",
        "less",
        "less_equal",
    ]
)
SUMS = frozenset(("add", "subtract", "multiply"))  # all that trn1 has of these
# operators of one operand: the operation, its constant, and whether the constant comes first
UNARY: dict[str, tuple[str, float, bool]] = {
    "bypass": ("bypass", 0.0, False),
    "copy": ("bypass", 0.0, False),
    "abs": ("abs", 0.0, False),
    "rsqrt": ("rsqrt", 0.0, False),
    "reciprocal": ("divide", 1.0, True),
    "square": ("pow", 2.0, False),
    "sqrt": ("pow", 0.5, False),
    "relu": ("max", 0.0, False),
    "logical_not": ("is_equal", 0.0, False),
}


def alu(m: Lowering, op: str) -> str:
    found = ALU.get(op)
    if op in COMPARES:
        said = f"applies {op}, which only tensor_tensor and tensor_scalar can say"
        raise m.refuse(said, "make it a nisa.tensor_tensor of its own")
    if found is None:
        raise m.refuse(f"applies {op}, which no engine has")
    return found


# --- two tensors ----------------------------------------------------------------------------------


def tensor_tensor(m: Lowering) -> None:
    a, b, dst = m.walk("data1"), m.walk("data2"), m.walk("dst")
    op = m.key("op")
    if op in BITVEC:
        bit_tensors(m, op, a, b, dst)
        return
    if op in COMPARES:
        tensors(m, op, a, m.same_quadrant(a, b), dst)
        return
    chosen = m.op.engine
    unit = INTEGER if m.target.level >= 30 else SUMS
    exact = {x.dtype for x in (a, b, dst)} <= set(WORDS) and op in unit
    outside = all(x.memory == "SB" for x in (a, b, dst))
    if exact and (chosen == "gpsimd" or (chosen == "unknown" and outside)):
        words(m, alu(m, op), dst, a, m.same_quadrant(a, b))
        return
    engine = m.engine("Pool" if op == "power" else "DVE", a, b, dst)
    a, b = one_in_psum(m, a, b)
    m.elementwise("TensorTensor", engine, dst, (a, b), op=alu(m, op))


def one_in_psum(m: Lowering, a: Walk, b: Walk) -> tuple[Walk, Walk]:
    """Two sources as a record takes them: one in PSUM at most, in one quadrant."""
    if a.memory == b.memory == "PSUM":
        held = m.temp(b, b.dtype)
        m.copy(held, b)
        b = held
    return a, m.same_quadrant(a, b)


def bit_type(dtype: str) -> str:
    """The integer type of a type's bits."""
    return f"uint{8 * size_of(dtype)}" if dtype in FLOATS else dtype


def as_bits(m: Lowering, walk: Walk, dtype: str) -> Walk:
    """A source as integers of a type: its own bits, or its values where the width differs."""
    walk = m.narrow(walk)
    if size_of(walk.dtype) == size_of(dtype):
        return attrs.evolve(walk, dtype=dtype)
    held = m.temp(walk, dtype)
    m.copy(held, attrs.evolve(walk, dtype=bit_type(walk.dtype)))
    return held


def bit_result(m: Lowering, dst: Walk, dtype: str) -> Walk:
    """Where bits of a type are written: the destination, or a tile that is copied there."""
    if m.wants(dst) == dst.dtype and size_of(dst.dtype) == size_of(dtype):
        return attrs.evolve(dst, dtype=dtype)
    return m.temp(dst, dtype)


def bit_finish(m: Lowering, out: Walk, dst: Walk) -> None:
    if out.loc != dst.loc:
        m.copy(dst, out)


def bit_tensors(m: Lowering, op: str, a: Walk, b: Walk, dst: Walk) -> None:
    kinds = [bit_type(m.wants(a)), bit_type(m.wants(b))]
    dtype = max(kinds, key=size_of)
    a, b = as_bits(m, a, dtype), as_bits(m, b, dtype)
    a, b = one_in_psum(m, a, b)
    out = bit_result(m, dst, dtype)
    for *reads, result in m.accesses((a, b, out), 3):
        m.emit("TensorTensor", "DVE", (result,), reads, op=alu(m, op))
    bit_finish(m, out, dst)


def scalar_tensor_tensor(m: Lowering) -> None:
    data, other, dst = m.walk("data"), m.walk("operand1"), m.walk("dst")
    op0, const, swap = step(m, 0, dst.rows)
    op1 = m.key("op1") or "bypass"
    if op0 == "bypass":  # a stage of its own that changes nothing
        op0, const = "add", Imm(0.0)
    data, other = one_in_psum(m, data, other)
    out = m.rounded(dst)
    for x, y, result in m.accesses((data, other, out), 2):
        m.emit(
            "TensorScalarPtr",
            "DVE",
            (result,),
            (x, const, y),
            op0=op0,
            reverse0=swap,
            op1=alu(m, op1),
            reverse1=bool(m.key("reverse1")),
            is_scalar_tensor_tensor=True,
        )
    m.finish(out, dst)


# --- a tensor and scalars -------------------------------------------------------------------------


def step(m: Lowering, n: int, rows: int) -> tuple[str, Operand, bool]:
    """A stage: the operation, its scalar, and whether the two change places."""
    op = m.key(f"op{n}") or "bypass"
    if op in UNARY:
        name, const, swap = UNARY[op]
        return name, Imm(const), swap
    scalar = m.scalar(f"operand{n}", rows)
    if scalar is None:
        scalar = m.scalar(f"imm{n}", rows) if m.op.arg(f"imm{n}") is not None else Imm(0.0)
    assert scalar is not None
    reverse = bool(m.key(f"reverse{n}")) if f"reverse{n}" in _keys(m) else False
    if op in COMPARES and m.op.op == "tensor_scalar":
        return op, scalar, reverse
    return alu(m, op), scalar, reverse


def _keys(m: Lowering) -> dict[str, Any]:
    from ncc.ir.kernel_ops import OPS

    return OPS[m.op.op].keys


def tensor_scalar(m: Lowering) -> None:
    data, dst = m.walk("data"), m.walk("dst")
    first, second = m.key("op0") or "bypass", m.key("op1")
    if first in BITVEC or second in BITVEC:
        bit_scalars(m, data, dst, first, second)
        return
    stages = [step(m, 0, dst.rows)]
    if second:
        stages.append(step(m, 1, dst.rows))
    if m.op.engine == "scalar" and by_activation(m, data, dst, stages):
        return
    pool = first in ("rsqrt", "power") or second in ("rsqrt", "power")
    engine = m.engine("Pool" if pool else "DVE", data, dst)
    engine = "DVE" if engine == "Activation" else engine
    scalars(m, engine, dst, data, stages)


def scalars(
    m: Lowering, engine: str, dst: Walk, data: Walk, stages: list[tuple[str, Operand, bool]]
) -> None:
    """(data op0 s0) op1 s1, as one record where a record has the operations."""
    if any(op in COMPARES for op, _, _ in stages):
        of_magnitude(m, engine, dst, data, stages)
        return
    stages = [x for x in stages if x[0] != "bypass"] or [("bypass", Imm(0.0), False)]
    keys: dict[str, Any] = {}
    for n, (op, _, swap) in enumerate(stages):
        keys |= {f"op{n}": op, f"reverse{n}": swap}
    given = [scalar for _, scalar, _ in stages]
    if all(isinstance(x, Imm) for x in given):
        for n, x in enumerate(given):
            assert isinstance(x, Imm)
            keys[f"const{n}"] = float(x.value)
        m.elementwise("TensorScalar", engine, dst, (data,), **keys)
    else:
        m.elementwise("TensorScalarPtr", engine, dst, (data,), given, **keys)


def by_activation(
    m: Lowering, data: Walk, dst: Walk, stages: list[tuple[str, Operand, bool]]
) -> bool:
    """A product, a sum, or a product and a sum, on ACT: func(scale · x + bias) with no func."""
    ops = [op for op, _, _ in stages]
    if m.target.level < 30 or ops not in (["mult"], ["add"], ["mult", "add"]):
        return False
    scale: Operand = stages[0][1] if ops[0] == "mult" else Imm(1.0)
    bias: Operand = stages[-1][1] if ops[-1] == "add" else Imm(0.0)
    from ncc.ir.lower.act import activate

    activate(m, dst, data, "Identity", scale, bias)
    return True


def bit_scalars(m: Lowering, data: Walk, dst: Walk, first: str, second: str) -> None:
    """Bit operations with numbers; an arithmetic stage behind one is an instruction of its own."""
    dtype = bit_type(m.wants(data))
    mixed = bool(second) and second not in BITVEC
    if first not in BITVEC:
        raise m.refuse(f"applies {second} to the bits of what {first} gives")
    data = as_bits(m, data, dtype)
    held = m.temp(dst, dtype) if mixed else bit_result(m, dst, dtype)
    stages = [_bit_step(m, 0, first, dtype, dst.rows)]
    if second and not mixed:
        stages.append(_bit_step(m, 1, second, dtype, dst.rows))
    keys: dict[str, Any] = {}
    for n, (op, _, swap) in enumerate(stages):
        keys |= {f"op{n}": op, f"reverse{n}": swap}
    given = [scalar for _, scalar, _ in stages]
    plain = all(isinstance(x, Imm) for x in given)
    for x, out in m.accesses((data, held), 3):
        if plain:
            consts = {f"const{n}": x.value for n, x in enumerate(given) if isinstance(x, Imm)}
            m.emit("TensorScalar", "DVE", (out,), (x,), **keys, **consts)
        else:
            m.emit("TensorScalarPtr", "DVE", (out,), (x, *given), **keys)
    if mixed:
        scalars(m, "DVE", dst, held, [step(m, 1, dst.rows)])
    else:
        bit_finish(m, held, dst)


def _bit_step(m: Lowering, n: int, op: str, dtype: str, rows: int) -> tuple[str, Imm | Ap, bool]:
    """A stage on bits; its scalar is a whole number of the element's width, or a column."""
    reverse = bool(m.key(f"reverse{n}"))
    arg = m.op.arg(f"operand{n}")
    if op == "invert" or arg is None:
        return alu(m, op), Imm(0, "uint32"), False
    if isinstance(arg, Access):
        walk = as_bits(m, m.walked(arg), dtype)
        if walk.count != 1 or walk.rows != rows or walk.memory != "SB":
            walk = m.compact(walk)
        return alu(m, op), walk.ap(), reverse
    value = m.scalar(f"operand{n}", rows)
    assert isinstance(value, Imm)
    return alu(m, op), Imm(int(value.value) & ((1 << 8 * size_of(dtype)) - 1), "uint32"), reverse


def reciprocal(m: Lowering) -> None:
    data, dst = m.walk("data"), m.walk("dst")
    m.elementwise("Reciprocal", "DVE", dst, (data,), free=4)


# --- folds ----------------------------------------------------------------------------------------


def tensor_reduce(m: Lowering) -> None:
    """A fold over free dimensions, which come last in the pattern."""
    data, dst, op = m.walk("data"), m.walk("dst"), m.key("op")
    axis = m.key("axis")
    rank = len(data.free) + 1
    named = {a % rank for a in ((axis,) if isinstance(axis, int) else axis)} or set(range(1, rank))
    if 0 in named:
        raise m.refuse("folds dimension 0, the partitions", "use tensor_partition_reduce")
    kept = tuple(p for i, p in enumerate(data.free) if i + 1 not in named)
    folded = tuple(p for i, p in enumerate(data.free) if i + 1 in named)
    bitwise = op in BITVEC
    if bitwise:
        dtype = bit_type(m.wants(data))
        data = as_bits(m, data, dtype)
        if data.free != (*kept, *folded) and len(data.free) == 1:
            kept, folded = _split(data, kept, folded)
        out = bit_result(m, dst, dtype)
    else:
        out = m.rounded(dst)
    inner = _counted(collapsed(folded)) or [(1, 1)]
    if len(inner) > 3 or any(abs(s) > 0x7FFF for s, _ in inner):
        shape = (prod(n for _, n in kept), prod(n for _, n in folded))
        held = m.temp(data)
        m.copy(held, data.with_free((*kept, *folded)))
        data, kept = held, ((shape[1], shape[0]),)
        inner = _counted([(1, shape[1])])
    keys = {"op": alu(m, op), "axis": AXES[len(inner) - 1], "negate": bool(m.key("negate"))}
    for part in cut([kept, out.free], 4 - len(inner)):
        ap = data.ap((*(part.of(0) or ()), *inner), part.more[0])
        result = out.ap(part.of(1), part.more[1])
        m.emit("TensorReduce", "DVE", (result,), (ap,), **keys)
    if bitwise:
        bit_finish(m, out, dst)
    else:
        m.finish(out, dst)


def _split(data: Walk, kept: tuple[Any, ...], folded: tuple[Any, ...]) -> tuple[Any, Any]:
    """The dimensions of an operand that was copied into a row."""
    inner = prod(n for _, n in folded)
    return ((inner, prod(n for _, n in kept)),), ((1, inner),)


def _counted(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Pairs whose counters fit: a longer one as two, where its count has a divisor."""
    found: list[tuple[int, int]] = []
    for s, num in pairs:
        if num > 0xFFFF:
            part = next(d for d in range(STEP // max(abs(s), 1), 0, -1) if num % d == 0)
            found.append((s * part, num // part))
            num = part
        found.append((s, num))
    return found


def tensor_partition_reduce(m: Lowering) -> None:
    """A fold over partitions, by Pool, into the first partition."""
    data, dst, op = m.walk("data"), m.walk("dst").partition(0, 1), m.key("op")
    names = {"average": "average", "add": "add", "maximum": "max"}
    names |= {"bitwise_or": "bitwise_or", "bitwise_and": "bitwise_and"}
    names |= {"bitwise_xor": "bitwise_xor"}
    if op not in names:
        raise m.refuse(f"folds partitions with {op}", "add, maximum, average and bit operations")
    if data.memory == "PSUM":
        data = m.compact(data)
    out = dst
    if op in BITVEC:
        dtype = bit_type(m.wants(data))
        data = as_bits(m, data, dtype)
        out = bit_result(m, dst, dtype) if dst.memory == "SB" else m.temp(dst, dtype)
    elif dst.memory == "PSUM":
        out = m.temp(dst)
    for a, b in m.accesses((data, out), 4):
        m.emit("TensorReduce", "Pool", (b,), (a,), op=names[op], axis="C")
    if out.loc != dst.loc:
        m.copy(dst, out)


LOWER = {
    "tensor_tensor": tensor_tensor,
    "tensor_scalar": tensor_scalar,
    "scalar_tensor_tensor": scalar_tensor_tensor,
    "tensor_reduce": tensor_reduce,
    "tensor_partition_reduce": tensor_partition_reduce,
    "reciprocal": reciprocal,
}
