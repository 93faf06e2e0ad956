"""Compile a kernel by function calls instead of calling it: to BIR, to a NEFF, to a callable."""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from ncc.errors import UsageError, nearest
from ncc.nki.call import JitKernel, jit
from ncc.nki.specialise import Specialisation
from ncc.nki.targets import NAMES, default_target
from ncc.target import TARGETS, Target

if TYPE_CHECKING:
    from ncc.stages import Stage


class CompileOptions:
    """What to compile for, and where to write: `output_path` is the NEFF's file."""

    def __init__(
        self,
        target: Any = None,
        lnc: int = 1,
        output_path: Any = None,
        artifacts_dir: Any = None,
        **more: Any,
    ) -> None:
        self.target, self.lnc = target, lnc
        self.output_path, self.artifacts_dir = output_path, artifacts_dir
        self.pipeline_options: tuple[str, ...] = ()
        self.more = more

    def set_pipeline_options(self, *options: str) -> CompileOptions:
        """Options of the real compiler's passes: kept, and without effect here."""
        self.pipeline_options = tuple(map(str, options))
        return self

    @property
    def machine(self) -> Target:
        """The target as ncc has it."""
        if self.target is None:
            return default_target()
        word = str(getattr(self.target, "value", self.target)).rsplit(".", 1)[-1].lower()
        if word not in NAMES:
            hint = nearest(word, NAMES) or f"one of {', '.join(NAMES)}"
            raise UsageError("NCC380", f"no target is called {self.target!r}", hint=hint)
        return TARGETS[NAMES[word]]


class Kernel:
    """A function that the drivers below compile; `Kernel(fn)(*args)` calls it."""

    def __init__(self, fn: Any, **more: Any) -> None:
        self.kernel: JitKernel = fn if isinstance(fn, JitKernel) else jit(fn)
        self.func, self.more = self.kernel.func, more

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.kernel(*args, **kwargs)


class TracerFrontend:
    """The front end that runs a kernel's Python: ncc's only one."""

    def __init__(self, *args: Any, **kwargs: Any) -> None: ...


class ParserFrontend(TracerFrontend):
    """The real compiler's other front end reads the source; here it is the same as the tracer."""


class Bir:
    """A traced kernel on its way: what `compile_to_bir` gives and `compile_bir_to_neff` takes."""

    def __init__(self, found: Specialisation, names: Sequence[str]) -> None:
        self.found, self.output_names = found, tuple(names)

    @property
    def stage(self) -> Stage:
        """The BIR right after its kernel was inlined."""
        from ncc.driver import compile
        from ncc.nki.running import stage_of

        return compile(stage_of(self.found), stop_after="inline-kernels")

    def to_json(self) -> str:
        from ncc.ir.bir_json import to_json

        stage = self.stage
        return to_json(stage.module, stage.header())


class CompiledKernel:
    """A kernel with its shapes settled: call it on arrays; `neff` is the container, `path` its
    file where one was written."""

    def __init__(
        self,
        kernel: JitKernel,
        found: Specialisation,
        options: CompileOptions,
        names: Sequence[str],
    ) -> None:
        self.kernel, self.found, self.options, self.output_names = kernel, found, options, names
        self.path = self.neff_path = self._write()

    @property
    def neff(self) -> Any:
        from ncc.nki.running import neff_of

        return neff_of(self.found).module

    def _write(self) -> str:
        where = self.options.output_path
        if where is None and self.options.artifacts_dir is None:
            return ""
        from ncc import pack

        path = Path(
            where or Path(self.options.artifacts_dir) / f"{self.found.kernels[0].name}.neff"
        )
        path.parent.mkdir(parents=True, exist_ok=True)
        pack.write(self.neff, path)
        return str(path)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.kernel.run(args, kwargs, simulated=False, target=self.options.machine)


def compile_kernel(
    fn: Any,
    inputs: Mapping[str, Any],
    outputs: Mapping[str, Any] | None = None,
    compile_opts: CompileOptions | None = None,
    **hyperparameters: Any,
) -> CompiledKernel:
    """Compile `fn` for the arrays of `inputs`. Outputs that are parameters of `fn` are passed too;
    otherwise they name what it returns."""
    options = compile_opts or CompileOptions()
    kernel = _on_cores(fn, options.lnc)
    outs = dict(outputs or {})
    params = inspect.signature(kernel.func).parameters
    passed = {name: _array(one) for name, one in outs.items() if name in params}
    given = {name: _array(one) for name, one in inputs.items()}
    found = _traced(kernel, {**given, **passed, **hyperparameters}, options)
    return CompiledKernel(kernel, found, options, tuple(outs))


def compile_to_bir(
    kernel: Any,
    frontend: Any = None,
    inputs: Any = (),
    compile_opts: CompileOptions | None = None,
    output_names: Sequence[str] = (),
    **more: Any,
) -> Bir:
    """Trace a kernel for `inputs` (a mapping by parameter, or a sequence by position)."""
    options = compile_opts or CompileOptions()
    made = _on_cores(kernel, options.lnc)
    names = list(inspect.signature(made.func).parameters)
    by_name = hasattr(inputs, "keys")
    given: dict[str, Any] = dict(inputs if by_name else zip(names, inputs, strict=False))
    arguments = {**{name: _array(one) for name, one in given.items()}, **more}
    return Bir(_traced(made, arguments, options), output_names)


def compile_bir_to_neff(
    opts: CompileOptions,
    bir: Bir,
    arrays: Any = (),
    in_names: Sequence[str] = (),
    out_names: Sequence[str] = (),
) -> str:
    """Write the NEFF of a traced kernel; the path of its file."""
    from ncc import pack
    from ncc.nki.running import neff_of

    folder = Path(opts.artifacts_dir or ".")
    path = Path(opts.output_path or folder / f"{bir.found.kernels[0].name}.neff")
    path.parent.mkdir(parents=True, exist_ok=True)
    pack.write(neff_of(bir.found).module, path)
    return str(path)


def _on_cores(fn: Any, lnc: int) -> JitKernel:
    made = fn.kernel if isinstance(fn, Kernel) else fn if isinstance(fn, JitKernel) else jit(fn)
    return made[lnc] if lnc > 1 and not made.grid else made


def _array(given: Any) -> Any:
    """An array, also of a (shape, dtype) pair; other values as they are."""
    if not isinstance(given, tuple):
        return given
    pair = cast(tuple[Any, ...], given)
    if len(pair) != 2 or not isinstance(pair[0], tuple | list):
        return pair
    shape, dtype = pair
    from ncc.nki.dtypes import dtype_of

    return np.zeros(tuple(shape), dtype_of(dtype).dtype)


def _traced(kernel: JitKernel, given: dict[str, Any], options: CompileOptions) -> Specialisation:
    from ncc.nki.binding import bind

    machine = options.machine
    return kernel.specialisation(bind(kernel.func, (), given, machine), machine)
