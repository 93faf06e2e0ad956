"""The records of PE: a matmul loads its weights and multiplies, once or, for fp32, twice."""

from __future__ import annotations

from typing import Any

from ncc.encode.codes import DTYPE, XBUS
from ncc.encode.record_parts import Context, Encoder, Record, fields, refusal
from ncc.ir.bir import Inst
from ncc.ir.bir_opcodes import key
from ncc.ir.footprints import Rect, column_group, group_code

HIGH, LOW, BOTH = 2, 1, 3  # fp32_mode of the two loads, and of both products


def matmult(ctx: Context, inst: Inst) -> list[Record]:
    moving = ctx.operands.tensor(inst, inst.ins[0])
    weights = ctx.operands.tensor(inst, inst.ins[1])
    dest = ctx.operands.tensor(inst, inst.outs[0])
    turned = bool(key(inst, "is_transpose"))
    rows = group_code(weights.at.partition, weights.channels)
    place = Rect(0, dest.at.partition, dest.at.partition + dest.channels, 0, 0)
    columns = column_group(inst, place)
    if not rows or not columns:
        said = (
            f"takes {weights.channels} rows from partition {weights.at.partition} and "
            f"{dest.channels} columns at partition {dest.at.partition}; no group of the array does"
        )
        raise refusal(inst, said, "more than 64 start at 0, more than 32 at 0 or 64")
    if ctx.gen == 2 and columns not in XBUS:
        raise refusal(inst, f"uses column group {columns}, which {ctx.target.name} does not have")
    flag = int(key(inst, "accumulation_flag"))
    if not flag:
        raise refusal(inst, "has no accumulation flag", "mm-acc-flags sets it")
    if (mode := key(inst, "perf_mode")) != "None":
        said = f"has perf_mode={mode}, and no record of ncc's packs rows or columns"
        raise refusal(inst, said, "two products, one for each half of the rows, give the same sum")
    shared: dict[str, Any] = {
        "num_active_rows": weights.channels,
        "num_active_cols": weights.elements,
        "row_grp": rows,
        "col_grp": columns,
        "xbus_sel": XBUS[columns] if ctx.gen == 2 else 0,
        "transpose_mode": int(turned and ctx.gen > 2),
    }

    def load(mode: int) -> Record:
        made = fields(src=weights.at, in_dtype=weights.tag, fp32_mode=mode, **shared)
        return ("LoadStationary", made)

    def product(mode: int, bits: int) -> Record:
        made = fields(
            moving=moving.at,
            dst=dest.at,
            in_dtype=moving.tag,
            fp32_mode=mode,
            psum_flags=bits,
            psum_zero_region=int(key(inst, "psum_zero_region")),
            **shared,
        )
        return ("Matmul", made)

    bits = flag & 3  # ACCUMULATE is no bit of these generations
    if weights.tag == DTYPE["float32"]:  # two passes: the upper half of the weights, then the rest
        return [load(HIGH), product(BOTH, bits & 1), load(LOW), product(BOTH, bits & 2)]
    pair = [] if key(inst, "weights_loaded") else [load(0)]
    return [*pair, product(0, bits)]


ENCODERS: dict[str, Encoder] = {"Matmult": matmult}
