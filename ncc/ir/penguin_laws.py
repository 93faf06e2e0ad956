"""The laws of Penguin, the facts of its whole-tensor stages, and a module's signature.

Every law looks at the whole module once and is linear: a module is a few ops, loops still closed.
A fact about whole-tensor ops holds trivially once tiles have replaced them.
"""

from __future__ import annotations

import keyword
from collections import Counter
from collections.abc import Iterator
from typing import Any

from ncc.errors import NccError, Place, listed, nearest
from ncc.ir import penguin as p
from ncc.ir.affine import Affine, Extent
from ncc.ir.core import Law
from ncc.ir.data import DTYPES
from ncc.ir.kernel_laws import kernels_are_sealed, kernels_are_sound, kernels_are_traced
from ncc.ir.penguin_facts import FACTS as TENSOR_FACTS
from ncc.ir.penguin_print import RESERVED, kernels_of, ops_of, show_op
from ncc.ir.penguin_tile_laws import FACTS as TILE_FACTS
from ncc.ir.penguin_views import axes_of, ops_in_scope, reach, sizes_of, view_axes, views_read
from ncc.target import Target

Signature = tuple[tuple[str, str, tuple[int, ...]], ...]
KINDS = ("input", "output", "const", "internal")
HOMES = ("unplaced", "dram", "sbuf", "psum", "stream")
LOOPS = ("parallel", "sequential", "accumulate")
TRANSPOSES = ("dma", "pe", "element")
ELEMENTWISE = {"add": 2, "maximum": 2, "copy": 1}  # operands of each op


def nodes(module: p.Function) -> Iterator[Any]:
    """Every op, loops opened, and every kernel."""
    yield from ops_of(module.body)
    yield from kernels_of(module)


def signature(module: p.Function) -> tuple[Signature, Signature]:
    """Inputs and outputs: name, dtype as the source declares it, shape."""
    inputs = [(t.name, t.declared or t.dtype, t.shape) for t in module.tensors if t.kind == "input"]
    outputs = [(t.name, t.dtype, t.shape) for t in module.tensors if t.kind == "output"]
    return tuple(inputs), tuple(outputs)


def names_are_plain(module: p.Function, target: Target) -> Iterator[NccError]:
    ops = [op.name for op in (*ops_of(module.body), *kernels_of(module))]
    tensors = [t.name for t in module.tensors]
    axes = {a.name for op in ops_of(module.body) for a in axes_of(op)}
    axes |= {one.axis for one, _ in ops_in_scope(module.body) if isinstance(one, p.Loop)}
    for names, what in ((tensors, "tensors"), (ops, "ops")):
        for name, count in Counter(names).items():
            if count > 1:
                yield NccError("NCC220", f"{count} {what} have this name", Place(value=name))
    for name in [*tensors, *ops, *sorted(axes)]:
        if not name.isidentifier() or keyword.iskeyword(name) or name in RESERVED:
            yield NccError("NCC220", f"{name!r} cannot be a name here", Place(value=name))
    for name in sorted(axes.intersection(tensors)):
        yield NccError("NCC220", "an axis has the name of a tensor", Place(value=name))


def tensors_are_typed(module: p.Function, target: Target) -> Iterator[NccError]:
    for t in module.tensors:
        for said in _tensor_faults(t):
            yield NccError("NCC221", said, t.origin.place(t.name))


def _tensor_faults(t: p.Tensor) -> Iterator[str]:
    for dtype in (t.dtype, t.declared or t.dtype):
        if dtype not in DTYPES:
            yield f"no dtype is called {dtype!r}"
    if any(n < 0 for n in t.shape):
        yield "a dimension has a negative size"
    if t.kind not in KINDS:
        yield f"{t.kind!r} is no kind of tensor; there are {listed(KINDS)}"
    if t.home not in HOMES:
        yield f"{t.home!r} is no home of a tensor; there are {listed(HOMES)}"
    if (t.kind == "const") != (t.data is not None):
        yield "a const has data, and nothing else has"
    if t.data is not None and (t.data.dtype, t.data.shape) != (t.dtype, t.shape):
        yield "its data has another dtype or shape"
    if t.declared and t.kind != "input":
        yield "only an input has a declared dtype"
    if not 0 <= t.blocks <= len(t.shape):
        yield f"{t.blocks} of its {len(t.shape)} dimensions cannot be blocks"
    if len(set(t.partition_dims) & set(range(len(t.shape)))) < len(t.partition_dims):
        yield f"partition_dims {t.partition_dims} are not dimensions of it"


def families_never_mix(module: p.Function, target: Target) -> Iterator[NccError]:
    loops = any(isinstance(one, p.Loop) for one in module.body)
    kinds = {isinstance(op, p.TileOp) for op in ops_of(module.body)}
    if len(kinds) > 1 or (loops and False in kinds):
        said = "a whole-tensor op stands in a loop or beside a tile op"
        yield NccError("NCC222", said, Place(value=module.name))


def views_fit_their_tensors(module: p.Function, target: Target) -> Iterator[NccError]:
    """One index a dimension, of axes in scope, inside the tensor."""
    tensors = {t.name: t for t in module.tensors}
    for op, scope in ops_in_scope(module.body):
        if isinstance(op, p.Loop):
            if op.trips < 1 or op.kind not in LOOPS:
                said = f"a loop runs at least once and is one of {listed(LOOPS)}"
                yield NccError("NCC225", said, op.origin.place(op.axis))
            continue
        if code := next((said for said in _extent_faults(op, scope)), ""):
            yield NccError("NCC224", code, op.origin.place(op.name), show_op(op))
            continue
        for view in (op.dst, *views_read(op)):
            for code, said in _view_faults(view, tensors, scope, isinstance(op, p.TileOp)):
                yield NccError(code, said, op.origin.place(op.name), show_op(op))


def _extent_faults(op: p.TensorOp | p.TileOp, scope: dict[str, Extent]) -> Iterator[str]:
    for axis in axes_of(op):
        extent = axis.extent
        if isinstance(extent, int):
            if extent < 0:
                yield f"axis {axis.name} has a negative extent"
        elif unknown := [n for n in extent.names() if n not in scope or n == axis.name]:
            yield f"the extent of axis {axis.name} names {unknown[0]}, no loop around it"
        elif reach(extent.of, scope)[0] < 1 or extent.most < 1:
            yield f"axis {axis.name} has no element in some iteration"


def _view_faults(
    view: p.View, tensors: dict[str, p.Tensor], scope: dict[str, Extent], tile: bool
) -> Iterator[tuple[str, str]]:
    tensor = tensors.get(view.tensor)
    if tensor is None:
        yield "NCC223", f"no tensor is called {view.tensor}"
        return
    if len(view.index) != len(tensor.shape):
        has, given = len(tensor.shape), len(view.index)
        yield "NCC223", f"{view.tensor} has {has} dimensions, was indexed by {given}"
        return
    axes = [n for index in view.index for n in index.names()]
    if unknown := [n for n in axes if n not in scope]:
        yield "NCC223", f"{view.tensor} is indexed by {unknown[0]}, which is no axis here"
        return
    for dim, (index, size) in enumerate(zip(view.index, tensor.shape, strict=True)):
        low, high = reach(index, scope)
        if not _empty(axes, scope) and not 0 <= low <= high < size:
            span = f"{low}" if low == high else f"{low} to {high}"
            yield "NCC224", f"reaches {view.tensor} at {span} of {size} in dimension {dim}"
        axis = Affine(0, ((index.names()[0], 1),)) if index.names() else Affine(0)
        if not tile and (index != axis or (index.names() and scope[index.names()[0]] != size)):
            yield "NCC223", f"dimension {dim} of {view.tensor} is not indexed by one whole axis"
    if not tile and len(set(axes)) < len(axes):
        yield "NCC223", f"{view.tensor} is indexed by one axis in two dimensions"


def _empty(axes: list[str], scope: dict[str, Extent]) -> bool:
    return any(scope[n] == 0 for n in axes)


def ops_are_known(module: p.Function, target: Target) -> Iterator[NccError]:
    """The words of an op are words of Penguin, and a contraction's lists are its axes."""
    for op in ops_of(module.body):
        if isinstance(op, p.MatMulMXOp | p.MatMulSparseOp):
            said = f"{type(op).__name__} comes with a later format"
            yield NccError("NCC229", said, op.origin.place(op.name))
        if said := next(_op_faults(op), ""):
            yield NccError("NCC225", said, op.origin.place(op.name), show_op(op))


def _op_faults(op: p.TensorOp | p.TileOp) -> Iterator[str]:
    names = [a.name for a in axes_of(op)]
    if len(set(names)) < len(names):
        yield "two of its axes have one name"
    match op:
        case p.ElementwiseOp() | p.TileElementwiseOp():
            if op.op not in ELEMENTWISE:
                has = nearest(op.op, ELEMENTWISE) or f"there are {listed(ELEMENTWISE)}"
                yield f"no elementwise op is called {op.op!r} ({has})"
            elif len(op.srcs) != ELEMENTWISE[op.op]:
                yield f"{op.op} takes {ELEMENTWISE[op.op]} operands, was given {len(op.srcs)}"
        case p.TensorTransposeOp() | p.TileTransposeOp() if op.kind not in TRANSPOSES:
            yield f"{op.kind!r} is no kind of transpose; there are {listed(TRANSPOSES)}"
        case p.TensorContractOp():
            yield from _contract_faults(op)
        case _:
            pass
    if isinstance(op, p.ElementwiseOp | p.TensorTransposeOp):
        written = {a for a in view_axes(op.dst) if a}
        if left := [a for a, n in sizes_of(op).items() if n != 1 and a not in written]:
            yield f"it writes {op.dst.tensor} again for each {left[0]}"


def _contract_faults(op: p.TensorContractOp) -> Iterator[str]:
    lists = (op.batch_axes, op.lhs_free_axes, op.rhs_free_axes, op.contract_axes)
    batch, lhs, rhs, contract = map(set, lists)
    size = sizes_of(op)
    if sorted(size) != sorted(x for group in lists for x in group):
        yield "its batch, free and contraction axes are not its axes, each once"
        return
    for view, has in ((op.dst, batch | lhs | rhs), (op.lhs, batch | lhs | contract),
                      (op.rhs, batch | rhs | contract)):  # fmt: skip
        found = {a for a in view_axes(view) if a}
        wanted = {a for a in has if size[a] != 1}
        if not wanted <= found <= has:
            yield f"{view.tensor} is not indexed by {listed(sorted(wanted)) or 'nothing'}"


def tensors_are_defined_once(module: p.Function, target: Target) -> Iterator[NccError]:
    """Inputs and consts are never written, outputs are; nothing is read before it is written."""
    tensors = {t.name: t for t in module.tensors}
    written: set[str] = {t.name for t in module.tensors if t.kind in ("input", "const")}
    for one in module.body:
        if isinstance(one, p.KernelCall | p.KernelNode):
            yield from _kernel_faults(one, tensors, written)
        for op in ops_of((one,)):
            yield from _op_writes(op, tensors, written)
    for t in module.tensors:
        if t.kind == "output" and 0 not in t.shape and t.name not in written:
            yield NccError("NCC226", "this output is never written", t.origin.place(t.name))


def _op_writes(
    op: p.TileOp | p.TensorOp, tensors: dict[str, p.Tensor], written: set[str]
) -> Iterator[NccError]:
    for name in (v.tensor for v in views_read(op)):
        if name not in written:
            yield NccError("NCC226", f"reads {name} before it is written", _place(op))
    made = tensors.get(op.dst.tensor)
    if made is not None and made.kind in ("input", "const"):
        yield NccError("NCC226", f"writes {made.name}, which is an {made.kind}", _place(op))
    elif op.dst.tensor in written and not isinstance(op, p.TileOp):
        yield NccError("NCC226", f"writes {op.dst.tensor} a second time", _place(op))
    written.add(op.dst.tensor)


def _kernel_faults(
    one: p.KernelCall | p.KernelNode, tensors: dict[str, p.Tensor], written: set[str]
) -> Iterator[NccError]:
    place = one.origin.place(one.name)
    for _, name in one.args:
        if name in tensors and name not in written:
            yield NccError("NCC226", f"reads {name} before it is written", place)
    for _, name in one.outs:
        made = tensors.get(name)
        if made is not None and made.kind in ("input", "const"):
            yield NccError("NCC226", f"writes {name}, which is an {made.kind}", place)
        elif name in written:
            yield NccError("NCC226", f"writes {name} a second time", place)
        written.add(name)


def _place(op: p.TensorOp | p.TileOp) -> Place:
    return op.origin.place(op.name)


def _parts(module: p.Function) -> tuple[object, ...]:
    return (module.tensors, module.body)


LAWS = tuple(
    Law(check.__name__, check, reads=_parts)
    for check in (
        names_are_plain,
        tensors_are_typed,
        families_never_mix,
        views_fit_their_tensors,
        ops_are_known,
        tensors_are_defined_once,
        kernels_are_sound,
    )
)
FACTS: tuple[Law, ...] = (
    *TENSOR_FACTS,
    *TILE_FACTS,
    Law("kernels_are_traced", kernels_are_traced, reads=_parts),
    Law("kernels_are_sealed", kernels_are_sealed, reads=_parts),
)
