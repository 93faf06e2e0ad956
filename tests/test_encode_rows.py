"""Every row of the table: layouts that cover each byte once, bytes and records that agree."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ncc.encode.bundle import (
    decode_bundle,
    decode_stream,
    encode_bundle,
    encode_stream,
    record,
)
from ncc.encode.codec import SIZE
from ncc.encode.legal import complaints
from ncc.encode.tables import ROWS, Field, width
from ncc.encode.text import read_bundle, show_bundle
from ncc.encode.values import bits_f32, f32_bits
from ncc.errors import NccError
from ncc.ir.core import NOWHERE
from ncc.ir.isa import At, Band, Bundle, Dram
from ncc.ir.text import split_words
from ncc.rules import rules
from ncc.target import TARGETS

FEW = settings(derandomize=True, max_examples=8, deadline=None)
NAMES = st.text("abcdefghijklmnopqrstuvwxyz_09", max_size=31)


@pytest.mark.parametrize("name", ROWS)
def test_no_byte_is_in_two_fields(name):
    row = ROWS[name]
    taken = {} if name == "Extension" else dict.fromkeys(range(12), "header")
    taken.setdefault(0, "opcode")
    if row.fixed:
        taken[row.fixed[0]] = "fixed"
    for field in row.fields:
        if field.kind == "hi":
            assert taken.get(field.at, "").startswith("lo:"), f"{field.name} has no lower half"
            continue
        for byte in range(field.at, field.at + field.width):
            assert byte not in taken, f"{byte:02X} is in {taken[byte]} and {field.name}"
            assert byte < SIZE
            taken[byte] = f"{field.kind}:{field.name}"


def test_opcodes_are_unique_but_for_pseudo_instructions():
    seen = [row.opcode for row in ROWS.values()]
    assert sorted({x for x in seen if seen.count(x) > 1}) == [0xDF]


def dims(n):
    pair = st.tuples(st.integers(-0x8000, 0x7FFF), st.integers(0, 0xFFFF))
    return st.lists(pair, max_size=n).map(tuple)


def addresses(d):
    sb = st.builds(At, st.just("sb"), st.integers(0, 127), st.integers(0, (1 << 18) - 1), d)
    ps = st.builds(At, st.just("psum"), st.integers(0, 127), st.integers(0, (1 << 15) - 1), d)
    raw = st.builds(At, st.just("raw"), st.just(0), st.integers(0x2400000, (1 << 32) - 1), d)
    return st.one_of(sb, ps, raw)


def values(field: Field):
    """Anything that the kind of a field can hold."""
    kind = field.kind
    if kind in ("T1D", "T2D", "T3D", "T4D"):
        return addresses(dims(int(kind[1])))
    if kind == "A4":
        return addresses(st.just(()))
    if kind == "D4D":
        return st.tuples(st.integers(-(1 << 31), (1 << 31) - 1), dims(4)).map(
            lambda x: (x[0], x[1] if not x[1] or x[1][-1] != (1, 1) else x[1][:-1])
        )
    if kind == "A8":
        at = st.builds(At, st.just("sb"), st.integers(0, 127), st.integers(0, 0x3FFFF))
        dram = st.builds(Dram, st.integers(1, (1 << 24) - 1), st.integers(0, (1 << 32) - 1))
        return st.one_of(at, dram, st.just(0x20 << 56 | 5))
    if kind == "steps":
        return st.tuples(*[st.integers(-(1 << 31), (1 << 31) - 1)] * 2)
    if kind == "nums":
        return st.tuples(*[st.integers(0, 0xFFFF)] * 2)
    if kind == "size":
        return st.integers(1, 0x10000)
    if kind.startswith("name"):
        return NAMES
    if kind.startswith("bytes"):
        return st.binary(min_size=field.width, max_size=field.width)
    if kind in ("lo", "hi"):
        return st.integers(0, 15)
    bits = 8 * field.width
    if kind in ("i32", "i64"):
        return st.integers(-(1 << bits - 1), (1 << bits - 1) - 1)
    return st.integers(0, (1 << bits) - 1)


BANDS = st.builds(
    Band,
    st.tuples(st.integers(0, 255), st.integers(0, 255)),
    st.tuples(st.integers(0, 255), st.integers(0, 255)),
    st.integers(0, (1 << 32) - 1),
)


@pytest.mark.parametrize("name", ROWS)
def test_decode_inverts_encode_and_the_listing_reads_back(name):
    row = ROWS[name]
    gen = row.gens[-1]
    band = st.just(Band()) if name == "Extension" else BANDS

    @FEW
    @given(st.fixed_dictionaries({f.name: values(f) for f in row.fields}), band)
    def holds(fields, events):
        bundle = record(name, events, **fields)
        raw = encode_bundle(bundle, gen)
        assert len(raw) == SIZE
        assert decode_bundle(raw, gen) == bundle
        assert read_bundle(split_words(show_bundle(bundle)), gen, NOWHERE) == bundle
        for wrong in complaints(bundle, gen, TARGETS["trn2"], row.engines[0]):
            assert wrong.code in rules(), f"{wrong.code} has no page"

    holds()


@FEW
@given(st.binary(min_size=SIZE, max_size=SIZE), st.sampled_from(list(ROWS.values())))
def test_any_bytes_are_refused_or_come_back(raw, row):
    whole = bytes([row.opcode]) + raw[1:]
    for given_bytes in (raw, whole, whole[:1] + b"\x10\0\0" + raw[4:]):
        try:
            bundle = decode_bundle(given_bytes, row.gens[-1])
        except NccError as wrong:
            assert wrong.code in ("NCC701", "NCC730")
        else:
            assert encode_bundle(bundle, row.gens[-1]) == given_bytes


def test_a_stray_bit_is_named():
    raw = bytearray(encode_bundle(Bundle("Drain")))
    raw[0x29] = 1
    with pytest.raises(NccError) as wrong:
        decode_bundle(bytes(raw))
    assert str(wrong.value) == (
        "NCC701 Drain: byte 29 is 01, and no field of Drain is there "
        "(bytes outside the fields are zero)"
    )


@pytest.mark.parametrize(
    ("at", "byte", "said"),
    [
        (0, 0xFF, "byte 00 is FF, which is no opcode"),
        (1, 0x11, "byte 01 is 11 and must be 10, the length"),
        (2, 0x01, "byte 02 is 01, and no field of Exit is there"),
        (12, 0x03, "byte 0C of opcode DF is 3; 1 is Exit and 2 is LibraryReload"),
    ],
)
def test_headers_are_strict(at, byte, said):
    raw = bytearray(encode_bundle(Bundle("Exit")))
    raw[at] = byte
    with pytest.raises(NccError, match=said):
        decode_bundle(bytes(raw))


def test_unknown_layouts_are_kept_bit_for_bit():
    raw = b"\x03\x10\0\0" + bytes(range(60))
    bundle = decode_bundle(raw)
    assert bundle.op == "PeRegWrite"
    assert dict(bundle.fields)["raw"] == bytes(range(8, 60))
    assert encode_bundle(bundle) == raw


def test_later_opcodes_are_refused_before():
    place = At("sb", 0, 0)
    raw = encode_bundle(record("RangeSelect", src=place, dst=place))
    with pytest.raises(NccError, match="NCC730 RangeSelect: opcode BC"):
        decode_bundle(raw, 2)
    with pytest.raises(NccError, match="which is no opcode"):
        decode_bundle(b"\x25" + bytes(63))


@pytest.mark.parametrize(
    ("op", "fields", "said"),
    [
        (
            "Copy",
            {"src": At("sb", 0, 0, ((40000, 2),)), "dst": At("sb", 0, 0)},
            "NCC702 Copy: src: step 40000 of dimension 0 is outside -32768..32767 "
            "(split the pattern into two instructions)",
        ),
        (
            "Copy",
            {"src": At("sb", 0, 0, ((1, 2), (3, 70000))), "dst": At("sb", 0, 0)},
            "NCC702 Copy: src: num 70000 of dimension 1 is outside 1..65535 "
            "(split the pattern into two instructions)",
        ),
        (
            "Matmul",
            {"moving": At("sb", 0, 0, ((1, 2),) * 4), "dst": At("psum", 0, 0)},
            "NCC702 Matmul: moving: has 4 dimensions, and 3 fit "
            "(split the pattern into two instructions)",
        ),
        (
            "Copy",
            {"src": At("sb", 128, 0), "dst": At("sb", 0, 0)},
            "NCC705 Copy: src: partition 128, byte 0 is outside the window of sb",
        ),
        ("Copy", {"src": At("sb", 0, 0)}, "NCC742 Copy: Copy lacks its field dst"),
        ("Nop", {"nchan": 3}, "NCC742 Nop: Nop has no field nchan"),
        ("Drain", {"count": 256}, "NCC743 Drain: count: 256 is outside 0..255"),
        ("Drain", {"count": "two"}, "NCC743 Drain: count: 'two' is not a number"),
        (
            "Activate",
            {"src": At("sb", 0, 0), "dst": At("sb", 0, 0), "in_dtype": 0x1A},
            "NCC743 Activate: in_dtype: 26 is outside 0..15",
        ),
        (
            "Activate",
            {"src": At("sb", 0, 0), "dst": At("sb", 0, 0), "bias_dtype": 16},
            "NCC743 Activate: bias_dtype: 16 is outside 0..15",
        ),
        ("Coppy", {}, "NCC741 no opcode is called 'Coppy' (did you mean Copy?)"),
    ],
)
def test_what_does_not_fit_is_refused_and_never_wrapped(op, fields, said):
    with pytest.raises(NccError) as wrong:
        encode_bundle(Bundle(op, tuple(sorted(fields.items()))))
    assert str(wrong.value) == said


def test_a_field_that_stands_twice_is_refused():
    nop = Bundle("Drain", (("count", 1), ("count", 2)))
    found = [str(x) for x in complaints(nop, 3, TARGETS["trn2"], "SP")]
    assert found == ["NCC742 Drain: a field stands twice"]


def test_an_extension_has_no_band():
    with pytest.raises(NccError, match="NCC726 Extension: an Extension has no event band"):
        encode_bundle(Bundle("Extension", (), Band((5, 1), (0, 0), 1)))


def test_streams_name_the_bundle():
    good = encode_bundle(Bundle("Nop"))
    with pytest.raises(NccError, match=r"NCC701 .*bundle 2"):
        decode_stream(good * 2 + bytes(64))
    with pytest.raises(NccError, match="NCC740 the stream has 96 bytes; bundle 1 is cut after 32"):
        decode_stream(good + good[:32])


def test_an_extension_stands_after_its_dma():
    dma = record("DmaDirect2d", src=Dram(1, 0), src_size=2, dst=Dram(2, 0), dst_size=2, dge_op=2)
    with pytest.raises(NccError, match="NCC729 bundle 0: a DmaDirect2d with dge_op 1 to 3"):
        decode_stream(encode_stream([dma, Bundle("Nop")]))
    with pytest.raises(NccError, match="NCC729 bundle 0: an Extension follows"):
        decode_stream(encode_stream([Bundle("Extension")]))
    assert len(decode_stream(encode_stream([dma, Bundle("Extension")]))) == 2


@pytest.mark.parametrize(
    "bits", [0, 1, 0x80000000, 0x7F800000, 0xFF800000, 0x7FC00001, 0xFFFFFFFF, 0x3DCCCCCD]
)
def test_immediates_keep_every_bit_in_the_listing(bits):
    bundle = record(
        "TensorScalar", src=At("sb", 0, 0), dst=At("sb", 0, 0), op0=6, imm0=bits, imm1=bits
    )
    assert read_bundle(split_words(show_bundle(bundle)), 3, NOWHERE) == bundle


@FEW
@given(st.floats(width=32, allow_nan=False))
def test_floats_are_their_bits(value):
    assert bits_f32(f32_bits(value)) == value
    assert struct.pack("<f", value) == f32_bits(value).to_bytes(4, "little")


def test_widths():
    assert [width(k) for k in ("u8", "dtype", "T3D", "name32", "bytes52")] == [1, 1, 16, 32, 52]
