"""The demo: one matmul from HLO text to NEFF bytes, a picture a stage, and the bytes run.

    python examples/demo.py [FOLDER]

prints a line a pass, writes texts, pictures and matmul.neff into the folder, runs the bytes on
whole numbers and prints the largest difference from numpy.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import ncc
from ncc import pack
from ncc.observe import Dump
from ncc.programs import load_program
from ncc.stages import Stage
from ncc.target import TARGETS
from ncc.values import whole
from ncc.walking import Step


class Lines:
    """An observer that prints one line a pass."""

    def __init__(self) -> None:
        self.number = 0

    def start(self, stage: Stage) -> None:
        print(f"{self.number:2}  {stage.level:<8}{'input':<20}")

    def step(self, step: Step) -> None:
        self.number += 1
        mark = "" if step.changed else "no change"
        purpose = step.pass_.purpose if step.changed else mark
        print(f"{self.number:2}  {step.after.level:<8}{step.name:<20}{purpose}")


def main(folder: str = "demo") -> None:
    program = Path(__file__).with_name("matmul.hlo")
    stage = load_program(program, TARGETS["trn2"])
    last = ncc.compile(stage, observers=[Lines(), Dump(Path(folder))])
    neff = Path(folder) / "matmul.neff"
    pack.write(last.module, neff)
    lhs, rhs = whole(stage, 0)
    (out,) = ncc.run(neff, [lhs, rhs])
    want = lhs.astype(np.float64) @ rhs.astype(np.float64)
    size = neff.stat().st_size
    print(f"\n{folder}/ holds every stage as text and picture, and {neff} of {size} bytes.")
    print(f"Bytes run: the largest difference from numpy is {abs(out - want).max():g}.")


if __name__ == "__main__":
    main(*sys.argv[1:2])
