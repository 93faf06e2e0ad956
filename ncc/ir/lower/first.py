"""What trn1 has no record for, said with several that it has: the values are the same.

A scan becomes one instruction an element, which takes the result before it as its scalar; running
results are float32, as the scan's own.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from ncc.ir.bir import Imm, Operand
from ncc.ir.kernel_walks import Walk
from ncc.ir.lower.act import IDENTITY, constant, finish, set_dve
from ncc.ir.lower.vector import alu

if TYPE_CHECKING:
    from ncc.ir.lower.kernel import Lowering

Stage = tuple[str, Operand, bool]  # the operation, its scalar, whether they change places
LONGEST = 4096  # elements a partition


def _column(row: Walk, n: int) -> Walk:
    return row.with_free(((1, 1),), n)


def _running(m: Lowering, dst: Walk) -> Walk:
    """A row for the results, all of them."""
    if dst.count > LONGEST:
        said = f"scans {dst.count} elements a partition, one by one on {m.target.name}"
        raise m.refuse(f"{said}, where ncc stops at {LONGEST}", "scan it in pieces")
    return m.temp(dst, "float32")


def scan(m: Lowering, dst: Walk, a: Walk, b: Walk, first: Operand) -> None:
    """r = (a op0 r) op1 b, element after element."""
    a, b, out = m.compact(a), m.compact(b), _running(m, dst)
    keys = {f"op{n}": alu(m, m.key(f"op{n}")) for n in (0, 1)}
    swaps = {f"reverse{n}": bool(m.key(f"reverse{n}")) for n in (0, 1)}
    for n in range(dst.count):
        x, y, z = (_column(row, n).ap() for row in (a, b, out))
        m.emit(
            "TensorScalarPtr",
            "DVE",
            (z,),
            (x, first, y),
            is_scalar_tensor_tensor=True,
            **keys,
            **swaps,
        )
        first = z
    finish(m, out, dst)


def cumulative(
    m: Lowering, dst: Walk, data: Walk, stage: Stage, fold: str, command: str, seed: Operand | None
) -> None:
    """r = (data op0 imm0) op1 r; the accumulators hold the last one afterwards."""
    data, out = m.compact(data), _running(m, dst)
    op0, scalar, _ = stage
    if command == "reduce":
        held = m.temp(_column(out, 0), "float32")
        m.emit("DveReadAccumulator", "DVE", (held.ap(),))
        first: Operand = held.ap()
    else:
        first = seed if command == "load_reduce" and seed else Imm(IDENTITY[fold])
    stands = m.stands(data)
    scalar, first = (
        constant(m, dst.rows, float(x.value), stands) if isinstance(x, Imm) else x
        for x in (scalar, first)
    )
    for n in range(dst.count):
        x, z = (_column(row, n).ap() for row in (data, out))
        m.emit("TensorScalarPtr", "DVE", (z,), (x, scalar, first), op0=op0, op1=fold)
        first = z
    set_dve(m, dst.rows, first, stands)
    finish(m, out, dst)


def places8(m: Lowering, data: Walk, vals: Walk, at: Walk) -> None:
    """The places that `nc_match_replace8` names: it serves slot 7 first, MaxIndex slot 0."""
    turned, found = m.temp(vals), m.temp(at)
    m.copy(turned, backwards(m.compact(vals)))
    m.emit("MaxIndex", "DVE", (found.ap(),), (data.ap(), turned.ap()))
    m.copy(at, backwards(found))


def backwards(row: Walk) -> Walk:
    """The elements of a row, the last first."""
    return attrs.evolve(row, at=row.at + row.count - 1, free=((-1, row.count),))
