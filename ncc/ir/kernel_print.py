"""A kernel printed inside Penguin's text: one line an op, as the call that recorded it.

    with body("scale", core=0):
        x = buffer("x", "float32", (128, 64), "shared_hbm", kind="input")
        t = buffer("t", "float32", (128, 64), "sbuf")
        params(x)
        i0 = nisa.dma_copy(dst=t, src=x)  # scale.py:7
        i1 = nisa.activation(dst=t[0:64, :], data=t[64:128, :], op="exp", engine="scalar")
        results(t)

An access prints as a subscript where its pairs walk the buffer's own dimensions, and otherwise as
what it is: `t.ap((64, 128), (2, 32), offset=1, dtype="bfloat16")`. `.by(start, scale, limit)` and
`.rows(starts, scale, limit)` after either are its moves. A name that is no Python name stands in
quotes: `the("t.1")`, `op("i.1", ...)`. A loop of the older API is an axis, by which starts move;
the blocks of a tensor are a dimension in front of its own:

        w = buffer("w", "float32", (128, 64), "sbuf", blocks=4)
        for k in affine_range(4):
            i2 = nisa.dma_copy(dst=w[k, :, :], src=x[128*k:128*k+128, :])  # scale.py:9
"""

from __future__ import annotations

import json
import keyword
import math
from collections.abc import Iterator, Sequence
from typing import Any, cast

from ncc.ir.affine import Affine, affine
from ncc.ir.core import NOWHERE, Origin
from ncc.ir.kernel import (
    AXES,
    Access,
    Arg,
    AxisLoop,
    Buffer,
    DeviceFor,
    Imm,
    Kernel,
    KernelOp,
    Reg,
    Scalar,
    Statement,
)
from ncc.ir.text import with_origin

WORDS = frozenset(
    [
        *("nisa", "reg", "the", "buffer", "params", "results", "args", "outs", "body", "op"),
        *("fori_loop", "while_loop", "inf", "nan", "KernelCall", "KernelNode", "f", *AXES),
    ]
)
Index = tuple[int, int, int] | int  # a slice (start, stop, step), or one index


def plain_name(name: str) -> bool:
    """Whether a name can stand in the text without quotes."""
    return name.isidentifier() and not keyword.iskeyword(name) and name not in WORDS


def named(name: str) -> str:
    return name if plain_name(name) else f"the({word(name)})"


def word(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def plain(x: Any) -> str:
    """A key's value as Python."""
    match x:
        case str():
            return word(x)
        case tuple():
            items = [plain(one) for one in cast("tuple[Any, ...]", x)]
            return f"({', '.join(items)}{',' if len(items) == 1 else ''})"
        case _:
            return repr(x)


# ---- accesses -----------------------------------------------------------------------------------


def strides_of(shape: Sequence[int]) -> list[int]:
    found: list[int] = []
    step = 1
    for extent in reversed(shape):
        found.append(step)
        step *= extent
    return found[::-1]


def pairs_of(shape: tuple[int, ...], index: Sequence[Index]) -> tuple[Any, int]:
    """Pairs and offset of a subscript: a slice gives a pair, an index moves the start."""
    pairs: list[tuple[int, int]] = []
    offset = 0
    for stride, one in zip(strides_of(shape), index, strict=True):
        if isinstance(one, int):
            offset += one * stride
        else:
            start, stop, step = one
            pairs.append((stride * step, len(range(start, stop, step))))
            offset += start * stride
    return tuple(pairs), offset


def subscript(access: Access, shape: tuple[int, ...]) -> list[Index] | None:
    """The subscript that gives exactly this access, if one does."""
    size = math.prod(shape)
    if not 0 <= access.offset < size or 0 in shape:
        return None
    found: list[Index] = []
    rest, pairs = access.offset, list(access.pairs)
    for dim, (stride, extent) in enumerate(zip(strides_of(shape), shape, strict=True)):
        start, rest = divmod(rest, stride)
        must = len(pairs) == len(shape) - dim
        step, num = pairs[0] if pairs else (0, 0)
        times = step // stride
        fits = times >= 1 and step == times * stride and start + (num - 1) * times < extent
        if pairs and fits and num >= 1 and (must or num > 1 or times == 1):
            pairs.pop(0)
            found.append((start, start + (num - 1) * times + 1, times))
        else:
            found.append(start)
    if pairs or pairs_of(shape, found) != (access.pairs, access.offset):
        return None
    return found


def coefficients(access: Access, shape: tuple[int, ...]) -> list[dict[str, int]]:
    """How far each term moves the start of each dimension in a turn."""
    found: list[dict[str, int]] = [{} for _ in shape]
    for axis, stride in access.terms:
        rest, sign = abs(stride), 1 if stride > 0 else -1
        for dim, step in enumerate(strides_of(shape)):
            times, rest = divmod(rest, step)
            if times:
                found[dim][axis] = sign * times
    return found


def shown_index(one: Index, extent: int, moved: dict[str, int]) -> str:
    if isinstance(one, int):
        return str(affine(one, moved))
    start, stop, step = one
    if (start, stop, step) == (0, extent, 1) and not moved:
        return ":"
    return f"{affine(start, moved)}:{affine(stop, moved)}" + (f":{step}" if step != 1 else "")


def show_access(access: Access, buffers: dict[str, Buffer]) -> str:
    """One operand that is a part of a buffer."""
    name = named(access.buffer)
    buffer = buffers.get(access.buffer)
    index = None
    if buffer is not None and buffer.dtype == access.dtype and buffer.shape:
        index = subscript(access, buffer.whole)
    if index is None or buffer is None:
        words = [f"({step}, {num})" for step, num in access.pairs]
        if access.offset or access.terms:
            words.append(f"offset={Affine(access.offset, access.terms)}")
        if buffer is None or buffer.dtype != access.dtype:
            words.append(f"dtype={word(access.dtype)}")
        text = f"{name}.ap({', '.join(words)})"
    else:
        moved = coefficients(access, buffer.whole)
        parts = zip(index, buffer.whole, moved, strict=True)
        items = [shown_index(x, n, how) for x, n, how in parts]
        text = name if set(items) == {":"} else f"{name}[{', '.join(items)}]"
    for move in access.moves:
        source = show_arg(move.source, buffers)
        how = "by" if isinstance(move, Scalar) else "rows"
        text += f".{how}({source}, {move.scale}, {move.limit})"
    return text


def show_arg(arg: Arg, buffers: dict[str, Buffer]) -> str:
    match arg:
        case Access():
            return show_access(arg, buffers)
        case Imm(value):
            return repr(value)
        case Reg(name, dtype):
            return f"reg({word(name)})" if dtype == "int32" else f"reg({word(name)}, {word(dtype)})"


# ---- statements ---------------------------------------------------------------------------------


def line(head: str, words: Sequence[str], end: str, origin: Origin, indent: str) -> str:
    """A call in one line, however long it is: one line an op."""
    return with_origin(f"{indent}{head}({', '.join(words)}){end}", origin)


def show_kernel(kernel: Kernel, indent: str) -> Iterator[str]:
    """The lines of one core's body."""
    buffers = {b.name: b for b in kernel.buffers}
    head = [word(kernel.name), *([f"core={kernel.core}"] if kernel.core else [])]
    yield line("with body", head, ":", kernel.origin, indent)
    inner = f"{indent}    "
    for one in kernel.buffers:
        bound = f"{one.name} = " if plain_name(one.name) else ""
        yield line(f"{bound}buffer", buffer_words(one), "", one.origin, inner)
    yield line("params", [named(x) for x in kernel.params], "", NOWHERE, inner)
    yield from show_statements(kernel.body, buffers, inner)
    found = [show_access(x, buffers) for x in kernel.results]
    yield line("results", found, "", NOWHERE, inner)


def buffer_words(buffer: Buffer) -> list[str]:
    words = [word(buffer.name), word(buffer.dtype), plain(buffer.shape), word(buffer.memory)]
    if buffer.kind != "internal":
        words.append(f"kind={word(buffer.kind)}")
    if buffer.address is not None:
        words.append(f"address={plain(buffer.address)}")
    if buffer.data is not None:
        words.append(f"data={word(buffer.data.word())}")
    if buffer.blocks:
        words.append(f"blocks={buffer.blocks}")
    if buffer.axis:
        words.append(f"axis={word(buffer.axis)}")
    return words


def show_statements(
    body: tuple[Statement, ...], buffers: dict[str, Buffer], indent: str
) -> Iterator[str]:
    for one in body:
        if isinstance(one, KernelOp):
            bound = f"{one.name} = " if plain_name(one.name) else ""
            words = op_words(one, buffers, not bound)
            yield line(f"{bound}nisa.{one.op}", words, "", one.origin, indent)
            continue
        if isinstance(one, DeviceFor):
            words = [word(one.name), *(show_arg(x, buffers) for x in (one.var, one.lower))]
            words += [show_arg(one.upper, buffers), f"step={one.step}"]
            yield line("with fori_loop", words, ":", one.origin, indent)
        elif isinstance(one, AxisLoop):
            head = f"for {one.name} in {one.kind}"
            yield line(head, [str(one.count)], ":", one.origin, indent)
        else:
            words = [word(one.name), show_arg(one.condition, buffers)]
            yield line("with while_loop", words, ":", one.origin, indent)
        inner = f"{indent}    "
        yield from list(show_statements(one.body, buffers, inner)) or [f"{inner}pass"]


def op_words(op: KernelOp, buffers: dict[str, Buffer], with_name: bool) -> list[str]:
    words = [f"{role}={show_arg(arg, buffers)}" for role, arg in op.args]
    words += [f"{key}={plain(value)}" for key, value in op.keys]
    if op.engine != "unknown":
        words.append(f"engine={word(op.engine)}")
    if op.after:
        words.append(f"after={plain(op.after)}")
    if with_name:
        words.append(f"name={word(op.name)}")
    return words


def show_op(op: KernelOp, buffers: dict[str, Buffer]) -> str:
    """One op on one line, for a person."""
    return f"{op.op}({', '.join(op_words(op, buffers, False))})"
