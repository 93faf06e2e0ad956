"""`abs_max` and `abs_min`, which no record has: the signed operand of larger or smaller magnitude.

The second operand stays unless the first one's magnitude is strictly larger (smaller): magnitudes,
a comparison, and a predicated copy, all in float32 as the operator itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncc.ir.bir import Ap, Imm, Operand
from ncc.ir.kernel_walks import Walk

if TYPE_CHECKING:
    from ncc.ir.lower.kernel import Lowering

COMPARES = {"abs_max": "is_gt", "abs_min": "is_lt"}


def tensors(m: Lowering, op: str, a: Walk, b: Walk, dst: Walk) -> None:
    """dst = a op b."""
    found = _picked(m, op, _row(m, a), _row(m, b))
    m.copy(dst, found)


def scalars(
    m: Lowering, engine: str, dst: Walk, data: Walk, stages: list[tuple[str, Operand, bool]]
) -> None:
    """(data op0 s0) op1 s1, one stage after the other."""
    from ncc.ir.lower.vector import scalars as others

    held = _row(m, data)
    for op, scalar, swap in stages:
        if op not in COMPARES:
            found = m.temp(held, "float32")
            others(m, engine, found, held, [(op, scalar, swap)])
            held = found
            continue
        same = _spread(m, held, scalar)
        held = _picked(m, op, same, held) if swap else _picked(m, op, held, same)
    m.copy(dst, held)


def _picked(m: Lowering, op: str, a: Walk, b: Walk) -> Walk:
    sizes = [m.temp(x, "float32") for x in (a, b)]
    for x, size in zip((a, b), sizes, strict=True):
        m.elementwise("TensorScalar", "DVE", size, (x,), op0="abs", const0=0.0)
    first = m.temp(b, "uint8")
    m.elementwise("TensorTensor", "DVE", first, sizes, op=COMPARES[op])
    found = m.temp(b, "float32")
    m.copy(found, b)
    for mask, x, out in m.accesses((first, a, found), 3):
        m.emit("CopyPredicated", "DVE", (out,), (mask, x))
    return found


def _row(m: Lowering, walk: Walk) -> Walk:
    """Its values as float32, in SBUF."""
    held = m.temp(walk, "float32")
    m.copy(held, walk)
    return held


def _spread(m: Lowering, like: Walk, scalar: Operand) -> Walk:
    from ncc.ir.lower.move import bits_of, spread

    held = m.temp(like, "float32")
    if isinstance(scalar, Imm):
        m.memset(held, bits_of(scalar.value, "float32"))
    else:
        assert isinstance(scalar, Ap)
        spread(m, held, scalar)
    return held
