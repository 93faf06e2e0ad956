"""Fill in the book's listings by running the commands that they show.

In a chapter a fenced block of kind `console` holds a command after `$ ` and what it printed. This
script runs every command from the repository's root and writes the output below it;
with `--check` it only tells which listing is no longer what the command prints (exit status 1).
"""

from __future__ import annotations

import difflib
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

BOOK = Path(__file__).parent
ROOT = BOOK.parent
BLOCK = re.compile(r"(```console\n\$ )([^\n]+)\n(.*?)(```\n)", re.S)


def output(command: str, folder: str) -> str:
    """What a command prints on stdout, then on stderr, in a folder that holds `examples/`."""
    env = {
        **os.environ,
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
        "COLUMNS": "100",
        "NO_COLOR": "1",
    }
    done = subprocess.run(
        ["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True
    )
    lines = (done.stdout + done.stderr).splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def filled(text: str) -> str:
    """A chapter with every listing made anew, in one folder for the whole chapter."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "examples").symlink_to(ROOT / "examples")
        return BLOCK.sub(lambda m: f"{m[1]}{m[2]}\n{output(m[2], folder)}{m[4]}", text)


def main(check: bool) -> int:
    stale = 0
    for chapter in sorted(BOOK.glob("*.md")):
        old = chapter.read_text()
        new = filled(old)
        if new == old:
            continue
        stale += 1
        if check:
            lines = difflib.unified_diff(
                old.splitlines(), new.splitlines(), chapter.name, "now", "", "", 1, ""
            )
            print("\n".join(lines))
        else:
            chapter.write_text(new)
            print(f"{chapter.name}: listings written")
    return int(check and stale > 0)


if __name__ == "__main__":
    sys.exit(main("--check" in sys.argv))
