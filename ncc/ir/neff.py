"""NEFF: the container as its members; how they are wrapped is the writer's option."""

from __future__ import annotations

import attrs


@attrs.frozen
class Member:
    path: str
    data: bytes = attrs.field(repr=False)


@attrs.frozen
class Neff:
    """The module: members sorted by path. The header record is inside `info.json`."""

    members: tuple[Member, ...]

    def get(self, path: str) -> bytes | None:
        """The bytes of a member, or None."""
        for member in self.members:
            if member.path == path:
                return member.data
        return None
