"""The laws of BIR: what must hold of every instruction, location set and function, at every stage.

One law looks at each instruction (its form, its operands, and what its opcode asks of them), one at
each location set, two at whole functions. What holds only from some pass on is a fact: those of
this level's own passes are here, those of memory and of order stand in their own modules.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from ncc.errors import NccError, Place, listed, nearest
from ncc.ir import bir_core_laws, bir_memory_laws, bir_order_laws, bir_stream_laws
from ncc.ir.bir import Ap, Block, Inst, LocSet, Module, SymAp, Tile
from ncc.ir.bir_inst_laws import NOTHING, inst_faults, placement_key
from ncc.ir.bir_opcodes import OPCODES
from ncc.ir.bir_patterns import elements, loc_dims
from ncc.ir.bir_walk import all_insts
from ncc.ir.core import Law
from ncc.ir.data import DTYPES, size_of
from ncc.ir.partitions import too_many
from ncc.target import Target

Faults = Iterator[NccError]
KINDS = (
    *("ExternalInput", "ExternalInputParameter", "Input", "ExternalOutput", "Output"),
    *("ExternalOutputParameter", "Const", "Internal", "Pointer", "InternalInterface"),
)
MEMORIES = ("DRAM", "SB", "PSUM")


def nodes(module: Module) -> Iterator[Inst | LocSet]:
    """What node laws are asked about: location sets, then instructions."""
    for func in module.functions:
        yield from func.sets
        for block in func.blocks:
            if any(inst.blocks for inst in block.insts):
                yield from all_insts((block,))
            else:
                yield from block.insts


def signature(
    module: Module,
) -> tuple[
    tuple[tuple[str, str, tuple[int, ...]], ...], tuple[tuple[str, str, tuple[int, ...]], ...]
]:
    """Inputs and outputs as (name, dtype, shape), in order; an input has its declared dtype."""

    def of_kind(kind: str) -> tuple[tuple[str, str, tuple[int, ...]], ...]:
        sets = [of for of in module.main.sets if of.kind == kind]
        return tuple((of.name, of.declared or of.dtype, of.shape) for of in sets)

    return of_kind("ExternalInput"), of_kind("ExternalOutput")


# ---- permanent laws -----------------------------------------------------------------------------


def every_instruction_is_legal(node: Inst | LocSet, module: Module, target: Target) -> Faults:
    """Its opcode, engine, operands and keys are what the table and the machine allow."""
    return inst_faults(node, module, target) if isinstance(node, Inst) else NOTHING


def every_location_fits_its_set(node: Inst | LocSet, module: Module, target: Target) -> Faults:
    """A set's words are known, and its locations are as many and as large as its shape says."""
    return NOTHING if isinstance(node, Inst) else _set_faults(node, target)


def _set_faults(node: LocSet, target: Target) -> Faults:
    place = node.origin.place(node.name)
    for word, known, what in (
        (node.dtype, DTYPES, "dtype"),
        (node.memory, MEMORIES, "memory"),
        (node.kind, KINDS, "kind"),
    ):
        if word not in known:
            yield NccError("NCC434", f"no {what} is called {word}", place, nearest(word, known))
            return
    chip = node.memory != "DRAM"
    if any(extent < chip for extent in node.shape) or (
        chip and len(node.shape) <= node.partition_dim
    ):
        said = f"the shape {node.shape} has no partition dimension {node.partition_dim}"
        yield NccError("NCC434", said, place)
        return
    if not node.locs:
        return
    blocks = elements([(0, n) for n in node.shape[: node.partition_dim]]) if chip else 1
    pinned = any(loc.pinned for loc in node.locs)
    if len(node.locs) != blocks and not pinned:
        said = f"has {len(node.locs)} locations, and its shape {node.shape} asks for {blocks}"
        yield NccError("NCC434", said, place)
    dims = loc_dims(node)
    for loc in node.locs:
        if loc.type != node.memory or (loc.dims != dims and not pinned):
            said = (
                f"the location {loc.name} is {loc.type} {loc.dims}, and the set's shape asks for "
                f"{node.memory} {dims}"
            )
            yield NccError("NCC434", said, place)
        elif loc.live and not 0 <= loc.live[0] <= loc.live[1]:
            said = f"the location {loc.name} lives from {loc.live[0]} to {loc.live[1]}"
            yield NccError("NCC434", said, place)
        elif chip and loc.dims[0] > target.partitions:
            sizes = (loc.dims[0], *node.shape[node.partition_dim + 1 :])
            said, hint = too_many(sizes, node.partition_dim)
            yield NccError("NCC310", said, place, hint)
        elif loc.allocated and loc.addr % size_of(node.dtype):
            said = f"{loc.name} lies at byte {loc.addr}, no multiple of the {size_of(node.dtype)} "
            yield NccError("NCC429", f"{said}bytes of {node.dtype}", place)
        elif (
            loc.allocated and loc.type == "PSUM" and loc.bank != loc.addr // target.psum_bank_bytes
        ):
            said = f"{loc.name} names bank {loc.bank}, and its address {loc.addr} lies in bank "
            yield NccError("NCC405", f"{said}{loc.addr // target.psum_bank_bytes}", place)


def names_are_found_and_unique(module: Module, target: Target) -> Faults:
    """Whatever has a name has it alone, and edges name known instructions."""
    yield from _twice("queue", [queue.name for queue in module.queues])
    yield from _twice("function", [func.name for func in module.functions])
    for func in module.functions:
        yield from _twice("location set", [of.name for of in func.sets])
        yield from _twice("location", [loc.name for of in func.sets for loc in of.locs])
        insts = list(all_insts(func.blocks))
        yield from _twice("instruction", [inst.name for inst in insts])
        names = {inst.name for inst in insts}
        for inst in insts:
            for name, _ in inst.deps:
                if name not in names or name == inst.name:
                    said = f"depends on {name}, " + ("itself" if name in names else "which is none")
                    place = inst.origin.place(inst.name)
                    yield NccError("NCC404", said, place, nearest(name, names))


def _twice(what: str, names: list[str]) -> Faults:
    if len(set(names)) < len(names):
        seen: set[str] = set()
        for name in names:
            if name in seen:
                yield NccError("NCC402", f"the {what} {name} is there twice", Place(value=name))
            seen.add(name)


def blocks_end_with_a_terminator(module: Module, target: Target) -> Faults:
    """No block is empty; a function's last one ends with Exit or Return, and nothing follows it.

    When an Exit on ALL has become one an engine, each engine has at most one.
    """
    for func in module.functions:
        if not func.blocks:
            yield NccError(
                "NCC422", f"the function {func.name} has no block", Place(value=func.name)
            )
            return
        for block in func.blocks:
            yield from _ends(block, func.name)


def _ends(block: Block, where: str) -> Faults:
    place = Place(value=f"{where}.{block.name}")
    if not block.insts:
        yield NccError("NCC422", f"the block {block.name} is empty", place)
        return
    ended: set[str] = set()
    for inst in block.insts:
        if inst.opcode not in TERMINATORS:
            if ended and (inst.engine in ended or "ALL" in ended):
                said = f"{inst.name} follows the terminator of {inst.engine}"
                yield NccError("NCC422", said, inst.origin.place(inst.name))
            continue
        if inst.engine in ended or "ALL" in ended or (ended and inst.engine == "ALL"):
            said = f"{inst.name} is a second terminator on {inst.engine}"
            yield NccError("NCC422", said, inst.origin.place(inst.name))
        ended.add(inst.engine)
    if not ended:
        said = f"the block {block.name} ends with {block.insts[-1].name}, which is no terminator"
        yield NccError("NCC422", said, place, "end it with `exit = Exit ALL`")


def loop_variables_are_bound(module: Module, target: Target) -> Faults:
    """An index reads only variables of the loops around it, and of its own tile."""
    for func in module.functions:
        for block in func.blocks:
            yield from _free(block.insts, frozenset())


def _free(insts: tuple[Inst, ...], loops: frozenset[str]) -> Faults:
    for inst in insts:
        inside = loops | {inst.axis[0]} if inst.axis else loops
        for block in inst.blocks:
            yield from _free(block.insts, inside)
        for operand in (*inst.outs, *inst.ins):
            if type(operand) is Ap or not isinstance(operand, (SymAp, Tile)):
                continue
            for name in _read(operand):
                if name not in loops:
                    said = f"reads the loop variable {name}, and no loop around it has that"
                    hint = nearest(name, loops) or f"there is {listed(sorted(loops))}"
                    yield NccError("NCC404", said, inst.origin.place(inst.name), hint)


def _read(operand: SymAp | Tile) -> set[str]:
    """The loop variables that an operand's indices and extents read."""
    if isinstance(operand, Tile):
        axes = (*operand.par, *operand.free)
        own = {name for name, _ in axes}
        parts = (*operand.index, *(extent for _, extent in axes))
    else:
        own = set[str]()
        parts = (*operand.block, operand.offset, *(extent for _, extent in operand.ap))
    return {n for part in parts if not isinstance(part, int) for n in part.names()} - own


def _loops(module: Module) -> tuple[Any, ...]:
    """The loops of a module: without any, operands with loop variables are another law's matter."""
    return tuple(i for func in module.functions for b in func.blocks for i in b.insts if i.blocks)


TERMINATORS = frozenset(name for name, row in OPCODES.items() if row.family == "terminator")


# ---- facts of the passes from penguin-to-bir to unroll ------------------------------------------


def _each(code: str, bad: Callable[[Inst], bool], said: str) -> Any:
    """A fact about every instruction."""

    def check(node: Inst | LocSet, module: Module, target: Target) -> Faults:
        if type(node) is not Inst or not bad(node):
            return NOTHING
        text = said.format(opcode=node.opcode, engine=node.engine)
        return iter((NccError(code, text, node.origin.place(node.name)),))

    return check


def _has_flag(inst: Inst) -> bool:
    return bool(inst.keys) and "accumulation_flag" in dict(inst.keys)


def _kernel(inst: Inst) -> bool:
    return OPCODES[inst.opcode].family == "kernel"


def _unbound(inst: Inst) -> bool:
    for operand in (*inst.ins, *inst.outs):
        if type(operand) is not Ap and isinstance(operand, Tile):
            return True
    return False


def _symbolic(inst: Inst) -> bool:
    for operand in (*inst.ins, *inst.outs):
        if type(operand) is not Ap and isinstance(operand, (SymAp, Tile)):
            return True
    return False


def _blocks(module: Module) -> tuple[Any, ...]:
    return tuple(func.blocks for func in module.functions)


LAWS: tuple[Law, ...] = (
    Law(
        "names_are_found_and_unique",
        names_are_found_and_unique,
        reads=lambda module: (module.queues, module.functions),
    ),
    Law("every_location_fits_its_set", every_location_fits_its_set, node=True),
    Law(
        "every_instruction_is_legal",
        every_instruction_is_legal,
        node=True,
        reads=lambda module: (placement_key(module),),
    ),
    Law("blocks_end_with_a_terminator", blocks_end_with_a_terminator, reads=_blocks),
    Law("loop_variables_are_bound", loop_variables_are_bound, reads=_loops),
    *bir_core_laws.LAWS,
)
FACTS: tuple[Law, ...] = (
    Law(
        "no_carrier_is_left",
        _each("NCC391", lambda x: x.opcode == "NKIKLIRKernel", "is still a carrier"),
        node=True,
    ),
    Law(
        "no_kernel_is_left",
        _each("NCC394", _kernel, "{opcode} is still the call of a kernel"),
        node=True,
    ),
    Law(
        "no_matmul_has_a_flag",
        _each("NCC424", _has_flag, "has an accumulation_flag before mm-acc-flags sets them"),
        node=True,
    ),
    Law(
        "operands_are_bound",
        _each("NCC423", _unbound, "{opcode} still has an operand that is a tile"),
        node=True,
    ),
    Law(
        "every_instruction_has_one_engine",
        _each("NCC435", lambda x: "|" in x.engine, "may run on {engine}; one must be chosen"),
        node=True,
    ),
    Law(
        "no_abstract_copy_is_left",
        _each("NCC425", lambda x: x.opcode == "AbstractCopy", "is still an AbstractCopy"),
        node=True,
    ),
    Law(
        "no_select_is_left",
        _each("NCC439", lambda x: x.opcode == "Select", "is still a Select"),
        node=True,
    ),
    Law(
        "no_loop_is_left",
        _each("NCC423", lambda x: bool(x.blocks or x.axis), "{opcode} still holds a block"),
        node=True,
    ),
    Law(
        "patterns_are_physical",
        _each("NCC423", _symbolic, "{opcode} still has an operand with loop variables"),
        node=True,
    ),
    *bir_memory_laws.FACTS,
    *bir_order_laws.FACTS,
    *bir_stream_laws.FACTS,
)
