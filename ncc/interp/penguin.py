"""What Penguin means, whole tensors and tiles alike.

A whole-tensor contraction sums in float64 over everything and rounds once, to the result's type.
A tile's matmul is what the PE array does: `matmul_passes`, each added to PSUM in float32; the first
iteration of its accumulate loops begins anew. All other ops compute in float32 and round once, when
they write. Reading an element that nothing wrote is an error.

A view of any op is a strided window: an index that is a sum of axes is one stride an axis.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import attrs
import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from ncc import numerics
from ncc.errors import NccError
from ncc.ir import penguin as p
from ncc.ir.affine import Affine, at
from ncc.ir.data import numpy_type
from ncc.ir.penguin_print import ops_of, show_op
from ncc.target import Target

Array = NDArray[Any]
Env = dict[str, int]
Axes = Sequence[tuple[str, int]]

ALU = {"add": "add", "maximum": "max"}  # the op by its name in Penguin, and in `numerics`


@attrs.frozen
class Memory:
    """One tensor's elements, and which of them were written."""

    tensor: p.Tensor
    values: Array
    written: NDArray[np.bool_]
    wide: bool = False  # a matmul adds in float32 whatever the tensor's type; readers see the type


def run(
    module: p.Function,
    target: Target,
    inputs: Sequence[Array],
    watch: dict[str, Array] | None = None,
) -> list[Array]:
    """The outputs of the module, in order; `watch` receives every tensor by name."""
    sums = {op.dst.tensor for op in ops_of(module.body) if isinstance(op, p.MatMulOp)}
    state = {t.name: _fresh(t, t.name in sums) for t in module.tensors}
    takes = [t for t in module.tensors if t.kind == "input"]
    for tensor, given in zip(takes, inputs, strict=True):
        held = numerics.cast(given, tensor.declared) if tensor.declared else given
        state[tensor.name].values[...] = _stored(held, tensor.dtype)
        state[tensor.name].written[...] = True
    _body(module.body, state, {}, target)
    outputs: list[Array] = []
    for tensor in module.tensors:
        if tensor.kind == "output":
            _all_written(tensor.name, state[tensor.name].written, "the program ends")
            outputs.append(state[tensor.name].values)
    if watch is not None:
        watch.update({name: memory.values for name, memory in state.items()})
    return outputs


def _fresh(tensor: p.Tensor, wide: bool) -> Memory:
    values = np.zeros(tensor.shape, numpy_type("float32" if wide else tensor.dtype))
    if tensor.data is not None:
        values[...] = tensor.data.array()
    known = tensor.data is not None
    return Memory(tensor, values, np.full(tensor.shape, known, np.bool_), wide)


def _body(
    body: tuple[p.Statement, ...], state: dict[str, Memory], env: Env, target: Target
) -> None:
    for one in body:
        if isinstance(one, p.Loop):
            for trip in range(one.trips):
                env[one.axis] = trip
                _body(one.body, state, env, target)
            env.pop(one.axis, None)
        elif isinstance(one, p.KernelCall | p.KernelNode):
            _kernel(one, state, target)
        else:
            meaning = MEANING.get(type(one))
            if meaning is None:
                said = f"{type(one).__name__} has no meaning yet: its formats come later"
                raise NccError("NCC229", said, one.origin.place(one.name))
            meaning(one, Access(one, state, env))


def _kernel(one: p.KernelCall | p.KernelNode, state: dict[str, Memory], target: Target) -> None:
    """Run a kernel's bodies on its tensors; a tensor that it writes is whole afterwards."""
    from ncc.interp.kernel import run as run_kernel

    bodies = one.bodies if isinstance(one, p.KernelNode) else one.source.trace(target)
    for _, tensor in one.args:
        _all_written(f"what {one.name} takes of {tensor}", state[tensor].written, "it", one)
    given = {buffer: state[tensor].values for buffer, tensor in one.args}
    results = run_kernel(bodies, given, target)
    for buffer, tensor in one.outs:
        memory = state[tensor]
        memory.values[...] = _stored(np.asarray(results[buffer]), memory.tensor.dtype)
        memory.written[...] = True


# ---- views --------------------------------------------------------------------------------------


@attrs.frozen
class Access:
    """How one op, in one iteration, reaches its operands."""

    op: p.TileOp | p.TensorOp
    state: dict[str, Memory]
    env: Env

    def extents(self, axes: tuple[p.Axis, ...]) -> list[tuple[str, int]]:
        """The axes with their extents in this iteration."""
        return [(a.name, at(a.extent, self.env)) for a in axes]

    def read(self, view: p.Operand, axes: Axes, whole: bool = False) -> Array:
        """The elements of a view, one dimension an axis; an axis that it lacks is repeated.

        `whole` reads an accumulator as it is, not rounded to its tensor's type."""
        if not isinstance(view, p.View):
            return np.full((1,) * len(axes), view, np.float32)
        memory = self.state[view.tensor]
        window = self._window(view, axes)
        known = _strided(memory.written, window)
        if not known.all():
            _all_written(f"what {self.op.name} reads of {view.tensor}", known, "it", self.op)
        values = _strided(memory.values, window)
        return _stored(values, memory.tensor.dtype) if memory.wide and not whole else values

    def write(self, view: p.View, axes: Axes, values: Array) -> None:
        """Round the values once to the tensor's type and store them."""
        memory = self.state[view.tensor]
        window = self._window(view, axes)
        dtype = "float32" if memory.wide else memory.tensor.dtype
        _strided(memory.values, window)[...] = _stored(values, dtype)
        _strided(memory.written, window)[...] = True

    def dtype(self, view: p.View) -> str:
        return self.state[view.tensor].tensor.dtype

    def _window(self, view: p.View, axes: Axes) -> Window:
        """Where a view lies in its tensor, counted in elements."""
        shape = self.state[view.tensor].tensor.shape
        sizes = tuple(n for _, n in axes)
        steps = dict.fromkeys((name for name, _ in axes), 0)
        extent = dict(axes)
        start, step = 0, math.prod(shape)
        for size, index in zip(shape, view.index, strict=True):
            step = step // size if size else 0
            first, low, high = 0, 0, 0
            if isinstance(index, Affine):
                first = index.const
                for name, factor in index.terms:
                    if name in extent:
                        steps[name] += factor * step
                        reach = factor * (extent[name] - 1)
                        low, high = low + min(reach, 0), high + max(reach, 0)
                    else:
                        first += factor * self.env[name]
            else:
                first = index.at(self.env)
            if 0 not in sizes and not 0 <= first + low <= first + high < size:
                said = f"reaches {view.tensor} at {first + low} to {first + high} of {size}"
                raise NccError("NCC224", said, self.op.origin.place(self.op.name), show_op(self.op))
            start += first * step
        return Window(start, sizes, tuple(steps[name] for name, _ in axes))


@attrs.frozen
class Window:
    start: int
    sizes: tuple[int, ...]
    steps: tuple[int, ...]


def _strided(array: Array, window: Window) -> Array:
    if 0 in window.sizes:
        return np.empty(window.sizes, array.dtype)
    plain = array.reshape(-1).view(f"u{array.itemsize}")  # numpy does not stride the 8-bit floats
    strides = tuple(step * array.itemsize for step in window.steps)
    return as_strided(plain[window.start :], window.sizes, strides).view(array.dtype)


def _stored(values: Array, dtype: str) -> Array:
    """The values in a tensor's type: the same bits if they have it, else rounded once."""
    return values if values.dtype == numpy_type(dtype) else numerics.cast(values, dtype)


def _all_written(
    name: str,
    known: NDArray[np.bool_],
    when: str,
    op: p.TileOp | p.TensorOp | p.KernelCall | p.KernelNode | None = None,
) -> None:
    if known.all():
        return
    where = ",".join(str(int(i)) for i in np.argwhere(~known)[0])
    place = op.origin.place(op.name) if op else None
    raise NccError("NCC228", f"nothing wrote element [{where}] of {name} before {when}", place)


# ---- whole tensors ------------------------------------------------------------------------------


def _contract(op: p.TensorContractOp, do: Access) -> None:
    size = dict(do.extents(op.axes))
    groups = (op.batch_axes, op.lhs_free_axes, op.rhs_free_axes, op.contract_axes)
    batch, lhs_free, rhs_free, contract = ([(a, size[a]) for a in group] for group in groups)
    b, m, n, k = (math.prod(s for _, s in group) for group in (batch, lhs_free, rhs_free, contract))
    lhs = do.read(op.lhs, [*batch, *lhs_free, *contract]).reshape(b, m, k)
    rhs = do.read(op.rhs, [*batch, *contract, *rhs_free]).reshape(b, k, n)
    with np.errstate(all="ignore"):
        sums = np.matmul(lhs.astype(np.float64), rhs.astype(np.float64))
    axes = [*batch, *lhs_free, *rhs_free]
    do.write(op.dst, axes, sums.reshape([s for _, s in axes]))


def _elementwise(op: p.ElementwiseOp | p.TileElementwiseOp, do: Access) -> None:
    axes = do.extents(op.axes if isinstance(op, p.ElementwiseOp) else (*op.par, *op.free))
    values = [do.read(src, axes) for src in op.srcs]
    result = values[0] if op.op == "copy" else numerics.alu(ALU[op.op], values[0], values[1])
    do.write(op.dst, axes, result)


def _copy(op: p.TensorTransposeOp | p.TileCopyOp | p.TileTransposeOp | p.TensorCopyOp, do: Access):
    axes = do.extents(op.axes if isinstance(op, p.TensorTransposeOp) else (*op.par, *op.free))
    do.write(op.dst, axes, do.read(op.src, axes))


# ---- tiles --------------------------------------------------------------------------------------


def _matmul(op: p.MatMulOp, do: Access) -> None:
    par, free, contract = (do.extents(x) for x in (op.par, op.free, op.contract))
    m, n, k = (math.prod(s for _, s in axes) for axes in (par, free, contract))
    stationary = do.read(op.stationary, [*contract, *par]).reshape(k, m)
    moving = do.read(op.moving, [*contract, *free]).reshape(k, n)
    axes = [*par, *free]
    first = all(do.env[loop] == 0 for loop in op.accumulate)
    parts = numerics.matmul_passes(stationary, moving)
    held = None if first else do.read(op.dst, axes, whole=True).reshape(m, n)
    total = parts.pop(0) if held is None else numerics.widen(held).copy()
    for part in parts:
        numerics.add_to(total, part)
    do.write(op.dst, axes, total.reshape([s for _, s in axes]))


def _activation(op: p.ActivationOp, do: Access) -> None:
    axes = do.extents((*op.par, *op.free))
    bias = do.read(op.bias, axes)
    x = do.read(op.src, axes)
    do.write(op.dst, axes, numerics.activation(op.func, x, op.scale, numerics.widen(bias)))


def _tensor_scalar(op: p.TensorScalarOp, do: Access) -> None:
    axes = do.extents((*op.par, *op.free))
    x, first = do.read(op.src, axes), do.read(op.operand0, axes)
    result = numerics.alu(op.op0, first, x) if op.reverse0 else numerics.alu(op.op0, x, first)
    if op.op1 != "bypass":
        result = numerics.alu(op.op1, result, do.read(op.operand1, axes))
    do.write(op.dst, axes, result)


def _tensor_tensor(op: p.TensorTensorOp, do: Access) -> None:
    axes = do.extents((*op.par, *op.free))
    do.write(op.dst, axes, numerics.alu(op.op, do.read(op.src0, axes), do.read(op.src1, axes)))


def _memset(op: p.TileMemsetOp, do: Access) -> None:
    axes = do.extents((*op.par, *op.free))
    do.write(op.dst, axes, do.read(op.value, axes))


MEANING: Mapping[type[Any], Callable[[Any, Access], None]] = {
    p.TensorContractOp: _contract,
    p.ElementwiseOp: _elementwise,
    p.TensorTransposeOp: _copy,
    p.TileCopyOp: _copy,
    p.TileTransposeOp: _copy,
    p.TileElementwiseOp: _elementwise,
    p.MatMulOp: _matmul,
    p.ActivationOp: _activation,
    p.TensorScalarOp: _tensor_scalar,
    p.TensorTensorOp: _tensor_tensor,
    p.TensorCopyOp: _copy,
    p.TileMemsetOp: _memset,
}
