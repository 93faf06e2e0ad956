"""The runner of the public tutorials, on a folder with a file of ours under a tutorial's name."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

RUNNER = Path(__file__).parent / "tutorials.py"
KERNEL = """
import nki
import nki.language as nl
import torch
from beside import total

@nki.jit
def add_kernel(a_ptr, b_ptr):
    out = nl.ndarray(a_ptr.shape, dtype=a_ptr.dtype, buffer=nl.shared_hbm)
    nl.store(out, value=total(nl.load(a_ptr), nl.load(b_ptr)))
    return out
"""
BESIDE = """
import nki.language as nl

def total(a, b):
    return nl.OP(a, b)
"""


def ran(folder: Path, op: str) -> tuple[int, str, str]:
    place = folder / "examples" / "simulate"
    place.mkdir(parents=True, exist_ok=True)
    (place / "nki_simulate_example.py").write_text(KERNEL)
    (place / "beside.py").write_text(BESIDE.replace("OP", op))
    (folder / "MANIFEST").write_text(
        "examples/simulate/nki_simulate_example.py some/where 12ab  # the one that is run\n"
    )
    page = folder / "page.md"
    done = subprocess.run(
        [sys.executable, RUNNER, folder, "--only", "simulate", "--page", page],
        capture_output=True,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout, page.read_text()


def test_a_kernel_from_outside_runs_and_the_page_says_from_where(tmp_path: Path):
    status, told, page = ran(tmp_path, "add")
    assert status == 0 and told.endswith("2 passed, 0 failed\n")
    assert "`some/where` at `12ab`" in page and page.count("| pass |") == 2
    assert "2 of 2 runs pass" in page


def test_a_wrong_result_fails_and_the_page_says_by_how_much(tmp_path: Path):
    status, told, page = ran(tmp_path, "subtract")
    assert status == 1 and told.endswith("0 passed, 2 failed\n")
    assert "`add_kernel`, compiled: error" in page and "allowed 2.0e-06" in page


def test_what_is_not_there_is_said(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, RUNNER, tmp_path, "--only", "mamba", "--page", tmp_path / "page.md"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "not found: fused_mamba/mamba_nki_kernels.py" in done.stdout
