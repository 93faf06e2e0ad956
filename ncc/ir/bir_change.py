"""An instruction with other edges, waits or keys, made quickly: it is done for each of them."""

from __future__ import annotations

from typing import Any

from ncc.ir.bir import Inst, Update, Wait
from ncc.ir.core import Origin

_made: dict[int, tuple[Origin, Origin]] = {}  # origins that the last pass has changed
_by: list[str] = [""]


def changed_by(origin: Origin, by: str) -> Origin:
    """`origin.by(by)`; instructions that share an origin go on sharing it."""
    if _by[0] != by or len(_made) > 1 << 16:
        _made.clear()
        _by[0] = by
    found = _made.get(id(origin))
    if found is None:  # the old one is kept too, so that its identity stays its own
        found = _made[id(origin)] = (origin, origin.by(by))
    return found[1]


def with_deps(inst: Inst, deps: tuple[tuple[str, str], ...], by: str) -> Inst:
    """The same instruction with other edges."""
    return Inst(
        inst.name,
        inst.opcode,
        inst.engine,
        inst.ins,
        inst.outs,
        inst.keys,
        deps,
        inst.waits,
        inst.updates,
        inst.loopnest,
        inst.axis,
        inst.blocks,
        changed_by(inst.origin, by),
    )


def with_sync(inst: Inst, waits: tuple[Wait, ...], updates: tuple[Update, ...], by: str) -> Inst:
    """The same instruction with other waits and updates."""
    return Inst(
        inst.name,
        inst.opcode,
        inst.engine,
        inst.ins,
        inst.outs,
        inst.keys,
        inst.deps,
        waits,
        updates,
        inst.loopnest,
        inst.axis,
        inst.blocks,
        changed_by(inst.origin, by),
    )


def with_keys(inst: Inst, by: str, engine: str = "", **keys: Any) -> Inst:
    """The same instruction with some keys set; a key that is None goes."""
    found = {**dict(inst.keys), **keys}
    return Inst(
        inst.name,
        inst.opcode,
        engine or inst.engine,
        inst.ins,
        inst.outs,
        tuple((k, found[k]) for k in sorted(found) if found[k] is not None),
        inst.deps,
        inst.waits,
        inst.updates,
        inst.loopnest,
        inst.axis,
        inst.blocks,
        changed_by(inst.origin, by),
    )


def fresh_names(taken: set[str], owner: str, count: int) -> list[str]:
    """`count` names that serve `owner`: `i7.0`, `i7.1`, ...; what is taken is passed by."""
    names: list[str] = []
    number = 0
    while len(names) < count:
        name = f"{owner}.{number}"
        if name not in taken:
            names.append(name)
            taken.add(name)
        number += 1
    return names
