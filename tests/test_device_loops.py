"""Loops that the machine runs: as `nki.simulate` means them, and from the bytes, however the engines
interleave."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

from ncc import driver, nki
from ncc.nki.binding import bind
from ncc.nki.running import neff_of, stage_of
from ncc.sim.run import run_neff
from ncc.target import target as target_named

nki.install()

turns, drawing = (import_module(x) for x in ("kernels.turns", "device_random"))
TRN2 = target_named("trn2")
rng = np.random.default_rng(5)
A = rng.standard_normal((4, 24, 20)).astype(np.float32)
B = rng.standard_normal((4, 24, 30)).astype(np.float32)
X = rng.standard_normal((9, 12)).astype(np.float32)


def number(n):
    return np.array([[n]], np.int32)


def made(kernel, args, target=TRN2):
    return kernel.specialisation(bind(kernel.func, args, {}, target), target)


def same(kernel, *args, seeds=(0, 1), target=TRN2):
    """The results of a kernel: simulated, from the bytes, and with engines that run as they like."""
    wanted = nki.simulate(kernel)(*args)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    neff = neff_of(made(kernel, args, target)).module
    for seed in (None, *seeds):
        got = run_neff(neff, target, args, seed=seed)
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(a, np.asarray(b))
    return wanted


@pytest.mark.parametrize("kernel", [turns.product_of_first, turns.carried_product])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_sum_of_products(kernel, count):
    (got,) = same(kernel, A, B, number(count))
    want = np.einsum("ikm,ikn->mn", A[:count].astype(float), B[:count])
    times = 2 if kernel is turns.carried_product else 1
    np.testing.assert_allclose(got, times * want, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_starts_are_data(count):
    at = [7, 0, 8, 3]
    starts = np.array([at, [count] * 4], np.int32)
    (got,) = same(turns.shifted_rows, X, starts)
    want = np.zeros((4, 12))
    want[:count] = np.exp(X[at[:count]])
    np.testing.assert_allclose(got, want, rtol=1e-5)


@pytest.mark.parametrize("count", [0, 1, 4])
def test_a_loop_in_a_loop(count):
    got, seen = same(turns.triangle, X, number(count))
    times = count * (count - 1) // 2
    np.testing.assert_allclose(got, X * times, rtol=1e-5)
    last = (count - 1) * 10 + count - 2 if times else 0
    assert seen.tolist() == [[last, count * 3 - 1]]


@pytest.mark.parametrize(("start", "steps"), [(1, 0), (6, 8), (7, 16)])
def test_the_end_is_data(start, steps):
    (got,) = same(turns.collatz, number(start), seeds=(0,))
    assert got.tolist() == [[steps]]


@pytest.mark.parametrize("count", [0, 3])
def test_two_cores_meet_inside_a_turn(count):
    x = np.arange(96, dtype=np.float32).reshape(8, 12)
    (got,) = same(turns.exchanged[2], x, number(count))
    want = x * 1.5**count
    np.testing.assert_array_equal(got, want if count % 2 == 0 else np.roll(want, 4, 0))


def test_what_an_engine_never_reads_it_does_not_compute():
    f = made(turns.triangle, (X, number(2)))
    program = driver.compile(stage_of(f), target=TRN2, stop_after="encode").module
    streams = {x.engine: x.bundles for x in program.streams}
    moves = {e: sum(b.op == "RegisterAlu" for b in found) for e, found in streams.items()}
    assert moves["DVE"] == 2 < moves["SP"]  # the two counters; SP alone stores what was seen


@pytest.mark.parametrize(("seed", "size"), [(1, ""), (4, ""), (7, ",sbuf=160"), (9, ",sbuf=160")])
def test_generated_loops(seed, size):
    same(drawing.drawn(seed), *drawing.drawn_inputs(seed), target=target_named(f"trn2{size}"))
