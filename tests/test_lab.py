"""The first lab: the empty skeleton fails with its own sentence, the reference passes, and what
students get wrong is named."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from ncc import labs, passes
from ncc.cli import call

LAB = labs.lab_named("tiling")
EVERY = (*LAB.open, *LAB.hidden)


def live(name):
    """The reference solution: the pass as it is."""
    return (
        Path(passes.__file__).parent / f"{passes.called()[name].replace('.', '/')}.py"
    ).read_text()


@pytest.fixture
def folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert call(["lab", "start", "tiling"]) == 0
    capsys.readouterr()
    return tmp_path / "tiling"


def solve(folder, *edits, only=None):
    """Hand the reference in, with some of its text changed."""
    changed = 0
    for name in LAB.passes:
        text = live(name)
        for old, new in edits:
            changed += text.count(old)
            text = text.replace(old, new)
        if only in (None, name):
            (folder / labs.file_of(name)).write_text(text)
    assert changed or not edits, "the reference no longer has what this wrong answer changes"


def graded(folder, *programs):
    """{program: what was said} of those that do not pass."""
    grades = labs.grade(LAB, labs.handed_in(LAB, folder), programs or EVERY)
    return {grade.program: grade.said for grade in grades if not grade.passed}


def test_start_writes_skeletons_that_name_their_task(folder):
    assert sorted(p.name for p in folder.iterdir()) == [
        "README.md",
        "cut_free.py",
        "cut_partition.py",
    ]
    for name in LAB.passes:
        text = (folder / labs.file_of(name)).read_text()
        assert "# lab:" not in text
        (task,) = (line for line in text.splitlines() if "raise NotImplementedError" in line)
        assert len(task) < 130 and "compute_cut" not in task
    partition = (folder / "cut_partition.py").read_text()
    assert "cut_list(role" not in partition and "def cut(" in partition


def test_start_overwrites_no_work(folder, capsys):
    assert call(["lab", "start", "tiling"]) == 2
    assert "NCC002 tiling is there already" in capsys.readouterr().err
    Path("note").write_text("")
    assert call(["lab", "start", "tiling", "--into", "note"]) == 2
    assert "NCC003 note cannot be a folder" in capsys.readouterr().err


def test_the_untouched_skeleton_fails_with_its_sentence_on_each_program(folder, capsys):
    assert call(["lab", "grade", "tiling", "--json"]) == 3
    out, err = capsys.readouterr()
    report = json.loads(out)
    assert (report["lab"], report["passed"], report["of"]) == ("tiling", 0, len(EVERY))
    assert [row["program"] for row in report["programs"]] == list(EVERY)
    task = "make `found`, the cut of the axes on partitions: of a contraction those it sums over"
    for row in report["programs"]:
        assert row["said"].startswith("NCC010 cut_partition.py:")
        assert row["said"].endswith(f", cut-partition: {task}")
    assert err == f"ncc: NCC008 {len(EVERY)} programs of the lab do not pass\n"


def test_the_second_task_is_named_when_the_first_is_done(folder, capsys):
    solve(folder, only="cut-partition")
    assert call(["lab", "check", "tiling"]) == 3
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(LAB.open) + 1 and lines[-1] == f"0 of {len(LAB.open)} programs pass"
    assert "cut-free: return the point where a tile is full" in lines[0]


def test_the_reference_passes_everything(folder, capsys):
    solve(folder)
    assert call(["lab", "grade", "tiling", "--json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["passed"] == report["of"] == len(EVERY)
    for row in report["programs"]:
        assert row["passed"] and row["said"] == "" and 0 < row["cost"] == row["reference"]


PARTITIONS = "for name in names], target.partitions)"
WRONG = [
    # cut at 127: right numbers, and a pass too many
    (
        "seed.hlo",
        [(PARTITIONS, "for name in names], target.partitions - 1)")],
        "right, but it takes 5 matrix passes where 4 are enough",
    ),
    # cut at 256: the fact does not hold
    (
        "seed.hlo",
        [(PARTITIONS, "for name in names], 256)")],
        "its partition tile has 256 elements, and 128 fit",
    ),
    # the tail is forgotten: only whole tiles are counted
    (
        "ragged.hlo",
        [
            (
                "    return attrs.evolve(op, cuts=(*op.cuts, found), ",
                "    axes = tuple(attrs.evolve(a, extent=a.extent // 128 * 128 or a.extent)"
                " for a in op.axes)\n"
                "    return attrs.evolve(op, axes=axes, cuts=(*op.cuts, found), ",
            )
        ],
        "NCC223 ragged.hlo:4:3, after cut-partition, lhs_t: dimension 0 of lhs_t is not indexed by one",
    ),
    # an axis that is summed over is cut as a free one
    (
        "seed.hlo",
        [
            (
                "names = op.lhs_free_axes if op.swap_operands else op.rhs_free_axes",
                "names = (*op.rhs_free_axes, *op.contract_axes)",
            )
        ],
        "after cut-free, out: the loops and tiles of its moving cut walk n and k, and should walk n",
    ),
    # a tile that fills more than a bank
    ("wide.hlo", [("free_budget(target), len", "1024, len")], "1024 elements, and 512 fit"),
    # a tile half as long as it may be
    ("wide.hlo", [("free_budget(target), len", "256, len")], "10 matrix passes where 6 are enough"),
    # what a transpose reads lies on partitions too
    (
        "wide.hlo",
        [("if isinstance(op, TensorTransposeOp) and op.kind", "if False and op.kind")],
        "after cut-free, lhs_t: its free tile has 200 elements, and 128 fit",
    ),
    # slow and fast axes are swapped
    (
        "many_axes.hlo",
        [("for name in names], target", "for name in reversed(names)], target")],
        "walk k1 and k0, and should walk k0 and k1",
    ),
    # nothing is returned
    (
        "seed.hlo",
        [("    return module if unchanged(body, module.body) else attrs", "    attrs")],
        "NCC010 cut_partition.py, cut-partition: what the pass gives is no penguin program",
    ),
    # a slip of Python, with its line
    (
        "seed.hlo",
        [("found = cut_list(role", "found = cut_lists(role")],
        "NameError: name 'cut_lists'",
    ),
]


@pytest.mark.parametrize(("program", "edits", "said"), WRONG, ids=[w[2][:30] for w in WRONG])
def test_wrong_answers_are_named(folder, program, edits, said):
    solve(folder, *edits)
    assert said in graded(folder, program)[program]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("import os", "imports os; a pass of a lab may import ncc.ir"),
        ("from ncc import passes", "imports ncc; "),
        ("import ncc.ir.tiling", "imports ncc; "),
        ("from ncc.passes.penguin.cut_free import PASS", "imports ncc.passes.penguin.cut_free; "),
        ("from . import other", "imports .; "),
        ("x = __import__('os')", "uses __import__, which a pass has no need of"),
        ("print(open('x').read())", "uses open, which"),
        ("def f(:", "is not Python: "),
        ("\0", "is not Python: "),
    ],
)
def test_a_file_that_may_not_stand_in_is_refused(folder, capsys, line, said):
    solve(folder)
    path = folder / "cut_free.py"
    path.write_text(path.read_text() + f"\n{line}\n")
    assert call(["lab", "grade", "tiling", "--json"]) == 1
    out, err = capsys.readouterr()
    assert "NCC012 cut_free.py" in err and said in err
    assert said in json.loads(out)["refused"]


def test_what_a_pass_needs_may_be_imported(folder):
    solve(folder)
    path = folder / "cut_free.py"
    lines = "import math\nimport ncc.ir.tiling as tiling\nfrom collections import Counter\n"
    path.write_text(path.read_text() + f"\n{lines}")
    assert graded(folder, "deep.hlo") == {}


def test_another_pass_than_the_labs_is_refused(folder, capsys):
    solve(folder)
    path = folder / "cut_free.py"
    path.write_text(path.read_text().replace('source="penguin"', 'source="bir"'))
    assert call(["lab", "check", "tiling"]) == 1
    assert "NCC012 cut_free.py: defines cut-free from bir to bir" in capsys.readouterr().err
    path.unlink()
    assert call(["lab", "check", "tiling"]) == 2
    assert "NCC003 there is no tiling/cut_free.py (ncc lab start tiling)" in capsys.readouterr().err


def test_a_loop_that_does_not_end_is_stopped(folder, monkeypatch):
    monkeypatch.setattr(labs, "SECONDS", 0.5)
    solve(folder, ("    sizes = sizes_of(op)\n    if", "    while True:\n        pass\n    if"))
    assert graded(folder, "deep.hlo") == {
        "deep.hlo": "not finished after 0.5 seconds: does a loop not end?"
    }


def test_grading_works_outside_the_main_thread(folder):
    solve(folder)
    found = []
    worker = threading.Thread(target=lambda: found.append(graded(folder, "deep.hlo")))
    worker.start()
    worker.join()
    assert found == [{}]


def test_the_labs_are_listed(capsys):
    assert call(["lab", "list"]) == 0
    assert "tiling  Tiling: cutParAxes and cutFreeAxes" in capsys.readouterr().out
    assert call(["lab", "list", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["passes"] == ["cut-partition", "cut-free"]
    assert call(["lab", "start", "tilling"]) == 2
    assert "no lab is called 'tilling' (did you mean tiling?)" in capsys.readouterr().err
