"""Several cores in one program."""

from __future__ import annotations

from ncc.rules import Rule

HEAD = "# ncc bir target=trn2 after=lnc-split\n"
CORE = """core {n}
module m gen3
  func sg0000
    set x float32 (4,8) kind=ExternalInput
    set h float32 ({rows},8) kind=InternalInterface
    set y float32 (4,8) kind=ExternalOutput
    block Block1
      copy = AbstractCopy DMA y[a,b|a:4|b:8] <- x[a,b|a:4|b:8]
      exit = Exit ALL
"""
IDLE = CORE.replace("      copy = AbstractCopy DMA y[a,b|a:4|b:8] <- x[a,b|a:4|b:8]\n", "")

RULES: tuple[Rule, ...] = (
    Rule(
        "NCC438",
        "cores that know a shared tensor differently",
        "What several cores share is one tensor: it has one kind, dtype and shape, and every core knows "
        "all inputs and outputs in one order.",
        "Declare the tensor alike on each core.",
        wrong=HEAD + CORE.format(n=0, rows=4) + IDLE.format(n=1, rows=5),
        right=HEAD + CORE.format(n=0, rows=4) + IDLE.format(n=1, rows=4),
    ),
)
