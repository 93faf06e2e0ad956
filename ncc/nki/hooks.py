"""`ncc.nki.install()`: from here on `import nki` and `import neuronxcc.nki` find ncc's API.

Both names are taken even where a real package is installed; nothing on disk changes, and without
this call ncc shadows nothing. `neuronxcc.nki` is the older API.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys
from collections.abc import Sequence
from types import ModuleType

ROOTS = ("nki", "neuronxcc", "nki_cpu_simulator")
NEW, OLD = "ncc.nki", "ncc.nki.old"


def ours(name: str) -> str:
    """The module of ncc that stands behind an imported name; empty when there is none."""
    root, _, rest = name.partition(".")
    if root == "nki":
        return _existing(f"{NEW}.{rest}" if rest else NEW)
    if root == "nki_cpu_simulator":
        return "" if rest else f"{NEW}.simulator"
    if rest.partition(".")[0] == "starfish":
        return _existing(f"{OLD}.{rest}")
    if rest.partition(".")[0] != "nki":
        return ""
    rest = rest.partition(".")[2]
    old, new = (f"{base}.{rest}" if rest else base for base in (OLD, NEW))
    return _existing(old) or (_existing(new) if rest else "")


def _existing(name: str) -> str:
    try:
        return name if importlib.util.find_spec(name) is not None else ""
    except ModuleNotFoundError:
        return ""


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Gives ncc's own module under the imported name, so that both names are one module."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in ROOTS:
            return None
        if fullname == "neuronxcc" or ours(fullname):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        said = f"ncc has no module {fullname!r}"
        raise ModuleNotFoundError(said, name=fullname)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType | None:
        return None

    def exec_module(self, module: ModuleType) -> None:
        name = module.__name__
        if name == "neuronxcc":
            module.__doc__ = "The package of the older API; ncc has its `nki`."
            return
        sys.modules[name] = importlib.import_module(ours(name))


FINDER = Finder()


def install() -> None:
    """Make `import nki` and `import neuronxcc.nki` find ncc's API; once is enough."""
    if FINDER in sys.meta_path:
        return
    for name in list(sys.modules):
        if name.partition(".")[0] in ROOTS:
            del sys.modules[name]
    sys.meta_path.insert(0, FINDER)
    sys.modules["nki"] = importlib.import_module(NEW)


def uninstall() -> None:
    """Give the names back."""
    if FINDER in sys.meta_path:
        sys.meta_path.remove(FINDER)
        for name in list(sys.modules):
            if name.partition(".")[0] in ROOTS:
                del sys.modules[name]
