"""A kernel's body that is interpreted (280 to 289)."""

from __future__ import annotations

from ncc.rules import Rule
from ncc.rules.nki_examples import RUN, kernel

_PAIRS = """
for r in nl.dynamic_range(0, END, 2):
    nisa.memset(dst=t[:, nl.ds(r, 2)], value=0.0)
"""

RULES: tuple[Rule, ...] = (
    Rule(
        "NCC280",
        "an index that is outside when it is read",
        "A start that an op reads while it runs (a scalar or vector offset, an index of a gather) "
        "lies inside the dimension that it indexes.",
        "Clamp the index, or pass oob_mode.skip so that rows outside are left untouched.",
        names=("oob_mode.error",),
        wrong=kernel(_PAIRS.replace("END", "33")),
        right=kernel(_PAIRS.replace("END", "32")),
        how=RUN,
    ),
    Rule(
        "NCC281",
        "a device loop that does not end",
        "The body of a while loop brings its condition register to 0 within a million turns.",
        "Let the body compute its condition anew.",
    ),
    Rule(
        "NCC282",
        "operands that do not fit together",
        "The operands of an op have equally many partitions and equally many elements in each, and "
        "types and operators that it computes with.",
        "Slice or view the operands so that their element counts agree.",
    ),
)
