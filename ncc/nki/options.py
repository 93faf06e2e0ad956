"""What decorators and keywords say about how a kernel is compiled."""

from __future__ import annotations

from typing import Any

import attrs

Edges = tuple[tuple[str, tuple[str, ...]], ...]


@attrs.frozen
class Options:
    """How one kernel is compiled. Each field says what ncc does with it.

    `skip_middle_end`: nothing is left out, since no pass changes a sealed kernel.
    `stack_allocator`, `allocator`: which allocator places the kernel's tensors.
    `force_auto_alloc`: addresses that the kernel chose are dropped, and the allocator chooses.
    `schedule`: (consumer, producers) by instruction name; they become Ordered edges.
    `form`: how the body travels into BIR, `bir` or `klir`; the bytes are the same.
    `rest`: keywords of `jit` that change nothing here, kept so that they can be read.
    """

    skip_middle_end: bool = False
    stack_allocator: bool = False
    allocator: str = ""
    force_auto_alloc: bool = False
    schedule: Edges = ()
    form: str = "bir"
    rest: tuple[tuple[str, Any], ...] = ()


def edges(given: Any) -> Edges:
    """`[(consumer, producer)]` or `[(consumer, [producers])]` as one form."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for consumer, producers in given:
        one = (producers,) if isinstance(producers, str) else tuple(producers)
        found.append((str(consumer), tuple(map(str, one))))
    return tuple(found)
