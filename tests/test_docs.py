"""What the documents show is true: commands run, listings are fresh, numbers and names are real.

Every document has a folder of its own with `examples/` in it. The listings of a document are made
anew by `book/build.py`; its other commands (indented lines and inline code that begin with `ncc`)
run there in order and exit with 0. Documents run side by side, so the whole file takes as long as
the longest of them.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from ncc import passes
from ncc.cli import COMMANDS

ROOT = Path(__file__).resolve().parent.parent
CHAPTERS = sorted((ROOT / "book").glob("*.md"))
LABS = sorted((ROOT / "book" / "labs").glob("*/README.md"))
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *CHAPTERS, *LABS]
FENCE = re.compile(r"^```.*?^```\n", re.S | re.M)
COMMAND = re.compile(r"^    (ncc .*)$|`(ncc [^`]*)`", re.M)
# A word that stands for something of the reader's: `ncc explain NAME`, `ncc lab start NAME`.
PLACEHOLDER = re.compile(r"\b(NAME|CODE|PASS|FILE|DIR|PROGRAM|COMMAND)\b")

# Inline code that only names a command; its help runs instead.
MENTIONS = {f"ncc {name}" for name, _, _ in COMMANDS} - {"ncc passes", "ncc doctor"}
MENTIONS |= {"ncc neff list", "ncc neff extract", "ncc neff verify", "ncc lab check"}

# What the snippet of the README writes, as JAX 0.10 prints it.
JAX = """\
HloModule jit_f, entry_computation_layout={(bf16[64,300]{1,0}, bf16[300,40]{1,0}, bf16[40]{0})->bf16[64,40]{1,0}}

relu.1 {
  Arg_0.1 = bf16[64,40]{1,0} parameter(0)
  constant.1 = bf16[] constant(0)
  max.2 = bf16[64,40]{1,0} broadcast(constant.1), dimensions={}
  ROOT max.3 = bf16[64,40]{1,0} maximum(Arg_0.1, max.2)
}

ENTRY main.2 {
  x.1 = bf16[64,300]{1,0} parameter(0)
  w.1 = bf16[300,40]{1,0} parameter(1)
  dot_general.1 = bf16[64,40]{1,0} dot(x.1, w.1), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  b.1 = bf16[40]{0} parameter(2)
  broadcast_in_dim.1 = bf16[1,40]{1,0} reshape(b.1)
  add.4 = bf16[1,40]{1,0} broadcast(broadcast_in_dim.1), dimensions={0,1}
  add.5 = bf16[40]{0} reshape(add.4)
  add.6 = bf16[64,40]{1,0} broadcast(add.5), dimensions={1}
  add.7 = bf16[64,40]{1,0} add(dot_general.1, add.6)
  ROOT jit_relu_.1 = bf16[64,40]{1,0} call(add.7), to_apply=relu.1
}
"""


def builder():
    """`book/build.py` as a module."""
    spec = importlib.util.spec_from_file_location("build", ROOT / "book" / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


BUILD = builder()
EACH = pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
LISTED = pytest.mark.parametrize("path", BUILD.documents(), ids=lambda p: p.name)


def commands(text: str) -> list[str]:
    """The commands of a document outside its listings, in order, each once."""
    found = [indented or inline for indented, inline in COMMAND.findall(FENCE.sub("", text))]
    found = [re.sub(r"\s+#.*", "", command.strip()) for command in found]
    found = [f"{c} --help" if c in MENTIONS else c for c in found]
    return [c for c in dict.fromkeys(found) if not PLACEHOLDER.search(c)]


def source(name: str) -> Path:
    """The file of the pass called `name`."""
    entry = passes.called()[name]
    return ROOT / "ncc" / "passes" / f"{entry.replace('.', '/')}.py"


def solve(folder: Path) -> None:
    """What a student does between `ncc lab start` and `ncc lab check`: here, ncc's own passes."""
    for skeleton in folder.glob("*.py"):
        shutil.copy(source(skeleton.stem.replace("_", "-")), skeleton)


def run_all(path: Path, folder: Path) -> list[str]:
    """Run a document's commands; what went wrong, one entry a command."""
    shutil.copytree(ROOT / "examples", folder / "examples")
    (folder / "f.hlo").write_text(JAX)
    shutil.copy(source("cut-free"), folder / "mine.py")
    wrong = []
    for command in commands(path.read_text()):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=folder,
            env=BUILD.environment(),
            capture_output=True,
            text=True,
            timeout=60,
        )
        if done.returncode:
            wrong.append(f"`{command}` exits with {done.returncode}: {done.stderr[-300:]}")
        if found := re.match(r"ncc lab start (\S+)", command):
            solve(folder / found[1])
    return wrong


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory) -> dict[tuple[str, Path], Future]:
    """Everything that runs, begun at once: listings made anew, and the other commands."""
    base = tmp_path_factory.mktemp("docs")
    with ThreadPoolExecutor(4) as pool:
        begun = {("listings", path): pool.submit(BUILD.filled, path) for path in BUILD.documents()}
        for number, path in enumerate(DOCUMENTS):
            folder = base / str(number)
            folder.mkdir()
            begun["commands", path] = pool.submit(run_all, path, folder)
    return begun


@LISTED
def test_listings_are_fresh(path, outcomes):
    now = outcomes["listings", path].result()
    assert now == path.read_text(), (
        f"run `python book/build.py`:\n{BUILD.difference(path, now)[:2000]}"
    )


@EACH
def test_commands_run(path, outcomes):
    assert not outcomes["commands", path].result()


def test_commands_are_found():
    """The README's are many; a search that finds nothing would pass everything."""
    assert len(commands((ROOT / "README.md").read_text())) > 12
    text = "    ncc a b   # why\n\nsee `ncc c d`, `ncc explain NAME`, `ncc c d`, `ncc run`\n"
    assert commands(text) == ["ncc a b", "ncc c d", "ncc run --help"]
    assert commands("```console\n$ ncc a\n    ncc b\n```\n") == []


def test_a_failing_command_is_told(tmp_path):
    (tmp_path / "bad.md").write_text("# bad\n\n    ncc explain nothing-is-called-so\n")
    assert "exits with 2" in run_all(tmp_path / "bad.md", tmp_path / "run")[0]


def test_a_listing_that_fails_stops_the_build(tmp_path):
    for command in ("ncc run nothing.neff", "ncc run nothing.neff | cat"):
        (tmp_path / "bad.md").write_text(f"```console\n$ {command}\n```\n")
        with pytest.raises(BUILD.Failed):
            BUILD.filled(tmp_path / "bad.md")


@EACH
def test_listings_fit_the_page(path):
    """In the book a listing has at most 100 columns, but for a word that is longer."""
    if ROOT / "book" not in path.parents:
        return
    for block in FENCE.findall(path.read_text()):
        long = [line for line in block.splitlines() if len(line) > BUILD.WIDTH]
        assert not [line for line in long if line.startswith("$ ") or " " in line.strip()]


@EACH
def test_names_exist(path):
    """Links, files in inline code, and targets of make."""
    text = FENCE.sub("", path.read_text())
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (path.parent / link).exists(), f"{path.name} links to {link}"
    for word in re.findall(r"`((?:ncc|book|tests|examples|bench)/[^`\s<>*]*)`", text):
        for each in braces(word):
            known = (ROOT / each).exists() or (ROOT / f"{each}.py").exists()
            assert known, f"{path.name} names {each}"
    targets = re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.M)
    for target in re.findall(r"(?:^    |`)make ([a-z]+)", text, re.M):
        assert target in targets, f"{path.name} names make {target}"


def braces(word: str) -> list[str]:
    """`a/{b,c}/d` as `a/b/d` and `a/c/d`."""
    found = re.search(r"\{([^}]*)\}", word)
    if not found:
        return [word]
    before, after = word[: found.start()], word[found.end() :]
    return [x for part in found[1].split(",") for x in braces(before + part + after)]


def test_numbers_of_the_readme_are_real():
    text = (ROOT / "README.md").read_text()
    count = len(passes.PIPELINE)
    assert re.findall(r"there are (\d+) in all", text) == [str(count)]
    last = [line for line in text.splitlines() if re.match(r" *\d+  neff +pack ", line)]
    assert last and last[0].split()[0] == str(count - len(passes.ASKED))
    assert "the largest difference from numpy is 0." in text


def test_python_versions_agree():
    wanted = re.search(
        r'requires-python = ">=3\.(\d+),<3\.(\d+)"', (ROOT / "pyproject.toml").read_text()
    )
    said = f"Python 3.{wanted[1]} to 3.{int(wanted[2]) - 1}"
    for name in ("README.md", "CONTRIBUTING.md"):
        assert said in (ROOT / name).read_text(), f"{name} does not say {said}"


def test_every_command_of_ncc_is_in_a_document():
    text = "\n".join(path.read_text() for path in DOCUMENTS)
    missing = [name for name, _, _ in COMMANDS if f"ncc {name}" not in text]
    assert not missing, f"no document shows ncc {', ncc '.join(missing)}"


# Words that say where a text was written, or that it is not finished. In halves, so that this file
# has none of them.
HALVES = {
    "exact": (
        ("/ho", r"me/\w"),
        ("/Use", r"rs/\w"),
        (r"(?<![\w.])/ro", r"ot\b"),
        (r"(?<![\w.])/wo", r"rk/"),
        (r"(?<![\w.])/tm", r"p/"),
        (r"\bTO", r"DO\b"),
        (r"\bFIX", r"ME\b"),
        (r"\bXX", r"X\b"),
        ("# no", r"qa\b"),
        ("type: ig", "nore"),
        ("raise Not", r"ImplementedError\b"),
    ),
    "any case": (
        (r"\bses", r"sions?\b"),
        (r"\bage", r"nts?\b"),
        (r"\bcoor", r"dinator\b"),
        (r"\bchat", r"bot\b"),
        (r"\blanguage mo", r"del\b"),
    ),
}
UNWANTED = [
    re.compile("|".join(first + second for first, second in HALVES["exact"])),
    re.compile("|".join(first + second for first, second in HALVES["any case"]), re.I),
]
# The line that stands in a lab's skeleton is there on purpose, and a test writes it.
EXCUSED = {
    (name, "raise Not" + "ImplementedError") for name in ("ncc/labs.py", "tests/test_lab.py")
}
TEXTS = {".py", ".md", ".hlo", ".txt", ".toml", ".lark", ".json", ".s", ".cfg", ""}
SKIPPED = {"demo", "dist", "build", "_build", "__pycache__"}  # and what is hidden


def texts() -> list[Path]:
    """The text files of the repository."""
    found = []
    for folder, inside, names in os.walk(ROOT):
        inside[:] = sorted(x for x in inside if x == ".ci" or not (x[0] == "." or x in SKIPPED))
        found += [Path(folder, name) for name in sorted(names) if Path(name).suffix in TEXTS]
    return found


def test_no_word_that_does_not_belong():
    told = []
    for path in texts():
        name = path.relative_to(ROOT).as_posix()
        text = path.read_text(errors="replace")
        for pattern in UNWANTED:
            for found in pattern.finditer(text):
                if (name, found[0]) not in EXCUSED:
                    told.append(f"{name}:{text[: found.start()].count(chr(10)) + 1}: {found[0]}")
    assert not told, "\n".join(told[:20])


def test_the_search_for_words_works():
    assert len(texts()) > 100
    for text in ("a ses" + "sion of mine", "see /ho" + "me/me/x", "# TO" + "DO: all of it"):
        assert any(pattern.search(text) for pattern in UNWANTED)
    for text in ("magenta", "todo = plan()", "a possession", "examples/demo/x"):
        assert not any(pattern.search(text) for pattern in UNWANTED)
