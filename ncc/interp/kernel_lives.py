"""How long the buffers of a kernel live: until no later statement touches them."""

from __future__ import annotations

from ncc.ir.kernel import Access, Kernel, Statement, ops_of


def touched(one: Statement) -> set[str]:
    """The buffers that a statement names, also as the source of a start."""
    found: set[str] = set()
    for op in ops_of((one,)):
        for _, arg in op.args:
            if type(arg) is Access:
                found.add(arg.buffer)
                for move in arg.moves:
                    if isinstance(move.source, Access):
                        found.add(move.source.buffer)
    return found


def last_uses(kernel: Kernel, kept: set[str]) -> dict[int, list[str]]:
    """By number of a statement of the body: own buffers that it is the last to touch."""
    last: dict[str, int] = {}
    for number, one in enumerate(kernel.body):
        for name in touched(one):
            last[name] = number
    found: dict[int, list[str]] = {}
    keeps = kept | {b.name for b in kernel.buffers if b.memory == "shared_hbm"}
    for name, number in last.items():
        if name not in keeps:
            found.setdefault(number, []).append(name)
    return found
