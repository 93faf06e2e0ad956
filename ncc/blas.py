"""One thread for products as small as a tile.

numpy's BLAS splits them over all processors, whose threads then wait for each other actively: on a
busy computer a product takes ten times as long, and more. This asks the library that numpy brings
for one thread, and gives the former number back afterwards. Where that library is another one,
nothing happens.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import cache
from pathlib import Path

SUFFIXES = ("64_", "_64_", "")
PREFIXES = ("scipy_openblas", "openblas")


@cache
def _library() -> tuple[Callable[[], int], Callable[[int], None]] | None:
    """How to ask for the number of threads, and how to set it."""
    import numpy as np

    package = Path(np.__file__).parent
    places = (package.parent / "numpy.libs", package / ".dylibs")
    for file in sorted(f for place in places if place.is_dir() for f in place.iterdir()):
        if "openblas" not in file.name:
            continue
        try:
            library = ctypes.CDLL(str(file))
        except OSError:
            continue
        for prefix in PREFIXES:
            for suffix in SUFFIXES:
                get = getattr(library, f"{prefix}_get_num_threads{suffix}", None)
                put = getattr(library, f"{prefix}_set_num_threads{suffix}", None)
                if get is not None and put is not None:
                    get.restype, put.argtypes, put.restype = ctypes.c_int, [ctypes.c_int], None
                    return get, put
    return None


@contextmanager
def one_thread() -> Generator[None]:
    """Products in this block run in the caller's thread only."""
    found = _library()
    if found is None:
        yield
        return
    get, put = found
    before = get()
    put(1)
    try:
        yield
    finally:
        put(before)
