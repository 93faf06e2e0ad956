"""The streams of a kernel's cores as one stream, which one core runs.

Each core runs up to where it meets another, one core after the other; then all go on. Nothing is
lost by that, since between two meetings no core sees another's work, and a barrier leaves no
instruction. This is what a call of several functions means, and all that a chip without pairs of
cores can do with it: the program is right, and takes as long as one core needs for both.
"""

from __future__ import annotations

from collections.abc import Sequence

import attrs

from ncc.errors import NccError
from ncc.ir.bir import Inst
from ncc.ir.bir_opcodes import key
from ncc.ir.kernel_carriers import fault


@attrs.define
class Stream:
    """One core's instructions, and how far it is."""

    core: int
    insts: list[Inst]
    at: int = 0

    def go(self) -> list[Inst]:
        """What it runs until it meets somebody, or ends."""
        start = self.at
        while self.at < len(self.insts) and self.insts[self.at].opcode != "CoreBarrier":
            self.at += 1
        return self.insts[start : self.at]

    def stands(self) -> Inst | None:
        """The meeting that it waits for; None at its end."""
        return self.insts[self.at] if self.at < len(self.insts) else None


def woven(call: Inst, streams: Sequence[list[Inst]]) -> list[Inst]:
    """One stream of several; NCC396 when cores wait for one another."""
    cores = [Stream(number, insts) for number, insts in enumerate(streams)]
    found: list[Inst] = []
    gone: set[str] = set()
    while True:
        for one in cores:
            found += one.go()
        waiting = [(one, inst) for one in cores if (inst := one.stands()) is not None]
        if not waiting:
            break
        if len(waiting) < len(cores) or len({key(inst, "id") for _, inst in waiting}) > 1:
            raise alone(waiting[0][0].core, waiting[0][1])
        for one, inst in waiting:
            one.at += 1
            gone.add(inst.name)
    return [_without(inst, gone) for inst in found] if gone else found


def alone(core: int, inst: Inst) -> NccError:
    """NCC396: a core waits at a meeting that no other core comes to."""
    what = "core_barrier" if key(inst, "id") == 0 else "sendrecv"
    where = f" ({inst.origin})" if inst.origin.file else ""
    said = f"core {core} waits at a {what}{where} that no other core comes to"
    return fault("NCC396", inst, said, HINT)


HINT = "every core must reach the same core_barrier and sendrecv calls"


def _without(inst: Inst, gone: set[str]) -> Inst:
    if not any(name in gone for name, _ in inst.deps):
        return inst
    return attrs.evolve(inst, deps=tuple(x for x in inst.deps if x[0] not in gone))
