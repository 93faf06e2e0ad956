"""A kernel as a program of the command line: `kernel.py:name` with the values of its parameters.

`kernel.py:name[2]`, or `[4,2]` in the older API, launches it with a grid as Python does.
"""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

from ncc import files
from ncc.errors import NccError, Place, UsageError, listed, nearest
from ncc.nki import dtypes
from ncc.nki.arguments import ArraySpec
from ncc.nki.binding import bind
from ncc.nki.call import JitKernel, jit
from ncc.nki.hooks import install
from ncc.nki.running import stage_of
from ncc.target import Target

if TYPE_CHECKING:
    from ncc.stages import Stage

PROGRAM = re.compile(r"(?P<file>.+\.py):(?P<name>[A-Za-z_][\w.]*)(\[(?P<grid>\d[\d, ]*)\])?")
ARRAY = re.compile(r"\b([a-z]\w*)\[\s*((?:\d+\s*,?\s*)*)\]")
STDLIB = Path(os.__file__).parent
HOW = "an array is dtype[sizes], as bf16[128,512]; other values are written as in Python"


def is_kernel(program: str) -> bool:
    """Whether a program is named as `file.py:name`."""
    return PROGRAM.fullmatch(program) is not None


def kernel_stage(
    program: str,
    target: Target,
    given: Mapping[str, Any] | Sequence[str] = (),
    *,
    lnc: int = 1,
    form: str = "",
) -> Stage:
    """The first stage of a kernel: its Python has run, and one call of it is the program.

    `given` has a value for each parameter that needs one: as the text of `--arg`, or as it is.
    `form` is how its body travels into BIR; the kernel's own option if empty.
    """
    found = PROGRAM.fullmatch(program)
    if found is None:
        raise UsageError("NCC002", f"cannot read {program!r}, expected FILE.py:NAME")
    path = Path(found["file"])
    files.read(path)
    words: dict[str, Any] = {}
    try:
        module = imported(path)
        kernel = launched(found, module)
        if lnc > 1 and not kernel.grid:
            kernel = kernel[lnc]
        words = {name: value_of(text, module) for name, text in pairs(given)}
        made = kernel.specialisation(bind(kernel.func, (), words, target), target)
    except NccError:
        raise
    except (Exception, SystemExit) as fault:
        raise own_fault(fault, path, words) from fault
    return stage_of(made, form)


class Fresh(SourceFileLoader):
    """A file compiled anew, no bytecode kept: that goes by the second of a change and the length,
    and a kernel may be edited faster."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def imported(path: Path) -> ModuleType:
    """The module of a file, by its dotted name where it lies in a package."""
    install()
    whole = path.resolve()
    parts, folder = [whole.stem], whole.parent
    while (folder / "__init__.py").exists():
        parts.insert(0, folder.name)
        folder = folder.parent
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    if len(parts) > 1:
        return import_module(".".join(parts))
    name = f"ncc_program_{whole.stem}"
    spec = spec_from_file_location(name, whole, loader=Fresh(name, str(whole)))
    if spec is None or spec.loader is None:
        raise UsageError("NCC003", f"{path.name} cannot be imported")
    module = module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up there
    spec.loader.exec_module(module)
    return module


def launched(program: re.Match[str], module: ModuleType) -> JitKernel:
    """The kernel that a match of PROGRAM names in its module, with the grid that it writes."""
    kernel = named(module, program["name"], Path(program["file"]).name)
    if not program["grid"]:
        return kernel
    return kernel[tuple(int(n) for n in program["grid"].split(",") if n.strip())]


def named(module: ModuleType, name: str, file: str) -> JitKernel:
    """The kernel of that name; a plain function becomes one. NCC001 for what is none."""
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, JitKernel):
        return found
    if callable(found) and not isinstance(found, type):
        if any(of_old(value) for value in vars(module).values()):
            from ncc.nki.old import jit as old_jit

            return old_jit(found)
        return jit(found)
    kernels = sorted(k for k, v in vars(module).items() if isinstance(v, JitKernel))
    hint = nearest(name, kernels) or (f"it has {listed(kernels)}" if kernels else "")
    said = f"{name} is no kernel in {file}" if found is not None else f"{file} has no {name}"
    raise UsageError("NCC001", said, hint=hint)


def of_old(value: Any) -> bool:
    """Whether a name of a module stands for something of the older API."""
    home = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
    return str(home).startswith("ncc.nki.old")


def pairs(given: Mapping[str, Any] | Sequence[str]) -> list[tuple[str, Any]]:
    """NAME=VALUE, split; NCC002 for text without `=`."""
    if isinstance(given, Mapping):
        return list(given.items())
    found: list[tuple[str, Any]] = []
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.strip().isidentifier():
            raise UsageError("NCC002", f"cannot read --arg {text!r}, expected NAME=VALUE", hint=HOW)
        if name.strip() in dict(found):
            raise UsageError("NCC002", f"--arg gives {name.strip()} twice", hint="once is enough")
        found.append((name.strip(), value.strip()))
    return found


def value_of(text: Any, module: ModuleType) -> Any:
    """The value that the text of an argument means: Python with the kernel file's names, where
    `dtype[sizes]` is an array. A single word that names nothing is that word."""
    if not isinstance(text, str):
        return text
    arrays: list[ArraySpec] = []
    unknown: list[str] = []

    def array(found: re.Match[str]) -> str:
        dtype = dtypes.found(found[1])
        if dtype is None:
            unknown.append(found[1])
            return found[0]
        sizes = tuple(int(n) for n in found[2].replace(" ", "").split(",") if n)
        arrays.append(ArraySpec("", dtype, sizes))
        return f"_arrays[{len(arrays) - 1}]"

    code = ARRAY.sub(array, text)
    scope = {**dtypes.ALL, **vars(module), "_arrays": arrays}
    if code.isidentifier() and code not in scope and dtypes.found(code) is not None:
        return dtypes.dtype_of(code)
    try:
        return eval(code, scope)
    except (NameError, SyntaxError) as fault:
        if re.fullmatch(r"[\w./~-]+", text) and "[" not in text:
            return text
        if word := next((w for w in unknown if w not in scope), ""):
            hint = nearest(word, dtypes.NAMES) or f"there are {listed(dtypes.ALL)}"
            raise UsageError("NCC002", f"{word} of {text} is no element type", hint=hint) from None
        said = f"cannot read the argument {text!r}: {getattr(fault, 'msg', fault)}"
        raise UsageError("NCC002", said, hint=HOW) from None
    except Exception as fault:
        raise UsageError("NCC002", f"the argument {text!r} fails: {fault}", hint=HOW) from None


def own_fault(fault: BaseException, path: Path, words: Mapping[str, Any]) -> NccError:
    """What the kernel's own Python raised, as one sentence: its text, file and line.

    Where it took one of `words`, the arguments, for a tensor, how an array is written.
    """
    kind, hint = type(fault).__name__, ""
    if isinstance(fault, AttributeError):
        kind_of = type(fault.obj)
        same = (n for n, v in words.items() if type(v) is kind_of and v == fault.obj)
        name = next(same, "")
        hint = f"if {name} is an array: --arg {name}=bf16[128,512]" if name else ""
    if isinstance(fault, SyntaxError):
        place, text = Place(Path(fault.filename or path.name).name, fault.lineno or 0), fault.msg
    else:
        frames = [f for f in traceback.extract_tb(fault.__traceback__) if is_users(f.filename)]
        last = frames[-1] if frames else None
        place = Place(Path(last.filename).name, last.lineno or 0) if last else Place(path.name)
        text = str(fault)
        if not text and last and isinstance(fault, AssertionError):
            text = last.line or ""
    return NccError("NCC308", f"{kind}: {' '.join(text.split())}" if text else kind, place, hint)


def is_users(file: str) -> bool:
    """Whether a frame's file is the user's: not ncc's own, not Python's, not an installed one."""
    own = Path(__file__).parents[1]
    if file.startswith("<frozen"):
        return False
    path = Path(file)
    if path.is_relative_to(own):
        return path.is_relative_to(own / "kernels")
    return not path.is_relative_to(STDLIB) and "site-packages" not in path.parts
