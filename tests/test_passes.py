"""Asked of every pass: its docstring is true, its page is whole, its place is justified."""

from __future__ import annotations

import pytest

from ncc import passes
from ncc.commands.explain import example, page
from ncc.passes.base import section
from ncc.stages import facts_of, level

EACH = pytest.mark.parametrize("entry", list(dict.fromkeys(passes.PIPELINE)))


@EACH
def test_the_docstring_is_true(entry):
    one = passes.load(entry)
    before = example(one)
    after = one.apply(before.module, before.target)
    assert level(one.target).get("show")(after) == section(one.doc, "After").split("# ncc ")[0] or (
        level(one.target).get("show")(after) == without_header(section(one.doc, "After"))
    )


def without_header(text):
    return text.split("\n", 1)[1] if text.startswith("# ncc ") else text


@EACH
def test_before_is_a_program_and_prints_as_written(entry):
    one = passes.load(entry)
    text = without_header(section(one.doc, "Before"))
    parsed = level(one.source).get("parse")(text, one.name, 1)
    assert level(one.source).get("show")(parsed) == text


@EACH
def test_the_page_is_whole(entry):
    one = passes.load(entry)
    assert one.purpose.endswith("."), "the purpose is a sentence"
    assert "\nWhy:" in one.doc
    assert one.name in page(one.name, one)
    assert one.job in ("", "F0", "F1", "F2", "W0")
    assert one.sure in ("confirmed", "inferred", "ours")


@EACH
def test_facts_exist(entry):
    one = passes.load(entry)
    here = {law.printed for law in facts_of(one.source)}
    there = {law.printed for law in facts_of(one.target)}
    assert set(one.needs) <= here
    assert set(one.gives) <= there
    assert set(one.ends) <= here | there


def test_the_order_holds():
    """Every pass finds its level, its facts, and the passes that it wants before it."""
    arriving, facts, seen = "hlo", set(), set()
    for name, entry in passes.called().items():
        one = passes.load(entry)
        assert one.source == arriving, f"{name} reads {one.source}, but {arriving} arrives"
        assert set(one.needs) <= facts, f"{name} needs {set(one.needs) - facts}"
        for earlier, reason in one.after.items():
            assert earlier in seen, f"{name} must come after {earlier}: {reason}"
            assert reason
        known = {law.printed for law in facts_of(one.target)}
        facts = ((facts - set(one.ends)) | set(one.gives)) & known
        arriving = one.target
        seen |= {name, one.name}
    assert arriving == "neff"


def test_no_pass_imports_a_pass():
    import ast
    from pathlib import Path

    import ncc

    for path in Path(ncc.__file__).parent.glob("passes/*/*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [a.name for a in node.names] if isinstance(node, ast.Import) else []
            wrong = [n for n in names if n.startswith("ncc.passes") and n != "ncc.passes.base"]
            assert not wrong, f"{path.name} imports {wrong[0]}"


ALLOWED = {
    "ir": {"ir"},
    "passes": {"passes", "ir"},
    "interp": {"interp", "ir"},
    "encode": {"encode", "ir"},
    "pack": {"pack", "encode", "ir"},
    "front": {"front", "ir"},
    "sim": {"sim", "encode", "pack", "ir"},
}
LEAVES = {"blas", "errors", "files", "target", "rules", "numerics", "stages"}


def test_imports_point_one_way():
    import ast
    from pathlib import Path

    import ncc

    root = Path(ncc.__file__).parent
    for package, allowed in ALLOWED.items():
        for path in (root / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("ncc."):
                    part = node.module.split(".")[1]
                    extra = {"encode", "pack"} if path.parent.name == "output" else set()
                    leaves = LEAVES - ({"stages"} if package == "ir" else set())
                    part = "numerics" if part.startswith("numerics_") else part
                    assert part in allowed | leaves | extra, f"{path} imports {node.module}"
