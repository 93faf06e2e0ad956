"""Walking over instructions, those inside regions too."""

from __future__ import annotations

from collections.abc import Iterator

from ncc.ir.bir import Block, Inst


def all_insts(blocks: tuple[Block, ...]) -> Iterator[Inst]:
    """Every instruction in order, those of a region after it."""
    for block in blocks:
        for inst in block.insts:
            yield inst
            if inst.blocks:
                yield from all_insts(inst.blocks)
