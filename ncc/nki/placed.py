"""Places that a kernel chose and does not get: told when it is traced, never passed over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ncc.ir.kernel import Buffer, Kernel
from ncc.ir.lower.sets import bank_safe
from ncc.target import Target


def sentences(kernels: Sequence[Kernel], target: Target) -> Iterator[str]:
    """Warnings, by core. Where one core does the work of two, the places of the first one hold."""
    for number, kernel in enumerate(kernels):
        moved = bank_safe(kernel.buffers)
        for one in kernel.buffers:
            if one.address is None:
                continue
            if number and target.level < 30:
                yield said(one, f"core {kernel.core}'s place is the first core's on {target.name}")
            elif one.name in moved:
                yield said(one, "an element in PSUM takes 4 bytes, for which there is no room here")


def said(one: Buffer, why: str) -> str:
    first, byte = one.address or (0, 0)
    place = one.origin.place(one.name)
    return f"NCC326 {place}: is placed anew, not at ({first}, {byte}): {why}"
