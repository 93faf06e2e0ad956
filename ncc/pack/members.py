"""An ISA program as the members of a NEFF: streams, definition, constants, graph, record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import prod
from typing import Any

from ncc.encode.bundle import encode_stream
from ncc.encode.codes import TABLE_SETS
from ncc.ir.core import Cores, modules_of
from ncc.ir.data import size_of
from ncc.ir.isa import Program, Var
from ncc.ir.neff import Member, Neff
from ncc.pack.names import (
    BY_STREAM,
    DGE,
    DGE_CAST,
    ENGINES,
    GRAPH,
    INFO,
    KELF,
    SEVERAL_CORES,
    STATE_BUFFER_SIZE,
    subgraph,
)
from ncc.pack.record import digest_of, record


def json_bytes(value: Any) -> bytes:
    """Sorted keys, one blank of indentation, one newline at the end."""
    return (json.dumps(value, sort_keys=True, indent=1, ensure_ascii=False) + "\n").encode()


def build(program: Program | Cores) -> Neff:
    """The members of a program, a subgraph for each core (inverse of `ncc.pack.unpack_all`)."""
    programs: tuple[Program, ...] = modules_of(program)
    first, folders = programs[0], [subgraph(core) for core in range(len(programs))]
    members: dict[str, bytes] = {
        KELF: json_bytes(
            {
                "graphs": [{"definition": f"{x}/def.json", "name": x} for x in folders],
                "target": first.neff_target,
                "version": "0.5",
            }
        ),
        GRAPH: json_bytes(host_graph(first, len(programs))),
    }
    for folder, one in zip(folders, programs, strict=True):
        members |= of_core(one, folder)
    members[INFO] = json_bytes(info(programs, digest_of(members)))
    return Neff(tuple(Member(path, members[path]) for path in sorted(members)))


def of_core(program: Program, folder: str) -> dict[str, bytes]:
    """The members of one core's program."""
    members = {
        f"{folder}/def.json": json_bytes(definition(program)),
        f"{folder}/tensor_map.json": json_bytes(tensor_map(program)),
    }
    for stream in program.streams:
        engine = BY_STREAM[stream.engine]
        members[f"{folder}/{engine.binary}"] = encode_stream(stream.bundles, program.gen)
        members[f"{folder}/{engine.json}"] = json_bytes(engine_json(program, stream.engine))
    for var in program.vars:
        if var.data is not None:
            members[f"{folder}/{file_name(var)}"] = npy_bytes(var.data.raw)
    return members


def file_name(var: Var) -> str:
    """The member of a constant: by its number, because names may hold anything."""
    return f"const{var.id}.npy"


def npy_bytes(raw: bytes) -> bytes:
    """A NumPy file, format 1, of the bytes as uint8 (bfloat16 has no type of its own there)."""
    head = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(raw)},), }}"
    head += " " * (-(len(head) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(head).to_bytes(2, "little") + head.encode() + raw


def bytes_of(var: Var) -> int:
    return prod(var.shape) * size_of(var.dtype)


def definition(program: Program) -> dict[str, Any]:
    """`def.json`: which files are the streams, the DRAM variables, the queues."""
    found: dict[str, Any] = {"name": "definition", "version": "0.6"}
    for engine in ENGINES:
        found[engine.key] = engine.json
        found[f"{engine.key}_instr"] = engine.binary
    names = {var.name for var in program.vars}
    buffer = next(n for n in ("sb", *(f"sb.{i}" for i in range(len(names)))) if n not in names)
    found["var"] = {buffer: {"size": STATE_BUFFER_SIZE, "type": "state-buffer", "var_id": 0}}
    for var in program.vars:
        entry: dict[str, Any] = {
            "dtype": var.dtype,
            "shape": list(var.shape),
            "size": bytes_of(var),
            "type": var.kind,
            "var_id": var.id,
        }
        if var.kind == "file":
            entry["file_name"] = file_name(var)
        if var.kind == "virtual":
            entry["backing_variable_off"] = var.offset
        found["var"][var.name] = entry
    used = {s.engine for s in program.streams if any(b.op == "DmaDirect2d" for b in s.bundles)}
    found["dma_queue"] = {
        queue.name: {
            "num_queues": queue.num_queues,
            "owner": BY_STREAM[queue.owner].key,
            "semaphore": queue.semaphore,
            "type": "dynamic",
        }
        for queue in program.queues
        if queue.owner in used
    }
    return found


def tensor_map(program: Program) -> dict[str, Any]:
    """Which variable is which argument, in order; `declared` where a wider type stands in."""
    found: dict[str, Any] = {"alias_map": [], "inputs": [], "outputs": []}
    for var in program.vars:
        if var.kind in ("input", "output"):
            entry: dict[str, Any] = {"dtype": var.dtype, "name": var.name, "shape": list(var.shape)}
            if var.declared:
                entry["declared"] = var.declared
            found[f"{var.kind}s"].append(entry)
    return found


def engine_json(program: Program, name: str) -> dict[str, Any]:
    """No DMA blocks: every DMA is in the streams. Activation names the table sets it loads."""
    found: dict[str, Any] = {"dma": []}
    if name == "Activation":
        bundles = next(s.bundles for s in program.streams if s.engine == name)
        loads = {
            dict(b.fields).get("table_set", 0) for b in bundles if b.op == "ActivationTableLoad"
        }
        found["activation_function_sets"] = [TABLE_SETS[i][0] for i in sorted(loads)]
    return found


def host_graph(program: Program, cores: int = 1) -> dict[str, Any]:
    """`neff.json`: one node an input, and one for each core's kernel; the first gives the outputs,
    which the others know under the same names."""
    inputs = [var.name for var in program.vars if var.kind == "input"]
    outputs = [var.name for var in program.vars if var.kind == "output"]
    nodes: list[dict[str, Any]] = [
        {"attrs": {"is_param": "0"}, "inputs": [], "name": name, "op": "null"} for name in inputs
    ]
    nodes += [
        {
            "attrs": {
                "flatten_data": "0",
                "func_name": "0",
                "kelf": KELF,
                "num_inputs": str(len(inputs)),
                "num_outputs": str(len(outputs)),
                "tvm_op": f"sg_coreV1{core}",
            },
            "inputs": [[k, 0, 0] for k in range(len(inputs))],
            "name": f"sg_coreV1{core}",
            "op": "__kelf",
            "output_names": outputs,
        }
        for core in range(cores)
    ]
    return {
        "arg_nodes": list(range(len(inputs))),
        "heads": [[len(inputs), k, 0] for k in range(len(outputs))],
        "nodes": nodes,
        "target_arch": program.neff_target,
        "version": "0.5",
    }


def features(programs: Sequence[Program]) -> int:
    """The bits that it needs: several cores, DGE for DMAs, and DGE cast when one converts."""
    bits = SEVERAL_CORES if len(programs) > 1 else 0
    for stream in (stream for program in programs for stream in program.streams):
        for bundle in stream.bundles:
            if bundle.op == "DmaDirect2d":
                f = dict(bundle.fields)
                bits |= DGE | (DGE_CAST if f.get("src_dtype") != f.get("dst_dtype") else 0)
    return bits


def info(programs: Sequence[Program], digest: str) -> dict[str, Any]:
    """`info.json`; an engine is there when some core uses it."""
    first, engines = programs[0], dict[str, bool]()
    for stream in (stream for program in programs for stream in program.streams):
        key = BY_STREAM[stream.engine].key
        engines[key] = engines.get(key, False) or bool(stream.bundles)
    return {
        "arch": first.neff_target,
        "digest": digest,
        "engines": engines,
        "header": record(first.name, digest, features(programs), len(programs)),
        "name": first.name,
        "version": [1, 0],
    }
