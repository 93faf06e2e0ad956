"""Streams, counters and vector clocks: who is known to be complete when an instruction starts.

A *stream* is the engine whose stream holds an instruction (for a DMA the engine that triggers it);
a *unit* is the counter that it bumps when complete: its engine, or for a DMA its queue. Engines
complete in order; a queue publishes its completions in order. A clock says for each unit how many
completions are known.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ncc.ir.bir import Inst
from ncc.ir.footprints import key_of

ENGINES = ("PE", "Activation", "Pool", "DVE", "SP")  # the wire order
QUEUES = {engine: f"q{engine}" for engine in ENGINES}  # each engine's one direct queue
SEMAPHORES = {engine: n for n, engine in enumerate(ENGINES)} | {
    queue: 8 + n for n, queue in enumerate(QUEUES.values())
}  # fixed numbers (ISA reference 1.2)
UNITS = {unit: n for n, unit in enumerate(SEMAPHORES)}
DMAS = frozenset(
    ("Load", "Save", "DMACopy", "IndirectLoad", "IndirectSave", "IndirectSaveAccumulate")
)
SILENT = frozenset(
    (
        *("Exit", "EventSemaphore", "LoadActFuncSet"),
        *("AllEngineBarrier", "CompareAndBranch", "UnconditionalBranch"),
    )
)  # they bump no counter
WAITS = {"EventSemaphore": 2}  # how many a record holds; 1 elsewhere (ISA reference 1.3)

Clock = list[int]


def unit_of(inst: Inst) -> str:
    """The counter that an instruction bumps when it is complete; "" for a DMA without a queue."""
    return str(key_of(inst, "queue", "")) if inst.opcode in DMAS else inst.engine


class Clocks:
    """The clocks of a straight line, one instruction after the other in program order."""

    def __init__(self) -> None:
        self.starts: dict[str, Clock] = {}  # a stream's clock where its next instruction starts
        self.done: list[list[Clock]] = [[[0] * len(UNITS)] for _ in UNITS]  # by unit and position
        self.makers: list[list[int]] = [[-1] for _ in UNITS]  # by unit and position: program index

    def start(self, stream: str) -> Clock:
        """What the next instruction of a stream knows before its own waits; changed in place."""
        clock = self.starts.get(stream)
        if clock is None:
            clock = self.starts[stream] = [0] * len(UNITS)
        return clock

    def wait(self, clock: Clock, unit: int, count: int) -> None:
        """Learn everything that was known when `unit` completed number `count`."""
        for n, known in enumerate(self.done[unit][count]):
            if known > clock[n]:
                clock[n] = known

    def complete(self, index: int, clock: Clock, unit: int, is_dma: bool) -> int:
        """Count one completion of `unit`; its position. An engine knows its own, not its DMAs."""
        row = self.done[unit]
        position = len(row)
        if is_dma:
            done = [max(a, b) for a, b in zip(clock, row[-1], strict=True)]
            done[unit] = position
        else:
            clock[unit] = position
            done = clock.copy()
        row.append(done)
        self.makers[unit].append(index)
        return position


def needs(
    preds: Iterable[int], places: Sequence[tuple[int, int]], own: int
) -> list[tuple[int, int, int]]:
    """What an instruction has to know: (producer, unit, position), one a unit, latest first.

    `places` are the (unit, position) of all earlier instructions; `own` is the engine's unit, whose
    order needs no counter.
    """
    most: dict[int, tuple[int, int]] = {}
    for pred in preds:
        unit, position = places[pred]
        if unit != own and position > most.get(unit, (0, 0))[0]:
            most[unit] = (position, pred)
    return sorted(((pred, unit, pos) for unit, (pos, pred) in most.items()), reverse=True)
