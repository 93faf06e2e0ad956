"""What the tests share: programs, the passes, and a limit on threads."""

from __future__ import annotations

import gc
import os
import sys
from pathlib import Path

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
gc.set_threshold(100_000)  # as the command line: nodes form no cycles, and tests make millions
sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(autouse=True)
def _path_of_imports():
    """A program that was loaded from a file leaves its folder on the path; a test must not."""
    path = sys.path[:]
    yield
    sys.path[:] = path
