"""Kernels' DMAs whose HBM side begins where the machine says: rows by index, starts by a number.

The machine has one form: row r of a transfer begins `scale` times an index further, and the indices
are a column of 32-bit integers in SBUF. A start that is one number (a register, or an element on
chip) becomes such a column: the number times its scale, plus each row's own step.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd, prod
from typing import TYPE_CHECKING, Any

import attrs

from ncc.ir.data import size_of
from ncc.ir.kernel import Access, Reg, Rows, Scalar
from ncc.ir.kernel_walks import Walk
from ncc.ir.lower.dma import add_to, move, scratch, trigger

if TYPE_CHECKING:
    from ncc.ir.lower.kernel import Lowering

WORDS = ("int32", "uint32")
LANES = 128


@attrs.frozen
class Table:
    """An HBM access without its moves, and the columns of indices that move its rows.

    `split`: one column for each place of the second pair; else the columns follow each other, and
    each gives as many rows as it has partitions.
    """

    walk: Walk  # the first pair has step 0
    columns: tuple[Walk, ...]
    scale: int
    limit: int
    split: bool = False

    @property
    def rows(self) -> int:
        return self.walk.free[0][1]


def moves(m: Lowering, access: Access) -> bool:
    """Whether an access begins somewhere that only the machine knows."""
    for one in access.moves:
        if isinstance(one, Rows) or not isinstance(one.source, Reg):
            return True
        if one.source.name not in m.env:
            return True
    return False


def table(m: Lowering, access: Access) -> Table:
    """A moving access of HBM."""
    buffer = m.buffer(access)
    if buffer.on_chip:
        said = f"{m.op.op} reads where {buffer.name} begins while it runs"
        raise m.dynamic(said, m.op.origin)
    rows = [x for x in access.moves if isinstance(x, Rows)]
    numbers = [x for x in access.moves if isinstance(x, Scalar)]
    known = [x for x in numbers if isinstance(x.source, Reg) and x.source.name in m.env]
    offset = access.offset
    for one in known:
        assert isinstance(one.source, Reg)
        offset += one.scale * int(m.env[one.source.name])
    unknown = [x for x in numbers if x not in known]
    if len(rows) + len(unknown) > 1:
        raise m.dynamic(f"{m.op.op} moves {buffer.name} by several indices", m.op.origin)
    if rows:
        return by_rows(m, access, rows[0], offset)
    return by_number(m, access, unknown[0], offset)


def by_rows(m: Lowering, access: Access, by: Rows, offset: int) -> Table:
    index = words(m, m.walked(by.source))
    count = access.pairs[0][1]
    total = index.rows * index.count
    split = total != count and len(access.pairs) > 1 and total == count * access.pairs[1][1]
    if not split and total < count:
        raise m.refuse(f"gives {total} indices for {count} rows")
    pairs = ((0, count), *access.pairs[1:])
    walk = Walk(access.buffer, access.dtype, "DRAM", 0, offset, pairs)
    columns = tuple(_column(index, k) for k in range(index.count))
    return Table(walk, columns, by.scale, by.limit, split)


def _column(index: Walk, k: int) -> Walk:
    """Element k of each partition."""
    more = 0
    for step, num in reversed(index.free):
        k, at = divmod(k, num)
        more += at * step
    return index.with_free(((1, 1),), more)


def words(m: Lowering, index: Walk) -> Walk:
    """Indices as 32-bit integers in SBUF."""
    if index.memory == "SB" and index.dtype in WORDS:
        return index
    if index.memory == "DRAM":
        (_, num), *rest = index.free
        held = m.tile(num, tuple(n for _, n in rest) or (1,), index.dtype)
        move(m, held, index)
        return words(m, held)
    held = m.temp(index, "int32")
    m.copy(held, index)
    return held


def by_number(m: Lowering, access: Access, by: Scalar, offset: int) -> Table:
    """One start for all: a column of it, plus where each row begins."""
    (step, count), *rest = access.pairs
    pairs: Sequence[tuple[int, int]] = ((step, count), *rest)
    if count > LANES or not rest:
        outer = next((d for d in range(min(LANES, count), 0, -1) if count % d == 0), 1)
        pairs = ((step * (count // outer), outer), (step, count // outer), *rest)
    (step, count), *rest = pairs
    unit = gcd(by.scale, step if count > 1 else 0) or 1
    number = cell_of(m, by.source)
    column = m.tile(count, (1,), "int32")
    spread = number.with_free(((0, count),))
    move(m, column, spread)
    if by.scale != unit:
        factor = m.tile(count, (1,), "int32")
        m.memset(factor, by.scale // unit)
        exact(m, column, column, factor, "mult")
    if count > 1 and step:
        own = m.tile(count, (1,), "int32")
        keys: dict[str, Any] = {"pattern": ((0, 1),), "channel_multiplier": step // unit}
        m.emit("Iota", "Pool", (own.ap(),), **keys)
        exact(m, column, column, own, "add")
    walk = Walk(access.buffer, access.dtype, "DRAM", 0, offset, ((0, count), *rest))
    total = prod(m.buffer(access).shape) * size_of(m.buffer(access).dtype)
    inside = offset + sum(s * (n - 1) for s, n in rest)
    limit = (total // size_of(access.dtype) - 1 - inside) // unit + 1
    return Table(walk, (column,), unit, max(limit, 1))


def exact(m: Lowering, out: Walk, a: Walk, b: Walk, op: str) -> None:
    """out = a op b in 32-bit integers."""
    m.emit("TensorTensor", "Pool", (out.ap(),), (a.ap(), b.ap()), op=op, integer=True)


def cell_of(m: Lowering, source: Reg | Access) -> Walk:
    """One number as an int32 in SBUF: what an element holds now, or what a register was given."""
    if isinstance(source, Reg):
        from ncc.ir.lower.registers import cell

        found = cell(m, source)
        if found is None:
            said = f"{m.op.op} begins at the register {source.name}"
            raise m.dynamic(said, m.op.origin)
        return found
    walk = m.walked(source)
    walk = words(m, walk.with_free(((1, 1),)).partition(0, 1) if walk.memory != "DRAM" else walk)
    return attrs.evolve(walk, dtype="int32")


# --- transfers ------------------------------------------------------------------------------------


def transfers(m: Lowering, t: Table, side: Walk) -> list[tuple[Walk, Walk, Walk]]:
    """Pieces of one column each: the table's rows, the other side's, and the indices."""
    inner = t.walk.free[1:]
    found: list[tuple[Walk, Walk, Walk]] = []
    if t.split:
        _, *deep = inner
        width = prod(n for _, n in deep)
        for k, column in enumerate(t.columns):
            rows = t.walk.with_free((t.walk.free[0], *(deep or ((1, 1),))))
            found.append((rows, _columns(side, k * width, width), column))
        return found
    done = 0
    for column in t.columns:
        size = min(column.rows, t.rows - done)
        if size <= 0:
            break
        rows = t.walk.with_free(((0, size), *(inner or ((1, 1),))))
        found.append((rows, side.partition(done, size), column.partition(0, size)))
        done += size
    return found


def _columns(side: Walk, first: int, count: int) -> Walk:
    """Elements `first` on of each partition of a tile in one row."""
    step = side.free[-1][0]
    return side.with_free(((step, count),), first * step)


def load(m: Lowering, t: Table) -> Walk:
    """The rows that the indices choose, in a tile of their own."""
    inner = prod(n for _, n in t.walk.free[1:])
    held = m.tile(t.rows, (inner,), t.walk.dtype)
    emit(m, "IndirectLoad", t, held)
    return held


def emit(m: Lowering, opcode: str, t: Table, side: Walk, **keys: Any) -> None:
    skips = m.key("oob_mode") == "skip"
    keys |= {"index_scale": t.scale, "index_limit": t.limit, "oob_is_err": not skips}
    for rows, own, column in transfers(m, t, side):
        a, b = rows_ap(rows), own.ap()
        if opcode == "IndirectLoad":
            m.emit(opcode, trigger(m), (b,), (a, column.ap()), **keys)
        else:
            m.emit(opcode, trigger(m), (a,), (b, column.ap()), **keys)


def rows_ap(rows: Walk):
    from ncc.ir.bir import Ap
    from ncc.ir.walks import collapsed

    return Ap(
        rows.loc, rows.dtype, (rows.free[0], *(collapsed(rows.free[1:]) or [(1, 1)])), rows.at
    )


def shaped(t: Table, side: Walk) -> bool:
    """Whether a tile can be the other side as it is: as many partitions, as many elements."""
    inner = prod(n for _, n in t.walk.free[1:])
    return (
        side.memory == "SB"
        and side.rows == t.rows
        and side.jump == 1
        and side.count == inner
        and (not t.split or len(side.free) == 1 or _one_row(side))
    )


def _one_row(side: Walk) -> bool:
    from ncc.ir.walks import collapsed

    return len(collapsed(side.free)) <= 1


def indirect(m: Lowering) -> None:
    """dma_copy with a moving side, or with two."""
    src, dst = m.op.arg("src"), m.op.arg("dst")
    assert isinstance(src, Access) and isinstance(dst, Access)
    if m.key("rmw") not in ("", "add"):
        raise m.refuse(f"combines with {m.key('rmw')}, and the DMA only adds")
    adds = m.key("rmw") == "add"
    if not moves(m, dst):
        t, to = table(m, src), m.walked(dst)
        if shaped(t, to) and not adds:
            emit(m, "IndirectLoad", t, one_run(t, to))
            return
        skips = m.key("oob_mode") == "skip"
        held = m.tile(t.rows, (prod(n for _, n in t.walk.free[1:]),), t.walk.dtype)
        if skips and not adds:
            move(m, held, to)  # rows that are outside keep what the destination holds
        elif skips:
            m.memset(held, 0)
        emit(m, "IndirectLoad", t, held)
        if adds:
            add_to(m, to, held)
        else:
            move(m, to, held)
        return
    t = table(m, dst)
    if moves(m, src):
        given = m.tile(t.rows, (prod(n for _, n in t.walk.free[1:]),), t.walk.dtype)
        if m.key("oob_mode") == "skip":  # rows whose source is outside keep what they hold
            emit(m, "IndirectLoad", t, given)
        emit(m, "IndirectLoad", table(m, src), given)
    else:
        given = m.walked(src)
    save(m, t, given, "IndirectSaveAccumulate" if adds else "IndirectSave")


def one_run(t: Table, side: Walk) -> Walk:
    """A side whose columns are taken one by one, as one run."""
    return side.with_free(((side.free[-1][0], side.count),)) if t.split else side


def save(m: Lowering, t: Table, given: Walk, opcode: str) -> None:
    if not shaped(t, given):
        held = m.tile(t.rows, (prod(n for _, n in t.walk.free[1:]),), t.walk.dtype)
        move(m, held, given)
        given = held
    emit(m, opcode, t, one_run(t, given))


def indirect_sum(m: Lowering, roles: Sequence[str]) -> None:
    """dma_compute with a moving side: rows that are added to, or rows that are added."""
    dst = m.op.arg("dst")
    assert isinstance(dst, Access)
    sources = [x for x in (m.op.arg(role) for role in roles) if isinstance(x, Access)]
    others = [x for x in sources if x != dst]
    into = bool(m.key("into")) or len(others) < len(sources)
    if len(others) != 1 or not into:
        raise m.refuse("adds rows by index only to what its destination holds")
    (one,) = others
    if moves(m, dst):
        given = load(m, table(m, one)) if moves(m, one) else m.walked(one)
        save(m, table(m, dst), given, "IndirectSaveAccumulate")
        return
    t = table(m, one)
    held = m.tile(t.rows, (prod(n for _, n in t.walk.free[1:]),), t.walk.dtype)
    if m.key("oob_mode") == "skip":
        m.memset(held, 0)
    emit(m, "IndirectLoad", t, held)
    add_to(m, m.walked(dst), held)


def gathered(m: Lowering, access: Access) -> Walk:
    """The chosen rows as a tensor in DRAM of the access's own shape."""
    t = table(m, access)
    shape = [num for _, num in access.pairs]
    held = scratch(m, shape, access.dtype)
    inner = prod(shape[1:])
    done = 0
    for column in t.columns:
        size = min(column.rows, t.rows - done)
        if size <= 0:
            break
        part = Table(
            t.walk.with_free(((0, size), *t.walk.free[1:])),
            (column.partition(0, size),),
            t.scale,
            t.limit,
        )
        to = held.with_free(((inner, size), (1, inner)), done * inner)
        move(m, to, load(m, part))
        done += size
    return held
