"""`sendrecv` and `core_barrier`: two cores of a launch meet."""

from __future__ import annotations

from typing import Any

from ncc.nki import isa
from ncc.nki.old.results import tile


def sendrecv(
    *, send_to_rank: Any, recv_from_rank: Any, src: Any, dst: Any, pipe_id: Any = 0, **ignored: Any
) -> None:
    """Send src to the other core of the pair and receive its src into dst."""
    sent, got = tile(src, "sendrecv", "src"), tile(dst, "sendrecv", "dst")
    isa.sendrecv(sent, got, send_to_rank, recv_from_rank, pipe_id)


def core_barrier(data: Any, cores: Any = (0, 1), **ignored: Any) -> None:
    """The cores wait for each other."""
    isa.core_barrier(tile(data, "core_barrier", "data"), cores)
