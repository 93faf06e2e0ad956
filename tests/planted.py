"""Planting faults: a pass that does its work and then breaks it, and what `ncc check` says then."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import attrs

from ncc import checking, passes
from ncc.errors import NccError
from ncc.ir.bir import Inst, with_insts
from ncc.passes.base import Pass
from ncc.stages import Stage
from ncc.walking import plan


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
        said = f"{fault.code} {fault.place.value}: {fault.said}"
        hint = f" ({fault.hint})" if fault.hint else ""
        return fault.place.during.removeprefix("after "), said + hint
    return found.place.during, found.failed


def insts_of(module: Any) -> tuple[Inst, ...]:
    return module.main.blocks[0].insts


def edited(module: Any, change: Callable[[Inst], Inst | None]) -> Any:
    """A straight line of BIR with every instruction changed; None drops one."""
    new = (change(inst) for inst in insts_of(module))
    return with_insts(module, tuple(inst for inst in new if inst is not None))


def located(module: Any, name: str, **fields: Any) -> Any:
    """The same with some fields of one location replaced."""
    sets = tuple(
        attrs.evolve(
            of, locs=tuple(attrs.evolve(x, **fields) if x.name == name else x for x in of.locs)
        )
        for of in module.main.sets
    )
    assert sets != module.main.sets, f"{name} is as before"
    return with_insts(module, insts_of(module), sets=sets)


def one(module: Any, name: str, **fields: Any) -> Any:
    """The same with some fields of one instruction replaced."""
    assert any(inst.name == name for inst in insts_of(module)), f"no instruction is called {name}"
    return edited(module, lambda i: attrs.evolve(i, **fields) if i.name == name else i)


def keyed(inst: Inst, **keys: Any) -> tuple[tuple[str, Any], ...]:
    """The instruction's keys with some of them replaced, or taken out by None."""
    new = {**dict(inst.keys), **keys}
    return tuple(sorted((k, v) for k, v in new.items() if v is not None))
