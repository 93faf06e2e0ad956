"""The allocators by name: colouring, and two that walk once through the program.

A scan takes the nodes in the order in which their lives begin. What stands is what was placed and
still lives; a node that has ended has left. The disciplines differ in two choices: where a node
goes, and who leaves when there is no room. Who leaves has no place: its allocator pass spills it,
and scans again. What may not be spilled never leaves.

`stack`: a node goes on top of all that live, as a stack pointer would be moved; what lies below
leaves a hole until the top has sunk to it. Only where the top meets the end of the memory, the
lowest hole is taken. The biggest area of time and bytes leaves.
Left out of the real one: a tile is not kept until the end of its loop, since loops are unrolled
here, and PSUM banks are not dealt out in turn.

`linear-scan`: a node goes into the smallest hole that it fits in. Whose life ends last leaves.
Left out of the real one: a victim loses its place for all its life, not only from that moment on.

Both: where what is left may not be spilled, and lies so scattered that no hole is large enough,
colouring decides; only what it cannot place either is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs

from ncc.ir.colouring import INFINITE, Colouring, Floor, Node, colour
from ncc.ir.intervals import best_gap, first_gap

Taken = Sequence[tuple[int, int, int]]  # bands, start, end
Place = tuple[int, int]  # bands, start


@attrs.frozen
class Discipline:
    """How a scan decides: `fit` finds a place beside what is taken; the greatest `leaves`."""

    fit: Callable[[Node, Taken, int], Place | None]
    leaves: Callable[[Node], Any]

    def __call__(self, nodes: Sequence[Node], budget: int) -> Colouring:
        return scan(nodes, budget, self)


def on_top(node: Node, taken: Taken, budget: int) -> Place | None:
    """On top of what lives, where that is lowest; in the lowest hole where no top has room."""
    tops: list[tuple[int, int]] = []
    holes: list[tuple[int, int]] = []
    for bands in node.bands:
        spans = [(start, end) for mask, start, end in taken if mask & bands]
        top = -(-max((end for _, end in spans), default=0) // node.align) * node.align
        hole = first_gap(spans, node.size, node.align, budget)
        tops += [(top, bands)] * (top + node.size <= budget)
        holes += [(hole, bands)] if hole is not None else []
    found = min(tops or holes, default=None)
    return (found[1], found[0]) if found else None


def best_fit(node: Node, taken: Taken, budget: int) -> Place | None:
    """The hole that leaves the least room beside the node, of equal ones the lowest."""
    holes: list[tuple[int, int, int]] = []
    for bands in node.bands:
        spans = [(start, end) for mask, start, end in taken if mask & bands]
        if hole := best_gap(spans, node.size, node.align, budget):
            holes.append((*hole, bands))
    found = min(holes, default=None)
    return (found[2], found[1]) if found else None


def scan(nodes: Sequence[Node], budget: int, way: Discipline) -> Colouring:
    """A place for each node in turn; those that had to leave have none."""
    ordered = sorted(nodes, key=lambda n: (n.lo, n.hi, n.name))
    floor = Floor(ordered)
    left: list[Node] = []
    for node in ordered:
        while not node.fixed:
            if place := way.fit(node, floor.beside(node), budget):
                floor.put(node, *place)
                break
            victim = max(spillable(node, floor), key=way.leaves, default=node)
            left.append(victim)
            if victim is node:
                break
            floor.remove(victim)
    if left and all(n.cost == INFINITE for n in left):
        return colour(nodes, budget)
    score = sum(min(n.cost, 1e30) for n in left)
    return Colouring(floor.places, tuple(sorted(n.name for n in left)), score)


def spillable(node: Node, floor: Floor) -> list[Node]:
    """Who may leave to make room for a node: itself, and those that are in its way."""
    wanted = 0
    for bands in node.bands:
        wanted |= bands
    near = [floor.nodes[k] for k in map(int, floor.near(node)) if floor.taken[k][0] & wanted]
    return [n for n in (node, *near) if n.cost < INFINITE]


def area(node: Node) -> tuple[int, str]:
    return node.size * (node.hi - node.lo + 1), node.name


def end(node: Node) -> tuple[int, str, int]:
    return node.hi, node.name, node.size


ALLOCATORS: dict[str, Callable[[Sequence[Node], int], Colouring]] = {
    "coloring": colour,
    "stack": Discipline(on_top, area),
    "linear-scan": Discipline(best_fit, end),
}


def allocate(nodes: Sequence[Node], budget: int, allocator: str = "") -> Colouring:
    """Places within a budget of units, by the allocator of that name; colouring where none was
    chosen."""
    return ALLOCATORS[allocator or "coloring"](nodes, budget)
