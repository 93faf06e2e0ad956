"""One op at hand: its operands as arrays, its keys, and how results are written."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import attrs
import numpy as np
from numpy.typing import NDArray

from ncc import numerics, numerics_random
from ncc.errors import NccError
from ncc.interp.kernel_memory import Array, Memory, Moved, held_as
from ncc.ir.kernel import Access, Arg, Imm, Kernel, KernelOp, Reg
from ncc.ir.kernel_ops import OPS
from ncc.target import Target

LANES = 128


@attrs.define(eq=False)
class Core:
    """The state of one core besides its memory: registers, accumulators, generators."""

    kernel: Kernel
    memory: Memory
    target: Target
    say: Callable[[str], object]
    registers: dict[str, Any] = attrs.field(factory=dict[str, Any])
    act: NDArray[np.float32] = attrs.field(factory=lambda: np.full(LANES, np.nan, np.float32))
    dve: NDArray[np.float32] = attrs.field(factory=lambda: np.full(LANES, np.nan, np.float32))
    random: dict[str, NDArray[np.uint32]] = attrs.field(factory=dict[str, NDArray[np.uint32]])
    waits: KernelOp | None = None  # the meeting that it reached last

    @property
    def number(self) -> int:
        return self.kernel.core

    def generator(self, engine: str) -> NDArray[np.uint32]:
        """The random states of an engine, [lanes, generators, 6]; seed 0 before any was set."""
        name = "gpsimd" if engine == "gpsimd" else "vector"
        if name not in self.random:
            self.random[name] = numerics_random.seeded(0, 1 if name == "gpsimd" else 4)
        return self.random[name]


class Call:
    """One op that runs."""

    __slots__ = ("args", "core", "key", "op")

    def __init__(self, core: Core, op: KernelOp) -> None:
        self.core, self.op = core, op
        self.args: dict[str, Arg] = dict(op.args)
        self.key: dict[str, Any] = {**OPS[op.op].keys, **dict(op.keys)}

    # --- operands ---------------------------------------------------------------------------------

    def has(self, role: str) -> bool:
        return role in self.args

    def access(self, role: str) -> Access:
        found = self.args.get(role)
        if not isinstance(found, Access):
            raise NccError("NCC282", f"{self.op.op} has no tensor as {role}")
        return found

    def dtype(self, role: str) -> str:
        return held_as(self.access(role).dtype)

    def read(self, role: str) -> Array:
        """The elements of an operand, in its own shape; a view where it is one."""
        return self.core.memory.read(self.access(role), self.core.registers)

    def rows(self, role: str) -> Array:
        """The same as [partitions, elements]."""
        x = self.read(role)
        return x if x.ndim == 2 else x.reshape(x.shape[0], -1)

    def on(self, role: str, memory: str) -> bool:
        """Whether an operand lies in a memory."""
        found = self.args.get(role)
        return isinstance(found, Access) and self.core.memory.buffers[found.buffer].memory == memory

    def scalar(self, role: str, otherwise: float = 0.0) -> Array:
        """A float32 number, or a column of one a partition."""
        found = self.args.get(role)
        if found is None:
            return np.asarray(otherwise, np.float32)
        if isinstance(found, Imm):
            with np.errstate(all="ignore"):
                return np.asarray(found.value, np.float32)
        if isinstance(found, Reg):
            return np.asarray(self.core.registers.get(found.name, 0), np.float32)
        x = numerics.widen(self.read(role))
        return x.reshape(()) if x.size == 1 else x.reshape(x.shape[0], -1)

    def number(self, role: str, otherwise: float = 0) -> Any:
        """A plain number: an immediate, a register, or an access of one element."""
        found = self.args.get(role)
        if found is None:
            return otherwise
        if isinstance(found, Imm):
            return found.value
        if isinstance(found, Reg):
            return self.core.registers.get(found.name, 0)
        return self.read(role).reshape(-1)[0].item()

    def count(self) -> tuple[int, int]:
        """Partitions and elements a partition of the destination."""
        shape = self.access("dst").shape
        return shape[0], prod(shape[1:])

    # --- results ----------------------------------------------------------------------------------

    def store(self, role: str, values: Array) -> None:
        """Round once and write, in the order of the destination's own walk."""
        self.write(role, numerics.cast(values, self.dtype(role)))

    def write(self, role: str, values: Array) -> None:
        """Write elements of the destination's type."""
        access = self.access(role)
        to = self.core.memory.view(access, self.core.registers)
        if isinstance(to, Moved):
            to.put(values)
            return
        to = np.asarray(to)
        if values.shape == to.shape:
            to[...] = values
        elif values.size == to.size:
            to[...] = values.reshape(to.shape)
        elif values.ndim == 2 and values.shape == (to.shape[0], 1):
            to[...] = values.reshape(to.shape[0], *[1] * (to.ndim - 1))
        elif values.size == 1:
            to[...] = values.reshape(())
        else:
            raise self.unequal(role, values)

    def unequal(self, role: str, values: Array) -> NccError:
        said = (
            f"{self.op.op} makes {list(values.shape)} elements and {role} has the shape "
            f"{list(self.access(role).shape)}"
        )
        return NccError("NCC282", said, hint="give the operands equally many elements a partition")


def alike(a: Array, b: Array) -> tuple[Array, Array]:
    """Two operands in shapes that meet: as they are, or as [partitions, elements]."""
    if a.shape == b.shape or not a.ndim or not b.ndim:
        return a, b
    return a.reshape(a.shape[0], -1), b.reshape(b.shape[0], -1)


def against(x: Array, scalar: Array) -> Array:
    """A column with as many axes as the operand it meets."""
    if not scalar.ndim or scalar.ndim == x.ndim:
        return scalar
    if scalar.shape[1] == 1:
        return scalar.reshape(scalar.shape[0], *[1] * (x.ndim - 1))
    return scalar.reshape(x.shape)
