"""The listing of an ISA program: what it looks like, that it reads back, and what it refuses."""

from __future__ import annotations

import pytest
from isa_programs import MIXED, matmul

from ncc.encode.bundle import encode_bundle
from ncc.encode.text import parse, show
from ncc.encode.words import (
    read_at,
    read_band,
    read_imm,
    read_update,
    read_wait,
    show_at,
    show_update,
    show_wait,
)
from ncc.errors import NccError


@pytest.mark.parametrize("text", [matmul(), MIXED], ids=["matmul", "mixed"])
def test_a_listing_prints_as_it_reads(text):
    program = parse(text)
    assert show(program) == text
    assert parse(show(program)) == program


def test_the_dry_run_has_its_bytes():
    """Five bundles of the reference's dry run in full."""
    streams = {s.engine: s.bundles for s in parse(matmul()).streams}
    assert [len(streams[e]) for e in ("PE", "Activation", "Pool", "DVE", "SP")] == [9, 2, 0, 2, 13]
    found = [*streams["SP"][:2], streams["Activation"][0], *streams["PE"][:2]]
    assert [encode_bundle(b).hex() for b in found] == [
        "d41000000000000000000000000c100200000000010000100040000000000000"
        "0800010000010000000000000000001020000000000000000800010020000606",
        "da00000000000000000000000000000000000000000400001080000000000000"
        "0000000000000000000000000000000000000000000000000000000000000000",
        "d4100000050300000100000000091000000c0000000000100000040000000000"
        "8000010000040000000000000300001000040000000000008000010000040a0a",
        "01100000050c0000200000000000000000000000010001000100800001000100"
        "0600000000008080000000000f0f000000000000000000000000000000000000",
        "0210000000001300000000000000000000040000010001000100000101000100"
        "0600000000008080000000010f0f000000000002010001000100000101000100",
    ]


def test_origins_are_comments():
    text = MIXED.replace("  Nop update=S0++", "  Nop update=S0++  # matmul.hlo:7")
    program = parse(text)
    assert program.streams[0].bundles[0].origin.line == 7
    assert show(program) == text


def test_trn3_says_whose_records_it_uses():
    text = matmul().replace("target=cayman", "target=mariana")
    first = show(parse(text)).split("\n")[0]
    assert first == "# the records are those of generation 3, with the memory and numerics of trn3"


def test_defaults_may_be_written():
    text = matmul().replace("dge_op=transpose", "dge_op=transpose qos=0 bound_reg=0")
    text = text.replace("[1:128] in_dtype", "[1:128,1:1] in_dtype")
    assert show(parse(text)) == matmul()


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("program matmul", "programm matmul", "'programm' opens no line"),
        ("gen=3", "gen=three", "gen=three is not what program holds"),
        ("target=cayman ", "", "program lacks target="),
        ("id=1", "id=1 size=4", "var has no size=; it has id, kind, dtype, shape"),
        ("dtype=bfloat16 shape=(128,512)", "dtype=bf17 shape=(128,512)", "'bf17' is no dtype"),
        ("shape=(128,512)", "shape=(128,x)", "a shape holds whole numbers from 0 up"),
        ("stream Pool", "stream pool", "no stream is called 'pool'"),
        ("stream Pool", "stream PE", "the stream PE is there twice"),
        ("  Copy ", "  Coppy ", "no opcode is called 'Coppy', did you mean Copy?"),
        ("  Copy ", "  # m.hlo:3\n  Copy ", "a comment alone is no bundle"),
        ("nchan=128", "nchans=128", "Copy has no field nchans, did you mean nchan?"),
        ("nchan=128", "nchan=128 nchan=1", "cannot read 'nchan=1', each key stands once"),
        ("wait=S0>=4", "wait=S0=>4", "cannot read the wait 'S0=>4'"),
        ("update=S3++", "update=S3+", "cannot read the update 'S3+'"),
        ("wait=S0>=4 src", "wait=S0>=4 value=5 src", "a bundle has one value"),
        ("src=ps[0]bank0+0x0[1:256]", "src=ps[0]+0x0", "cannot read 'ps[0]+0x0', an address is"),
        ("src=ps[0]bank0+0x0[1:256]", "src=ps[0]bank0+0x0[1-256]", "a dimension is step:num"),
        ("in_dtype=float32", "in_dtype=float33", "'float33' is none of uint64"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_line(old, new, said):
    text = matmul()
    assert old in text
    with pytest.raises(NccError) as wrong:
        parse(text.replace(old, new, 1), "m.txt", 2)
    assert wrong.value.code == "NCC009"
    assert said in str(wrong.value)
    assert wrong.value.place.line > 1


def test_a_step_that_does_not_fit_is_refused_and_not_wrapped():
    text = matmul().replace("src=ps[0]bank0+0x0[1:256]", "src=ps[0]bank0+0x0[40000:256]")
    with pytest.raises(NccError) as wrong:
        parse(text, "m.txt", 2)
    assert str(wrong.value) == (
        "NCC702 m.txt:23, Copy: src: step 40000 of dimension 0 is outside -32768..32767 "
        "(split the pattern into two instructions)"
    )


def test_a_listing_without_a_head_is_refused():
    with pytest.raises(NccError, match="a listing opens with"):
        parse("# nothing\n", "m.txt", 1)
    with pytest.raises(NccError, match="a bundle stands before the first stream"):
        parse("  Nop\n", "m.txt", 1)


@pytest.mark.parametrize("word", ["sb[0]+0x400[1:128,-4:2]", "ps[64]bank7+0x7fc", "raw+0x80000005"])
def test_addresses_read_back(word):
    assert show_at(read_at(word)) == word


@pytest.mark.parametrize(
    "word", ["S12>=32", "S3==r5", "S0<1", "E4:set", "E4:clear-then-set", "mode0x42:9"]
)
def test_waits_read_back(word):
    mode, index, value = read_wait(word)
    assert show_wait(mode, index, value or 0) == word


@pytest.mark.parametrize(
    "word",
    [
        "S0++",
        "read:S0--",
        "S9+=16",
        "S9-=r3",
        "read:S1:=0",
        "E4:set",
        "read:E4:clear",
        "mode0x33:2",
    ],
)
def test_updates_read_back(word):
    mode, index, value = read_update(word)
    assert show_update(mode, index, value or 0) == word


def test_update_codes_are_the_references():
    assert read_update("S9++")[:2] == (0x13, 9)
    assert read_update("S9+=4") == (0x15, 9, 4)
    assert read_update("S9-=4")[0] == 0x17
    assert read_update("S9:=4")[0] == 0x19
    assert read_update("E9:set")[0] == 0x11
    assert read_wait("E9:set-then-clear")[0] == 0x07
    assert read_wait("S9>=r4") == (0x85, 9, 4)


def test_one_value_serves_both():
    assert read_band("S1>=4", "S2+=4", "").value == 4
    with pytest.raises(ValueError, match="a bundle has one value, and here are 4 and 5"):
        read_band("S1>=4", "S2+=5", "")


@pytest.mark.parametrize("bad", ["1.5.5", "rx", "sb[0]", "1e99", ""])
def test_bad_immediates_are_refused(bad):
    with pytest.raises(ValueError, match="cannot read"):
        read_imm(bad)
