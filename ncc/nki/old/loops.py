"""`nl.affine_range` and `nl.sequential_range`: Python iteration, a scope, and an axis.

The body is recorded once for each index, which is an int; turns that recorded the same become an
axis of the kernel when it is whole (`ncc.ir.kernel_fold`). A tile that the body makes belongs to
the loop: after it there is none (`err_local_variable_used_out_of_scope`). `nl.static_range` has no
scope and no axis, and keywords of the ranges mean nothing.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from inspect import currentframe
from types import FrameType
from typing import Any, overload

import attrs

from ncc.frames import variable
from ncc.ir.kernel import Statement
from ncc.ir.kernel_folded import Ran
from ncc.nki.language.loops import affine_range as _counted
from ncc.nki.trace import HERE, Storage, Trace, current, here, invalid, is_tracing


def frame_of() -> FrameType | None:
    """The kernel's frame: the innermost outside of the API."""
    frame = currentframe()
    while frame is not None and frame.f_code.co_filename.startswith(HERE):
        frame = frame.f_back
    return frame


@attrs.define(eq=False)
class Turns:
    """A loop that is running. `path` names it as the older compiler saw it, which traced each body
    once: by its place in the source, and the how manieth there in a turn of the loop around it.
    `seen` counts the places of the turn that runs."""

    path: tuple[Hashable, ...] = ()
    seen: dict[Hashable, int] = attrs.field(factory=dict[Hashable, int])

    def here(self) -> tuple[Hashable, ...]:
        """The name of what the kernel's line does now, the same in every turn."""
        frame = frame_of()
        place = None if frame is None else (frame.f_code, frame.f_lasti)
        count = self.seen[place] = self.seen.get(place, 0) + 1
        return (*self.path, (place, count))


def running(trace: Trace) -> Turns:
    """The innermost loop that is running; the kernel itself outside of any."""
    if not trace.ranges:
        trace.ranges.append(Turns())
    found: Turns = trace.ranges[-1]
    return found


class Loop(Sequence[int]):
    """A range whose iteration opens a scope; also an index, as a slice."""

    __slots__ = ("kind", "range")

    def __init__(self, steps: range, kind: str) -> None:
        self.range, self.kind = steps, kind

    @property
    def start(self) -> int:
        return self.range.start

    @property
    def stop(self) -> int:
        return self.range.stop

    @property
    def step(self) -> int:
        return self.range.step

    def __len__(self) -> int:
        return len(self.range)

    @overload
    def __getitem__(self, index: int) -> int: ...

    @overload
    def __getitem__(self, index: slice) -> range: ...

    def __getitem__(self, index: int | slice) -> int | range:
        return self.range[index]

    def __repr__(self) -> str:
        return repr(self.range)

    def __iter__(self) -> Iterator[int]:
        if not is_tracing():
            yield from self.range
            return
        trace = current()
        own = Turns(running(trace).here())
        trace.ranges.append(own)
        ran = Ran(self.kind, variable(frame_of()), here()) if len(trace.bodies) == 1 else None
        if ran is not None:
            trace.ran.append(ran)
        try:
            for index in self.range:
                own.seen.clear()
                if ran is not None:
                    ran.turns.append(len(trace.bodies[0]))
                yield index
        finally:
            trace.ranges.remove(own)
            if ran is not None:
                ran.end = len(trace.bodies[0])


def affine_range(start: Any, stop: Any = None, step: Any = 1, **ignored: Any) -> Loop:
    """A loop whose turns do not depend on each other; they run in order."""
    return Loop(_counted(start, stop, step), "affine_range")


def sequential_range(start: Any, stop: Any = None, step: Any = 1, **ignored: Any) -> Loop:
    """A loop whose turns run in order."""
    return Loop(_counted(start, stop, step), "sequential_range")


def moved(ran: Sequence[Ran], before: Sequence[Statement], after: Sequence[Statement]) -> None:
    """Loops of a body of which some statements are gone: count those that are left."""
    if not ran or len(before) == len(after):
        return
    places = [0]
    left = iter(after)
    wanted = next(left, None)
    for one in before:
        kept = wanted is not None and one.name == wanted.name
        places.append(places[-1] + kept)
        wanted = next(left, None) if kept else wanted
    for loop in ran:
        loop.turns = [places[at] for at in loop.turns]
        loop.end = places[loop.end] if loop.end >= 0 else loop.end


def scope() -> Turns | None:
    """The loop that is running; None outside of any."""
    ranges = current().ranges
    return ranges[-1] if len(ranges) > 1 else None


def in_scope(storage: Storage) -> None:
    """NCC318 when the loop that made a tile has ended."""
    if storage.loop is not None and storage.loop not in current().ranges:
        said = f"{storage.buffer.name} was made in the body of a loop that has ended"
        raise invalid("NCC318", said, "allocate it before the loop, and assign to it in the body")
