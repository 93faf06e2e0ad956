"""Faults that others met, each with its small input and the right behaviour (cases H01 to H20)."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from neff_files import changed, rehashed, signed, wrapped
from whole_programs import HERE, field, hlo, printed, product, program_of, streams

from ncc import checking, driver, pack, values
from ncc.cli import call
from ncc.driver import plan
from ncc.ir.bir_opcodes import key
from ncc.ir.hlo_literal import array_of
from ncc.stages import read_stage

ARCH = {"trn1": "sunda", "trn2": "gen3", "trn3": "core_v4"}


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def said(capsys, *arguments: str) -> tuple[int, str]:
    """The exit status of a command line, and what it wrote to stderr."""
    capsys.readouterr()
    status = call(list(arguments))
    return status, capsys.readouterr().err


def written(name: str, **targets: str) -> str:
    """A printed program as a file here, maybe for another target; its name."""
    text = (HERE / "bir_programs" / f"{name}.txt").read_text()
    for target in targets.values():
        text = text.replace("target=trn2", f"target={target}")
        text = text.replace(" gen3\n", f" {ARCH[target]}\n")
    Path(f"{name}.txt").write_text(text)
    return f"{name}.txt"


def outputs(stage, inputs):
    return driver.run(stage, inputs)


def right(stage) -> None:
    """Every stage means the same, on whole numbers and on random ones, and so do the bytes."""
    sets = [checking.whole_numbers(stage), checking.random_numbers(stage)]
    result = checking.check(stage, plan(stage), sets)
    assert not result.failed, f"{result.place}: {result.failed}"
    assert result.rows[-1]["level"] == "neff"


# --- H01: three wide tiles ------------------------------------------------------------------------


@pytest.mark.parametrize("target, usable", [("trn1", 180224), ("trn2", 212984), ("trn3", 245752)])
def test_h01_three_wide_tiles_fit_nowhere(capsys, target, usable):
    status, told = said(capsys, "compile", written("three_wide", target=target))
    assert status == 1
    assert told == (
        "ncc: NCC502 insert-spills, a: 3 tiles that are live at sum take 295704 bytes a partition, "
        f"and {target} has {usable}: a 98568 bytes, b 98568 bytes and c 98568 bytes "
        "(make the tiles smaller, or keep fewer of them at a time)\n"
    )
    assert not Path("three_wide.neff").exists()


@pytest.mark.parametrize("target", ["trn2", "trn3"])
def test_h01_two_wide_tiles_fit_the_larger_machines(target):
    """The sum is written over one of its operands: two tiles of 98,568 bytes a partition."""
    stage = read_stage(Path(written("two_wide", target=target)).read_text(), "p.txt")
    a, b = values.whole(stage, 0)
    (got,) = outputs(stage, [a, b])
    np.testing.assert_array_equal(got, a + b)


def test_h01_two_wide_tiles_do_not_fit_trn1(capsys):
    status, told = said(capsys, "compile", written("two_wide", target="trn1"))
    assert status == 1
    assert told.startswith("ncc: NCC502 insert-spills, a: ")
    assert "and trn1 has 180224: a 98568 bytes, " in told and "b 98568 bytes" in told


# --- H02: a product wider than a PSUM bank --------------------------------------------------------


def test_h02a_one_product_over_two_banks_is_refused(capsys):
    text = (HERE / "bir_programs" / "two_banks.txt").read_text()
    wide = text.replace(
        "p:float32[[1024,128],[1,512]] <- x_t:bfloat16[[1024,128],[1,512]] ",
        "p:float32[[1024,128],[1,1024]] <- x_t:bfloat16[[1024,128],[1,1024]] ",
    )
    assert wide != text
    Path("p.txt").write_text(wide)
    assert said(capsys, "compile", "p.txt") == (
        1,
        "ncc: NCC416 after unroll, left: has K=128, M=128, N=1024; the most are 128, 128 and 512\n",
    )


def test_h02b_two_products_into_one_tile_of_two_banks():
    stage = printed("two_banks")
    products = [b for b in streams(program_of(stage))["PE"] if b.op == "Matmul"]
    assert [field(b, "psum_flags") for b in products] == [3, 3], "two groups"
    assert [field(b, "dst").byte for b in products] == [0, 2048], "two banks"
    w, x = values.whole(stage, 0)
    (got,) = outputs(stage, [w, x])
    np.testing.assert_array_equal(got, np.asarray(w, float).T @ np.asarray(x, float))
    right(stage)


def test_h02b_from_hlo():
    stage = hlo(product(128, 128, 1024))
    products = [b for b in streams(program_of(stage))["PE"] if b.op == "Matmul"]
    assert [field(b, "psum_flags") for b in products] == [3, 3]
    assert [field(b, "dst").byte for b in products] == [0, 2048]
    right(stage)


def sums(count: int) -> str:
    """A printed program of sums that grow all at once, each a bank wide, in two rounds."""
    head = (HERE / "bir_programs" / "two_banks.txt").read_text().split("    set p ")[0]
    head = head.replace("set out float32 (128,1024)", f"set out float32 (128,{512 * count})")
    head = head.replace("loc out DRAM (1,524288)", f"loc out DRAM (1,{262144 * count})")
    sets, lines = "", ""
    for n in range(count):
        sets += f"    set p{n} float32 (128,512) memory=PSUM\n      loc p{n} PSUM (128,2048)\n"
        sets += f"    set o{n} float32 (128,512) memory=SB\n      loc o{n} SB (128,2048)\n"
    lines += (
        "      load_w = Load DMA w_t:bfloat16[[128,128],[1,128]] <- w:bfloat16[[128,128],[1,128]]\n"
    )
    lines += (
        "      load_x = Load DMA x_t:bfloat16[[1024,128],[1,1024]] <- "
        "x:bfloat16[[1024,128],[1,1024]]\n"
    )
    for half in (0, 1):
        for n in range(count):
            place = "x_t:bfloat16[[1024,128],[1,512]]" + ("+512" if half else "")
            lines += (
                f"      mm{n}.{half} = Matmult PE p{n}:float32[[512,128],[1,512]] <- {place} "
                f"w_t:bfloat16[[128,128],[1,128]]{' accumulate=true' if half else ''}\n"
            )
    for n in range(count):
        whole = "float32[[512,128],[1,512]]"
        lines += f"      copy{n} = TensorCopy DVE o{n}:{whole} <- p{n}:{whole}\n"
        at = f"+{512 * n}" if n else ""
        lines += f"      save{n} = Save DMA out:float32[[{512 * count},128],[1,512]]{at} <- o{n}:{whole}\n"
    return f"{head}{sets}    block Block1\n{lines}      exit = Exit ALL\n"


def test_h02c_nine_sums_that_grow_at_once_are_refused_with_their_banks(capsys):
    right(read_stage(sums(8), "eight.txt"))
    Path("nine.txt").write_text(sums(9))
    tiles = ", ".join(f"p{n} 1 bank" for n in range(8)) + " and p8 1 bank"
    assert said(capsys, "compile", "nine.txt") == (
        1,
        "ncc: NCC503 alloc-psum, p0: 9 PSUM tiles that are live at mm8.0 take 9 banks, and trn2 has "
        f"8: {tiles} (copy a finished sum to SBUF before the next one starts)\n",
    )


# --- H03: a row block of 256 ----------------------------------------------------------------------


@pytest.mark.parametrize("rows", [256, 129])
def test_h03_more_rows_than_partitions(capsys, rows):
    text = (HERE / "bir_programs" / "rows.txt").read_text()
    text = text.replace("(256,", f"({rows},").replace("256]", f"{rows}]")
    Path("rows.txt").write_text(text.replace("65536", str(rows * 256)))
    assert said(capsys, "compile", "rows.txt") == (
        1,
        f"ncc: NCC434 after unroll, t: t takes {rows} partitions; there are 128 (loop over 128 rows "
        "at a time, or put more elements into each)\n",
    )


def test_h03_128_rows_are_right():
    text = (HERE / "bir_programs" / "rows.txt").read_text()
    text = text.replace("(256,", "(128,").replace("256]", "128]").replace("65536", "32768")
    right(read_stage(text, "rows.txt"))


# --- H05: a step that does not fit its field ------------------------------------------------------


def test_h05_a_wide_step_is_split_in_two():
    stage = printed("wide_step")
    copies = [b for b in streams(program_of(stage))["DVE"] if b.op == "Copy"]
    starts = [field(b, "src").byte for b in copies]
    assert [field(b, "src").dims for b in copies] == [(), ()], "one element each"
    assert starts[1] - starts[0] == 46208
    (x,) = values.whole(stage, 0)
    np.testing.assert_array_equal(outputs(stage, [x])[0], x[:, :, 0])


@pytest.mark.parametrize("step", [40000, -40000, 32768, -32769])
@pytest.mark.parametrize("side", ["src", "dst"])
def test_h05_a_step_in_a_listing_is_refused_and_never_wrapped(capsys, step, side):
    Path("m.hlo").write_text(product(128, 512, 256))
    assert call(["compile", "m.hlo", "-o", "m.neff"]) == 0
    capsys.readouterr()
    assert call(["disasm", "m.neff"]) == 0
    lines = capsys.readouterr().out.split("\n")
    (at,) = [n for n, line in enumerate(lines) if line.startswith("  Copy ")]
    lines[at] = re.sub(rf"({side}=\S+)\[1:256\]", rf"\1[{step}:256]", lines[at])
    Path("bad.s").write_text("\n".join(lines))
    assert said(capsys, "asm", "bad.s", "-o", "bad.neff") == (
        1,
        f"ncc: NCC702 bad.s:{at + 1}, Copy: {side}: step {step} of dimension 0 is outside "
        "-32768..32767 (split the pattern into two instructions)\n",
    )
    assert not Path("bad.neff").exists()


# --- H08: overlapping groups in PSUM --------------------------------------------------------------


@pytest.mark.parametrize("name, flags", [("overlap", [3, 2]), ("overlap_split", [3, 0, 2])])
def test_h08_a_product_that_accumulates_into_a_part(name, flags):
    """A into all columns, B added to the right half. In the second version the right half of A and
    B are one group: STOP stands on its last member alone."""
    stage = printed(name)
    products = [b for b in streams(program_of(stage))["PE"] if b.op == "Matmul"]
    assert [field(b, "psum_flags") for b in products] == flags
    w, x = (np.asarray(v, np.float64) for v in values.whole(stage, 0))
    want = w.T @ x[:, :512]
    want[:, 256:] += w.T @ x[:, 512:]
    np.testing.assert_array_equal(outputs(stage, values.whole(stage, 0))[0], want)
    right(stage)


def test_h08_a_read_before_the_last_product_sees_what_is_there():
    """The program reads between A and B: that closes A, and both reads are right."""
    text = printed("overlap").text()
    read = "p:float32[[512,128],[1,512]]\n"
    early = f"      early = TensorCopy DVE out_t:float32[[512,128],[1,512]] <- {read}"
    stage = read_stage(text.replace("      b = ", f"{early}      b = "), "p.txt")
    done = driver.compile(stage, stop_after="mm-acc-flags").module.main.blocks[0].insts
    flags = [key(i, "accumulation_flag") for i in done if i.opcode == "Matmult"]
    assert flags == [3, 6]
    right(stage)


def test_h08_a_read_of_a_group_that_no_stop_closed_is_reported(capsys):
    """The same read where the flags say that the group goes on."""
    text = printed("overlap").text()
    stage = driver.compile(read_stage(text, "p.txt"), stop_after="mm-acc-flags")
    Path("open.txt").write_text(stage.text().replace("accumulation_flag=6", "accumulation_flag=4"))
    status, told = said(capsys, "compile", "open.txt")
    assert (status, told) == (
        1,
        "ncc: NCC612 after mm-acc-flags, evict: reads the group of b before a matmul with STOP has "
        "closed it\n",
    )


# --- H12: batch dimensions that are not in front, and integers ------------------------------------

SCORES = """HloModule scores

ENTRY main {
  q = f32[1,2,2,3]{3,2,1,0} parameter(0)
  k = f32[1,3,2,3]{3,2,1,0} parameter(1)
  ROOT out = f32[1,2,2,3]{3,2,1,0} dot(q, k), lhs_batch_dims={0,2}, rhs_batch_dims={0,2},
    lhs_contracting_dims={3}, rhs_contracting_dims={3}
}
"""
WHOLE = """HloModule whole

ENTRY main {
  a = s32[2,3]{1,0} parameter(0)
  b = s32[3,2]{1,0} parameter(1)
  ROOT out = s32[2,2]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.mark.parametrize("target", ["trn1", "trn2", "trn3"])
def test_h12_batch_dimensions_that_are_not_in_front(target):
    stage = hlo(SCORES, target)
    q = np.arange(12, dtype=np.float32).reshape(1, 2, 2, 3)
    k = np.arange(18, dtype=np.float32).reshape(1, 3, 2, 3)
    (got,) = outputs(stage, [q, k])
    assert got.tolist() == [
        [[[5, 23, 41], [23, 149, 275]], [[50, 122, 194], [122, 302, 482]]],
    ]
    right(stage)


def test_h12_a_product_of_integers_is_refused(capsys):
    Path("w.hlo").write_text(WHOLE)
    assert said(capsys, "compile", "w.hlo") == (
        1,
        "ncc: NCC115 w.hlo:6:8, hlo-to-mhlo, out: dot of s32: integer products are not exact on the "
        "tensor engine (convert the operands to f32 first)\n",
    )


# --- H13: nothing to do ---------------------------------------------------------------------------

EMPTY = """HloModule nothing

ENTRY main {
  a = f32[M,K]{1,0} parameter(0)
  b = f32[K,N]{1,0} parameter(1)
  ROOT out = f32[M,N]{1,0} dot(a, b), lhs_contracting_dims={1}, rhs_contracting_dims={0}
}
"""


@pytest.mark.parametrize("target", ["trn1", "trn2"])
@pytest.mark.parametrize("m, k, n", [(3, 0, 2), (0, 4, 2), (3, 4, 0), (0, 0, 0), (200, 0, 700)])
def test_h13_products_without_elements(capsys, m, k, n, target):
    text = EMPTY.replace("M", str(m)).replace("K", str(k)).replace("N", str(n))
    text = text.replace(f"Hlo{m}odule", "HloModule").replace(f"E{n}TRY", "ENTRY")
    right(hlo(text, target))
    (got,) = outputs(hlo(text, target), [np.zeros((m, k)), np.zeros((k, n))])
    assert got.shape == (m, n) and not got.any()
    Path("e.hlo").write_text(text)
    assert said(capsys, "compile", "e.hlo", "--target", target)[0] == 0
    assert call(["neff", "verify", "e.neff"]) == 0
    assert capsys.readouterr().out == "e.neff: 15 members, sound\n"
    assert call(["neff", "list", "e.neff"]) == 0
    assert call(["disasm", "e.neff"]) == 0
    sizes = re.search(
        rb'"out": \{[^}]*"size": (\d+)', pack.read(Path("e.neff").read_bytes()).get("sg00/def.json")
    )
    assert sizes is not None and int(sizes[1]) == 4 * m * n
    for stage in ("hlo-verify", "mhlo-to-penguin", "unroll", "encode", "pack"):
        arguments = ["draw", "e.hlo", "--after", stage, "-o", "e.svg", "--target", target]
        assert call(arguments) == 0
        assert Path("e.svg").read_text().rstrip().endswith("</svg>")


# --- H16: constants that do not survive -----------------------------------------------------------

ELIDED = """HloModule elided

ENTRY main {
  ROOT c = f32[4]{0} constant({...})
}
"""
LITERALS = """HloModule literals

ENTRY main {
  a = f32[6]{0} constant({inf, -inf, nan, -0.0, 1e-45, 3.4028235e+38})
  b = f32[] constant(nan(0x400123))
  c = bf16[3]{0} constant({1.00390625, -inf, 3.3895e38})
  d = pred[2]{0} constant({true, false})
  e = f32[0]{0} constant({})
  ROOT out = (f32[6]{0}, f32[], bf16[3]{0}, pred[2]{0}, f32[0]{0}) tuple(a, b, c, d, e)
}
"""


def test_h16a_values_that_were_left_out(capsys):
    Path("c.hlo").write_text(ELIDED)
    assert said(capsys, "compile", "c.hlo") == (
        1,
        "ncc: NCC103 c.hlo:4:22, c: this dump left the values out; dump with large constants\n",
    )


def test_h16b_every_literal_is_what_it_says():
    body = hlo(LITERALS).module.computations[0].instructions[:5]
    arrays = [array_of(inst.literal) for inst in body]
    want = np.array([np.inf, -np.inf, np.nan, -0.0, 1e-45, 3.4028235e38], np.float32)
    np.testing.assert_array_equal(arrays[0], want)
    assert np.signbit(arrays[0][3])
    assert arrays[1].view(np.uint32) == 0x7FC00123
    assert arrays[2].astype(np.float32)[0] == 1.0, "bf16 rounds to even"
    assert arrays[3].tolist() == [True, False]
    assert arrays[4].shape == (0,)


def test_h16c_printed_and_read_twice():
    first = hlo(LITERALS)
    once = first.text()
    again = read_stage(once, "once.txt")
    twice = again.text()
    assert once == twice and again.module == first.module
    assert read_stage(twice, "twice.txt").text() == once
    assert "constant({inf, -inf, nan, -0.0, 1e-45, 3.4028235e+38})" in once
    assert "constant(nan(0x400123))" in once and "constant({1, -inf, 3.3895314e+38})" in once


def test_h16_floats_that_are_returned_keep_their_bits_down_to_the_bytes():
    text = LITERALS.replace("  d = pred[2]{0} constant({true, false})\n", "")
    text = text.replace(", pred[2]{0}", "").replace("c, d, e", "c, e")
    a, b, c, e = outputs(hlo(text), [])
    want = np.array([np.inf, -np.inf, np.nan, -0.0, 1e-45, 3.4028235e38], np.float32)
    np.testing.assert_array_equal(a.view(np.uint32), want.view(np.uint32))
    assert np.isnan(b)
    assert c.astype(np.float32).tolist() == [1.0, -np.inf, float(np.float32(3.3895314e38))]
    assert e.shape == (0,)


# --- H19: a feature the reader does not know ------------------------------------------------------

OLD = "(the reader is too old: use a newer ncc, or an older compiler)"


@pytest.fixture(scope="module")
def good():
    """The members of the NEFF of the seed matmul."""
    neff = driver.compile(hlo(product(128, 512, 256))).module
    return {m.path: m.data for m in neff.members}


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize(
    "fields, told",
    [
        (
            {"header__neff_version_major": 3},
            f"neff_version_major is 3, and this reader supports 0 to 2 {OLD}",
        ),
        (
            {"header__feature_bits": 0x1000 | 1 << 28},
            f"feature_bits is 0x10001000, and this reader supports bits 0 to 26, not bit 28 {OLD}",
        ),
    ],
)
@pytest.mark.parametrize("command", [["neff", "verify"], ["neff", "list"], ["run"]])
def test_h19_a_feature_that_no_reader_here_knows(capsys, good, header, fields, told, command):
    Path("m.neff").write_bytes(wrapped(changed(good, "info.json", **fields), header=header))
    place = "header" if header else "info.json"
    assert said(capsys, *command, "m.neff") == (1, f"ncc: NCC805 m.neff, {place}: {told}\n")


@pytest.mark.parametrize("header", [False, True])
def test_h19_a_feature_that_is_known_is_listed_by_name(capsys, good, header):
    found = changed(good, "info.json", header__feature_bits=0x100)
    Path("m.neff").write_bytes(wrapped(found, header=header))
    assert call(["neff", "list", "m.neff"]) == 0
    assert "\nfeature bits: 0x100 (indirect-copy bound check)\n" in capsys.readouterr().out
    assert call(["neff", "verify", "m.neff"]) == 0
    assert capsys.readouterr().out == "m.neff: 15 members, sound\n"


def test_h19_the_header_is_judged_by_its_own_record(capsys, good):
    """A header of major 3 in front of members that say 2: the two must agree, too."""
    raw = wrapped(good, header=True)
    bad = bytearray(raw)
    at = 24  # pkg_version, header_size and data_size are eight bytes each
    assert int.from_bytes(bad[at : at + 8], "little") == 2
    bad[at] = 3
    Path("m.neff").write_bytes(rehashed(bytes(bad[1024:]), bytes(bad)))
    assert said(capsys, "neff", "verify", "m.neff") == (
        1,
        "ncc: NCC805 m.neff, header: neff_version_major is 3, and this reader supports 0 to 2 "
        f"{OLD}\n",
    )


# --- H20: a member is missing ---------------------------------------------------------------------


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize(
    "member, told",
    [
        ("sg00/def.json", "is missing (kelf-0.json names it)"),
        ("sg00/Pool0.bin", "is missing (sg00/def.json names it as 'pool_instr')"),
    ],
)
@pytest.mark.parametrize("command", [["neff", "verify"], ["run"]])
def test_h20_a_member_is_missing(capsys, good, header, member, told, command):
    found = {path: data for path, data in good.items() if path != member}
    Path("m.neff").write_bytes(wrapped(signed(found), header=header))
    assert said(capsys, *command, "m.neff") == (1, f"ncc: NCC811 m.neff, {member}: {told}\n")


@pytest.mark.parametrize("header", [False, True])
def test_h20_an_unknown_member_is_listed_with_a_warning(capsys, good, header):
    found = signed({**good, "sg00/notes.txt": b"hello"})
    Path("m.neff").write_bytes(wrapped(found, header=header))
    assert call(["neff", "list", "m.neff"]) == 0
    out = capsys.readouterr().out
    assert "\nwarning: sg00/notes.txt is a member that nothing reads\n" in out
    assert re.search(r"^sg00/notes.txt +5\b", out, re.M)
    assert call(["neff", "verify", "m.neff"]) == 0


@pytest.mark.parametrize("header", [False, True])
def test_h20_a_stream_cut_in_the_middle_of_a_bundle(capsys, good, header):
    short = signed({**good, "sg00/PE0.bin": good["sg00/PE0.bin"][:-32]})
    Path("m.neff").write_bytes(wrapped(short, header=header))
    told = (
        "ncc: NCC813 m.neff, sg00/PE0.bin: has 544 bytes, no multiple of 64: it ends inside bundle "
        "8 (sg00/def.json names it)\n"
    )
    assert said(capsys, "neff", "verify", "m.neff") == (1, told)
    assert call(["disasm", "m.neff"]) == 1
    out, err = capsys.readouterr()
    assert err == told
    assert out.count("\n  LoadStationary ") == 4 and out.count("\n  Matmul ") == 4
    assert "# PE ends early: 32 bytes of bundle 8 are there" in out
