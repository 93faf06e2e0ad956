"""Calls that one target has no record for, said with several: compiled they give the same bytes."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from ncc import nki
from ncc.errors import NccError
from ncc.ir.kernel_wide import widened
from ncc.nki import isa as nisa
from ncc.nki import language as nl
from ncc.nki.binding import bind
from ncc.target import TARGETS

RNG = np.random.default_rng(11)
# few values, so that there are ties, and both zeros
A, B = (RNG.integers(-5, 6, (33, 40)).astype(np.float32) / 2 * s for s in (1, -1))
RESET, REDUCE, LOAD = (nisa.reduce_cmd[x] for x in ("reset_reduce", "reduce", "load_reduce"))


def tile(columns=40, dtype=nl.float32):
    return nl.ndarray((33, columns), dtype, buffer=nl.sbuf)


def stored(*tiles):
    found = []
    for one in tiles:
        out = nl.ndarray(one.shape, one.dtype, buffer=nl.shared_hbm)
        nisa.dma_copy(dst=out, src=one)
        found.append(out)
    return tuple(found)


def scan(a, b):
    x, y, t, u = nl.load(a), nl.load(b), tile(), tile(20, nl.bfloat16)
    nisa.tensor_tensor_scan(t, x, y, 0.5, nl.multiply, nl.add)
    nisa.tensor_tensor_scan(
        u, x[:, ::2], y[:, 20:], y[:, 3:4], nl.subtract, nl.maximum, reverse0=True
    )
    return stored(t, u)


def cumulative(a, b):
    x, y, t, u, v = nl.load(a), nl.load(b), tile(), tile(), tile(8)
    nisa.tensor_scalar_cumulative(t, x, nl.multiply, nl.add, 0.5)
    nisa.tensor_scalar_cumulative(u, x, nl.add, nl.maximum, y[:, 0:1], imm1=-2.0, reduce_cmd=LOAD)
    nisa.tensor_scalar_cumulative(v, y[:, :8], nl.add, nl.maximum, 1.0, reduce_cmd=REDUCE)
    return stored(t, u, v)


def places(a, b, dtype=nl.uint32):
    x, y, found = nl.load(a), nl.load(b), []
    for k in range(2):
        t, vals, at = tile(), tile(8), tile(8, dtype)
        nisa.max8(vals, x)
        nisa.nc_match_replace8(t, x, (vals, y[:, 8:16])[k], -9.0, dst_idx=at)
        found += [t, at]
    return stored(*found)


def selected(a, b):
    x, y, t, u = nl.load(a), nl.load(b), tile(dtype=nl.bfloat16), tile()
    mask, most = tile(dtype=nl.uint8), tile(1)
    nisa.tensor_scalar(mask, y, nl.greater, 0.0)
    nisa.select_reduce(t, mask, x, y[:, 0:1], reverse_pred=True)
    nisa.select_reduce(u, mask, x, -2.0, reduce_cmd=RESET)
    nisa.select_reduce(u, mask, y, -9.0, reduce_cmd=REDUCE, reduce_res=most)
    return stored(t, u, most)


def magnitudes(a, b):
    x, y = nl.load(a), nl.load(b)
    t, u, v, w = tile(), tile(dtype=nl.bfloat16), tile(), tile()
    nisa.tensor_tensor(t, x, y, nl.abs_max)
    nisa.tensor_tensor(u, x, y, nl.abs_min)
    nisa.tensor_scalar(v, x, nl.abs_max, y[:, 0:1], op1=nl.abs_min, operand1=-1.5, reverse1=True)
    nisa.tensor_scalar(w, x, nl.multiply, 0.7, op1=nl.abs_max, operand1=y[:, 1:2], reverse1=True)
    return stored(t, u, v, w)


FORMS = [
    *((one, "trn1") for one in (scan, cumulative, places, selected)),
    (magnitudes, "trn3"),
]


@pytest.mark.parametrize("form, target", FORMS, ids=[f.__name__ for f, _ in FORMS])
def test_the_same_values_in_several_instructions(monkeypatch, form, target):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", target)
    kernel = nki.jit(form)
    for told, ran in zip(nki.simulate(kernel)(A, B), kernel(A, B), strict=True):
        assert told.tobytes() == ran.tobytes()


def test_magnitudes_against_their_definition(monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    found, least, *_ = nki.jit(magnitudes)(A, B)
    np.testing.assert_array_equal(found, np.where(abs(A) > abs(B), A, B))
    np.testing.assert_array_equal(least, np.where(abs(A) < abs(B), A, B).astype(ml_dtypes.bfloat16))


def test_a_fold_that_no_accumulator_has_is_refused(monkeypatch):
    def folded(a):
        x, t, r = nl.load(a), tile(), tile(1)
        nisa.activate2(
            t, nl.copy, x, 1.0, 0.0, nl.multiply, nl.add, reduce_op=nl.abs_max,
            reduce_res=r, reduce_cmd=RESET,
        )  # fmt: skip
        return stored(t, r)

    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    with pytest.raises(NccError, match=r"NCC398 .*activate2 folds with abs_max, which no acc"):
        nki.jit(folded)(A)


def moving(x, y, dtype=nl.float32):
    """Two tiles of a type, PSUM full of ones, and an index."""
    wide, at = nl.ndarray((64, 64), dtype, buffer=nl.psum), tile(1, nl.int32)
    found = [tile(dtype=nl.bfloat16) for _ in (x, y)]
    for one, of in zip(found, (x, y), strict=True):
        nisa.tensor_copy(one, nl.load(of))
    nisa.memset(wide, 1.0)
    nisa.memset(at, 3)
    return *found, wide, at[0:1]


def part(wide, at, rows, columns):
    return wide.ap([[wide.shape[1], rows], [1, columns]], scalar_offset=at, indirect_dim=1)


def drained(wide):
    t = nl.ndarray(wide.shape, wide.dtype, buffer=nl.sbuf)
    nisa.tensor_copy(t, wide)
    return stored(t)


def engine_writes(a, b):
    x, _, wide, at = moving(a, b)
    nisa.activation(part(wide, at, 33, 8), nl.exp, x[:, 8:16])
    return drained(wide)


def product_overwrites(a, b):
    x, y, wide, at = moving(a, b)
    nisa.nc_matmul(part(wide, at, 40, 8), x, y[:, :8], accumulate=False)
    return drained(wide)


def product_adds(a, b):
    x, y, _, at = moving(a, b)
    wide = nl.ndarray((40, 40), nl.float32, buffer=nl.psum)
    nisa.nc_matmul(wide, x, y)
    nisa.nc_matmul(part(wide, at, 40, 8), x, y[:, :8], accumulate=True)
    return drained(wide)


def transpose(a, b):
    x, _, wide, at = moving(a, b, nl.bfloat16)
    nisa.nc_transpose(part(wide, at, 40, 33), x, engine=nisa.engine.tensor)
    return drained(wide)


MOVING = (engine_writes, product_overwrites, product_adds, transpose)


@pytest.mark.parametrize("form", MOVING)
def test_a_start_in_psum_that_the_machine_reads(form):
    kernel = nki.jit(form)
    for told, ran in zip(nki.simulate(kernel)(A, B), kernel(A, B), strict=True):
        assert told.tobytes() == ran.tobytes()


def test_a_sum_of_two_passes_that_begins_at_run_time_is_refused():
    def two(a, b):
        *_, at = moving(a, b)
        wide = nl.ndarray((40, 40), nl.float32, buffer=nl.psum)
        x, y = nl.load(a), nl.load(b)
        nisa.nc_matmul(wide, x, y)
        nisa.nc_matmul(part(wide, at, 40, 8), x, y[:, :8], accumulate=True)
        return drained(wide)

    with pytest.raises(NccError, match=r"NCC398 .*nc_matmul adds, in two passes, to t\d+ where"):
        nki.jit(two)(A, B)


def narrow(a, b, rounds=False):
    x, y = nl.load(a), tile(dtype=nl.float8_e4m3)
    if rounds:
        nisa.tensor_scalar(y, x, nl.multiply, 0.3)
    else:
        nisa.tensor_copy(y, x)
    t, wide = tile(), nl.ndarray((40, 40), nl.float32, buffer=nl.psum)
    nisa.activation(t, nl.exp, y)
    nisa.nc_matmul(wide, y, nl.load(b))
    return *stored(t), *drained(wide)


def pairs(a, b):
    left, right = (nl.ndarray((8, 2, n), nl.float8_e4m3, buffer=nl.sbuf) for n in (6, 9))
    nisa.dma_copy(left, a)
    nisa.dma_copy(right, b)
    total = nl.ndarray((6, 9), nl.float32, buffer=nl.psum)
    nisa.nc_matmul(total, left, right, perf_mode=nisa.matmul_perf_mode.double_row)
    nisa.nc_matmul(total, left, right, perf_mode=nisa.matmul_perf_mode.double_row)
    return drained(total)


def test_a_product_of_double_rows_is_two_where_bfloat16_carries_them(monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    draw = np.random.default_rng(3)
    a, b = (draw.integers(-4, 5, (8, 2, n)).astype(ml_dtypes.float8_e4m3) for n in (6, 9))
    kernel = nki.jit(pairs)
    (got,) = kernel(a, b)
    want = 2 * np.einsum("kpm,kpn->mn", a.astype(np.float32), b.astype(np.float32))
    np.testing.assert_array_equal(got, want)
    found = kernel.specialisation(bind(kernel.func, (a, b), {}, TARGETS["trn3"]), TARGETS["trn3"])
    made = widened(found.kernels[0], TARGETS["trn3"])
    keys = {op.name: dict(op.keys) for op in made.body if op.op == "nc_matmul"}
    assert list(keys.values()) == [{}, *[{"accumulate": True}] * 3]
    assert list(keys) == ["i2.0", "i2", "i3.0", "i3"]


def test_the_e4m3_type_that_trn3_lacks_is_carried_in_bfloat16(monkeypatch):
    monkeypatch.setenv("NEURON_PLATFORM_TARGET_OVERRIDE", "trn3")
    a, b = A.astype(ml_dtypes.float8_e4m3), B.astype(ml_dtypes.float8_e4m3)
    kernel = nki.jit(narrow)
    for told, ran in zip(nki.simulate(kernel)(a, b), kernel(a, b), strict=True):
        assert told.tobytes() == ran.tobytes()
    with pytest.raises(
        NccError, match=r"NCC262 .*tensor_scalar rounds its result to float8e4, a ty"
    ):
        kernel(a, b, rounds=True)
