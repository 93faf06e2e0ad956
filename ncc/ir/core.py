"""What every level shares: where a node comes from, and its laws and facts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from operator import is_
from typing import Any

import attrs

from ncc.errors import NccError, Place


@attrs.frozen
class Origin:
    """Where a node comes from: a line of the source, and the passes that made or changed it.

    An origin never takes part in the equality of nodes: a field that holds one has `eq=False`.
    It prints as the comment `# file:line` at the end of the node's line and is read back from it.
    """

    file: str = ""  # the source's base name, never a path: printed stages do not depend on folders
    line: int = 0
    column: int = 0
    passes: tuple[str, ...] = ()

    def by(self, name: str) -> Origin:
        """The origin of what the pass `name` made of this node."""
        if self.passes and self.passes[-1] == name:
            return self
        return Origin(self.file, self.line, self.column, (*self.passes, name))

    def place(self, value: str = "", during: str = "") -> Place:
        return Place(self.file, self.line, self.column, during, value)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}" if self.file else ""


NOWHERE = Origin()


@attrs.frozen
class Cores:
    """A program of several cores that run together: one module a core, core 0 first.

    Only where it is split, packed and run does anybody ask for the cores together. Everything else
    (passes, laws, text, pictures) knows one module and is applied to each of them.
    """

    modules: tuple[Any, ...]

    @property
    def name(self) -> str:
        found: str = self.modules[0].name
        return found


def modules_of(program: Any) -> tuple[Any, ...]:
    """The modules of a program: one, or one a core."""
    return program.modules if isinstance(program, Cores) else (program,)


def each(program: Any, change: Callable[[Any], Any]) -> Any:
    """The program after a change of each of its modules; the same object when none changed."""
    if not isinstance(program, Cores):
        return change(program)
    new = tuple(map(change, program.modules))
    return program if unchanged(new, program.modules) else Cores(new)


def unchanged(new: Sequence[object], old: Sequence[object]) -> bool:
    """Whether both hold the very same objects. Then a pass gives back the node that it was given,
    and no law is asked about it again."""
    return len(new) == len(old) and all(map(is_, new, old))


@attrs.frozen
class Law:
    """A named check of a module; its name is the sentence that it enforces.

    A *node* law looks at one node (with the module at hand) and is asked once for each new node:
    a node that passed is not asked again while the compilation lasts. A *whole* law looks at the
    module and must be linear; when `reads` is given and returns the very same objects (`is`) as the
    last time the law passed, it is not asked again.
    A law that holds *together* is about all cores: it gets the program as it is.
    `check` yields one complaint after the other; each is an NccError that is ready to raise.
    """

    name: str  # every_value_is_read; printed every-value-is-read
    check: Callable[..., Iterator[NccError]]  # (module, target) or (node, module, target)
    node: bool = False
    reads: Callable[[Any], tuple[Any, ...]] | None = None
    together: bool = False

    @property
    def printed(self) -> str:
        return self.name.replace("_", "-")
