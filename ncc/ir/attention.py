"""The custom calls of attention: their names, what they take, and the kernel that computes them.

A call takes q [.., Sq, D], k and v [.., Sk, D] and, unless it is 1, the scale of the scores as a
constant scalar. Sizes before the last two are heads; q may have a multiple of those of k, and
neighbours share keys. The result is [.., Sq, D], or [.., D, Sq] of the one name with the swap.
`backend_config` has exactly the five keys of the real one; `kernel_name` is what takes the call.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

import attrs

from ncc.ir.custom_call import Asked

SWAPPED = "AttentionMMSoftmaxMM"
PLAIN = "AttentionMMSoftmaxMMWithoutSwap"
CAUSAL = "CausalAttentionMMSoftmaxMMWithoutSwap"
TARGETS = (SWAPPED, PLAIN, CAUSAL)
KEYS = ("psum_shape", "sb_shape", "auto_cast", "auto_cast_type", "kernel_name")
KERNEL = "attention_call"  # of `ncc.kernels`: attention_cte on arrays of any rank
TYPES = {"bf16": "bf16", "f16": "fp16"}  # element types of HLO that are raised, as the key has them
LONGEST_LEFT_ALONE, WIDEST_HEAD, SBUF_BYTES = 1007, 128, 196608
SECTION, SECTIONED_ABOVE = 8192, 10 * 1024  # keys that the kernel holds in SBUF at a time


@attrs.frozen
class Sizes:
    """What the gates ask about: lengths, the size of a head, and the element type in HLO."""

    queries: int
    keys: int
    head: int
    dtype: str


def sbuf_bytes(sizes: Sizes) -> int:
    """Bytes of one partition: K and V of a section, and of a group of 128 queries the scores in
    float32, their exponentials, and those transposed."""
    keys = sizes.keys if sizes.keys <= SECTIONED_ABOVE else SECTION
    return keys * (2 + 4 + 2 + 2) + -(-keys // 128) * sizes.head * 2


def closed_gate(sizes: Sizes) -> str:
    """Why a chain of these sizes is not raised, or nothing."""
    if sizes.dtype not in TYPES:
        return f"its tensors are {sizes.dtype}, and only {' and '.join(TYPES)} are raised"
    if sizes.keys <= LONGEST_LEFT_ALONE:
        return f"its sequence is {sizes.keys} long, and only above {LONGEST_LEFT_ALONE} it pays"
    if sizes.head > WIDEST_HEAD:
        return f"a head has {sizes.head} elements, and the kernel takes up to {WIDEST_HEAD}"
    if (need := sbuf_bytes(sizes)) > SBUF_BYTES:
        return f"it would need {need} bytes of each partition of SBUF, of {SBUF_BYTES}"
    return ""


def backend_config(sizes: Sizes) -> str:
    """The five keys, as HLO's attribute."""
    values: tuple[Any, ...] = (
        [128, 512],
        [128, -(-sizes.keys // 128), sizes.head],
        "none",
        TYPES.get(sizes.dtype, sizes.dtype),
        "attention_cte",
    )
    return json.dumps(dict(zip(KEYS, values, strict=True)), separators=(",", ":"))


def plain_call(call: Asked, gives: tuple[int, ...], scale: float) -> Asked:
    """The call of the kernel that an attention call is; any other call as it is."""
    if call.target not in TARGETS:
        return call
    if wrong := sorted({key for key, _ in call.config} ^ set(KEYS)):
        raise ValueError(f"of {call.target} has the keys {', '.join(KEYS)}; look at {wrong[0]}")
    flags = (("causal", call.target == CAUSAL), ("swap", call.target == SWAPPED))
    return Asked(KERNEL, (("shape", gives), ("scale", scale), *flags))


def complaint(target: str, shapes: Sequence[tuple[int, ...]], gives: tuple[int, ...]) -> str:
    """What does not fit in an attention call; a sentence that continues the opcode, or nothing."""
    if len(shapes) not in (3, 4) or any(len(s) < 2 for s in shapes[:3]) or any(shapes[3:4]):
        return f"of {target} takes q, k, v and perhaps a scalar, was given {len(shapes)} operands"
    q, k, v = shapes[:3]
    if k[-1] != q[-1] or v[-2] != k[-2] or heads(k) != heads(v) or heads(q) % max(1, heads(k)):
        return f"of {target} cannot take q {list(q)}, k {list(k)} and v {list(v)} together"
    last = (v[-1], q[-2]) if target == SWAPPED else (q[-2], v[-1])
    if gives[-2:] != last or heads(gives) != heads(q):
        return f"of {target} gives [.., {last[0]}, {last[1]}], written as {list(gives)}"
    return ""


def heads(shape: tuple[int, ...]) -> int:
    return math.prod(shape[:-2])
