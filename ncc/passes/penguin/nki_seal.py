"""Seal each kernel: from here on it is one node of the graph, and nothing changes inside it.

Before:
    from ncc.penguin import *
    with function("copy") as f:
        x = tensor("x", "float32", (4, 8), kind="input", home="dram")
        y = tensor("y", "float32", (4, 8), kind="output", home="dram")
        with KernelNode("copy"):  # copy.py:3
            args(("x", x))
            outs(("y", y))
            with body("copy"):
                x = buffer("x", "float32", (4, 8), "shared_hbm", kind="input")
                y = buffer("y", "float32", (4, 8), "shared_hbm", kind="output")
                params(x)
                i0 = nisa.dma_copy(dst=y, src=x)  # copy.py:4
                results(y)

After:
    from ncc.penguin import *
    with function("copy") as f:
        x = tensor("x", "float32", (4, 8), kind="input", home="dram")
        y = tensor("y", "float32", (4, 8), kind="output", home="dram")
        with KernelNode("copy", sealed=True):  # copy.py:3
            args(("x", x))
            outs(("y", y))
            with body("copy"):
                x = buffer("x", "float32", (4, 8), "shared_hbm", kind="input")
                y = buffer("y", "float32", (4, 8), "shared_hbm", kind="output")
                params(x)
                i0 = nisa.dma_copy(dst=y, src=x)  # copy.py:4
                results(y)

Why: whoever calls a kernel must be able to hand it memory, and the cores that share it must see the
same: so what goes in and what comes out lies in shared HBM, which is checked here and nowhere else.
Only a body that is whole may travel: each op names its line, so that every later stage can say
which line of the kernel an instruction is.
"""

from __future__ import annotations

import attrs

from ncc.errors import NccError, Place
from ncc.ir.core import unchanged
from ncc.ir.kernel import Kernel, ops_of
from ncc.ir.penguin import Function, KernelNode, Statement
from ncc.passes.base import define
from ncc.target import Target

SHARED = ("shared_hbm",)
GIVEN = ("shared_hbm", "hbm")  # an argument is wherever its array was put


def sealed(one: Statement) -> Statement:
    if not isinstance(one, KernelNode) or one.sealed:
        return one
    for body in one.bodies:
        check(one, body)
    return attrs.evolve(one, sealed=True, origin=one.origin.by("nki-seal"))


def check(node: KernelNode, body: Kernel) -> None:
    outs = {name for name, _ in node.outs}
    for buffer in body.buffers:
        argument = buffer.name in body.params
        if (argument and buffer.memory not in GIVEN) or (
            buffer.name in outs and not argument and buffer.memory not in SHARED
        ):
            what = "argument" if argument else "result"
            said = f"the {what} {buffer.name} is in {buffer.memory}; it must be in shared_hbm"
            place = (buffer.origin if buffer.origin.file else node.origin).place(buffer.name)
            hint = "allocate it with buffer=nl.shared_hbm"
            raise NccError("NCC299", said, place, hint)
    for op in ops_of(body.body):
        if not op.origin.file:
            said = f"{op.op} does not say which line of the kernel it is"
            raise NccError("NCC298", said, Place(value=op.name))


def apply(module: Function, target: Target) -> Function:
    body = tuple(map(sealed, module.body))
    return module if unchanged(body, module.body) else attrs.evolve(module, body=body)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    gives=("kernels-are-sealed",),
    needs=("kernels-are-traced",),
    after={"nki-trace": "it seals what that pass recorded"},
    real="insert_nki_kernel",
    job="F1",
    sure="confirmed",
)
