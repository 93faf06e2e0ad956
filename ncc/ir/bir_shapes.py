"""Checks of operands that the laws of opcodes are made of: counts, columns, element types, words.

Each yields what is wrong; only placed patterns (`Ap`) have counts to look at.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ncc.errors import NccError
from ncc.ir.bir import Ap, Imm, Inst, Operand
from ncc.ir.bir_matmul_laws import fault
from ncc.ir.bir_opcodes import key
from ncc.ir.bir_patterns import elements
from ncc.ir.data import FLOATS

Found = Iterator[NccError]


def count(ap: Operand) -> int:
    """Elements a partition."""
    return elements(ap.ap[1:]) if isinstance(ap, Ap) else 1


def parts(ap: Operand) -> int:
    return ap.ap[0][1] if isinstance(ap, Ap) else 1


def dtype(operand: Operand) -> str:
    return operand.dtype if isinstance(operand, (Ap, Imm)) else "int32"


def alike(inst: Inst, *operands: Operand) -> Found:
    """Equally many partitions and elements a partition."""
    first = operands[0]
    for other in operands[1:]:
        if (parts(first), count(first)) != (parts(other), count(other)):
            said = (
                f"{inst.opcode} walks {parts(first)} partitions of {count(first)} elements and "
                f"{parts(other)} of {count(other)}"
            )
            yield fault("NCC420", inst, said)


def column(inst: Inst, operand: Operand, rows: int, dtypes: Any = ("float32",)) -> Found:
    """An immediate, or one element a partition of a fitting dtype."""
    if not isinstance(operand, Ap):
        return
    if (parts(operand), count(operand)) != (rows, 1):
        said = (
            f"{inst.opcode} has a column of {parts(operand)} partitions of {count(operand)} "
            f"elements beside {rows} partitions"
        )
        yield fault("NCC420", inst, said)
    if operand.dtype not in dtypes:
        said = f"{inst.opcode} takes a column of {' or '.join(sorted(dtypes))}, not {operand.dtype}"
        yield fault("NCC413", inst, said)


def sized(inst: Inst, operand: Operand, number: int, what: str) -> Found:
    if count(operand) != number:
        said = f"{inst.opcode} has {count(operand)} elements where {what} takes {number}"
        yield fault("NCC420", inst, said)


def typed(inst: Inst, operand: Operand, dtypes: Any, what: str) -> Found:
    if dtype(operand) not in dtypes:
        yield fault("NCC413", inst, f"{what} of {inst.opcode} is {dtype(operand)}")


def same(inst: Inst, *operands: Operand) -> Found:
    kinds = {dtype(x) for x in operands}
    if len(kinds) > 1:
        said = f"{inst.opcode} has the dtypes {', '.join(sorted(kinds))} where one is needed"
        yield fault("NCC413", inst, said)


def worded(inst: Inst, name: str, words: Any) -> Found:
    if key(inst, name) not in words:
        said = f"{inst.opcode} has {name}={key(inst, name)}; it may be {', '.join(words)}"
        yield fault("NCC427", inst, said)


def whole(inst: Inst, *operands: Operand) -> Found:
    """One integer dtype, as bit operations need it."""
    yield from same(inst, *operands)
    for one in operands:
        if dtype(one) in FLOATS:
            yield fault("NCC413", inst, f"{inst.opcode} works on the bits of {dtype(one)}")


def rowwise(inst: Inst, *operands: Operand) -> Found:
    rows = {parts(x) for x in operands}
    if len(rows) > 1:
        yield fault("NCC420", inst, f"{inst.opcode} walks {sorted(rows)} partitions")
