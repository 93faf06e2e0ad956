"""Planting faults: a pass that does its work and then breaks it, and what `ncc check` says then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from ncc import checking, passes
from ncc.driver import plan
from ncc.errors import NccError
from ncc.ir.bir import Inst, with_insts
from ncc.ir.bir_keys import ACCUMULATE, START, STOP
from ncc.passes.base import Pass
from ncc.stages import Stage

__all__ = ["ACCUMULATE", "START", "STOP"]


def broken(name: str, wreck: Callable[[Any], Any]) -> dict[str, Pass]:
    """The pass called `name`, followed by `wreck`, as `plan` takes a replacement."""
    real = passes.load(passes.called()[name])
    return {name: attrs.evolve(real, apply=lambda m, t: wreck(real.apply(m, t)))}


def told(
    stage: Stage, name: str, wreck: Callable[[Any], Any], random: bool = False
) -> tuple[str, str]:
    """(the pass that is named, the sentence); two empty words when nothing is found.

    A law names the pass as `after NAME`, a comparison as `NAME`.
    """
    draw = checking.random_numbers if random else checking.whole_numbers
    todo = plan(stage, replaced=broken(name, wreck))
    try:
        found = checking.check(stage, todo, [draw(stage)])
    except NccError as fault:
        return fault.place.during.removeprefix("after "), f"{fault.code} {fault.said}"
    return found.place.during, found.failed


def insts_of(module: Any) -> tuple[Inst, ...]:
    return module.main.blocks[0].insts


def edited(module: Any, change: Callable[[Inst], Inst | None]) -> Any:
    """A straight line of BIR with every instruction changed; None drops one."""
    new = (change(inst) for inst in insts_of(module))
    return with_insts(module, tuple(inst for inst in new if inst is not None))


def one(module: Any, name: str, **fields: Any) -> Any:
    """The same with some fields of one instruction replaced."""
    assert any(inst.name == name for inst in insts_of(module)), f"no instruction is called {name}"
    return edited(module, lambda i: attrs.evolve(i, **fields) if i.name == name else i)


def keyed(inst: Inst, **keys: Any) -> tuple[tuple[str, Any], ...]:
    """The instruction's keys with some of them replaced, or taken out by None."""
    new = {**dict(inst.keys), **keys}
    return tuple(sorted((k, v) for k, v in new.items() if v is not None))
