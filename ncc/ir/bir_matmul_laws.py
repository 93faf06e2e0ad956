"""What makes one matmul legal: its tiles fit the array and a PSUM bank, and their sizes agree."""

from __future__ import annotations

from collections.abc import Mapping

from ncc.errors import NccError
from ncc.ir.bir import Ap, Inst
from ncc.ir.bir_opcodes import key
from ncc.ir.bir_patterns import elements
from ncc.ir.data import FP8, size_of
from ncc.target import BANK, Target

# of a location: memory's letter, dims, the byte it starts at (-1 where not placed), first partition
Row = tuple[str, tuple[int, int], int, int]
Rows = Mapping[str, Row]


def fault(code: str, inst: Inst, said: str, hint: str = "") -> NccError:
    return NccError(code, said, inst.origin.place(inst.name), hint)


def product(inst: Inst, rows: Rows, target: Target) -> NccError | None:
    """A matmul's tiles fit the array and one PSUM bank, and their sizes agree."""
    flag = key(inst, "accumulation_flag")
    if flag & ~7 or flag & 5 == 5:
        return fault("NCC424", inst, f"accumulation_flag={flag} is no sum of 1 or 4, and 2")
    if any(not isinstance(x, Ap) for x in (*inst.ins[:2], *inst.outs)):
        return None
    moving, stationary, out = inst.ins[0], inst.ins[1], inst.outs[0]
    assert isinstance(moving, Ap) and isinstance(stationary, Ap) and isinstance(out, Ap)
    if (size_of(moving.dtype) == 4) != (size_of(stationary.dtype) == 4):
        said = f"multiplies {stationary.dtype} by {moving.dtype}; both are 32 bits wide or neither"
        return fault("NCC417", inst, said)
    mode = key(inst, "perf_mode")
    if mode != "None" and not {moving.dtype, stationary.dtype} <= FP8:
        said = (
            f"multiplies {stationary.dtype} by {moving.dtype}; perf_mode={mode} is for 8-bit floats"
        )
        return fault("NCC417", inst, said, "leave perf_mode out")
    k, m = moving.ap[0][1], elements(stationary.ap[1:])
    n, across = elements(moving.ap[1:]), out.ap[0][1]
    if stationary.ap[0][1] != k or across != m or elements(out.ap[1:]) != n:
        said = (
            f"multiplies [{stationary.ap[0][1]},{m}] by [{k},{n}] into "
            f"[{across},{elements(out.ap[1:])}]"
        )
        return fault("NCC417", inst, said)
    free, wide = target.stationary_free, target.moving_free
    if k > target.partitions or m > free or n > wide:
        said = f"has K={k}, M={m}, N={n}; the most are {target.partitions}, {free} and {wide}"
        return fault("NCC416", inst, said)
    if len(moving.ap) > 4 or len(stationary.ap) > 4 or len(out.ap) > 4:
        return fault("NCC408", inst, "has a tile of more than 4 pairs, the most a matmul takes")
    return bank(inst, out, rows, target) or tile(inst, k, m, target)


def bank(inst: Inst, out: Ap, rows: Rows, target: Target) -> NccError | None:
    """The destination lies in one PSUM bank."""
    first, last = spans(out, rows[out.loc])
    if first != last:
        said = f"writes banks {first} to {last} of PSUM; one product lies in one bank"
        return fault("NCC437", inst, said)
    return None


def spans(ap: Ap, row: Row) -> tuple[int, int]:
    """The first and the last PSUM bank that an access touches."""
    _, dims, start, _ = row
    size = size_of(ap.dtype)
    first = max(start, 0) + ap.offset % (dims[1] // size) * size
    last = first + size - 1 + sum(max(0, step) * (num - 1) for step, num in ap.ap[1:]) * size
    return first // BANK, last // BANK


def tile(inst: Inst, k: int, m: int, target: Target) -> NccError | None:
    """Tile size and position are both given or neither, inside the array, and hold the operands."""
    size, position = key(inst, "tile_size"), key(inst, "tile_position")
    if (size == (-1, -1)) != (position == (-1, -1)):
        return fault("NCC418", inst, "gives tile_size or tile_position without the other")
    if size == (-1, -1):
        return None
    for name, extent, at, used in zip(("rows", "columns"), size, position, (k, m), strict=True):
        if extent not in (32, 64, 128) or at % extent or at + extent > 128:
            return fault("NCC418", inst, f"a tile of {extent} {name} cannot start at {at}")
        if used > extent:
            return fault("NCC418", inst, f"uses {used} {name} of a tile with {extent}")
    if target.gen == 2 and (position[1] == 96 or size == (32, 32)):
        return fault("NCC418", inst, f"{target.name} has no tile {size} at {position}")
    return None
