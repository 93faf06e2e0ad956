"""Hand-built kernels: run as the interpreter means them, and through BIR and bytes on the machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
import numpy as np

from ncc import driver
from ncc.interp import kernel as meaning
from ncc.interp.kernel_memory import kind_of
from ncc.ir.bir import Module
from ncc.ir.core import Origin
from ncc.ir.kernel import Access, Arg, Buffer, Kernel, KernelOp, Reg
from ncc.ir.kernel import Imm as Number
from ncc.ir.kernel_ops import OPS
from ncc.ir.lower.kernel import lower
from ncc.ir.neff import Neff
from ncc.sim.run import run_neff
from ncc.stages import Stage
from ncc.target import Target
from ncc.target import target as target_named
from ncc.verify import Verifier

FACTS = (
    "every-instruction-has-one-engine",
    "no-abstract-copy-is-left",
    "no-loop-is-left",
    "no-matmul-has-a-flag",
    "operands-are-bound",
    "patterns-are-physical",
)


@attrs.define(eq=False)
class T:
    """A buffer while a kernel is built; `[...]` slices it, `.ap` walks it by pairs."""

    buffer: Buffer
    pairs: tuple[tuple[int, int], ...]
    offset: int = 0
    dtype: str = ""

    def __getitem__(self, index: Any) -> T:
        index = index if isinstance(index, tuple) else (index,)
        pairs, offset = list(self.pairs), self.offset
        for i, at in enumerate(index):
            step, num = pairs[i]
            if isinstance(at, int):
                pairs[i] = (step, 1)
                offset += at * step
            else:
                first, stop, by = at.indices(num)
                pairs[i] = (step * by, len(range(first, stop, by)))
                offset += first * step
        return T(self.buffer, tuple(pairs), offset, self.dtype)

    def ap(self, pairs: Any, offset: int = 0, dtype: str = "") -> T:
        return T(self.buffer, tuple(pairs), offset, dtype or self.dtype)

    @property
    def access(self) -> Access:
        dtype = self.dtype or self.buffer.dtype
        return Access(self.buffer.name, dtype, self.pairs, self.offset)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(n for _, n in self.pairs)


class Builder:
    """A kernel, one call after the other."""

    def __init__(self, name: str = "k") -> None:
        self.name = name
        self.buffers: list[Buffer] = []
        self.body: list[Any] = []
        self.count = 0

    def tensor(
        self,
        name: str,
        dtype: str,
        shape: tuple[int, ...],
        memory: str = "sbuf",
        kind: str = "internal",
        address: tuple[int, int] | None = None,
    ) -> T:
        buffer = Buffer(name, dtype, shape, memory, kind, address, origin=Origin("k.py", 1))
        self.buffers.append(buffer)
        pairs: list[tuple[int, int]] = []
        step = 1
        for num in reversed(shape):
            pairs.append((step, num))
            step *= num
        return T(buffer, tuple(pairs[::-1]))

    def input(self, name: str, dtype: str, shape: tuple[int, ...]) -> T:
        return self.tensor(name, dtype, shape, "shared_hbm", "input")

    def output(self, name: str, dtype: str, shape: tuple[int, ...]) -> T:
        return self.tensor(name, dtype, shape, "shared_hbm", "output")

    def sb(self, name: str, dtype: str, *shape: int, at: tuple[int, int] | None = None) -> T:
        return self.tensor(name, dtype, shape, address=at)

    def psum(self, name: str, dtype: str, *shape: int, at: tuple[int, int] | None = None) -> T:
        return self.tensor(name, dtype, shape, "psum", address=at)

    def emit(
        self, op: str, engine: str = "unknown", after: tuple[str, ...] = (), /, **given: Any
    ) -> str:
        row = OPS[op]
        args: list[tuple[str, Arg]] = []
        keys: list[tuple[str, Any]] = []
        for name, value in given.items():
            if name in row.keys:
                if value != row.keys[name]:
                    keys.append((name, value))
            elif isinstance(value, T):
                args.append((name, value.access))
            elif isinstance(value, (Access, Reg, Number)):
                args.append((name, value))
            elif value is not None:
                args.append((name, Number(value)))
        name = f"i{self.count}"
        self.count += 1
        origin = Origin("k.py", self.count + 1)
        self.body.append(
            KernelOp(name, op, tuple(args), tuple(sorted(keys)), engine, after, origin)
        )
        return name

    def kernel(self) -> Kernel:
        params = tuple(x.name for x in self.buffers if x.kind in ("input", "inout"))
        outs = [x for x in self.buffers if x.kind == "output"]
        results = tuple(Access(x.name, x.dtype, ((1, int(np.prod(x.shape))),)) for x in outs)
        return Kernel(self.name, tuple(self.buffers), params, results, tuple(self.body))


def stage_of(kernel: Kernel, target: Target) -> Stage:
    """The lowered kernel as the main function of a module."""
    module = Module(kernel.name, target.arch, (lower(kernel, target),))
    return Stage("bir", target, "inline-kernels", (), module)


def compiled(kernel: Kernel, target: Target, observers: Any = ()) -> Neff:
    start = stage_of(kernel, target)
    Verifier().check(start)
    module = driver.walk(start, driver.plan(start), observers).module
    assert isinstance(module, Neff)
    return module


def values(kernel: Kernel, seed: int = 0, whole: bool = True) -> dict[str, np.ndarray[Any, Any]]:
    rng = np.random.default_rng(seed)
    found: dict[str, np.ndarray[Any, Any]] = {}
    for buffer in kernel.buffers:
        if buffer.kind != "input":
            continue
        kind = kind_of(buffer.dtype)
        if kind.kind in "iu":
            found[buffer.name] = rng.integers(0, 100, buffer.shape).astype(kind)
        elif whole:
            found[buffer.name] = rng.integers(-8, 9, buffer.shape).astype(kind)
        else:
            found[buffer.name] = rng.standard_normal(buffer.shape).astype(np.float32).astype(kind)
    return found


def agree(
    kernel: Kernel,
    target: str = "trn2",
    inputs: Mapping[str, Any] | None = None,
    exact: bool = True,
    whole: bool = True,
) -> dict[str, np.ndarray[Any, Any]]:
    """The outputs; bytes and meaning say the same."""
    machine = target_named(target)
    given = dict(inputs) if inputs is not None else values(kernel, whole=whole)
    wanted = meaning.run((kernel,), given, machine)
    neff = compiled(kernel, machine)
    ins = [given[x.name] for x in kernel.buffers if x.kind == "input"]
    outs = run_neff(neff, machine, ins)
    names = [x.name for x in kernel.buffers if x.kind == "output"]
    for name, got in zip(names, outs, strict=True):
        want = wanted[name]
        assert got.shape == want.shape and got.dtype == want.dtype, name
        if exact:
            np.testing.assert_array_equal(
                got.astype(np.float64), want.astype(np.float64), err_msg=name
            )
        else:
            np.testing.assert_allclose(
                got.astype(np.float64), want.astype(np.float64), rtol=1e-5, atol=1e-5, err_msg=name
            )
    return dict(zip(names, outs, strict=True))
