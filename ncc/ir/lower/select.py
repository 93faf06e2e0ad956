"""Kernels' selections: by a predicate or by place, the largest of what is kept on the way."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ncc.ir.bir import Ap, Imm, Operand
from ncc.ir.kernel_walks import Walk
from ncc.ir.lower.act import COMMANDS, FOLDS, finish, fold_into, read_dve, result, set_dve, whole
from ncc.ir.lower.move import as_mask, spread
from ncc.ir.lower.vector import alu, one_in_psum

if TYPE_CHECKING:
    from ncc.ir.lower.kernel import Lowering

FLT_MAX = 3.4028234663852886e38


def select_reduce(m: Lowering) -> None:
    mask, data, dst = m.walk("predicate"), m.walk("on_true"), m.walk("dst")
    otherwise = m.scalar("on_false", dst.rows)
    assert otherwise is not None
    command = str(m.key("reduce_cmd"))
    if m.target.level < 30:
        kept(m, dst, data, as_mask(m, mask, bool(m.key("reverse_pred"))), otherwise, command)
        read_dve(m)
        return
    mask = as_mask(m, mask)
    mask, data = one_in_psum(m, mask, data)
    keys: dict[str, Any] = {"reverse_pred": bool(m.key("reverse_pred"))}
    keys |= {
        "reduce_op": "max",
        "accumulator_cmd": COMMANDS[command if command in FOLDS else "idle"],
    }
    out = result(m, dst, 2)
    pieces = m.accesses((mask, data, out), 2)
    if len(pieces) > 1 and command in FOLDS:
        mask, data = m.compact(mask), m.compact(data)
        out = m.temp(dst) if out is dst else out
        pieces = m.accesses((mask, data, out), 2)
    for n, (x, y, z) in enumerate(pieces):
        if n and command in FOLDS:
            keys["accumulator_cmd"] = "AddAccumulate"
        m.emit("CopyPredicated", "DVE", (z,), (x, y, otherwise), **keys)
    finish(m, out, dst)
    if command == "reset":
        set_dve(m, dst.rows, -FLT_MAX, m.stands(dst))
    read_dve(m)


def kept(m: Lowering, dst: Walk, data: Walk, mask: Walk, otherwise: Operand, command: str) -> None:
    """The choice and the fold apart, for trn1, whose predicated copy has neither a value to fill
    with nor accumulators."""
    held, chosen = m.temp(dst, "float32"), m.temp(dst, "float32")
    m.copy(chosen, data)
    if isinstance(otherwise, Ap):
        spread(m, held, otherwise)
    for x, y, z in m.accesses((m.same_quadrant(chosen, mask), chosen, held), 3):
        m.emit("Select", "DVE", (z,), (x, y, otherwise if isinstance(otherwise, Imm) else z))
    m.copy(dst, held)
    if command in ("reset", "reset_reduce"):
        set_dve(m, dst.rows, -FLT_MAX, m.stands(held))
    if command in FOLDS:
        folded = m.temp(dst, "float32")
        fold_into(m, folded, held, "mult", Imm(1.0), "max", "reduce", None)


def range_select(m: Lowering) -> None:
    data, dst = m.walk("on_true_tile"), m.walk("dst")
    bounds = [m.scalar(f"bound{n}", dst.rows) or Imm(0.0) for n in (0, 1)]
    command = str(m.key("reduce_cmd"))
    out, data = result(m, dst, 2), whole(m, data, 2)
    pieces = m.accesses((data, out), 2)
    if len(pieces) > 1:
        data = m.compact(data)
        out = m.temp(dst) if out is dst else out
        pieces = m.accesses((data, out), 2)
    base = int(m.key("range_start"))
    for n, (x, y) in enumerate(pieces):
        fold = COMMANDS[command if command in FOLDS else "idle"]
        m.emit(
            "RangeSelect",
            "DVE",
            (y,),
            (x, *bounds),
            base=base,
            compare_op0=alu(m, m.key("comp_op0")),
            compare_op1=alu(m, m.key("comp_op1")),
            reduce_op="max",
            reduce_cmd="AddAccumulate" if n and command in FOLDS else fold,
            fill_value=-FLT_MAX,
        )
        base += y.ap[1][1] if len(pieces) > 1 else 0
    finish(m, out, dst)
    if command == "reset":
        set_dve(m, dst.rows, -FLT_MAX, m.stands(dst))
    read_dve(m)


LOWER = {"select_reduce": select_reduce, "range_select": range_select}
