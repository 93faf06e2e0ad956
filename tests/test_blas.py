"""Products on one thread, and as many as before afterwards."""

from __future__ import annotations

import subprocess
import sys

from ncc import blas

CODE = """
import numpy as np
from ncc import blas, nki
from ncc.nki import language as nl, isa as nisa

found = blas._threads()
get, put = found
put(2)
seen = []

def kernel(a):
    out = nl.ndarray(a.shape, a.dtype, buffer=nl.shared_hbm)
    nl.store(out, nl.load(a))
    return out

import ncc.interp.kernel as meaning
real = meaning.run
meaning.run = lambda *given: (seen.append(get()), real(*given))[1]
nki.simulate(kernel)(np.ones((4, 8), np.float32))
print(seen, get())
"""


def test_a_simulation_multiplies_on_one_thread_and_gives_the_others_back():
    if blas._threads() is None:
        return  # numpy has another library here
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["[1]", "2"]


def test_where_numpy_has_another_library_nothing_happens(monkeypatch):
    monkeypatch.setattr(blas, "_threads", lambda: None)
    with blas.one_thread():
        pass
