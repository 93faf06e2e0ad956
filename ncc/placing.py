"""The line of the source behind a fault that the machine met.

The bytes of a NEFF name no lines, so the machine says which bundle it ran. The bundles that were
packed know where they come from: the program is compiled once more, up to them.
"""

from __future__ import annotations

import re
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ncc.errors import NccError
from ncc.ir.core import NOWHERE, Origin, modules_of
from ncc.walking import plan_to, walk

if TYPE_CHECKING:
    from ncc.stages import Stage

BUNDLE = re.compile(r"(?:core (\d+) )?(\w+) (\d+) \(\w+\)")  # as the machine names a bundle


@contextmanager
def lines_of(stage: Stage, **ends: Any) -> Generator[None]:
    """A fault in a run of what `stage` was compiled to (with `ends`, as in `walking.plan`) gets the
    line of the source."""
    try:
        yield
    except NccError as fault:
        if fault.place.file or not (found := BUNDLE.fullmatch(fault.place.value)):
            raise
        core, engine, number = found.groups()
        origin = origin_of(stage, int(core or 0), engine, int(number), ends)
        raise fault.at(file=origin.file, line=origin.line) from None


def origin_of(stage: Stage, core: int, engine: str, number: int, ends: dict[str, Any]) -> Origin:
    """Where one bundle of a compiled program comes from."""
    if stage.level == "neff":
        return NOWHERE
    program = modules_of(walk(stage, plan_to(stage, "isa", **ends)).module)[core]
    streams = {stream.engine: stream.bundles for stream in program.streams}
    found: Origin = streams[engine][number].origin
    return found
