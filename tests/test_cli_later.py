"""Usage: what comes later, what is misspelt, where nothing can be written; and faults of ncc's own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from cli_programs import SMALL, command

import ncc as package
from ncc import cli, passes
from ncc.errors import NccError, UsageError
from ncc.passes.base import define
from ncc.stages import read_stage


@pytest.fixture
def ncc(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("small.hlo").write_text(SMALL)
    return lambda *words: command(capsys, *words)


LATER = [
    (("profile", "x.neff"), "`ncc profile` is not there yet: the clock comes with the back-end"),
    (("why", "small.hlo", "a", "b"), "`ncc why` is not there yet: the paths of dependences come"),
    (("explore", "small.hlo"), "`ncc explore` is not there yet: the page comes later"),
    (("step", "small.hlo"), "`ncc step` is not there yet: the stepper comes later"),
    (("bisect", "small.hlo"), "`ncc bisect` is not there yet: bisecting comes later"),
    (("reduce", "small.hlo"), "`ncc reduce` is not there yet: reducing comes later"),
    (("run", "small.hlo", "--ranks", "4"), "--ranks above 1 comes with the ring work"),
    (("check", "small.hlo", "--against", "jax"), "--against jax comes with the HLO work"),
    (
        ("compile", "m.pb"),
        "m.pb is an HloModuleProto: `pip install 'ncc[jax]'`, of a later release",
    ),
    (("run", "m.mlir"), "m.mlir is StableHLO: `pip install 'ncc[jax]'`, of a later release"),
]


@pytest.mark.parametrize(("words", "said"), LATER, ids=[" ".join(w) for w, _ in LATER])
def test_what_comes_later_says_so(ncc, words, said):
    for name in ("m.pb", "m.mlir"):
        Path(name).write_text("x")
    found = ncc(*words)
    assert (found.status, found.out) == (2, "")
    assert found.err.startswith(f"ncc: NCC005 {said}") and found.err.count("\n") == 1


NEAREST = [
    (("comple", "small.hlo"), "NCC001 there is no command 'comple' (did you mean compile?)"),
    (("neff", "lst", "x"), "NCC001 ncc neff has no command 'lst' (did you mean list?)"),
    (("lab", "grades", "x"), "NCC001 ncc lab has no command 'grades' (did you mean grade?)"),
    (("lab",), "NCC002 Missing command. (ncc lab --help)"),
    (
        ("compile", "small.hlo", "--print-aftr", "x"),
        "NCC002 there is no option --print-aftr (did you mean --print-after?)",
    ),
    (
        ("compile", "small.hlo", "--stop-afetr", "x"),
        "NCC002 there is no option --stop-afetr (did you mean --stop-after?)",
    ),
    (
        ("compile", "small.hlo", "--print-after", "unrol"),
        "NCC001 no pass is called 'unrol' (did you mean unroll?)",
    ),
    (
        ("compile", "small.hlo", "--stop-after", "alloc_ps"),
        "NCC001 no pass is called 'alloc_ps' (did you mean alloc-psum?)",
    ),
    (("draw", "small.hlo", "--after", "q"), "NCC001 no pass is called 'q' (`ncc passes` lists"),
    (
        ("run", "small.hlo", "--at", "penguins"),
        "NCC001 no level is called 'penguins'; there are hlo, mhlo, penguin, bir, isa, neff "
        "(did you mean penguin?)",
    ),
    (
        ("compile", "small.hlo", "--target", "trn9"),
        "NCC002 no target is called 'trn9'; there are trn1, trn2, trn3 (did you mean trn",
    ),
    (
        ("compile", "small.hlo", "--target", "trn2,sram=3"),
        "NCC002 cannot read 'sram=3'; a limit is sbuf=BYTES or psum=BANKS",
    ),
    (
        ("compile", "small.hlo", "--target", "trn2,psum=9"),
        "NCC002 psum=9 is more than the 8 that trn2 has",
    ),
    (("compile", "small.hlo", "--with-pass", "unroll"), "NCC002 cannot read 'unroll', expected"),
    (("compile", "small.hlo", "--with-pass", "unroll=no.py"), "NCC003 there is no file no.py"),
    (("run", "small.hlo", "--random", "-1"), "NCC002 Invalid value for '--random'"),
    (
        ("run", "small.hlo", "--random", "1", "--inputs", "x"),
        "NCC002 --inputs and --random exclude",
    ),
    (("asm", "nothing.s"), "NCC003 there is no file nothing.s"),
    (("compile",), "NCC002 Missing argument 'PROGRAM'."),
]


@pytest.mark.parametrize(("words", "said"), NEAREST, ids=[" ".join(w) for w, _ in NEAREST])
def test_a_wrong_word_gets_the_nearest_right_one(ncc, words, said):
    found = ncc(*words)
    assert (found.status, found.out) == (2, "")
    assert found.err.startswith(f"ncc: {said}") and found.err.count("\n") == 1


def test_a_pass_that_does_not_run_is_not_passed_over_in_silence(ncc):
    ncc("compile", "small.hlo", "--stop-after", "unroll", "-o", "u.txt")
    for words, said in (
        (("--print-after", "cut-free"), "cut-free does not run here, so there is nothing to show"),
        (("--graph-after", "pack", "--stop-after", "pre-sched"), "pack does not run here"),
        (("--stop-after", "cut-free"), "cannot stop after cut-free: the program already stands"),
        (("--skip", "simplify"), "simplify does not run any more: the program stands after unroll"),
        (("--start-after", "cut-free"), "the program is bir, but after cut-free stands penguin"),
    ):
        found = ncc("compile", "u.txt", *words)
        assert found.status == 2 and f"NCC001 {said}" in found.err
    found = ncc("compile", "u.txt", "--start-after", "alloc-psum")
    assert found.status == 1 and "NCC001 alloc-sbuf: needs the fact " in found.err
    found = ncc("compile", "u.txt", "--target", "trn1")
    assert found.err == "ncc: NCC002 the program is for trn2; it cannot be compiled for trn1\n"


@pytest.mark.parametrize(
    ("where", "said"),
    [
        ("nothing/x", "nothing/x cannot be written: there is no folder nothing"),
        (".", ". is a folder; name a file in it"),
        ("small.hlo/x", "small.hlo/x cannot be written: there is no folder small.hlo"),
        ("x" * 300, "cannot write " + "x" * 300 + ": file name too long"),
    ],
)
@pytest.mark.parametrize(
    "words",
    [
        ("compile", "small.hlo", "-o"),
        ("compile", "small.hlo", "--stop-after", "unroll", "-o"),
        ("run", "small.hlo", "--outputs"),
        ("draw", "small.hlo", "--after", "hlo-verify", "-o"),
        ("neff", "extract", "good.neff", "info.json", "-o"),
        ("asm", "good.s", "-o"),
    ],
    ids=lambda words: words[0] if isinstance(words, tuple) else None,
)
def test_places_that_cannot_be_written(ncc, words, where, said):
    if any("good" in word for word in words):
        ncc("compile", "small.hlo", "-o", "good.neff")
        Path("good.s").write_text(ncc("disasm", "good.neff").out)
    before = sorted(p.name for p in Path().iterdir())
    found = ncc(*words, where)
    assert found.status == 2 and found.err.endswith(f"ncc: NCC003 {said}\n")
    assert sorted(p.name for p in Path().iterdir()) == before


@pytest.mark.parametrize("words", [("compile", "small.hlo", "--dump"), ("examples", "--copy")])
def test_folders_that_cannot_be_made(ncc, words):
    found = ncc(*words, "small.hlo")
    assert found.status == 2
    assert "NCC003 small.hlo cannot be a folder: a file is in the way" in found.err
    assert Path("small.hlo").read_text() == SMALL


def test_a_failed_compile_leaves_the_old_neff(ncc, monkeypatch):
    ncc("compile", "small.hlo")
    old = Path("small.neff").read_bytes()

    def full(here, there):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    found = ncc("compile", "small.hlo", "--header")
    assert found.status == 2
    assert found.err == "ncc: NCC003 cannot write small.neff: no space left on device\n"
    assert Path("small.neff").read_bytes() == old
    assert sorted(p.name for p in Path().iterdir()) == ["small.hlo", "small.neff"]


# ---- a fault in ncc itself -----------------------------------------------------------------------


def breaks(module, target):
    raise KeyError("planted")


def test_a_broken_pass_is_named_and_leaves_what_replays_it(ncc, monkeypatch):
    good = passes.load
    bad = define("pre_sched", "Break.", breaks, source="bir")
    monkeypatch.setattr(passes, "load", lambda e: bad if e == "bir.pre_sched" else good(e))
    found = ncc("compile", "small.hlo", "--stats")
    assert found.status == 70 and found.out == ""
    assert found.err == (
        "ncc: a fault in ncc itself, in the pass pre-sched: KeyError: 'planted'\n"
        "`ncc compile ncc-fault-pre-sched.txt` with the same options shows it again; "
        "please report it with that file\n"
    )
    kept = read_stage(Path("ncc-fault-pre-sched.txt").read_text())
    assert kept.after == "widen-psum"
    again = ncc("compile", "ncc-fault-pre-sched.txt")
    assert again.status == 70 and "in the pass pre-sched: KeyError: 'planted'" in again.err
    monkeypatch.setattr(passes, "load", good)
    assert ncc("compile", "ncc-fault-pre-sched.txt", "-o", "x.neff").status == 0


def test_a_fault_outside_a_pass_says_where(ncc, monkeypatch, capsys):
    from ncc.commands import run

    monkeypatch.setattr(run, "show_array", lambda *_: breaks(0, 0))
    found = ncc("run", "small.hlo")
    assert found.status == 70 and "Traceback" not in found.err
    assert "ncc: a fault in ncc itself, test_cli_later.py:" in found.err
    monkeypatch.setenv("NCC_DEBUG", "1")
    assert "Traceback" in ncc("run", "small.hlo").err


def test_too_little_memory_is_one_sentence(ncc, monkeypatch):
    from ncc.sim import run

    def much(*_, **__):
        raise MemoryError

    monkeypatch.setattr(run, "run_report", much)
    found = ncc("run", "small.hlo")
    assert found.status == 1
    assert "NCC011 the program needs more memory than there is here" in found.err


# ---- the process ---------------------------------------------------------------------------------


def shell(line, cwd):
    env = {**os.environ, "NCC": f"{sys.executable} -m ncc"}
    return subprocess.run(
        ["bash", "-o", "pipefail", "-c", line], cwd=cwd, env=env, capture_output=True, text=True
    )


def test_a_reader_that_leaves_early_is_no_fault(tmp_path):
    done = shell("$NCC passes | head -1", tmp_path)
    assert (done.returncode, done.stderr) == (0, "") and done.stdout.startswith("pass ")


def test_a_full_disk_under_stdout_is_one_sentence(ncc, monkeypatch):
    from ncc.commands import explain

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(explain, "show_table", full)
    found = ncc("passes")
    assert found == (2, "", "ncc: NCC003 cannot use the output: no space left on device\n")


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from ncc.cli import call; call(['--help']);"
        "heavy = {'attr', 'numpy', 'lark', 'rich', 'graphviz', 'ncc.driver', 'ncc.walking', 'ncc.errors'};"
        "print(sorted(heavy & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stderr == "[]\n" and "Usage: ncc" in done.stdout


def test_a_terminal_without_unicode_is_no_fault(tmp_path):
    done = shell("PYTHONIOENCODING=ascii $NCC explain --unchecked; $NCC explain NCC415", tmp_path)
    assert done.returncode == 0 and done.stderr == ""


# ---- the Python API ------------------------------------------------------------------------------


def test_the_api_mirrors_the_commands(ncc):
    import numpy as np

    assert package.compile("small.hlo").level == "neff"
    stage = package.compile("small.hlo", stop_after="cut_free", skip=("simplify",), target="trn1")
    assert (stage.level, stage.after, stage.target.name) == ("penguin", "cut-free", "trn1")
    x, w, b = np.ones((8, 4)), np.ones((4, 3)), [1, -9, 0]
    (out,) = package.run("small.hlo", [x, w, b])
    assert out.tolist() == [[5, 0, 4]] * 8
    watched = {}
    (at,) = package.run("small.hlo", [x, w, b], at="mhlo", watch=watched)
    assert (at == out).all() and watched["dot_1"].tolist() == [[4, 4, 4]] * 8
    result = package.check("small.hlo")
    assert result.passed and {row["inputs"] for row in result.rows} == {
        "whole numbers", "random numbers"
    }  # fmt: skip
    assert package.check("small.hlo", [x, w, b], against=[out]).passed
    wrong = package.check(stage, [x, w, b], against=[out + 1])
    assert not wrong.passed and "differs from the right outputs" in wrong.failed


def test_the_api_raises_sentences(ncc):
    with pytest.raises(UsageError, match=r"NCC003 there is no file no\.hlo"):
        package.compile("no.hlo")
    with pytest.raises(NccError, match=r"NCC006 the program has 3 inputs, 1 were given"):
        package.run("small.hlo", [[1.0]])
    with pytest.raises(AttributeError, match=r"ncc\.jit is not there yet"):
        _ = package.jit
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = package.nothing


def test_every_command_has_a_line_of_help():
    for name, where, text in cli.COMMANDS:
        assert text.endswith(".") and ":" in where, name
        assert cli.ncc.get_command(None, name).help
