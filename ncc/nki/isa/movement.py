"""Calls that move data inside the core: copies, fills, shuffles, gathers; and two cores meeting."""

from __future__ import annotations

from typing import Any

from ncc.nki.isa import constants as c
from ncc.nki.isa.calls import call, engine_of, ignoring, member, no_psum, pair, wrong_engine
from ncc.nki.isa.operands import (
    INTS,
    SBUF,
    Operand,
    Tile,
    dtypes,
    generation,
    is_tensor,
    not_both_psum,
    number,
    record,
    same,
    same_dtype,
    same_free,
    same_parts,
    scalar,
    short,
    tile,
    whole,
)
from ncc.nki.trace import Instruction, current, invalid, wrong_shape, wrong_type

ANY = ("sbuf", "psum", "hbm", "shared_hbm")
QUADRANT = 32
LEFT = 255  # in a shuffle mask: this row of dst stays as it is
ELEMENTS = (1, 2, 4, 8, 16, 32)  # that one index of a local_gather may bring
MOST_INDICES = 4096
POOL_BYTES = {4: 1024, 2: 512, 1: 256}  # a partition, that one gpsimd DMA moves


@ignoring("dtype")
def tensor_copy(
    dst: Any, src: Any, engine: Any = c.engine.unknown, name: str | None = None
) -> Instruction:
    """dst = src, converted to dst's dtype; bit for bit when the dtypes are equal."""
    where = "tensor_copy"
    to, data = tile(dst, where, "dst"), tile(src, where, "src")
    same(where, to, data)
    chosen = engine_of(engine, where, "vector", "scalar", "gpsimd")
    if chosen == "scalar" and generation(current(where)) < 3:
        raise wrong_engine(where, "the scalar engine of trn1", "vector", "gpsimd")
    if chosen == "gpsimd":
        no_psum(where, to, data)
    return record(where, {"dst": to, "src": data}, engine=chosen, name=name)


@call
def tensor_copy_predicated(
    dst: Any, src: Any, predicate: Any, reverse_pred: bool = False, name: str | None = None
) -> Instruction:
    """dst = src where the predicate is not 0 (is 0 with `reverse_pred`); dst stays elsewhere."""
    where = "tensor_copy_predicated"
    to, chosen = tile(dst, where, "dst"), tile(predicate, where, "predicate")
    dtypes(where, chosen, INTS, "compare with an operator whose dst is uint8")
    data: Operand
    if is_tensor(src):
        data = tile(src, where, "src")
        same_dtype(where, to, data)
        not_both_psum(where, data, chosen)
        same(where, to, data, chosen)
    else:
        data = scalar(src, where, "src", to)
        same(where, to, chosen)
    args = {"dst": to, "src": data, "predicate": chosen}
    return record(where, args, {"reverse_pred": bool(reverse_pred)}, name=name)


@call
def memset(
    dst: Any, value: Any, engine: Any = c.engine.unknown, name: str | None = None
) -> Instruction:
    """dst = value, everywhere."""
    where = "memset"
    to = tile(dst, where, "dst")
    found = number(value, where, "value")
    if to.name.endswith("_x4") and found != 0:
        said = f"memset of {to.name} takes only 0, was given {found}"
        raise invalid("NCC345", said, "view the tile as integers to write bits")
    if to.dtype in INTS:
        if found != found or found in (float("inf"), float("-inf")) or found != int(found):
            said = f"memset of {to.show()} of {to.name} takes whole numbers, was given {found}"
            raise wrong_type("NCC345", said, "pass an integer, or allocate the tile as a float")
        found = int(found)
    else:
        found = float(found)
    chosen = engine_of(engine, where, "vector", "gpsimd")
    if chosen == "gpsimd":
        no_psum(where, to)
    to.storage.filled = bool(found)
    return record(where, {"dst": to}, {"value": found}, engine=chosen, name=name)


@call
def nc_stream_shuffle(
    dst: Any, src: Any, shuffle_mask: Any, name: str | None = None
) -> Instruction:
    """In each quadrant of 32 partitions: row i of dst is row shuffle_mask[i] of src (255: dst's
    row stays). One partition of src with a mask of zeros is broadcast to a quadrant of dst."""
    where = "nc_stream_shuffle"
    to, data = tile(dst, where, "dst"), tile(src, where, "src")
    same_dtype(where, to, data)
    same_free(where, to, data)
    mask = _mask(shuffle_mask, where)
    for row in range(to.parts):
        quadrant, inside = divmod(row, QUADRANT)
        source = QUADRANT * quadrant + mask[inside]
        if mask[inside] != LEFT and source >= data.parts:
            raise wrong_shape(
                "NCC351",
                f"{where} takes partition {row} of dst from partition {source} of src,"
                f" {data.show()} has {data.parts}",
                "shuffle_mask counts inside each quadrant of 32 partitions; 255 leaves a row alone",
            )
    return record(where, {"dst": to, "src": data}, {"shuffle_mask": mask}, name=name)


def _mask(given: Any, where: str) -> tuple[int, ...]:
    values = tuple(given) if hasattr(given, "__iter__") else ()
    if len(values) != QUADRANT:
        shown = f"{len(values)} entries" if values else short(given)
        said = f"{where} takes a shuffle_mask of 32 entries, was given {shown}"
        raise invalid("NCC351", said, "one entry for each partition of a quadrant")
    mask = tuple(whole(v, where, "an entry of shuffle_mask") for v in values)
    for k, v in enumerate(mask):
        if not 0 <= v < QUADRANT and v != LEFT:
            said = f"{where} takes entries 0 to 31, or 255, in shuffle_mask; entry {k} is {v}"
            raise invalid("NCC351", said, "255 leaves the row of dst as it is")
    return mask


@call
def local_gather(
    dst: Any,
    src_buffer: Any,
    index: Any,
    num_elem_per_idx: int = 1,
    num_valid_indices: int | None = None,
    name: str | None = None,
) -> Instruction:
    """In each group of 16 partitions: the group's indices, column by column, pick runs of
    `num_elem_per_idx` elements from every partition of the group."""
    where = "local_gather"
    to, data = tile(dst, where, "dst", SBUF), tile(src_buffer, where, "src_buffer", SBUF)
    picks = tile(index, where, "index", SBUF)
    same_parts(where, data, to, picks)
    same_dtype(where, to, data)
    dtypes(where, picks, {"uint16"}, "the index counts elements, as uint16")
    if data.parts % 16:
        said = f"{where} works in groups of 16 partitions, {data.show()} has {data.parts}"
        raise wrong_shape("NCC333", said, "pad to a multiple of 16")
    run = whole(num_elem_per_idx, where, "num_elem_per_idx", 1, 32)
    if run not in ELEMENTS:
        said = f"{where} takes 1, 2, 4, 8, 16 or 32 elements an index, was given {run}"
        raise invalid("NCC351", said, "gather the parts with several indices")
    there = 16 * picks.free
    count = there
    if num_valid_indices is not None:
        count = whole(num_valid_indices, where, "num_valid_indices", 1, there)
    if count > MOST_INDICES:
        said = f"{where} takes at most {MOST_INDICES} indices for 16 partitions, has {count}"
        raise invalid("NCC351", said, "split the call")
    if count * run != to.free:
        run = 1
        if count != to.free:
            _gathers(where, to, count, num_elem_per_idx)
    keys = {"num_elem_per_idx": run, "num_valid_indices": -1 if count == there else count}
    return record(where, {"dst": to, "src_buffer": data, "index": picks}, keys, name=name)


def _gathers(where: str, to: Tile, count: int, run: int) -> None:
    raise wrong_shape(
        "NCC334",
        f"{where} gathers {count} indices × {run} elements a partition, {to.show()} has {to.free}",
        "give dst num_valid_indices × num_elem_per_idx elements a partition",
    )


@call
def nc_n_gather(dst: Any, data: Any, indices: Any, name: str | None = None) -> Instruction:
    """dst[p, k] = data[p] at the element indices[p, k]."""
    where = "nc_n_gather"
    to, source = tile(dst, where, "dst", SBUF), tile(data, where, "data", SBUF)
    picks = tile(indices, where, "indices", SBUF)
    same_parts(where, to, source, picks)
    same_free(where, to, picks)
    same_dtype(where, to, source)
    dtypes(where, picks, {"uint32"}, "the indices count elements, as uint32")
    return record(where, {"dst": to, "data": source, "indices": picks}, name=name)


@call
def sendrecv(
    src: Any,
    dst: Any,
    send_to_rank: Any,
    recv_from_rank: Any,
    pipe_id: Any,
    dma_engine: Any = c.dma_engine.dma,
    name: str | None = None,
) -> Instruction:
    """Send src to the other core of the pair and receive its src into dst."""
    where = "sendrecv"
    pair(where)
    data, to = tile(src, where, "src", SBUF), tile(dst, where, "dst", SBUF)
    same(where, data, to)
    same_dtype(where, data, to)
    kind = c.dma_engine.dma
    if dma_engine is not c.engine.dma and dma_engine is not None:
        kind = member(c.dma_engine, dma_engine, where, "dma_engine")
    if kind is c.dma_engine.gpsimd_dma:
        size = to.bytes // to.free if to.free else 4
        most = POOL_BYTES.get(size, 256)
        if to.bytes > most:
            raise invalid(
                "NCC351",
                f"{where} moves at most {most} bytes a partition of {to.name} by gpsimd_dma,"
                f" {to.show()} has {to.bytes}",
                "use nisa.dma_engine.dma, or several calls",
            )
    keys = {
        "send_to_rank": whole(send_to_rank, where, "send_to_rank", 0, 1),
        "recv_from_rank": whole(recv_from_rank, where, "recv_from_rank", 0, 1),
        "pipe_id": whole(pipe_id, where, "pipe_id", 0),
    }
    chosen = "gpsimd" if kind is c.dma_engine.gpsimd_dma else "dma"
    return record(where, {"dst": to, "src": data}, keys, engine=chosen, name=name)


@call
def core_barrier(
    data: Any, cores: Any, engine: Any = c.engine.gpsimd, name: str | None = None
) -> Instruction:
    """The cores wait for each other; what one wrote before, the other sees after."""
    where = "core_barrier"
    each: list[Any] = list(cores) if hasattr(cores, "__iter__") else [cores]
    met = tuple(sorted({whole(x, where, "cores", 0, 1) for x in each}))
    if len(met) > 1:
        pair(where)
    held = None if data is None else tile(data, where, "data", ANY)
    chosen = engine_of(engine, where, "gpsimd", "vector", "scalar", "tensor", "sync", "dma")
    return record(where, {"data": held}, {"cores": met}, engine=chosen, name=name)
