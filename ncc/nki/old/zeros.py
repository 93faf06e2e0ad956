"""`nl.zeros(buffer=nl.psum)`: nothing is written, the first product overwrites.

Where a kernel reads elements that no instruction wrote, they are cleared just before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ncc.nki.isa import written
from ncc.nki.trace import current

if TYPE_CHECKING:
    from ncc.nki.old.tile import Tile


def written_zeros(view: Tile) -> None:
    """Clear what was never written of the tensor that `view` is about to read."""
    storage = view.storage
    storage.zero = False
    whole = type(view).whole(storage, view.dtype)
    access = whole.access("dst", write=True)
    state = written.state(storage, access)
    if state.all():
        return
    storage.zero = True  # there may be more to clear later, once this part is written
    part = view.access("dst", compute=False, write=True)
    marks = written.state(storage, part)
    if marks.all():
        return
    storage.zero = False
    if state.any():
        rows = len(state)
        start = 0
        for k in range(1, rows + 1):
            if k < rows and (state[k] == state[start]).all():
                continue
            for low, high, old in written.runs(state[start]):
                if not old:
                    cells = written.columns(written.partitions(access, start, k), low, high)
                    _clear(view, cells)
            start = k
    else:
        _clear(view, access)


def _clear(view: Tile, cells: written.Access) -> None:
    current().emit("memset", {"dst": cells}, {"value": 0})
    written.mark(view.storage, cells)
