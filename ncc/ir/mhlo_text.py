"""MHLO's text: a function `main`, one op a line.

    func main(lhs: bf16[128,512], rhs: bf16[512,256]) name=matmul {
      out_3 = dot_general lhs rhs lhs_contract=(1,) rhs_contract=(0,) : f32[128,256]  # matmul.hlo:6
      return out_3
    }

Operands stand first and by name, then the attributes that are not at their default, then the type.
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, cast

import attrs

from ncc.errors import nearest
from ncc.ir.data import FROM_HLO, Data, read_data
from ncc.ir.mhlo import (
    Binary,
    Broadcast,
    BroadcastInDim,
    Constant,
    Convert,
    Copy,
    CustomCall,
    DotGeneral,
    Func,
    GetTupleElement,
    Let,
    Op,
    Param,
    TensorType,
    Transpose,
    Tuple,
)
from ncc.ir.text import read_value, show_value, split_origin, split_words, unreadable, with_origin


class Form(NamedTuple):
    """How an op of one class is written: head, operands, attributes and their defaults."""

    head: str
    kind: type[Op]
    operands: tuple[str, ...]
    attributes: tuple[str, ...]
    defaults: dict[str, Any]


def _form(head: str, kind: type[Op], *operands: str) -> Form:
    fields = [f for f in attrs.fields(kind) if f.name not in operands]
    defaults = {f.name: f.default for f in fields if f.default is not attrs.NOTHING}
    return Form(head, kind, operands, tuple(f.name for f in fields), defaults)


# `add` and `maximum` are the two words of Binary's `by`; a tuple takes any number of operands
FORMS = {
    form.head: form
    for form in (
        _form("dot_general", DotGeneral, "lhs", "rhs"),
        _form("add", Binary, "lhs", "rhs", "by"),
        _form("maximum", Binary, "lhs", "rhs", "by"),
        _form("convert", Convert, "operand"),
        _form("copy", Copy, "operand"),
        _form("transpose", Transpose, "operand"),
        _form("constant", Constant, "data"),
        _form("broadcast", Broadcast, "operand"),
        _form("broadcast_in_dim", BroadcastInDim, "operand"),
        _form("tuple", Tuple, "operands"),
        _form("custom_call", CustomCall, "operands"),
        _form("get_tuple_element", GetTupleElement, "operand"),
    )
}
BY_KIND = {form.kind: form for form in FORMS.values()}
TYPE = re.compile(r"([a-z]\w*)\[((?:\d+(?:,\d+)*)?)\]\Z")
PARAM = re.compile(r"\s*([A-Za-z_]\w*)\s*:\s*([a-z]\w*\[[\d,]*\])\s*(,|\Z)")
FUNC = re.compile(r"func main\(([^()]*)\)((?: .*)?) \{\Z")
FUNC_KEYS = ("name", "input_names", "output_names", "slow_ins", "slow_outs")
IDENTIFIER = re.compile(r"[A-Za-z_]\w*\Z")


def head_of(op: Op) -> str:
    """The op as it is printed: `dot_general`, `add`."""
    return op.by if isinstance(op, Binary) else BY_KIND[type(op)].head


def operands_of(op: Op) -> tuple[str, ...]:
    """The names of the values that an op reads, in order."""
    match op:
        case DotGeneral(lhs, rhs) | Binary(_, lhs, rhs):
            return (lhs, rhs)
        case Tuple(operands) | CustomCall(operands):
            return operands
        case Constant():
            return ()
        case Convert(operand) | Copy(operand) | Transpose(operand) | GetTupleElement(operand):
            return (operand,)
        case Broadcast(operand) | BroadcastInDim(operand):
            return (operand,)
        case _:
            raise TypeError(f"{type(op).__name__} is no op of MHLO")


# -------------------------------------------------------------------------------------- printing


def show(func: Func) -> str:
    """The function as text, which `parse` reads back to an equal one."""
    params = ", ".join(f"{p.name}: {p.type}" for p in func.params)
    words = [f" name={show_value(func.name)}"]
    words += [
        f" {key}={show_value(value)}" for key in FUNC_KEYS[1:] if (value := getattr(func, key))
    ]
    lines = [f"func main({params}){''.join(words)} {{"]
    lines += [f"  {show_let(let)}" for let in func.body]
    lines += [f"  return {', '.join(func.results)}".rstrip(), "}", ""]
    return "\n".join(lines)


def show_let(let: Let) -> str:
    op = let.op
    form = BY_KIND[type(op)]
    words = [*let.names, "=", head_of(op)]
    if isinstance(op, Constant):
        words.append(op.data.word())
    else:
        words += operands_of(op)
    for key in form.attributes:
        value = getattr(op, key)
        if key not in form.defaults or value != form.defaults[key]:
            words.append(f"{key}={show_value(value)}")
    if let.symbol:
        words.append(f"symbol={show_value(let.symbol)}")
    types = ", ".join(map(show_type, let.types))
    return with_origin(f"{' '.join(words)} : {types}", let.origin)


def show_type(kind: TensorType | tuple[TensorType, ...]) -> str:
    return str(kind) if isinstance(kind, TensorType) else f"({', '.join(map(str, kind))})"


# --------------------------------------------------------------------------------------- reading


def parse(text: str, file: str = "", first_line: int = 1) -> Func:
    """The function that `text` spells; NCC009 for a line that cannot be read."""
    lines = [(n, line) for n, line in enumerate(text.split("\n"), first_line) if line.strip()]
    if not lines:
        raise unreadable("the stage has no function", file, first_line, "`func main(...) {`")
    number, first = lines[0]
    found = FUNC.match(first.strip())
    if not found:
        said = f"cannot read {first.strip()[:60]!r}, expected `func main(name: type, ...) {{`"
        raise unreadable(said, file, number)
    try:
        params, keys = _params(found[1]), _keys(split_words(found[2]), FUNC_KEYS, Func)
    except ValueError as said:
        raise unreadable(str(said), file, number) from None
    if len(lines) < 3 or lines[-1][1].strip() != "}":
        raise unreadable("the function lacks its closing }", file, lines[-1][0])
    number, last = lines[-2]
    if not re.match(r"\s*return\b", last):
        raise unreadable("the function lacks its last line, `return ...`", file, number)
    results = tuple(x.strip() for x in last.split("return", 1)[1].split(",") if x.strip())
    body: list[Let] = []
    for number, line in lines[1:-2]:
        try:
            body.append(_let(line.strip()))
        except ValueError as said:
            hint = said.hint if isinstance(said, UnknownOp) else ""
            raise unreadable(str(said), file, number, hint) from None
    name = keys.pop("name", "main")
    return Func(name, params, tuple(body), results, **keys)


class UnknownOp(ValueError):
    """A head that no op of MHLO has."""

    def __init__(self, head: str) -> None:
        super().__init__(f"MHLO has no op {head}")
        self.hint = nearest(head, FORMS)


def _params(text: str) -> tuple[Param, ...]:
    params: list[Param] = []
    at = 0
    while at < len(text):
        found = PARAM.match(text, at)
        if not found:
            raise ValueError(f"cannot read {text[at:].strip()[:40]!r} as a parameter `name: type`")
        params.append(Param(found[1], _type(found[2])))
        at = found.end()
    return tuple(params)


def _keys(words: list[str], known: tuple[str, ...], kind: type[Any]) -> dict[str, Any]:
    """`key=value` words; each key is known, stands once and has a value of its field's type."""
    types = {field.name: str(field.type) for field in attrs.fields(kind)}
    found: dict[str, Any] = {}
    for word in words:
        key, _, value = word.partition("=")
        if key not in known or not value:
            raise ValueError(f"cannot read {word!r}, there are {'=, '.join(known)}=")
        if key in found:
            raise ValueError(f"{key}= stands twice")
        found[key] = read_value(value)
        wanted = types.get(key, "str")
        if not _fits(found[key], wanted):
            raise ValueError(f"cannot read {word!r}, {key} is {WANTED[wanted]}")
    return found


WANTED = {
    "str": "a word",
    "int": "a number",
    "tuple[int, ...]": "a tuple of numbers such as (0,1)",
    "tuple[str, ...]": "a tuple of words such as (a,b)",
    "tuple[tuple[str, Any], ...]": "a tuple of pairs such as ((scale,0.5),)",
    "tuple[tuple[int, int], ...]": "a tuple of pairs such as ((0,1),)",
}


def _fits(value: Any, wanted: str) -> bool:
    """Whether a value is of the type that a field's annotation names."""
    inner = int if "int" in wanted else str
    if wanted.startswith("tuple[tuple"):
        pairs = cast("tuple[Any, ...]", value) if type(value) is tuple else (None,)
        return all(type(x) is tuple and len(x) == 2 and type(x[0]) is inner for x in pairs)
    if wanted.startswith("tuple"):
        items = cast("tuple[object, ...]", value) if type(value) is tuple else (None,)
        return all(type(x) is inner for x in items)
    return type(value) is inner


def _let(line: str) -> Let:
    line, origin = split_origin(line)
    left, colon, types = line.rpartition(" : ")
    names, equals, right = left.partition(" = ")
    words = split_words(right)
    if not colon or not equals or not words:
        raise ValueError(f"cannot read {line[:60]!r}, expected `name = op operands : type`")
    form = FORMS.get(words[0])
    if not form:
        raise UnknownOp(words[0])
    plain = [w for w in words[1:] if "=" not in w]
    known = (*form.attributes, "symbol")
    keys = _keys([w for w in words[1:] if "=" in w], known, form.kind)
    symbol = keys.pop("symbol", "")
    if missing := [k for k in form.attributes if k not in keys and k not in form.defaults]:
        raise ValueError(f"{words[0]} lacks {missing[0]}=")
    kinds = _types(types)
    op = _op(form, plain, keys, kinds)
    return Let(tuple(names.split()), op, kinds, symbol, origin)


def _op(
    form: Form,
    plain: list[str],
    keys: dict[str, Any],
    kinds: tuple[TensorType | tuple[TensorType, ...], ...],
) -> Op:
    if form.kind is Constant:
        return Constant(_data(plain, kinds))
    if wrong := [w for w in plain if not IDENTIFIER.match(w)]:
        raise ValueError(f"cannot read {wrong[0]!r} as the name of a value")
    if form.kind in (Tuple, CustomCall):
        return form.kind(tuple(plain), **keys)
    if form.kind is Binary:
        if len(plain) != 2:
            raise ValueError(f"{form.head} takes 2 operands, was given {len(plain)}")
        return Binary(form.head, *plain)
    if len(plain) != len(form.operands):
        raise ValueError(f"{form.head} takes {len(form.operands)} operands, was given {len(plain)}")
    return form.kind(*plain, **keys)


def _data(plain: list[str], kinds: tuple[TensorType | tuple[TensorType, ...], ...]) -> Data:
    if len(plain) != 1 or len(kinds) != 1 or not isinstance(kinds[0], TensorType):
        raise ValueError("constant takes one word such as splat:00000000, and has one type")
    dtype = FROM_HLO.get(kinds[0].dtype)
    if not dtype:
        raise ValueError(f"a constant cannot be of type {kinds[0].dtype}")
    return read_data(plain[0], dtype, kinds[0].shape)


def _types(text: str) -> tuple[TensorType | tuple[TensorType, ...], ...]:
    kinds: list[TensorType | tuple[TensorType, ...]] = []
    for word in re.findall(r"\([^()]*\)|[^\s,()]+\[[^\]]*\]|\S+", text):
        if word in (",",):
            continue
        if word.startswith("("):
            kinds.append(tuple(map(_type, re.findall(r"[a-z]\w*\[[^\]]*\]", word))))
        else:
            kinds.append(_type(word))
    return tuple(kinds)


def _type(word: str) -> TensorType:
    found = TYPE.match(word)
    if not found:
        raise ValueError(f"cannot read {word!r} as a type such as f32[4,8]")
    if found[1] not in FROM_HLO:
        raise ValueError(f"no element type is called {found[1]}; there are {', '.join(FROM_HLO)}")
    return TensorType(found[1], tuple(map(int, found[2].split(","))) if found[2] else ())
