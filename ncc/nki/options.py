"""What decorators and keywords say about how a kernel is compiled."""

from __future__ import annotations

from typing import Any

import attrs

from ncc.target import Target

Edges = tuple[tuple[str, tuple[str, ...]], ...]


@attrs.frozen
class Options:
    """How one kernel is compiled. Each field says what ncc does with it.

    `skip_middle_end`: nothing is left out, since no pass changes a sealed kernel.
    `allocator`: which allocator places the tensors of a program that is this kernel, unless the
    program is compiled with `--allocator`; `enable_stack_allocator` chooses `stack`.
    `force_auto_alloc`: addresses that the kernel chose are dropped, and the allocator chooses.
    `schedule`: (consumer, producers) by instruction name; they become Ordered edges.
    `form`: how the body travels into BIR, `bir` or `klir`; the bytes are the same.
    `rest`: keywords of `jit` that change nothing here, kept so that they can be read.
    """

    skip_middle_end: bool = False
    allocator: str = ""
    force_auto_alloc: bool = False
    schedule: Edges = ()
    form: str = "bir"
    rest: tuple[tuple[str, Any], ...] = ()

    def machine(self, target: Target) -> Target:
        """The target with the kernel's allocator, where nobody chose another."""
        mine = self.allocator and not target.allocator
        return target.allocating(self.allocator) if mine else target


def edges(given: Any) -> Edges:
    """`[(consumer, producer)]` or `[(consumer, [producers])]` as one form."""
    found: list[tuple[str, tuple[str, ...]]] = []
    for consumer, producers in given:
        one = (producers,) if isinstance(producers, str) else tuple(producers)
        found.append((str(consumer), tuple(map(str, one))))
    return tuple(found)
