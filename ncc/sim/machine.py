"""A core: five streams, semaphores, events and DMA queues, run until every stream has ended.

An engine starts a bundle after its previous one is complete. A D4 retires as it is issued; its data
moves then, or with a seed at any later time, and completions are published in queue order, 16 at
once (ISA reference 5.25). With a seed engines and queues interleave at random: the result is the
same, or the program has a race.
"""

from __future__ import annotations

import operator
from collections import Counter as Count
from collections import defaultdict
from collections.abc import Callable
from typing import Any

import attrs

from ncc.encode.codes import WAIT_COMPARE
from ncc.errors import NccError
from ncc.ir.isa import Band, Bundle, Program, Stream
from ncc.sim import dma
from ncc.sim.engine import Engine, Fields, Flight
from ncc.sim.execute import effect
from ncc.sim.meetings import Meetings
from ncc.sim.memory import Memory
from ncc.sim.race import ENGINES, UNITS, Counter, Race, joined

LIMIT = 1_000_000  # bundles, beside one pass over the program
BRANCHES = frozenset(("CompareAndBranch",))
CLEAR = "EventSemaphoreRangeClear"
HOLDS: dict[int, Callable[[int, int], bool]] = {
    0x01: operator.eq,
    0x02: operator.lt,
    0x03: operator.le,
    0x04: operator.gt,
    0x05: operator.ge,
}
EVENT_WANTS = {0x06: 1, 0x07: 1, 0x0E: 0, 0x0F: 0}
EVENT_LEAVES = {0x07: 0, 0x0F: 1}


@attrs.define
class Report:
    """What a run counted and warned of."""

    bundles: Count[str] = attrs.field(factory=Count[str])  # by opcode
    dmas: int = 0
    descriptors: int = 0
    warnings: list[str] = attrs.field(factory=list[str])


class Core:
    """One core and a program on it. Clocks, report and barriers are those of the whole run."""

    def __init__(
        self,
        program: Program,
        mem: Memory,
        limit: int,
        number: int,
        race: Race,
        meetings: Meetings,
        report: Report,
    ) -> None:
        self.mem, self.number = mem, number
        self.limit = limit + sum(len(s.bundles) for s in program.streams)
        self.race, self.meetings, self.report = race, meetings, report
        units = UNITS * len(self.meetings.came)
        self.semaphores = [0] * 256
        self.events = [0] * 256
        self.event_clocks: dict[int, tuple[int, ...]] = {}
        self.counters: defaultdict[int, Counter] = defaultdict(lambda: Counter(units))
        self.published = [((0,) * units, 0)] * ENGINES  # clock and number of the last DMA
        label = f"core {number} " if len(self.meetings.came) > 1 else ""
        self.engines = [
            Engine(
                s.engine,
                n,
                s.bundles,
                mem,
                self.race,
                self.warn,
                label=f"{label}{s.engine}",
                core=number,
                clock=[0] * units,
                ended=not s.bundles,
            )
            for n, s in enumerate(program.streams)
        ]
        _totals(program.streams, self.counters)

    def release(self) -> None:
        """Lets go of the memories: core and engines know each other, and would hold them on."""
        self.engines.clear()
        self.mem.release()

    def warn(self, said: str) -> None:
        self.report.warnings.append(said)

    # --- the run ----------------------------------------------------------------------------------

    @property
    def ended(self) -> bool:
        return all(e.ended for e in self.engines)

    @property
    def held(self) -> bool:
        """Whether an engine stands at a barrier that another core has not come to."""
        return any(e.came and not e.ended for e in self.engines)

    # --- waits ------------------------------------------------------------------------------------

    def ready(self, e: Engine) -> bool:
        if e.pc >= len(e.bundles):
            last = e.bundles[-1].op
            raise NccError("NCC911", f"the stream of {e.name} ends with {last} instead of Exit")
        bundle = e.bundles[e.pc]
        mode, index = bundle.band.wait
        if mode and not self._holds(e, mode, index, bundle.band.value):
            return False
        if bundle.op == "CoreBarrier":
            return self._met(e, bundle)
        if bundle.op != "EventSemaphore":
            return True
        f = dict(bundle.fields)
        mode, index = f.get("wait2_mode", 0), f.get("wait2_idx", 0)
        return not mode or self._holds(e, mode, index, f.get("wait2_value", 0))

    def _met(self, e: Engine, bundle: Bundle) -> bool:
        """Whether all cores have come to the barrier; this one has, from now on."""
        number = barrier_of(bundle)
        if not e.came:
            if bundle.band.wait[0]:
                self._pass(e, *bundle.band.wait, bundle.band.value)
            e.came = self.meetings.come(self.number, number, e.clock)
        return not self.meetings.absent(number, e.came)

    def _holds(self, e: Engine, mode: int, index: int, value: int) -> bool:
        if mode in EVENT_WANTS:
            return self.events[index] == EVENT_WANTS[mode]
        holds = HOLDS.get(mode & 0x7F)
        if holds is None:
            raise self._at(e, NccError("NCC900", f"there is no wait mode {mode:#04x}"))
        return holds(self.semaphores[index], self._threshold(e, mode, value))

    def _threshold(self, e: Engine, mode: int, value: int) -> int:
        bits = e.register(value) if mode & 0x80 else value
        return bits - (1 << 32) if bits >> 31 else bits

    def missing(self, e: Engine) -> str:
        bundle = e.bundles[e.pc]
        f: Fields = dict(bundle.fields)
        waits = [(*bundle.band.wait, bundle.band.value)]
        if bundle.op == "EventSemaphore":
            waits.append((f.get("wait2_mode", 0), f.get("wait2_idx", 0), f.get("wait2_value", 0)))
        words: list[str] = []
        if e.came:
            number = barrier_of(bundle)
            others = ", ".join(f"core {n}" for n in self.meetings.absent(number, e.came))
            words.append(f"{others} to come to barrier {number}")
        for mode, index, value in waits:
            if not mode or self._holds(e, mode, index, value):
                continue
            if mode in EVENT_WANTS:
                words.append(f"E[{index}] = {EVENT_WANTS[mode]}")
            else:
                sign = WAIT_COMPARE[mode & 0x7F]
                needed = self._threshold(e, mode, value)
                words.append(f"S[{index}] {sign} {needed}, which is {self.semaphores[index]}")
        return " and ".join(words)

    def _pass(self, e: Engine, mode: int, index: int, value: int) -> None:
        """A wait that held: the engine now knows what the updates behind it knew."""
        if mode in EVENT_WANTS:
            if index in self.event_clocks:
                e.clock = list(joined(e.clock, self.event_clocks[index]))
            if mode in EVENT_LEAVES:
                self.events[index] = EVENT_LEAVES[mode]
            return
        kind = mode & 0x7F
        if kind in (0x02, 0x03):
            return
        threshold = self._threshold(e, mode, value) + (kind == 0x04)
        e.clock = list(self.counters[index].known(e.clock, threshold))

    # --- one bundle -------------------------------------------------------------------------------

    def step(self, e: Engine) -> None:
        bundle = e.bundles[e.pc]
        op, band = bundle.op, bundle.band
        e.by = f"{e.label} {e.pc} ({op})"
        self.report.bundles[op] += 1
        self.limit -= 1
        f: Fields = dict(bundle.fields)
        try:
            if self.limit < 0:
                raise NccError("NCC910", "the run reached its limit of bundles")
            if band.wait[0]:
                self._pass(e, *band.wait, band.value)
            if op == "EventSemaphore" and f.get("wait2_mode", 0):
                self._pass(e, f["wait2_mode"], f.get("wait2_idx", 0), f.get("wait2_value", 0))
            self._run(e, bundle, f)
            e.done += 1
            e.pc += 1
            e.clock[e.unit] = e.done
            if band.update[0]:
                self._update(e, *band.update, band.value)
            if op == "EventSemaphore" and f.get("update2_mode", 0):
                value = f.get("update2_value", 0)
                self._update(e, f["update2_mode"], f.get("update2_idx", 0), value)
        except NccError as fault:
            raise self._at(e, fault) from None

    def _run(self, e: Engine, bundle: Bundle, f: Fields) -> None:
        match bundle.op:
            case "DmaDirect2d":
                self._issue(e, f)
            case "Exit":
                self._exit(e)
            case "CoreBarrier":
                e.clock = list(self.meetings.known(barrier_of(bundle), e.came))
                e.came = 0
            case op if op == CLEAR:
                self._clear(f)
            case op:
                effect(op)(e, f)

    def _at(self, e: Engine, fault: NccError) -> NccError:
        return fault.at(value=e.by or f"{e.label} {e.pc} ({e.bundles[e.pc].op})")

    def _exit(self, e: Engine) -> None:
        if e.pc != len(e.bundles) - 1:
            raise NccError("NCC911", "stands before the end of its stream")
        if e.clock[e.queue] < e.issued:
            said = f"ends {e.name} while its DMA {e.clock[e.queue] + 1} of {e.issued} may still run"
            number = 16 * e.issued
            raise NccError("NCC904", said, hint=f"it waits for S[{8 + e.number}] >= {number}")
        e.ended = True

    def _clear(self, f: Fields) -> None:
        if f.get("mode", 0) == 2:
            mask = int.from_bytes(f.get("mask", bytes(32)), "little")
            which = [i for i in range(256) if mask >> i & 1]
        else:
            which = list(range(f.get("first", 0), f.get("last", 0) + 1))
        for i in which:
            self.semaphores[i] = 0
            self.counters[i].cleared()

    # --- updates ----------------------------------------------------------------------------------

    def _update(self, e: Engine, mode: int, index: int, value: int) -> None:
        """The band's update. The low bank fires when operands were read, so it promises nothing of
        what the bundle wrote."""
        clock = tuple(e.clock)
        if not mode & 0x10:
            clock = (*clock[: e.unit], e.done - 1, *clock[e.unit + 1 :])
        action = mode & 0x0F
        if mode & 0x80:
            value = e.register(value)
        if action in (0x01, 0x02):
            self.events[index] = int(action == 0x01)
            self.event_clocks[index] = joined(clock, self.event_clocks.get(index, clock))
            return
        before = self.semaphores[index]
        after = {
            0x03: before + 1,
            0x04: before - 1,
            0x05: before + value,
            0x07: before - value,
            0x09: value,
        }.get(action)
        if after is None:
            raise NccError("NCC900", f"there is no update mode {mode:#04x}")
        self.semaphores[index] = after
        self.counters[index].raised(e.number, after - before, clock)

    # --- DMA --------------------------------------------------------------------------------------

    def _issue(self, e: Engine, f: Fields) -> None:
        extension: Fields | None = None
        if f.get("dge_op", 0):
            after = e.bundles[e.pc + 1] if e.pc + 1 < len(e.bundles) else None
            if after is None or after.op != "Extension":
                raise NccError("NCC912", "dge_op is not 0 and no Extension follows")
            extension = dict(after.fields)
        flight = dma.issue(e, f, extension)
        clock = list(e.clock)
        clock[e.unit] = e.done + 1
        flight.clock = tuple(clock)
        if extension is not None:
            e.pc += 1  # DA is read together with its D4
        e.flights.append(flight)
        self.report.dmas += 1
        self.report.descriptors += dma.descriptors(f)

    def land(self, e: Engine, flight: Flight) -> None:
        """Moves the data of a DMA, and publishes what is complete at the head of its queue."""
        flight.move()
        flight.moved = True
        while e.flights and e.flights[0].moved:
            first = e.flights.pop(0)
            known, number = self.published[e.number]
            clock = list(joined(first.clock, known))
            clock[e.queue] = number + 1
            done = tuple(clock)
            self.published[e.number] = (done, number + 1)
            self.semaphores[first.semaphore] += first.amount
            self.counters[first.semaphore].raised(ENGINES + e.number, first.amount, done)


def barrier_of(bundle: Bundle) -> int:
    """The number of a CoreBarrier."""
    return int(dict(bundle.fields).get("index", 0))


def _totals(streams: tuple[Stream, ...], counters: defaultdict[int, Counter]) -> None:
    """How much each writer raises each semaphore over the program, where that can be told."""
    ops = {b.op for s in streams for b in s.bundles}
    moves = bool(ops & {*BRANCHES, CLEAR})
    for number, stream in enumerate(streams):
        for bundle in stream.bundles:
            for mode, index, value, writer in _updates(bundle, number):
                counter, action = counters[index], mode & 0x8F
                amount = {0x03: 1, 0x05: value}.get(action)
                if amount is None:
                    counter.static = False
                else:
                    counter.totals[writer] = counter.totals.get(writer, 0) + amount
    for counter in counters.values():
        if moves and len(counter.totals) > 1:
            counter.static = False


def _updates(bundle: Bundle, number: int) -> list[tuple[int, int, int, int]]:
    """The semaphore updates of a bundle: mode, index, value, unit that does them."""
    found: list[tuple[int, int, int, int]] = []
    band: Band = bundle.band
    if band.update[0]:
        found.append((*band.update, band.value, number))
    if bundle.op in ("EventSemaphore", "DmaDirect2d"):
        f: dict[str, Any] = dict(bundle.fields)
        if mode := f.get("update2_mode", 0):
            found.append((mode, f.get("update2_idx", 0), f.get("update2_value", 0), number))
        if amount := f.get("sem_increment", 0):
            found.append((0x15, f.get("semaphore", 0), amount, ENGINES + number))
    return [u for u in found if u[0] & 0x0F not in (0x01, 0x02)]
