"""Files: read whole, written whole or not at all, and what goes wrong said in one sentence."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from ncc.errors import UsageError


def read(path: str | Path) -> bytes:
    """All bytes of a file; UsageError NCC003 when there is none or it cannot be read."""
    try:
        return Path(path).read_bytes()
    except FileNotFoundError:
        raise UsageError("NCC003", f"there is no file {path}") from None
    except IsADirectoryError:
        raise UsageError("NCC003", f"{path} is a folder; name a file in it") from None
    except (OSError, ValueError) as fault:
        raise UsageError("NCC003", f"cannot read {path}: {reason(fault)}") from None


def writable(path: str | Path) -> Path:
    """The path of a file that can be written; asked before the work whose result goes there."""
    file = Path(path)
    try:
        if file.is_dir():
            raise UsageError("NCC003", f"{path} is a folder; name a file in it")
        if not file.parent.is_dir():
            said = f"{path} cannot be written: there is no folder {file.parent}"
            raise UsageError("NCC003", said)
        if not os.access(file if file.exists() else file.parent, os.W_OK):
            raise UsageError("NCC003", f"{path} cannot be written: permission denied")
    except (OSError, ValueError) as fault:
        raise UsageError("NCC003", f"cannot write {path}: {reason(fault)}") from None
    return file


def write(path: str | Path, data: bytes | str) -> Path:
    """Write a file under another name and rename it, so that it is there whole or not at all."""
    file = writable(path)
    raw = data.encode() if isinstance(data, str) else data
    try:
        if file.exists() and not file.is_file():
            file.write_bytes(raw)  # /dev/null and pipes: a rename would put a file in their place
        else:
            _renamed(file.resolve(), raw)
    except (OSError, ValueError) as fault:
        raise UsageError("NCC003", f"cannot write {path}: {reason(fault)}") from None
    return file


def _renamed(file: Path, raw: bytes) -> None:
    handle, name = tempfile.mkstemp(prefix=".ncc-", dir=file.parent)
    try:
        with os.fdopen(handle, "wb") as held:
            held.write(raw)
        mask = os.umask(0)
        os.umask(mask)
        Path(name).chmod(0o666 & ~mask)
        Path(name).replace(file)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def folder(path: str | Path) -> Path:
    """A folder that is there from now on; UsageError NCC003 when it cannot be made."""
    found = Path(path)
    try:
        found.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError("NCC003", f"{path} cannot be a folder: a file is in the way") from None
    except (OSError, ValueError) as fault:
        raise UsageError("NCC003", f"cannot make the folder {path}: {reason(fault)}") from None
    return found


def reason(fault: OSError | ValueError) -> str:
    """What the system said, in lower case and without the path."""
    said = getattr(fault, "strerror", None) or str(fault)
    return said[:1].lower() + said[1:]
