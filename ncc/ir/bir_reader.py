"""Reading BIR text back: the other half of `ncc.ir.bir_text`, from the same fields."""

from __future__ import annotations

import re
from typing import Any, cast

import attrs

from ncc.errors import nearest
from ncc.ir.affine import Affine, Index, Least, read_index
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
from ncc.ir.bir_keys import EDGES
from ncc.ir.bir_opcodes import ENGINES, OPCODES
from ncc.ir.bir_text import HEADS, plan
from ncc.ir.core import NOWHERE, Origin
from ncc.ir.data import DTYPES, read_data
from ncc.ir.text import COMMENT, read_value, split_words, unreadable

NAME = r'("(?:[^"\\]|\\.)*"|[A-Za-z_][\w./:@~-]*)'
AP = re.compile(rf"{NAME}:(\w+)\[\[(-?\d[-\d,\[\]]*)\]\](?:\+(-?\d+))?\Z")
SYM = re.compile(rf"{NAME}\((\S*?)\):(\w+)\[\[(.+)\]\](?:\+(\S+))?\Z")
TILE = re.compile(rf"{NAME}\[([^|]*)\|([^|]*)\|([^|]*)\]\Z")
IMM = re.compile(r"(-?\d[-+.\deE]*|-?inf|nan):(\w+)\Z")
REG = re.compile(rf"%{NAME}:(\w+)\Z")
EDGE = re.compile(rf"{NAME}\(([FAOX])\)\Z")
WAIT = re.compile(rf"{NAME}>=(\d+)(?:\((-?\d+)>=(-?\d+)\))?\Z")
UPDATE = re.compile(rf"{NAME}\+(-?\d+)(?:\((\d+)\))?\Z")
COMMA = re.compile(r",(?![^(]*\))")  # not one inside parentheses
KINDS = {letter: kind for kind, letter in EDGES.items()}


def name_of(word: str) -> str:
    if not word.startswith('"'):
        return word
    value = read_value(word)
    if not isinstance(value, str):
        raise ValueError(f"{word} is no name")
    return value


def affine_of(text: str) -> Affine:
    value = read_index(text)
    if not isinstance(value, Affine):
        raise ValueError(f"{text} is not a sum of loop variables")
    return value


def extent_of(text: str) -> Any:
    """A number, or the smaller of a number and a sum."""
    value = read_index(text)
    if isinstance(value, Affine):
        if value.terms:
            raise ValueError(f"{text} is no extent; write a number or min(number,sum)")
        return value.const
    return value


def dtype_of(word: str) -> str:
    if word not in DTYPES:
        raise ValueError(f"no dtype is called {word}; {nearest(word, DTYPES)}".rstrip("; "))
    return word


def read_operand(word: str) -> Operand:
    """The operand that printed as `word`; ValueError with a sentence otherwise."""
    if found := AP.match(word):
        pairs = tuple(_pair(x) for x in found[3].split("],["))
        return Ap(name_of(found[1]), dtype_of(found[2]), pairs, int(found[4] or 0))
    if found := TILE.match(word):
        index = tuple(_index(x) for x in COMMA.split(found[2])) if found[2] else ()
        return Tile(name_of(found[1]), index, _axes(found[3]), _axes(found[4]))
    if found := SYM.match(word):
        pairs = tuple(_symbolic(x) for x in found[4].split("],["))
        offset = affine_of(found[5]) if found[5] else Affine()
        block = tuple(_index(x) for x in COMMA.split(found[2])) if found[2] else ()
        return SymAp(name_of(found[1]), block, dtype_of(found[3]), pairs, offset)
    if found := REG.match(word):
        return Reg(name_of(found[1]), dtype_of(found[2]))
    if found := IMM.match(word):
        return Imm(read_value(found[1]), dtype_of(found[2]))
    raise ValueError(
        f"cannot read {word!r} as an operand, such as t_0:bfloat16[[128,128],[1,128]]+64"
    )


def _pair(text: str) -> tuple[int, int]:
    step, _, num = text.partition(",")
    return int(step), int(num)


def _symbolic(text: str) -> tuple[int, Any]:
    step, _, num = text.partition(",")
    return int(step), extent_of(num)


def _index(text: str) -> Index:
    value = read_index(text)
    if isinstance(value, Least):
        raise ValueError(f"{text} is no index")
    return value


def _axes(text: str) -> tuple[tuple[str, Any], ...]:
    if not text:
        return ()
    axes: list[tuple[str, Any]] = []
    for word in COMMA.split(text):
        name, colon, extent = word.partition(":")
        if not colon:
            raise ValueError(f"cannot read {word!r} as an axis, such as m_i:128")
        axes.append((name, extent_of(extent)))
    return tuple(axes)


class Reader:
    """One reading of one text, line by line; a node takes the deeper lines behind it."""

    def __init__(self, text: str, file: str, first: int) -> None:
        self.file, self.first = file, first
        self.lines = text.split("\n")
        self.at = 0
        self.operands: dict[str, Operand] = {}

    def fail(self, said: str, hint: str = "") -> Any:
        raise unreadable(said, self.file, self.first + self.at, hint)

    def depth(self) -> int:
        """Of the line at hand; -1 at the end. Blank and comment lines are passed over."""
        while self.at < len(self.lines):
            line = self.lines[self.at]
            bare = line.lstrip(" ")
            if bare and not bare.startswith("#"):
                pad = len(line) - len(bare)
                if pad % 2:
                    self.fail("the line is indented by an odd number of blanks")
                return pad // 2
            self.at += 1
        return -1

    def split(self) -> tuple[str, Origin]:
        """The line at hand without its origin."""
        line = self.lines[self.at]
        if "  # " in line and (found := COMMENT.search(line)):
            return line[: found.start()], Origin(found[1], int(found[2]))
        return line, NOWHERE

    def next_is(self, depth: int, *heads: str) -> bool:
        if self.depth() != depth:
            return False
        return self.lines[self.at].lstrip().split(" ", 1)[0] in heads

    def node(self, kind: type[Any], **children: Any) -> Any:
        """A node of the line at hand, without what stands on other lines."""
        line, origin = self.split()
        _, *words = split_words(line)
        placed, named = plan(kind)
        values = dict(children)
        if len(words) < len(placed) or any("=" in x and x[0] != '"' for x in words[: len(placed)]):
            self.fail(
                f"cannot read {line.strip()[:80]!r}, expected "
                f"`{HEADS[kind]} {' '.join(placed)}` and field=value"
            )
        known = {name for name, _ in named}
        for name, word in zip(placed, words, strict=False):
            values[name] = self.value(word)
        for word in words[len(placed) :]:
            name, equals, value = word.partition("=")
            if not equals or name not in known:
                self.fail(f"a {HEADS[kind]} has no {name}=", nearest(name, known))
            values[name] = self.payload(value, values) if name == "data" else self.value(value)
        if origin is not NOWHERE:
            values["origin"] = origin
        self.check(kind, values)
        self.at += 1
        return kind(**values)

    def check(self, kind: type[Any], values: dict[str, Any]) -> None:
        """Each value is of its field's type, as far as the printed form can confuse them."""
        for field in attrs.fields(kind):
            wanted = str(field.type)
            if field.name not in values or wanted not in ("str", "int", "bool"):
                continue
            if type(values[field.name]).__name__ != wanted:
                self.fail(f"{field.name} of a {HEADS[kind]} is no {wanted}")
        for name in ("shape", "dims", "attributes", "live"):
            value = values.get(name)
            inside = str if name == "attributes" else int
            if value is None:
                continue
            items = cast(tuple[Any, ...], value)
            if not isinstance(value, tuple) or any(type(x) is not inside for x in items):
                self.fail(f"{name} is no tuple such as (4,128,256)")
            if name in ("dims", "live") and len(items) != 2:
                self.fail(f"{name} takes two numbers")
        if "dtype" in values and values["dtype"] not in DTYPES:
            self.fail(f"no dtype is called {values['dtype']}", nearest(values["dtype"], DTYPES))

    def payload(self, word: str, values: dict[str, Any]) -> Any:
        dtype = values.get("declared") or values["dtype"]
        try:
            return read_data(word, dtype_of(dtype), values["shape"])
        except (ValueError, TypeError) as said:
            return self.fail(str(said))

    def value(self, word: str) -> Any:
        try:
            return read_value(word)
        except ValueError as said:
            return self.fail(str(said))

    def module(self) -> Module:
        if self.depth() != 0 or not self.next_is(0, "module"):
            self.fail("a BIR program begins with `module NAME arch=...`")
        shell: Module = self.node(Module, functions=())
        notes: list[tuple[str, Any]] = []
        while self.next_is(1, "note"):
            _, _, said = self.split()[0].strip().partition(" ")
            name, _, value = said.partition("=")
            notes.append((name, self.value(value)))
            self.at += 1
        queues: list[Queue] = []
        while self.next_is(1, "queue"):
            queues.append(self.node(Queue))
        files: list[File] = []
        while self.next_is(1, "file"):
            files.append(self.node(File))
        functions: list[Function] = []
        while self.next_is(1, "func"):
            functions.append(self.function())
        if self.depth() != -1:
            self.fail(f"cannot place {self.lines[self.at].strip()[:60]!r} here")
        if not functions:
            self.fail("a module needs a function")
        parts = tuple(functions), tuple(queues), tuple(notes), tuple(files)
        return Module(shell.name, shell.arch, *parts)

    def function(self) -> Function:
        shell: Function = self.node(Function, sets=(), blocks=())
        sets: list[LocSet] = []
        while self.next_is(2, "set"):
            kept: LocSet = self.node(LocSet)
            locs: list[Loc] = []
            while self.next_is(3, "loc"):
                locs.append(self.node(Loc))
            sets.append(attrs.evolve(kept, locs=tuple(locs)) if locs else kept)
        return Function(shell.name, tuple(sets), self.blocks(2), shell.attributes)

    def blocks(self, depth: int) -> tuple[Block, ...]:
        found: list[Block] = []
        while self.next_is(depth, "block"):
            shell: Block = self.node(Block, insts=())
            insts: list[Inst] = []
            while self.depth() == depth + 1:
                insts.append(self.inst(depth + 1))
            found.append(Block(shell.name, tuple(insts)))
        return tuple(found)

    def inst(self, depth: int) -> Inst:
        line, origin = self.split()
        words = split_words(line) if '"' in line else line.split()
        if len(words) < 4 or words[1] != "=":
            self.fail(f"cannot read {line.strip()[:80]!r}, expected `name = Opcode engine ...`")
        opcode, engine = words[2], words[3]
        if opcode not in OPCODES:
            self.fail(f"no opcode is called {opcode}", nearest(opcode, OPCODES))
        engine = name_of(engine)
        for each in engine.split("|"):
            if each not in ENGINES:
                self.fail(f"no engine is called {each}", nearest(each, ENGINES))
        parts: dict[str, Any] = {}
        try:
            self.tail(opcode, words, parts)
            parts["name"] = name_of(words[0])
        except ValueError as said:
            self.fail(str(said))
        self.at += 1
        inner = self.blocks(depth + 1) if OPCODES[opcode].family == "region" else ()
        return Inst(opcode=opcode, engine=engine, blocks=inner, origin=origin, **parts)

    def tail(self, opcode: str, words: list[str], parts: dict[str, Any]) -> None:
        """Everything behind the engine: outs <- ins keys after wait update, in this order."""
        at, end = 4, len(words)
        for field, opening in (("outs", ""), ("ins", "<-")):
            if opening and (at >= end or words[at] != opening):
                continue
            at += bool(opening)
            start = at
            while at < end and words[at] not in SECTIONS and not KEY.match(words[at]):
                at += 1
            parts[field] = tuple([self.operand(word) for word in words[start:at]])
        at = self.keys(opcode, words, at, parts)
        for opening, field, read in SECTIONED:
            if at >= end or words[at] != opening:
                continue
            start = at = at + 1
            while at < end and words[at] not in SECTIONS:
                at += 1
            parts[field] = tuple([read(word) for word in words[start:at]])
        if at < end:
            raise ValueError(f"{words[at]!r} stands in the wrong place")

    def operand(self, word: str) -> Operand:
        found = self.operands.get(word)
        if found is None:
            found = self.operands[word] = read_operand(word)
        return found

    def keys(self, opcode: str, words: list[str], at: int, parts: dict[str, Any]) -> int:
        known, region = OPCODES[opcode].keys, OPCODES[opcode].family == "region"
        keys: list[tuple[str, Any]] = []
        while at < len(words) and words[at] not in SECTIONS:
            name, equals, shown = words[at].partition("=")
            if name == "loopnest" or (name == "axis" and region):  # TensorReduce has a key axis
                parts[name] = read_value(shown)
            elif equals and name in known:
                keys.append((name, read_value(shown)))
            else:
                hint = nearest(name, known)
                raise ValueError(f"{opcode} has no key {name}" + (f"; {hint}" if hint else ""))
            at += 1
        parts["keys"] = tuple(keys)
        axis = parts.get("axis")
        if axis is not None and not (
            isinstance(axis, tuple)
            and [type(x) for x in cast(tuple[Any, ...], axis)] == [str, int, int, int]
        ):
            raise ValueError("the axis of a Loop is written (name,lb,ub,stride)")
        return at


KEY = re.compile(r"[a-zA-Z]\w*=")
SECTIONS = frozenset(("<-", "after", "wait", "update"))


def _edge(word: str) -> tuple[str, str]:
    if not (found := EDGE.match(word)):
        raise ValueError(f"cannot read {word!r} as a dependence, such as i7(F)")
    return name_of(found[1]), KINDS[found[2]]


def _wait(word: str) -> Wait:
    if not (found := WAIT.match(word)):
        raise ValueError(f"cannot read {word!r} as a wait, such as qSP>=2 or qSP>=2(12>=32)")
    if found[3] is None:
        return Wait(name_of(found[1]), int(found[2]))
    return Wait(name_of(found[1]), int(found[2]), int(found[3]), int(found[4]))


def _update(word: str) -> Update:
    if not (found := UPDATE.match(word)):
        raise ValueError(f"cannot read {word!r} as an update, such as PE+1 or PE+1(0)")
    return Update(name_of(found[1]), int(found[3]) if found[3] else -1, int(found[2]))


SECTIONED = (("after", "deps", _edge), ("wait", "waits", _wait), ("update", "updates", _update))
