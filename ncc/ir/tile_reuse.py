"""What a contraction keeps on chip, and for how long: the decision that makes it fast.

A result tile needs a row of stationary tiles (all of the contraction, 128 columns) and a column of
moving tiles. Loaded anew for each result tile they cost more time than the PE array needs to
multiply them, so:

- a *panel* of moving tiles, as many columns as fit, stays while all rows pass by it;
- the stationary tiles of one *row* stay while the columns of the panel pass by them, or, if there
  is room, those of all rows stay *once* and for all panels;
- what does not fit is loaded inside the accumulation, one *step* at a time.

Where room allows, buffers come in twos and take turns, so that the next load runs while the PE
array still reads the last one.
"""

from __future__ import annotations

import attrs

WIDEST = 4  # tiles in a panel: one load brings them, and PE waits for the first load
PANEL_SHARE = (5, 8)  # of the room, for moving tiles


@attrs.frozen
class Needs:
    """What a contraction asks for, in bytes per partition."""

    room: int  # of SBUF, without the whole tensors that live there
    steps: int  # tiles along the contraction
    rows: int  # stationary tiles
    columns: int  # moving tiles
    again: bool  # the rows pass by in several rounds whatever a panel holds
    stationary: int  # one stationary tile; 0 when it is read in place
    moving: int  # one moving tile; 0 when it is read in place
    tile: int  # all buffers of one result tile
    banks: int  # of PSUM
    turns: bool  # PE transposes need a bank too


@attrs.frozen
class Reuse:
    """`panel` columns of moving tiles (0: a step at a time); `rows` is once, row or step; the rings
    say how many buffers take turns; `wide` bytes are left for what a panel's columns share."""

    panel: int
    panel_ring: int
    rows: str
    row_ring: int
    tile_ring: int
    acc_ring: int
    wide: int


def decide(needs: Needs) -> Reuse:
    """Small first: the buffers of a result tile, then stationary tiles, then the panel."""
    tile_ring = 2 if 2 * needs.tile <= needs.room // 4 else 1
    left = max(needs.room - tile_ring * needs.tile, 0)
    row = needs.steps * needs.stationary
    if (needs.columns > WIDEST or needs.again) and row * needs.rows <= left // 4:
        rows, row_ring, held = "once", 1, row * needs.rows
    elif row <= left // 4:
        row_ring = 2 if 2 * row <= left // 4 else 1
        rows, held = "row", row_ring * row
    else:
        row_ring = 2 if 2 * needs.stationary <= left // 8 else 1
        rows, held = "step", row_ring * needs.stationary
    budget = min(needs.room * PANEL_SHARE[0] // PANEL_SHARE[1], left - held)
    column = needs.steps * needs.moving
    if column <= budget:
        most = budget // column if column else WIDEST
        panel = min(most, WIDEST, needs.columns)
        panel_ring = 2 if 2 * panel * column <= budget else 1
        left -= held + panel_ring * panel * column
    else:
        panel, panel_ring = 0, 2 if 2 * needs.moving <= budget // 2 else 1
        left -= held + panel_ring * needs.moving
    banks = 2 + needs.turns
    acc_ring = 2 if needs.banks >= banks else 1
    return Reuse(panel, panel_ring, rows, row_ring, tile_ring, acc_ring, max(left // 4, 0))
