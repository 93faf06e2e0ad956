"""Print and draw every stage of a program, and check it: `look_and_check.py PROGRAM FOLDER`."""

from __future__ import annotations

import sys
from pathlib import Path

from ncc import checking
from ncc.observe import Dump
from ncc.programs import load_program
from ncc.target import TARGETS
from ncc.walking import plan, walk

stage = load_program(sys.argv[1], TARGETS["trn2"])
walk(stage, plan(stage), [Dump(Path(sys.argv[2]))])
sets = [checking.whole_numbers(stage), checking.random_numbers(stage)]
result = checking.check(stage, plan(stage), sets)
print("\n".join(result.summary()) or result.failed)
