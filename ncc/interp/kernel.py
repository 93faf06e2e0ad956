"""What a traced NKI kernel means: its ops, in program order, over numpy memory.

Engines, queues and waits are not modelled: order is the program's. Several cores run as generators,
each up to its next meeting with the others (`core_barrier`, `sendrecv`), so that what one core
writes to shared HBM before a meeting is what another reads after it. Capacity is not checked.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence

import attrs
import numpy as np

from ncc import numerics
from ncc.blas import one_thread
from ncc.errors import NccError
from ncc.interp import (
    kernel_fold,
    kernel_lanes,
    kernel_move,
    kernel_random,
    kernel_register,
    kernel_search,
    kernel_tensor,
    kernel_vector,
)
from ncc.interp.kernel_call import Call, Core
from ncc.interp.kernel_memory import Array, Cells, Memory, held_as, kind_of
from ncc.ir.kernel import (
    Access,
    AxisLoop,
    DeviceFor,
    DeviceWhile,
    Imm,
    Kernel,
    KernelOp,
    Reg,
    Statement,
)
from ncc.target import Target

Meaning = Callable[[Call], None]
Steps = Generator[None, None, None]
TURNS = 1_000_000  # of one device loop; more is a loop that does not end

MEANING: dict[str, Meaning] = {
    **kernel_move.MEANING,
    **kernel_tensor.MEANING,
    **kernel_vector.MEANING,
    **kernel_fold.MEANING,
    **kernel_lanes.MEANING,
    **kernel_search.MEANING,
    **kernel_random.MEANING,
    **kernel_register.MEANING,
}
MEET = frozenset({"core_barrier", "sendrecv"})


@attrs.define(eq=False)
class Meetings:
    """What cores that wait for each other have left for one another."""

    cores: frozenset[int]
    mail: dict[tuple[int, int, int, int], Array] = attrs.field(
        factory=dict[tuple[int, int, int, int], Array]
    )  # (sender, receiver, pipe, number of the transfer)
    sent: dict[tuple[int, int, int], int] = attrs.field(factory=dict[tuple[int, int, int], int])
    barriers: dict[int, int] = attrs.field(factory=dict[int, int])  # by core
    moves: int = 0  # grows whenever a core gets on


def run(
    bodies: Sequence[Kernel],
    inputs: Mapping[str, Array],
    target: Target,
    say: Callable[[str], object] = print,
) -> dict[str, Array]:
    """Run one body a core. By name, the contents of every buffer that is an argument, an output or
    part of a result, in the buffer's own shape; those of core 0 where cores have their own."""
    shared: dict[str, Cells] = {}
    cores = [Core(k, Memory(k, shared, inputs), target, say) for k in bodies]
    meetings = Meetings(frozenset(c.number for c in cores))
    alive = [(core, _body(core, core.kernel.body, meetings, top=True)) for core in cores]
    with one_thread():
        while alive:
            before, count = meetings.moves, len(alive)
            alive = [(core, steps) for core, steps in alive if next(steps, _END) is None]
            if alive and len(alive) == count and meetings.moves == before:
                raise _alone(alive[0][0])
    found: dict[str, Array] = {}
    for core in cores:
        for name in _wanted(core.kernel):
            if name not in found:
                found[name] = np.array(core.memory.of(name).array())
    return found


_END = object()


def viewed(array: Array, access: Access) -> Array:
    """The elements of a whole buffer that an access names: what a kernel returned."""
    kind = kind_of(access.dtype)
    raw = np.ascontiguousarray(array).reshape(-1)
    steps = [step * kind.itemsize for step, _ in access.pairs]
    start = access.offset * kind.itemsize
    return np.array(np.ndarray(access.shape, kind, raw.view(np.uint8), start, steps))


def _wanted(kernel: Kernel) -> list[str]:
    kinds = {"input", "inout", "output"}
    names = [b.name for b in kernel.buffers if b.kind in kinds or b.name in kernel.params]
    return list(dict.fromkeys([*names, *(access.buffer for access in kernel.results)]))


def _body(core: Core, body: tuple[Statement, ...], meetings: Meetings, top: bool = False) -> Steps:
    """The statements in order; it pauses where the core has to wait for another."""
    for number, one in enumerate(body):
        if isinstance(one, KernelOp):
            if one.op in MEET:
                core.waits = one
                yield from _meet(core, one, meetings)
            else:
                step(core, one)
        elif isinstance(one, DeviceFor):
            yield from _for(core, one, meetings)
        elif isinstance(one, AxisLoop):
            for turn in range(one.count):
                core.memory.turn(one.name, turn)
                yield from _body(core, one.body, meetings)
        else:
            yield from _while(core, one, meetings)
        if top:
            core.memory.forget(number)


def step(core: Core, op: KernelOp) -> None:
    """One op; what goes wrong in it is said with the kernel's line."""
    place = op.origin.place(op.name)
    meaning = MEANING.get(op.op)
    if meaning is None:
        raise NccError("NCC282", f"{op.op} has no meaning here", place)
    try:
        meaning(Call(core, op))
    except NccError as error:
        raise error.at(file=place.file, line=place.line, value=place.value) from None
    except (ValueError, IndexError, KeyError, OverflowError) as error:
        shapes = ", ".join(
            f"{role} {list(arg.shape)}" for role, arg in op.args if isinstance(arg, Access)
        )
        said = f"{op.op} cannot work on {shapes}: {error}"
        raise NccError("NCC282", said, place, "make the operands' shapes agree") from None


def _for(core: Core, loop: DeviceFor, meetings: Meetings) -> Steps:
    low, high = (_bound(core, b) for b in (loop.lower, loop.upper))
    for value in range(low, high, loop.step):
        core.registers[loop.var.name] = value
        yield from _body(core, loop.body, meetings)


def _bound(core: Core, bound: Imm | Reg) -> int:
    if isinstance(bound, Imm):
        return int(bound.value)
    return int(core.registers.get(bound.name, 0))


def _while(core: Core, loop: DeviceWhile, meetings: Meetings) -> Steps:
    turns = 0
    while core.registers.get(loop.condition.name, 0):
        turns += 1
        if turns > TURNS:
            said = f"{loop.name} has turned {TURNS:,} times and its condition is still not 0"
            hint = "the body must bring its condition register to 0"
            raise NccError("NCC281", said, loop.origin.place(loop.name), hint)
        yield from _body(core, loop.body, meetings)


# --- meetings of cores ----------------------------------------------------------------------------


def _alone(core: Core) -> NccError:
    """NCC396: a core waits at a meeting that no other core comes to."""
    op = core.waits
    assert op is not None
    where = f" ({op.origin})" if op.origin.file else ""
    said = f"core {core.number} waits at a {op.op}{where} that no other core comes to"
    hint = "every core must reach the same core_barrier and sendrecv calls"
    return NccError("NCC396", said, op.origin.place(op.name), hint)


def _meet(core: Core, op: KernelOp, meetings: Meetings) -> Steps:
    call = Call(core, op)
    if op.op == "core_barrier":
        yield from _barrier(core, call, meetings)
        return
    me = core.number
    to, by, pipe = (int(call.key[k]) for k in ("send_to_rank", "recv_from_rank", "pipe_id"))
    absent = sorted({to, by} - meetings.cores)
    if absent:
        said = f"sendrecv names core {absent[0]}, and the kernel runs on {len(meetings.cores)}"
        hint = "launch it on two cores: kernel[2](...)"
        raise NccError("NCC396", said, op.origin.place(op.name), hint)
    number = meetings.sent.get((me, to, pipe), 0)
    meetings.sent[me, to, pipe] = number + 1
    source = np.array(call.read("src"))
    if numerics.dtype_name(source) != held_as(call.dtype("dst")):
        source = numerics.cast(numerics.widen(source), call.dtype("dst"))
    meetings.mail[me, to, pipe, number] = source
    wanted = by, me, pipe, _received(meetings, by, me, pipe)
    while wanted not in meetings.mail:
        yield
    call.write("dst", meetings.mail.pop(wanted))
    meetings.moves += 1


def _received(meetings: Meetings, by: int, me: int, pipe: int) -> int:
    """The number of the next transfer from `by` on this pipe; counts it."""
    key = -1 - by, me, pipe
    number = meetings.sent.get(key, 0)
    meetings.sent[key] = number + 1
    return number


def _barrier(core: Core, call: Call, meetings: Meetings) -> Steps:
    cores = call.key["cores"]
    wanted = {cores} if isinstance(cores, int) else {int(c) for c in cores}
    wanted &= meetings.cores
    mine = meetings.barriers[core.number] = meetings.barriers.get(core.number, 0) + 1
    meetings.moves += 1
    while any(meetings.barriers.get(c, 0) < mine for c in sorted(wanted)):
        yield
    meetings.moves += 1
