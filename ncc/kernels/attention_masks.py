"""How attention hides scores: on their way out of PSUM, by what is known then or only at run time.

A hidden score becomes the lowest number, and its exponential 0. The diagonal and the window are
known while compiling: `affine_select` counts rows and columns itself. Bounds that arrive with the
data (packed sequences, the part of another rank) are columns of numbers for `range_select`.
"""

from __future__ import annotations

from typing import Any

from ncc.kernels.attention_plan import STEP, Group, Mask, Part
from ncc.nki import isa as nisa
from ncc.nki import language as nl

Tensor = Any  # a tensor of the kernel
HIDDEN = -3.4028234663852886e38


def take(
    mask: Mask,
    group: Group,
    part: Part,
    product: Tensor,
    scale: float,
    limits: list[Tensor],
    scores: Tensor,
    top: Tensor,
) -> None:
    """A product on its way out of PSUM: scaled and masked into `scores`, its maximum into `top`."""
    cuts = mask.cuts(group, part)
    if not cuts and not limits:
        nisa.tensor_scalar_reduce(scores, product, nl.multiply, scale, nl.maximum, top)
        return
    if cuts or scale != 1.0:  # masked in SBUF: affine_select does not reach PSUM
        nisa.tensor_scalar(scores, product, nl.multiply, scale)
        hide(mask, group, scores, part.position)
        product = scores
    if limits:
        low, high = limits
        nisa.range_select(scores, product, nl.greater_equal, nl.less, low, high,
                          reduce_res=top, range_start=part.position)  # fmt: skip
    else:
        nisa.tensor_reduce(top, nl.maximum, scores, axis=1)


def scales_exactly(number: float) -> bool:
    """Whether a product with it only lowers an exponent: a power of two, at most 1."""
    return 0 < number <= 1 and float(number).hex().startswith("0x1.0000000000000p")


def hide(mask: Mask, group: Group, scores: Tensor, position: int) -> None:
    """Hide what is above the diagonal, and what has left the window, 128 columns at a time.

    Row r is the query at `group.position + r` and column c the key at `position + c`: it is seen
    while their distance (r - c + group.position - position) is 0 or more, and below the window.
    One affine_select tests one inequality, so that the window needs a second.
    """
    width = scores.shape[1]
    for at in range(0, width, STEP):
        count, key = min(STEP, width - at), position + at
        step = scores[:, at : at + count]
        distance = group.position - key  # of row 0 and column 0
        if mask.cuts_above(group, key, count):
            nisa.affine_select(step, [[-1, count]], 1, step, HIDDEN,
                               cmp_op=nl.greater_equal, offset=distance)  # fmt: skip
        if mask.cuts_below(group, key):
            nisa.affine_select(step, [[1, count]], -1, step, HIDDEN,
                               cmp_op=nl.greater, offset=mask.window - distance)  # fmt: skip
