"""Kernels as people write them: the compiled one gives what nki.simulate gives, to the last bit."""

from __future__ import annotations

from typing import Any

import lowered_kernels as kernels
import ml_dtypes
import numpy as np
import pytest

from ncc import nki

bf16 = ml_dtypes.bfloat16


def drawn(*shape: int, dtype: Any = np.float32, seed: int = 0) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32).astype(dtype)


def whole(*shape: int, dtype: Any = bf16, seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-3, 4, shape).astype(dtype)


CASES: dict[str, tuple[Any, ...]] = {
    "rmsnorm": (drawn(200, 96, dtype=bf16), drawn(1, 96, dtype=bf16)),
    "layernorm": (drawn(128, 1024), drawn(1024), drawn(1024, seed=1)),
    "rope": (drawn(128, 3, 64, dtype=bf16), drawn(128, 32), drawn(128, 32, seed=1)),
    "mlp": (drawn(64, 256, dtype=bf16), drawn(256, 384, dtype=bf16), drawn(384, 256, dtype=bf16)),
    "placed_matmul": (whole(512, 256), whole(512, 1024, seed=1)),
    "gather_rows": (drawn(50, 24), np.array([[3], [7], [49], [0], [7]], np.int32)),
    "moving_start": (drawn(400, 16), np.array([[37]], np.int32)),
    "causal_softmax": (drawn(128, 128, dtype=bf16),),
    "top8": (whole(64, 40, dtype=np.float32),),
    "max_pool": (drawn(32, 12, 10, dtype=bf16),),
    "scan": (drawn(128, 60), drawn(128, 60, seed=1), drawn(128, 1, seed=2)),
    "quantise": (drawn(128, 96, dtype=bf16),),
    "turned": (drawn(128, 64, dtype=bf16),),
    "in_place": (drawn(64, 32),),
    "looped": (drawn(384, 16),),
}


def outputs(result: Any) -> list[Any]:
    return list(result) if isinstance(result, (tuple, list)) else [result]


@pytest.mark.parametrize("name", CASES)
def test_kernels_from_bytes(name: str) -> None:
    kernel = getattr(kernels, name)
    simulated = outputs(nki.simulate(kernel)(*(np.array(x) for x in CASES[name])))
    compiled = outputs(kernel(*(np.array(x) for x in CASES[name])))
    for wanted, got in zip(simulated, compiled, strict=True):
        assert got.shape == wanted.shape and got.dtype == wanted.dtype
        np.testing.assert_array_equal(got.astype(np.float64), wanted.astype(np.float64))
