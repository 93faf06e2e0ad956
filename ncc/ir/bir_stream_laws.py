"""Facts of the streams, from expand-engines on: how each ends, and what an engine holds.

A table of functions and the weights in the PE array are what earlier instructions of a stream left
behind. No address names them, so that no edge and no memory law would miss them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from ncc.errors import NccError
from ncc.ir.act_tables import SETS, WIRED
from ncc.ir.bir import Inst, Module, Reg
from ncc.ir.bir_loops import line
from ncc.ir.core import Law
from ncc.ir.footprints import (
    Footprints,
    Places,
    Rect,
    column_group,
    group_code,
    key_of,
    meets,
    share_cells,
)
from ncc.numerics_registers import COUNT
from ncc.target import Target


def _insts(module: Module) -> tuple[Inst, ...]:
    return line(module.functions[0])


def _wrong(code: str, inst: Inst, said: str, hint: str = "") -> NccError:
    return NccError(code, said, inst.origin.place(inst.name), hint)


def every_stream_ends(module: Module, target: Target) -> Iterator[NccError]:
    """The last instruction of each stream is its only Exit."""
    last: dict[str, Inst] = {}
    for inst in _insts(module):
        if (before := last.get(inst.engine)) and before.opcode == "Exit":
            yield _wrong("NCC620", inst, f"stands in the stream of {inst.engine} behind its Exit")
        last[inst.engine] = inst
    for engine, inst in last.items():
        if inst.opcode != "Exit":
            yield _wrong("NCC620", inst, f"is the last of {engine}, whose stream has no Exit")


def functions_have_tables(module: Module, target: Target) -> Iterator[NccError]:
    """The table set that is loaded holds the function of each Activation."""
    for block in module.functions[0].blocks:
        yield from _tables(block.insts)


def _tables(insts: tuple[Inst, ...]) -> Iterator[NccError]:
    loaded = -1
    for inst in insts:
        if inst.opcode == "LoadActFuncSet":
            loaded = int(key_of(inst, "act_func_set_id", 0))
        if inst.opcode != "Activation" or (func := key_of(inst, "func", "")) in WIRED:
            continue
        if not 0 <= loaded < len(SETS) or func not in SETS[loaded]:
            holds = f"set {loaded} is" if loaded >= 0 else "no set is"
            yield _wrong("NCC621", inst, f"evaluates {func}, and {holds} loaded")


@attrs.define
class _Held:
    """Weights in the PE array: who loaded them, from where, and how far that place was watched."""

    by: int
    how: tuple[Any, ...]
    tile: Rect
    seen: int


def warm_weights_are_held(module: Module, target: Target) -> Iterator[NccError]:
    """Weights that are not loaded again are those that the last load of their cells left there."""
    insts = _insts(module)
    if not any(key_of(i, "weights_loaded", False) for i in insts if i.opcode == "Matmult"):
        return
    places = Footprints(module).places
    for block in module.functions[0].blocks:
        yield from _warm(block.insts, places)


def _warm(insts: tuple[Inst, ...], places: Places) -> Iterator[NccError]:
    held: dict[tuple[int, int], _Held] = {}
    for n, inst in enumerate(insts):
        if inst.opcode != "Matmult":
            continue
        (_, tile), (dest,) = places.touched(inst)
        cells = group_code(tile.r0, tile.r1 - tile.r0), column_group(inst, dest)
        how = inst.ins[1], key_of(inst, "is_transpose", False), key_of(inst, "perf_mode", "None")
        if not key_of(inst, "weights_loaded", False):
            held = {other: h for other, h in held.items() if not share_cells(other, cells)}
            held[cells] = _Held(n, how, tile, n + 1)
            continue
        own = held.get(cells)
        if own is None or own.how != how:
            has = f"those of {insts[own.by].name}" if own else "no such"
            yield _wrong("NCC622", inst, f"loads no weights, and the array holds {has}")
            continue
        for k in range(own.seen, n):
            if insts[k].outs and any(meets(own.tile, x) for x in places.touched(insts[k])[1]):
                said = f"loads no weights, and {insts[k].name} has written where they came from"
                yield _wrong("NCC622", inst, said)
        own.seen = n


def registers_are_numbered(inst: Any, module: Module, target: Target) -> Iterator[NccError]:
    """A register's name is its number, which a program may use."""
    if type(inst) is not Inst:
        return
    for x in (*inst.outs, *inst.ins):
        if isinstance(x, Reg) and x.name not in NUMBERED:
            yield _wrong("NCC623", inst, f"names the register {x.name}, which has no number")


NUMBERED = frozenset(f"r{n}" for n in range(COUNT))


def _engines_read(module: Module) -> tuple[Any, ...]:
    return tuple([inst.engine for inst in _insts(module)])


def _keys_read(module: Module) -> tuple[Any, ...]:
    kept = ("Activation", "LoadActFuncSet")
    return tuple([inst.keys for inst in _insts(module) if inst.opcode in kept])


FACTS: tuple[Law, ...] = (
    Law("every_stream_ends", every_stream_ends, reads=_engines_read),
    Law("functions_have_tables", functions_have_tables, reads=_keys_read),
    Law("warm_weights_are_held", warm_weights_are_held),
    Law("registers_are_numbered", registers_are_numbered, node=True),
)
