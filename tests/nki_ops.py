"""One-op kernels over random storages and views, and what their results must be.

A `View` is random storage plus a random access of it: start partitions, strides, padding, stride 0,
another dtype's bytes. What it holds is read here by flat index, not by strides.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import ml_dtypes
import numpy as np

from ncc.interp.kernel import run, viewed
from ncc.ir.data import data, numpy_type
from ncc.ir.kernel import Access, Buffer, Imm, Kernel, KernelOp, Reg
from ncc.ir.kernel_ops import OPS
from ncc.target import TARGETS

TRN2 = TARGETS["trn2"]
RTOL = {"float32": 3e-6, "bfloat16": 2**-7, "float16": 2**-10, "float8e4": 2**-3, "float8e5": 2**-2}
FLOATS = ("float32", "bfloat16", "float16")
COVERED: dict[str, set[str]] = {}  # op -> tests that name it


def covers(*ops: str) -> Callable[[Any], Any]:
    """Names the ops that a test is about."""

    def mark(test: Any) -> Any:
        for op in ops:
            assert op in OPS, op
            COVERED.setdefault(op, set()).add(test.__name__)
        return test

    return mark


def f64(x: Any) -> Any:
    return np.asarray(x).astype(np.float64)


class View:
    """An access of a buffer that holds random (or given) values."""

    def __init__(self, name: str, buffer: Buffer, access: Access, flat: Any) -> None:
        self.name, self.buffer, self.access, self.flat = name, buffer, access, flat

    def index(self) -> Any:
        """Flat element numbers of the access, in its shape."""
        at = np.full((), self.access.offset, np.int64)
        for step, num in self.access.pairs:
            at = np.add.outer(at, np.arange(num) * step)
        return at

    def values(self) -> Any:
        """The elements that the access reads, in its shape."""
        return self.flat[self.index()]


class Bench:
    """Makes views, runs one op or several, hands back what storages hold then."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.views: dict[str, View] = {}
        self.ops: list[KernelOp] = []

    def values(self, shape: tuple[int, ...], dtype: str, low: float, high: float) -> Any:
        kind = numpy_type(dtype)
        if kind.kind in "iu":
            least = max(int(low), np.iinfo(kind).min)
            return self.rng.integers(least, int(high) + 1, shape).astype(kind)
        return self.rng.uniform(low, high, shape).astype(np.float32).astype(kind)

    def view(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: str = "float32",
        memory: str = "sbuf",
        values: Any = None,
        low: float = -4,
        high: float = 4,
        plain: bool = False,
        repeat: bool = False,
    ) -> View:
        """A view of this shape: random padding and strides unless `plain`; `repeat` makes the
        last dimension one element read again and again."""
        rows, free = shape[0], shape[1:]
        pads = [int(self.rng.integers(0, 3)) if not plain else 0 for _ in shape]
        steps = [int(self.rng.integers(1, 3)) if not plain else 1 for _ in free]
        if repeat:
            steps[-1] = 0
        start = 0 if plain or memory not in ("sbuf", "psum") else int(self.rng.choice([0, 32]))
        start = start if start + rows <= 128 else 0
        room = [
            pad + (num - 1) * step + 1 for pad, num, step in zip(pads[1:], free, steps, strict=True)
        ]
        stored = (rows + start, *room)
        strides = [prod(stored[i + 1 :]) for i in range(len(stored))]
        offset = start * strides[0] + sum(p * s for p, s in zip(pads[1:], strides[1:], strict=True))
        pairs = (
            (strides[0], rows),
            *((s * k, n) for s, k, n in zip(strides[1:], steps, free, strict=True)),
        )
        flat = self.values((prod(stored),), dtype, low, high)
        access = Access(name, dtype, tuple(pairs), offset)
        buffer = Buffer(
            name, dtype, stored, memory, "const", data=data(dtype, flat.reshape(stored))
        )
        made = self.views[name] = View(name, buffer, access, flat)
        if values is not None:
            self.fill(made, values)
        return made

    def fill(self, view: View, values: Any) -> None:
        view.flat[view.index()] = np.asarray(values).astype(view.flat.dtype)
        shape = view.buffer.shape
        kept = data(view.buffer.dtype, view.flat.reshape(shape))
        view.buffer = Buffer(
            view.name, view.buffer.dtype, shape, view.buffer.memory, "const", data=kept
        )

    def op(self, call: str, args: dict[str, Any], engine: str = "unknown", /, **keys: Any) -> None:
        given = []
        for role, arg in args.items():
            if arg is None:
                continue
            if isinstance(arg, str):
                arg = self.views[arg].access
            elif isinstance(arg, View):
                arg = arg.access
            elif isinstance(arg, (int, float)):
                arg = Imm(arg)
            given.append((role, arg))
        usual = OPS[call].keys
        assert set(keys) <= set(usual), (call, keys)
        kept = tuple(sorted((k, v) for k, v in keys.items() if v != usual[k]))
        self.ops.append(KernelOp(f"i{len(self.ops)}", call, tuple(given), kept, engine))

    def kernel(self, *results: str, body: Any = None) -> Kernel:
        buffers = tuple(v.buffer for v in self.views.values())
        wanted = tuple(self.views[name].access for name in results)
        return Kernel("k", buffers, (), wanted, tuple(body if body is not None else self.ops))

    def run(self, *results: str, target: Any = TRN2, body: Any = None, say: Any = print) -> Any:
        """What the named views hold after the ops; everything else of their storages must stay."""
        found = run([self.kernel(*results, body=body)], {}, target, say)
        out = []
        for name in results:
            view = self.views[name]
            after = found[name].reshape(-1)
            touched = np.zeros(after.shape, bool)
            touched[view.index()] = True
            same = after.view(np.uint8).reshape(touched.size, -1) == view.flat.view(
                np.uint8
            ).reshape(touched.size, -1)
            assert same.all(axis=1)[~touched].all(), f"{name}: wrote outside the access"
            out.append(viewed(found[name], view.access))
        return out[0] if len(out) == 1 else out


def rounded(x: Any, dtype: str) -> Any:
    """float64 values as a dtype holds them: float32 first, then to the nearest; integers and 8-bit
    floats saturate."""
    kind = numpy_type(dtype)
    with np.errstate(all="ignore"):
        small = np.asarray(x, np.float64).astype(np.float32)
        if kind.kind in "iu":
            info = np.iinfo(kind)
            return np.clip(np.rint(small.astype(np.float64)), info.min, info.max).astype(kind)
        if kind.itemsize == 1:
            top = float(ml_dtypes.finfo(kind).max)
            small = np.clip(small, -top, top)
        return small.astype(kind)


def close(found: Any, wanted: Any, dtype: str, scale: float = 1.0) -> None:
    """`found` holds `wanted` (float64), rounded to `dtype`, up to one unit in the last place."""
    want = rounded(np.asarray(wanted).reshape(found.shape), dtype)
    if found.dtype.kind in "iu":
        np.testing.assert_array_equal(found, want)
        return
    np.testing.assert_allclose(
        f64(found), f64(want), rtol=RTOL[dtype] * scale, atol=1e-6 * scale, equal_nan=True
    )


def reg(name: str, dtype: str = "int32") -> Reg:
    return Reg(name, dtype)
