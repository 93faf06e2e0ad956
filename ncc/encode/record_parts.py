"""What the encoders of all engines share: fields, operations, the two sides of a record."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ncc.encode.codes import ALU, GENERAL_BITVEC
from ncc.encode.operands import Operands
from ncc.errors import NccError
from ncc.ir.bir import Inst
from ncc.ir.bir_opcodes import key
from ncc.ir.isa import Band
from ncc.target import Target

Fields = tuple[tuple[str, Any], ...]
Record = tuple[str, Fields]  # mnemonic and fields
Encoder = Callable[["Context", Inst], list[Record]]


class Context:
    """What the functions share: the target and the operands."""

    def __init__(self, target: Target, operands: Operands) -> None:
        self.target, self.operands = target, operands
        self.gen = target.gen
        self.following = ""  # the block behind the one that is encoded
        self.registers: dict[str, int] = {}

    def register(self, name: str) -> int:
        """The number of a register: its name says it from alloc-regs on. Before, they count up in
        the order in which the program names them."""
        if name[0] == "r" and name[1:].isdecimal():
            return int(name[1:])
        return self.registers.setdefault(name, len(self.registers))


def banded(band: Band) -> Fields:
    """The fields of a record with nothing but an event band of its own."""
    return (("band", band),)


def fields(**values: Any) -> Fields:
    """Fields as a record has them: sorted, and without zeros."""
    return tuple([(k, values[k]) for k in sorted(values) if values[k]])


def refusal(inst: Inst, said: str, hint: str = "") -> NccError:
    return NccError("NCC606", said, inst.origin.place(inst.name), hint)


def moved(ctx: Context, inst: Inst, **more: Any) -> Fields:
    """Source and destination as the four-dimensional records have them."""
    src = ctx.operands.tensor(inst, inst.ins[0])
    dst = ctx.operands.tensor(inst, inst.outs[0])
    return fields(
        src=src.at,
        dst=dst.at,
        in_dtype=src.tag,
        out_dtype=dst.tag,
        nchan=src.channels,
        **more,
    )


def operation(inst: Inst, name: str) -> int:
    word = str(key(inst, name))
    if word not in ALU:
        raise refusal(inst, f"does {word}, which has no code")
    return ALU[word]


def is_bitwise(code: int) -> bool:
    return code != 0 and code in GENERAL_BITVEC


def command(inst: Inst, name: str) -> int:
    """The code of an accumulator command."""
    word = str(key(inst, name))
    if word not in COMMANDS:
        raise refusal(inst, f"has the accumulator command {word}, which has no code")
    return COMMANDS[word]


COMMANDS = {"Idle": 0, "Zero": 1, "ZeroAccumulate": 3, "AddAccumulate": 2, "LoadAccumulate": 4}
