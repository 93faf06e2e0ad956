"""The listing: a printed ISA stage, one bundle a line, which `ncc asm` reads back.

    program matmul target=cayman gen=3
    var lhs id=1 kind=input dtype=bfloat16 shape=(128,512)
    queue qSP owner=SP semaphore=12 num_queues=16
    stream PE
      LoadStationary wait=S12>=32 src=sb[0]+0x0[1:128] in_dtype=bfloat16 ...
      Exit

A field that has its default is left out. `sb[0]+0x400[1:128,256:4]` is byte 0x400 of partition 0
and two dimensions of step:num, fastest first; `ps[64]bank1+0x0` is in PSUM; `v3+0x0` in variable 3.
"""

from __future__ import annotations

import re
from typing import Any

from ncc.encode.bundle import decode_bundle, encode_bundle
from ncc.encode.tables import ROWS
from ncc.encode.words import (
    read_band,
    read_field,
    read_update,
    read_wait,
    shared,
    show_field,
    show_update,
    show_wait,
)
from ncc.errors import NccError, nearest
from ncc.ir.core import Origin
from ncc.ir.data import DTYPES, read_data
from ncc.ir.isa import STREAMS, Band, Bundle, DmaQueue, Program, Stream, Var
from ncc.ir.text import (
    read_value,
    show_value,
    split_origin,
    split_words,
    unreadable,
    with_origin,
)

MARIANA = "# the records are those of generation 3, with the memory and numerics of trn3"
NUMBER = re.compile(r"-?\d+\Z")


def show(program: Program) -> str:
    """The whole listing."""
    lines = [MARIANA] if program.neff_target == "mariana" else []
    name = show_value(program.name)
    lines.append(f"program {name} target={program.neff_target} gen={program.gen}")
    lines += map(show_var, program.vars)
    lines += map(show_queue, program.queues)
    for stream in program.streams:
        lines.append(f"stream {stream.engine}")
        lines += [with_origin(f"  {show_bundle(b)}", b.origin) for b in stream.bundles]
    return "\n".join(lines) + "\n"


def show_var(var: Var) -> str:
    words = [f"var {show_value(var.name)} id={var.id} kind={var.kind} dtype={var.dtype}"]
    words.append(f"shape={show_value(var.shape)}")
    if var.offset:
        words.append(f"offset={var.offset}")
    if var.declared:
        words.append(f"declared={var.declared}")
    if var.data is not None:
        words.append(f"data={var.data.word()}")
    return " ".join(words)


def show_queue(queue: DmaQueue) -> str:
    name = show_value(queue.name)
    numbers = f"semaphore={queue.semaphore} num_queues={queue.num_queues}"
    return f"queue {name} owner={queue.owner} {numbers}"


def show_bundle(bundle: Bundle) -> str:
    """One line: mnemonic, wait, fields in the order of their bytes, update."""
    fields = dict(bundle.fields)
    band = bundle.band
    words = [bundle.op]
    if band.wait != (0, 0):
        words.append(f"wait={show_wait(*band.wait, band.value)}")
    if bundle.op == "EventSemaphore":
        words += show_second(fields)
    else:
        for field in ROWS[bundle.op].fields:
            if field.name in fields:
                word = show_field(field, fields[field.name], bundle.op, fields)
                words.append(f"{field.name}={word}")
    if band.update != (0, 0):
        words.append(f"update={show_update(*band.update, band.value)}")
    if band.value != shared(band.wait, band.update, band.value):
        words.append(f"value={band.value}")
    return " ".join(words)


def show_second(fields: dict[str, Any]) -> list[str]:
    """The second wait and update of an EventSemaphore, which have a value each."""
    words: list[str] = []
    for what, show_it, read_it in (
        ("wait2", show_wait, read_wait),
        ("update2", show_update, read_update),
    ):
        mode, index = fields.get(f"{what}_mode", 0), fields.get(f"{what}_idx", 0)
        value = fields.get(f"{what}_value", 0)
        word = show_it(mode, index, value)
        if mode or index:
            words.append(f"{what}={word}")
        if value and read_it(word)[2] is None:
            words.append(f"{what}_value={value}")
    return words


def read_second(words: dict[str, str]) -> dict[str, int]:
    """The fields of `wait2=` and `update2=`, taken out of the words."""
    found: dict[str, int] = {}
    for what, read_it in (("wait2", read_wait), ("update2", read_update)):
        if what in words:
            mode, index, value = read_it(words.pop(what))
            found |= {f"{what}_mode": mode, f"{what}_idx": index, f"{what}_value": value or 0}
    return found


def parse(text: str, file: str = "", first_line: int = 1) -> Program:
    """The program of a listing; NCC009, or the code of a field that does not fit, with its line."""
    head: dict[str, Any] | None = None
    found: list[Var] = []
    queues: list[DmaQueue] = []
    streams: dict[str, list[Bundle]] = {}
    current: list[Bundle] | None = None
    for number, whole in enumerate(text.split("\n"), first_line):
        if not whole.strip() or whole.startswith("#"):
            continue
        try:
            line, origin = split_origin(whole)
            words = split_words(line)
            if not words:
                raise ValueError("a comment alone is no bundle")
            if whole[0] == " ":
                if head is None or current is None:
                    raise ValueError("a bundle stands before the first stream")
                current.append(read_bundle(words, head["gen"], origin))
            elif words[0] == "program":
                if head is not None:
                    raise ValueError("the program has a second head")
                head = named(words, {"target": str, "gen": int})
            elif words[0] == "var":
                found.append(read_var(words))
            elif words[0] == "queue":
                queues.append(read_queue(words))
            elif words[0] == "stream" and words[1:2] and len(words) == 2:
                current = open_stream(words[1], streams)
            else:
                raise ValueError(f"{words[0]!r} opens no line; program, var, queue and stream do")
        except NccError as wrong:
            raise wrong.at(file=file, line=number) from None
        except ValueError as wrong:
            raise unreadable(str(wrong), file, number) from None
    if head is None:
        raise unreadable("a listing opens with `program NAME target=... gen=...`", file, first_line)
    return Program(
        head["name"],
        head["target"],
        head["gen"],
        tuple(Stream(engine, tuple(streams.get(engine, ()))) for engine in STREAMS),
        tuple(found),
        tuple(queues),
    )


def open_stream(engine: str, streams: dict[str, list[Bundle]]) -> list[Bundle]:
    if engine not in STREAMS:
        raise ValueError(f"no stream is called {engine!r}; there are {', '.join(STREAMS)}")
    if engine in streams:
        raise ValueError(f"the stream {engine} is there twice")
    streams[engine] = []
    return streams[engine]


def pairs(words: list[str]) -> dict[str, str]:
    """The words `key=value`, each key once."""
    found: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or key in found:
            raise ValueError(f"cannot read {word!r}, each key stands once as key=value")
        found[key] = value
    return found


def named(
    words: list[str], required: dict[str, type], optional: dict[str, type] | None = None
) -> dict[str, Any]:
    """The values of `head NAME key=value ...`, of the types that are given."""
    if len(words) < 2:
        raise ValueError(f"{words[0]} lacks its name")
    name = read_value(words[1])
    if not isinstance(name, str):
        raise ValueError(f"{words[1]!r} is no name")
    found: dict[str, Any] = {"name": name}
    given = pairs(words[2:])
    known = required | (optional or {})
    for key, word in given.items():
        if key not in known:
            raise ValueError(f"{words[0]} has no {key}=; it has {', '.join(known)}")
        value = word if key == "data" else read_value(word)
        if not isinstance(value, known[key]) or isinstance(value, bool):
            raise ValueError(f"{key}={word} is not what {words[0]} holds")
        found[key] = value
    if missing := [key for key in required if key not in found]:
        raise ValueError(f"{words[0]} lacks {missing[0]}=")
    return found


def read_var(words: list[str]) -> Var:
    required: dict[str, type] = {"id": int, "kind": str, "dtype": str, "shape": tuple}
    found = named(words, required, {"offset": int, "declared": str, "data": str})
    dtype, shape = found["dtype"], found["shape"]
    if dtype not in DTYPES:
        raise ValueError(f"{dtype!r} is no dtype")
    if not all(type(n) is int and n >= 0 for n in shape):
        raise ValueError("a shape holds whole numbers from 0 up")
    word = found.get("data")
    return Var(
        found["name"],
        found["id"],
        found["kind"],
        dtype,
        shape,
        found.get("offset", 0),
        None if word is None else read_data(word, dtype, shape),
        found.get("declared", ""),
    )


def read_queue(words: list[str]) -> DmaQueue:
    found = named(words, {"owner": str, "semaphore": int, "num_queues": int})
    return DmaQueue(found["name"], found["owner"], found["semaphore"], found["num_queues"])


def read_bundle(words: list[str], gen: int, origin: Origin) -> Bundle:
    """A record of its words, as the decoder would give it."""
    op = words[0]
    if op not in ROWS:
        hint = nearest(op, ROWS)
        raise ValueError(f"no opcode is called {op!r}" + (f", {hint}" if hint else ""))
    known = {f.name: f for f in ROWS[op].fields}
    given = pairs(words[1:])
    band: Band = read_band(given.pop("wait", ""), given.pop("update", ""), given.pop("value", ""))
    fields: dict[str, Any] = dict(read_second(given)) if op == "EventSemaphore" else {}
    for key, word in given.items():
        if key not in known:
            hint = nearest(key, known)
            raise ValueError(f"{op} has no field {key}" + (f", {hint}" if hint else ""))
        fields[key] = read_field(known[key], word)
    raw = encode_bundle(Bundle(op, tuple(fields.items()), band), gen)
    found = decode_bundle(raw, gen)
    return Bundle(found.op, found.fields, found.band, origin)
