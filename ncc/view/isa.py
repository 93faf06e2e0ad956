"""ISA as a picture: the five streams as chains, waits as arrows between them."""

from __future__ import annotations

from collections.abc import Iterator

from ncc.ir.core import Cores
from ncc.ir.isa import Program
from ncc.view.dot import Box, picture, together

WAIT_GE, ENGINES_FROM, QUEUES_FROM = 5, 0, 8  # wire code, first engine counter, first queue counter


def draw(program: Program | Cores, fresh: frozenset[int]) -> str:
    return picture(program.name, together(program, fresh, boxes), rankdir="LR")


def boxes(module: Program, fresh: frozenset[int]) -> Iterator[Box]:
    raised = counters(module)
    for stream in module.streams:
        for number, bundle in enumerate(stream.bundles):
            sources = [(f"{stream.engine} {number - 1}", "")] if number else []
            mode, index = bundle.band.wait
            lines = [f"{stream.engine} {number}: {bundle.op}"]
            if mode == WAIT_GE:
                lines.append(f"wait S[{index}]>={bundle.band.value}")
                if found := who(raised.get(index, []), bundle.band.value):
                    sources.append((found, f"S[{index}]"))
            yield Box(
                f"{stream.engine} {number}", tuple(lines), tuple(sources), new=id(bundle) in fresh
            )


def counters(module: Program) -> dict[int, list[tuple[int, str]]]:
    """For every semaphore: its value after each bundle that raises it, and that bundle's key."""
    raised: dict[int, list[tuple[int, str]]] = {}
    for stream in module.streams:
        for number, bundle in enumerate(stream.bundles):
            fields = dict(bundle.fields)
            mode, index = bundle.band.update
            step = 1 if mode else 0
            if bundle.op == "DmaDirect2d":
                index, step = int(fields.get("semaphore", 0)), int(fields.get("sem_increment", 0))
            if step:
                values = raised.setdefault(index, [])
                last = values[-1][0] if values else 0
                values.append((last + step, f"{stream.engine} {number}"))
    return raised


def who(values: list[tuple[int, str]], threshold: int) -> str:
    """The first bundle after which a semaphore has reached a threshold."""
    return next((key for value, key in values if value >= threshold), "")
