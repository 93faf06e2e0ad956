"""Fill in the listings of the book and of the README by running the commands that they show.

    python book/build.py            write every listing anew
    python book/build.py --check    say which listing is stale; exit status 1 if one is

A fenced block of kind `console` holds a command after `$ ` and, below it, what the command printed:
stderr first, then stdout. A command may go on in the next line after a backslash. In the book, a
printed line that is too long for the page goes on in the next one, further in. A `{code-block}`
with a `:caption:` is a file of that name, which the commands after it may use. Each document has
an empty folder of its own with `examples/` in it, and its commands run there in order. A command
that does not exit with 0, or in which ncc complains, fails the build. One that is meant to fail
says so by its shell: `ncc run bad.neff || echo "exit status $?"`.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

BOOK = Path(__file__).resolve().parent
ROOT = BOOK.parent
WIDTH = 100
BLOCK = re.compile(
    r"^```console\n\$ (?P<command>(?:[^\n]*\\\n)*[^\n]*)\n(?P<printed>.*?)^```$"
    r"|^```\{code-block\}[^\n]*\n:caption: (?P<file>\S+)\n\n(?P<text>.*?)^```$",
    re.S | re.M,
)
# What `make demo` runs once it has set up.
MAKE = 'make() { test "$1" = demo && python examples/demo.py demo; }\n'


class Failed(Exception):
    """A command of a document does not do what it should."""


def documents() -> list[Path]:
    return [ROOT / "README.md", *sorted(BOOK.glob("*.md"))]


def environment() -> dict[str, str]:
    """Commands find the `ncc` and `python` that run this script, and print without colour."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "COLUMNS": str(WIDTH), "NO_COLOR": "1", "LC_ALL": "C"}


def run(command: str, folder: Path) -> str:
    """What a command prints; Failed when it does not exit with 0, or a part of its pipe did not."""
    done = subprocess.run(
        ["bash", "-c", MAKE + command],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
    )
    lines = (done.stderr + done.stdout).splitlines()
    printed = "".join(f"{line.rstrip()}\n" for line in lines)
    complaint = printed.startswith("ncc: ") or "\nncc: " in printed
    if done.returncode or (complaint and "exit status" not in command):
        raise Failed(f"`{command}` exits with {done.returncode}:\n{printed}")
    return printed


def folded(printed: str) -> str:
    """Lines of at most WIDTH columns, broken at blanks."""
    return "".join(f"{short}\n" for line in printed.splitlines() for short in fold(line))


def fold(line: str) -> list[str]:
    if len(line) <= WIDTH:
        return [line]
    deeper = " " * (len(line) - len(line.lstrip()) + 4)
    return textwrap.wrap(
        line,
        WIDTH,
        subsequent_indent=deeper,
        break_long_words=False,
        break_on_hyphens=False,
        expand_tabs=False,
        replace_whitespace=False,
    )


def filled(path: Path) -> str:
    """A document with every listing made anew."""
    layout = folded if path.parent == BOOK else str
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shutil.copytree(ROOT / "examples", folder / "examples")

        def block(found: re.Match[str]) -> str:
            if found["file"]:
                (folder / found["file"]).write_text(found["text"])
                return found[0]
            printed = layout(run(found["command"], folder))
            return f"```console\n$ {found['command']}\n{printed}```"

        try:
            return BLOCK.sub(block, path.read_text())
        except Failed as fault:
            raise Failed(f"{path.name}: {fault}") from None


def difference(path: Path, now: str) -> str:
    was = path.read_text().splitlines()
    lines = difflib.unified_diff(was, now.splitlines(), path.name, "now", "", "", 1, "")
    return "\n".join(lines)


def main(check: bool) -> int:
    paths = [path for path in documents() if BLOCK.search(path.read_text())]
    stale = 0
    with ThreadPoolExecutor() as pool:
        for path, now in zip(paths, pool.map(filled, paths), strict=True):
            if now == path.read_text():
                continue
            stale += 1
            if check:
                print(difference(path, now))
            else:
                path.write_text(now)
                print(f"{path.name}: listings written")
    return int(check and stale > 0)


if __name__ == "__main__":
    try:
        sys.exit(main("--check" in sys.argv[1:]))
    except Failed as fault:
        sys.exit(str(fault))
