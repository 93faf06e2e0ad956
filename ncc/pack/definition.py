"""`def.json` and what it names: DRAM variables, queues, the streams' files (R11, R14 to R16)."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from math import prod
from typing import Any

import attrs

from ncc.ir.data import DTYPES, Data, size_of
from ncc.ir.isa import STREAMS, DmaQueue, Var
from ncc.pack.names import BY_KEY, ENGINES, Engine
from ncc.pack.schema import Json, fault, get, numbers, objects, read_json

TYPES = (
    "state-buffer",
    "input",
    "output",
    "file",
    "virtual",
    "tmp-buf",
    "pointer",
    "dge-table",
    "local",
    "shared",
    "remote",
)
RUNS = ("input", "output", "file", "shared", "virtual")  # what ncc's machine has
QUEUE_TYPES = ("in", "out", "data", "embedding_update", "dynamic")
MAX_QUEUES, ALL_QUEUES, DIMENSIONS = 16, 176, 4


@attrs.frozen
class Core:
    """One subgraph, read: what its streams run on. `foreign` says what ncc cannot run, or ""."""

    folder: str
    vars: tuple[Var, ...]
    queues: tuple[DmaQueue, ...]
    streams: Mapping[str, str]  # stream -> member
    foreign: str


def read_core(members: Mapping[str, bytes], path: str, referrer: str) -> Core:
    """The subgraph whose definition is the member `path`."""
    if path not in members:
        raise fault(811, "is missing", path, f"{referrer} names it")
    definition = read_json(members, path)
    folder = path.rpartition("/")[0]
    version(definition, path, "0.6")
    streams = {e.stream: stream_of(e, definition, members, folder, path) for e in ENGINES}
    variables, foreign = read_vars(members, definition, folder, path)
    variables = with_arguments(members, variables, folder, foreign)
    names = get(definition, "var", dict, path, 814)
    sizes = {name: entry.get("size") for name, entry in names.items()}
    queues, known = read_queues(definition, path)
    for engine in ENGINES:
        member = f"{folder}/{get(definition, engine.key, str, path, 811)}"
        check_blocks(read_json(members, member), member, sizes, known)
    return Core(folder, variables, queues, streams, foreign)


def version(obj: Json, path: str, wanted: str) -> str:
    """R18: a schema of another major version is refused; returns a warning or ""."""
    found = get(obj, "version", str, path, 818)
    if found.partition(".")[0] != wanted.partition(".")[0]:
        said = f"has schema version {found!r}, and this reader supports {wanted!r}"
        raise fault(818, said, path, "the reader is too old: use a newer ncc")
    return "" if found.startswith(wanted) else f"{path} has schema version {found}, not {wanted}"


def stream_of(
    engine: Engine, definition: Json, members: Mapping[str, bytes], folder: str, path: str
) -> str:
    """The member of an engine's stream; it and the engine's JSON must be there (R11)."""
    for key in (engine.key, f"{engine.key}_instr"):
        name = f"{folder}/{get(definition, key, str, path, 811)}"
        if name not in members:
            raise fault(811, "is missing", name, f"{path} names it as {key!r}")
    return f"{folder}/{definition[f'{engine.key}_instr']}"


# Variables


def read_vars(
    members: Mapping[str, bytes], definition: Json, folder: str, path: str
) -> tuple[tuple[Var, ...], str]:
    """The variables by number, without the state buffer, and what ncc cannot run."""
    found: dict[int, Var] = {}
    buffers, outputs, foreign = 0, 0, ""
    ids: set[int] = set()
    entries: Json = get(definition, "var", dict, path, 814)
    for name in entries:
        place = f"{path}, variable {name}"
        entry: Json = get(entries, name, dict, place, 814)
        kind = get(entry, "type", str, place, 814)
        if kind not in TYPES:
            raise fault(814, f"has the type {kind!r}; there are {', '.join(TYPES)}", place)
        number = get(entry, "var_id", int, place, 814)
        if number < 0 or number in ids:
            why = "is used twice" if number in ids else "is negative"
            raise fault(814, f"the var_id {number} {why}", place)
        ids.add(number)
        size = get(entry, "size", int, place, 814, 0 if kind == "state-buffer" else None)
        alignment = get(entry, "alignment", int, place, 814, 0)
        if size < 0 or alignment < 0 or alignment & (alignment - 1):
            raise fault(814, f"has size {size} and alignment {alignment}", place)
        buffers += kind == "state-buffer"
        outputs += kind == "output"
        if kind in RUNS and "dtype" in entry:
            found[number] = read_var(members, name, entry, folder, place)
        elif kind != "state-buffer":
            foreign = foreign or f"{name} is a {kind} without dtype and shape"
    if not outputs:
        raise fault(814, "there is no output variable", path)
    if ids != set(range(len(ids))):
        raise fault(814, f"the var_ids are not 0 to {len(ids) - 1}", path)
    if not foreign and (buffers != 1 or 0 in found):
        raise fault(814, "var_id 0 is not the one state-buffer variable", path)
    return tuple(found[number] for number in sorted(found)), foreign


def read_var(members: Mapping[str, bytes], name: str, entry: Json, folder: str, place: str) -> Var:
    """One variable that ncc runs (R14, R16)."""
    dtype = get(entry, "dtype", str, place, 814)
    if dtype not in DTYPES:
        raise fault(814, f"has the dtype {dtype!r}, which ncc does not know", place)
    shape = numbers(entry, "shape", place, 814)
    size = prod(shape) * size_of(dtype)
    if entry["size"] != size:
        raise fault(814, f"has size {entry['size']}, and its shape and dtype take {size}", place)
    kind, number = entry["type"], entry["var_id"]
    offset = get(entry, "backing_variable_off", int, place, 814, 0)
    if offset < 0 or (offset and kind != "virtual"):
        raise fault(814, f"has backing_variable_off {offset}", place)
    data = None
    if kind == "file":
        member = f"{folder}/{get(entry, 'file_name', str, place, 816)}"
        data = Data(dtype, shape, constant(members, member, size, place))
    return Var(name, number, kind, dtype, shape, offset, data)


def constant(members: Mapping[str, bytes], member: str, size: int, place: str) -> bytes:
    """The bytes of a constant: an .npy file of format 1, or anything else as it is (R16)."""
    if member not in members:
        raise fault(816, "is missing", member, f"{place} names it")
    raw = members[member]
    if member.endswith(".npy"):
        if raw[:8] != b"\x93NUMPY\x01\x00" or len(raw) < 10:
            raise fault(816, "is no NumPy file of format 1", member)
        start = 10 + int.from_bytes(raw[8:10], "little")
        try:
            head: Any = ast.literal_eval(raw[10:start].decode("latin-1").strip())
            plain = head["fortran_order"] is False and isinstance(head["descr"], str)
        except (ValueError, SyntaxError, KeyError, TypeError, MemoryError, RecursionError):
            plain = False
        if not plain:
            raise fault(816, "has a NumPy header that cannot be read", member)
        raw = raw[start:]
    if len(raw) != size:
        raise fault(816, f"holds {len(raw)} bytes, and {place} has {size}", member)
    return raw


def with_arguments(
    members: Mapping[str, bytes], variables: tuple[Var, ...], folder: str, foreign: str
) -> tuple[Var, ...]:
    """The variables, with the declared dtypes of tensor_map.json, which must agree (R15a)."""
    path = f"{folder}/tensor_map.json"
    if path not in members:
        if foreign:
            return variables
        raise fault(811, "is missing", path, "it says which variable is which argument")
    tensors = read_json(members, path)
    by_name = {var.name: var for var in variables}
    declared: dict[str, str] = {}
    for role in ("input", "output"):
        names: list[str] = []
        for entry in objects(tensors, f"{role}s", path, 820, []):
            name = get(entry, "name", str, path, 820)
            var = by_name.get(name)
            if var is None or var.kind != role:
                if foreign:
                    continue
                said = f"names {name!r}, which is no {role} variable of {folder}/def.json"
                raise fault(820, said, path)
            dtype = get(entry, "dtype", str, path, 820)
            shape = numbers(entry, "shape", path, 820)
            if (dtype, shape) != (var.dtype, var.shape):
                said = f"has {name} as {dtype} {shape}, and the variable is {var.dtype} {var.shape}"
                raise fault(820, said, path)
            if (word := get(entry, "declared", str, path, 820, "")) and word not in DTYPES:
                raise fault(820, f"declares {name} as {word!r}, which is no dtype", path)
            declared[name] = word
            names.append(name)
        wanted = [var.name for var in variables if var.kind == role]
        if names != wanted and not foreign:
            said = f"lists the {role}s {', '.join(names) or 'none'}"
            raise fault(820, f"{said}, and the variables are {', '.join(wanted) or 'none'}", path)
    return tuple(
        attrs.evolve(var, declared=declared[var.name]) if declared.get(var.name) else var
        for var in variables
    )


# Queues and blocks


def read_queues(definition: Json, path: str) -> tuple[tuple[DmaQueue, ...], frozenset[str]]:
    """The dynamic queues, one an engine, and the names of all (R15)."""
    entries: Json = get(definition, "dma_queue", dict, path, 815, {})
    found: list[DmaQueue] = []
    total = 0
    for name in entries:
        place = f"{path}, queue {name}"
        entry: Json = get(entries, name, dict, place, 815)
        kind = get(entry, "type", str, place, 815)
        if kind not in QUEUE_TYPES:
            said = f"has the type {kind!r}; there are {', '.join(QUEUE_TYPES)}"
            raise fault(815, said, place)
        count = get(entry, "num_queues", int, place, 815, 1)
        if not 1 <= count <= MAX_QUEUES:
            raise fault(815, f"has num_queues {count}, outside 1..{MAX_QUEUES}", place)
        total += count
        if kind == "dynamic":
            owner = get(entry, "owner", str, place, 815)
            if owner not in BY_KEY:
                said = f"has the owner {owner!r}; the engines are {', '.join(BY_KEY)}"
                raise fault(815, said, place)
            semaphore = get(entry, "semaphore", int, place, 815)
            if not 0 <= semaphore < 256:
                raise fault(815, f"has the semaphore {semaphore}, outside 0..255", place)
            for other in found:
                if other.owner == BY_KEY[owner].stream or other.semaphore == semaphore:
                    said = f"shares its owner or semaphore with the queue {other.name}"
                    raise fault(815, said, place)
            found.append(DmaQueue(name, BY_KEY[owner].stream, semaphore, count))
    if total > ALL_QUEUES:
        raise fault(815, f"there are {total} queues, and at most {ALL_QUEUES} may be", path)
    found.sort(key=lambda queue: STREAMS.index(queue.owner))
    return tuple(found), frozenset(entries)


def check_blocks(obj: Json, path: str, sizes: Mapping[str, Any], queues: frozenset[str]) -> None:
    """DMA blocks, which ncc writes none of: names that exist, patterns inside them (R14, R15)."""
    for block in objects(obj, "dma", path, 814, []):
        queue = block.get("instance_name", block.get("queue"))
        if "instance_name" not in block and queue not in queues:
            raise fault(815, f"a DMA block names the queue {queue!r}, which is not declared", path)
        for desc in objects(block, "desc", path, 814, []):
            for side in ("from", "to"):
                if side in desc:
                    check_side(desc, side, path, sizes)


def check_side(desc: Json, side: str, path: str, sizes: Mapping[str, Any]) -> None:
    name = get(desc, side, str, path, 814)
    if name not in sizes:
        raise fault(814, f"a descriptor's {side!r} names {name!r}, which is no variable", path)
    counts = numbers(desc, f"{side}_sizes", path, 814) if f"{side}_sizes" in desc else (1,)
    steps: list[Any] = get(desc, f"{side}_steps", list, path, 814, [1] * len(counts))
    if len(counts) != len(steps) or len(counts) > DIMENSIONS:
        said = f"a descriptor's {side!r} has {len(counts)} sizes and {len(steps)} steps"
        raise fault(814, f"{said}; both are equal and at most {DIMENSIONS}", path)
    if not all(type(step) is int for step in steps):
        raise fault(814, f"a descriptor's {side!r} has steps that are no numbers", path)
    low = get(desc, f"{side}_off", int, path, 814, 0)
    high = low + counts[0] if counts else low
    for count, step in zip(counts[1:], steps[1:], strict=True):
        low, high = low + min(0, step * (count - 1)), high + max(0, step * (count - 1))
    size = sizes[name]
    if isinstance(size, int) and (low < 0 or high > size):
        said = f"a descriptor's {side!r} touches bytes {low} to {high - 1} of {name}"
        raise fault(814, f"{said}, which has {size}", path)
