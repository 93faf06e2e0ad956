"""What attention knows while it is compiled: where keys lie, and which of them queries may see.

Positions count through all keys: first those of a prefix cache, if there is one, then the new ones.
The new query i stands at the position of the new key i. Nothing here touches the machine.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import attrs

GROUP = 128  # queries at a time: one a partition
STEP = 128  # keys of one P·V product, and the grain in which a tile of scores is cut
TILE = 512  # keys of one score product: one PSUM bank
SECTION, SECTIONED_ABOVE = 8192, 10 * 1024  # keys that SBUF holds at a time


@attrs.frozen
class Group:
    """Up to 128 queries in a row."""

    index: int
    start: int  # of its first query, among the queries
    rows: int
    position: int  # of its first query, among the keys

    @property
    def last(self) -> int:
        """The position of its last query."""
        return self.position + self.rows - 1

    @property
    def queries(self) -> slice:
        return slice(self.start, self.start + self.rows)


@attrs.frozen
class Tile:
    """Up to 512 keys in a row of one source."""

    source: int  # number of the tensor that holds them
    start: int  # of its first key, in that tensor
    keys: int
    position: int


@attrs.frozen
class Part:
    """The columns `low` to `high` of the tile number `tile` of a section: what a group computes."""

    tile: int
    low: int
    high: int
    position: int  # of the column `low`

    @property
    def keys(self) -> int:
        return self.high - self.low


Section = tuple[Tile, ...]
Visit = tuple[int, tuple[Part, ...]]  # a section by its number, and what is computed of it


def groups(queries: int, first: int) -> list[Group]:
    """All queries, 128 at a time; query 0 stands at position `first`."""
    starts = range(0, queries, GROUP)
    return [Group(at // GROUP, at, min(GROUP, queries - at), first + at) for at in starts]


def sections(counts: Sequence[int]) -> list[Section]:
    """The keys of all sources, in sections when there are many; no tile lies in two sources."""
    length = sum(counts)
    step = SECTION if length > SECTIONED_ABOVE else length
    return [_tiles(counts, at, min(length, at + step)) for at in range(0, length, step)]


def _tiles(counts: Sequence[int], low: int, high: int) -> Section:
    """The tiles of the positions `low` to `high`."""
    found: list[Tile] = []
    begins = 0
    for source, count in enumerate(counts):
        last = min(high, begins + count)
        for at in range(max(low, begins), last, TILE):
            found.append(Tile(source, at - begins, min(TILE, last - at), at))
        begins += count
    return tuple(found)


@attrs.frozen
class Mask:
    """Which keys a query sees: none that come after it, none that are `window` or more before."""

    causal: bool
    window: int  # 0: no limit

    def part(self, group: Group, number: int, tile: Tile) -> Part | None:
        """The columns of a tile that some query of the group sees, widened to steps of 128."""
        low, high = 0, tile.keys
        if self.causal:
            seen = group.last + 1 - tile.position
            high = min(high, -(-seen // STEP) * STEP)
        if self.window:
            left = group.position - self.window + 1 - tile.position
            low = max(low, left // STEP * STEP) if left < tile.keys else tile.keys
        return Part(number, low, high, tile.position + low) if low < high else None

    def cuts_above(self, group: Group, position: int, keys: int) -> bool:
        """Whether one of these keys comes after a query of the group."""
        return self.causal and position + keys - 1 > group.position

    def cuts_below(self, group: Group, position: int) -> bool:
        """Whether the first of these keys has left the window of a query of the group."""
        return self.window > 0 and position <= group.last - self.window

    def cuts(self, group: Group, part: Part) -> bool:
        return self.cuts_above(group, part.position, part.keys) or self.cuts_below(
            group, part.position
        )


def visits(mask: Mask, group: Group, every: Iterable[Section]) -> list[Visit]:
    """The sections that a group has to look at, each with the parts of its tiles."""
    found: list[Visit] = []
    for number, section in enumerate(every):
        parts = (mask.part(group, n, tile) for n, tile in enumerate(section))
        if kept := tuple(part for part in parts if part is not None):
            found.append((number, kept))
    return found
