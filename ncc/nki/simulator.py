"""`nki.simulate`: a kernel run by the meaning of its instructions, without compiling it."""

from __future__ import annotations

from typing import Any

from ncc.nki.call import JitKernel, jit
from ncc.nki.trace import is_tracing


class Simulated:
    """A kernel whose calls are simulated; `[2]` for two cores."""

    def __init__(self, kernel: JitKernel) -> None:
        self.kernel = kernel
        self.func = kernel.func
        self.__wrapped__ = kernel.func
        self.__name__ = kernel.__name__

    def __getitem__(self, grid: Any) -> Simulated:
        return type(self)(self.kernel[grid])

    def with_schedule(self, schedule: Any) -> Simulated:
        return type(self)(self.kernel.with_schedule(schedule))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if is_tracing():
            return self.kernel.inlined(args, kwargs)
        return self.kernel.run(args, kwargs, simulated=True)

    def __repr__(self) -> str:
        return f"<simulated {self.kernel!r}>"


def simulate(kernel: Any) -> Simulated:
    """A callable that runs `kernel` (one from `nki.jit`, or a plain function) on this computer."""
    if isinstance(kernel, Simulated):
        return kernel
    return Simulated(kernel if isinstance(kernel, JitKernel) else jit(kernel))


def simulate_kernel(func: Any, args: Any = (), kwargs: Any = None, _lnc: int | None = None) -> Any:
    """Simulate one call whose arguments come as a tuple and a dictionary."""
    made = simulate(func)
    return (made[_lnc] if _lnc else made)(*args, **(kwargs or {}))
