"""Attention as a custom call of HLO has it: arrays of any rank, perhaps a turned result."""

from __future__ import annotations

import math
from typing import Any

from ncc import nki
from ncc.kernels.attention import attention_cte
from ncc.nki import language as nl

Tensor = Any  # a tensor of the kernel


@nki.jit
def attention_call(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    shape: tuple[int, ...] = (),
    scale: float = 1.0,
    causal: bool = False,
    swap: bool = False,
) -> Tensor:
    """q is [.., Sq, d], k and v are [.., Sk, d]; the result has `shape`: [.., Sq, d], or
    [.., d, Sq] with `swap`. Neighbouring heads of q share keys where q has more of them."""
    out = nl.ndarray(tuple(shape) or q.shape, q.dtype, buffer=nl.shared_hbm, name="out")
    d, rows = q.shape[-1], q.shape[-2]
    if swap:
        whole = out.reshape((math.prod(out.shape[:-2]), d, rows)).permute((0, 2, 1))
    else:
        whole = flat(out)
    attention_cte(flat(q), flat(k), flat(v), scale=scale, causal=causal, out=whole)
    return out


def flat(x: Tensor) -> Tensor:
    """The heads in one axis."""
    return x.reshape((math.prod(x.shape[:-2]), *x.shape[-2:]))
