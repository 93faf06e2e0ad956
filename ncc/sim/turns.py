"""Which engine runs next, over the engines of all cores: in turn, or drawn from a seed."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ncc.errors import NccError
from ncc.sim.engine import Engine, Flight

if TYPE_CHECKING:
    from ncc.sim.machine import Core


def run(cores: Sequence[Core], seed: int | None) -> None:
    """Runs to the end of all streams of all cores."""
    if seed is None:
        in_turn(cores)
    else:
        at_random(cores, random.Random(seed))


def in_turn(cores: Sequence[Core]) -> None:
    """Every engine as far as it gets, one after the other, core after core."""
    while not all(core.ended for core in cores):
        moved = False
        for core in cores:
            for e in core.engines:
                while not e.ended and core.ready(e):
                    core.step(e)
                    moved = True
                    if e.flights:
                        core.land(e, e.flights[0])
        if not moved:
            raise deadlock(cores)


def at_random(cores: Sequence[Core], draw: random.Random) -> None:
    """One bundle or one DMA at a time, drawn from all that could be next."""
    while not all(core.ended for core in cores):
        ready: list[tuple[Core, Engine, Flight | None]] = [
            (core, e, None) for core in cores for e in core.engines if not e.ended and core.ready(e)
        ]
        ready += [
            (core, e, x) for core in cores for e in core.engines for x in e.flights if not x.moved
        ]
        if not ready:
            raise deadlock(cores)
        core, e, flight = draw.choice(ready)
        if flight is None:
            core.step(e)
        else:
            core.land(e, flight)


def deadlock(cores: Sequence[Core]) -> NccError:
    stuck = [
        f"{e.label} {e.pc} ({e.bundles[e.pc].op}) waits for {core.missing(e)}"
        for core in cores
        for e in core.engines
        if not e.ended
    ]
    hint = "an update that one of them waits for is missing or comes too late"
    if any(core.held for core in cores):
        hint = "each core must come to the same core barriers, in the same order"
    return NccError("NCC901", "deadlock: " + "; ".join(stuck), hint=hint)
