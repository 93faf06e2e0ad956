"""Functions of one operand: the scalar engine, and the exponential of trn3's vector engine."""

from __future__ import annotations

from typing import Any

from ncc.ir.kernel import Imm
from ncc.nki import operators
from ncc.nki.isa import constants as c
from ncc.nki.isa.calls import call, reduce_name
from ncc.nki.isa.folds import loads
from ncc.nki.isa.operands import (
    Tile,
    column,
    generation,
    lossy,
    optional_scalar,
    record,
    same,
    scalar,
    since,
    tile,
)
from ncc.nki.operators import ACTIVATIONS
from ncc.nki.trace import Instruction, current, invalid, wrong_type

# activate2 does one of these pairs before the function
PAIRS = {
    ("multiply", "add"),
    ("multiply", "subtract"),
    ("multiply", "bypass"),
    ("add", "bypass"),
    ("subtract", "bypass"),
    ("bypass", "bypass"),
}


@call
def activation(
    dst: Any,
    op: Any,
    data: Any,
    bias: Any = None,
    scale: Any = 1.0,
    reduce_op: Any = None,
    reduce_res: Any = None,
    reduce_cmd: Any = c.reduce_cmd.idle,
    name: str | None = None,
) -> Instruction:
    """dst = op(data × scale + bias); with a reduce_cmd also a sum over the free elements."""
    command = reduce_name(reduce_cmd, "activation")
    return _activate("activation", dst, op, data, bias, scale, reduce_op, reduce_res, command, name)


@call
def activation_reduce(
    dst: Any,
    op: Any,
    data: Any,
    reduce_op: Any,
    reduce_res: Any,
    bias: Any = None,
    scale: Any = 1.0,
    name: str | None = None,
) -> Instruction:
    """`activation` whose sum starts at 0 and is written: the older form."""
    where, command = "activation_reduce", "reset_reduce"
    return _activate(where, dst, op, data, bias, scale, reduce_op, reduce_res, command, name)


def _activate(
    where: str,
    dst: Any,
    op: Any,
    data: Any,
    bias: Any,
    scale: Any,
    reduce_op: Any,
    reduce_res: Any,
    command: str,
    name: str | None,
) -> Instruction:
    to, source = tile(dst, where, "dst"), tile(data, where, "data")
    symbol = operators.symbol(op, where, "op", ACTIVATIONS)
    same(where, to, source)
    fold = operators.optional(reduce_op, where, "reduce_op", frozenset({"add"}))
    result = None if reduce_res is None else tile(reduce_res, where, "reduce_res")
    column(where, result, source)
    if command in ("reduce", "reset_reduce", "load_reduce") and not fold:
        fold = "add"
    if command == "load_reduce":
        said = f"{where} has no number to start from: reduce_cmd.load_reduce"
        raise invalid("NCC358", said, "use reduce_cmd.reset_reduce")
    factor = optional_scalar(scale, where, "scale", source)
    if isinstance(factor, Tile) and factor.dtype != "float32":
        said = f"{where} takes scale as a number or a float32 column, {factor.show()} is"
        raise wrong_type("NCC338", f"{said} {factor.name}", "allocate the column as nl.float32")
    added = _bias(where, bias, source, symbol)
    lossy(where, source)
    if isinstance(factor, Imm) and factor.value == 1:
        factor = None
    args = {"dst": to, "reduce_res": result, "data": source, "bias": added, "scale": factor}
    keys = {"op": symbol, "reduce_op": fold, "reduce_cmd": command}
    return record("activation", args, keys, name=name)


def _bias(where: str, bias: Any, source: Tile, symbol: str) -> Tile | Imm | None:
    """What is added: nothing for None and 0; on trn1 it must be a column."""
    added = optional_scalar(bias, where, "bias", source)
    old = generation(current(where)) < 3
    if isinstance(added, Imm):
        if added.value == 0:
            return None
        if old:
            said = f"{where} on trn1 takes bias as a column (P, 1), was given {added.value}"
            raise wrong_type("NCC346", said, "memset a column with it")
    if isinstance(added, Tile):
        if added.name == "tfloat32":
            said = f"{where} takes bias of any type but tfloat32, {added.show()} is"
            raise wrong_type("NCC338", f"{said} tfloat32", "allocate the column as nl.float32")
        if old and symbol == "reciprocal":
            said = f"{where} of reciprocal on trn1 takes no bias, was given {added.show()}"
            raise invalid("NCC341", said, "add it with nisa.tensor_scalar first")
    return added


@call
def activate2(
    dst: Any,
    op: Any,
    data: Any,
    imm0: Any,
    imm1: Any,
    op0: Any,
    op1: Any,
    relu_param: float = 0.0,
    reverse0: bool = False,
    reverse1: bool = False,
    reduce_op: Any = None,
    reduce_res: Any = None,
    reduce_cmd: Any = c.reduce_cmd.idle,
    name: str | None = None,
) -> Instruction:
    """dst = op((data op0 imm0) op1 imm1), on trn3."""
    where = "activate2"
    since(where, 4, hint="use nisa.activation, or ask nisa.get_nc_version() before the call")
    to, source = tile(dst, where, "dst"), tile(data, where, "data")
    symbol = operators.symbol(op, where, "op", ACTIVATIONS)
    some = frozenset({"multiply", "add", "subtract", "bypass"})
    first = "bypass" if op0 is None else operators.symbol(op0, where, "op0", some)
    second = "bypass" if op1 is None else operators.symbol(op1, where, "op1", some)
    if (first, second) not in PAIRS:
        said = f"{where} has no pair {first}, {second} before the function"
        raise invalid("NCC341", said, "multiply comes first, then add or subtract; or one of them")
    same(where, to, source)
    among = frozenset({"add", "maximum", "minimum", "abs_max", "abs_min"})
    fold = operators.optional(reduce_op, where, "reduce_op", among)
    result = None if reduce_res is None else tile(reduce_res, where, "reduce_res")
    column(where, result, source)
    lossy(where, source)
    args = {
        "dst": to,
        "reduce_res": result,
        "data": source,
        "imm0": scalar(0.0 if imm0 is None else imm0, where, "imm0", source),
        "imm1": scalar(0.0 if imm1 is None else imm1, where, "imm1", source),
    }
    keys = {
        "op": symbol,
        "op0": first,
        "op1": second,
        "relu_param": float(relu_param),
        "reverse0": bool(reverse0),
        "reverse1": bool(reverse1),
        "reduce_op": fold,
        "reduce_cmd": reduce_name(reduce_cmd, where),
    }
    return record(where, args, keys, name=name)


@call
def exponential(
    dst: Any,
    src: Any,
    max_value: Any = 0.0,
    reduce_res: Any = None,
    reduce_cmd: Any = c.reduce_cmd.idle,
    reduce_init: Any = 0.0,
    name: str | None = None,
) -> Instruction:
    """dst = e^(src − max_value), on trn3; with a reduce_cmd also its sum."""
    where = "exponential"
    since(where, 4, hint="use nisa.activation with nl.exp and a negative bias")
    to, source = tile(dst, where, "dst"), tile(src, where, "src")
    same(where, to, source)
    result = None if reduce_res is None else tile(reduce_res, where, "reduce_res")
    column(where, result, source)
    command = reduce_name(reduce_cmd, where)
    start = optional_scalar(reduce_init, where, "reduce_init", source)
    loads(where, command, start, "reduce_init")
    args = {
        "dst": to,
        "reduce_res": result,
        "src": source,
        "max_value": optional_scalar(max_value, where, "max_value", source),
        "reduce_init": start if command == "load_reduce" else None,
    }
    return record(where, args, {"reduce_cmd": command}, name=name)
