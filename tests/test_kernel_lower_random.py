"""Random whole kernels, from bytes: what the machine computes is what the interpreter says."""

from __future__ import annotations

import pytest
from kernel_lower_programs import Program
from kernel_lower_tools import agree


@pytest.mark.parametrize("seed", range(12))
def test_random_kernels(seed: int) -> None:
    agree(Program(seed).b.kernel())


@pytest.mark.parametrize("seed", range(100, 106))
def test_random_kernels_with_addresses(seed: int) -> None:
    agree(Program(seed, placed=True).b.kernel())
