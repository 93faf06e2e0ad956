"""Statistics, maxima and positions: what looks at all elements of a partition."""

from __future__ import annotations

from typing import Any

from ncc.nki.isa.calls import call
from ncc.nki.isa.operands import (
    SBUF,
    Tile,
    between,
    dtypes,
    eight,
    exactly,
    number,
    record,
    same,
    same_parts,
    since,
    tile,
    whole,
)
from ncc.nki.trace import Instruction, invalid, wrong_shape

MOST_STATS = 512
LEAST_SEARCH, MOST_SEARCH = 8, 16384
POSITIONS = frozenset({"uint16", "uint32"})


@call
def bn_stats(dst: Any, data: Any, name: str | None = None) -> Instruction:
    """dst (P, 6) = count, mean, variance × count of the even elements, then of the odd ones."""
    where = "bn_stats"
    to, source = tile(dst, where, "dst"), tile(data, where, "data")
    same_parts(where, to, source)
    exactly(where, to, 6)
    between(where, source, 1, MOST_STATS)
    return record(where, {"dst": to, "data": source}, name=name)


@call
def bn_aggr(dst: Any, data: Any, name: str | None = None) -> Instruction:
    """dst (P, 2) = mean and variance of the groups whose triples data holds."""
    where = "bn_aggr"
    to, source = tile(dst, where, "dst"), tile(data, where, "data")
    same_parts(where, to, source)
    exactly(where, to, 2)
    if source.free % 3 or not source.free:
        said = f"{where} takes triples (count, mean, variance × count), {source.show()} has"
        raise wrong_shape("NCC356", f"{said} {source.free} elements a partition", "see bn_stats")
    return record(where, {"dst": to, "data": source}, name=name)


@call
def max8(dst: Any, src: Any, name: str | None = None) -> Instruction:
    """dst (P, 8) = the eight largest elements, descending."""
    where = "max8"
    to, source = tile(dst, where, "dst"), tile(src, where, "src")
    same_parts(where, to, source)
    eight(where, to)
    between(where, source, LEAST_SEARCH, MOST_SEARCH)
    return record(where, {"dst": to, "src": source}, name=name)


@call
def nc_find_index8(dst: Any, data: Any, vals: Any, name: str | None = None) -> Instruction:
    """dst (P, 8) = the first position of each of the eight values; all ones where there is none."""
    where = "nc_find_index8"
    to, source = tile(dst, where, "dst"), tile(data, where, "data")
    sought = tile(vals, where, "vals")
    same_parts(where, to, source, sought)
    eight(where, to, sought)
    dtypes(where, to, POSITIONS, "allocate it as nl.uint32")
    between(where, source, LEAST_SEARCH, MOST_SEARCH)
    return record(where, {"dst": to, "data": source, "vals": sought}, name=name)


@call
def nc_match_replace8(
    dst: Any, data: Any, vals: Any, imm: Any, dst_idx: Any = None, name: str | None = None
) -> Instruction:
    """dst = data with the first match of each of the eight values replaced by imm."""
    where = "nc_match_replace8"
    to, source = tile(dst, where, "dst"), tile(data, where, "data")
    sought = tile(vals, where, "vals")
    same(where, to, source)
    same_parts(where, source, sought)
    eight(where, sought)
    between(where, source, LEAST_SEARCH, MOST_SEARCH)
    found: Tile | None = None
    if dst_idx is not None:
        found = tile(dst_idx, where, "dst_idx")
        same_parts(where, source, found)
        eight(where, found)
        dtypes(where, found, POSITIONS, "allocate it as nl.uint32")
    args = {"dst": to, "dst_idx": found, "data": source, "vals": sought}
    return record(where, args, {"imm": float(number(imm, where, "imm"))}, name=name)


@call
def sequence_bounds(dst: Any, segment_ids: Any, name: str | None = None) -> Instruction:
    """dst (1, 2, n) = first index and end of the segment that each of n elements belongs to."""
    where = "sequence_bounds"
    to = tile(dst, where, "dst", SBUF)
    ids = tile(segment_ids, where, "segment_ids", SBUF)
    for one in (to, ids):
        dtypes(where, one, frozenset({"float32", "int32"}))
        if one.parts != 1:
            said = f"{where} works in one partition, {one.show()} has {one.parts}"
            raise wrong_shape("NCC333", said, "slice one partition")
    exactly(where, to, 2 * ids.free)
    return record(where, {"dst": to, "segment_ids": ids}, name=name)


@call
def nonzero_with_count(
    dst: Any, src: Any, index_offset: Any = 0, padding_val: Any = -1, name: str | None = None
) -> Instruction:
    """dst (P, T + 1) = where src is not 0, then padding, then how many; only in the partitions
    0, 16, ..., 112."""
    where = "nonzero_with_count"
    since(where, 3)
    to, source = tile(dst, where, "dst", SBUF), tile(src, where, "src", SBUF)
    same_parts(where, to, source)
    dtypes(where, source, frozenset({"float32", "int32"}))
    dtypes(where, to, frozenset({"int32"}), "allocate it as nl.int32")
    exactly(where, to, source.free + 1)
    keys = {
        "index_offset": whole(index_offset, where, "index_offset"),
        "padding_val": whole(padding_val, where, "padding_val"),
    }
    return record(where, {"dst": to, "src": source}, keys, name=name)


@call
def topk(val_dst: Any, idx_dst: Any, src: Any, n: Any, name: str | None = None) -> Instruction:
    """The largest elements of n that lie as a snake over 16 partitions, ascending, and where."""
    where = "topk"
    values, places = tile(val_dst, where, "val_dst", SBUF), tile(idx_dst, where, "idx_dst", SBUF)
    source = tile(src, where, "src", SBUF)
    dtypes(where, source, frozenset({"bfloat16"}), "copy it into a bfloat16 tile")
    count = whole(n, where, "n", 8, 65535)
    if values.count != places.count:
        raise wrong_shape(
            "NCC334",
            f"{where} writes as many values as indices: {values.show()} has {values.count},"
            f" {places.show()} has {places.count}",
            "slice both alike",
        )
    if not 1 <= values.count <= min(count, 32767):
        said = f"{where} finds 1 to {min(count, 32767)} of {count} elements, val_dst has"
        raise invalid("NCC356", f"{said} {values.count}", "slice val_dst and idx_dst to the count")
    if count > 16 * source.free:
        said = f"{where} takes element e from partition e % 16, column e // 16: {count} elements"
        raise wrong_shape(
            "NCC334",
            f"{said} need {-(-count // 16)} columns, {source.show()} has {source.free}",
            f"pass n of at most {16 * source.free}",
        )
    args = {"val_dst": values, "idx_dst": places, "src": source}
    return record(where, args, {"n": count}, name=name)
