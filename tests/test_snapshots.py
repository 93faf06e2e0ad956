"""Every stage of the small programs is as reviewed, and what they expect holds.

`pytest --snapshot-update` writes the stages anew; `// expect` lines are never touched by it.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import INTENT, PROGRAMS, expectations, traced, unmet

from ncc import passes

SNAPSHOTS = Path(__file__).parent / "snapshots"
EACH = pytest.mark.parametrize("path", PROGRAMS, ids=lambda p: p.stem)


@EACH
def test_every_stage_is_as_reviewed(path, snapshot):
    """A file is named by its pass alone: a pass more in the list renames none."""
    snapshot.snapshot_dir = SNAPSHOTS
    snapshot.assert_match_dir({f"{n}.txt": t for n, t in traced(path).texts.items()}, path.stem)


@EACH
def test_expectations_hold(path):
    record = traced(path)
    for name, clause in expectations(path.read_text()):
        assert name in record.texts, f"no pass is called {name}"
        said = unmet(clause, record.texts[name], record.kinds[name])
        assert not said, f"after {name}: {said}"


@EACH
def test_a_program_says_what_it_is_for(path):
    assert INTENT.search(path.read_text())


def test_every_pass_has_an_expectation():
    named = {name for path in PROGRAMS for name, _ in expectations(path.read_text())}
    missing = [name for name in passes.called() if name not in named]
    assert not missing, f"no program expects anything of {', '.join(missing)}"


def test_an_expectation_can_fail():
    from collections import Counter

    assert unmet("2 Matmult", "", Counter({"Matmult": 1}))
    assert unmet("no Matmult", "", Counter({"Matmult": 1}))
    assert unmet("`acc`", "nothing", Counter())
    assert unmet("some words", "", Counter())
    assert not unmet("1 Matmult", "", Counter({"Matmult": 1}))
