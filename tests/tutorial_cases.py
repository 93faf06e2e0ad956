"""What the tutorials compute: for each kernel of each file, inputs and the float64 result.

A file is known by the end of its path, so that copies of it in several repositories and versions
are all run. The definitions are ours: they say what the tutorial's text promises.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import attrs
import ml_dtypes
import numpy as np

Array = np.ndarray[Any, Any]
Make = Callable[[np.random.Generator], tuple[Any, ...]]
Meaning = Callable[..., Any]
BF16 = np.dtype(ml_dtypes.bfloat16)


@attrs.frozen
class Case:
    """One call of one kernel. `limit` bounds the error relative to the largest true value."""

    file: str
    kernel: str
    make: Make
    meaning: Meaning
    limit: float = 2e-6
    grid: tuple[int, ...] = ()
    target: str = "trn2"
    refused: str = ""  # the code with which it must be refused


# --- inputs ---------------------------------------------------------------------------------------


def normal(
    *shapes: Sequence[int], dtype: Any = np.float32, scale: float = 1.0, rest: Any = ()
) -> Make:
    """Normal arrays of these shapes, then the values of `rest`."""

    def make(rng: np.random.Generator) -> tuple[Any, ...]:
        drawn = (rng.standard_normal(tuple(s)) * scale for s in shapes)
        return (*(x.astype(dtype) for x in drawn), *rest)

    return make


def attention_inputs(
    d: int, length: int, dtype: Any = np.float32, *, rows: bool = False, rest: Any = ()
) -> Make:
    """q, k and v as (d, length), or (length, d) with `rows`; scores of about unit size."""

    def make(rng: np.random.Generator) -> tuple[Any, ...]:
        shape = (length, d) if rows else (d, length)
        scales = (d**-0.25, d**-0.25, 1.0)
        drawn = (rng.standard_normal(shape) * s for s in scales)
        return (*(x.astype(dtype) for x in drawn), *rest)

    return make


def indices(rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.integers(0, 100, (1, 64)).astype(np.uint16), rng.standard_normal((48, 100)).astype(
        np.float32
    )


def norm_inputs(rows: int, columns: int) -> Make:
    def make(rng: np.random.Generator) -> tuple[Any, ...]:
        data = rng.standard_normal((rows, columns)).astype(np.float32)
        gamma, beta = rng.random((2, columns)).astype(np.float32)
        return data, 1e-5, gamma, beta

    return make


def rms_inputs(rng: np.random.Generator) -> tuple[Any, ...]:
    return rng.random((300, 512), np.float32), rng.random(512, np.float32)


def state_inputs(batch: int, channels: int, length: int, states: int) -> Make:
    def make(rng: np.random.Generator) -> tuple[Any, ...]:
        wide, long = (batch, channels, length), (batch, states, length)
        drawn = (rng.random(wide), rng.random(wide), -rng.random((channels, states)))
        return tuple(x.astype(np.float32) for x in (*drawn, rng.random(long), rng.random(long)))

    return make


def rotary_inputs(rng: np.random.Generator) -> tuple[Any, ...]:
    batch, heads, length, d = 2, 3, 160, 64
    q, k = rng.standard_normal((2, batch, heads, length, d)).astype(np.float32)
    angles = np.outer(np.arange(length), 10000.0 ** (-np.arange(0, d, 2) / d))
    angles = np.broadcast_to(np.concatenate([angles, angles], -1), (batch, length, d))
    return q, k, np.cos(angles).astype(np.float32), np.sin(angles).astype(np.float32)


# --- meanings -------------------------------------------------------------------------------------


def product(lhs_t: Array, rhs: Array, *blocks: int) -> Array:
    return lhs_t.T @ rhs


def softmax(x: Array) -> Array:
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attention(q: Array, k: Array, v: Array) -> Array:
    return softmax(q.T @ k) @ v.T


def diffusion_attention(
    q: Array, k: Array, v: Array, causal: bool = False, mixed: bool = True
) -> Array:
    scores = 0.125 * q @ k.T
    if causal:
        scores = np.where(np.tri(len(q), dtype=bool), scores, -9984.0)
    return softmax(scores) @ v


def pooled(x: Array, size: int, fold: Any) -> Any:
    c, h, w = x.shape
    return fold(x.reshape(c, h // size, size, w // size, size), axis=(2, 4))


def mean_pooled(x: Array, size: int) -> Array:
    return pooled(x, size, np.mean)


def max_pooled(x: Array, size: int) -> Array:
    return pooled(x, size, np.max)


def inner_transpose(x: Array, shape: tuple[int, int]) -> Array:
    return x.reshape(len(x), *shape).transpose(0, 2, 1).reshape(x.shape)


def layer_norm(x: Array, epsilon: float, gamma: Array, beta: Array) -> Array:
    shift = x - x.mean(1, keepdims=True)
    return shift / np.sqrt(x.var(1, keepdims=True) + epsilon) * gamma + beta


def rms_norm(x: Array, gamma: Array) -> Array:
    return x / np.sqrt((x * x).mean(1, keepdims=True)) * gamma


def state_space(delta: Array, u: Array, a: Array, b: Array, c: Array) -> Array:
    """The recurrence of Mamba, one step of the sequence after the other."""
    batch, channels, length = delta.shape
    state = np.zeros((batch, channels, a.shape[1]))
    result = np.empty(delta.shape)
    for t in range(length):
        step = delta[:, :, t, None]
        state = np.exp(step * a) * state + step * u[:, :, t, None] * b[:, None, :, t]
        result[:, :, t] = (state * c[:, None, :, t]).sum(-1)
    return result


def rotated(q: Array, k: Array, cos: Array, sin: Array) -> Array:
    half = q.shape[-1] // 2

    def turn(x: Array) -> Array:
        swapped = np.concatenate([-x[..., half:], x[..., :half]], -1)
        return x * cos[:, None] + swapped * sin[:, None]

    return np.stack([turn(q), turn(k)])


def split(x: Array) -> tuple[Array, Array]:
    return x[:, ::2], x[:, 1::2]


def picked(index: Array, data: Array) -> Array:
    return data[:, index[0].astype(int)]


# --- the table ------------------------------------------------------------------------------------

MATMUL = "matrix_multiplication/matrix_multiplication_nki_kernels.py"
ADDITION = "tensor_addition/tensor_addition_nki_kernels.py"
SPMD = "tensor_addition/spmd_tensor_addition_nki_kernels.py"
ATTENTION = "attention_fwd_performance/attention_kernels.py"
DIFFUSION = "sd_attention/sd_attention_nki_kernels.py"
POOL = "average_pool2d/average_pool2d_nki_kernels.py"
MAMBA = "fused_mamba/mamba_nki_kernels.py"
LAYER = "layernorm/layernorm_nki_kernel.py"
# Beside float32 arithmetic: bf16 probabilities, or products of bf16 values.
BF16_LIMIT = 2e-2

CASES = (
    Case(MATMUL, "nki_matmul_basic_", normal((128, 64), (128, 512)), product),
    Case(MATMUL, "nki_matmul_basic_", normal((128, 64), (128, 512), dtype=BF16), product, 1e-2),
    Case(MATMUL, "nki_matmul_tiled_", normal((256, 256), (256, 1024)), product),
    Case(MATMUL, "nki_matmul_hoist_load_", normal((256, 256), (256, 1024)), product),
    Case(MATMUL, "nki_matmul_block_free_dimension_", normal((256, 512), (256, 1024)), product),
    Case(
        MATMUL,
        "nki_matmul_fully_optimized_",
        normal((512, 512), (512, 1024), rest=(2, 2, 2)),
        product,
    ),
    # It asks jit for a platform, which the API as it is now takes no more.
    Case(ADDITION, "nki_tensor_add", normal((256, 1024), (256, 1024)), np.add, refused="NCC309"),
    Case(ADDITION, "nki_tensor_add_kernel_", normal((256, 1024), (256, 1024)), np.add, grid=(2, 2)),
    Case(SPMD, "nki_tensor_add_kernel_", normal((256, 1024), (256, 1024)), np.add, grid=(2, 2)),
    Case(
        "transpose2d/transpose2d_nki_kernels.py",
        "tensor_transpose2D_kernel_",
        normal((5, 12), rest=((3, 4),)),
        inner_transpose,
        0.0,
    ),
    Case(POOL, "tensor_avgpool_kernel", normal((5, 6, 9), rest=(3,)), mean_pooled),
    Case(
        POOL,
        "tensor_avgpool_kernel",
        normal((5, 6, 9), dtype=np.float16, rest=(3,)),
        mean_pooled,
        2e-3,
    ),
    Case(LAYER, "nki_layernorm_kernel_v1", norm_inputs(300, 1024), layer_norm, 1e-5),
    Case(LAYER, "nki_layernorm_kernel_v2", norm_inputs(300, 1280), layer_norm, 1e-5),
    Case("rmsnorm/rmsnorm_nki_kernels.py", "nki_rmsnorm_kernel", rms_inputs, rms_norm, 1e-5),
    Case("softmax/softmax_nki_kernels.py", "nki_softmax_kernel", normal((300, 256)), softmax, 1e-5),
    Case(
        "rotary/rotary_nki_kernels.py",
        "nki_apply_rotary_embedding",
        rotary_inputs,
        rotated,
        grid=(2, 3),
    ),
    Case(
        DIFFUSION,
        "fused_self_attn_for_SD_small_head_size",
        attention_inputs(64, 512, rows=True),
        diffusion_attention,
        BF16_LIMIT,
    ),
    Case(
        DIFFUSION,
        "fused_self_attn_for_SD_small_head_size",
        attention_inputs(64, 256, rows=True, rest=(True, False)),
        diffusion_attention,
        1e-5,
    ),
    Case(ATTENTION, "attn_fwd_v1", attention_inputs(128, 128), attention),
    Case(ATTENTION, "attn_fwd_v2", attention_inputs(128, 128), attention),
    *(
        Case(ATTENTION, f"attn_fwd_v{n}", attention_inputs(128, 1024), attention)
        for n in (3, 4, 5, 6)
    ),
    *(
        Case(ATTENTION, f"attn_fwd_v{n}", attention_inputs(128, 1024), attention, BF16_LIMIT)
        for n in ("7", "8", "8a")
    ),
    Case(ATTENTION, "attn_fwd_v10", attention_inputs(128, 1024, BF16), attention, BF16_LIMIT),
    *(Case(MAMBA, f"mamba_v{n}", state_inputs(1, 256, 512, 4), state_space, 1e-5) for n in (1, 2)),
    Case(MAMBA, "mamba_v3", state_inputs(1, 128, 1024, 4), state_space, 1e-5),
    Case(
        "tensor_indirection/tensor_indirection_nki_kernels.py",
        "tensor_indirection_kernel",
        indices,
        picked,
        0.0,
        target="trn3",
    ),
    Case("simulate/nki_simulate_example.py", "add_kernel", normal((128, 512), (128, 512)), np.add),
    Case("getting_started_torch.py", "nki_tensor_add_kernel", normal((4, 3), (4, 3)), np.add),
    Case("getting_started_baremetal.py", "nki_tensor_add_kernel", normal((4, 3), (4, 3)), np.add),
    Case("index-case-1.py", "tensor_split_kernel_", normal((4, 5)), split, 0.0),
    Case(
        "index-case-3.py", "tensor_maxpool_kernel_", normal((2, 6, 6), rest=(2,)), max_pooled, 0.0
    ),
    Case("layout-pass.py", "tensor_exp_kernel_", normal((128, 512)), np.exp, 1e-5),
    Case("layout-loop.py", "tensor_exp_kernel_", normal((256, 512)), np.exp, 1e-5),
    Case("layout-dynamic-loop.py", "tensor_exp_kernel_", normal((100, 300)), np.exp, 1e-5),
    # The documentation's example of a tile with too many partitions.
    Case("layout-violation.py", "tensor_exp_kernel_", normal((256, 512)), np.exp, refused="NCC310"),
)
