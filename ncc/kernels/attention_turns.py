"""What attention has to transpose: Q and K on their way in, and P before its product with V.

The PE array sums over partitions, so that both operands of a product have there what is summed:
d in Q·Kᵀ, the keys in P·V. From trn2 on the DMA transposes elements of 2 bytes while it moves them;
else the PE array does, which multiplies by the identity, and the result passes through PSUM.
"""

from __future__ import annotations

from typing import Any

from ncc.kernels.attention_plan import STEP
from ncc.nki import isa as nisa
from ncc.nki import language as nl

Tensor = Any  # a tensor of the kernel


def dma_can_turn(dtype: Any) -> bool:
    """Whether the DMA transposes elements of this type here."""
    return dtype != nl.float32 and nisa.get_nc_version() >= nisa.nc_version.gen3


def load_turned(dst: Tensor, src: Tensor, by_dma: bool) -> None:
    """dst[d, n] = src[n, d]ᵀ, from HBM: by the DMA on its way in, or by the PE array."""
    if by_dma:
        nisa.dma_transpose(dst, src)
        return
    n, d = src.shape
    for at in range(0, n, STEP):
        rows = min(STEP, n - at)
        plain = nl.ndarray((rows, d), src.dtype, buffer=nl.sbuf, name="plain")
        nisa.dma_copy(plain, src[at : at + rows, :])
        turned = nl.ndarray((d, rows), src.dtype, buffer=nl.psum, name="turned")
        nisa.nc_transpose(turned, plain)
        nisa.tensor_copy(dst[:, at : at + rows], turned)


def dma_takes(share_of_dma: float, n: int, count: int) -> bool:
    """Whether the DMA transposes tile n of `count`: its tiles are spread evenly."""
    turns = round(share_of_dma * count)
    return n * turns // count != (n + 1) * turns // count


def turn_by_dma(pt: Tensor, p: Tensor) -> None:
    """pt[key, step, row] = p[row, step · 128 + key], all whole steps at once."""
    width = p.shape[1]
    whole, rest = divmod(width, STEP)
    if whole:
        nisa.dma_transpose(pt[:, 0:whole, :], p[:, 0 : whole * STEP].reshape_dim(1, (whole, STEP)))
    if rest:
        nisa.dma_transpose(pt[0:rest, whole, :], p[:, whole * STEP : width])


def turn_by_pe(pt: Tensor, p: Tensor) -> None:
    """The same by the PE array: into one PSUM bank, and from there by two copies at most."""
    width = p.shape[1]
    whole, rest = divmod(width, STEP)
    turned = nl.ndarray(pt.shape, p.dtype, buffer=nl.psum, name="turned_p")
    for step in range(pt.shape[1]):
        deep = min(STEP, width - step * STEP)
        nisa.nc_transpose(turned[0:deep, step, :], p[:, step * STEP : step * STEP + deep])
    if whole:
        nisa.tensor_copy(pt[:, 0:whole, :], turned[:, 0:whole, :])
    if rest:
        nisa.tensor_copy(pt[0:rest, whole, :], turned[0:rest, whole, :])
