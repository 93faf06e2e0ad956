"""Registers of the machine, and numbers that a kernel reads while it runs."""

from __future__ import annotations

import math
from typing import Any

from ncc.ir.kernel import Imm, Reg
from ncc.nki.isa.calls import call
from ncc.nki.isa.operands import (
    DMA,
    Tile,
    is_tensor,
    number,
    record,
    register,
    short,
    tile,
)
from ncc.nki.registers import NkiScalar, VirtualRegister
from ncc.nki.trace import Instruction, current, wrong_shape, wrong_type

ANY = ("psum", *DMA)
TYPES = frozenset({"uint8", "uint16", "uint32", "int8", "int16", "int32", "float32"})
WORDS = {"uint32": "uint32", "float32": "float32"}  # of a register that holds such an element


def _element(value: Any, where: str, role: str, *more: str) -> Tile:
    """One element of a type that a register can hold (NCC357)."""
    found = tile(value, where, role, ANY)
    if found.count != 1:
        said = f"{where} takes one element as {role}, {found.show()} has {found.count}"
        raise wrong_shape("NCC357", said, "slice one element, as t[0:1, 0:1]")
    if found.dtype not in TYPES and found.dtype not in more:
        said = f"{where} takes integers of up to 32 bits or float32 as {role}, {found.show()} is"
        raise wrong_type("NCC357", f"{said} {found.name}", "copy it into an int32 tile")
    return found


def _held(value: Any, where: str, role: str) -> Reg:
    """The register that is written: one of `register_alloc`, not the index of a loop (NCC357)."""
    found = register(value)
    if found is None:
        said = f"{where} takes a register as {role}, was given {short(value)}"
        raise wrong_type("NCC357", said, "make one with nisa.register_alloc()")
    if getattr(value, "frozen", False):
        said = f"{where} cannot write {role}: it is the index of a device loop"
        raise wrong_shape("NCC357", said, "copy it with nisa.register_move into a register first")
    return found


def _source(value: Any, where: str, role: str) -> Reg | Imm:
    held = register(value)
    if held is not None:
        return held
    found = number(value, where, role)
    if not math.isfinite(found):
        said = f"{where} takes a number as {role}, was given {found}"
        raise wrong_type("NCC345", said, "a register counts, or holds a finite float32")
    return Imm(found)


@call
def register_alloc(x: Any = None) -> VirtualRegister:
    """A new register that holds 0, a number, or the one element of a tensor."""
    where = "register_alloc"
    if is_tensor(x):
        source = _element(x, where, "x")
        made = current(where).register(WORDS.get(source.dtype, "int32"))
        record("register_load", {"dst": made, "src": source})
        return VirtualRegister(made)
    start = Imm(0) if x is None else _source(x, where, "x")
    kind = "float32" if isinstance(start, Imm) and isinstance(start.value, float) else "int32"
    if isinstance(start, Reg):
        kind = start.dtype
    made = current(where).register(kind)
    record("register_move", {"dst": made, "src": start})
    return VirtualRegister(made)


@call
def register_move(dst: Any, src: Any, name: str | None = None) -> Instruction:
    """Register dst = a number or another register."""
    where = "register_move"
    args = {"dst": _held(dst, where, "dst"), "src": _source(src, where, "src")}
    return record(where, args, name=name)


@call
def register_load(dst: Any, src: Any, name: str | None = None) -> Instruction:
    """Register dst = the one element of src."""
    where = "register_load"
    args = {"dst": _held(dst, where, "dst"), "src": _element(src, where, "src")}
    return record(where, args, name=name)


@call
def register_store(dst: Any, src: Any, name: str | None = None) -> Instruction:
    """The one element of dst = register src."""
    where = "register_store"
    args = {"dst": _element(dst, where, "dst"), "src": _source(src, where, "src")}
    return record(where, args, name=name)


@call
def scalar_load(src: Any) -> NkiScalar:
    """The one element of src as a number that the machine computes with."""
    where = "scalar_load"
    source = _element(src, where, "src", "int64")
    if source.dtype not in ("int32", "uint32", "int64"):
        said = f"{where} takes int32 or int64, {source.show()} is {source.name}"
        raise wrong_type("NCC357", said, "copy it into an int32 tile")
    made = current(where).register("int32")
    record("register_load", {"dst": made, "src": source})
    return NkiScalar(made)


@call
def scalar_store(dst: Any, value: Any, name: str | None = None) -> Instruction:
    """The one element of dst = a number that the machine computed."""
    where = "scalar_store"
    to = _element(dst, where, "dst", "int64")
    return record("register_store", {"dst": to, "src": _source(value, where, "value")}, name=name)
