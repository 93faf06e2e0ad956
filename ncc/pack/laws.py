"""What every NEFF obeys: what its reader would refuse, a compile does not give."""

from __future__ import annotations

from collections.abc import Iterator

from ncc.errors import NccError
from ncc.ir.core import Law
from ncc.ir.neff import Member, Neff
from ncc.pack import check
from ncc.pack.names import subgraph
from ncc.pack.schema import fault, get, numbers, objects, read_json
from ncc.target import Target

Signed = tuple[str, str, tuple[int, ...]]


def nodes(neff: Neff) -> Iterator[Member]:
    yield from neff.members


def signature(neff: Neff) -> tuple[tuple[Signed, ...], tuple[Signed, ...]]:
    """Inputs and outputs by tensor_map.json: name, dtype as the source declares it, shape."""
    path = f"{subgraph(0)}/tensor_map.json"
    members = {member.path: member.data for member in neff.members}
    if path not in members:
        raise fault(811, "is missing", path, "it says which variable is which argument")
    found = read_json(members, path)
    sides: list[tuple[Signed, ...]] = []
    for role in ("inputs", "outputs"):
        entries = objects(found, role, path, 820, [])
        sides.append(
            tuple(
                (
                    get(e, "name", str, path, 820),
                    get(e, "declared", str, path, 820, "") or get(e, "dtype", str, path, 820),
                    numbers(e, "shape", path, 820),
                )
                for e in entries
            )
        )
    return sides[0], sides[1]


def the_reader_accepts_it(neff: Neff, target: Target) -> Iterator[NccError]:
    """Every check of a reader; it stops at the first fault."""
    try:
        check(neff, target)
    except NccError as wrong:
        yield wrong


LAWS = (Law("the_reader_accepts_it", the_reader_accepts_it),)
FACTS: tuple[Law, ...] = ()
