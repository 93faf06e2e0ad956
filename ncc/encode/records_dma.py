"""The records of a DMA: one direct descriptor, with an extension where it transposes."""

from __future__ import annotations

from typing import Any

from ncc.encode.codes import DTYPE
from ncc.encode.record_parts import Context, Encoder, Record, fields, refusal
from ncc.encode.values import word_of
from ncc.ir.bir import Ap, Inst
from ncc.ir.bir_opcodes import key
from ncc.ir.data import size_of
from ncc.ir.dma_patterns import ROWS, WIDE, is_transposing
from ncc.ir.dma_runs import PARTITION, Runs, runs
from ncc.ir.indirect import INDIRECT, row_runs
from ncc.ir.isa import At

INDEXED, ADD = 1, 1  # dge_op of what has an index or adds; compute_op
FROM, TO, SKIPS = 1, 2, 4  # bits of an Extension's indirect_flags, our own choice
EIGHT_BYTES = {"int64": "int32", "uint64": "uint32"}  # they travel as two of four


def dma(ctx: Context, inst: Inst) -> list[Record]:
    src, dst = inst.ins[0], inst.outs[0]
    if inst.opcode in INDIRECT:
        return indirect(ctx, inst)
    if inst.opcode == "DMACopy" and key(inst, "mode") == "CCE":
        return accumulating(ctx, inst)
    if type(src) is not Ap or type(dst) is not Ap or len(inst.ins) != 1:
        raise refusal(inst, "moves something else than one access to another")
    queued(inst)
    if inst.opcode == "DMACopy" and key(inst, "mode") not in ("Copy", "Transpose"):
        raise refusal(inst, f"has mode {key(inst, 'mode')}, which has no record")
    if is_transposing(inst):
        return transposing(ctx, inst, src, dst)
    found = runs(src, dst, ctx.operands.on_chip(inst, src), ctx.operands.on_chip(inst, dst))
    if found is None:
        said = "walks its two sides in a way that no one descriptor holds"
        raise refusal(inst, said, "legalize-sizes splits it")
    return [direct(ctx, inst, src, dst, found, 0)]


def direct(ctx: Context, inst: Inst, src: Ap, dst: Ap, found: Runs, op: int) -> Record:
    (n0, s0, d0), (n1, s1, d1) = found.padded()
    update = inst.updates[0]
    values: dict[str, Any] = {
        "dge_op": op,
        "dst": ctx.operands.dma(inst, dst),
        "dst_dtype": DTYPE[EIGHT_BYTES.get(dst.dtype, dst.dtype)],
        "dst_size": found.dst_size,
        "sem_increment": update.value,
        "semaphore": update.sem,
        "src": ctx.operands.dma(inst, src),
        "src_dtype": DTYPE[EIGHT_BYTES.get(src.dtype, src.dtype)],
        "src_size": found.src_size,
    }
    if (n0, n1) != (1, 1):
        values["src_num"] = values["dst_num"] = (n0, n1)
    if (s0, s1) != (0, 0):
        values["src_step"] = (s0, s1)
    if (d0, d1) != (0, 0):
        values["dst_step"] = (d0, d1)
    return ("DmaDirect2d", fields(**values))


def accumulating(ctx: Context, inst: Inst) -> list[Record]:
    """The destination plus one source: the unit adds in float32 on the way."""
    dst, src = inst.outs[0], inst.ins[-1]
    if type(src) is not Ap or type(dst) is not Ap or len(inst.ins) != 2 or inst.ins[0] != dst:
        said = "adds several sources; a record adds one to its destination"
        raise refusal(inst, said, "copy the first, then add the others one by one")
    queued(inst)
    found = runs(src, dst, ctx.operands.on_chip(inst, src), ctx.operands.on_chip(inst, dst))
    if found is None:
        raise refusal(inst, "walks its two sides in a way that no one descriptor holds")
    first = direct(ctx, inst, src, dst, found, INDEXED)
    return [first, ("Extension", fields(compute_op=ADD))]


def indirect(ctx: Context, inst: Inst) -> list[Record]:
    """A row for each index: the rows are the slowest step, which the table's side has not."""
    src, dst, index = inst.ins[0], inst.outs[0], inst.ins[1]
    found = row_runs(inst)
    if type(src) is not Ap or type(dst) is not Ap or type(index) is not Ap:
        raise refusal(inst, "moves something else than one access to another by an index")
    queued(inst)
    if found is None or len(found.walk) > 1:
        raise refusal(inst, "walks its rows in a way that no one descriptor holds")
    load = inst.opcode == "IndirectLoad"
    rows = src.ap[0][1]
    inner = found.walk or ((1, 0, 0),)
    outer = (rows, 0, PARTITION) if load else (rows, PARTITION, 0)
    whole = Runs(found.src_size, found.dst_size, (outer, *inner))
    scale = int(key(inst, "index_scale")) * size_of(src.dtype if load else dst.dtype)
    bound = scale * int(key(inst, "index_limit"))
    place = ctx.operands.tensor(inst, index)
    word = word_of(At(place.at.space, place.at.partition, place.at.byte))
    skips = 0 if key(inst, "oob_is_err") else SKIPS
    side = "src" if load else "dst"
    more = {
        f"{side}_index": word,
        f"{side}_bound_lo": bound & 0xFFFFFFFF,
        f"{side}_bound_hi": bound >> 32,
    }
    extension = fields(
        indirect_flags=(FROM if load else TO) | skips,
        index_channels=rows,
        compute_op=ADD if inst.opcode == "IndirectSaveAccumulate" else 0,
        tile_src_row_step=scale,
        **more,
    )
    return [direct(ctx, inst, src, dst, whole, INDEXED), ("Extension", extension)]


def queued(inst: Inst) -> None:
    if key(inst, "queue") == "" or not inst.updates:
        raise refusal(inst, "has no queue that counts it", "bind-dma and sync-waits give it one")


def transposing(ctx: Context, inst: Inst, src: Ap, dst: Ap) -> list[Record]:
    """Tiles of 16 rows where the unit transposes them itself; else element by element."""
    (row, rows), *_, (step, columns) = src.ap
    size = size_of(src.dtype)
    to = ctx.operands.dma(inst, dst)
    tiled = (
        ctx.target.transposing_dma
        and size == 2
        and src.dtype == dst.dtype
        and rows % ROWS == 0
        and step == dst.ap[-1][0] == 1
        and to.byte % WIDE == 0
    )
    if not tiled:
        across = dst.ap[-1][0] * size_of(dst.dtype)
        walk = ((columns, step * size, PARTITION), (rows, row * size, across))
        found = Runs(size, size_of(dst.dtype), walk)
        return [direct(ctx, inst, src, dst, found, 0)]
    walk = ((rows // ROWS, ROWS * row * size, WIDE),)
    first = direct(ctx, inst, src, dst, Runs(columns * size, WIDE, walk), 2)
    tile = fields(tile_src_row_step=row * size, tile_src_rows=ROWS, tile_src_cols=columns)
    return [first, ("Extension", tile)]


ENCODERS: dict[str, Encoder] = {
    "Load": dma,
    "Save": dma,
    "DMACopy": dma,
    "IndirectLoad": dma,
    "IndirectSave": dma,
    "IndirectSaveAccumulate": dma,
}
