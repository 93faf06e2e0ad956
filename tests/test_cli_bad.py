"""Bad input: one sentence with place and hint, the right status, nothing half-written, no traceback."""

from __future__ import annotations

import random
import re
import signal
from pathlib import Path

import numpy as np
import pytest
from cli_programs import CHAIN, SMALL, Kept, command
from neff_files import signed

import ncc as package
from ncc import pack
from ncc.errors import NccError
from ncc.programs import load_program
from ncc.target import TARGETS
from ncc.values import whole
from ncc.walking import plan, run_stage, walk


@pytest.fixture
def ncc(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("small.hlo").write_text(SMALL)
    return lambda *words: command(capsys, *words)


def refused(found, status, code, *parts):
    """Exactly one line on stderr (but for the line that says what was drawn), nothing on stdout."""
    lines = [line for line in found.err.splitlines() if not line.startswith("no inputs given")]
    assert (found.status, found.out, len(lines)) == (status, "", 1), found
    assert lines[0].startswith(f"ncc: {code} "), lines[0]
    for part in parts:
        assert part in lines[0]
    assert sorted(p.name for p in Path().iterdir() if p.name.startswith(".ncc")) == []


DOT = """HloModule m

ENTRY main (a: f32[4,8], b: f32[8,3]) -> f32[4,3] {
  a = f32[4,8]{1,0} parameter(0)
  b = f32[8,3]{1,0} parameter(1)
  ROOT d = f32[4,3]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


def also(dtype, text=DOT):
    """The product with a third parameter, which nothing reads."""
    text = text.replace("b: f32[8,3])", f"b: f32[8,3], c: {dtype}[3])")
    return text.replace("  ROOT", f"  c = {dtype}[3]{{0}} parameter(2)\n  ROOT")


AFTER = "}\n}"
PROGRAMS = {
    "empty": ("", "NCC102", ["x.hlo:1: the text is empty"]),
    "blank": ("\n \n", "NCC102", ["x.hlo:1"]),
    "text": ("hello\n", "NCC102", ["x.hlo:1: this is not HLO text: it begins with `hello`"]),
    "nul": ("HloModule m\0\n", "NCC101", ["x.hlo:1:12"]),
    "opcode": (DOT.replace("dot(", "dott("), "NCC114", ["x.hlo:6:", "dott", "did you mean dot?"]),
    "later opcode": (
        DOT.replace("ROOT d", "d").replace(AFTER, "}\n  ROOT e = f32[4,3]{1,0} exponential(d)\n}"),
        "NCC114",
        ["x.hlo:7:", "e: exponential is not compiled"],
    ),
    "shape": (DOT.replace("d = f32[4,3]", "d = f32[4,5]"), "NCC107", ["returns f32[4,3]"]),
    "operand": (DOT.replace("dot(a, b)", "dot(a, c)"), "NCC106", ["x.hlo:6:8, d: reads c"]),
    "twice": (DOT.replace("b = f32[8,3]", "a = f32[8,3]"), "NCC106", ["x.hlo:5:"]),
    "contraction": (
        DOT.replace("b: f32[8,3]", "b: f32[9,3]").replace("b = f32[8,3]", "b = f32[9,3]"),
        "NCC110",
        ["x.hlo:6:8", "d: "],
    ),
    "dimension": (DOT.replace("lhs_contracting_dims={1}", "lhs_contracting_dims={2}"), "NCC1", []),
    "f64": (DOT.replace("f32", "f64"), "NCC116", ["x.hlo:4:3", "f64 is not compiled"]),
    "c64": (DOT.replace("f32", "c64"), "NCC116", ["x.hlo:4:3", "c64"]),
    "pred": (DOT.replace("f32", "pred"), "NCC116", ["x.hlo:4:3", "pred"]),
    "s32": (DOT.replace("f32", "s32"), "NCC115", ["x.hlo:6:8", "(convert the operands to f32"]),
    "no type": (DOT.replace("f32", "f33"), "NCC105", ["x.hlo:3:", "(did you mean f32?)"]),
    "unread f64": (also("f64"), "NCC116", ["x.hlo:6:3", "c: f64"]),
    "unread c128": (also("c128"), "NCC116", ["x.hlo:6:3"]),
    "unread pred": (also("pred"), "NCC116", ["x.hlo:6:3"]),
    "parameters": (
        DOT.replace("parameter(1)", "parameter(5)"),
        "NCC107",
        ["x.hlo:5:3, b: the parameters"],
    ),
    "itself": (
        DOT.replace("ROOT d", "d").replace(
            AFTER, "}\n  ROOT e = f32[4,3]{1,0} call(a, b), to_apply=main\n}"
        ),
        "NCC117",
        ["x.hlo:3:7, main: main calls itself"],
    ),
    "deep": (DOT.replace("a: f32", "a: " + "(" * 50_000 + "f32"), "NCC101", ["x.hlo:3:"]),
    "long number": (DOT.replace("4,8", "4" * 6000 + ",8"), "NCC10", ["x.hlo:3:"]),
    "no header": ("# ncc\n", "NCC102", ["x.hlo:1"]),
    "no level": ("# ncc birr target=trn2\n", "NCC004", ["x.hlo:1", "(did you mean bir?)"]),
    "no target": ("# ncc bir target=trn4\n", "NCC004", ["x.hlo:1", "(did you mean trn"]),
    "no pass": ("# ncc bir after=unrol\n", "NCC004", ["x.hlo:1", "(did you mean unroll?)"]),
    "no fact": ("# ncc bir facts=no-loop-is\n", "NCC004", ["x.hlo:1", "(did you mean no-loop-is-"]),
    "no word": ("# ncc bir fact=x\n", "NCC004", ["x.hlo:1: the header has no word fact="]),
    "no body": ("# ncc bir after=unroll\n", "NCC009", ["x.hlo:3"]),
    "deep tuple": (
        "# ncc bir\nmodule m gen3\n  note x=" + "(" * 50_000 + "\n",
        "NCC009",
        ["x.hlo:3: cannot read '((((", "nest too deep"],
    ),
    "deep index": ("# ncc bir\nmodule m gen3\n  note x=`" + "1+" * 50_000 + "1`\n", "NCC009", []),
    "deep penguin": (
        '# ncc penguin\nfrom ncc.penguin import *\nwith function("f") as f:\n    x = '
        + "-" * 50_000
        + "1\n",
        "NCC009",
        ["x.hlo:"],
    ),
    "long digits": ("# ncc bir\nmodule m gen3\n  note x=" + "4" * 6000 + "\n", "NCC009", []),
    "wrong type": (
        "# ncc mhlo\nfunc main(x: f99[4]) name=m {\n  return x\n}\n",
        "NCC009",
        ["x.hlo:2: no element type is called f99"],
    ),
}


@pytest.mark.parametrize("name", list(PROGRAMS))
@pytest.mark.parametrize("verb", ["compile", "run", "check"])
def test_programs_that_are_none(ncc, verb, name):
    text, code, parts = PROGRAMS[name]
    Path("x.hlo").write_text(text)
    found = ncc(verb, "x.hlo")
    refused(found, 1, found.err.split()[1] if code in found.err.split()[1] else code, *parts)
    assert len(found.err) < 400, "a sentence, not a dump"
    assert not Path("x.neff").exists()


@pytest.mark.parametrize("kind", ["f64", "cosine"])
def test_what_has_no_meaning_yet_does_not_run_at_its_own_level_either(ncc, kind):
    text = PROGRAMS["f64" if kind == "f64" else "later opcode"][0].replace("exponential", "cosine")
    Path("x.hlo").write_text(text)
    refused(ncc("run", "x.hlo", "--at", "hlo"), 1, "NCC116" if kind == "f64" else "NCC114", kind)


def test_files_that_hold_no_text(ncc):
    rng = random.Random(1)
    junk = bytes(rng.randrange(128, 256) for _ in range(5000))
    for raw, code, said in (
        (junk, "NCC004", "x: is not text: byte 0 is no UTF-8, and it is no NEFF"),
        (SMALL.encode("utf-16"), "NCC004", "x: is not text: byte 0 is no UTF-8"),
        (b"\x1f\x8b" + junk, "NCC807", "x: the gzip stream is damaged"),
        (b"\x7fELF" + junk, "NCC004", "x: is not text: byte "),
    ):
        Path("x").write_bytes(raw)
        for verb in ("compile", "run", "check"):
            refused(ncc(verb, "x"), 1, code, said)
    for verb in ("disasm", "asm"):
        assert ncc(verb, "x").status == 1
    assert ncc("neff", "list", "x").status == 1


def test_files_that_are_missing_or_folders(ncc):
    Path("folder").mkdir()
    commands = ("compile", "run", "check", "disasm", "asm")
    for words in (*((c,) for c in commands), ("neff", "list"), ("neff", "verify")):
        refused(ncc(*words, "no.hlo"), 2, "NCC003", "there is no file no.hlo")
        refused(ncc(*words, "folder"), 2, "NCC003", "folder is a folder; name a file in it")


def test_windows_text_is_text(ncc):
    Path("x.hlo").write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    assert ncc("run", "x.hlo").out == ncc("run", "small.hlo").out
    ncc("compile", "small.hlo", "--stop-after", "unroll", "-o", "u.txt")
    Path("w.txt").write_bytes(Path("u.txt").read_text().replace("\n", "\r\n").encode())
    assert ncc("run", "w.txt").out == ncc("run", "small.hlo").out


def test_programs_too_large_are_refused_at_once(ncc):
    for m, k, n in ((10**6, 10**6, 3), (10**5, 10**5, 10**5), (10**13, 8, 3)):
        text = (
            DOT.replace("4,8", f"{m},{k}").replace("[8,3", f"[{k},{n}").replace("4,3", f"{m},{n}")
        )
        Path("x.hlo").write_text(text)
        refused(ncc("compile", "x.hlo"), 1, "NCC415", "unrolling @sg0000 gives more than")
        refused(ncc("run", "x.hlo"), 1, "NCC011", "(try it with smaller shapes)")


@pytest.mark.parametrize(("m", "k"), [(0, 8), (4, 0)])
def test_nothing_to_do_is_done(ncc, m, k):
    """Case H13: a result without elements, and a sum over nothing, from the bytes too."""
    text = DOT.replace("4,8", f"{m},{k}").replace("[8,3", f"[{k},3").replace("4,3", f"{m},3")
    Path("x.hlo").write_text(text)
    assert ncc("check", "x.hlo").status == 0
    assert ncc("run", "x.hlo", "--outputs", "o.npz").status == 0
    with np.load("o.npz") as held:
        assert held["out0"].shape == (m, 3) and not held["out0"].any()
    assert ncc("compile", "x.hlo", "--dump", "d").status == 0
    assert ncc("disasm", "x.neff").out.count("  Exit") >= 1


# ---- arrays --------------------------------------------------------------------------------------


def arrays(**changed):
    good = {"in0": np.ones((8, 4)), "in1": np.ones((4, 3)), "in2": np.ones(3)}
    return {k: v for k, v in {**good, **changed}.items() if v is not None}


INPUTS = [
    (arrays(in1=None), "in.npz lacks in1 (or w)"),
    (arrays(in1=None, ww=np.ones((4, 3))), "in.npz lacks in1 (or w) (did you mean ww?)"),
    (arrays(in0=np.ones((4, 8))), "in.npz: in0 is 4x8, but x is 8x4"),
    (arrays(in2=np.float32(1)), "in.npz: in2 is a scalar, but b is 3"),
    (arrays(in7=np.ones(2)), "in.npz holds in7, which the program does not take"),
    (arrays(in2=np.array(["a", "b", "c"])), "in.npz: in2 holds values of numpy's type <U1"),
    (arrays(in2=np.ones(3, complex)), "in2 holds values of numpy's type complex128, which are no"),
    (arrays(in2=np.zeros(3, "V2")), "in2 holds values of numpy's type |V2, which are no real"),
    (arrays(in2=np.array([{}, 1, 2], object)), "in.npz is damaged, or holds more than plain"),
]


@pytest.mark.parametrize(("held", "said"), INPUTS, ids=[s for _, s in INPUTS])
def test_wrong_arrays(ncc, held, said):
    np.savez("in.npz", **held)
    for verb in ("run", "check"):
        refused(ncc(verb, "small.hlo", "--inputs", "in.npz"), 1, "NCC006", said)


def test_files_of_arrays_that_are_none(ncc):
    np.savez("good.npz", **arrays())
    raw = Path("good.npz").read_bytes()
    np.save("one.npy", np.ones(3))
    for data, said in (
        (b"", "x.npz is no .npz file (numpy.savez(FILE, in0=..., in1=...) writes one)"),
        (b"PK", "x.npz is damaged"),
        (b"hello", "x.npz is no .npz file"),
        (Path("one.npy").read_bytes(), "x.npz is no .npz file"),
        (raw[: len(raw) // 2], "x.npz is damaged"),
        (raw[:200] + b"\0\0\0\0" + raw[204:], "x.npz is damaged"),
    ):
        Path("x.npz").write_bytes(data)
        refused(ncc("run", "small.hlo", "--inputs", "x.npz"), 1, "NCC006", said)
        refused(ncc("check", "small.hlo", "--against", "x.npz"), 1, "NCC006", said)
    refused(ncc("run", "small.hlo", "--inputs", "no.npz"), 2, "NCC003", "there is no file no.npz")
    refused(ncc("run", "small.hlo", "--inputs", "."), 2, "NCC003", ". is a folder")


# ---- a printed stage with one word changed -------------------------------------------------------

WORD = re.compile(r'[A-Za-z_][\w.-]*|-?\d+(?:\.\d+)?|"[^"\n]*"|[^\w\s]')
ODD = ("0", "-1", "129", "65536", "1.5", "nan", "none", "()", "(1,2)", "'", '"', "`", "{", "[", "")


def mutated(text, rng):
    """The text with one word changed: to another of its kind, to an odd one, or in its spelling."""
    words = list(WORD.finditer(text))
    at = rng.choice(words)
    word = at[0]
    alike = [w[0] for w in words if w[0][0].isdigit() == word[0].isdigit() and w[0] != word]
    choices = [
        rng.choice(alike or ["q"]),
        rng.choice(ODD),
        word[:-1],
        word + word,
        f"{word} {word}",
    ]
    if re.fullmatch(r"-?\d+", word):
        choices += [str(int(word) + rng.choice((-1, 1, 2, 64, 10**6)))] * 3
    new = rng.choice(choices)
    line = text.count("\n", 0, at.start()) + 1
    return text[: at.start()] + new + text[at.end() :], f"{word!r} became {new!r} in line {line}"


class Hangs(BaseException):
    pass


def hangs(number, frame):
    raise Hangs


def judged(path, what):
    """The sentence about a file, or that it is a legal program; anything else fails."""
    before = signal.signal(signal.SIGALRM, hangs)
    signal.alarm(30)
    try:
        stage = load_program(path, TARGETS["trn2"])
        last = walk(stage, plan(stage))
        run_stage(last, whole(last, 0))
    except NccError as fault:
        said = str(fault)
        assert "\n" not in said and len(said) < 700, f"{what}: {said}"
        # the machine names bundles and variables in its sentence; all else has a place
        assert str(fault.place) or fault.code.startswith("NCC9"), f"{what}: {said}"
        return fault.code
    except Exception as fault:
        raise AssertionError(f"{what}: {type(fault).__name__}: {fault}") from fault
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return "legal"


@pytest.fixture(scope="module")
def texts(tmp_path_factory):
    """Every printed stage of two programs on two machines: (where it stands, text)."""
    folder = tmp_path_factory.mktemp("texts")
    found = []
    for name, text in (("small", SMALL), ("chain", CHAIN)):
        path = folder / f"{name}.hlo"
        path.write_text(text)
        for target in ("trn1", "trn2"):
            kept = Kept()
            package.compile(path, target=target, observers=[kept])
            found += [(f"{name} {target} {k}", stage.text()) for k, stage in kept.stages.items()]
    return found


def test_one_word_changed_is_a_sentence_or_a_program(texts, tmp_path):
    seen = set()
    for number, (where, text) in enumerate(texts):
        for seed in (1, 2):
            wrong, what = mutated(text, random.Random(f"{number} {seed}"))
            path = tmp_path / "wrong.txt"
            path.write_text(wrong)
            seen.add(judged(path, f"{where}, seed {number} {seed}: {what}"))
    assert {"legal", "NCC009", "NCC004", "NCC101"} <= seen and len(seen) > 15, sorted(seen)


# ---- damaged NEFFs -------------------------------------------------------------------------------


def test_a_neff_cut_short_is_named(ncc):
    for options in ((), ("--uncompressed",), ("--header",)):
        ncc("compile", "small.hlo", "-o", "good.neff", *options)
        raw = Path("good.neff").read_bytes()
        kept = len(raw.rstrip(b"\0"))  # a tar ends with empty blocks
        for size in [1, 2, 300, 1023, 1024, 1025, *range(0, kept, kept // 20)]:
            if size < kept:
                Path("cut.neff").write_bytes(raw[:size])
                found = ncc("run", "cut.neff")
                refused(found, 1, found.err.split()[1], "NCC8", "cut.neff")
                assert ncc("neff", "verify", "cut.neff").status == 1


def test_a_bit_flipped_in_the_file_is_named(ncc):
    ncc("compile", "small.hlo", "-o", "good.neff")
    raw = bytearray(Path("good.neff").read_bytes())
    for at in range(12, len(raw), len(raw) // 40):
        raw[at] ^= 4
        Path("bad.neff").write_bytes(raw)
        refused(ncc("run", "bad.neff"), 1, "NCC807", "bad.neff")
        raw[at] ^= 4


def test_a_bit_flipped_in_a_bundle_is_named_or_legal(tmp_path):
    """The digest is made to fit again, so that the bundle itself is what the reader meets."""
    path = tmp_path / "small.hlo"
    path.write_text(SMALL)
    neff = package.compile(path).module
    streams = [m for m in neff.members if re.fullmatch(r"sg00/[A-Z]\w*0\.bin", m.path) and m.data]
    rng, seen = random.Random(7), set()
    members = {m.path: m.data for m in neff.members}
    for _ in range(120):
        stream = rng.choice(streams)
        bit = rng.randrange(len(stream.data) * 8)
        data = bytearray(stream.data)
        data[bit // 8] ^= 1 << bit % 8
        flipped = pack.neff_of(signed({**members, stream.path: bytes(data)}))
        wrong = tmp_path / "wrong.neff"
        wrong.write_bytes(pack.to_bytes(flipped))
        seen.add(judged(wrong, f"{stream.path}, bundle {bit // 512}, byte {bit // 8 % 64}"))
    assert "legal" in seen and any(code.startswith("NCC7") for code in seen), sorted(seen)
    assert any(code.startswith("NCC9") for code in seen), sorted(seen)
