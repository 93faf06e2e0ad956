"""Several cores of one program: each runs up to where it meets the others, in turn.

A core is a thread, of which only one ever runs: the order is the cores' own, so that a run is the
same every time. Tensors that the cores share are one memory, and each core hears at a meeting
whether another has copied bytes that nothing wrote.
"""

from __future__ import annotations

import contextvars
from collections.abc import Callable
from threading import Semaphore, Thread
from typing import TYPE_CHECKING, Any

import attrs

from ncc.interp.bir_memory import Memory, Place
from ncc.interp.bir_values import Env
from ncc.ir.bir import SHARED, Inst, LocSet
from ncc.ir.bir_opcodes import key
from ncc.ir.kernel_cores import alone

if TYPE_CHECKING:
    from ncc.interp.bir import Interpreter

KNOWN = (SHARED, "ExternalInput", "ExternalOutput")


class Stopped(Exception):
    """Another core has failed; this one runs no further."""


@attrs.define(eq=False)
class Core:
    """One core's run: where it stands, and what ended it."""

    number: int
    work: Callable[[], None]
    turn: Semaphore = attrs.field(factory=lambda: Semaphore(0))
    waits: Inst | None = None
    ended: bool = False
    fault: BaseException | None = None


class Together:
    """The cores of one run, and the memory that they share by name."""

    def __init__(self) -> None:
        self.places: dict[str, Place] = {}
        self.cores: list[Core] = []
        self.back = Semaphore(0)
        self.stopped = False
        self.tainted = False

    def share(self, memory: Memory, sets: tuple[LocSet, ...]) -> None:
        """Let the shared sets among `sets` lie where the other cores have them."""
        for of in sets:
            if of.memory == "DRAM" and of.kind in KNOWN:
                for name in [loc.name for loc in of.locs] or [of.name]:
                    memory.places[name] = self.places.setdefault(name, memory.places[name])

    def meet(self, core: int, inst: Inst, memory: Memory) -> None:
        """Hold a core until all others stand at the same barrier."""
        self.tainted |= memory.tainted
        me = self.cores[core]
        me.waits = inst
        self.back.release()
        me.turn.acquire()
        if self.stopped:
            raise Stopped
        memory.tainted |= self.tainted

    def run(self, works: list[Callable[[], None]]) -> None:
        """Each core's work; the first fault of one is everybody's."""
        self.cores = [Core(number, work) for number, work in enumerate(works)]
        threads = [self.thread(core) for core in self.cores]
        try:
            while any(not core.ended for core in self.cores):
                for core in self.cores:
                    if not core.ended:
                        core.turn.release()
                        self.back.acquire()
                        if core.fault is not None:
                            raise core.fault
                self.check()
        finally:
            self.stopped = True
            for core, thread in zip(self.cores, threads, strict=True):
                core.turn.release()
                thread.join()

    def check(self) -> None:
        """All cores have ended, or all stand at one barrier; NCC396 otherwise."""
        stands = [(core.number, core.waits) for core in self.cores if not core.ended]
        ids = {key(inst, "id") for _, inst in stands if inst is not None}
        for number, inst in stands:
            if inst is not None and (len(stands) < len(self.cores) or len(ids) > 1):
                raise alone(number, inst)

    def thread(self, core: Core) -> Thread:
        context = contextvars.copy_context()
        thread = Thread(target=context.run, args=(self.body, core), daemon=True)
        thread.start()
        return thread

    def body(self, core: Core) -> None:
        core.turn.acquire()
        try:
            if not self.stopped:
                core.work()
        except BaseException as fault:
            core.fault = fault
        core.ended, core.waits = True, None
        self.back.release()


def barrier(m: Interpreter, inst: Inst, ins: list[Any], out: Any, env: Env) -> None:
    """A core without others waits for nobody."""
    if m.together is not None:
        m.together.meet(m.core, inst, m.memory)


MEANING = {"CoreBarrier": barrier}
