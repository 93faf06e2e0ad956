"""The records of registers and branches, which every engine has.

A branch names a block; `resolved` turns that into the bytes from its record to the block's first,
once the streams are there. Of the two ways of a comparison one is the next block, or a second
branch follows.

A loop that several engines run together is, in each of their streams, the same blocks with the same
branches on a register of the engine's own. Counters go on counting from turn to turn, and so a
threshold would have to grow. At the end of a turn all engines meet therefore: each waits until its
own DMAs are complete and raises a counter of the meeting; when all have, one of them clears the
counters (EventSemaphoreRangeClear) and sets an event that lets the others go on. A turn then counts
from zero, like a straight line.
"""

from __future__ import annotations

from typing import Any

from ncc.encode.codes import ALU, DTYPE
from ncc.encode.record_parts import Context, Encoder, Fields, Record, fields, refusal
from ncc.encode.values import word_of
from ncc.ir.bir import Ap, Imm, Inst, Operand, Reg
from ncc.ir.bir_opcodes import key
from ncc.ir.data import size_of
from ncc.ir.isa import At
from ncc.numerics_registers import COUNT, NEGATED

COMPARE = {"LT": 1, "LE": 2, "EQ": 3, "NE": 4, "GE": 5, "GT": 6}
WITH_REGISTER = 8  # added to the code of a comparison
SCRATCH = COUNT  # a register for immediates where a record takes none
RELATIVE = 3  # target_mode
INT = DTYPE["int32"]
TARGET = "target"


def bits(operand: Imm) -> int:
    return int(operand.value) & 0xFFFFFFFF


def placed(to: int, operand: Imm) -> Record:
    """A register takes a number."""
    made: dict[str, Any] = {"count": 1, "dtype": INT, "source": 1, "imm0": bits(operand)}
    if to:
        made["dst_regs"] = eight(to)
    return ("RegisterMove", fields(**made))


def eight(register: int) -> bytes:
    return bytes((register, *bytes(7)))


def register(ctx: Context, inst: Inst, operand: Operand, before: list[Record]) -> int:
    """The register of an operand; an immediate is moved to one first."""
    if isinstance(operand, Reg):
        number = ctx.register(operand.name)
        if number >= SCRATCH:
            raise refusal(inst, f"needs register {number + 1}; a program has {SCRATCH} of its own")
        return number
    if isinstance(operand, Imm):
        before.append(placed(SCRATCH, operand))
        return SCRATCH
    raise refusal(inst, f"has a {type(operand).__name__} where it takes a register")


def move(ctx: Context, inst: Inst) -> list[Record]:
    to, source = register(ctx, inst, inst.outs[0], []), inst.ins[0]
    if isinstance(source, Imm):
        return [placed(to, source)]
    made: dict[str, Any] = {"count": 1, "dtype": INT}
    if from_ := register(ctx, inst, source, []):
        made["src_regs"] = eight(from_)
    if to:
        made["dst_regs"] = eight(to)
    return [("RegisterMove", fields(**made))]


def alu(ctx: Context, inst: Inst) -> list[Record]:
    word = str(key(inst, "op"))
    if word not in ALU or key(inst, "is_64bit"):
        raise refusal(inst, f"does {word} on registers, which has no code")
    before: list[Record] = []
    left, right = inst.ins
    kind = DTYPE["uint32"] if getattr(left, "dtype", "") == "uint32" else INT
    first = register(ctx, inst, left, before)
    second = {"source": 1, "imm": int(right.value)} if isinstance(right, Imm) else {}
    if not second:
        second = {"src1_lo": register(ctx, inst, right, [])}
    made = fields(
        op=ALU[word],
        src_dtype=kind,
        dst_dtype=kind,
        src0_lo=first,
        dst_lo=register(ctx, inst, inst.outs[0], []),
        **second,
    )
    return [*before, ("RegisterAlu", made)]


def element(ctx: Context, inst: Inst, operand: Operand) -> dict[str, int]:
    """One word in memory: a DRAM variable, or variable 0 and an address on chip."""
    if not isinstance(operand, Ap) or size_of(operand.dtype) != 4:
        raise refusal(inst, "moves something else than 4 bytes between memory and a register")
    at = ctx.operands.dma(inst, operand)
    where = {"var": 0, "offset": word_of(at)} if isinstance(at, At) else {}
    if not where and not isinstance(at, At):
        where = {"var": at.var, "offset": at.byte}
    return {"dtype": DTYPE[operand.dtype], "num0": 1, "num1": 1, **where}


def load(ctx: Context, inst: Inst) -> list[Record]:
    to = register(ctx, inst, inst.outs[0], [])
    return [("TensorLoadVar", fields(reg0=to, **element(ctx, inst, inst.ins[0])))]


def save(ctx: Context, inst: Inst) -> list[Record]:
    before: list[Record] = []
    source = register(ctx, inst, inst.ins[0], before)
    made = fields(reg0=source, **element(ctx, inst, inst.outs[0]))
    return [*before, ("TensorStoreVar", made)]


def jump(target: str) -> Record:
    return ("CompareAndBranch", (*fields(dtype=INT, target_mode=RELATIVE), (TARGET, target)))


def compare(inst: Inst, word: str, where: str, left: int, right: Operand, number: int) -> Record:
    pointed = not isinstance(right, Imm)
    made = fields(
        compare=COMPARE[word] + WITH_REGISTER * pointed,
        dtype=INT,
        target_mode=RELATIVE,
        left=left,
        right=number,
        imm=0 if not isinstance(right, Imm) else int(right.value),
    )
    return ("CompareAndBranch", (*made, (TARGET, where)))


def branch(ctx: Context, inst: Inst) -> list[Record]:
    """To `on_true` where the comparison holds; the next block needs no branch."""
    word = str(key(inst, "comp_op")).removeprefix("IS_")[:2]
    if word not in COMPARE:
        raise refusal(inst, f"compares by {key(inst, 'comp_op')}, which has no code")
    before: list[Record] = []
    left, right = inst.ins
    one = register(ctx, inst, left, before)
    number = 0 if isinstance(right, Imm) else register(ctx, inst, right, [])
    yes, no = str(key(inst, "on_true")), str(key(inst, "on_false"))
    if yes == ctx.following:
        return [*before, compare(inst, NEGATED[word], no, one, right, number)]
    found = [*before, compare(inst, word, yes, one, right, number)]
    return found if no == ctx.following else [*found, jump(no)]


def always(ctx: Context, inst: Inst) -> list[Record]:
    """A branch to the next block vanishes; what waits there waits in a Nop."""
    target = str(key(inst, "target"))
    return [("Nop", ())] if target == ctx.following else [jump(target)]


def resolved(made: Fields, target: int) -> Fields:
    """The fields of a branch with the bytes to its block for the block's name."""
    kept = [(k, v) for k, v in made if k != TARGET]
    if target:
        kept.append((TARGET, target))
    return tuple(sorted(kept))


ENCODERS: dict[str, Encoder] = {
    "RegisterMove": move,
    "RegisterAlu": alu,
    "TensorLoad": load,
    "TensorSave": save,
    "CompareAndBranch": branch,
    "UnconditionalBranch": always,
}
