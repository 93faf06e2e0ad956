"""What ncc says when a program, a file or a pass is at fault."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

import attrs


@attrs.frozen
class Place:
    """Where a fault stands: a position in a file, a pass, a value; each part may be unknown."""

    file: str = ""
    line: int = 0
    column: int = 0
    during: str = ""  # the pass, by its hyphened name
    value: str = ""  # an op, an instruction, a location, a member: what the reader can search for

    def __str__(self) -> str:
        spot = ":".join(str(x) for x in (self.file, self.line, self.column) if x)
        return ", ".join(x for x in (spot, self.during, self.value) if x)


class NccError(Exception):
    """One fault in one sentence: code, place, what was found, and a hint what to do.

    `code` is a key of `ncc.rules`; `said` is the sentence without place and code.
    """

    def __init__(self, code: str, said: str, place: Place | None = None, hint: str = "") -> None:
        self.code, self.said, self.place = code, one_line(said), place or Place()
        self.hint = one_line(hint)
        super().__init__(str(self))

    def __str__(self) -> str:
        where = f" {self.place}:" if str(self.place) else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{self.code}{where} {self.said}{hint}"

    def at(self, **parts: str | int) -> NccError:
        """The same fault with the parts of its place that were not known when it was raised."""
        unknown = {key: value for key, value in parts.items() if not getattr(self.place, key)}
        place = attrs.evolve(self.place, **unknown)
        return type(self)(self.code, self.said, place, self.hint)


class CheckFailed(NccError):
    """A comparison that was asked for found a difference (exit status 3)."""


class UsageError(NccError):
    """The command line or a file name is wrong (exit status 2)."""


def one_line(text: str) -> str:
    """A sentence that shows any Python value: an array's rows in one line, an object without the
    address that is another one in every run."""
    if "\n" in text:
        text = " ".join(text.split())
    return re.sub(r"(<.*?) at 0x[0-9a-f]+", r"\1", text) if " at 0x" in text else text


def nearest(word: str, known: Iterable[str], cutoff: float = 0.5) -> str:
    """`did you mean X?`, or nothing when no known word is close."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=cutoff)
    return f"did you mean {close[0]}?" if close else ""


def listed(words: Iterable[str]) -> str:
    """`a, b and c`, in the order given."""
    names = list(words)
    return (
        names[0]
        if len(names) == 1
        else " and ".join((", ".join(names[:-1]), names[-1]))
        if names
        else "nothing"
    )
