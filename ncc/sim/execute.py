"""Which function executes which opcode: one table for all engines."""

from __future__ import annotations

from collections.abc import Callable

from ncc.errors import NccError, nearest
from ncc.sim import act, control, cores, folds, pe, select, statistics, vector
from ncc.sim.engine import Engine, Fields

EFFECTS: dict[str, Callable[[Engine, Fields], None]] = {
    **control.EFFECTS,
    **pe.EFFECTS,
    **act.EFFECTS,
    **vector.EFFECTS,
    **folds.EFFECTS,
    **select.EFFECTS,
    **statistics.EFFECTS,
    **cores.EFFECTS,
}


def effect(mnemonic: str) -> Callable[[Engine, Fields], None]:
    """The function of an opcode; NCC900 for one whose effect is not modelled."""
    found = EFFECTS.get(mnemonic)
    if found is None:
        said = f"the machine does not run {mnemonic}"
        raise NccError("NCC900", said, hint=nearest(mnemonic, EFFECTS))
    return found
