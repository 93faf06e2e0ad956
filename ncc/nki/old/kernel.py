"""Kernels of the older API: `jit` with its modes, grids of any shape, and the ways to run one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

from ncc.nki.arguments import walked
from ncc.nki.binding import Bound, place_of
from ncc.nki.call import JitKernel, jitted
from ncc.nki.memory import is_hbm
from ncc.nki.old.finish import finished
from ncc.nki.old.grid import Axis, axes_of, programs_of
from ncc.nki.old.tile import Tile, adopted
from ncc.nki.regions import shared_hbm
from ncc.nki.specialise import Specialisation, specialised
from ncc.nki.tensor import NkiTensor
from ncc.nki.trace import Trace, current, invalid
from ncc.target import Target


class OldKernel(JitKernel):
    """A kernel of the older API; each call traces it once."""

    old: ClassVar[bool] = True
    remembers: ClassVar[bool] = False
    simulated: ClassVar[bool] = False
    last: Specialisation | None = None

    def checked_grid(self, axes: tuple[Any, ...]) -> tuple[Any, ...]:
        """The axes of the grid, sizes or cores; NCC304 for what is none."""
        return axes_of(axes, self.__name__, place_of(self.func))

    def inlined(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """A call by a kernel: part of it."""
        if self.grid:
            said = f"{self.__name__} is called by a kernel with a grid of its own"
            raise invalid("NCC304", said, "call it without [...]: it is part of its caller")
        trace = current()
        before, trace.old = trace.old, True

        def is_leaf(value: Any) -> bool:
            return isinstance(value, NkiTensor)

        def leaf(value: Any, name: str) -> Any:
            return adopted(value)

        try:
            if before:
                return self.func(*args, **kwargs)
            return self.func(*walked(args, "", is_leaf, leaf), **walked(kwargs, "", is_leaf, leaf))
        finally:
            trace.old = before

    def run(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        simulated: bool,
        target: Target | None = None,
    ) -> Any:
        simulated = simulated or self.simulated
        got = super().run(args, kwargs, simulated=simulated, target=target)
        if not simulated:
            self.save()
        return got

    def save(self) -> None:
        """Write the NEFF of the last call where `save_neff_name` says."""
        asked: dict[str, Any] = dict(self.options.rest)
        found, self.last = self.last, None
        if found is None or not asked.get("save_neff_name"):
            return
        from ncc import pack
        from ncc.nki.running import neff_of, out_buffers

        if out_buffers(found):
            path = Path(asked.get("working_directory", "")) / asked["save_neff_name"]
            pack.write(neff_of(found).module, path)

    def traced(self, bound: Bound, target: Target, simulated: bool) -> Specialisation:
        axes: tuple[Any, ...] = tuple(self.grid)
        grid: tuple[Axis, ...] = tuple(a if isinstance(a, Axis) else Axis(int(a)) for a in axes)
        cores = max((axis.cores for axis in grid), default=1)
        if target.level < 30:
            cores = 1
        self.last = specialised(
            self.func,
            bound,
            target,
            self.options,
            grid=tuple(axis.size for axis in grid),
            programs=programs_of(grid, cores),
            simulated=simulated,
            old=True,
            on_chip_result=copied_out,
            tensor=Tile,
            finish=finished,
        )
        return self.last


class SimulatedKernel(OldKernel):
    """`nki.jit(mode="simulation")`: calls are simulated."""

    simulated: ClassVar[bool] = True


class Latency:
    """What `nki.benchmark` measured, in microseconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def get_latency_percentile(self, percentile: int) -> float:
        return self.seconds * 1e6


class BenchmarkResult:
    """The latencies of a run: ncc has no clock of the machine, every one is the time of the call
    on this one."""

    def __init__(self, seconds: float) -> None:
        self.nc_latency = Latency(seconds)


class BenchmarkedKernel(OldKernel):
    """`nki.benchmark` and `nki.profile`: runs the kernel, and remembers how long it took."""

    benchmark_result: BenchmarkResult | None = None
    _base: Any = None

    def __getitem__(self, grid: Any) -> Self:
        made = super().__getitem__(grid)
        made._base = self._base or self
        return made

    def run(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        *,
        simulated: bool,
        target: Target | None = None,
    ) -> Any:
        import time

        began = time.perf_counter()
        found = super().run(args, kwargs, simulated=simulated, target=target)
        self.benchmark_result = BenchmarkResult(time.perf_counter() - began)
        if self._base is not None:
            self._base.benchmark_result = self.benchmark_result
        return found


def copied_out(trace: Trace, value: Any) -> Any:
    """A returned tile, or tensor in private HBM, as a tensor in shared HBM."""
    from ncc.nki.old.language import ndarray, store

    out = ndarray(value.shape, value.dtype, buffer=shared_hbm)
    if is_hbm(value):
        from ncc.nki import isa

        isa.dma_copy(out, value)
    else:
        store(out, value)
    return out


MODES: dict[str, type[OldKernel]] = {
    "simulation": SimulatedKernel,
    "benchmark": BenchmarkedKernel,
    "profile": BenchmarkedKernel,
}


FILES = ("save_neff_name", "working_directory")


def jit(func: Any = None, mode: Any = "auto", **kwargs: Any) -> Any:
    """Make a kernel of a function. `mode`: "simulation" simulates its calls; every other one
    compiles and runs them. Further keywords change nothing."""
    kind = MODES.get(str(mode), OldKernel)
    kwargs.pop("platform_target", None)
    kwargs.pop("additional_compile_opt", None)
    return jitted(kind, func, {})


def trace(func: Any = None, **kwargs: Any) -> Any:
    """A kernel, or a part of kernels."""
    return jit(func, "trace")


def baremetal(kernel: Any = None, **kwargs: Any) -> Any:
    """A kernel that is called on NumPy arrays. Each run writes the NEFF that `save_neff_name` names
    (in `working_directory`); no other file is written."""
    return _again(OldKernel, kwargs, kernel)


def benchmark(kernel: Any = None, **kwargs: Any) -> Any:
    """A kernel whose calls leave their latencies in `benchmark_result.nc_latency`."""
    return _again(BenchmarkedKernel, kwargs, kernel)


def profile(func: Any = None, **kwargs: Any) -> Any:
    """A benchmarked kernel; ncc writes its NEFF, and no profile."""
    return _again(BenchmarkedKernel, kwargs, func)


def _again(kind: type[OldKernel], keywords: dict[str, Any], kernel: Any) -> Any:
    """A kernel of that kind; also of a kernel that was decorated before, its grid kept."""
    if kernel is None:
        return partial(_again, kind, keywords)
    files = {k: str(v) for k, v in keywords.items() if k in FILES and v is not None}
    return jitted(kind, kernel, files)


def simulate_kernel(kernel: Any, *args: Any, **kwargs: Any) -> Any:
    """One call of a kernel, simulated; arrays that it writes are updated."""
    made: Callable[..., Any] = kernel
    if not isinstance(kernel, JitKernel):
        made = jit(kernel)
    run: Any = made
    return run.run(args, kwargs, simulated=True)
