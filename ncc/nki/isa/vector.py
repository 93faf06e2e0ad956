"""Elementwise arithmetic: the vector and gpsimd engines."""

from __future__ import annotations

from typing import Any

from ncc.ir.kernel import Imm
from ncc.nki import operators
from ncc.nki.isa import constants as c
from ncc.nki.isa.calls import call, engine_of, ignoring, no_psum, wrong_engine
from ncc.nki.isa.operands import (
    INTS,
    WIDE_INTS,
    Tile,
    generation,
    lossy,
    not_both_psum,
    record,
    same,
    scalar,
    since,
    tile,
)
from ncc.nki.operators import ALU, ARITHMETIC, BITVEC, SIMULATED, UNARY
from ncc.nki.trace import Instruction, current, invalid, wrong_type

# what the scalar engine can do as a tensor_scalar, beside single operators
ACT_PAIRS = {("multiply", "add"), ("multiply", ""), ("add", "")}
ACT_SINGLE = frozenset({"abs", "rsqrt", "reciprocal", "square", "relu", "sqrt"})
ONLY_GPSIMD = frozenset({"power", "rsqrt"})


def bits(where: str, ops: tuple[str, ...], *operands: Any) -> bool:
    """Whether the operators work on bits: then all do, and every operand is an integer (NCC342)."""
    given = [op for op in ops if op]
    on_bits = [op for op in given if op in BITVEC]
    if not on_bits:
        return False
    rest = [op for op in given if op not in BITVEC and op != "bypass"]
    if rest:
        raise invalid(
            "NCC342",
            f"{where} cannot join {on_bits[0]}, which works on bits, and {rest[0]}, which computes"
            " in float32",
            "use one call for each",
        )
    for one in operands:
        if isinstance(one, Tile) and one.dtype not in INTS:
            raise wrong_type(
                "NCC342",
                f"{where} with {on_bits[0]} works on the bits of integers, {one.show()} is"
                f" {one.name}",
                "view the tile as nl.int32, or use an arithmetic operator",
            )
        if isinstance(one, Imm) and one.value % 1 != 0:  # nor is what is not finite
            raise wrong_type(
                "NCC342",
                f"{where} with {on_bits[0]} works on the bits of integers, was given {one.value}",
                "pass a whole number",
            )
    return True


def available(where: str, *ops: str) -> None:
    """The target and the machine at all have these operators (NCC347, NCC341)."""
    for op in ops:
        if op in ("abs_max", "abs_min"):
            since(where, 4, f"operator {op}")
        if op in SIMULATED and not current(where).simulated and not current(where).old:
            said = f"{where} cannot apply {op}: no engine has it"
            raise invalid("NCC341", said, "compute it with nl.mod, or with integers")


def arithmetic(where: str, *ops: str) -> None:
    for op in ops:
        if op in BITVEC:
            raise invalid(
                "NCC342",
                f"{where} computes in float32, {op} works on bits",
                "use nisa.tensor_scalar or nisa.tensor_tensor for it",
            )


def immediate(on_bits: bool, operand: Any) -> Any:
    """A number that a bit operator takes is a whole one."""
    if on_bits and isinstance(operand, Imm):
        return Imm(int(operand.value))
    return operand


@call
def tensor_tensor(
    dst: Any,
    data1: Any,
    data2: Any,
    op: Any,
    engine: Any = c.engine.unknown,
    name: str | None = None,
) -> Instruction:
    """dst = data1 op data2. Exact for int32 and uint32 tiles in SBUF, which run on gpsimd."""
    where = "tensor_tensor"
    to = tile(dst, where, "dst")
    one, two = tile(data1, where, "data1"), tile(data2, where, "data2")
    symbol = operators.symbol(op, where, "op", ALU - UNARY)
    same(where, to, one, two)
    not_both_psum(where, one, two)
    available(where, symbol)
    on_bits = bits(where, (symbol,), to, one, two)
    chosen = engine_of(engine, where, "vector", "gpsimd")
    tiles = (to, one, two)
    in_psum = any(t.psum for t in tiles)
    if chosen == "unknown":
        whole = all(t.dtype in WIDE_INTS for t in tiles)
        pool = symbol == "power" or (whole and not in_psum and not on_bits)
        if symbol == "power" and in_psum and current(where).old:
            pool = False
        chosen = "gpsimd" if pool else "vector"
    elif chosen == "vector" and symbol == "power" and not current(where).old:
        raise wrong_engine(f"{where} with power", "vector", "gpsimd")
    elif chosen == "gpsimd" and on_bits:
        raise wrong_engine(f"{where} with {symbol}", "gpsimd", "vector")
    if chosen == "gpsimd":
        no_psum(where, *tiles)
    elif not on_bits:
        lossy(where, one, two)
    args = {"dst": to, "data1": one, "data2": two}
    return record(where, args, {"op": symbol}, engine=chosen, name=name)


@call
def tensor_scalar(
    dst: Any,
    data: Any,
    op0: Any,
    operand0: Any,
    reverse0: bool = False,
    op1: Any = None,
    operand1: Any = None,
    reverse1: bool = False,
    engine: Any = c.engine.unknown,
    name: str | None = None,
) -> Instruction:
    """dst = (data op0 operand0) op1 operand1; an operand is a number or a column (P, 1)."""
    where = "tensor_scalar"
    to, source = tile(dst, where, "dst"), tile(data, where, "data")
    first = operators.symbol(op0, where, "op0", ALU)
    second = operators.optional(op1, where, "op1", ALU)
    same(where, to, source)
    left = _operand(operand0, where, "operand0", first, source)
    right = _operand(operand1, where, "operand1", second, source) if second else None
    available(where, first, second)
    on_bits = bits(where, (first, second), to, source, left, right)
    if not on_bits:
        lossy(where, source)
    chosen = _scalar_engine(engine, first, second, to, source, left, right)
    args = {
        "dst": to,
        "data": source,
        "operand0": immediate(on_bits, left),
        "operand1": immediate(on_bits, right),
    }
    keys = {
        "op0": first,
        "reverse0": bool(reverse0) and left is not None,
        "op1": second,
        "reverse1": bool(reverse1) and right is not None,
    }
    return record(where, args, keys, engine=chosen, name=name)


def _operand(value: Any, where: str, role: str, op: str, like: Tile) -> Tile | Imm | None:
    """The operand of one of the two operators; one that takes none is given None or 0."""
    if op in UNARY:
        return None
    if value is None:
        said = f"{where} needs {role} for {op}, was given None"
        raise wrong_type("NCC331", said, "pass a number or a column (P, 1)")
    return scalar(value, where, role, like)


def _scalar_engine(engine: Any, first: str, second: str, *operands: Any) -> str:
    where = "tensor_scalar"
    chosen = engine_of(engine, where, "vector", "scalar", "gpsimd")
    in_psum = any(isinstance(t, Tile) and t.psum for t in operands)
    only_pool = [op for op in (first, second) if op in ONLY_GPSIMD]
    alone = first in ACT_SINGLE and second in ("", "bypass")
    if chosen == "scalar":
        fits = (first, second) in ACT_PAIRS or alone
        if not fits or generation(current(where)) < 3:
            said = f"{where} with {first}" + (f" and {second}" if second else "")
            raise wrong_engine(said, "scalar", "vector", "gpsimd")
    if chosen == "vector" and only_pool and not current(where).old:
        raise wrong_engine(f"{where} with {only_pool[0]}", "vector", "gpsimd")
    if chosen == "gpsimd" and (first in BITVEC or second in BITVEC):
        raise wrong_engine(f"{where} with {first}", "gpsimd", "vector")
    if chosen == "unknown":
        chosen = "vector"
        if only_pool and in_psum:
            if alone and generation(current(where)) >= 3:
                chosen = "scalar"
            elif not current(where).old:
                chosen = "gpsimd"
        elif only_pool:
            chosen = "gpsimd"
    if chosen == "gpsimd":
        no_psum(f"{where} with {(only_pool or [first])[0]}", *operands)
    return chosen


@ignoring("dtype")
def scalar_tensor_tensor(
    dst: Any,
    data: Any,
    op0: Any,
    operand0: Any,
    op1: Any,
    operand1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    name: str | None = None,
) -> Instruction:
    """dst = (data op0 operand0) op1 operand1: operand0 a number or column, operand1 a full tile."""
    where = "scalar_tensor_tensor"
    to, source = tile(dst, where, "dst"), tile(data, where, "data")
    binary = ARITHMETIC - UNARY
    first = operators.symbol(op0, where, "op0", binary | BITVEC)
    second = operators.symbol(op1, where, "op1", binary | BITVEC)
    arithmetic(where, first, second)
    available(where, first, second)
    left, right = scalar(operand0, where, "operand0", source), tile(operand1, where, "operand1")
    same(where, to, source, right)
    not_both_psum(where, source, right)
    lossy(where, source, right)
    args = {"dst": to, "data": source, "operand0": left, "operand1": right}
    keys = {
        "op0": first,
        "op1": second,
        "reverse0": bool(reverse0),
        "reverse1": bool(reverse1),
    }
    return record(where, args, keys, name=name)


@call
def reciprocal(dst: Any, data: Any, name: str | None = None) -> Instruction:
    """dst = 1 / data, more precise than the scalar engine's."""
    where = "reciprocal"
    to, source = tile(dst, where, "dst"), tile(data, where, "data")
    same(where, to, source)
    lossy(where, source)
    return record(where, {"dst": to, "data": source}, name=name)
