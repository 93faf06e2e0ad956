"""Run the Python of every kernel that is called, and keep what it did.

Before:
    from ncc.penguin import *
    with function("scale") as f:
        x = tensor("x", "float32", (4, 8), kind="input", home="dram")
        y = tensor("y", "float32", (4, 8), kind="output", home="dram")
        with KernelCall("scale"):  # scale.py:3
            args(("x", x))
            outs(("y", y))
            with body("scale"):
                x = buffer("x", "float32", (4, 8), "shared_hbm", kind="input")
                y = buffer("y", "float32", (4, 8), "shared_hbm", kind="output")
                t = buffer("t", "float32", (4, 8), "sbuf")
                params(x)
                i0 = nisa.dma_copy(dst=t, src=x)  # scale.py:5
                i1 = nisa.tensor_scalar(dst=t, data=t, operand0=2.0, op0="multiply")  # scale.py:6
                i2 = nisa.dma_copy(dst=y, src=t)  # scale.py:7
                results(y)

After:
    from ncc.penguin import *
    with function("scale") as f:
        x = tensor("x", "float32", (4, 8), kind="input", home="dram")
        y = tensor("y", "float32", (4, 8), kind="output", home="dram")
        with KernelNode("scale"):  # scale.py:3
            args(("x", x))
            outs(("y", y))
            with body("scale"):
                x = buffer("x", "float32", (4, 8), "shared_hbm", kind="input")
                y = buffer("y", "float32", (4, 8), "shared_hbm", kind="output")
                t = buffer("t", "float32", (4, 8), "sbuf")
                params(x)
                i0 = nisa.dma_copy(dst=t, src=x)  # scale.py:5
                i1 = nisa.tensor_scalar(dst=t, data=t, operand0=2.0, op0="multiply")  # scale.py:6
                i2 = nisa.dma_copy(dst=y, src=t)  # scale.py:7
                results(y)

Why: a kernel is a Python function that is run, never read. Its loops turn and its conditions are
decided here, once for each core; what is left is one op for each call of the API. (The call above
has been traced already, as a text can only hold that; one that comes from a `.py` file holds the
function and its arguments.) From here on a kernel is data: it prints, it is checked, and nothing of
the user's runs any more.
"""

from __future__ import annotations

import attrs

from ncc.errors import NccError
from ncc.ir.core import unchanged
from ncc.ir.kernel_request import Request
from ncc.ir.kernel_wide import widened
from ncc.ir.penguin import Function, KernelCall, KernelNode, Statement
from ncc.passes.base import define
from ncc.target import Target


def traced(one: Statement, target: Target) -> Statement:
    if not isinstance(one, KernelCall):
        return one
    bodies = tuple(widened(body, target) for body in one.source.trace(target))
    for body in bodies:
        if set(body.params) != {name for name, _ in one.args}:
            said = f"was called with {[n for n, _ in one.args]}, and its trace takes {body.params}"
            raise NccError("NCC399", said, one.origin.place(one.name))
    kind = one.source.kind if isinstance(one.source, Request) else "external"
    origin = one.origin.by("nki-trace")
    return KernelNode(one.name, bodies, one.args, one.outs, kind, one.form, origin=origin)


def apply(module: Function, target: Target) -> Function:
    body = tuple(traced(one, target) for one in module.body)
    return module if unchanged(body, module.body) else attrs.evolve(module, body=body)


PASS = define(
    __name__,
    __doc__,
    apply,
    source="penguin",
    gives=("kernels-are-traced",),
    real="TraceContext",
    job="F1",
    sure="confirmed",
)
