"""Folds and scans along the free axis, and the fold over partitions."""

from __future__ import annotations

from operator import index
from typing import Any

from ncc.ir.kernel import Imm
from ncc.nki import operators
from ncc.nki.isa import constants as c
from ncc.nki.isa import written
from ncc.nki.isa.calls import call, reduce_name
from ncc.nki.isa.operands import (
    SBUF,
    WIDE_INTS,
    Tile,
    column,
    lossy,
    not_both_psum,
    optional_scalar,
    record,
    same,
    same_free,
    same_parts,
    scalar,
    short,
    tile,
)
from ncc.nki.isa.vector import arithmetic, available, bits
from ncc.nki.operators import ALU, REDUCE, UNARY
from ncc.nki.trace import Instruction, invalid, wrong_shape, wrong_type

FOLDS = frozenset({"add", "multiply", "maximum", "minimum"})
COMMUTES = FOLDS  # for these the order of the operands means nothing


@call
def tensor_reduce(
    dst: Any,
    op: Any,
    data: Any,
    axis: Any,
    negate: bool = False,
    keepdims: bool = False,
    name: str | None = None,
) -> Instruction:
    """dst = the fold of data over its last free dimensions, which `axis` numbers."""
    where = "tensor_reduce"
    to, source = tile(dst, where, "dst"), tile(data, where, "data")
    symbol = operators.symbol(op, where, "op", REDUCE | {"abs_max", "abs_min"})
    if symbol in ("abs_max", "abs_min"):
        said = f"{where} cannot fold with {symbol}"
        raise invalid("NCC341", said, "only nisa.activate2 folds with it")
    axes = _axes(where, axis, source)
    same_parts(where, to, source)
    folded = 1
    for k in axes:
        folded *= source.shape[k]
    left = source.free // folded if folded else 0
    if to.free != left:
        raise wrong_shape(
            "NCC334",
            f"{where} of {source.show()} over axis {show(axes)} leaves {left} elements a partition,"
            f" {to.show()} has {to.free}",
            f"allocate dst with {left}",
        )
    if not bits(where, (symbol,), to, source):
        lossy(where, source)
    keys = {"op": symbol, "axis": axes, "negate": bool(negate)}
    return record(where, {"dst": to, "data": source}, keys, name=name)


def show(axes: tuple[int, ...]) -> str:
    return str(axes[0]) if len(axes) == 1 else str(axes)


def _axes(where: str, axis: Any, source: Tile) -> tuple[int, ...]:
    """The dimensions that are folded: trailing ones, never the partitions (NCC349)."""
    rank = len(source.shape)
    given: list[Any] = list(axis) if hasattr(axis, "__iter__") else [axis]
    found: set[int] = set()
    for one in given:
        try:
            k = index(one)
        except TypeError:
            said = f"{where} takes axis as numbers of dimensions, was given {short(one)}"
            raise wrong_type("NCC349", said, "pass an int, or a tuple of ints") from None
        if not -rank <= k < rank:
            said = f"{where} takes axis below {rank}, was given {k}: {source.show()} has {rank}"
            raise invalid("NCC349", f"{said} dimensions", f"fold 1 to {rank - 1}")
        found.add(k % rank)
    axes = tuple(sorted(found))
    if 0 in axes:
        raise invalid(
            "NCC349",
            f"{where} folds free dimensions, axis 0 of {source.show()} is the partitions",
            "use nisa.tensor_partition_reduce, or nisa.nc_matmul with a tile of ones",
        )
    if axes != tuple(range(rank - len(axes), rank)):
        raise invalid(
            "NCC349",
            f"{where} folds the last dimensions, axis {show(axes)} of {source.show()} does not end"
            f" at {rank - 1}",
            "permute a view of data so that they are last",
        )
    return axes


@call
def tensor_partition_reduce(dst: Any, op: Any, data: Any, name: str | None = None) -> Instruction:
    """dst's first partition = the fold of data over its partitions."""
    where = "tensor_partition_reduce"
    to, source = tile(dst, where, "dst", SBUF), tile(data, where, "data", SBUF)
    among = frozenset({"add", "average", "maximum", "bitwise_and", "bitwise_or"})
    symbol = operators.symbol(op, where, "op", among)
    same_free(where, to, source)
    bits(where, (symbol,), to, source)
    if to.parts > 1:
        to.access = written.partitions(to.access, 0, 1)
        to.parts, to.shape = 1, to.access.shape
    return record(where, {"dst": to, "data": source}, {"op": symbol}, name=name)


@call
def tensor_scalar_reduce(
    dst: Any,
    data: Any,
    op0: Any,
    operand0: Any,
    reduce_op: Any,
    reduce_res: Any = None,
    reverse0: bool = False,
    reduce_cmd: Any = c.reduce_cmd.reset_reduce,
    reduce_init: Any = None,
    reduce_res_negate: bool = False,
    name: str | None = None,
) -> Instruction:
    """dst = data op0 operand0; reduce_res = the fold of that over all free elements."""
    where = "tensor_scalar_reduce"
    to, source = tile(dst, where, "dst"), tile(data, where, "data")
    symbol = operators.symbol(op0, where, "op0", ALU - UNARY)
    arithmetic(where, symbol)
    available(where, symbol)
    fold = operators.symbol(reduce_op, where, "reduce_op", FOLDS)
    same(where, to, source)
    if reverse0 and symbol not in COMMUTES:
        said = f"{where} has no reverse0, {symbol} was given reverse0=True"
        raise invalid("NCC341", said, "use nisa.tensor_scalar and nisa.tensor_reduce")
    result = None if reduce_res is None else tile(reduce_res, where, "reduce_res")
    column(where, result, source)
    command = reduce_name(reduce_cmd, where)
    start = optional_scalar(reduce_init, where, "reduce_init", source)
    loads(where, command, start, "reduce_init")
    lossy(where, source)
    args = {
        "dst": to,
        "reduce_res": result,
        "data": source,
        "operand0": scalar(operand0, where, "operand0", source),
        "reduce_init": start if command == "load_reduce" else None,
    }
    keys = {
        "op0": symbol,
        "reduce_op": fold,
        "reduce_cmd": command,
        "reduce_res_negate": bool(reduce_res_negate),
    }
    return record(where, args, keys, name=name)


def loads(where: str, command: str, start: Tile | Imm | None, role: str) -> None:
    """`load_reduce` begins with a number that it is given (NCC358)."""
    if command == "load_reduce" and start is None:
        said = f"{where} with reduce_cmd.load_reduce needs {role}, was given None"
        raise invalid("NCC358", said, "pass a number, or use reduce_cmd.reset_reduce")


@call
def tensor_scalar_cumulative(
    dst: Any,
    src: Any,
    op0: Any,
    op1: Any,
    imm0: Any,
    imm1: Any = None,
    reduce_cmd: Any = c.reduce_cmd.reset_reduce,
    name: str | None = None,
) -> Instruction:
    """r = (src[i] op0 imm0) op1 r, element after element; dst[i] = r."""
    where = "tensor_scalar_cumulative"
    to, source = tile(dst, where, "dst"), tile(src, where, "src")
    first = operators.symbol(op0, where, "op0", ALU - UNARY)
    second = operators.symbol(op1, where, "op1", FOLDS | {"subtract"})
    arithmetic(where, first)
    available(where, first)
    same(where, to, source)
    for one in (to, source):
        if one.dtype in WIDE_INTS:
            said = f"{where} takes no 32-bit integers, {one.show()} is {one.name}"
            raise wrong_type("NCC338", said, "copy them into a float32 tile")
    command = reduce_name(reduce_cmd, where)
    start = optional_scalar(imm1, where, "imm1", source)
    loads(where, command, start, "imm1")
    args = {
        "dst": to,
        "src": source,
        "imm0": scalar(imm0, where, "imm0", source),
        "imm1": start if command == "load_reduce" else None,
    }
    keys = {"op0": first, "op1": second, "reduce_cmd": command}
    return record(where, args, keys, name=name)


@call
def tensor_tensor_scan(
    dst: Any,
    data0: Any,
    data1: Any,
    initial: Any,
    op0: Any,
    op1: Any,
    reverse0: bool = False,
    reverse1: bool = False,
    name: str | None = None,
) -> Instruction:
    """r = (data0[i] op0 r) op1 data1[i], element after element from `initial`; dst[i] = r."""
    where = "tensor_tensor_scan"
    to = tile(dst, where, "dst")
    one, two = tile(data0, where, "data0"), tile(data1, where, "data1")
    first = operators.symbol(op0, where, "op0", ALU - UNARY)
    second = operators.symbol(op1, where, "op1", ALU - UNARY)
    arithmetic(where, first, second)
    available(where, first, second)
    same(where, to, one, two)
    not_both_psum(where, one, two)
    lossy(where, one, two)
    start = scalar(initial, where, "initial", one)
    args = {"dst": to, "data0": one, "data1": two, "initial": start}
    keys = {
        "op0": first,
        "op1": second,
        "reverse0": bool(reverse0),
        "reverse1": bool(reverse1),
    }
    return record(where, args, keys, name=name)
