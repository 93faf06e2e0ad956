"""A kernel's tiles of the e4m3 type that the target lacks, as bfloat16, which holds its values.

What moves values of the type stays exact so; what would round a result to it has no stand-in, nor
has what looks at its bits. A product of double rows, which the array feeds with 8-bit floats only
(NKI reference 7.2), becomes two products into one sum, as it does again where it is lowered.
"""

from __future__ import annotations

import attrs

from ncc.errors import NccError
from ncc.ir.kernel import Access, Arg, Kernel, KernelOp, Statement, ops_of
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
        if not isinstance(one, KernelOp):
            found.append(attrs.evolve(one, body=_body(one.body, names)))
            continue
        args = tuple((role, _wide(x, names)) for role, x in one.args)
        made = attrs.evolve(one, args=args)
        double = args != one.args and ("perf_mode", "double_row") in one.keys
        found.extend(_rows(made) if double else (made,))
    return tuple(found)


def _wide(arg: Arg, names: frozenset[str]) -> Arg:
    if isinstance(arg, Access) and arg.buffer in names:
        return attrs.evolve(arg, dtype=WIDE)
    return arg


def _rows(op: KernelOp) -> tuple[KernelOp, KernelOp]:
    """A product of double rows as two: the first adds if it did, the second always does, and has
    the name, since what must follow the product must follow both."""
    keys = {key: value for key, value in op.keys if key != "perf_mode"}
    first = attrs.evolve(op, name=f"{op.name}.0", args=_row(op, 0), keys=tuple(keys.items()))
    more = tuple(sorted({**keys, "accumulate": True}.items()))
    return first, attrs.evolve(op, args=_row(op, 1), keys=more, after=())


def _row(op: KernelOp, row: int) -> tuple[tuple[str, Arg], ...]:
    """The operands of one of the two products: [K, 2, n] as [K, n]."""
    args: list[tuple[str, Arg]] = []
    for role, arg in op.args:
        if isinstance(arg, Access) and role != "dst":
            rows, (step, _), *columns = arg.pairs
            arg = attrs.evolve(arg, pairs=(rows, *columns), offset=arg.offset + row * step)
        args.append((role, arg))
    return tuple(args)
