"""Asked of every rule: its examples are refused and accepted, and no other code is raised."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import ncc
from ncc.cli import call
from ncc.rules import rules

SHOWN = [rule for rule in rules().values() if rule.wrong]


def tried(rule, text, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kinds = (("HloModule", ".hlo"), ("import ", ".py"), ("", ".txt"))
    suffix = next(suffix for start, suffix in kinds if text.startswith(start))
    path = Path("example" + suffix)
    path.write_text(text)
    words = [word.replace("FILE", str(path)) for word in rule.how.split()]
    status = call(words)
    return status, capsys.readouterr().err


@pytest.mark.parametrize("rule", SHOWN, ids=lambda r: r.code)
def test_the_failing_example_is_refused(rule, tmp_path, capsys, monkeypatch):
    status, said = tried(rule, rule.wrong, tmp_path, capsys, monkeypatch)
    assert status in (1, 2, 3)
    assert f"ncc: {rule.code} " in said


@pytest.mark.parametrize("rule", [r for r in SHOWN if r.right], ids=lambda r: r.code)
def test_the_fixed_example_passes(rule, tmp_path, capsys, monkeypatch):
    status, said = tried(rule, rule.right, tmp_path, capsys, monkeypatch)
    assert status == 0, said


def test_every_code_that_is_raised_has_a_page():
    known = rules()
    for path in Path(ncc.__file__).parent.rglob("*.py"):
        if "rules" in path.parts:
            continue
        for code in re.findall(r'"(NCC\d{3})"', path.read_text()):
            assert code in known, f"{path.name} raises {code}, which has no page"


def test_every_page_says_what_to_do():
    for rule in rules().values():
        assert rule.title and rule.says.endswith(".") and rule.fix.endswith("."), rule.code
