"""The machine from the bytes of a NEFF: nothing else reaches it."""

from __future__ import annotations

import machine_programs as m
import numpy as np
import pytest

from ncc.errors import NccError
from ncc.pack import build, read, to_bytes
from ncc.sim.run import run_neff
from ncc.target import TARGETS


def test_the_dry_run_from_its_bytes():
    a, b = m.whole(5)
    neff = read(to_bytes(build(m.dry_run())))
    for seed in (None, 3):
        (got,) = run_neff(neff, None, [a, b], seed=seed)
        np.testing.assert_array_equal(got, a @ b)
    (got,) = run_neff(neff, TARGETS["trn2"], [a, b])
    np.testing.assert_array_equal(got, a @ b)


def test_another_machine_is_refused():
    a, b = m.whole()
    with pytest.raises(NccError, match="NCC916 the program is for 'cayman', and trn1 is 'sunda'"):
        run_neff(build(m.dry_run()), TARGETS["trn1"], [a, b])


def test_a_constant_stands_in_the_file():
    values = np.arange(32, dtype=np.float32).reshape(4, 8)
    place = m.chip(0, 0)
    variables = [
        m.Var("y", 1, "output", "bfloat16", (4, 8)),
        m.constant("c", 2, "bfloat16", values),
    ]
    sp = [
        m.load(m.SP, m.Dram(2, 0), place, 4, 16, "bfloat16", 16),
        m.save(m.SP, place, m.Dram(1, 0), 4, 16, "bfloat16", 16, awaited=(12, 16)),
        m.leave((12, 32)),
    ]
    neff = read(to_bytes(build(m.program({m.SP: sp}, variables))))
    (got,) = run_neff(neff, None, [])
    np.testing.assert_array_equal(got.astype(np.float32), values)
