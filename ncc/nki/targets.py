"""The machine that a kernel is traced for, where no option names one."""

from __future__ import annotations

import os

from ncc.errors import UsageError, nearest
from ncc.target import TARGETS, Target

VARIABLE = "NEURON_PLATFORM_TARGET_OVERRIDE"
NAMES = {
    **dict.fromkeys(("trn1", "trn1n", "inf2", "gen2"), "trn1"),
    **dict.fromkeys(("trn2", "trn2n", "trn2u", "gen3"), "trn2"),
    **dict.fromkeys(("trn3", "trn3u", "gen4"), "trn3"),
}
_chosen: list[Target] = []


def choose(target: Target | None) -> None:
    """What `--target` says, which wins over the environment; None takes it back."""
    _chosen[:] = [target] if target else []


def default_target() -> Target:
    """The target of a call: `--target`, else the environment, else trn2. NCC380 for no target."""
    if _chosen:
        return _chosen[0]
    word = os.environ.get(VARIABLE, "").strip()
    if not word:
        return TARGETS["trn2"]
    if word.lower() not in NAMES:
        said = f"{VARIABLE} is {word!r}, and no target is called that"
        raise UsageError("NCC380", said, hint=nearest(word, NAMES) or f"one of {', '.join(NAMES)}")
    return TARGETS[NAMES[word.lower()]]
