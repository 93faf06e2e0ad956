"""Generated programs: chains and DAGs of up to three float dots, as XLA prints them.

`program(seed)` is one program; the same seed gives the same text everywhere. `programs()` is the
hypothesis strategy. `inputs(text, seed)` are arrays for it: whole numbers whose sums float32 holds
exactly, or random ones.
"""

from __future__ import annotations

import math
import random
from typing import Any

import attrs
import numpy as np
from hypothesis import strategies as st

from ncc.front.hlo import parse
from ncc.ir.data import FROM_HLO, numpy_type
from ncc.ir.hlo import ArrayShape, Module
from ncc.numerics import cast

DTYPES = ("bf16", "f16", "f32", "f8e4m3", "f8e4m3fn", "f8e5m2")
# a target without f8e4m3fn reads values of that type, exactly, but cannot round to it
ROUNDED = ("bf16", "f16", "f32", "f8e4m3", "f8e5m2")
# how many batch dimensions, and where they stand
BATCHES = ("none", "front", "anywhere", "two")
LARGEST = 700
FLOPS = 2_000_000_000  # of a whole program, two a multiplication
ELEMENTS = 1_500_000  # of any one value


@attrs.define
class Value:
    name: str
    dtype: str
    dims: tuple[int, ...]

    @property
    def shape(self) -> str:
        return f"{self.dtype}[{','.join(map(str, self.dims))}]"


@attrs.define
class Text:
    """The growing program: parameters, computations in front of the entry, the entry's lines."""

    rng: Any
    params: list[Value] = attrs.field(factory=list)
    helpers: list[str] = attrs.field(factory=list)
    lines: list[str] = attrs.field(factory=list)
    count: int = 0
    flops: int = 0

    def name(self, word: str) -> str:
        self.count += 1
        return f"{word}.{self.count}"

    def add(self, word: str, dtype: str, dims: tuple[int, ...], text: str, root: str = "") -> Value:
        value = Value(self.name(word), dtype, dims)
        self.lines.append(f"{root}%{value.name} = {value.shape}{layout(dims)} {text}")
        return value

    def param(self, dtype: str, dims: tuple[int, ...]) -> Value:
        number = len(self.params)
        text = f'parameter({number}), metadata={{op_name="arg{number}"}}'
        value = self.add("arg" if number % 2 else "Arg_", dtype, dims, text)
        self.params.append(value)
        return value


def layout(dims: tuple[int, ...]) -> str:
    return f"{{{','.join(map(str, reversed(range(len(dims)))))}}}" if dims else ""


def ints(key: str, values: list[int]) -> str:
    return f"{key}={{{','.join(map(str, values))}}}"


def program(
    seed: int, *, dtype: str | None = None, batch: str | None = None, small: bool = False
) -> str:
    """One program as text. `small` keeps every size below 20."""
    return written(random.Random(f"ncc {seed}"), seed % 5 == 0, dtype, batch, small)


def programs(**given: Any) -> st.SearchStrategy[str]:
    """The same as a hypothesis strategy, which can make a failing program smaller."""
    given = {"dtype": None, "batch": None, "small": True, **given}
    rng = st.randoms(use_true_random=False)
    return st.builds(lambda r, large: written(r, large, **given), rng, st.just(False))


def written(rng: Any, large: bool, dtype: str | None, batch: str | None, small: bool) -> str:
    dtype = dtype or rng.choice(DTYPES)
    batch = batch or rng.choice(BATCHES)
    text = Text(rng)
    most = 19 if small else LARGEST
    large = large and not small
    value = dot(text, None, dtype, batch, most, large)
    outputs = [value]
    for step in range(rng.choice((0, 0, 0, 1, 1, 2))):
        value = dressed(text, value)
        if rng.random() < 0.25:
            outputs.append(value)
        dtype = dtype if dtype in ROUNDED else "bf16"
        if value.dtype != dtype:
            value = text.add("convert", dtype, value.dims, f"convert(%{value.name})")
        value = dot(
            text, value, dtype, batch if step or rng.random() < 0.5 else "none", most, False
        )
        outputs.append(value)
    outputs.append(dressed(text, value))
    return finished(text, chosen(rng, outputs))


def chosen(rng: Any, outputs: list[Value]) -> list[Value]:
    """The last value, and sometimes others before it."""
    last = outputs[-1]
    others = [x for x in outputs[:-1] if x is not last]
    if others and rng.random() < 0.3:
        return [*rng.sample(others, min(len(others), rng.randint(1, 2))), last]
    return [last]


def log_uniform(rng: Any, low: int, high: int) -> int:
    if high <= low:
        return max(1, high)
    return min(high, max(low, round(math.exp(rng.uniform(math.log(low), math.log(high + 0.5))))))


def split(rng: Any, total: int, parts: int) -> list[int]:
    """`parts` sizes whose product is about `total`."""
    sizes: list[int] = []
    for left in range(parts - 1, 0, -1):
        size = log_uniform(rng, 1, total) if left else total
        sizes.append(size)
        total = max(1, total // size)
    return [*sizes, total] if parts else []


def shuffled(rng: Any, roles: list[Any], front: bool) -> list[Any]:
    """The dimensions in any order; with `front`, the batch stays in front."""
    if front:
        batch = [r for r in roles if r[0] == "b"]
        rest = [r for r in roles if r[0] != "b"]
        rng.shuffle(rest)
        return batch + rest
    rng.shuffle(roles)
    return roles


def dot(text: Text, left: Value | None, dtype: str, batch: str, most: int, large: bool) -> Value:
    """A product of `left`, or of a new parameter, with a new parameter."""
    rng = text.rng
    wanted = {"none": 0, "front": 1, "anywhere": 1, "two": 2}[batch]
    front = batch == "front"
    if left is None:
        lhs = new_lhs(rng, wanted, front, most, large)
        left = text.param(dtype, tuple(size for _, size in lhs))
    else:
        lhs = roles_of(rng, left, wanted, front)
    batches = [size for kind, size in lhs if kind == "b"]
    contracted = [size for kind, size in lhs if kind == "k"]
    rows = math.prod(size for kind, size in lhs if kind == "m")
    work = 2 * math.prod(batches) * rows * math.prod(contracted)
    room = min(
        (FLOPS - text.flops) // (1 if large else 3) // max(1, work),
        ELEMENTS // max(1, math.prod(batches) * rows),
        ELEMENTS // max(1, math.prod(batches) * math.prod(contracted)),
    )
    columns = log_uniform(rng, 129 if large else 1, max(1, min(most, room)))
    frees = split(rng, columns, rng.choice((0, 1, 1, 1, 2) if not large else (1,)))
    rhs = [("b", i, n) for i, n in enumerate(batches)]
    rhs += [("k", i, n) for i, n in enumerate(contracted)]
    rhs += [("n", i, n) for i, n in enumerate(frees)]
    rhs = shuffled(rng, rhs, front)
    right = text.param(dtype, tuple(r[2] for r in rhs))
    text.flops += work * math.prod(frees)
    return product(text, left, lhs, right, rhs, dtype)


def new_lhs(rng: Any, wanted: int, front: bool, most: int, large: bool) -> list[tuple[str, int]]:
    low = 129 if large else 1
    rows, depth = log_uniform(rng, low, most), log_uniform(rng, low, most)
    few = max(1, min(8, ELEMENTS // (rows * depth), most))
    if large:
        few = min(few, 3)
    roles = [("b", log_uniform(rng, 1, few if i == 0 else 3)) for i in range(wanted)]
    one = (1,) if large else (0, 1, 1, 1, 2)
    roles += [("m", n) for n in split(rng, rows, rng.choice(one))]
    roles += [("k", n) for n in split(rng, depth, rng.choice((1,) if large else (1, 1, 1, 2)))]
    return shuffled(rng, roles, front)


def roles_of(rng: Any, left: Value, wanted: int, front: bool) -> list[tuple[str, int]]:
    """A computed value's dimensions as batch, free and contracted ones, at least one contracted."""
    sizes = left.dims
    if not sizes:
        return []
    order = list(range(len(sizes)))
    rng.shuffle(order)
    kinds = dict.fromkeys(order, "m")
    kinds[order[0]] = "k"
    if len(order) > 2 and rng.random() < 0.3:
        kinds[order[1]] = "k"
    for d in sorted(order) if front else order:
        if wanted and kinds[d] == "m" and sizes[d] <= 16:
            kinds[d] = "b"
            wanted -= 1
    return [(kinds[d], sizes[d]) for d in range(len(sizes))]


def product(
    text: Text,
    left: Value,
    lhs: list[tuple[str, int]],
    right: Value,
    rhs: list[tuple[str, int, int]],
    dtype: str,
) -> Value:
    rng = text.rng
    lb = [d for d, r in enumerate(lhs) if r[0] == "b"]
    lk = [d for d, r in enumerate(lhs) if r[0] == "k"]
    rb = [next(d for d, r in enumerate(rhs) if r[:2] == ("b", i)) for i in range(len(lb))]
    rk = [next(d for d, r in enumerate(rhs) if r[:2] == ("k", i)) for i in range(len(lk))]
    pairs = list(zip(lb, rb, strict=True))
    rng.shuffle(pairs)
    lb, rb = [p[0] for p in pairs], [p[1] for p in pairs]
    pairs = list(zip(lk, rk, strict=True))
    rng.shuffle(pairs)
    lk, rk = [p[0] for p in pairs], [p[1] for p in pairs]
    dims = [left.dims[d] for d in lb]
    dims += [n for d, n in enumerate(left.dims) if d not in (*lb, *lk)]
    dims += [n for d, n in enumerate(right.dims) if d not in (*rb, *rk)]
    keys = [ints("lhs_batch_dims", lb)] if lb else []
    keys += [ints("lhs_contracting_dims", lk)] if lk else []
    keys += [ints("rhs_batch_dims", rb)] if rb else []
    keys += [ints("rhs_contracting_dims", rk)] if rk else []
    result = rng.choice(("f32", "f32", "f32", dtype if dtype in ROUNDED else "bf16"))
    line = ", ".join([f"dot(%{left.name}, %{right.name})", *keys])
    return text.add("dot", result, tuple(dims), line)


def dressed(text: Text, value: Value) -> Value:
    """Perhaps a bias along one axis, a relu, a convert."""
    rng = text.rng
    if rng.random() < 0.45:
        value = biased(text, value)
    if rng.random() < 0.45:
        value = rectified(text, value)
    if rng.random() < 0.3:
        dtype = rng.choice(ROUNDED)
        if dtype != value.dtype:
            value = text.add("convert", dtype, value.dims, f"convert(%{value.name})")
    return value


def biased(text: Text, value: Value) -> Value:
    rng = text.rng
    axis = rng.randrange(len(value.dims)) if value.dims else -1
    dims = () if axis < 0 else (value.dims[axis],)
    if rng.random() < 0.3 and math.prod(dims) <= 12:
        words = [str(rng.choice((-1, 0, 1, 2))) for _ in range(math.prod(dims))]
        literal = f"{{{', '.join(words)}}}" if dims else words[0]
        bias = text.add("constant", value.dtype, dims, f"constant({literal})")
    else:
        bias = text.param(value.dtype, dims)
    if dims != value.dims:
        where = ints("dimensions", [axis] if dims else [])
        bias = text.add("broadcast", value.dtype, value.dims, f"broadcast(%{bias.name}), {where}")
    pair = [value.name, bias.name]
    rng.shuffle(pair)
    return text.add("add", value.dtype, value.dims, f"add(%{pair[0]}, %{pair[1]})")


def rectified(text: Text, value: Value) -> Value:
    """A relu in place, or in a computation that is called or fused."""
    form = text.rng.choice(("inline", "call", "fusion"))
    shape, where = f"{value.shape}{layout(value.dims)}", "dimensions={}"
    if form == "inline":
        zero = text.add("constant", value.dtype, (), "constant(0)")
        zeros = text.add("broadcast", value.dtype, value.dims, f"broadcast(%{zero.name}), {where}")
        line = f"maximum(%{value.name}, %{zeros.name})"
        return text.add("maximum", value.dtype, value.dims, line)
    relu, x, zero, zeros, result = map(text.name, ("relu", "x", "zero", "zeros", "max"))
    text.helpers += [
        f"%{relu} ({x}: {value.shape}) -> {value.shape} {{",
        f"  %{x} = {shape} parameter(0)",
        f"  %{zero} = {value.dtype}[] constant(0)",
        f"  %{zeros} = {shape} broadcast(%{zero}), {where}",
        f"  ROOT %{result} = {shape} maximum(%{x}, %{zeros})",
        "}",
        "",
    ]
    if form == "call":
        return text.add("call", value.dtype, value.dims, f"call(%{value.name}), to_apply=%{relu}")
    line = f"fusion(%{value.name}), kind=kLoop, calls=%{relu}"
    return text.add("fusion", value.dtype, value.dims, line)


def finished(text: Text, outputs: list[Value]) -> str:
    """The module: header, computations, entry with its root last."""
    shapes = [f"{x.shape}{layout(x.dims)}" for x in outputs]
    if len(outputs) == 1 and outputs[0].name == text.lines[-1].split()[0].lstrip("%"):
        text.lines[-1] = f"ROOT {text.lines[-1]}"
        result, full = outputs[0].shape, shapes[0]
    else:
        result = f"({', '.join(x.shape for x in outputs)})"
        full = f"({', '.join(shapes)})"
        names = ", ".join(f"%{x.name}" for x in outputs)
        text.lines.append(f"ROOT %{text.name('tuple')} = {full} tuple({names})")
    params = ", ".join(f"{p.name}: {p.shape}" for p in text.params)
    given = ", ".join(f"{p.shape}{layout(p.dims)}" for p in text.params)
    return "\n".join(
        [
            f"HloModule generated, entry_computation_layout={{({given})->{full}}}",
            "",
            *text.helpers,
            f"ENTRY %{text.name('main')} ({params}) -> {result} {{",
            *(f"  {line}" for line in text.lines),
            "}",
            "",
        ]
    )


# ------------------------------------------------------------------------------------------ inputs


def inputs(text: str, seed: int, whole: bool = True) -> list[np.ndarray[Any, Any]]:
    """Arrays for the program's parameters, of their own types.

    Whole numbers are -1, 0, 1 and 2, the sparser the more of them are summed, so that every sum of
    a chain stays far below 2^24 and float32 adds in any order to the same bits.
    """
    module = parse(text)
    rng = np.random.default_rng(seed)
    thin = densities(module)
    arrays: list[np.ndarray[Any, Any]] = []
    for inst in module.main().params():
        assert isinstance(inst.shape, ArrayShape)
        dtype = FROM_HLO[inst.shape.dtype]
        if not whole:
            arrays.append(cast(rng.standard_normal(inst.shape.dims).astype(np.float32), dtype))
            continue
        drawn = rng.choice(np.array([-1, 1, 2], np.float32), inst.shape.dims)
        kept = rng.random(inst.shape.dims) < thin.get(inst.name, 0.75)
        arrays.append((drawn * kept).astype(numpy_type(dtype)))
    return arrays


def densities(module: Module) -> dict[str, float]:
    """For each parameter that is multiplied, the part of it that is not zero."""
    main = module.main()
    shapes = {x.name: x.shape for x in main.instructions}
    params = {x.name for x in main.params()}
    found: dict[str, float] = {}
    for inst in main.instructions:
        if inst.opcode != "dot":
            continue
        left = shapes[inst.operands[0]]
        assert isinstance(left, ArrayShape)
        depth = math.prod(left.dims[d] for d in inst.ints("lhs_contracting_dims"))
        drawn = [x for x in inst.operands if x in params]
        share = min(0.75, 8 / max(1, depth)) ** (1 / max(1, len(drawn)))
        found.update((x, min(share, found.get(x, 1.0))) for x in drawn)
    return found
