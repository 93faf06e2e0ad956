"""BIR as text: one node a line, indented by containment, derived from the nodes' fields.

    module dot arch=gen3
      queue qSP SP
      func sg0000
        set acc float32 (8,9) memory=PSUM
          loc acc PSUM (8,36)
        block Block1
          i1 = TensorCopy DVE s:float32[[9,8],[1,9]] <- acc:float32[[9,8],[1,9]] after i0(F)

A required field prints in place, every other as `field=value` where it differs from its default. An
instruction writes what stands left of `<-` and reads what stands right of it; then its own keys,
then `after` its dependences (F flow, A anti, O output, X ordered), `wait` and `update`. Operands:

    t[k_o,k_i,m_i|k_i:128|m_i:128]    Tile: index, partition axes, free axes
    t(k_o):bfloat16[[128,128],[1,n]]+64   SymAp: block, dtype, pairs, offset
    t_0:bfloat16[[128,128],[1,128]]+64    Ap: the same of one location
    0.5:float32                           immediate        %r0:int32     register
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any

import attrs

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
    SymAp,
    Tile,
)
from ncc.ir.bir_keys import EDGES
from ncc.ir.data import Data
from ncc.ir.text import show_value

# what a field's line does not say, because it is a node of its own or stands elsewhere in the line
APART = {
    *("origin", "locs", "sets", "blocks", "insts", "functions", "queues", "notes"),
    "files",
    *("ins", "outs", "keys", "deps", "waits", "updates"),
}
HEADS: dict[type[Any], str] = {
    Module: "module",
    Queue: "queue",
    File: "file",
    Function: "func",
    LocSet: "set",
    Loc: "loc",
    Block: "block",
}


@cache
def plan(kind: type[Any]) -> tuple[tuple[str, ...], tuple[tuple[str, Any], ...]]:
    """A class's fields as its line has them: names in place, and (name, default) of the others."""
    fields = [f for f in attrs.fields(kind) if f.name not in APART]
    placed = tuple(f.name for f in fields if f.default is attrs.NOTHING)
    named = tuple((f.name, f.default) for f in fields if f.default is not attrs.NOTHING)
    return placed, named


class Shown(dict[Any, str]):
    """Values by their text, each shown once."""

    def __missing__(self, value: Any) -> str:
        self[value] = text = show_value(value)
        return text


class Pairs(dict[Any, str]):
    """The pairs of access patterns by their text."""

    def __missing__(self, ap: tuple[tuple[int, Any], ...]) -> str:
        inside = ",".join(f"[{step},{num}]" for step, num in ap)
        self[ap] = text = f"[{inside}]"
        return text


class Printer:
    """One printing of one module; it remembers the texts of names, patterns and operands."""

    def __init__(self) -> None:
        self.words = Shown()
        self.pairs = Pairs()
        self.operands: dict[int, str] = {}  # by identity: copies of an instruction share operands
        self.lines: list[str] = []

    def line(self, depth: int, words: Iterable[str], node: Any = None) -> None:
        text = "  " * depth + " ".join(words)
        if node is not None and node.origin.file:
            text += f"  # {node.origin}"
        self.lines.append(text)

    def fields(self, node: Any) -> list[str]:
        placed, named = plan(node.__class__)
        words = [show_value(getattr(node, name)) for name in placed]
        for name, default in named:
            value = getattr(node, name)
            if made := getattr(default, "factory", None):  # a default that other fields decide
                default = made(node)
            if value != default:
                shown = value.word() if isinstance(value, Data) else show_value(value)
                words.append(f"{name}={shown}")
        return words

    def node(self, depth: int, node: Any) -> None:
        spot = node if hasattr(node, "origin") else None
        self.line(depth, (HEADS[type(node)], *self.fields(node)), spot)

    def module(self, module: Module) -> str:
        self.node(0, module)
        for name, value in module.notes:
            self.line(1, ("note", f"{name}={show_value(value)}"))
        for queue in module.queues:
            self.node(1, queue)
        for file in module.files:
            self.node(1, file)
        for func in module.functions:
            self.node(1, func)
            for each in func.sets:
                self.node(2, each)
                for loc in each.locs:
                    self.node(3, loc)
            for block in func.blocks:
                self.block(2, block)
        return "\n".join((*self.lines, ""))

    def block(self, depth: int, block: Block) -> None:
        self.node(depth, block)
        pad = "  " * (depth + 1)
        for inst in block.insts:
            self.lines.append(f"{pad}{self.inst(inst)}")
            for inner in inst.blocks:
                self.block(depth + 2, inner)

    def inst(self, inst: Inst) -> str:
        words, known = self.words, self.operands
        text = f"{show_value(inst.name)} = {inst.opcode} {inst.engine}"
        for operand in inst.outs:
            text += known.get(id(operand)) or self.word(operand)
        if inst.ins:
            text += " <-"
            for operand in inst.ins:
                text += known.get(id(operand)) or self.word(operand)
        for name, value in inst.keys:
            text += f" {name}={show_value(value)}"
        if inst.loopnest:
            text += f" loopnest={show_value(inst.loopnest)}"
        if inst.axis:
            text += f" axis={show_value(inst.axis)}"
        if inst.deps:
            text += " after"
            for name, kind in inst.deps:
                text += f" {words[name]}({EDGES[kind]})"
        if inst.waits:
            text += " wait"
            for wait in inst.waits:
                text += f" {words[wait.unit]}>={wait.count}"
                if wait.sem >= 0 or wait.value >= 0:
                    text += f"({wait.sem}>={wait.value})"
        if inst.updates:
            text += " update"
            for update in inst.updates:
                text += f" {words[update.unit]}+{update.value}"
                if update.sem >= 0:
                    text += f"({update.sem})"
        origin = inst.origin
        return f"{text}  # {origin.file}:{origin.line}" if origin.file else text

    def word(self, operand: Operand) -> str:
        """An operand's word with the blank before it, remembered."""
        self.operands[id(operand)] = text = f" {self.operand(operand)}"
        return text

    def operand(self, operand: Operand) -> str:
        if isinstance(operand, Ap):
            text = f"{self.words[operand.loc]}:{operand.dtype}{self.pairs[operand.ap]}"
            return f"{text}+{operand.offset}" if operand.offset else text
        if isinstance(operand, SymAp):
            block = ",".join(map(str, operand.block))
            place = f"{self.words[operand.set]}({block})"
            offset = str(operand.offset)
            text = f"{place}:{operand.dtype}{self.pairs[operand.ap]}"
            return text if offset == "0" else f"{text}+{offset}"
        if isinstance(operand, Tile):
            index = ",".join(map(str, operand.index))
            par = ",".join(f"{name}:{extent}" for name, extent in operand.par)
            free = ",".join(f"{name}:{extent}" for name, extent in operand.free)
            return f"{self.words[operand.set]}[{index}|{par}|{free}]"
        if isinstance(operand, Imm):
            return f"{show_value(operand.value)}:{operand.dtype}"
        return f"%{self.words[operand.name]}:{operand.dtype}"


def show(module: Module) -> str:
    """The module's text, which `parse` reads back to an equal module."""
    return Printer().module(module)


def show_inst(inst: Inst) -> str:
    """One instruction's line, without the blocks of a region."""
    return Printer().inst(inst)


def show_operand(operand: Operand) -> str:
    """One operand's word."""
    return Printer().operand(operand)


def parse(text: str, file: str = "", first_line: int = 1) -> Module:
    """The module that printed as `text`; NCC009 with file and line otherwise."""
    from ncc.ir.bir_reader import Reader

    return Reader(text, file, first_line).module()
