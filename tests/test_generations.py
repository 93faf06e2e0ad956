"""The kernels of `kernels/` give the same bits on trn2 and trn3, and on one core and two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from test_kernels import CASES, Case, kernel_of

from ncc.errors import NccError

FEW = 5  # of the kernels stand in the normal tier, the rest in the sweep
# rounds its result to the e4m3 type that trn3 lacks
LACKED = {"norms.rmsnorm_quant": "NCC261"}
# the cores fold half of the experts each: the sums are rounded in another order
REORDERED = {"pieces.all_experts": 2e-6}


def results(case: Case, target: str, lnc: int, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What a compiled call returns, and the arguments that it writes."""
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", target)
    kernel = kernel_of(case.kernel)
    kernel = kernel[lnc] if lnc else kernel
    args = case.make(np.random.default_rng(11))
    keys = {k: v() if callable(v) else v for k, v in case.keys.items()}
    got = kernel(*args, **keys)
    got = got if isinstance(got, tuple | list) else (got,)
    return [np.asarray(x) for x in (*got, *(args[n] for n in case.inout))]


def bits(arrays: list[Any]) -> list[bytes]:
    return [x.tobytes() for x in arrays]


def tiers(cases: list[Case]) -> list[Any]:
    """Each as a parameter; the sweep marks all but some small ones, spread over the list."""
    step, large = max(1, len(cases) // FEW), ("attentions.", "matmul.blocked")
    few = [n % step == 0 and not c.kernel.startswith(large) for n, c in enumerate(cases)]
    return [
        pytest.param(c, id=c.id, marks=() if mine else pytest.mark.sweep)
        for c, mine in zip(cases, few, strict=True)
    ]


BOTH = [c for c in CASES if c.target == "trn2" and not c.refused]
PAIRS = [c for c in BOTH if c.lnc == 2 and any(alone.id == c.id[: -len("-lnc2")] for alone in BOTH)]


@pytest.mark.parametrize("case", tiers(BOTH))
def test_trn3_gives_the_bits_of_trn2(case: Case, monkeypatch: pytest.MonkeyPatch):
    two = results(case, "trn2", case.lnc, monkeypatch)
    if code := LACKED.get(case.kernel):
        with pytest.raises(NccError, match=code):
            results(case, "trn3", case.lnc, monkeypatch)
        return
    assert bits(two) == bits(results(case, "trn3", case.lnc, monkeypatch))


@pytest.mark.parametrize("case", tiers(PAIRS))
def test_two_cores_give_the_bits_of_one(case: Case, monkeypatch: pytest.MonkeyPatch):
    one, two = (results(case, "trn2", lnc, monkeypatch) for lnc in (0, 2))
    if limit := REORDERED.get(case.kernel):
        for a, b in zip(one, two, strict=True):
            np.testing.assert_allclose(a, b, rtol=limit, atol=limit * np.abs(a).max())
        return
    assert bits(one) == bits(two)
