"""What a running frame says of the loop that it begins: the name of the loop's variable."""

from __future__ import annotations

import dis
from functools import lru_cache
from types import CodeType, FrameType
from typing import Any


def variable(frame: FrameType | None) -> str:
    """What the frame calls the value that it is about to get, as by `for NAME in ...`; "" where it
    has no name for it."""
    return "" if frame is None else _stored(frame.f_code, frame.f_lasti)


@lru_cache(1024)
def _stored(code: CodeType, at: int) -> str:
    """The variable that is stored by the instruction behind the one at byte `at`."""
    steps = iter(dis.get_instructions(code))
    if any(step.offset == at for step in steps):
        store = next(steps, None)
        if store is not None and store.opname.startswith("STORE_"):
            name: Any = store.argval  # several where one instruction does more than this
            return name if isinstance(name, str) else name[0]
    return ""
