"""Tiles that are read before they are written: one sentence, simulated and compiled."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

from ncc import nki
from ncc.errors import NccError
from ncc.nki import isa as nisa
from ncc.nki import language as nl

A = np.arange(1, 40 * 64 + 1, dtype=np.float32).reshape(40, 64)
TO_OUTPUT = "that nobody wrote to output t1 (write them first (a load, a memset), or copy fewer)"


def tiles(a, columns=64):
    """An output of so many columns, a tile, and a load of its left half."""
    out = nl.ndarray((40, columns), nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((40, 64), nl.float32, buffer=nl.sbuf)
    return out, t


@nki.jit
def nothing(a):
    out, t = tiles(a)
    nisa.dma_copy(dst=out, src=t)
    return out


@nki.jit
def half(a):
    out, t = tiles(a)
    nisa.dma_copy(dst=t[:, :32], src=a[:, :32])
    nisa.dma_copy(dst=out, src=t)
    return out


@nki.jit
def unused(a):
    """A product of what nobody wrote, as kernels issue to warm the array; nobody reads it."""
    out, t = tiles(a)
    warm = nl.ndarray((40, 64), nl.float32, buffer=nl.psum)
    junk = nl.ndarray((40, 40), nl.float32, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=a)
    nisa.nc_matmul(dst=warm, stationary=junk, moving=t)
    nisa.dma_copy(dst=out, src=t)
    return out


@nki.jit
def padded(a, address=None):
    """The right half is computed, and never stored."""
    out, t = tiles(a, 32)
    nisa.dma_copy(dst=t[:, :32], src=a[:, :32])
    nisa.tensor_scalar(dst=t, data=t, op0=nl.add, operand0=1.0)
    nisa.dma_copy(dst=out, src=t[:, :32])
    return out


@nki.jit
def pieces(a):
    """A tile written in two halves, the second as other elements of the same bytes."""
    out, t = tiles(a)
    nisa.dma_copy(dst=t[:, :32], src=a[:, :32])
    nisa.memset(dst=t.view(nl.int32)[:, 32:], value=0)
    nisa.dma_copy(dst=out, src=t)
    return out


@nki.jit
def through(a):
    """One tile is written under the name of another at its address."""
    out = nl.ndarray((40, 64), nl.float32, buffer=nl.shared_hbm)
    t = nl.ndarray((40, 64), nl.float32, buffer=nl.sbuf, address=(0, 0))
    same = nl.ndarray((40, 64), nl.float32, buffer=nl.sbuf, address=(0, 0))
    nisa.dma_copy(dst=t, src=a)
    nisa.dma_copy(dst=out, src=same)
    return out


@nki.jit
def reused(a):
    """The place of the first tile becomes that of the second, which is written by half."""
    out, t = tiles(a)
    nisa.dma_copy(dst=t, src=a)
    nisa.dma_copy(dst=out, src=t)
    second = nl.ndarray((40, 64), nl.float32, buffer=nl.sbuf)
    nisa.tensor_copy(second[:, :32], t[:, :32])
    nisa.dma_copy(dst=out, src=second)
    return out


def told(kernel, simulated):
    """What a call gives, and its sentences: what it warns of, or the error."""
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        try:
            got = (nki.simulate(kernel) if simulated else kernel)(A)
        except NccError as error:
            return None, [str(error)]
    return got, [str(one.message) for one in seen]


def test_memory_that_nobody_wrote_is_alike_where_it_becomes_an_integer():
    """An integer tells the sign of a NaN."""

    @nki.jit
    def kernel(a):
        out = nl.ndarray((40, 64), nl.int32, buffer=nl.shared_hbm)
        x = nl.ndarray((40, 64), nl.bfloat16, buffer=nl.sbuf)
        t = nl.ndarray((40, 64), nl.int32, buffer=nl.sbuf)
        nisa.tensor_scalar(t, x, nl.add, 1.0)
        nisa.dma_copy(out, t)
        return out

    (one, _), (two, _) = told(kernel, simulated=True), told(kernel, simulated=False)
    np.testing.assert_array_equal(one, two)


def test_an_output_that_no_instruction_wrote_is_the_kernels_fault():
    @nki.jit
    def kernel(a):
        out, t = tiles(a)
        nisa.dma_copy(dst=t, src=a)
        nl.fori_loop(4, 0, lambda i: nisa.dma_copy(dst=out, src=t))
        return out

    _, (said,) = told(kernel, simulated=False)
    assert said.startswith("NCC903 test_nki_unwritten.py:") and "were never written" in said


@pytest.mark.parametrize("kernel, count", [(nothing, 2560), (half, 1280), (reused, 1280)])
def test_an_output_gets_what_nobody_wrote(kernel, count):
    got, said = told(kernel, simulated=True)
    assert np.isnan(got).sum() == count
    _, refused = told(kernel, simulated=False)
    for one in (said, refused):
        assert len(one) == 1 and one[0].startswith("NCC903 test_nki_unwritten.py:")
        assert one[0].endswith(f" carries {count} elements {TO_OUTPUT}"), one


@pytest.mark.parametrize("simulated", [True, False])
def test_a_tile_that_nobody_wrote_is_read_with_a_warning(simulated):
    got, said = told(unused, simulated)
    np.testing.assert_array_equal(got, A)
    line = unused.func.__code__.co_firstlineno + 7
    assert said == [
        f"NCC903 test_nki_unwritten.py:{line}: nc_matmul reads t4, and nobody wrote to it before "
        "(write it first: a load, a memset)"
    ]


@pytest.mark.parametrize("simulated", [True, False])
@pytest.mark.parametrize("kernel", [padded, pieces, through])
def test_what_is_legal_is_silent(kernel, simulated):
    got, said = told(kernel, simulated)
    assert said == [] and np.isfinite(got).all()
