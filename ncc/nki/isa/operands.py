"""What a call was given, checked: tiles in memories, numbers, columns of one number a partition.

Every check raises one sentence that starts with the call and names the operand as the call does.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ncc.errors import listed, one_line
from ncc.ir.data import size_of
from ncc.ir.kernel import Access, Arg, Imm, Reg
from ncc.ir.kernel_ops import writes
from ncc.nki.isa import written
from ncc.nki.trace import Instruction, Trace, current, invalid, place, wrong_shape, wrong_type

if TYPE_CHECKING:
    from ncc.nki.trace import Storage

ON_CHIP = ("sbuf", "psum")
SBUF = ("sbuf",)
PSUM = ("psum",)
HBM = ("hbm", "shared_hbm")
DMA = ("sbuf", *HBM)  # what a DMA reaches
SHOWN = {"sbuf": "SBUF", "psum": "PSUM", "hbm": "HBM", "shared_hbm": "HBM"}
INTS = frozenset({"int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"})
WIDE_INTS = frozenset({"int32", "uint32"})
PARTITIONS = 128


class Tile:
    """One tensor operand: its access, and the numbers that the checks ask for."""

    __slots__ = ("access", "dtype", "free", "memory", "parts", "role", "shape", "storage", "tensor")

    def __init__(self, role: str, tensor: Any, access: Access, memory: str) -> None:
        self.role, self.tensor, self.access, self.memory = role, tensor, access, memory
        self.storage: Storage = tensor.storage
        shape: tuple[int, ...] = tensor.shape
        self.shape = shape
        self.dtype = access.dtype
        self.parts = shape[0] if shape else 1
        self.free = shape[1] if len(shape) == 2 else math.prod(shape[1:])

    @property
    def name(self) -> str:
        """Of the dtype, as the kernel spells it: an x4 type has no name in BIR."""
        return str(self.tensor.dtype)

    @property
    def psum(self) -> bool:
        return self.memory == "psum"

    @property
    def count(self) -> int:
        return self.parts * self.free

    @property
    def bytes(self) -> int:
        """Of one partition."""
        return self.free * size_of(self.dtype)

    def show(self) -> str:
        dims = ", ".join(map(str, self.shape))
        return f"{self.role} {self.tensor.shown} ({dims})"


Operand = Tile | Imm | Reg


def is_tensor(value: Any) -> bool:
    return hasattr(value, "access") and hasattr(value, "storage")


def tile(value: Any, call: str, role: str, memories: tuple[str, ...] = ON_CHIP) -> Tile:
    """A tensor operand; NCC331 for what is none, NCC332 for one in the wrong memory."""
    if not is_tensor(value):
        raise not_a_tile(value, call, role)
    memory: str = value.storage.buffer.memory
    if memory not in memories:
        raise misplaced(value, call, role, memories)
    compute = memories is not DMA
    found = Tile(role, value, access_of(value, call, role, compute), memory)
    if memory in ON_CHIP and found.parts > PARTITIONS:
        raise wrong_shape(
            "NCC333",
            f"{call} takes at most {PARTITIONS} partitions, {found.show()} has {found.parts}",
            "dimension 0 is the partition dimension: loop over blocks of 128",
        )
    return found


def access_of(tensor: Any, call: str, role: str, compute: bool) -> Access:
    """The tensor's elements; the tensor itself knows its bounds and its start partition."""
    return tensor.access(f"{call}: {role}", compute=compute, write=role in writes_of(call))


def not_a_tile(value: Any, call: str, role: str) -> Exception:
    kind = type(value).__name__
    if value is None:
        said = f"{call} needs {role}, was given None"
    else:
        said = f"{call} takes a tensor as {role}, was given {short(value)} of type {kind}"
    hint = f"allocate one with nl.ndarray and pass it as {role}"
    if kind in ("ndarray", "Tensor"):
        hint = "pass the array to the kernel as an argument, or make it with nl.shared_constant"
    elif kind in ("list", "tuple"):
        hint = "index the list: a call takes one tensor"
    return wrong_type("NCC331", said, hint)


def short(value: Any) -> str:
    text = one_line(repr(value))
    return text if len(text) <= 40 else text[:37] + "..."


def misplaced(value: Any, call: str, role: str, memories: tuple[str, ...]) -> Exception:
    buffer = value.storage.buffer
    wanted = listed(sorted({SHOWN[m] for m in memories})).replace(" and ", " or ")
    memory = SHOWN[buffer.memory]
    if memory == "HBM":
        hint = "bring it to SBUF with nisa.dma_copy first"
        if role in writes_of(call):
            hint = "write a tile in SBUF, then store it with nisa.dma_copy"
    elif wanted == "PSUM":
        hint = "allocate it with buffer=nl.psum, and copy the result to SBUF with nisa.tensor_copy"
    elif memory == "PSUM":
        hint = "copy it to SBUF with nisa.tensor_copy first"
        if role in writes_of(call):
            hint = "write a tile in SBUF, and copy from there"
    else:
        hint = f"it must be in {wanted}"
    said = f"{call} takes {role} in {wanted}, {value.shown} is in {memory}"
    return invalid("NCC332", said, hint)


def writes_of(call: str) -> frozenset[str]:
    try:
        return writes(call)
    except KeyError:
        return frozenset({"dst"})


# --- numbers and vectors ------------------------------------------------------------------------


def number(value: Any, call: str, role: str) -> int | float:
    """A Python number of any spelling; NCC345 for what is none."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value
    item = getattr(value, "item", None)
    if item is not None and getattr(value, "size", 1) == 1 and not is_tensor(value):
        found = item()
        if isinstance(found, bool):
            return int(found)
        if isinstance(found, int | float):
            return found
        value = found
    try:
        if not isinstance(value, str | bytes):
            return float(value)
    except (TypeError, ValueError):
        pass
    said = f"{call} takes a number as {role}, was given {short(value)}"
    raise wrong_type("NCC345", said, "pass a Python or numpy number")


def whole(value: Any, call: str, role: str, low: int | None = None, high: int | None = None) -> int:
    """An integer in a range; NCC351 otherwise."""
    found = number(value, call, role)
    if not math.isfinite(found) or found != int(found):
        said = f"{call} takes a whole number as {role}, was given {short(found)}"
        raise invalid("NCC351", said, "divide with //, or round it")
    found = int(found)
    if (low is not None and found < low) or (high is not None and found > high):
        bounds = f"between {low} and {high}" if high is not None else f"from {low} on"
        said = f"{call} takes {role} {bounds}, was given {short(value)}"
        raise invalid("NCC351", said, "use a value in this range")
    return found


def register(value: Any) -> Reg | None:
    """The register of a `VirtualRegister` or `NkiScalar`."""
    found = getattr(value, "reg", None)
    return found if isinstance(found, Reg) else None


def scalar(value: Any, call: str, role: str, like: Tile) -> Tile | Imm:
    """A number, or a tile (P, 1) with one number for each partition of `like`."""
    if not is_tensor(value):
        if register(value) is not None:
            said = f"{call} takes a number or a tile (P, 1) as {role}, was given a register"
            raise wrong_type("NCC346", said, "store it into a tile with nisa.register_store first")
        return Imm(number(value, call, role))
    found = tile(value, call, role)
    if found.free != 1:
        raise wrong_shape(
            "NCC346",
            f"{call} takes one number a partition as {role}, {found.show()} has {found.free}",
            "pass a column (P, 1); two full tiles go through nisa.tensor_tensor",
        )
    same_parts(call, like, found)
    return found


def optional_scalar(value: Any, call: str, role: str, like: Tile) -> Tile | Imm | None:
    return None if value is None else scalar(value, call, role, like)


# --- relations ----------------------------------------------------------------------------------


def same_parts(call: str, *tiles: Tile | Imm | Reg | None) -> None:
    """All tiles have as many partitions (NCC333)."""
    first: Tile | None = None
    for one in tiles:
        if not isinstance(one, Tile):
            continue
        if first is None:
            first = one
        elif one.parts != first.parts:
            hint = "slice dimension 0 of both alike"
            if 1 in (first.parts, one.parts):
                many = max(first.parts, one.parts)
                hint = f"a row for all: nisa.dma_copy(dst=tile, src=hbm_row.broadcast(0, {many}))"
            raise wrong_shape(
                "NCC333",
                f"{call} works partition by partition: {first.show()} has {first.parts} of them,"
                f" {one.show()} has {one.parts}",
                hint,
            )


def same_free(call: str, *tiles: Tile | Imm | Reg | None) -> None:
    """All tiles have as many elements a partition, in whatever shape (NCC334)."""
    first: Tile | None = None
    for one in tiles:
        if not isinstance(one, Tile):
            continue
        if first is None:
            first = one
        elif one.free != first.free:
            raise wrong_shape(
                "NCC334",
                f"{call} needs equally many elements a partition: {first.show()} has {first.free},"
                f" {one.show()} has {one.free}",
                "slice the free dimensions alike; stride-0 views broadcast",
            )


def same(call: str, *tiles: Tile | Imm | Reg | None) -> None:
    same_parts(call, *tiles)
    same_free(call, *tiles)


def same_dtype(call: str, *tiles: Tile | Imm | Reg | None) -> None:
    """All tiles have one dtype: the call moves bits (NCC339)."""
    found = [t for t in tiles if isinstance(t, Tile)]
    for one in found[1:]:
        if one.dtype != found[0].dtype:
            first = found[0]
            raise wrong_type(
                "NCC339",
                f"{call} converts nothing: {first.show()} is {first.name}, {one.show()} is"
                f" {one.name}",
                "give both one dtype; nisa.tensor_copy converts",
            )


def dtypes(call: str, one: Tile, allowed: frozenset[str] | set[str], hint: str = "") -> None:
    """The tile's dtype is one of `allowed` (NCC338)."""
    if one.dtype not in allowed:
        raise wrong_type(
            "NCC338",
            f"{call} takes {one.role} as {either(allowed)}, {one.show()} is {one.name}",
            hint or "copy it with nisa.tensor_copy into a tile of such a dtype",
        )


def either(words: frozenset[str] | set[str]) -> str:
    spelled = {"float8e4": "float8_e4m3", "float8e5": "float8_e5m2", "float8e3": "float8_e3m4"}
    order = sorted((spelled.get(w, w) for w in words), key=lambda w: (len(w.strip("uint")), w))
    return listed(order).replace(" and ", " or ")


def not_both_psum(call: str, *tiles: Tile | Imm | Reg | None) -> None:
    """At most one of the tiles that are read is in PSUM (NCC344)."""
    found = [t for t in tiles if isinstance(t, Tile) and t.psum]
    if len(found) > 1:
        raise invalid(
            "NCC344",
            f"{call} reads one operand from PSUM, {found[0].show()} and {found[1].show()} are both"
            " there",
            "copy one of them to SBUF with nisa.tensor_copy first",
        )


def column(call: str, one: Tile | None, like: Tile) -> None:
    """The tile holds one number a partition (NCC346)."""
    if one is None:
        return
    same_parts(call, like, one)
    if one.free != 1:
        raise wrong_shape(
            "NCC346",
            f"{call} writes one number a partition to {one.role}, {one.show()} has {one.free}",
            "pass a column (P, 1)",
        )


def eight(call: str, *tiles: Tile) -> None:
    """These hold the eight slots that the search instructions work with (NCC356)."""
    for one in tiles:
        exactly(call, one, 8)


def exactly(call: str, one: Tile, n: int) -> None:
    if one.free != n:
        raise wrong_shape(
            "NCC356",
            f"{call} needs {n} elements a partition in {one.role}, {one.show()} has {one.free}",
            f"allocate it as (P, {n}), or slice it so",
        )


def between(call: str, one: Tile, low: int, high: int) -> None:
    """The elements a partition lie in a range (NCC356)."""
    if not low <= one.free <= high:
        raise wrong_shape(
            "NCC356",
            f"{call} takes {low} to {high} elements a partition as {one.role},"
            f" {one.show()} has {one.free}",
            "cut the free dimension and merge the parts' results",
        )


# --- the machine --------------------------------------------------------------------------------


def generation(trace: Trace) -> int:
    return trace.target.level // 10


def since(call: str, generation_needed: int, what: str = "", hint: str = "") -> None:
    """The target has the call (NCC347)."""
    trace = current(call)
    if generation(trace) < generation_needed:
        first = {3: "trn2", 4: "trn3"}[generation_needed]
        raise invalid(
            "NCC347",
            f"{what or call} comes with {first}, the target is {trace.target.name}",
            hint or f"compile with --target {first}, or ask nisa.get_nc_version() before the call",
        )


def lossy(call: str, *tiles: Tile | Imm | Reg | None) -> None:
    """Warn once a line: 32-bit integers pass through float32 here (NCC359)."""
    for one in tiles:
        if isinstance(one, Tile) and one.dtype in WIDE_INTS:
            trace = current(call)
            said = (
                f"NCC359 {place()}: {call} computes in float32: integers of {one.show()} above"
                " 2^24 are rounded (nisa.tensor_tensor on int32 tiles in SBUF is exact)"
            )
            if said not in trace.warnings:
                trace.warnings.append(said)
            return


def record(
    call: str,
    args: Mapping[str, Operand | None],
    keys: Mapping[str, Any] | None = None,
    *,
    engine: str = "unknown",
    name: str | None = None,
) -> Instruction:
    """Append the op to the live trace, and remember what it wrote."""
    given: dict[str, Arg | None] = {
        role: arg.access if isinstance(arg, Tile) else arg for role, arg in args.items()
    }
    made = current(call).emit(call, given, keys, engine=engine, name=name)
    for role in writes(call):
        target = args.get(role)
        if isinstance(target, Tile):
            target.storage.touched = True
            if target.psum:
                written.mark(target.storage, target.access)
    return made
