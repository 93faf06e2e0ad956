"""The wheel: built, installed into an environment of its own, and used outside the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parent.parent


def run(*words, **given):
    env = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "PYTHONHOME")}
    done = subprocess.run(words, capture_output=True, text=True, env=env, **given)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Built without a network: the builder is one of the tools that tests need anyway."""
    into = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(into), cwd=CHECKOUT)
    (found,) = into.glob("ncc-*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """The `ncc` of an environment that has the wheel, and what it depends on from this one."""
    root = tmp_path_factory.mktemp("installed")
    venv.create(root / "env", with_pip=False)
    python = root / "env" / "bin" / "python"
    run(sys.executable, "-m", "pip", "--python", str(python), "-q", "install", "--no-index",
        "--no-deps", "--no-compile", str(wheel))  # fmt: skip
    (site,) = (root / "env").glob("lib/python*/site-packages")
    # a path file in here is not read: the checkout, which this environment may point at, stays out
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    work = root / "work"
    work.mkdir()

    def ncc(*words, status=0):
        done = subprocess.run(
            [str(root / "env" / "bin" / "ncc"), *words],
            capture_output=True,
            text=True,
            cwd=work,
            env={"PATH": os.environ["PATH"], "HOME": str(root)},
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    ncc.python, ncc.work = python, work
    return ncc


def test_the_wheel_holds_programs_and_labs_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    assert "ncc/front/hlo.lark" in names and "ncc/py.typed" in names
    assert {n for n in names if n.startswith("ncc/_examples/")} == {
        f"ncc/_examples/{p.name}" for p in (CHECKOUT / "examples").iterdir() if p.is_file()
    }
    assert "ncc/_labs/tiling/lab.json" in names and "ncc/_labs/tiling/README.md" in names
    assert not [n for n in names if "__pycache__" in n or "tests/" in n]
    assert {n.split("/")[0] for n in names} == {"ncc", "ncc-0.1.0.dist-info"}


def test_it_is_the_wheel_that_runs(installed):
    code = "import ncc; print(ncc.__file__)"
    found = run(str(installed.python), "-c", code, cwd=installed.work).stdout
    assert str(installed.python.parent.parent) in found and str(CHECKOUT) not in found
    assert installed("--version") == "ncc 0.1.0\n"


def test_examples_are_listed_printed_and_compiled(installed):
    assert "matmul.hlo" in installed("examples")
    text = installed("examples", "matmul.hlo")
    assert text == (CHECKOUT / "examples" / "matmul.hlo").read_text()
    (installed.work / "mine.hlo").write_text(text)
    installed("compile", "mine.hlo", "-o", "mine.neff")
    assert installed("run", "mine.neff").startswith("out float32 128x256\n")


def test_doctor_tries_the_seed_program(installed):
    assert installed("doctor").endswith("largest difference 0\n")


def test_labs_start_and_are_checked(installed):
    assert "tiling" in installed("lab", "list")
    installed("lab", "start", "tiling")
    assert "0 of 4 programs pass" in installed("lab", "check", "tiling", status=3)


def test_explain_finds_its_pages(installed):
    assert installed("explain", "cutParAxes").startswith("cut-partition: ")
    assert installed("explain", "NCC004").startswith("NCC004: not a program\n")
