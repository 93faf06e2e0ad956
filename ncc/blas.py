"""numpy's products on one thread: ncc multiplies small tiles, which a second thread only slows.

A command says so in its environment, before numpy is loaded. Who calls ncc from Python has loaded
numpy already, so the library that numpy brought is asked while ncc computes, and then set back.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

FOLDERS = ("../numpy.libs", ".dylibs")  # where numpy's packages keep it, beside or inside numpy
NAMES = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")


@cache
def _threads() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """How to read and set the number of threads; None where numpy has another library."""
    import numpy as np

    inside = Path(np.__file__).parent
    for folder in FOLDERS:
        for file in sorted((inside / folder).resolve().glob("*openblas*")):
            try:
                library = ctypes.CDLL(str(file))
            except OSError:
                continue
            for name in NAMES:
                get = getattr(library, name.format("get_num_threads"), None)
                put = getattr(library, name.format("set_num_threads"), None)
                if get is not None and put is not None:
                    return get, put
    return None


@contextmanager
def one_thread() -> Generator[None]:
    """Products inside of this run on one thread; afterwards on as many as before."""
    found = _threads()
    before = found[0]() if found else 1
    if found is None or before <= 1:
        yield
        return
    found[1](1)
    try:
        yield
    finally:
        found[1](before)
