"""Every op over random views, from bytes: what the machine computes is what the interpreter says.

The kernels are those of the op tests. Each is run twice, as it is meant and compiled; here its
tensors on chip are filled from HBM, and the storages of its results are copied to outputs.
"""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

import attrs
import nki_ops
import numpy as np
import pytest
from kernel_lower_tools import compiled

from ncc.errors import NccError
from ncc.interp.kernel import run
from ncc.ir.kernel import Access, Buffer, Kernel, KernelOp, ops_of
from ncc.sim.run import run_neff

FILES = ("arith", "fold", "move", "rows", "pe", "random", "search", "tensor", "lanes", "dma")
OTHER = frozenset(("device_print", "sendrecv", "core_barrier"))  # not the machine's business
TEXTS = ("is_an_error", "waits_alone")  # tests of the interpreter's own sentences
ON_CHIP = ("sbuf", "psum")
# what the interpreter can do and no machine can, each in one sentence
REFUSED = (
    r"^NCC505 .* touches \d+ partitions of \S+ from partition 32; \d+ may start at 0 or 64 only$",
    r"^NCC398 i0: activate2 folds with abs_m\w\w, which no accumulator does \(fold the magnitudes ",
    r"^NCC398 i2: tensor_scalar applies fmod, which no engine has$",
    r"^NCC398 register_alu applies \w+ to what memory holds; ",
)

for file in FILES:
    try:
        module = import_module(f"test_nki_ops_{file}")
    except ImportError:
        continue
    found = {k: v for k, v in vars(module).items() if k.startswith("test_")}
    globals().update({k: v for k, v in found.items() if not any(x in k for x in TEXTS)})


def whole(buffer: Buffer, name: str = "") -> Access:
    """All of a buffer: its partitions (or all but one dimension of HBM), then the rest."""
    count = int(np.prod(buffer.shape[1:]))
    return Access(name or buffer.name, buffer.dtype, ((count, buffer.shape[0]), (1, count)))


def machine_form(kernel: Kernel) -> Kernel:
    """The kernel with an output for each storage that a result lies in."""
    names = list(dict.fromkeys(x.buffer for x in kernel.results))
    buffers = list(kernel.buffers)
    body = list(kernel.body)
    for name in names:
        of = next(x for x in kernel.buffers if x.name == name)
        out = attrs.evolve(of, name=f"{name}.out", memory="shared_hbm", kind="output", data=None)
        buffers.append(out)
        source = whole(of)
        if of.memory == "psum":
            held = attrs.evolve(out, name=f"{name}.sb", memory="sbuf", kind="internal")
            buffers.append(held)
            args = (("dst", whole(held)), ("src", source))
            body.append(KernelOp(f"{name}.c", "tensor_copy", args, engine="vector"))
            source = whole(held)
        args = (("dst", whole(out)), ("src", source))
        body.append(KernelOp(f"{name}.o", "dma_copy", args))
    kept = list(buffers)
    extra: list[Buffer] = []
    first: list[KernelOp] = []
    for n, b in enumerate(kept):
        if b.memory not in ON_CHIP and b.data is not None and b.name in written(kernel):
            source = attrs.evolve(b, name=f"{b.name}.in")
            extra.append(source)
            kept[n] = attrs.evolve(b, kind="internal", data=None)
            args = (("dst", whole(b)), ("src", whole(source)))
            first.append(KernelOp(f"{b.name}.i", "dma_copy", args))
    return attrs.evolve(kernel, buffers=(*kept, *extra), body=(*first, *body), results=(), name="k")


def written(kernel: Kernel) -> set[str]:
    from ncc.ir.kernel_ops import OPS, writes

    found: set[str] = set()
    for op in ops_of(kernel.body):
        roles = writes(op.op) | {x.rstrip("?*") for x in OPS[op.op].more}
        found |= {x.buffer for role, x in op.args if role in roles and isinstance(x, Access)}
    return found


def checked(self: nki_ops.Bench, *results: str, **more: Any) -> Any:
    """`Bench.run`, and the same from bytes."""
    target = more.get("target", nki_ops.TRN2)
    kernel = self.kernel(*results, body=more.get("body"))
    meant = RUN(self, *results, **more)
    if any(op.op in OTHER for op in ops_of(kernel.body)) or not results:
        return meant
    wanted = run([kernel], {}, target, lambda said: None)
    try:
        neff = compiled(machine_form(kernel), target)
    except NccError as error:
        if not any(re.search(one, str(error)) for one in REFUSED):
            raise
        return meant
    outs = run_neff(neff, target, [])
    names = list(dict.fromkeys(x.buffer for x in kernel.results))
    for name, out in zip(names, outs, strict=True):
        np.testing.assert_array_equal(
            out.astype(np.float64), wanted[name].astype(np.float64), err_msg=f"{name} from bytes"
        )
    return meant


RUN = nki_ops.Bench.run


@pytest.fixture(autouse=True)
def both(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nki_ops.Bench, "run", checked)
