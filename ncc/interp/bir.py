"""What BIR means at every stage, from tiles in loops to placed bytes.

Instructions run in program order: dependences, waits and queues only say what else would be right.
A matmul adds passes of products to PSUM in float32; whether it begins a sum is said by `accumulate`
until mm-acc-flags, by its flags from then on. Everything else computes in float32 and rounds once,
when it writes. It is an error when a byte that nothing wrote reaches an output. Several cores run
in turn, each up to where it meets the others (`ncc.interp.bir_cores`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ncc import numerics
from ncc.errors import NccError
from ncc.interp import (
    bir_compute,
    bir_control,
    bir_cores,
    bir_kernel,
    bir_lanes,
    bir_move,
    bir_rows,
)
from ncc.interp import bir_psum as psum
from ncc.interp.bir_memory import Bits, Memory, Slot, every
from ncc.interp.bir_values import Array, Env, Meaning, fitted
from ncc.ir.bir import Block, Imm, Inst, Module, Reg
from ncc.ir.bir_opcodes import OPCODES
from ncc.ir.core import Cores, modules_of
from ncc.target import Target

Watch = dict[str, Array]


def run(
    program: Module | Cores, target: Target, inputs: Sequence[Array], watch: Watch | None = None
) -> list[Array]:
    """The outputs for `inputs`; `watch`, if given, receives every set's values by its name."""
    machines = [Interpreter(module, target) for module in modules_of(program)]
    func, memory = machines[0].module.main, machines[0].memory
    takes = [of for of in func.sets if of.kind == "ExternalInput"]
    for of, given in zip(takes, inputs, strict=True):
        held = numerics.cast(np.asarray(given), of.declared or of.dtype)
        memory.fill(of, numerics.cast(held, of.dtype).reshape(of.shape))
    if len(machines) > 1:
        together = bir_cores.Together()
        for core, machine in enumerate(machines):
            machine.join(core, together)
        together.run([partial(bir_control.run, m, m.module.main) for m in machines])
    else:
        bir_control.run(machines[0], func)
    outputs: list[Array] = []
    for of in func.sets:
        if of.kind == "ExternalOutput":
            values, written = memory.whole(of)
            if not written.all():
                at_ = tuple(int(i) for i in np.argwhere(~written)[0])
                said = (
                    f"{int((~written).sum())} elements of the output {of.name} hold bytes that "
                    f"nothing wrote, the first at {at_}"
                )
                raise NccError("NCC430", said, of.origin.place(of.name))
            outputs.append(values)
    if watch is not None:
        for m in reversed(machines):
            watch.update({of.name: m.memory.whole(of)[0] for of in m.module.main.sets})
    return outputs


class Interpreter:
    """One run: memory, and the accumulators that no address names."""

    def __init__(self, module: Module, target: Target) -> None:
        self.module, self.target = module, target
        self.memory = Memory(module.main.sets, target)
        self.flags = any(
            k == "accumulation_flag"
            for block in module.main.blocks
            for inst in block.insts
            for k, _ in inst.keys
        )
        self.sums: dict[str, tuple[Array, Bits]] = {}
        self.registers: dict[tuple[str, str], int] = {}  # by engine and name
        self.random: dict[str, Array] = {}  # generators, by engine
        self.core = 0
        self.together: bir_cores.Together | None = None  # the cores, when there are several

    def join(self, core: int, together: bir_cores.Together) -> None:
        """Become one of several cores, which share memory."""
        self.core, self.together = core, together
        together.share(self.memory, self.module.main.sets)

    def block(self, block: Block, env: Env) -> None:
        for inst in block.insts:
            if inst.axis is not None:
                name, low, high, stride = inst.axis
                for value in range(low, high, stride):
                    env[name] = value
                    for body in inst.blocks:
                        self.block(body, env)
                env.pop(name, None)
            elif inst.blocks:
                bir_control.region(self, inst, env)
            else:
                self.step(inst, env)

    def step(self, inst: Inst, env: Env) -> None:
        meaning = MEANING.get(inst.opcode)
        if meaning is None:
            if OPCODES[inst.opcode].family in ("sync", "terminator") or inst.opcode in QUIET:
                return
            said = f"{inst.opcode} has no meaning here yet; a later issue brings it"
            raise NccError("NCC433", said, inst.origin.place(inst.name))
        slot = self.memory.slot
        ins = [x if isinstance(x, (Imm, Reg)) else slot(x, env, inst) for x in inst.ins]
        outs = [x if isinstance(x, Reg) else slot(x, env, inst) for x in inst.outs]
        if self.flags and inst.engine != "PE":
            for each in ins:
                if isinstance(each, Slot) and each.place.memory == "PSUM":
                    psum.check_read(each, inst)
        meaning(self, inst, ins, outs[0] if outs else None, env)

    # ---- accumulators ---------------------------------------------------------------------------

    def sum_of(self, engine: str, count: int) -> tuple[Array, Bits]:
        """The accumulators of the first partitions of an engine, and which are known."""
        total, known = self._sums(engine)
        return total[:count], known[:count]

    def set_sum(self, engine: str, total: Array, known: Bits) -> None:
        values, marks = self._sums(engine)
        values[: len(total)], marks[: len(total)] = total, known

    def _sums(self, engine: str) -> tuple[Array, Bits]:
        found = self.sums.get(engine)
        if found is None:
            rows = self.target.partitions
            found = np.full(rows, np.nan, np.float32), np.zeros(rows, np.bool_)
            self.sums[engine] = found
        return found

    # ---- results --------------------------------------------------------------------------------

    def store(self, inst: Inst, out: Slot, value: Array, sources: Sequence[Slot | Imm]) -> None:
        """Write a result, rounded once, with the shadow of what it was made of."""
        values = numerics.cast(value, out.dtype)
        shape = out.values.shape
        out.values[...] = values if values.shape == shape else values.reshape(shape)
        self.mark(inst, out, sources)

    def mark(self, inst: Inst, out: Slot, sources: Sequence[Slot | Imm]) -> None:
        known = self.memory.known
        mask = None
        for each in sources:
            if not isinstance(each, Imm) and not known(each):
                bits = fitted(every(each.shadow), out)
                mask = bits if mask is None else mask & bits
        self.memory.wrote(out, mask)
        self.foreign(inst, out)

    def foreign(self, inst: Inst, out: Slot) -> None:
        """An engine other than PE wrote: no group of matmuls is there any more."""
        if self.flags and inst.engine != "PE" and out.place.memory == "PSUM":
            psum.foreign(out)


MEANING: dict[str, Meaning] = {
    **bir_move.MEANING,
    **bir_compute.MEANING,
    **bir_rows.MEANING,
    **bir_lanes.MEANING,
    **bir_control.MEANING,
    **bir_cores.MEANING,
    **bir_kernel.MEANING,
}
QUIET = {"LoadActFuncSet"}  # tables that the functions of `numerics` do not need
