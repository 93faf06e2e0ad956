"""Kernels' copies on chip: copies, fills, transposes, shuffles, gathers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import attrs

from ncc.ir.bir import Ap, Imm
from ncc.ir.data import FLOATS, numpy_type, size_of
from ncc.ir.kernel import Imm as Number
from ncc.ir.kernel_walks import Walk, cut
from ncc.ir.walks import collapsed

if TYPE_CHECKING:
    from ncc.ir.lower.kernel import Lowering

BLOCK = 32  # rows and columns of what DVE transposes


def tensor_copy(m: Lowering) -> None:
    """Bits for an equal type. ACT goes through float32, so it is no choice for integers."""
    src, dst = m.walk("src"), m.walk("dst")
    floats = src.dtype in FLOATS and dst.dtype in FLOATS
    engine = m.engine("DVE|Activation" if floats and m.target.level >= 30 else "DVE", src, dst)
    copied(m, dst, src, engine)


def copied(m: Lowering, dst: Walk, src: Walk, engine: str = "DVE") -> None:
    """An engine's copy; into a 16-bit PSUM tile the one rounding is the tile's."""
    kind = m.wants(dst)
    if kind == dst.dtype or m.wants(src) == kind:
        m.copy(dst, src, engine)
        return
    held = m.temp(dst)
    m.copy(held, src, engine)
    m.copy(dst, held)


def bits_of(value: float | int, dtype: str) -> int:
    """The element that holds a number: rounded, or an integer's own bits where they fit."""
    import numpy as np

    from ncc import numerics

    size = size_of(dtype)
    whole = isinstance(value, (int, np.integer)) and dtype not in FLOATS
    if whole and -(1 << (8 * size - 1)) <= int(value) < 1 << 8 * size:
        return int(value) & ((1 << 8 * size) - 1)
    one = numerics.cast(np.asarray([value]), dtype)
    return int.from_bytes(one.tobytes(), "little")


def memset(m: Lowering) -> None:
    dst = m.walk("dst")
    value = m.key("value")
    kind = m.wants(dst)
    bits = bits_of(value, kind)
    if kind != dst.dtype:
        bits = widened(bits, kind, dst.dtype)
    engine = m.engine("DVE|Pool", dst)
    for ap in m.accesses((dst,), 4):
        m.emit("Memset", engine, ap, constant=bits)


def widened(bits: int, narrow: str, wide: str) -> int:
    """The bits of an element in a type that holds all its values."""
    import numpy as np

    raw = np.frombuffer(bits.to_bytes(size_of(narrow), "little"), numpy_type(narrow))
    return int.from_bytes(raw.astype(numpy_type(wide)).tobytes(), "little")


# --- transposes -----------------------------------------------------------------------------------


def nc_transpose(m: Lowering) -> None:
    """PE where the result is in PSUM, DVE otherwise, unless the kernel says which."""
    data, dst = m.walk("data"), m.walk("dst")
    on_pe = m.op.engine == "tensor" or (m.op.engine != "vector" and dst.memory == "PSUM")
    if on_pe and data.memory == "SB" and dst.memory == "PSUM":
        from ncc.ir.lower.pe import transposed

        transposed(m, dst, data)
    else:
        blocks(m, dst, data)


def blocks(m: Lowering, dst: Walk, data: Walk) -> None:
    """A transpose by DVE: 32 × 32 at a time, through tiles of that size where edges are short."""
    rows, columns = data.rows, data.count
    if dst.rows != columns or dst.count != rows:
        raise m.refuse(f"transposes {rows} × {columns} into {dst.rows} × {dst.count}")
    dtype = m.wants(data)
    if m.wants(dst) != dtype:
        raise m.refuse(f"transposes {dtype} into {m.wants(dst)}")
    for top in range(0, rows, BLOCK):
        for left in range(0, columns, BLOCK):
            high, wide = min(BLOCK, rows - top), min(BLOCK, columns - left)
            source = _part(data.partition(top, high), left, wide)
            to = _part(dst.partition(left, wide), top, high)
            square(m, to, source, dtype)


def _part(walk: Walk, first: int, count: int) -> Walk:
    """Elements `first` to `first + count` of each partition of a walk, which must be one run."""
    free = collapsed(walk.free) or [(1, 1)]
    if len(free) > 1:
        outer, (step, num) = free[:-1], free[-1]
        at, inside = divmod(first, num)
        if len(outer) == 1 and inside + count <= num:
            return walk.with_free(((step, count),), at * outer[0][0] + inside * step)
        return _picked(walk, first, count)
    step, _ = free[0]
    return walk.with_free(((step, count),), first * step)


def _picked(walk: Walk, first: int, count: int) -> Walk:
    parts = cut([walk.free], 4, count)
    whole = [p for p in parts if len(parts) * count == walk.count]
    if not whole or first % count:
        from ncc.errors import NccError

        raise NccError("NCC398", f"transposes {walk.loc} in an order with too many jumps")
    part = parts[first // count]
    return walk.with_free(tuple(part.of(0)), part.more[0])


def square(m: Lowering, dst: Walk, src: Walk, dtype: str) -> None:
    """dst = srcᵀ, at most 32 × 32."""
    whole = src.rows == dst.rows == BLOCK
    plain = m.wants(src) == src.dtype and m.wants(dst) == dst.dtype
    if whole and plain:
        m.emit("StreamTranspose", "DVE", (dst.ap(),), (src.ap(),))
        return
    held = m.tile(BLOCK, (BLOCK,), dtype)
    if not whole:
        m.memset(held, 0)
    copied(m, held.partition(0, src.rows).with_free(((1, src.count),)), src)
    turned = m.tile(BLOCK, (BLOCK,), dtype)
    m.emit("StreamTranspose", "DVE", (turned.ap(),), (held.ap(),))
    copied(m, dst, turned.partition(0, dst.rows).with_free(((1, dst.count),)))


# --- predicates, shuffles, gathers ----------------------------------------------------------------


def as_mask(m: Lowering, walk: Walk, inverted: bool = False) -> Walk:
    """A predicate as integers that a record takes; `inverted` is 1 where it is 0."""
    kind = m.wants(walk)
    if kind not in FLOATS and not inverted:
        return m.narrow(walk)
    held = m.temp(walk, "uint8")
    op = "is_equal" if inverted else "not_equal"
    m.elementwise("TensorScalar", "DVE", held, (walk,), op0=op, const0=0.0)
    return held


def tensor_copy_predicated(m: Lowering) -> None:
    dst, mask = m.walk("dst"), m.walk("predicate")
    src = m.op.arg("src")
    inverted = bool(m.key("reverse_pred"))
    if isinstance(src, Number):
        bits = bits_of(src.value, m.wants(dst))
        single(m, dst, mask, Imm(_number(bits, m.wants(dst)), "float32"), inverted)
        return
    data = m.walk("src")
    if data.count == 1 < dst.count:
        single(m, dst, mask, m.column(data, dst.rows, dst.dtype), inverted)
        return
    if m.wants(data) != m.wants(dst) or data.dtype != dst.dtype:
        held = m.temp(data, m.wants(dst))
        m.copy(held, data)
        data = held
        if data.dtype != dst.dtype:
            held = m.temp(data, dst.dtype)
            m.copy(held, data)
            data = held
    chosen = as_mask(m, mask, inverted)
    data = m.same_quadrant(chosen, data)
    for a, b, out in m.accesses((chosen, data, dst), 3):
        m.emit("CopyPredicated", "DVE", (out,), (a, b))


def _number(bits: int, dtype: str) -> float:
    import numpy as np

    raw = np.frombuffer(bits.to_bytes(size_of(dtype), "little"), numpy_type(dtype))
    return float(raw[0].astype(np.float64))


def single(m: Lowering, dst: Walk, mask: Walk, value: Ap | Imm, inverted: bool) -> None:
    """One value a partition where the predicate says so."""
    if m.target.level < 30:  # no such record: a tile of the value
        filled = m.temp(dst, dst.dtype)
        if isinstance(value, Imm):
            m.memset(filled, bits_of(value.value, dst.dtype))
        else:
            spread(m, filled, value)
        chosen = as_mask(m, mask, inverted)
        for a, b, out in m.accesses((chosen, filled, dst), 3):
            m.emit("CopyPredicated", "DVE", (out,), (a, b))
        return
    chosen = as_mask(m, mask)
    for a, out in m.accesses((chosen, dst), 3):
        m.emit("CopyPredicated", "DVE", (out,), (a, value), reverse_pred=inverted)


def spread(m: Lowering, dst: Walk, column: Ap) -> None:
    """A column in every element of its partition."""
    source = Ap(column.loc, column.dtype, (column.ap[0], (0, dst.count)), column.offset)
    m.emit("TensorCopy", "DVE", (dst.ap(),), (source,))


def nc_stream_shuffle(m: Lowering) -> None:
    src, dst = m.walk("src"), m.walk("dst")
    mask = tuple(int(x) for x in m.key("shuffle_mask"))
    src = m.narrow(src)
    out = dst
    if m.wants(dst) != dst.dtype:
        out = m.temp(dst)
        if 255 in mask:
            m.copy(out, dst)
    if src.dtype != out.dtype:
        if size_of(src.dtype) != size_of(out.dtype):
            held = m.temp(src, out.dtype)
            m.copy(held, src)
            src = held
        else:
            src = attrs.evolve(src, dtype=out.dtype)
    for a, b in m.accesses((src, out), 4):
        m.emit("StreamShuffle", "DVE", (b,), (a,), mask=mask)
    m.finish(out, dst)


def contiguous(m: Lowering, walk: Walk) -> Walk:
    """The operand in a row in SBUF; itself where it is that."""
    walk = m.narrow(walk)
    pairs = collapsed(walk.free)
    row = len(pairs) <= 1 and all(step == 1 for step, _ in pairs)
    return walk if walk.memory == "SB" and row else m.compact(walk)


def gathered(m: Lowering, opcode: str, data: Walk, index: Walk, **keys: Any) -> None:
    dst = m.walk("dst")
    data, index = contiguous(m, data), contiguous(m, index)
    kind = m.wants(dst)
    if kind != data.dtype:
        held = m.temp(data, kind)
        m.copy(held, data)
        data = held
    plain = dst.memory == "SB" and len(collapsed(dst.free)) <= 1
    out = dst if plain else m.temp(dst)
    if not plain:
        m.copy(out, dst)  # what is not gathered stays
    m.emit(opcode, "Pool", (out.ap(),), (data.ap(), index.ap()), **keys)
    if not plain:
        m.copy(dst, out)


def local_gather(m: Lowering) -> None:
    index, dst = m.walk("index"), m.walk("dst")
    size, valid = int(m.key("num_elem_per_idx")), int(m.key("num_valid_indices"))
    listed = 16 * index.count if valid < 0 else valid
    if listed * size != dst.count:
        size = 1
    keys = {"num_valid_indices": max(valid, 0), "num_elem_per_idx": size}
    gathered(m, "IndirectCopy", m.walk("src_buffer"), index, **keys)


def nc_n_gather(m: Lowering) -> None:
    gathered(m, "Gather", m.walk("data"), m.walk("indices"))


LOWER = {
    "tensor_copy": tensor_copy,
    "memset": memset,
    "nc_transpose": nc_transpose,
    "tensor_copy_predicated": tensor_copy_predicated,
    "nc_stream_shuffle": nc_stream_shuffle,
    "local_gather": local_gather,
    "nc_n_gather": nc_n_gather,
}
