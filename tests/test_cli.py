"""Every command and option: what it prints, what it writes, and its exit status."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from cli_programs import SMALL, Kept, command

import ncc as package
from ncc import pack, passes
from ncc.commands.explain import JOBS
from ncc.stages import LEVELS, read_stage

NAMES = [name for name in passes.called() if name not in passes.ASKED]


@pytest.fixture
def ncc(tmp_path, monkeypatch, capsys):
    """The command line in a folder that holds small.hlo."""
    monkeypatch.chdir(tmp_path)
    Path("small.hlo").write_text(SMALL)
    return lambda *words: command(capsys, *words)


@pytest.fixture(scope="module")
def stages(tmp_path_factory):
    """Every stage of the small program by its pass."""
    path = tmp_path_factory.mktemp("stages") / "small.hlo"
    path.write_text(SMALL)
    kept = Kept()
    package.compile(path, observers=[kept])
    return kept.stages


def headers(text):
    return [line.split()[4] for line in text.splitlines() if line.startswith("# ncc ")]


# ---- compile -------------------------------------------------------------------------------------


def test_compile_writes_the_neff_here_and_prints_nothing(ncc, stages):
    said = ncc("compile", "small.hlo")
    size = Path("small.neff").stat().st_size
    assert said == (0, "", f"wrote small.neff ({size} bytes)\n")
    assert pack.read("small.neff") == stages["pack"].module
    assert sorted(p.name for p in Path().iterdir()) == ["small.hlo", "small.neff"]


def test_the_forms_of_the_container(ncc):
    Path("out").mkdir()
    for options, start in (
        ((), b"\x1f\x8b"),
        (("--uncompressed",), b"def.json"),
        (("--header",), b"\2\0\0\0"),
    ):
        assert ncc("compile", "small.hlo", "-o", "out/x.neff", *options).status == 0
        raw = Path("out/x.neff").read_bytes()
        assert raw.startswith(start) or raw[257:262] == b"ustar"
        assert ncc("run", "out/x.neff").out.startswith("out float32 8x3\n")
    assert not Path("small.neff").exists()


def test_the_null_device_stays_one(ncc):
    assert ncc("compile", "small.hlo", "-o", "/dev/null").status == 0
    assert Path("/dev/null").is_char_device()


def test_print_after_takes_several_passes_and_any_spelling(ncc, stages):
    said = ncc("compile", "small.hlo", "--print-after", "flow_deps.2,cut-free")
    assert said.out == stages["cut-free"].text() + stages["flow-deps.2"].text()
    assert Path("small.neff").exists()


@pytest.mark.parametrize("name", ["encode", "pack"])
def test_bytes_are_printed_too(ncc, stages, name):
    assert ncc("compile", "small.hlo", "--print-after", name).out == stages[name].text()


def test_print_before_is_what_the_pass_before_gave(ncc, stages):
    said = ncc("compile", "small.hlo", "--print-before", "hlo-verify,unroll")
    assert said.out == stages["input"].text() + stages["lower-ac"].text()


def test_print_after_all(ncc, stages):
    out = ncc("compile", "small.hlo", "--print-after-all").out
    assert out == "".join(stage.text() for stage in stages.values())
    assert headers(out) == [f"after={name}" for name in ("input", *NAMES)]


def test_print_changed(ncc):
    out = ncc("compile", "small.hlo", "--print-changed").out
    assert "# hlo-verify: no change\n" in out
    assert "# hlo-to-mhlo: hlo became mhlo\n# ncc mhlo " in out
    assert "--- alloc-psum\n+++ alloc-sbuf\n" in out
    assert "-# ncc bir target=trn2 after=alloc-psum" in out


def test_stop_after_prints_the_stage_if_nothing_else_is_asked(ncc, stages):
    assert ncc("compile", "small.hlo", "--stop-after", "unroll").out == stages["unroll"].text()
    assert ncc("compile", "small.hlo", "--stop-after", "unroll", "--stats").out.startswith("pass ")
    said = ncc("compile", "small.hlo", "--stop-after", "unroll", "-o", "u.txt")
    assert said.out == "" and Path("u.txt").read_text() == stages["unroll"].text()
    assert not Path("small.neff").exists()


def test_a_printed_stage_goes_on(ncc, stages):
    Path("u.txt").write_text(stages["unroll"].text())
    ncc("compile", "small.hlo")
    assert ncc("compile", "u.txt", "--start-after", "unroll").status == 0
    assert Path("u.neff").read_bytes() == Path("small.neff").read_bytes()
    out = ncc("compile", "u.txt", "--print-after-all", "--stop-after", "bir-dce").out
    between = NAMES[NAMES.index("unroll") : NAMES.index("bir-dce") + 1]
    assert headers(out) == [f"after={name}" for name in between]


def test_stages_drawn(ncc):
    said = ncc("compile", "small.hlo", "--graph-after", "unroll,pack", "--stop-after", "pack")
    number = NAMES.index("unroll") + 1
    files = [f"small-graphs/{number}-unroll.svg", f"small-graphs/{len(NAMES)}-pack.svg"]
    assert [line.split()[1] for line in said.err.splitlines()] == [*files, "small.neff"]
    assert all("<svg" in Path(file).read_text() for file in files)
    said = ncc("compile", "small.hlo", "--graph-after-all", "--stop-after", "hlo-to-mhlo")
    assert len(list(Path("small-graphs").iterdir())) == 2 + 8


def test_dump(ncc, stages):
    assert ncc("compile", "small.hlo", "--dump", "out/d").out == ""
    rows = json.loads(Path("out/d/manifest.json").read_text())
    assert [row["pass"] for row in rows] == ["input", *NAMES]
    assert rows[0]["text"] == "00-input.hlo" and rows[-1]["text"] == f"{len(NAMES)}-pack.txt"
    files = {"manifest.json"} | {row[key] for row in rows for key in ("text", "picture")}
    assert {p.name for p in Path("out/d").iterdir()} == files
    for row in rows:
        stage = stages[row["pass"]]
        assert Path("out/d", row["text"]).read_text() == stage.text()
        assert "<svg" in Path("out/d", row["picture"]).read_text()
        assert (row["level"], row["facts"]) == (stage.level, list(stage.facts))
    assert [row["changed"] for row in rows[:2]] == [True, False]


def test_a_shorter_dump_leaves_nothing_of_a_longer_one(ncc):
    ncc("compile", "small.hlo", "--dump", "d", "--stop-after", "hlo-to-mhlo")
    Path("d/note").write_text("mine")
    ncc("compile", "small.hlo", "--dump", "d", "--stop-after", "check-sharding")
    assert len(list(Path("d").iterdir())) == 2 * 3 + 1 + 1 and Path("d/note").exists()


def test_tables(ncc):
    out = ncc("compile", "small.hlo", "--stats").out
    assert out.splitlines()[1].startswith("input ") and "1 Matmul" in out.splitlines()[-2]
    out = ncc("compile", "small.hlo", "--pass-times").out
    assert [line.split()[0] for line in out.splitlines()] == ["pass", *NAMES]
    out = ncc("compile", "small.hlo", "--pass-times", "--stats", "--json").out
    tables = json.loads(out)
    assert [row["pass"] for row in tables["pass-times"]] == NAMES
    assert tables["stats"][0]["nodes"]["parameter"] == 3
    assert ncc("compile", "small.hlo", "--json").err.startswith("ncc: NCC002 --json prints tables")


def test_skip(ncc):
    assert ncc("compile", "small.hlo", "--skip", "pre-sched,simplify", "--skip", "copy_elim") == (
        0,
        "",
        f"wrote small.neff ({Path('small.neff').stat().st_size} bytes)\n",
    )
    optional = [name for name, entry in passes.called().items() if not passes.load(entry).required]
    assert ncc("check", "small.hlo", "--skip", ",".join(optional)).status == 0
    said = ncc("compile", "small.hlo", "--skip", "unroll")
    assert said.status == 2 and said.err == (
        "ncc: NCC007 unroll is required and cannot be skipped "
        "(--with-pass unroll=FILE puts another in its place)\n"
    )


MINE = """from ncc.passes.base import define
def apply(module, target):
    return module
PASS = define(__name__, "Do nothing.", apply, source="penguin")
OTHER = define(__name__, "Break.", lambda module, target: module.nothing, source="penguin")
"""


def test_with_pass(ncc):
    Path("mine.py").write_text(MINE)
    said = ncc("compile", "small.hlo", "--with-pass", "value_number=mine.py", "--print-changed")
    assert "# value-number: no change\n" in said.out
    said = ncc("compile", "small.hlo", "--with-pass", "value-number=mine.py:OTHER")
    assert said.status == 1 and said.err == (
        "ncc: NCC010 mine.py:5, value-number: the pass broke: AttributeError: "
        "'Function' object has no attribute 'nothing'\n"
    )
    assert not Path("__pycache__").exists()


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3", "trn2,sbuf=4096,psum=2"])
def test_targets(ncc, target):
    assert ncc("check", "small.hlo", "--target", target).status == 0
    ncc("compile", "small.hlo", "--target", target)
    said = ncc("disasm", "small.neff")
    assert said.out.startswith(f"# ncc isa target={target.split(',')[0]} ")


# ---- run and check -------------------------------------------------------------------------------


def outputs(path):
    with np.load(path) as held:
        return {name: held[name] for name in held.files}


def test_run_prints_the_outputs_and_says_what_it_drew(ncc):
    said = ncc("run", "small.hlo")
    assert said.out.startswith("out float32 8x3\n[[ ")
    assert said.err == "no inputs given: whole numbers drawn from seed 0\n"
    assert ncc("run", "small.hlo", "--random", "5").err == ""
    assert ncc("run", "small.hlo", "--random", "5").out != ncc("run", "small.hlo").out


def test_run_reads_and_writes_arrays(ncc):
    x = np.arange(32, dtype=np.float32).reshape(8, 4)
    w, b = np.eye(4, 3, dtype=np.float32), np.array([1, -2, 0.5])
    np.savez("in.npz", in0=x, w=w, in2=b)
    said = ncc("run", "small.hlo", "--inputs", "in.npz", "--outputs", "out.npz")
    assert (said.status, said.out) == (0, "") and said.err.startswith("wrote out.npz (")
    (out,) = outputs("out.npz").values()
    np.testing.assert_array_equal(out, np.maximum(x @ w + b.astype(np.float32), 0))


def test_narrow_outputs_are_stored_as_float32(ncc):
    text = (
        SMALL.replace("ROOT %maximum.6", "%maximum.6")
        .replace("}\n", "}", 0)
        .replace(
            "%broadcast.5)\n", "%broadcast.5)\n  ROOT %c = bf16[8,3]{1,0} convert(%maximum.6)\n"
        )
    )
    text = text.replace("->f32[8,3]{1,0}}", "->bf16[8,3]{1,0}}").replace(
        "-> f32[8,3]", "-> bf16[8,3]"
    )
    Path("narrow.hlo").write_text(text)
    assert ncc("run", "narrow.hlo").out.startswith("out bfloat16 8x3\n")
    ncc("run", "narrow.hlo", "--outputs", "out.npz")
    assert outputs("out.npz")["out0"].dtype == np.float32


@pytest.mark.parametrize("level", list(LEVELS))
def test_run_at_every_level_gives_the_same(ncc, level):
    ncc("run", "small.hlo", "--outputs", "bytes.npz")
    said = ncc("run", "small.hlo", "--at", level, "--outputs", "level.npz")
    assert said.status == 0
    np.testing.assert_array_equal(outputs("level.npz")["out0"], outputs("bytes.npz")["out0"])


@pytest.mark.parametrize(
    ("level", "name", "shown"),
    [
        ("hlo", "dot.1", "dot.1 float32 8x3"),
        ("mhlo", "dot_1", "dot_1 float32 8x3"),
        ("penguin", "x_t", "x_t bfloat16 1x4x8"),
        ("bir", "x_t", "x_t bfloat16 1x4x8"),
        ("isa", "out", "out float32 8x3"),
        ("neff", "w", "w bfloat16 4x3"),
    ],
)
def test_watch(ncc, level, name, shown):
    said = ncc("run", "small.hlo", "--at", level, "--watch", name)
    assert said.status == 0 and said.out.splitlines()[0].split()[0] == name
    assert said.out.count(" 8x3\n") >= 1
    said = ncc("run", "small.hlo", "--at", level, "--watch", name + "q")
    assert said.status == 2 and f"{level} has no value called '{name}q' (did you mean" in said.err


def test_run_with_engines_interleaved_at_random(ncc):
    plain = ncc("run", "small.hlo").out
    for seed in (1, 2, 3):
        assert ncc("run", "small.hlo", "--shuffle", seed).out == plain
    assert ncc("run", "small.hlo", "--shuffle", 1, "--at", "bir").status == 2


def test_a_neff_and_a_printed_stage_run(ncc, stages):
    plain = ncc("run", "small.hlo").out
    ncc("compile", "small.hlo")
    assert ncc("run", "small.neff").out == plain
    Path("u.txt").write_text(stages["unroll"].text())
    assert ncc("run", "u.txt").out == plain
    assert ncc("run", "u.txt", "--at", "bir").out == plain
    said = ncc("run", "u.txt", "--at", "mhlo")
    assert said.status == 2 and "the program is bir already and never becomes mhlo" in said.err


def test_check_says_how_many_stages_agree(ncc):
    said = ncc("check", "small.hlo")
    whole, random = said.out.splitlines()
    assert said.err == "" and whole.startswith("whole numbers: ")
    assert whole.endswith(" stages agree, largest difference 0 (from the bytes too)")
    assert random.startswith("random numbers: ")
    report = json.loads(ncc("check", "small.hlo", "--random", 3, "--json").out)
    assert report["passed"] and report["first"] == report["said"] == ""
    assert report["stages"][0] == {
        "inputs": "given inputs", "pass": "input", "level": "hlo", "largest": 0.0
    }  # fmt: skip


LOSES = """from ncc.passes.base import define
from ncc.passes.penguin import simplify
import attrs
def apply(module, target):
    ops = tuple(attrs.evolve(op, op="maximum") if getattr(op, "op", "") == "add" else op for op in module.body)
    return attrs.evolve(module, body=ops)
PASS = define(__name__, "Take add for maximum.", apply, source="penguin")
"""


def test_check_names_the_pass_that_changes_the_result(ncc):
    Path("loses.py").write_text(LOSES)
    said = ncc("check", "small.hlo", "--with-pass", "value-number=loses.py")
    assert said.status == 3 and said.out == ""
    assert said.err.startswith(
        "ncc: NCC008 value-number: changes the result on whole numbers: out["
    )
    said = ncc("check", "small.hlo", "--with-pass", "value-number=loses.py", "--json")
    report = json.loads(said.out)
    assert (report["passed"], report["first"]) == (False, "value-number")
    assert said.status == 3 and report["said"] in said.err


def test_check_against_right_outputs(ncc):
    np.savez("in.npz", in0=np.ones((8, 4)), in1=np.ones((4, 3)), in2=np.ones(3))
    np.savez("right.npz", out0=np.full((8, 3), 5.0))
    np.savez("wrong.npz", out=np.full((8, 3), 6.0))
    assert ncc("check", "small.hlo", "--inputs", "in.npz", "--against", "right.npz").status == 0
    said = ncc("check", "small.hlo", "--inputs", "in.npz", "--against", "wrong.npz")
    assert said.status == 3 and said.err == (
        "ncc: NCC008 pack: the last stage differs from the right outputs: "
        "out[0,0] was 6, is 5 (24 elements differ)\n"
    )


# ---- looking -------------------------------------------------------------------------------------


def test_draw(ncc, stages):
    said = ncc("draw", "small.hlo", "--after", "cut_free")
    assert said.err == "" and said.out.startswith("<?xml") and said.out.rstrip().endswith("</svg>")
    assert ncc("draw", "small.hlo", "--after", "unroll", "-o", "u.svg").out == ""
    assert "<svg" in Path("u.svg").read_text()
    Path("u.txt").write_text(stages["unroll"].text())
    assert ncc("draw", "u.txt", "--after", "unroll").status == 0


def test_disasm_and_asm_are_inverse(ncc):
    ncc("compile", "small.hlo")
    listing = ncc("disasm", "small.neff")
    assert listing.err == "" and read_stage(listing.out).level == "isa"
    Path("x.s").write_text(listing.out)
    assert ncc("asm", "x.s").err.startswith("wrote x.neff (")
    assert Path("x.neff").read_bytes() == Path("small.neff").read_bytes()
    ncc("asm", "x.s", "-o", "y.neff", "--header", "--uncompressed")
    assert ncc("disasm", "y.neff").out == listing.out


def test_neff(ncc):
    ncc("compile", "small.hlo", "--header")
    said = ncc("neff", "list", "small.neff")
    assert "sg00/PE0.bin" in said.out and "PE.bin" in said.out and "engine bitmap: 0x" in said.out
    held = json.loads(ncc("neff", "list", "small.neff", "--json").out)
    assert held["record"]["form"] == "header, gzip" and len(held["members"]) == 15
    said = ncc("neff", "extract", "small.neff", "kelf-0.json")
    assert json.loads(said.out)["version"]
    ncc("neff", "extract", "small.neff", "sg00/PE0.bin", "-o", "pe.bin")
    assert Path("pe.bin").stat().st_size % 64 == 0
    said = ncc("neff", "extract", "small.neff", "sg00/PE1.bin")
    assert said.status == 2 and "(did you mean sg00/PE0.bin?)" in said.err
    assert ncc("neff", "verify", "small.neff").out == "small.neff: 15 members, sound\n"


def test_passes(ncc):
    lines = ncc("passes").out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == list(passes.called())
    rows = json.loads(ncc("passes", "--json").out)
    assert [row["pass"] for row in rows] == list(passes.called()) and rows[0][
        "stands for"
    ] == "NeuronHloVerifier"
    out = ncc("passes", "--by", "job").out
    assert out.index("\nF0  hlo2penguin") < out.index("\nF2  ") < out.index("\nW0  walrus")
    rows = json.loads(ncc("passes", "--by", "job", "--json").out)
    jobs = [row["job"] for row in rows]
    assert list(dict.fromkeys(jobs)) == [j for j in (*JOBS, "") if j in jobs]


@pytest.mark.parametrize("word", ["cut-partition", "cut_partition", "cutParAxes", "cutparaxes"])
def test_explain_a_pass_by_any_name(ncc, word):
    out = ncc("explain", word).out
    assert out.startswith("cut-partition: Cut every list of partition axes")
    for part in ("\nBefore:\n", "\nAfter:\n", "\nWhy: ", "gives: partition-tiles-fit", "job F"):
        assert part in out


def test_explain_rules_and_pictures(ncc):
    out = ncc("explain", "ncc110").out
    assert out.startswith("NCC110: a contraction of different sizes\n") and "refused by `ncc" in out
    assert ncc("explain", "BIR003").out.startswith("NCC009: ")
    assert ncc("explain", "--unchecked").out.startswith("devices: no device has loaded")
    said = ncc("explain", "unroll", "--svg", "pictures")
    assert said.err.count("wrote pictures/unroll-") == 2
    said = ncc("explain", "cut-fre")
    assert said.status == 2 and said.err.endswith("(did you mean cut-free?)\n")
    assert ncc("explain").status == 2


def test_examples(ncc):
    shown = ncc("examples").out
    assert "matmul.hlo         (bf16[128,512], bf16[512,256])->f32[128,256]\n" in shown
    assert "bf16[384,10], f32[10])->f32[64,10]\n" in shown
    assert {r["example"] for r in json.loads(ncc("examples", "--json").out)} >= {"mlp.hlo"}
    text = ncc("examples", "matmul.hlo").out
    assert text.startswith("HloModule matmul")
    ncc("examples", "matmul.hlo", "--copy", "a")
    ncc("examples", "--copy", "b")
    assert Path("a/matmul.hlo").read_text() == Path("b/matmul.hlo").read_text() == text
    said = ncc("examples", "matmull.hlo")
    assert said.status == 2 and "(did you mean matmul.hlo?)" in said.err


def test_doctor(ncc):
    said = ncc("doctor")
    assert said.status == 0 and said.out.startswith(f"ncc {package.__version__}, Python 3.")
    assert said.out.endswith("largest difference 0\n")


def test_help_and_version(ncc):
    said = ncc("--help")
    assert said.status == 0 and "Compile a program to a NEFF" in said.out
    assert ncc().out == said.out
    assert ncc("--version").out == f"ncc {package.__version__}\n"
    for words in (("compile",), ("lab", "grade"), ("neff", "list"), ("run",)):
        assert ncc(*words, "--help").out.startswith(f"Usage: ncc {' '.join(words)} ")


# ---- any printed stage is a program --------------------------------------------------------------


@pytest.mark.parametrize("example", ["matmul.hlo", "mlp.hlo"])
def test_every_printed_stage_goes_on_to_the_same_bytes(example):
    """Each stage, read back, is equal and gives the next one; so each reaches the same bytes.

    Every seventh is compiled to its end all the same.
    """
    from ncc.commands.examples import programs
    from ncc.walking import plan, walk

    kept = Kept()
    last = package.compile(programs()[example], observers=[kept]).module
    found = list(kept.stages.items())
    for number, (name, stage) in enumerate(found):
        text = stage.text()
        back = read_stage(text, "stage.txt")
        assert back.module == stage.module and back.text() == text, name
        if number % 7 == 3:
            assert walk(back, plan(back)).module == last, name
        elif number + 1 < len(found):
            following, expected = found[number + 1]
            got = walk(back, plan(back, stop_after=following))
            assert (got.module, got.facts) == (expected.module, expected.facts), name


@pytest.mark.parametrize("stop", ["penguin-to-bir", "unroll", "alloc-sbuf", "alloc-sems"])
def test_a_bir_stage_travels_as_json(ncc, stop):
    ncc("compile", "small.hlo", "-o", "straight.neff")
    assert ncc("compile", "small.hlo", "--stop-after", stop, "-o", "x.json").status == 0
    assert json.loads(Path("x.json").read_text())["ncc"].startswith("# ncc bir target=trn2")
    assert ncc("compile", "x.json", "-o", "x.neff").status == 0
    assert Path("x.neff").read_bytes() == Path("straight.neff").read_bytes()


def test_a_bare_bir_document_is_a_program_that_no_pass_has_seen(ncc):
    ncc("compile", "small.hlo", "--stop-after", "penguin-to-bir", "-o", "x.json")
    module = json.loads(Path("x.json").read_text())["module"]
    Path("bare.json").write_text(json.dumps(module))
    assert ncc("run", "bare.json") == ncc("run", "small.hlo")
