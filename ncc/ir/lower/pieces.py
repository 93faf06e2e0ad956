"""Operands of one op cut side by side, so that a record holds each piece and a bank its result."""

from __future__ import annotations

from collections.abc import Sequence

from ncc.ir.bir import Ap
from ncc.ir.data import size_of
from ncc.ir.kernel_walks import Part, Walk, cut
from ncc.ir.lower.base import Operands
from ncc.ir.lower.tables import ENGINES
from ncc.target import BANK


class Pieces(Operands):
    """Walks of equal counts in pieces."""

    def parts(self, walks: Sequence[Walk], free: int, most: int = 0xFFFF) -> list[Part]:
        """Pieces of walks of equal counts, each inside one bank of PSUM where it writes there."""
        counts = {walk.count for walk in walks}
        if len(counts) > 1:
            said = " and ".join(map(str, sorted(counts)))
            raise self.refuse(f"walks operands of {said} elements a partition side by side")
        found = cut([walk.free for walk in walks], free, most)
        out = walks[-1]
        if out.memory != "PSUM" or self.begin(out) % BANK + out.row * size_of(out.dtype) <= BANK:
            return list(found)
        return [piece for part in found for piece in self.banked(part, out, len(walks) - 1)]

    def begin(self, out: Walk) -> int:
        """The byte of its partition at which a PSUM tile begins; an open one begins with a bank."""
        buffer = self.buffers.get(out.loc)
        if buffer and buffer.address and out.loc not in self.free_places:
            return buffer.address[1]
        return 0

    def accesses(self, walks: Sequence[Walk], free: int, most: int = 0xFFFF) -> list[list[Ap]]:
        """The same as accesses, one a walk; the destination is the last."""
        return [
            [walk.ap(part.of(n), part.more[n]) for n, walk in enumerate(walks)]
            for part in self.parts(walks, free, most)
        ]

    def banked(self, part: Part, out: Walk, n: int) -> list[Part]:
        """A part in pieces that each stay in one bank of PSUM."""
        if self.in_bank(part, out, n):
            return [part]
        (num, steps), *rest = part.joints
        inside = Part(((1, steps), *rest), part.more)
        if not self.in_bank(inside, out, n):
            first = self.banked(Part(tuple(rest), part.more), out, n)
            size = 1
        else:
            size = next(
                k for k in range(num - 1, 0, -1)
                if self.in_bank(Part(((k, steps), *rest), part.more), out, n)
            )  # fmt: skip
            first = [Part(((size, steps), *rest), part.more)]
        if size == num:
            return first
        more = tuple(a + size * s for a, s in zip(part.more, steps, strict=True))
        return [*first, *self.banked(Part(((num - size, steps), *rest), more), out, n)]

    def in_bank(self, part: Part, out: Walk, n: int) -> bool:
        size = size_of(out.dtype)
        low = high = self.begin(out) + (out.at + part.more[n]) * size
        for num, steps in part.joints:
            reach = steps[n] * (num - 1) * size
            low, high = low + min(reach, 0), high + max(reach, 0)
        return low // BANK == (high + size - 1) // BANK

    def engine(self, default: str, *walks: Walk) -> str:
        """The engine that the kernel named, or those of `default` that reach the operands."""
        chosen = ENGINES.get(self.op.engine)
        if chosen:
            return chosen
        if any(walk.memory == "PSUM" for walk in walks):
            kept = [x for x in default.split("|") if x != "Pool"]
            return "|".join(kept) or "DVE"
        return default


def clash(src: Walk, dst: Walk) -> bool:
    """Whether a source and a destination share bytes and are not the same walk."""
    if src.loc != dst.loc or src == dst:
        return False
    if src.memory != "DRAM":
        rows = [(x.first, x.first + (x.rows - 1) * x.jump) for x in (src, dst)]
        if rows[0][0] > rows[1][1] or rows[1][0] > rows[0][1]:
            return False
    a, b = (_bytes(x) for x in (src, dst))
    return a[0] < b[1] and b[0] < a[1]


def _bytes(walk: Walk) -> tuple[int, int]:
    """The first byte of a walk inside its partition (in DRAM: of all), and the end."""
    reaches = [step * (num - 1) for step, num in walk.free]
    size = size_of(walk.dtype)
    low = walk.at + sum(x for x in reaches if x < 0)
    high = walk.at + sum(x for x in reaches if x > 0)
    return low * size, (high + 1) * size
