"""A NEFF as a picture: its members, and who names whom."""

from __future__ import annotations

from collections.abc import Iterator

from ncc.ir.neff import Neff
from ncc.view.dot import Box, picture


def draw(module: Neff, fresh: frozenset[int]) -> str:
    return picture("NEFF", boxes(module, fresh), rankdir="LR")


def boxes(module: Neff, fresh: frozenset[int]) -> Iterator[Box]:
    paths = [member.path for member in module.members]
    for member in module.members:
        sources: list[tuple[str, str]] = []
        for other in module.members:
            if other.path != member.path and other.path.endswith(".json"):
                base = member.path.rsplit("/", 1)[-1]
                if f'"{member.path}"'.encode() in other.data or f'"{base}"'.encode() in other.data:
                    sources.append((other.path, ""))
        size = len(member.data)
        bundles = f"{size // 64} bundles" if member.path.endswith(".bin") else f"{size} bytes"
        yield Box(member.path, (member.path, bundles), tuple(sources), new=id(member) in fresh)
    if not paths:
        yield Box("empty", ("no members",))
