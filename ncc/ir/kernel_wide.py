"""A kernel's tiles of the e4m3 type that the target lacks, as bfloat16, which holds its values.

What moves values of the type stays exact so; what would round a result to it has no stand-in, nor
has what looks at its bits.
"""

from __future__ import annotations

import attrs

from ncc.errors import NccError
from ncc.ir.kernel import Access, Kernel, KernelOp, Statement, ops_of
from ncc.ir.kernel_ops import role_of, writes
from ncc.target import Target

WIDE = "bfloat16"
MOVES = frozenset(("dma_copy", "dma_transpose", "tensor_copy", "nc_transpose", "nc_stream_shuffle"))


def widened(kernel: Kernel, target: Target) -> Kernel:
    """The same kernel where no parameter has the type; NCC262 for what bfloat16 cannot say."""
    narrow = target.lacked_e4m3
    names = frozenset(b.name for b in kernel.buffers if b.dtype == narrow)
    if not names & set(kernel.params):
        return kernel
    for op in ops_of(kernel.body):
        _check(op, names, narrow, target)
    buffers = tuple(attrs.evolve(b, dtype=WIDE) if b.name in names else b for b in kernel.buffers)
    return attrs.evolve(kernel, buffers=buffers, body=_body(kernel.body, names))


def _check(op: KernelOp, names: frozenset[str], narrow: str, target: Target) -> None:
    given = [(role, arg) for role, arg in op.args if isinstance(arg, Access)]
    alike = all((arg.buffer in names) == (arg.dtype == narrow) for _, arg in given)
    moved = op.op in MOVES and all(arg.buffer in names for _, arg in given)
    lands = any(arg.buffer in names and role_of(op.op, r) in writes(op.op) for r, arg in given)
    if alike and (moved or not lands):
        return
    said = f"{op.op} rounds its result to {narrow}" if alike else f"{op.op} reads bits of {narrow}"
    place, hint = op.origin.place(op.name), "allocate the tile as nl.bfloat16"
    raise NccError("NCC262", f"{said}, a type that {target.name} lacks", place, hint)


def _body(body: tuple[Statement, ...], names: frozenset[str]) -> tuple[Statement, ...]:
    found: list[Statement] = []
    for one in body:
        if isinstance(one, KernelOp):
            args = tuple(
                (
                    role,
                    attrs.evolve(x, dtype=WIDE)
                    if isinstance(x, Access) and x.buffer in names
                    else x,
                )
                for role, x in one.args
            )
            found.append(attrs.evolve(one, args=args))
        else:
            found.append(attrs.evolve(one, body=_body(one.body, names)))
    return tuple(found)
