"""What a bundle may say: the encoder's rules L1 to L32, each under the code NCC700 + its number.

`complaints` looks at one bundle; `stream_complaints` at what only a stream shows: extensions, pairs
of load and matmul, branches, the exit. What depends on time (L10) is the machine's to see.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from math import prod
from typing import Any

from ncc.encode import legal_dma, legal_vector
from ncc.encode.access import ACCESSES
from ncc.encode.bundle import extension_faults
from ncc.encode.codes import (
    GROUP,
    TAG_SIZE,
    TAGS,
    WAIT_COMPARE,
    WAIT_EVENT,
    WAIT_GE,
    WAIT_GE_REG,
    XBUS,
    update_uses_value,
)
from ncc.encode.legal_tensor import Check, Fault, Fields, tensor_faults
from ncc.encode.tables import ROWS, Row
from ncc.errors import NccError, Place
from ncc.ir.isa import Band, Bundle
from ncc.target import Target

REGISTERS = 64
REGISTER_FIELDS = ("_regs", "_lo", "_hi", "_reg", "left", "right", "reg0", "reg1")
PE_TAGS = frozenset({2, 3, 6, 7, 0xA, 0xD, 0xE, 0xF})
ENUMS: dict[str, frozenset[int]] = {
    "dtype": frozenset(TAGS) - {0},
    "imm_src": frozenset({0, 1, 2}),
    "bias_src": frozenset({0, 1, 2}),
    "acc": frozenset(range(5)),
    "fp32_mode": frozenset(range(4)),
    "dge_op": frozenset(range(4)),
    "lo": frozenset(TAGS) - {0},
    "hi": frozenset(TAGS) - {0},
}
UPDATES = frozenset(
    reg | code
    for reg in (0, 0x80)
    for code in (1, 2, 3, 4, 5, 7, 9, 0x11, 0x12, 0x13, 0x14, 0x15, 0x17, 0x19)
) | {0}
WAITS = {0, *WAIT_COMPARE, *(c | 0x80 for c in WAIT_COMPARE), *WAIT_EVENT}


def complaints(bundle: Bundle, gen: int, target: Target, engine: str) -> Iterator[NccError]:
    """Everything that one bundle in `engine`'s stream may not say."""
    for number, said, hint in faults(bundle, gen, target, engine):
        yield NccError(f"NCC{number}", said, Place(value=bundle.op), hint)


def faults(bundle: Bundle, gen: int, target: Target, engine: str) -> Iterator[Fault]:
    row = ROWS.get(bundle.op)
    if row is None:
        yield 741, f"no opcode is called {bundle.op!r}", ""
        return
    if gen not in row.gens:
        yield 730, f"{row.mnemonic} is not an opcode of generation {gen}", ""
    if engine not in row.engines:
        said = f"{row.mnemonic} stands in the stream of {engine}"
        yield 735, said, f"it belongs to {' or '.join(row.engines)}"
    if bundle.band.wait[0] or bundle.band.update[0]:
        yield from band_faults(bundle.band)
    if row.struct == "EVENTS":
        yield from event_wait(bundle.band.wait[0])
    f: Fields = dict(bundle.fields)
    if len(f) < len(bundle.fields):
        yield 742, "a field stands twice", ""
    for name, allowed, must in _enums(row.mnemonic):
        if (code := f.get(name, 0)) not in allowed and (code or must):
            yield 734, f"{name} has the code {code:#x}, which means nothing", ""
    for a in ACCESSES[row.mnemonic]:
        tag = a.tag or f.get(a.dtype, 0)
        size = TAG_SIZE.get(tag)
        if a.field in f and size:
            count = f.get(a.count, 0) if a.count else 1
            for number, said in tensor_faults(f[a.field], tag, count, a.write, target.sbuf_size):
                yield number, f"{a.field} {said}", ""
            if engine == "Pool" and f[a.field].space == "psum":
                yield 707, f"{a.field} is in PSUM, which Pool cannot reach", ""
    for check in CHECKS.get(row.struct, ()):
        yield from check(f, row, gen, target)
    if row.mnemonic == "DmaDirect2d" and engine not in target.dma_engines:
        said = f"a DmaDirect2d stands in the stream of {engine}"
        yield 732, said, f"on {target.name} {', '.join(target.dma_engines)} trigger DMAs"


@cache
def _enums(mnemonic: str) -> tuple[tuple[str, frozenset[int], bool], ...]:
    """Fields whose codes are listed, the codes, and whether 0 is refused too."""
    dtypes = {a.dtype for a in ACCESSES[mnemonic]}
    return tuple(
        (f.name, ENUMS[f.kind], f.name in dtypes or 0 in ENUMS[f.kind])
        for f in ROWS[mnemonic].fields
        if f.kind in ENUMS
    )


def band_faults(band: Band) -> Iterator[Fault]:
    wait, update = band.wait[0], band.update[0]
    if wait not in WAITS:
        yield 726, f"wait mode {wait:#04x} means nothing", ""
    if update not in UPDATES:
        yield 726, f"update mode {update:#04x} means nothing", ""
    for mode, what in ((wait, "wait"), (update, "update")):
        uses = mode & 0x7F in WAIT_COMPARE if what == "wait" else update_uses_value(mode)
        if mode & 0x80 and uses and band.value >= REGISTERS:
            yield 726, f"the {what} names register {band.value}; there are 64", ""


def pe(f: Fields, row: Row, gen: int, target: Target) -> Iterator[Fault]:
    """L7 to L13 as far as one bundle of a load-matmul pair shows them."""
    load = row.mnemonic == "LoadStationary"
    source = f["src" if load else "moving"]
    if source.space != "sb":
        yield 707, f"{'src' if load else 'moving'} is not in SBUF", "PE reads SBUF only"
    tag, mode = f.get("in_dtype", 0), f.get("fp32_mode", 0)
    if tag not in PE_TAGS:
        yield 711, f"in_dtype {TAGS.get(tag, tag)} is no input of PE", ""
    elif (tag == 0xA) != (mode != 0):
        yield 711, f"in_dtype {TAGS[tag]} has fp32_mode {mode}", "fp32 has a mode, nothing else has"
    k, m = f.get("num_active_rows", 0), f.get("num_active_cols", 0)
    if not 0 < m <= 128:
        yield 703, f"num_active_cols {m} is outside 1..128", ""
    rows, cols = f.get("row_grp", 0), f.get("col_grp", 0)
    yield from group_faults("row_grp", rows, k, source.partition)
    yield from group_faults("col_grp", cols, m, None if load else f["dst"].partition)
    if gen == 2 and cols == 8:
        yield 712, "col_grp 8 does not work on generation 2", "use another column group"
    wanted = XBUS.get(cols, 0) if gen == 2 else 0
    if f.get("xbus_sel", 0) != wanted and cols != 8:
        said = f"xbus_sel is {f.get('xbus_sel', 0):#x}"
        yield 712, f"{said}, and with col_grp {cols:#x} goes {wanted:#x}", ""
    for name, top in (("quant_offset", 0), ("perf_opt", 0), ("transpose_mode", int(gen > 2))):
        if f.get(name, 0) > top:
            yield 734, f"{name} is {f[name]}, and at most {top} is supported", ""
    elements = prod(n for _, n in source.dims)
    if load and elements != m:
        yield 708, f"src has {elements} elements a partition and num_active_cols is {m}", ""
    if not load:
        yield from matmul(f, elements)


def matmul(f: Fields, elements: int) -> Iterator[Fault]:
    dst = f["dst"]
    if dst.space != "psum":
        yield 707, "dst is not in PSUM", "a Matmul writes PSUM"
    else:
        low = dst.byte + 4 * sum(min(0, s * (n - 1)) for s, n in dst.dims)
        high = dst.byte + 4 * sum(max(0, s * (n - 1)) for s, n in dst.dims)
        if low >> 11 != high >> 11:
            yield 707, "dst leaves its bank", "a bank has 2048 bytes a partition"
    if elements > 512:
        yield 708, f"moving has {elements} elements a partition, at most 512 fit", ""
    written = prod(n for _, n in dst.dims)
    if written != elements:
        yield 708, f"moving has {elements} elements a partition and dst has {written}", ""
    if (flags := f.get("psum_flags", 0)) > 3:
        yield 709, f"psum_flags is {flags}, outside 0..3", "1 is START, 2 is STOP"
    for name in ("out_dtype", "psum_zero_region"):
        if f.get(name, 0):
            yield 713, f"{name} is {f[name]} and must be 0 before generation 4", ""


def group_faults(name: str, code: int, size: int, start: int | None) -> Iterator[Fault]:
    if code not in GROUP:
        yield 712, f"{name} {code:#x} is no group", "1, 2, 4, 8, 3, C and F are"
        return
    first, width = GROUP[code]
    if size > width:
        yield 712, f"{name} {code:#x} holds {width} partitions, and {size} are active", ""
    if start is not None and start != first:
        yield 712, f"{name} {code:#x} starts at partition {first}, the tensor at {start}", ""


def registers(f: Fields, row: Row, gen: int, target: Target) -> Iterator[Fault]:
    """L26: register numbers."""
    for name, value in f.items():
        if name.endswith(REGISTER_FIELDS):
            for number in value if isinstance(value, bytes) else (value,):
                if number >= REGISTERS:
                    yield 726, f"{name} names register {number}; there are 64", ""


def events(f: Fields, row: Row, gen: int, target: Target) -> Iterator[Fault]:
    second = Band(
        (f.get("wait2_mode", 0), f.get("wait2_idx", 0)),
        (f.get("update2_mode", 0), f.get("update2_idx", 0)),
        0,
    )
    yield from band_faults(second)
    yield from event_wait(second.wait[0])


def event_wait(mode: int) -> Iterator[Fault]:
    """L27: an EventSemaphore waits for >= only."""
    if mode not in (0, WAIT_GE, WAIT_GE_REG):
        yield 727, f"wait mode {mode:#04x} in an EventSemaphore", "it waits for >="


CHECKS: dict[str, tuple[Check, ...]] = {
    "S3_LW": (pe,),
    "S3D3_MM": (pe,),
    "EVENTS": (events,),
    "MOVE": (registers,),
    "CTRL_AL": (registers,),
    "BRANCH": (registers,),
    "REG_TENSOR": (registers,),
    **legal_vector.CHECKS,
    **legal_dma.CHECKS,
}


def stream_complaints(bundles: tuple[Bundle, ...], engine: str) -> Iterator[NccError]:
    """What only the whole stream of an engine shows (L8, L29, L31, L32)."""
    for number, i, said, hint in stream_faults(bundles):
        yield NccError(f"NCC{number}", said, Place(value=f"bundle {i} of {engine}"), hint)


def stream_faults(bundles: tuple[Bundle, ...]) -> Iterator[tuple[int, int, str, str]]:
    for i, said in extension_faults(bundles):
        yield 729, i, said, ""
    last = len(bundles) - 1
    if bundles and bundles[-1].op != "Exit":
        yield 732, last, f"the stream ends with {bundles[-1].op}", "an Exit is the last bundle"
    held: dict[tuple[Any, Any], Fields] = {}
    for i, bundle in enumerate(bundles):
        match bundle.op:
            case "Exit" if i < last:
                yield 732, i, "an Exit stands before the end of the stream", "it is the last bundle"
            case "LoadStationary" | "Matmul":
                f: Fields = dict(bundle.fields)
                key = (f.get("row_grp"), f.get("col_grp"))
                if bundle.op == "LoadStationary":
                    held[key] = f
                elif said := disagreement(held.get(key), f):
                    yield 708, i, said, "the two of a pair agree"
            case "CompareAndBranch":
                move = dict(bundle.fields).get("target", 0)
                if move % 64:
                    yield 731, i, f"the branch goes {move} bytes", "a multiple of 64"
                elif not 0 <= i + move // 64 <= last:
                    yield 731, i, f"the branch goes {move} bytes and leaves the stream", ""
            case _:
                pass


PAIRED = ("num_active_rows", "num_active_cols", "transpose_mode")


def disagreement(load: Fields | None, matmul: Fields) -> str:
    """Why a Matmul does not belong to the load of its groups, or ""."""
    if load is None:
        return "a Matmul before any LoadStationary of its groups"
    for name in PAIRED:
        if load.get(name, 0) != matmul.get(name, 0):
            return f"{name} is {matmul.get(name, 0)} and its LoadStationary has {load.get(name, 0)}"
    tags = [f.get("in_dtype", 0) for f in (matmul, load)]
    if (TAG_SIZE[tags[0]] == 4) != (TAG_SIZE[tags[1]] == 4):  # narrower types mix (ISA232)
        return f"in_dtype is {TAGS[tags[0]]} and its LoadStationary has {TAGS[tags[1]]}"
    return ""
