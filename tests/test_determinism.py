"""Two builds are bit-identical: in other folders, with other hash seeds, on other days."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
JOBS = (("matmul.hlo", "trn2"), ("mlp.hlo", "trn2"), ("batched.hlo", "trn1"))

# writes every stage's text and drawing, the three forms of the NEFF and its listing
BUILD = """
import sys, time
day = float(sys.argv[1])
now = time.time
time.time = lambda: now() + day * 86400
time.time_ns = lambda: int(time.time() * 1e9)

from pathlib import Path
import ncc
from ncc import pack
from ncc.pack.listing import disasm
from ncc.view.render import graph

class Keep:
    def __init__(self, name):
        self.name, self.number = name, 0
    def start(self, stage):
        self.keep("input", stage, None)
    def step(self, step):
        self.keep(step.name, step.after, step.before)
    def keep(self, name, stage, before):
        base = f"{self.name}-{self.number:02}-{name}"
        Path(base + ".txt").write_text(stage.text())
        Path(base + ".dot").write_text(graph(stage, before))
        self.number += 1

for word in sys.argv[2:]:
    file, target = word.split("@")
    name = file.removesuffix(".hlo")
    last = ncc.compile(file, target=target, observers=[Keep(name)]).module
    for form, options in {"": (), "-bare": (False,), "-headed": (True, True)}.items():
        pack.write(last, f"{name}{form}.neff", *options)
    Path(name + ".s").write_text(disasm(Path(name + ".neff").read_bytes())[0])
"""


def started(folder: Path, day: int, **env: str) -> subprocess.Popen:
    folder.mkdir(parents=True)
    for file, _ in JOBS:
        (folder / file).write_bytes((EXAMPLES / file).read_bytes())
    words = [f"{file}@{target}" for file, target in JOBS]
    kept = {k: v for k, v in os.environ.items() if k not in ("TZ", "LANG", "LC_ALL")}
    return subprocess.Popen(
        [sys.executable, "-c", BUILD, str(day), *words],
        cwd=folder,
        env={**kept, **env},
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.fixture(scope="module")
def builds(tmp_path_factory):
    """{name: bytes} of each build."""
    root = tmp_path_factory.mktemp("builds")
    running = {
        root / "here": started(root / "here", 0, PYTHONHASHSEED="0", TZ="UTC"),
        root / "a b" / "there": started(
            root / "a b" / "there",
            400,
            PYTHONHASHSEED="4242",
            TZ="Asia/Tokyo",
            LC_ALL="C",
            SOURCE_DATE_EPOCH="1",
            USER="somebody",
            OPENBLAS_NUM_THREADS="2",
        ),
        root / "else": started(root / "else", -3, PYTHONHASHSEED="random", PYTHONOPTIMIZE="1"),
    }
    for process in running.values():
        _, said = process.communicate(timeout=120)
        assert process.returncode == 0, said
    return [
        {path.name: path.read_bytes() for path in sorted(folder.iterdir())} for folder in running
    ]


def test_builds_are_bit_identical(builds):
    first, *others = builds
    assert len(first) > len(JOBS) * 2 * 50
    for other in others:
        assert list(other) == list(first)
        different = [name for name, data in other.items() if data != first[name]]
        assert not different, f"{different[0]} is not the same in two builds"


def test_nothing_tells_where_or_when_it_was_built(builds):
    """No folder, no address and no date stands in what is printed or packed."""
    found, *_ = builds
    for name, data in found.items():
        if not name.endswith(".neff"):
            text = data.decode()
            assert "/builds" not in text and not re.search(r"\b0x[0-9a-f]{9,}\b|\b20[2-9]\d-", text)
    from ncc import pack

    for member in pack.read(found["mlp.neff"]).members:
        assert b"builds" not in member.data and b"mlp.py" not in member.data, member.path
