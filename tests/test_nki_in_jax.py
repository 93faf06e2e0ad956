"""Kernels inside JAX functions: the call is a custom call of the HLO that JAX prints."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from ncc import driver
from ncc.errors import NccError
from ncc.kernels import kernel as shipped
from ncc.nki import in_jax, programs

SOURCE = """
import nki
import nki.isa as nisa
import nki.language as nl


@nki.jit
def scale(x, factor=2.0, flip=False):
    out = nl.ndarray(x.shape, x.dtype, buffer=nl.shared_hbm)
    t = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    nisa.tensor_scalar(dst=t, data=t, op0=nl.multiply, operand0=-factor if flip else factor)
    nisa.dma_copy(dst=out, src=t)
    return out


@nki.jit
def double(x):
    t = nl.ndarray(x.shape, x.dtype, buffer=nl.sbuf)
    nisa.dma_copy(dst=t, src=x)
    nisa.tensor_tensor(dst=t, data1=t, data2=t, op=nl.add)
    nisa.dma_copy(dst=x, src=t)
    return x


def made():
    @nki.jit
    def inner(x):
        return x

    return inner
"""


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("k.py").write_text(SOURCE)
    return programs.imported(Path("k.py"))


X = np.zeros((4, 6), np.float32)


def test_arrays_are_operands_and_the_rest_is_configuration(kernels):
    arrays, config = in_jax.divided(kernels.scale, (X,), {"flip": True, "factor": 3.0})
    assert len(arrays) == 1 and arrays[0] is X
    assert config == {"factor": 3.0, "flip": True}


def test_a_kernel_is_named_so_that_ncc_finds_it_again(kernels):
    assert in_jax.name_in_hlo(kernels.scale) == "k.py:scale"
    assert in_jax.name_in_hlo(kernels.scale[2]) == "k.py:scale[2]"
    assert in_jax.name_in_hlo(shipped("attention_cte")) == "attention_cte"
    with pytest.raises(NccError, match=r"NCC303 k.py:\d+: inner lies inside a function"):
        in_jax.name_in_hlo(kernels.made())


@pytest.mark.parametrize(
    "args, said",
    [
        ((X, {"a": 1}), "has factor={'a': 1}, which no custom call can hold"),
        ((X, 1.0, True, 5), "too many positional arguments"),
        ((2.0, X), "takes the array factor behind x"),
    ],
)
def test_what_no_custom_call_holds(kernels, args, said):
    with pytest.raises(NccError, match="NCC302") as told:
        in_jax.divided(kernels.scale, args, {})
    assert said in str(told.value)


def test_a_jax_function_calls_kernels(kernels):
    jax = pytest.importorskip("jax", reason="needs JAX: pip install 'ncc[jax]'")

    def f(x, w):
        return jax.numpy.dot(kernels.double(kernels.scale(x, factor=3.0, flip=True)), w)

    rng = np.random.default_rng(0)
    x, w = (rng.integers(-4, 5, s).astype(ml_dtypes.bfloat16) for s in ((64, 32), (32, 16)))
    text = jax.jit(f).lower(x, w).as_text("hlo")
    assert 'custom_call_target="k.py:scale"' in text and "factor = 3.0" in text
    Path("f.hlo").write_text(text)
    (found,) = driver.run("f.hlo", inputs=[x, w])
    wanted = (-6 * x.astype(np.float32)) @ w.astype(np.float32)
    np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(ml_dtypes.bfloat16))
    assert float(kernels.scale(jax.numpy.ones((4, 6)))[0, 0]) == 2.0  # with values it runs
