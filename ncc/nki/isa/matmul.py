"""The tensor engine: products into PSUM and transposes."""

from __future__ import annotations

import math
from typing import Any

from ncc.errors import listed
from ncc.ir.data import FP8, size_of
from ncc.nki.isa import constants as c
from ncc.nki.isa.accumulating import accumulated
from ncc.nki.isa.calls import call, engine_of, member
from ncc.nki.isa.operands import (
    PSUM,
    SBUF,
    Tile,
    dtypes,
    generation,
    record,
    same_dtype,
    since,
    tile,
    whole,
)
from ncc.nki.trace import Instruction, Trace, current, invalid, place, wrong_shape, wrong_type
from ncc.nki.views import several

FLOATS = frozenset({"float32", "bfloat16", "float16"}) | FP8
LEGACY, OCP = "float8e4", "float8_e4m3fn"  # two readings of the same bits
WIDE_MOVING = {4: 4096, 2: 8192}  # columns of one product on trn3, by bytes of an element of dst
BLOCK = 32  # what the vector engine transposes in one go


@call
def nc_matmul(
    dst: Any,
    stationary: Any,
    moving: Any,
    is_stationary_onezero: bool = False,
    is_moving_onezero: bool = False,
    is_transpose: bool = False,
    accumulate: bool | None = None,
    tile_position: Any = (),
    tile_size: Any = (),
    perf_mode: Any = c.matmul_perf_mode.none,
    name: str | None = None,
) -> Instruction:
    """dst (=|+=) the transpose of stationary [K, M] times moving [K, N]; dst is in PSUM."""
    where = "nc_matmul"
    to = tile(dst, where, "dst", PSUM)
    still, moved = tile(stationary, where, "stationary", SBUF), tile(moving, where, "moving", SBUF)
    trace = current(where)
    if isinstance(perf_mode, str) and perf_mode == "double_row_gen3":  # an earlier release
        perf_mode = "double_row"
    mode = member(c.matmul_perf_mode, perf_mode, where, "perf_mode").name
    depth, rows, columns = _extents(where, still, moved, mode)
    _bank(where, to, trace)
    _limits(where, still, moved, rows, columns, trace, to)
    _types(where, still, moved)
    _result(where, to, still, rows, columns, is_transpose, trace)
    position, size = _part(where, tile_position, tile_size, depth, rows, trace)
    if mode == "double_row":
        since(where, 3, "perf_mode double_row of nc_matmul")
        if size and size[1] != 128:
            said = f"{where} with perf_mode double_row takes whole columns, tile_size is {size}"
            raise invalid("NCC354", said, "use tile_size=(rows, 128)")
        if is_transpose:
            said = f"{where} with perf_mode double_row multiplies; it cannot be a transpose"
            raise invalid("NCC336", said, "leave one of perf_mode and is_transpose out")
    keys = {
        "is_transpose": bool(is_transpose),
        "perf_mode": mode,
        "tile_position": position,
        "tile_size": size,
        "is_stationary_onezero": bool(is_stationary_onezero),
        "is_moving_onezero": bool(is_moving_onezero),
    }
    if to.storage.filled and not is_transpose and accumulate is not False:
        _onto_filled(where, to, trace)
    if is_transpose or accumulate is not None:
        keys["accumulate"] = bool(accumulate) and not is_transpose
        args = {"dst": to, "stationary": still, "moving": moved}
        return record(where, args, keys, name=name)
    return accumulated(to, still, moved, keys, name)


def _extents(where: str, still: Tile, moved: Tile, mode: str) -> tuple[int, int, int]:
    """K, M and N."""
    if still.parts != moved.parts:
        raise wrong_shape(
            "NCC333",
            f"{where} contracts the partitions of both operands: {still.show()} has {still.parts},"
            f" {moved.show()} has {moved.parts}",
            "slice dimension 0 of both alike",
        )
    if mode != "double_row":
        return still.parts, still.free, moved.free
    for one in (still, moved):
        if len(one.shape) < 3 or one.shape[1] != 2:
            said = f"{where} with perf_mode double_row takes {one.role} as (K, 2, n), it is"
            raise wrong_shape("NCC336", f"{said} {one.show()}", "put two rows in dimension 1")
        dtypes(where, one, FP8, "perf_mode double_row multiplies 8-bit floats")
    return still.parts, still.free // 2, moved.free // 2


def _onto_filled(where: str, to: Tile, trace: Trace) -> None:
    """Warn once a tile: before trn3 a product adds reliably to products and zeros only (NCC335)."""
    to.storage.filled = False
    if generation(trace) < 4:
        trace.warnings.append(
            f"NCC335 {place()}: {where} adds to {to.show()}, which a memset filled with something"
            f" else than 0: {trace.target.name} leaves that undefined, ncc adds (memset it to 0.0,"
            " and add the value when the sum is copied out)"
        )


def _bank(where: str, to: Tile, trace: Trace) -> None:
    """A product lies in one bank of each partition (on trn3 it may go on in the next)."""
    if generation(trace) >= 4:
        return
    bank = trace.target.psum_bank_bytes
    if to.bytes > bank:
        raise invalid(
            "NCC337",
            f"{where} writes {to.bytes} bytes a partition to {to.show()}, a PSUM bank holds {bank}",
            f"cut the moving operand into parts of {bank // size_of(to.dtype)} columns",
        )
    if to.access.moves:
        return
    size = size_of(to.dtype)
    own = to.storage.buffer
    row = size_of(own.dtype) * math.prod(own.shape[1:])
    base = own.address[1] if own.address else 0
    if base % bank + row <= bank:
        return
    start = to.access.offset * size % row
    reach = sum(step * (num - 1) for step, num in to.access.pairs[1:]) * size
    first, last = (base + start) // bank, (base + start + reach + size - 1) // bank
    if first != last:
        raise invalid(
            "NCC337",
            f"{where} writes bytes {base + start} to {base + start + reach + size} of each"
            f" partition of {to.show()}, over the end of the bank of {bank} bytes at"
            f" {(first + 1) * bank}",
            "cut the moving operand where the bank ends",
        )


def _limits(
    where: str, still: Tile, moved: Tile, rows: int, columns: int, trace: Trace, to: Tile
) -> None:
    most = trace.target.stationary_free
    if rows > most:
        raise invalid(
            "NCC336",
            f"{where} takes at most {most} columns of stationary, {still.show()} has {rows}",
            f"cut stationary into parts of {most} columns, one product each",
        )
    most = trace.target.moving_free
    if generation(trace) >= 4:
        most = WIDE_MOVING.get(size_of(to.dtype), most)
    if columns > most:
        raise invalid(
            "NCC336",
            f"{where} takes at most {most} columns of moving, {moved.show()} has {columns}",
            f"cut moving into parts of {most} columns, one product each",
        )


def _types(where: str, still: Tile, moved: Tile) -> None:
    for one in (still, moved):
        dtypes(where, one, FLOATS, "the tensor engine multiplies floats: copy it into such a tile")
    if (still.dtype == "float32") != (moved.dtype == "float32"):
        raise wrong_type(
            "NCC340",
            f"{where} takes float32 with float32 only: {still.show()} is {still.name},"
            f" {moved.show()} is {moved.name}",
            "convert one of them with nisa.tensor_copy",
        )
    if {still.dtype, moved.dtype} == {LEGACY, OCP}:
        raise wrong_type(
            "NCC340",
            f"{where} cannot mix float8_e4m3 and float8_e4m3fn: {still.show()} is {still.name},"
            f" {moved.show()} is {moved.name}",
            "give both one of the two",
        )


def _result(
    where: str, to: Tile, still: Tile, rows: int, columns: int, is_transpose: bool, trace: Trace
) -> None:
    pairs = bool(is_transpose) and size_of(still.dtype) == 1  # 8-bit elements come out as 16 bits
    if to.parts != rows or to.free not in (columns, columns * (1 + pairs)):
        raise wrong_shape(
            "NCC334" if to.parts == rows else "NCC333",
            f"{where} gives {rows} partitions of {columns} elements (M from stationary, N from"
            f" moving), {to.show()} has {to.parts} of {to.free}",
            f"allocate or slice dst as ({rows}, {columns})",
        )
    if is_transpose:
        if generation(trace) >= 3:
            same_dtype(f"{where} with is_transpose", to, still)
        return
    allowed = {"float32"} if generation(trace) < 4 else {"float32", "bfloat16"}
    dtypes(where, to, allowed, "allocate the PSUM tile as nl.float32; the copy out of it converts")


def _part(
    where: str, position: Any, size: Any, depth: int, rows: int, trace: Trace
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The part of the engine's array that a small product runs in (NCC354)."""
    at = _two(where, position, "tile_position")
    extent = _two(where, size, "tile_size")
    if bool(at) != bool(extent):
        given, missing = ("tile_position", "tile_size") if at else ("tile_size", "tile_position")
        said = f"{where} takes tile_position and tile_size together, was given only {given}"
        raise invalid("NCC354", said, f"pass {missing} too")
    if not at:
        return (), ()
    sizes = (128, 64) if generation(trace) < 3 else (128, 64, 32)
    for axis, (start, length, used) in enumerate(zip(at, extent, (depth, rows), strict=True)):
        what = ("row", "column")[axis]
        if length not in sizes:
            may = listed(map(str, sizes)).replace(" and ", " or ")
            said = f"{where} takes tile_size of {may} {what}s, was given {length}"
            raise invalid("NCC354", said, "take the next larger one; what is left is not used")
        if start % length or start + length > 128 or start < 0:
            said = f"{where} takes a tile_position whose {what} is a multiple of {length} below 128"
            hint = f"move the product to {what} {min(start, 128 - length) // length * length}"
            raise invalid("NCC354", f"{said}, was given {start}", hint)
        if used > length:
            said = f"{where} needs {used} {what}s of the array, tile_size leaves {length}"
            raise invalid("NCC354", said, "use a larger tile_size")
    return at, extent


def _two(where: str, given: Any, role: str) -> tuple[int, ...]:
    if given is None:
        return ()
    values = tuple(whole(x, where, role) for x in several(given))
    if len(values) not in (0, 2):
        said = f"{where} takes {role} as (row, column), was given {given}"
        raise invalid("NCC354", said, "pass two numbers, or leave it out")
    return values


# --- transposes ---------------------------------------------------------------------------------


@call
def nc_transpose(
    dst: Any, data: Any, engine: Any = c.engine.unknown, name: str | None = None
) -> Instruction:
    """dst [F, P] = data [P, F] transposed: by the tensor engine into PSUM, or by the vector engine
    for blocks of at most 32 × 32."""
    where = "nc_transpose"
    to, source = tile(dst, where, "dst"), tile(data, where, "data")
    chosen = engine_of(engine, where, "tensor", "vector")
    if chosen == "unknown":
        chosen = "tensor" if to.psum and not source.psum else "vector"
    same_dtype(where, to, source)
    wide = size_of(source.dtype) == 1 and chosen == "tensor"  # 8-bit elements come out as 16 bits
    if to.parts != source.free or to.free not in (source.parts, source.parts * (1 + wide)):
        raise wrong_shape(
            "NCC334" if to.parts == source.free else "NCC333",
            f"{where} turns {source.show()} into ({source.free}, {source.parts}), {to.show()} has"
            f" {to.parts} partitions of {to.free}",
            f"allocate or slice dst as ({source.free}, {source.parts})",
        )
    most = 128 if chosen == "tensor" else BLOCK
    if chosen == "tensor":
        if source.psum or not to.psum:
            wrong = source if source.psum else to
            raise invalid(
                "NCC332",
                f"{where} on the tensor engine reads SBUF and writes PSUM, {wrong.show()} is in"
                f" {'PSUM' if wrong.psum else 'SBUF'}",
                "give dst buffer=nl.psum, and copy data to SBUF first",
            )
        bits = current(where).target.pe_copies_transpose
        if source.dtype not in FLOATS and size_of(source.dtype) > 2 and not bits:
            raise wrong_type(
                "NCC338",
                f"{where} on the tensor engine takes floats, {source.show()} is {source.name}",
                "view it as nl.float32: the bits are moved as they are",
            )
    if source.parts > most or source.free > most:
        raise invalid(
            "NCC336",
            f"{where} on the {chosen} engine takes at most {most} × {most} elements,"
            f" {source.show()} has {source.parts} × {source.free}",
            "transpose into a PSUM tile, or block by block",
        )
    return record(where, {"dst": to, "data": source}, engine=chosen, name=name)


# --- a later generation -------------------------------------------------------------------------


def _later(where: str, what: str) -> Exception:
    hint = "multiply bfloat16 or float8_e4m3 tiles with nisa.nc_matmul"
    return invalid(
        "NCC348", f"{where} is one of the {what}, which this release does not have", hint
    )


@call
def nc_matmul_mx(
    dst: Any,
    stationary: Any,
    moving: Any,
    stationary_scale: Any,
    moving_scale: Any,
    tile_position: Any = None,
    tile_size: Any = None,
    accumulate: bool | None = None,
    name: str | None = None,
) -> Instruction:
    """A product of MX tiles, which carry a scale for each block: refused by name."""
    current("nc_matmul_mx")
    raise _later("nc_matmul_mx", "MX instructions")


@call
def quantize_mx(dst: Any, src: Any, dst_scale: Any, name: str | None = None) -> Instruction:
    """Floats to MX tiles with a scale for each block: refused by name."""
    current("quantize_mx")
    raise _later("quantize_mx", "MX instructions")


def sparse(where: str) -> Any:
    """A call on sparse tiles: refused by name when it is called."""

    def refused(*args: Any, **kwargs: Any) -> Instruction:
        current(where)
        raise _later(where, "sparse instructions")

    refused.__name__ = where
    return refused
