"""A kernel that is asked for by name: `attention_cte(bfloat16[2,64,32], ..., scale=0.125)`.

It is what a custom call becomes, and all that is known of the kernel until its Python runs: a
value, printed as one word and read back. The registry `ncc.kernels` finds the kernel by its name;
this file is the one door to it below the API.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import attrs

from ncc.errors import NccError
from ncc.ir.kernel import Kernel
from ncc.target import Target

Typed = tuple[str, tuple[int, ...]]  # dtype (BIR's name) and shape


@attrs.frozen
class Request:
    """A kernel by name, what it takes, and the values of its other parameters."""

    kernel: str
    takes: tuple[Typed, ...]
    config: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        words = [f"{dtype}[{','.join(map(str, shape))}]" for dtype, shape in self.takes]
        words += [f"{key}={value!r}" for key, value in self.config]
        return f"{self.kernel}({', '.join(words)})"

    @property
    def label(self) -> str:
        return str(self)

    @property
    def kind(self) -> str:
        """`internal` for a kernel that ships, `external` for one of the user's."""
        return "internal" if ships(self.kernel) else "external"

    def trace(self, target: Target) -> tuple[Kernel, ...]:
        return registry().specialised(self, target).kernels

    def check(
        self, target: Target, gives: Sequence[Typed], aliases: Sequence[tuple[int, int]]
    ) -> None:
        """Raise the first thing that does not fit between this call and its kernel: NCC120 to
        NCC123, without a place."""
        registry().check(self, target, gives, aliases)

    def bindings(self, target: Target) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The buffers of the kernel's parameters, and those that it gives, in order."""
        made = registry().specialised(self, target)
        return registry().params(made), tuple(name for name, _ in registry().outputs(made))

    def refusal(self, target: Target) -> str:
        """Why no kernel takes this call, in one sentence; nothing where one does."""
        try:
            registry().specialised(self, target)
        except NccError as fault:
            return fault.said
        return ""

    def run(self, target: Target, arrays: Sequence[Any]) -> list[Any]:
        """What the call gives, by the meaning of the kernel's ops."""
        return registry().run(self, target, arrays)


def ships(name: str) -> bool:
    """Whether a kernel of that name is in the registry."""
    return name in registry().KERNELS


def registry() -> Any:
    """`ncc.kernels.calls`, imported on use: kernels are Python, and heavy."""
    return import_module("ncc.kernels.calls")


def read(text: str) -> Request | None:
    """The request that printed as `text`; None when it is none."""
    name, paren, rest = text.partition("(")
    if not name or not paren or not rest.endswith(")"):
        return None
    try:
        call = ast.parse(f"f({rest}", mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    if not isinstance(call, ast.Call):
        return None
    try:
        takes = tuple(map(_typed, call.args))
        config = tuple((word.arg or "", ast.literal_eval(word.value)) for word in call.keywords)
    except ValueError:
        return None
    return Request(name, takes, config)


def _typed(tree: ast.expr) -> Typed:
    match tree:
        case ast.Subscript(ast.Name(dtype), ast.Tuple(sizes)):
            shape = [ast.literal_eval(x) for x in sizes]
        case ast.Subscript(ast.Name(dtype), ast.Constant(int(size))):
            shape = [size]
        case _:
            raise ValueError("no type")
    if not all(type(n) is int for n in shape):
        raise ValueError("no shape")
    return dtype, tuple(shape)
