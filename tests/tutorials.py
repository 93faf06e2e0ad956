"""Run the public tutorials, unmodified, from files outside of this repository.

    make tutorials DIR=FOLDER        every kernel of the table that is found under FOLDER

Each is simulated and compiled, and compared with a float64 definition. Prints the table and writes
it to `book/tutorials.md`. FOLDER may have a file `MANIFEST` with a line for each file in it: path,
repository, commit; or `--repository` and `--commit` say it for all. Exit status 1 if one fails.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator
from importlib import import_module
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, cast

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parent))

import attrs
import numpy as np
from tutorial_cases import CASES, Array, Case

from ncc import nki
from ncc.errors import NccError
from ncc.ir.kernel import ops_of
from ncc.ir.kernel_axes import unrolled
from ncc.nki.binding import bind
from ncc.nki.call import JitKernel
from ncc.nki.targets import default_target

PAGE = Path(__file__).resolve().parent.parent / "book" / "tutorials.md"
TARGET = "NEURON_PLATFORM_TARGET_OVERRIDE"
SIMULATED = "NKI_SIMULATOR"
# What the files import beside NKI and a machine without accelerators need not have.
HOSTS = ("torch", "torch_xla", "torch_neuronx", "transformers", "loguru", "scipy", "jax")


class Host(ModuleType):
    """A host library that is not installed: whatever is asked of it is there and does nothing."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.__path__ = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name == "nki_jit":  # how an early release of torch_neuronx spelt the older API's jit
            return import_module("neuronxcc.nki").jit
        return Host(name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return args[0] if len(args) == 1 and callable(args[0]) else self


class Hosts:
    """The finder of such libraries; it stands last, so that an installed one is used."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> Any:
        return ModuleSpec(name, self, is_package=True) if name.split(".")[0] in HOSTS else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return Host(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        pass


@attrs.frozen
class Source:
    """A tutorial's file, and where it was published."""

    path: Path
    shown: str
    repository: str
    commit: str


@attrs.frozen
class Result:
    case: Case
    source: Source
    how: str
    failed: str = ""
    error: float = 0.0
    count: int = 0
    seconds: float = 0.0
    refused: str = ""
    given: str = ""

    def cells(self) -> list[str]:
        """The row of the table."""
        result = "fail" if self.failed else "refused" if self.refused else "pass"
        ran = [f"{self.error:.1e}", str(self.count or ""), f"{self.seconds:.2f}"]
        shown = ran if result == "pass" or self.error else ["", "", ""]
        return [f"`{self.case.kernel}`", self.given, self.how, result, *shown]


def sources(folder: Path, repository: str, commit: str) -> Iterator[Source]:
    """Every Python file in the folder, with what MANIFEST says of it."""
    known: dict[str, tuple[str, str]] = {}
    for place in (folder, *folder.parents):
        if (place / "MANIFEST").is_file():
            for line in (place / "MANIFEST").read_text().splitlines():
                words = line.split("#")[0].split()
                if len(words) == 3:
                    known[str(place / words[0])] = (words[1], words[2])
            break
    for path in sorted(folder.rglob("*.py")):
        at, version = known.get(str(path), (repository, commit))
        yield Source(path, path.relative_to(folder).as_posix(), at, version)


def loaded(path: Path) -> ModuleType:
    """The file as a module of its own; what it imports from beside it is found."""
    sys.path.insert(0, str(path.parent))
    before = set(sys.modules)
    try:
        spec = spec_from_file_location(f"tutorial_{abs(hash(path))}", path)
        assert spec is not None and spec.loader is not None
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(path.parent))
        for name in set(sys.modules) - before:
            origin = getattr(sys.modules[name], "__file__", None)
            if origin and Path(origin).parent == path.parent:
                del sys.modules[name]  # another tutorial may have a file of that name


def arrays(found: Any) -> list[Array]:
    many = cast("list[Any]", found if isinstance(found, tuple | list) else [found])
    return [np.asarray(x).astype(np.float64) for x in many]


def error_of(got: Any, want: Any) -> float:
    """The largest error of any result, relative to its largest true value."""
    worst = 0.0
    have, true = arrays(got), arrays(want)
    assert len(have) == len(true), f"{len(have)} results for {len(true)}"
    for a, b in zip(have, true, strict=True):
        assert a.shape == b.shape, f"shape {a.shape} for {b.shape}"
        gap = np.abs(a - b).max() / np.abs(b).max()
        worst = max(worst, float(gap) if np.isfinite(gap) else float("inf"))
    return worst


def given(case: Case) -> str:
    """The arguments of a call, arrays by type and sizes."""
    said: list[str] = []
    for one in case.make(np.random.default_rng(7)):
        sizes = "×".join(map(str, getattr(one, "shape", ())))
        said.append(f"{one.dtype} {sizes}" if sizes else str(one))
    return ", ".join(said)


def instructions(kernel: Any, args: tuple[Any, ...], how: str) -> int:
    """How many a kernel records; 0 for a function of the host that calls one."""
    if not isinstance(kernel, JitKernel):
        return 0
    target = default_target()
    bound = bind(kernel.func, args, {}, target)
    traced = kernel.specialisation(bound, target, how == "simulated")
    return sum(1 for one in traced.kernels for _ in ops_of(unrolled(one).body))


def run(case: Case, source: Source, how: str) -> Result:
    """One call of a kernel, simulated or compiled."""
    began = time.perf_counter()
    os.environ[TARGET] = case.target
    args = case.make(np.random.default_rng(7))
    wide = [cast(Array, x).astype(np.float64) if isinstance(x, np.ndarray) else x for x in args]
    error, count = 0.0, 0
    try:
        kernel = getattr(loaded(source.path), case.kernel)
        kernel = kernel[case.grid] if case.grid else kernel
        os.environ[SIMULATED] = str(int(how == "simulated"))
        began = time.perf_counter()
        got = kernel(*args)
        seconds = time.perf_counter() - began
        error = error_of(got, case.meaning(*wide))
        count = instructions(kernel, args, how)
    except NccError as fault:
        if fault.code == case.refused:
            return Result(case, source, how, refused=f"as it must be, {fault}")
        return Result(case, source, how, str(fault), error, count, time.perf_counter() - began)
    except Exception as fault:
        told = " ".join(f"{type(fault).__name__}: {fault}".split())
        return Result(case, source, how, told, error, count, time.perf_counter() - began)
    said = "" if error <= case.limit else f"error {error:.2e}, allowed {case.limit:.1e}"
    return Result(case, source, how, said, error, count, seconds)


def defines(source: Source, name: str) -> bool:
    return f"def {name}(" in source.path.read_text()


def page(results: list[Result], missing: list[str]) -> str:
    """The chapter: a table for each file."""
    lines = [
        "# The public tutorials",
        "",
        "Tutorials and documentation examples that AWS publishes, run as they are: none of their",
        "lines is changed, and their files are not part of this repository. `make tutorials",
        "DIR=FOLDER` runs those that it finds and writes this page.",
        "",
        "Each kernel is called on random arrays, simulated (`nki.simulate`) and compiled (run from",
        "its bytes). *Error* is the largest difference from a float64 definition over the largest",
        "true value; *ops* are the recorded instructions, *seconds* the whole call with tracing,",
        "compiling and running.",
        "",
    ]
    passed = sum(not (r.failed or r.refused) for r in results)
    refused = sum(bool(r.refused) for r in results)
    told = f"; {refused} are refused, as they must be" if refused else ""
    lines += [f"{passed} of {len(results)} runs pass{told}.", ""]
    for source in dict.fromkeys(r.source for r in results):
        lines += [f"## {source.shown}", "", f"`{source.repository}` at `{source.commit}`", ""]
        lines += ["| kernel | arguments | how | result | error | ops | seconds |"]
        lines += ["|---|---|---|---|---|---|---|"]
        mine = [r for r in results if r.source == source]
        lines += ["| " + " | ".join(r.cells()) + " |" for r in mine]
        lines += [""]
        for r in mine:
            if r.failed or r.refused:
                lines += [f"`{r.case.kernel}`, {r.how}: {r.failed or r.refused}", ""]
    if missing:
        lines += ["## Not found", "", *(f"- {name}" for name in missing), ""]
    return "\n".join(lines).rstrip() + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("folder", type=Path, help="where the tutorials' files are")
    parser.add_argument("--repository", default="unknown repository")
    parser.add_argument("--commit", default="unknown commit")
    parser.add_argument("--only", default="", help="only kernels whose file or name contains this")
    parser.add_argument("--page", type=Path, default=PAGE, help="where the table is written")
    asked = parser.parse_args()
    if not asked.folder.is_dir():
        parser.error(f"{asked.folder} is no folder; say DIR=FOLDER")
    nki.install()
    sys.meta_path.append(Hosts())
    files = list(sources(asked.folder.resolve(), asked.repository, asked.commit))
    results: list[Result] = []
    missing: list[str] = []
    for case in CASES:
        if asked.only not in f"{case.file}:{case.kernel}":
            continue
        found = [s for s in files if f"/{s.path}".endswith(f"/{case.file}")]
        having = [s for s in found if defines(s, case.kernel)]
        if not found and case.file not in missing:
            missing.append(case.file)
        for source in having:
            for how in ("simulated", "compiled"):
                one = attrs.evolve(run(case, source, how), given=given(case))
                results.append(one)
                print(" ".join([*one.cells(), one.failed]), flush=True)
    for name in missing:
        print(f"not found: {name}")
    order = {s: n for n, s in enumerate(dict.fromkeys(r.source for r in results))}
    results.sort(key=lambda r: order[r.source])
    if asked.page != PAGE or not asked.only:
        asked.page.write_text(page(results, missing))
    failed = sum(bool(r.failed) for r in results)
    print(f"{len(results) - failed} passed, {failed} failed")
    return 1 if failed or not results else 0


if __name__ == "__main__":
    sys.exit(main())
