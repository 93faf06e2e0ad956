"""What makes one instruction legal: form, operands, and the rules of its opcode.

Everything that the checks look up is prepared once for a module's locations (`Known`), and what was
found legal is remembered by the identity of operands and keys: a pass that only changes edges or
waits costs a look-up an instruction.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ncc.errors import NccError, nearest
from ncc.ir.bir import Ap, Imm, Inst, Loc, LocSet, Module, Reg, SymAp, Tile
from ncc.ir.bir_kernel_laws import shapes
from ncc.ir.bir_keys import ALU_OPS, EDGES, FUNCTIONS
from ncc.ir.bir_matmul_laws import fault, product, spans
from ncc.ir.bir_opcodes import ENGINES, OPCODES, Row, key
from ncc.ir.bir_patterns import elements
from ncc.ir.data import DTYPES, size_of
from ncc.ir.recent import FEW, Recent
from ncc.target import Target

LETTER = {"SB": "S", "PSUM": "P", "DRAM": "D"}
MEMORY_WORD = {"S": "SBUF", "P": "PSUM", "D": "DRAM", "I": "an immediate", "R": "a register"}
WORDS = {
    "op": ALU_OPS,
    "op0": ALU_OPS,
    "op1": ALU_OPS,
    "reduce_op": ALU_OPS,
    "cce_op": ALU_OPS,
    "compare_op": ALU_OPS,
    "compare_op0": ALU_OPS,
    "compare_op1": ALU_OPS,
    "acc": ("Idle", "Zero", "Accumulate", "ZeroAccumulate", "AddAccumulate", "LoadAccumulate"),
    "axis": ("X", "XY", "XYZ", "XYZW", "XYZWC", "C"),
    "perf_mode": ("None", "DoubleRow", "DoubleColumn", "DoublePixel", "DoubleRowSwInterleave"),
    "dge_type": ("None", "SWDGE", "HWDGE", "Unassigned"),
}
OWN_WORDS = {
    ("Activation", "func"): FUNCTIONS,
    ("Pool", "func"): ("Max", "Avg"),
    ("Memset", "mode"): ("Const", "Random"),
    ("DMACopy", "mode"): ("Copy", "Transpose", "CCE", "Replicate"),
    ("TensorScalarCache", "mode"): ("Reduce", "Cumulative", "TensorScan"),
}
# elementwise opcodes: how many operands are walked like the result; the others are columns
NOTHING: Iterator[NccError] = iter(())
ALIKE = {
    "AbstractCopy": 1,
    "GenericCopy": 1,
    "TensorCopy": 1,
    "Load": 1,
    "Save": 1,
    "DMACopy": 1,
    "Reciprocal": 1,
}
IMMEDIATES = {d for d in DTYPES if "int" in d} | {"bfloat16", "float16", "float32"}


class Known:
    """What the laws look up of a module's locations, and what they found legal."""

    def __init__(self, module: Module) -> None:
        self.sets: dict[str, LocSet] = {}
        self.rows: dict[str, tuple[str, tuple[int, int], int, int]] = {}
        for func in module.functions:
            for of in func.sets:
                self.sets[of.name] = of
                for loc in of.locs:
                    start = loc.addr if loc.allocated and loc.type == "PSUM" else -1
                    self.rows[loc.name] = LETTER.get(loc.type, ""), loc.dims, start, loc.base
        self.good: set[tuple[Any, ...]] = set()
        self.classes: dict[tuple[Any, ...], int] = {}
        self.class_of: dict[int, int] = {}  # by identity of operands, which `held` keeps alive
        self.held: list[Any] = []

    def learn(self, operand: Any, kind: tuple[Any, ...]) -> None:
        """Operands of one kind are the same to every rule about instructions."""
        self.class_of[id(operand)] = self.classes.setdefault(kind, len(self.classes))
        self.held.append(operand)


def _sized(loc: Loc) -> tuple[Any, ...]:
    return loc.name, loc.type, loc.dims


def _placed(loc: Loc) -> tuple[Any, ...]:
    return loc.name, loc.type, loc.dims, loc.allocated, loc.addr, loc.base


_keys: list[tuple[Any, Any]] = []  # the sets asked about last, and the keys of their placements
_known: list[Any] = [None, None, None]  # module, target and their look-ups, asked about last
_placed_known = Recent[Recent[Known]]()  # by placement and target


def placement_key(module: Module) -> Any:
    """One object as long as nothing changes that the instruction laws read of locations."""
    sets = tuple([func.sets for func in module.functions])
    for n, (known, found) in enumerate(_keys):
        if len(sets) == len(known) and sets[0] is known[0] and sets == known:
            _keys.insert(0, _keys.pop(n))
            return found
    made = tuple(
        (
            of.name,
            of.shape,
            of.memory,
            tuple(map(_placed if of.memory == "PSUM" else _sized, of.locs)),
        )
        for func in module.functions
        for of in func.sets
    )
    same = next((found for _, found in _keys if found == made), made)
    _keys[:] = [(sets, same), *(pair for pair in _keys if pair[1] is not same)][:FEW]
    return same


def known_of(module: Module, target: Target) -> Known:
    """The look-ups for a module, made once for each placement."""
    if module is not _known[0] or target is not _known[1]:
        here = _placed_known.get(placement_key(module), lambda: Recent[Known]())
        _known[:] = [module, target, here.get(target, lambda: Known(module))]
    return _known[2]


def inst_faults(inst: Inst, module: Module, target: Target) -> Iterator[NccError]:
    """What is wrong with one instruction; nothing at once for one like another that was right."""
    known = known_of(module, target)
    for _, kind in inst.deps:
        if kind not in EDGES:
            hint = nearest(kind, EDGES)
            return iter((fault("NCC404", inst, f"has an edge of kind {kind}", hint),))
    if _kind(inst, known) in known.good:
        return NOTHING
    found = None
    row = OPCODES.get(inst.opcode)
    if row is None:
        hint = nearest(inst.opcode, OPCODES)
        found = fault("NCC400", inst, f"no opcode is called {inst.opcode}", hint)
    else:
        found = (
            form(inst, row, target)
            or operands(inst, row, known)
            or shapes(inst, target)
            or walks(inst, target)
            or (product(inst, known.rows, target) if row.family == "matmul" else None)
            or sources(inst, known, target)
        )
    if found is not None:
        return iter((found,))
    known.good.add(_kind(inst, known))
    known.good.discard(())
    return NOTHING


def _kind(inst: Inst, known: Known) -> tuple[Any, ...]:
    """What the rules see of an instruction; empty while an operand is unknown or symbolic."""
    classes = known.class_of
    try:
        ins = [classes[id(x)] for x in inst.ins]
        outs = [classes[id(x)] for x in inst.outs]
    except KeyError:
        return ()
    return (inst.opcode, inst.engine, inst.keys, *ins, -1, *outs)


def form(inst: Inst, row: Row, target: Target) -> NccError | None:
    """The opcode exists here, its engine may run it, and its keys are its own."""
    if row.abstract or target.level < row.level:
        why = "is abstract" if row.abstract else f"does not exist on {target.name}"
        return fault("NCC436", inst, f"{inst.opcode} {why}")
    if inst.engine not in row.engines and row.engines and inst.engine != "Unassigned":
        for engine in inst.engine.split("|"):
            if engine not in ENGINES:
                return fault("NCC406", inst, f"no engine is called {engine}")
            if engine not in row.engines:
                may = ", ".join(row.engines)
                return fault("NCC406", inst, f"{engine} cannot run {inst.opcode}; {may} can")
    for name, value in inst.keys:
        if name not in row.keys:
            hint = nearest(name, row.keys)
            return fault("NCC401", inst, f"{inst.opcode} has no key {name}", hint)
        words = OWN_WORDS.get((inst.opcode, name)) or WORDS.get(name)
        if words and value not in words and isinstance(value, str):
            return fault("NCC427", inst, f"{name} has no value {value}", nearest(value, words))
        if isinstance(row.keys[name], float) and not isinstance(value, int | float):
            return fault("NCC427", inst, f"{name} has no value {value}, it takes a number")
    if inst.opcode == "Activation" and key(inst, "func") == "Unknown":
        return fault("NCC427", inst, "Activation needs func=, one of the activation functions")
    few, many = row.least, len(row.ins)
    if len(inst.ins) < few or (len(inst.ins) > many and not row.more_ins):
        wants = str(few) if few == many else f"{few} to {many}"
        said = f"{inst.opcode} reads {len(inst.ins)} operands and takes {wants}"
        return fault("NCC403", inst, said)
    if len(inst.outs) != len(row.outs) and not row.more_outs:
        said = f"{inst.opcode} writes {len(inst.outs)} operands and takes {len(row.outs)}"
        return fault("NCC403", inst, said)
    return None


def operands(inst: Inst, row: Row, known: Known) -> NccError | None:
    """Each operand resolves, has a good pattern inside its location, in a memory it may be in."""
    pool = "Pool" in inst.engine and inst.engine != "ALL"
    for letters, list_ in ((row.ins, inst.ins), (row.outs, inst.outs)):
        last = len(letters) - 1
        for i, operand in enumerate(list_):
            if isinstance(operand, Ap):
                found = known.rows.get(operand.loc)
                if found is None:
                    hint = nearest(operand.loc, known.rows)
                    said = f"{inst.opcode} names {operand.loc}, which is no location"
                    return fault("NCC404", inst, said, hint)
                letter = found[0]
                if id(operand) not in known.class_of:
                    if bad := pattern(inst, operand, *found):
                        return bad
                    bank = spans(operand, found) if letter == "P" else (0, 0)
                    bank = bank if bank[0] != bank[1] else (0, 0)
                    known.learn(operand, (letter, operand.dtype, operand.ap, bank))
            elif isinstance(operand, (SymAp, Tile)):
                of = known.sets.get(operand.set)
                if of is None:
                    hint = nearest(operand.set, known.sets)
                    said = f"{inst.opcode} names {operand.set}, which is no location set"
                    return fault("NCC404", inst, said, hint)
                letter = LETTER[of.memory]
                if bad := symbolic(inst, operand, of):
                    return bad
            else:
                letter = "I" if isinstance(operand, Imm) else "R"
                if bad := immediate(inst, operand, list_ is inst.outs):
                    return bad
                known.learn(operand, (letter, operand.dtype))
            allowed = letters[min(i, last)] if letters else ""
            if letter not in allowed or (pool and letter == "P"):
                where = " or ".join(MEMORY_WORD[x] for x in allowed if not (pool and x == "P"))
                side = "writes" if list_ is inst.outs else "reads"
                shown = getattr(operand, "loc", getattr(operand, "set", "a value"))
                who = f"{inst.opcode} on {inst.engine}" if pool else inst.opcode
                said = (
                    f"{who} {side} {shown} in {MEMORY_WORD[letter]}; operand {i} must be in {where}"
                )
                return fault("NCC407", inst, said)
    return None


def immediate(inst: Inst, operand: Imm | Reg, out: bool) -> NccError | None:
    if isinstance(operand, Reg):
        return None
    if out:
        return fault("NCC428", inst, f"{inst.opcode} writes to an immediate")
    if operand.dtype not in IMMEDIATES:
        return fault("NCC428", inst, f"an immediate cannot be {operand.dtype}")
    return None


def pattern(
    inst: Inst, ap: Ap, letter: str, dims: tuple[int, int], start: int, base: int
) -> NccError | None:
    """Two to five pairs, inside the location; on chip the first walks consecutive partitions."""
    shown = f"{inst.opcode} walks {ap.loc} by {list(map(list, ap.ap))}"
    if ap.dtype not in DTYPES:
        return fault("NCC408", inst, f"no dtype is called {ap.dtype}", nearest(ap.dtype, DTYPES))
    if not 2 <= len(ap.ap) <= 5:
        return fault("NCC408", inst, f"{shown}, {len(ap.ap)} pairs; a pattern has 2 to 5")
    low = high = 0
    pairs = ap.ap if letter == "D" else ap.ap[1:]
    for step, num in pairs:
        if num < 1:
            return fault("NCC408", inst, f"{shown}; a pair counts at least 1")
        if step < 0:
            low += step * (num - 1)
        else:
            high += step * (num - 1)
    rows, width = dims
    size = size_of(ap.dtype)
    row, left = divmod(width, size)
    if left:
        said = f"{shown} as {ap.dtype}, whose {size} bytes do not divide its {width}"
        return fault("NCC429", inst, said)
    if letter == "D":
        if ap.offset + low < 0 or ap.offset + high >= row:
            said = f"{shown} from element {ap.offset} and leaves its {row} elements"
            return fault("NCC409", inst, said)
        return None
    partition, inside = divmod(ap.offset, row) if row else (0, ap.offset)
    step, num = ap.ap[0]
    if num < 1 or (num > 1 and step != row):
        said = f"{shown}; the first pair must walk partitions, which hold {row} elements each"
        return fault("NCC408", inst, said)
    if partition < 0 or partition + num > rows:
        said = f"{shown} from partition {partition} and leaves its {rows} partitions"
        return fault("NCC409", inst, said)
    if inside + low < 0 or inside + high >= row:
        said = f"{shown} from element {inside} of a partition and leaves its {row} elements"
        return fault("NCC409", inst, said)
    return None


def symbolic(inst: Inst, operand: SymAp | Tile, of: LocSet) -> NccError | None:
    if isinstance(operand, Tile):
        if len(operand.index) != len(of.shape):
            count, dims = len(operand.index), len(of.shape)
            said = f"indexes {of.name} by {count} numbers; it has {dims} dimensions"
            return fault("NCC408", inst, said)
        return None
    if not of.locs:
        return fault("NCC404", inst, f"walks {of.name}, which has no location yet")
    if operand.dtype not in DTYPES:
        return fault("NCC408", inst, f"no dtype is called {operand.dtype}")
    if len(operand.ap) < 2:
        return fault(
            "NCC408", inst, f"walks {of.name} by {len(operand.ap)} pairs; there are 2 to 5"
        )
    return None


def walks(inst: Inst, target: Target) -> NccError | None:
    """What is read element by element has as many elements as what is written."""
    alike = ALIKE.get(inst.opcode)
    if not alike or not inst.outs or (inst.opcode == "DMACopy" and key(inst, "mode") == "CCE"):
        return None
    out = inst.outs[0]
    if not isinstance(out, Ap):
        return None
    count = elements(out.ap)
    for operand in inst.ins[:alike]:
        if isinstance(operand, Ap) and elements(operand.ap) != count:
            said = f"{inst.opcode} reads {elements(operand.ap)} elements and writes {count}"
            return fault("NCC420", inst, said)
    for operand in inst.ins[alike:]:
        if isinstance(operand, Ap) and elements(operand.ap) != out.ap[0][1]:
            said = (
                f"{inst.opcode} has a column of {elements(operand.ap)} elements beside "
                f"{out.ap[0][1]} partitions"
            )
            return fault("NCC420", inst, said)
    return None


def sources(inst: Inst, known: Known, target: Target) -> NccError | None:
    """At most one tensor comes from PSUM; loads and saves convert nothing, only a DMACopy does; an
    immediate bias is rare."""
    if len(inst.ins) > 1:
        psum = [x for x in inst.ins if isinstance(x, Ap) and known.rows[x.loc][0] == "P"]
        wide = [x for x in psum if elements(x.ap[1:]) > 1]
        if len(wide) > 1:
            said = f"{inst.opcode} reads {wide[0].loc} and {wide[1].loc}, both in PSUM; one may be"
            return fault("NCC419", inst, said, "copy one to SBUF first")
        if inst.opcode == "Activation" and isinstance(inst.ins[1], Imm):
            func = key(inst, "func")
            if target.level < 30 and func not in ("Copy", "Reciprocal") and inst.ins[1].value:
                said = f"{target.name} takes an immediate bias with Copy and Reciprocal, not {func}"
                return fault("NCC428", inst, said, "give the bias as a column")
    if inst.opcode in ("Load", "Save") and inst.ins and inst.outs:
        source, result = inst.ins[0], inst.outs[0]
        if isinstance(source, Ap) and isinstance(result, Ap) and source.dtype != result.dtype:
            said = f"{inst.opcode} copies {source.dtype} to {result.dtype}; a DMA converts nothing"
            return fault("NCC413", inst, said)
    return None
