"""A DMA that no one descriptor can hold, cut into as few as possible.

A descriptor has two steps above its run. Whatever more a walk has becomes one DMA a step, chosen so
that few are needed; on chip a piece still walks consecutive partitions.
"""

from __future__ import annotations

from itertools import combinations, product
from math import prod

from ncc.ir.bir import Ap, Loc
from ncc.ir.bir_patterns import canonical
from ncc.ir.data import size_of
from ncc.ir.dma_runs import LONGEST, PARTITION, runs
from ncc.ir.locations import row_of
from ncc.ir.walks import Joint, merged, together

MANY = 1024  # DMAs that one may become


def parted(src: Ap, dst: Ap, src_loc: Loc, dst_loc: Loc) -> list[tuple[Ap, Ap]]:
    """Both sides of a DMA in pieces, as few as can be; none where the sides do not go together."""
    locs = src_loc, dst_loc
    unit = [PARTITION // size_of(ap.dtype) for ap in (src, dst)]
    walks: list[list[tuple[int, int]]] = []
    for ap, loc, jump in zip((src, dst), locs, unit, strict=True):
        first = ap.ap[0] if loc.type == "DRAM" else (jump, ap.ap[0][1])
        walks.append([first, *ap.ap[1:]])
    joints = together(walks)
    if joints is None:
        return []
    joints = merged(joints)
    best: tuple[int, list[tuple[Ap, Ap]]] | None = None
    for count in range(len(joints) + 1):
        for chosen in combinations(range(len(joints)), count):
            outer = [joints[i] for i in chosen]
            inner = [j for i, j in enumerate(joints) if i not in chosen]
            number = prod(num for num, _ in outer)
            if number > MANY or (best and best[0] <= number):
                continue
            made = pieces(inner, outer, (src, dst), locs, unit)
            if made and all(
                runs(a, b, locs[0].type != "DRAM", locs[1].type != "DRAM") for a, b in made
            ):
                best = (number, made)
    return best[1] if best else []


def pieces(
    inner: list[Joint],
    outer: list[Joint],
    aps: tuple[Ap, Ap],
    locs: tuple[Loc, Loc],
    unit: list[int],
) -> list[tuple[Ap, Ap]]:
    """The accesses when the `outer` pairs are unrolled; none where partitions would be skipped."""
    longest = LONGEST // max(size_of(ap.dtype) for ap in aps)
    found: list[tuple[Ap, Ap]] = []
    for part, offset in tails(inner, longest):
        for at in product(*(range(num) for num, _ in outer)):
            made: list[Ap] = []
            for k in (0, 1):
                jumps = [offset * inner[-1][1][k]] if offset else []
                jumps += [i * steps[k] for i, (_, steps) in zip(at, outer, strict=True)]
                walk = [(steps[k], num) for num, steps in part]
                if (new := moved(aps[k], locs[k], walk, jumps, unit[k])) is None:
                    return []
                made.append(new)
            found.append((made[0], made[1]))
    return found


def tails(inner: list[Joint], longest: int) -> list[tuple[list[Joint], int]]:
    """A walk as it is; or, where its run is long and uneven, its even part and its rest."""
    if not inner or inner[-1][0] <= longest or any(s != 1 for s in inner[-1][1]):
        return [(inner, 0)]
    *above, (num, steps) = inner
    even = num // longest * longest
    found = [([*above, (even, steps)], 0)]
    if even < num:
        found.append(([*above, (num - even, steps)], even))
    return found


def moved(ap: Ap, loc: Loc, walk: list[tuple[int, int]], jumps: list[int], unit: int) -> Ap | None:
    """An access with other pairs, further on by `jumps`."""
    if loc.type == "DRAM":
        pairs = canonical(((1, 1), *walk), dram=True)
        return Ap(ap.loc, ap.dtype, pairs, ap.offset + sum(jumps))
    row = row_of(loc, ap.dtype)
    partitions = [(step // unit, num) for step, num in walk if step >= unit]
    rest = tuple(pair for pair in walk if pair[0] < unit)
    reach = 1
    for step, num in reversed(partitions):
        if step != reach:
            return None
        reach *= num
    offset = ap.offset + sum(j // unit * row if j >= unit else j for j in jumps)
    return Ap(ap.loc, ap.dtype, ((row, reach), *(rest or ((1, 1),))), offset)
