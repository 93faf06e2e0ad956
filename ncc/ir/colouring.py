"""Chaitin-Briggs colouring of rectangles: the engine of the allocators of PSUM and SBUF.

A node lives for some time and wants `size` units in a row, in one of a few positions across them (a
position is a set of partition bands, as bits). Two nodes interfere iff their lives overlap. A node
is sure to find a place when its `choices` outnumber the starts that its neighbours can block in the
worst case: those are set aside first and placed last, the doubtful ones are placed before them, and
what must not be spilled is placed first of all.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import attrs

from ncc.ir.intervals import first_gap, last_gap

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.int64]

Bands = tuple[int, ...]
INFINITE = float("inf")


@attrs.frozen
class Node:
    """What wants a place. `fixed` = (bands, start) is one that has it already."""

    name: str
    lo: int
    hi: int
    size: int
    bands: Bands = (1,)
    align: int = 1
    cost: float = INFINITE  # of not getting one
    fixed: tuple[int, int] | None = None


@attrs.frozen
class Colouring:
    """Where each node stands, (bands, start); those without a place, and what that costs."""

    places: dict[str, tuple[int, int]]
    unplaced: tuple[str, ...]
    score: float


def choices(node: Node, budget: int) -> int:
    """How many places there are for a node when nothing else is there."""
    return ((budget - node.size) // node.align + 1) * len(node.bands) if node.size <= budget else 0


@lru_cache(256)
def blocking(mine: Bands, other: Bands) -> int:
    """How many positions of `mine` one placed `other` can block in the worst case."""
    return max(sum(1 for m in mine if m & o) for o in other)


def impact(node: Node, other: Node) -> int:
    """How many places of a node one placed neighbour can block in the worst case."""
    starts = -(-(node.size + other.size - 1) // node.align)
    return blocking(node.bands, _bands(other)) * starts


def _bands(node: Node) -> Bands:
    return (node.fixed[0],) if node.fixed else node.bands


def colour(nodes: Sequence[Node], budget: int) -> Colouring:
    """A place for as many nodes as possible. Of several ways to fill, the first that leaves nobody
    out, else the cheapest."""
    ordered = sorted(nodes, key=lambda n: (n.lo, n.hi, n.name))
    stack = _simplify(ordered, budget)
    best: Colouring | None = None
    for way in WAYS:
        found = _select(ordered, stack, budget, way)
        if best is None or found.score < best.score:
            best = found
        if not found.unplaced:
            break
    assert best is not None
    return best


class _Graph:
    """The nodes as columns, so that one sweep over all neighbours is a few vector operations."""

    def __init__(self, nodes: Sequence[Node], budget: int) -> None:
        import numpy as np

        def column(values: list[int]) -> Any:
            return np.array(values, dtype=np.int64)

        self.nodes = nodes
        self.lo, self.hi = column([n.lo for n in nodes]), column([n.hi for n in nodes])
        self.size, self.align = column([n.size for n in nodes]), column([n.align for n in nodes])
        kinds = sorted({_bands(n) for n in nodes})
        self.kind = column([kinds.index(_bands(n)) for n in nodes])
        self.table = np.array([[blocking(mine, o) for o in kinds] for mine in kinds], np.int64)
        self.here = np.array([n.fixed is None for n in nodes], bool)
        self.capacity = column([choices(n, budget) for n in nodes])
        self.relief = column([0] * len(nodes))
        for i in range(len(nodes)):
            near = self.near(i)
            self.capacity[i] -= int(self.on_one(i, near).sum())
            self.relief[i] = int(self.on_others(i, near).sum())

    def doubt(self, doubtful: Collection[int]) -> None:
        """Note what it costs to give up each of the doubtful nodes."""
        import numpy as np

        self.cost = np.full(len(self.nodes), INFINITE)
        for i in doubtful:
            self.cost[i] = self.nodes[i].cost

    def cheapest(self) -> int | None:
        """Who is given up first: little cost for much relief, then the longest life."""
        ratio = self.cost / self.relief.clip(1)
        least = ratio.min()
        if least == INFINITE:
            return None
        ties = (ratio == least).nonzero()[0]
        return int(ties[(self.lo[ties] - self.hi[ties]).argmin()])

    def near(self, i: int) -> Numbers:
        """The numbers of the nodes that live when `i` does, without itself."""
        found = ((self.lo <= self.hi[i]) & (self.hi >= self.lo[i])).nonzero()[0]
        return found[found != i]

    def on_one(self, i: int, others: Numbers) -> Numbers:
        """`impact(i, j)` of each j of `others`."""
        starts = -(-(self.size[i] + self.size[others] - 1) // self.align[i])
        return self.table[self.kind[i]][self.kind[others]] * starts

    def on_others(self, i: int, others: Numbers) -> Numbers:
        """`impact(j, i)` of each j of `others`."""
        starts = -(-(self.size[i] + self.size[others] - 1) // self.align[others])
        return self.table[:, self.kind[i]][self.kind[others]] * starts

    def leave(self, i: int) -> list[int]:
        """Take node `i` out; the neighbours that are sure of a place from now on."""
        self.here[i] = False
        near = self.near(i)
        near = near[self.here[near]]
        before = self.capacity[near] > 0
        self.capacity[near] += self.on_others(i, near)
        self.relief[near] -= self.on_one(i, near)
        return [int(j) for j in near[(self.capacity[near] > 0) & ~before]]


def _simplify(nodes: Sequence[Node], budget: int) -> list[int]:
    """The stack of nodes to place, the first to be placed at its end."""
    graph = _Graph(nodes, budget)
    free = [i for i, n in enumerate(nodes) if n.fixed is None]
    sure = [-i for i in free if graph.capacity[i] > 0]
    doubtful = {i for i in free if graph.capacity[i] <= 0}
    if not doubtful:
        return [-i for i in sorted(sure)]
    heapq.heapify(sure)  # the latest goes first, so that the earliest is placed first
    stack: list[int] = []
    graph.doubt(doubtful)
    while sure or doubtful:
        while sure:
            i = -heapq.heappop(sure)
            stack.append(i)
            for j in graph.leave(i):
                if j in doubtful:
                    doubtful.discard(j)
                    graph.cost[j] = INFINITE
                    heapq.heappush(sure, -j)
        i = graph.cheapest()
        if i is None:
            break
        doubtful.discard(i)
        graph.cost[i] = INFINITE
        heapq.heappush(sure, -i)
    return stack + sorted(doubtful, key=lambda i: (_weight(nodes[i]), -i))


def _weight(node: Node) -> int:
    return node.size * (node.hi - node.lo + 1)


@attrs.frozen
class Way:
    """How select fills: `dense` looks for the lowest start in any position, else in the first
    position that has one; nodes of more than a `big`th of the budget come down from the top."""

    dense: bool
    big: int = 0


WAYS = (Way(False), Way(True), Way(True, 8), Way(True, 3))


class Floor:
    """The places that have been given, and when the nodes there live."""

    def __init__(self, nodes: Sequence[Node]) -> None:
        import numpy as np

        self.places: dict[str, tuple[int, int]] = {}
        self.nodes: list[Node] = []
        self.taken: list[tuple[int, int, int]] = []  # bands, start, end
        self.lo, self.hi = np.zeros(len(nodes), np.int64), np.zeros(len(nodes), np.int64)
        for node in nodes:
            if node.fixed:
                self.put(node, *node.fixed)

    def put(self, node: Node, bands: int, start: int) -> None:
        at = len(self.taken)
        self.lo[at], self.hi[at] = node.lo, node.hi
        self.nodes.append(node)
        self.taken.append((bands, start, start + node.size))
        self.places[node.name] = bands, start

    def remove(self, node: Node) -> None:
        """Take a node away again: it lives at no time."""
        del self.places[node.name]
        self.hi[self.nodes.index(node)] = -1

    def near(self, node: Node) -> Numbers:
        """The numbers of what lives when a node does."""
        count = len(self.taken)
        return ((self.lo[:count] <= node.hi) & (self.hi[:count] >= node.lo)).nonzero()[0]

    def beside(self, node: Node) -> list[tuple[int, int, int]]:
        """What is taken while a node lives."""
        return [self.taken[k] for k in self.near(node)]


def _select(nodes: Sequence[Node], stack: list[int], budget: int, way: Way) -> Colouring:
    floor = Floor(nodes)
    score, unplaced = 0.0, list[str]()
    for i in reversed(stack):
        node = nodes[i]
        if found := _fit(node, floor.beside(node), budget, way):
            floor.put(node, *found)
        else:
            score += min(node.cost, 1e30)
            unplaced.append(node.name)
    return Colouring(floor.places, tuple(sorted(unplaced)), score)


def _fit(
    node: Node, taken: list[tuple[int, int, int]], budget: int, way: Way
) -> tuple[int, int] | None:
    """Bands and start for a node beside what its neighbours have taken."""
    down = bool(way.big) and node.size * way.big > budget
    search = last_gap if down else first_gap
    best: tuple[int, int] | None = None
    for bands in node.bands:
        spans = [(start, end) for mask, start, end in taken if mask & bands]
        start = search(spans, node.size, node.align, budget)
        if start is None:
            continue
        if not way.dense:
            return bands, start
        if best is None or (start > best[1] if down else start < best[1]):
            best = bands, start
    return best
