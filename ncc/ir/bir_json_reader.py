"""Reading a BIR document: every key is known, every value has its type, or the error names it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn, cast

from cattrs.errors import ForbiddenExtraKeysError

from ncc.errors import NccError, Place, nearest
from ncc.ir.affine import Affine, Floor, Least, Mod, affine
from ncc.ir.bir import (
    Ap,
    Block,
    File,
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
    Update,
    Wait,
)
from ncc.ir.bir_json import CONVERTER, WORDS
from ncc.ir.bir_opcodes import OPCODES, keyed
from ncc.ir.core import NOWHERE, Origin
from ncc.ir.data import DTYPES, Data, read_data

Json = dict[str, Any]
# keys that documents may carry and that say nothing here
SET_SAYS_NOTHING = ("addr_space", "file", "tensorId2MemLocSize", "virtual", "volatile", "alias")
LOC_SAYS_NOTHING = ("Skind", "tensor_id", "memLocSetId", "user_allocated", "pack_id_hint")
INST_SAYS_NOTHING = (
    *("engine_id", "scheduled_start", "scheduled_end", "optin_passes", "origin"),
    *("isBasicBlock", "isParallel", "unroll", "registers", "unroll_dependencies", "order"),
)


def on_bits(given: Json) -> bool:
    """Whether an instruction works on bits: its constants are whole numbers, as they are."""
    ops = [str(given.get(key, "")) for key in ("op0", "op1")]
    return any(op.startswith("bitwise") or "shift" in op for op in ops)


class DocumentReader:
    """One reading; `where` is the way to the object at hand, for errors."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.where: list[str] = []
        self.origins: dict[tuple[str, int, str], Origin] = {}

    def fail(self, code: str, said: str, hint: str = "") -> NoReturn:
        raise NccError(code, said, Place(self.file, value=".".join(self.where)), hint)

    def take(self, given: Any, what: str, wanted: dict[str, Any], ignored: tuple[str, ...]) -> Json:
        """An object's values: a wanted type must be there, a wanted value is the default."""
        if not isinstance(given, dict):
            self.fail("NCC426", f"{what} is no object")
        made: Json = {}
        for key, value in cast(Json, given).items():
            if key in ignored:
                continue
            if key not in wanted:
                self.fail("NCC401", f"{what} has an unknown key {key}", nearest(key, wanted))
            default = wanted[key]
            kind = default if isinstance(default, type) else type(default)
            if type(value) is not kind:
                self.fail("NCC426", f"{key} of {what} is no {kind.__name__}")
            made[key] = value
        for key, default in wanted.items():
            if key not in made:
                if isinstance(default, type):
                    self.fail("NCC426", f"{what} lacks the key {key}")
                made[key] = default
        return made

    def each(self, items: list[Any], what: str, read: Callable[[Any], Any]) -> tuple[Any, ...]:
        found: list[Any] = []
        for i, item in enumerate(items):
            self.where.append(f"{what}{i}")
            if isinstance(item, dict) and "name" in item:
                self.where[-1] = str(cast(Json, item)["name"])
            found.append(read(item))
            self.where.pop()
        return tuple(found)

    def numbers(self, items: Any, what: str) -> tuple[int, ...]:
        if not isinstance(items, list):
            self.fail("NCC426", f"{what} is no list of integers")
        for x in cast(list[Any], items):
            if type(x) is not int:
                self.fail("NCC426", f"{what} is no list of integers")
        return tuple(cast(list[int], items))

    # ---- containers -----------------------------------------------------------------------------

    def module(self, given: Any) -> Module:
        if isinstance(given, dict) and set(cast(Json, given)) in (
            {"module"},
            {"module", "ncc"},
        ):
            given = cast(Json, given)["module"]
        wanted: Json = {
            "version": int,
            "arch": str,
            "functions": list,
            "queues": [],
            "files": [],
            "attributes": {},
        }
        silent = ("nki_functions", "revision", "archRev", "artifact_path", "artifact_info")
        got = self.take(given, "the module", wanted, (*silent, "call_to_physical_memlocs"))
        if got["version"] != 2:
            self.fail("NCC426", f"the document has version {got['version']}; only 2 is read")
        attributes: Json = got["attributes"]
        functions = self.each(got["functions"], "functions", self.function)
        if not functions:
            self.fail("NCC426", "the module has no function")
        functions = tuple(sorted(functions, key=lambda f: f.name != "main"))  # `main` is first
        queues = self.each(got["queues"], "queues", self.queue)
        notes = tuple((name, self.key(value, 0)) for name, value in attributes.get("notes", []))
        name = attributes.get("program", functions[0].name)
        files = self.each(got["files"], "files", self.held)
        return Module(name, got["arch"], functions, queues, notes, files)

    def held(self, given: Any) -> File:
        got = self.take(given, "a file", {"name": str, "content": str}, ())
        return File(got["name"], got["content"])

    def queue(self, given: Any) -> Queue:
        try:
            return CONVERTER.structure(given, Queue)
        except ForbiddenExtraKeysError as said:
            self.fail("NCC401", f"a queue has an unknown key {min(said.extra_fields)}")
        except (KeyError, TypeError, ValueError, AttributeError) as said:
            self.fail("NCC426", f"cannot read a queue: {said}")

    def function(self, given: Any) -> Function:
        wanted: Json = {"name": str, "attributes": [], "allocations": list, "blocks": list}
        got = self.take(given, "a function", wanted, ())
        sets = self.each(got["allocations"], "allocations", self.location_set)
        blocks = self.each(got["blocks"], "blocks", self.block)
        return Function(got["name"], sets, blocks, tuple(got["attributes"]))

    def location_set(self, given: Any) -> LocSet:
        wanted: Json = {
            "Skind": "memory_location_set",
            "name": str,
            "dtype": str,
            "tensor_shape": list,
            "kind": "Internal",
            "tensor_class": "",
            "partition_dim": 0,
            "memorylocations": [],
            "memory": "",
            "no_spill": False,
            "ring": False,
            "declared": "",
            "data": {},
            "debug": {},
        }
        got = self.take(given, "a location set", wanted, SET_SAYS_NOTHING)
        locs = self.each(got["memorylocations"], "memorylocations", self.location)
        memory = got["memory"] or (locs[0].type if locs else "DRAM")
        shape = self.numbers(got["tensor_shape"], "tensor_shape")
        more: Json = {"tensor_class": got["tensor_class"]} if got["tensor_class"] else {}
        return LocSet(
            got["name"],
            got["dtype"],
            shape,
            got["kind"],
            memory,
            partition_dim=got["partition_dim"],
            ring=got["ring"],
            no_spill=got["no_spill"],
            locs=locs,
            data=self.data(got["data"], shape) if got["data"] else None,
            declared=got["declared"],
            origin=self.origin(got["debug"]),
            **more,
        )

    def data(self, given: Any, shape: tuple[int, ...]) -> Data:
        got = self.take(given, "data", {"dtype": str, "value": str}, ())
        if got["dtype"] not in DTYPES:
            self.fail("NCC426", f"no dtype is called {got['dtype']}")
        try:
            return read_data(got["value"], got["dtype"], shape)
        except ValueError as said:
            self.fail("NCC426", str(said))

    def location(self, given: Any) -> Loc:
        wanted: Json = {
            "name": str,
            "type": str,
            "dims": list,
            "addr": 0,
            "base": 0,
            "bank": 0,
            "allocated": False,
            "pinned": False,
            "runtime_reserved": False,
            "live": [],
        }
        got = self.take(given, "a location", wanted, LOC_SAYS_NOTHING)
        dims, live = self.numbers(got["dims"], "dims"), self.numbers(got["live"], "live")
        if len(dims) != 2 or len(live) not in (0, 2):
            self.fail("NCC426", "dims and live of a location take two numbers")
        fields: Json = {**got, "dims": dims, "live": live or None}
        return Loc(**fields)

    def block(self, given: Any) -> Block:
        got = self.take(given, "a block", {"name": str, "instructions": list}, ())
        return Block(got["name"], self.each(got["instructions"], "instructions", self.instruction))

    # ---- instructions ---------------------------------------------------------------------------

    def instruction(self, given: Any) -> Inst:
        opcode = cast(Json, given).get("opcode") if isinstance(given, dict) else None
        if not isinstance(opcode, str) or opcode not in OPCODES:
            hint = nearest(str(opcode), OPCODES)
            self.fail("NCC400", f"no opcode is called {opcode}", hint)
        own = OPCODES[opcode].keys
        wanted: Json = {
            "opcode": str,
            "name": str,
            "engine": "Unassigned",
            "ins": [],
            "outs": [],
            "dependencies": [],
            "sync_info": {},
            "loopnest": [],
            "LoopAxis": {},
            "blocks": [],
            "debug": {},
        }
        header = {k: v for k, v in cast(Json, given).items() if k in wanted or k not in own}
        got = self.take(header, opcode, wanted, INST_SAYS_NOTHING)
        bits = on_bits(cast(Json, given))
        keys = {
            k: self.key(v, None if bits and k.startswith("const") else own[k])
            for k, v in cast(Json, given).items()
            if k in own
        }
        axis: Json = got["LoopAxis"]
        if axis:
            axis = self.take(axis, "LoopAxis", {"name": str, "lb": int, "ub": int, "stride": 1}, ())
        waits, updates = self.sync(got["sync_info"])
        return Inst(
            got["name"],
            opcode,
            got["engine"],
            self.each(got["ins"], "ins", self.operand),
            self.each(got["outs"], "outs", self.operand),
            keyed(opcode, **keys),
            tuple(self.edge(edge) for edge in got["dependencies"]),
            waits,
            updates,
            tuple(got["loopnest"]),
            (axis["name"], axis["lb"], axis["ub"], axis["stride"]) if axis else None,
            self.each(got["blocks"], "blocks", self.block),
            self.origin(got["debug"]),
        )

    def key(self, value: Any, default: Any) -> Any:
        if isinstance(value, list):
            return tuple(self.key(x, None) for x in cast(list[Any], value))
        if isinstance(value, str) and value in WORDS and not isinstance(default, str):
            return WORDS[value]
        if isinstance(default, float) and type(value) is int:
            return float(value)
        return value

    def edge(self, given: Any) -> tuple[str, str]:
        """[name, kind]; a bare name means Flow."""
        if isinstance(given, str):
            return given, "Flow"
        match given:
            case [str(name), str(kind)]:
                return name, kind
            case _:
                self.fail("NCC426", "a dependence is written [name, kind]")

    def sync(self, given: Json) -> tuple[tuple[Wait, ...], tuple[Update, ...]]:
        if not given:
            return (), ()
        both = self.take(given, "sync_info", {"on_wait": [], "on_update": []}, ())
        common: Json = {"type": "semaphore", "id": -1, "mode": "", "unit": "", "value": int}
        waits = [self.take(x, "a wait", {**common, "count": 0}, ()) for x in both["on_wait"]]
        updates = [self.take(x, "an update", common, ()) for x in both["on_update"]]
        for each in (*waits, *updates):
            if each["type"] != "semaphore" or each["mode"] not in ("sem_ge_imm", "sem_add_imm", ""):
                self.fail("NCC426", "only semaphores, sem_ge_imm and sem_add_imm are read here")
        return (
            tuple(Wait(x["unit"], x["count"], x["id"], x["value"]) for x in waits),
            tuple(Update(x["unit"], x["id"], x["value"]) for x in updates),
        )

    def origin(self, given: Json) -> Origin:
        if not given:
            return NOWHERE
        wanted = {"file": "", "line": 0, "pass": ""}
        got = self.take(given, "debug", wanted, ("origin_op",))
        key = got["file"], got["line"], got["pass"]
        if key not in self.origins:  # many nodes come from one line: they share its origin
            self.origins[key] = Origin(key[0], key[1], 0, (key[2],) if key[2] else ())
        return self.origins[key]

    # ---- operands and expressions ---------------------------------------------------------------

    def operand(self, given: Any) -> Operand:
        kind = cast(Json, given).get("kind") if isinstance(given, dict) else None
        made = {
            "physical_ap": self.ap,
            "symbolic_ap": self.sym_ap,
            "symbolic_pwap": self.sym_ap,
            "tile": self.tile,
            "imm_value": self.imm,
            "register_access": self.reg,
        }
        if not isinstance(kind, str) or kind not in made:
            self.fail(
                "NCC426", f"no operand is read whose kind is {kind}", nearest(str(kind), made)
            )
        return made[kind](given)

    def ap(self, given: Any) -> Ap:
        wanted: Json = {"kind": str, "ap": list, "dtype": str, "memref": str, "offset": 0}
        got = self.take(given, "a physical_ap", wanted, ("access_shape", "memsetref"))
        pairs = tuple(self.numbers(pair, "a pair") for pair in got["ap"])
        if any(len(pair) != 2 for pair in pairs):
            self.fail("NCC426", "a pair is written [step, num]")
        return Ap(got["memref"], got["dtype"], cast(Any, pairs), got["offset"])

    def sym_ap(self, given: Any) -> SymAp:
        wanted = {"kind": str, "ap": list, "dtype": str, "memsetref": str, "addrs": list}
        got = self.take(given, "a symbolic_ap", wanted, ("access_shape",))
        if not got["addrs"]:
            self.fail("NCC426", "addrs takes one expression a block dimension, and the offset")
        *block, offset = (self.expression(x) for x in got["addrs"])
        if any(isinstance(x, Least) for x in block) or not isinstance(offset, Affine):
            self.fail("NCC426", "an offset is a sum of loop axes")
        pairs = tuple(self.pair(pair) for pair in got["ap"])
        return SymAp(got["memsetref"], cast(Any, tuple(block)), got["dtype"], pairs, offset)

    def pair(self, given: Any) -> tuple[Any, Any]:
        match given:
            case [int(step), num]:
                return step, num if type(num) is int else self.extent(num)
            case [str(name), num]:
                return name, num if type(num) is int else self.extent(num)
            case _:
                self.fail("NCC426", "a pair is written [step, num]")

    def extent(self, given: Any) -> Least:
        found = self.expression(given)
        if not isinstance(found, Least):
            self.fail("NCC426", "an extent is a number or a LeastKind")
        return found

    def tile(self, given: Any) -> Tile:
        wanted = {"kind": str, "memsetref": str, "index": list, "par": list, "free": list}
        got = self.take(given, "a tile", wanted, ())
        index = tuple(self.expression(x) for x in got["index"])
        par, free = (tuple(self.pair(x) for x in got[axes]) for axes in ("par", "free"))
        return Tile(got["memsetref"], cast(Any, index), par, free)

    def imm(self, given: Any) -> Imm:
        got = dict(given)
        value = self.key(got.pop("value", None), None)
        rest = self.take(got, "an imm_value", {"kind": str, "dtype": "float32"}, ())
        if type(value) not in (int, float):
            self.fail("NCC426", "an imm_value needs a number as its value")
        return Imm(value, rest["dtype"])

    def reg(self, given: Any) -> Reg:
        wanted = {"kind": str, "regref": str, "dtype": "int32"}
        got = self.take(given, "a register_access", wanted, ())
        return Reg(got["regref"], got["dtype"])

    def expression(self, given: Any) -> Affine | Mod | Floor | Least:
        kind = cast(Json, given).get("kind") if isinstance(given, dict) else None
        match kind:
            case "AffExprKind":
                got = self.take(given, "an expression", {"kind": str, "terms": list, "c": 0}, ())
                terms: dict[str, int] = {}
                for term in got["terms"]:
                    one = self.take(term, "a term", {"idx": dict, "coeff": int}, ())
                    leaf = self.take(one["idx"], "an axis", {"kind": "AffIVKind", "axis": str}, ())
                    terms[leaf["axis"]] = terms.get(leaf["axis"], 0) + one["coeff"]
                return affine(got["c"], terms)
            case "ModuloKind" | "FloorDivKind":
                wanted = {"kind": str, "numer": dict, "denom": int}
                got = self.take(given, "an expression", wanted, ())
                numer = self.expression(got["numer"])
                if not isinstance(numer, Affine) or got["denom"] < 1:
                    self.fail("NCC426", f"{kind} takes a sum and a positive number")
                return (Mod if kind == "ModuloKind" else Floor)(numer, got["denom"])
            case "LeastKind":
                got = self.take(given, "an extent", {"kind": str, "most": int, "of": dict}, ())
                of = self.expression(got["of"])
                if not isinstance(of, Affine):
                    self.fail("NCC426", "LeastKind takes a sum")
                return Least(got["most"], of)
            case _:
                self.fail("NCC426", f"no expression is read whose kind is {kind}")
