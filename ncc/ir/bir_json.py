"""BIR as JSON, with the keys of the real compiler's documents (version 2).

`to_json` writes one canonical text: sorted keys, two blanks of indentation, a newline at the end.
A field that has its default is left out, except in the matmul family, which spells all thirteen of
its keys. What only this compiler has (a tile, an extent that shrinks, counters before they have
numbers) has keys of its own. An unknown key is an error that names it, never dropped in silence.
Numbers are written as Python writes them, so that reading gives the very same value.
"""

from __future__ import annotations

import json
from math import inf, isfinite, isnan, nan
from typing import Any, cast

import cattrs
from cattrs.gen import make_dict_structure_fn

from ncc.errors import NccError, Place
from ncc.ir.affine import Affine, Extent, Floor, Index, Least
from ncc.ir.bir import (
    Ap,
    Block,
    Function,
    Imm,
    Inst,
    Loc,
    LocSet,
    Module,
    Operand,
    Queue,
    Reg,
    SymAp,
    Tile,
)
from ncc.ir.bir_keys import MATMUL
from ncc.ir.bir_opcodes import OPCODES
from ncc.ir.core import Cores

CONVERTER = cattrs.Converter(forbid_extra_keys=True, detailed_validation=False)
SPELLED = [k for k in MATMUL if k not in ("weights_loaded", "accumulate", "accumulate_over")]
WORDS = {"inf": inf, "-inf": -inf, "nan": nan}


def to_json(program: Module | Cores, header: str = "") -> str:
    """The program's canonical document; with the header of its stage, both in one object. That of
    several cores is a list of their documents, as `cores`."""
    held: dict[str, Any]
    if isinstance(program, Cores):
        held = {"cores": [document(x, core) for core, x in enumerate(program.modules)]}
        held |= {"ncc": header} if header else {}
    else:
        made = document(program)
        held = {"ncc": header, "module": made} if header else made
    return json.dumps(held, indent=2, sort_keys=True, allow_nan=False) + "\n"


def header_of(text: str) -> str:
    """The header that `to_json` put beside the module; empty when there is none."""
    given: Any = json.loads(text)
    return str(cast(dict[str, Any], given).get("ncc", "")) if isinstance(given, dict) else ""


def from_json(text: str, file: str = "") -> Module:
    """The module of a document, bare or as `{"module": ...}`, maybe with `"ncc"`."""
    from ncc.ir.bir_json_reader import DocumentReader

    return DocumentReader(file).module(_parsed(text, file))


def program_from_json(text: str, file: str = "") -> Module | Cores:
    """The program of a document, which may be `{"cores": [...]}`, maybe with `"ncc"`."""
    from ncc.ir.bir_json_reader import DocumentReader

    given = _parsed(text, file)
    if not isinstance(given, dict) or "cores" not in given:
        return DocumentReader(file).module(given)
    held = cast("dict[str, Any]", given)
    if set(held) - {"cores", "ncc"} or not isinstance(held["cores"], list) or not held["cores"]:
        raise NccError("NCC426", "`cores` is a list of documents, alone but for `ncc`", Place(file))
    documents = cast("list[Any]", held["cores"])
    return Cores(tuple(DocumentReader(file).module(one) for one in documents))


def _parsed(text: str, file: str) -> Any:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            keys = [key for key, _ in items]
            twice = next(key for n, key in enumerate(keys) if key in keys[:n])
            raise NccError("NCC402", f"the key {twice} stands twice in one object", Place(file))
        return found

    try:
        return json.loads(text, object_pairs_hook=pairs)
    except json.JSONDecodeError as said:
        place = Place(file, said.lineno, said.colno)
        raise NccError("NCC426", f"cannot read the document: {said.msg}", place) from None
    except RecursionError:
        raise NccError("NCC426", "the document is nested too deeply", Place(file)) from None


# ---- writing ------------------------------------------------------------------------------------


def document(module: Module, core: int = 0) -> dict[str, Any]:
    """The module as plain dictionaries, lists and numbers."""
    attributes: dict[str, Any] = {"neuron_core_id": core, "program": module.name}
    if module.notes:
        attributes["notes"] = [[name, plain(value)] for name, value in module.notes]
    made: dict[str, Any] = {
        "arch": module.arch,
        "attributes": attributes,
        "functions": [function(func) for func in module.functions],
        "version": 2,
    }
    if module.queues:
        made["queues"] = [CONVERTER.unstructure(queue) for queue in module.queues]
    if module.files:
        made["files"] = [{"content": x.content, "name": x.name} for x in module.files]
    return made


def function(func: Function) -> dict[str, Any]:
    owners = {loc.name: of for of in func.sets for loc in of.locs}
    return {
        "allocations": [location_set(of, number) for number, of in enumerate(func.sets)],
        "attributes": list(func.attributes),
        "blocks": [block(b, owners) for b in func.blocks],
        "name": func.name,
    }


def location_set(of: LocSet, number: int) -> dict[str, Any]:
    made: dict[str, Any] = {
        "Skind": "memory_location_set",
        "addr_space": "Local",
        "dtype": of.dtype,
        "kind": of.kind,
        "memorylocations": [location(loc, number) for loc in of.locs],
        "name": of.name,
        "partition_dim": of.partition_dim,
        "tensor_class": of.tensor_class,
        "tensor_shape": list(of.shape),
    }
    if not of.locs:
        made["memory"] = of.memory
    for flag in ("no_spill", "ring"):
        if getattr(of, flag):
            made[flag] = True
    if of.declared:
        made["declared"] = of.declared
    if of.data is not None:
        made["data"] = {"dtype": of.data.dtype, "value": of.data.word()}
    return _debug(made, of)


def location(loc: Loc, number: int) -> dict[str, Any]:
    made: dict[str, Any] = {
        "Skind": "memory_location",
        "addr": loc.addr,
        "allocated": loc.allocated,
        "bank": loc.bank,
        "base": loc.base,
        "dims": list(loc.dims),
        "name": loc.name,
        "pinned": loc.pinned,
        "tensor_id": number,
        "type": loc.type,
    }
    if loc.runtime_reserved:
        made["runtime_reserved"] = True
    if loc.live:
        made["live"] = list(loc.live)
    return made


def block(of: Block, owners: dict[str, LocSet]) -> dict[str, Any]:
    return {"instructions": [instruction(x, owners) for x in of.insts], "name": of.name}


def instruction(inst: Inst, owners: dict[str, LocSet]) -> dict[str, Any]:
    made: dict[str, Any] = {
        "engine": inst.engine,
        "engine_id": 0,
        "ins": [operand(x, owners) for x in inst.ins],
        "name": inst.name,
        "opcode": inst.opcode,
        "optin_passes": [],
        "origin": "Penguin",
        "outs": [operand(x, owners) for x in inst.outs],
        "scheduled_end": 0,
        "scheduled_start": 0,
    }
    if OPCODES[inst.opcode].family == "matmul":
        made |= {k: plain(MATMUL[k]) for k in SPELLED}
    made |= {k: plain(value) for k, value in inst.keys}
    if inst.deps:
        made["dependencies"] = [list(edge) for edge in inst.deps]
    if inst.waits or inst.updates:
        made["sync_info"] = {
            "on_wait": [
                {
                    "type": "semaphore",
                    "mode": "sem_ge_imm",
                    "id": wait.sem,
                    "value": wait.value,
                    "unit": wait.unit,
                    "count": wait.count,
                }
                for wait in inst.waits
            ],
            "on_update": [
                {
                    "type": "semaphore",
                    "mode": "sem_add_imm",
                    "id": update.sem,
                    "value": update.value,
                    "unit": update.unit,
                }
                for update in inst.updates
            ],
        }
    if inst.loopnest:
        made["loopnest"] = list(inst.loopnest)
    if inst.axis:
        made["LoopAxis"] = dict(zip(("name", "lb", "ub", "stride"), inst.axis, strict=True))
    if inst.blocks:
        made["blocks"] = [block(b, owners) for b in inst.blocks]
    return _debug(made, inst)


def _debug(made: dict[str, Any], node: Inst | LocSet) -> dict[str, Any]:
    if node.origin.file:
        last = node.origin.passes[-1] if node.origin.passes else ""
        made["debug"] = {"file": node.origin.file, "line": node.origin.line, "pass": last}
    return made


def operand(x: Operand, owners: dict[str, LocSet]) -> dict[str, Any]:
    match x:
        case Ap():
            return {
                "kind": "physical_ap",
                "access_shape": [num for _, num in x.ap],
                "ap": [list(pair) for pair in x.ap],
                "dtype": x.dtype,
                "memref": x.loc,
                "memsetref": owners[x.loc].name if x.loc in owners else "",
                "offset": x.offset,
            }
        case SymAp():
            return {
                "kind": "symbolic_ap",
                "access_shape": [extent(num) for _, num in x.ap],
                "addrs": [expression(i) for i in (*x.block, x.offset)],
                "ap": [[step, extent(num)] for step, num in x.ap],
                "dtype": x.dtype,
                "memsetref": x.set,
            }
        case Tile():
            return {
                "kind": "tile",
                "free": [[name, extent(e)] for name, e in x.free],
                "index": [expression(i) for i in x.index],
                "memsetref": x.set,
                "par": [[name, extent(e)] for name, e in x.par],
            }
        case Imm():
            return {"kind": "imm_value", "dtype": x.dtype, "value": plain(x.value)}
        case Reg():
            return {"kind": "register_access", "dtype": x.dtype, "regref": x.name}


def expression(of: Index) -> dict[str, Any]:
    """Index arithmetic as an affine expression of version 2."""
    if isinstance(of, Affine):
        terms = [
            {"coeff": coefficient, "idx": {"axis": name, "kind": "AffIVKind"}}
            for name, coefficient in of.terms
        ]
        return {"c": of.const, "kind": "AffExprKind", "terms": terms}
    kind = "FloorDivKind" if isinstance(of, Floor) else "ModuloKind"
    return {"denom": of.by, "kind": kind, "numer": expression(of.of)}


def extent(of: Extent) -> Any:
    if isinstance(of, Least):
        return {"kind": "LeastKind", "most": of.most, "of": expression(of.of)}
    return of


def plain(value: Any) -> Any:
    """A key's value as JSON has it: lists for tuples, words for what is no finite number."""
    if isinstance(value, tuple):
        return [plain(x) for x in cast(tuple[Any, ...], value)]
    if isinstance(value, float) and not isfinite(value):
        return "nan" if isnan(value) else "inf" if value > 0 else "-inf"
    return value


def _strict(value: Any, kind: type[Any]) -> Any:
    if type(value) is not kind:
        raise TypeError(f"{value!r} is no {kind.__name__}")
    return value


for _kind in (int, str, bool):
    CONVERTER.register_structure_hook(_kind, _strict)
CONVERTER.register_structure_hook(Queue, make_dict_structure_fn(Queue, CONVERTER))
