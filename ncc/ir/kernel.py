"""A traced NKI kernel: what one run of its Python recorded, one op a call, over buffers.

It is a family of Penguin's: one `KernelNode` of a Penguin function holds a `Kernel` for each core.
A kernel owns `Buffer`s (one for each `nl.ndarray`, parameters included) and a body of `KernelOp`s
in program order; `DeviceFor` and `DeviceWhile` are loops that the machine runs, an `AxisLoop` is
one that the compiler unrolls. Operands are `Access`es, `[step, num]` pairs over a buffer, as in
BIR; `ncc.ir.kernel_ops` says which op takes which. Op selectors (`add`, `exp`) are NKI's names
until BIR.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import attrs

from ncc.errors import NccError, Place
from ncc.ir.core import NOWHERE, Origin
from ncc.ir.data import Data
from ncc.target import Target


@attrs.frozen
class Buffer:
    """One tensor of a kernel; `shape` is that of its allocation, slowest first.

    On chip dimension 0 is the partitions. `kind`: `input` (a parameter that is only read), `inout`
    (a parameter that the kernel writes), `output` (allocated and returned), `const` (with `data`),
    `internal`. `address` is (first partition, byte inside a partition), where the kernel chose one.
    `blocks` above 0: it is so many tensors, one behind the other, each of them of this shape (and
    each at the address). `axis`: every turn of that `AxisLoop` has a new one.
    """

    name: str
    dtype: str  # BIR's names, as everywhere below the API
    shape: tuple[int, ...]
    memory: str  # hbm, shared_hbm, sbuf, psum
    kind: str = "internal"
    address: tuple[int, int] | None = None
    data: Data | None = None
    origin: Origin = attrs.field(default=NOWHERE, eq=False)
    blocks: int = 0
    axis: str = ""

    @property
    def whole(self) -> tuple[int, ...]:
        """The shape with its blocks as a dimension in front, where it has any."""
        return (self.blocks, *self.shape) if self.blocks else self.shape

    @property
    def on_chip(self) -> bool:
        return self.memory in ("sbuf", "psum")


@attrs.frozen
class Reg:
    """A register of the machine: 32 bits, written by register ops and device loops."""

    name: str
    dtype: str = "int32"


@attrs.frozen
class Imm:
    """A number in the program."""

    value: float | int


@attrs.frozen
class Scalar:
    """A start that is read when the instruction runs: `scale` elements times a value.

    `source` is a register, or an access of one integer element. `limit` is how many values are
    inside the dimension that is indexed (a value from `limit` on, or below 0, is out of bounds).
    """

    source: Reg | Access
    scale: int
    limit: int


@attrs.frozen
class Rows:
    """One start a row: row r of the access begins `scale` times `source[r]` elements further.

    The step of the access's first pair then means nothing (it is 0). `limit` as in `Scalar`. The
    source is a column of integers in SBUF; of several columns r runs down the first, then the next.
    """

    source: Access
    scale: int
    limit: int


@attrs.frozen
class Access:
    """Elements of a buffer: `[step, num]` pairs, slowest first, counted in elements of `dtype`.

    `dtype` may differ from the buffer's: the same bytes read as another type. On chip pair 0 walks
    partitions (its step is the elements of `dtype` that one partition of the buffer holds, or a
    multiple) and the others stay inside one. The address is linear either way: element
    `offset + Σ step·i`, plus what `moves` add at run time, plus stride times turn for each of the
    `terms` (axis, stride), which are sorted by axis. Of a buffer of blocks it stays inside one.
    """

    buffer: str
    dtype: str
    pairs: tuple[tuple[int, int], ...]
    offset: int = 0
    moves: tuple[Scalar | Rows, ...] = ()
    terms: tuple[tuple[str, int], ...] = ()

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(num for _, num in self.pairs)


Arg = Access | Imm | Reg


@attrs.frozen
class KernelOp:
    """One call of the API. `args` are (role, operand) in the order of the op's row in `OPS`; an
    operand that was left out is missing; `keys` are sorted and hold only what differs from the
    row's default. `after` names earlier ops that must stay before this one (Ordered edges).
    """

    name: str
    op: str
    args: tuple[tuple[str, Arg], ...]
    keys: tuple[tuple[str, Any], ...] = ()
    engine: str = "unknown"  # the compiler's choice; or tensor, vector, scalar, gpsimd, dma, sync
    after: tuple[str, ...] = ()
    origin: Origin = attrs.field(default=NOWHERE, eq=False)

    def arg(self, role: str) -> Arg | None:
        """The operand with this role; None when it was left out."""
        for name, found in self.args:
            if name == role:
                return found
        return None


@attrs.frozen
class DeviceFor:
    """`var` counts from lower to upper by step, while the machine runs (`fori_loop`)."""

    name: str
    var: Reg
    lower: Imm | Reg
    upper: Imm | Reg
    step: int
    body: tuple[Statement, ...]
    origin: Origin = attrs.field(default=NOWHERE, eq=False)


@attrs.frozen
class DeviceWhile:
    """The body runs again and again until `condition` is 0; it is tested before each turn."""

    name: str
    condition: Reg
    body: tuple[Statement, ...]
    origin: Origin = attrs.field(default=NOWHERE, eq=False)


@attrs.frozen
class AxisLoop:
    """An axis of the kernel: the body once for each of `count` turns, numbered from 0, in order.

    The older API keeps such loops. `name` is the axis, `kind` the range that made it: the turns of
    an `affine_range` do not depend on each other, those of a `sequential_range` may. No turn knows
    its number but through the `terms` of accesses, and the key `accumulate`, which may be a tuple
    of axes: a product overwrites in the turn that is the first of all of them, and adds otherwise.
    """

    name: str
    kind: str
    count: int
    body: tuple[Statement, ...]
    origin: Origin = attrs.field(default=NOWHERE, eq=False)


AXES = ("affine_range", "sequential_range")
Statement = KernelOp | DeviceFor | DeviceWhile | AxisLoop


@attrs.frozen
class Kernel:
    """What one core runs. `params` are the buffers of the array arguments, in their order;
    `results` are the returned tensors, as accesses of buffers (a view may be returned)."""

    name: str
    buffers: tuple[Buffer, ...]
    params: tuple[str, ...]
    results: tuple[Access, ...]
    body: tuple[Statement, ...]
    core: int = 0
    origin: Origin = attrs.field(default=NOWHERE, eq=False)


@attrs.frozen
class Recorded:
    """A call's source whose Python has run already: tracing it again gives the same."""

    bodies: tuple[Kernel, ...]

    def trace(self, target: Target) -> tuple[Kernel, ...]:
        return self.bodies


@attrs.frozen
class Unread:
    """A call's source in a printed stage: a name for Python that the text does not hold."""

    label: str

    def trace(self, target: Target) -> tuple[Kernel, ...]:
        said = f"the text names the kernel {self.label or 'of this call'} and does not hold it"
        hint = "give ncc the file itself, as FILE.py:NAME"
        raise NccError("NCC390", said, Place(value=self.label), hint)


def ops_of(body: tuple[Statement, ...]) -> Iterator[KernelOp]:
    """Every op of a body, loops entered once, in program order."""
    for one in body:
        if isinstance(one, KernelOp):
            yield one
        else:
            yield from ops_of(one.body)
