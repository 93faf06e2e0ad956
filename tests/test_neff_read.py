"""What the reader refuses: R1 to R19, each planted, with the sentence that names it."""

from __future__ import annotations

import gzip
import json
import zlib

import attrs
import pytest
from isa_programs import MIXED, matmul
from neff_files import changed, headed, members, rehashed, signed, tar_of, wrapped

from ncc import pack
from ncc.encode.bundle import encode_bundle
from ncc.errors import NccError
from ncc.ir.isa import Bundle
from ncc.pack.archive import Limits, gunzip, gzip_bytes, tar_bytes, untar
from ncc.pack.listing import disasm
from ncc.stages import Stage
from ncc.target import TARGETS
from ncc.verify import Verifier

GOOD = members(matmul())
DEF = "sg00/def.json"
HEADED = wrapped(GOOD, header=True)


def refusal(raw, target=None):
    with pytest.raises(NccError) as wrong:
        pack.read(raw, "m.neff", target)
    assert str(wrong.value.place).startswith("m.neff")
    assert "\n" not in str(wrong.value)
    return str(wrong.value)


def test_good_files_are_read():
    for raw in (HEADED, wrapped(GOOD), wrapped(GOOD, False), wrapped(GOOD, False, True)):
        assert len(pack.read(raw).members) == 15


def test_the_law_of_a_neff_says_what_its_reader_would():
    whole = pack.neff_of(GOOD)
    less = attrs.evolve(whole, members=tuple(m for m in whole.members if m.path != DEF))
    stages = [Stage("neff", TARGETS["trn2"], "pack", (), neff) for neff in (whole, less)]
    Verifier().check(stages[0])
    with pytest.raises(NccError, match=r"NCC806 after pack, info\.json: `digest` is"):
        Verifier().check(stages[1])


@pytest.mark.parametrize("raw", [b"", b"hello", b"HloModule m\n" * 200, bytes(2000)])
def test_not_a_neff(raw):
    assert refusal(raw) == "NCC800 m.neff: not a NEFF: no gzip, tar or header at byte 0"


HEADERS = [
    (HEADED[:900], "NCC801 m.neff: the file has 900 bytes, and its header alone has 1024"),
    (headed(HEADED, header_size=2048), "NCC802 m.neff, header: header_size is 2048"),
    (headed(HEADED, data_size=0), "NCC803 m.neff, header: data_size is 0"),
    (HEADED + b"x", "bytes follow the header (the file is cut short or has bytes after its end)"),
    (HEADED[:-1], "NCC803"),
    (HEADED[:1024], "NCC803"),
    (headed(HEADED, pkg_version=3), "NCC804 m.neff, header: pkg_version is 3"),
    (headed(HEADED, pkg_version=1), "NCC804 m.neff, header: pkg_version is 1, and the payload is"),
    (headed(HEADED, name=b"a\0b".ljust(256, b"\0")), "name has bytes after its end"),
    (headed(HEADED, hash=bytes(32)), "NCC806 m.neff, header: the hash does not fit the payload"),
    (headed(HEADED, uuid=bytes(16)), "NCC806 m.neff, header: uuid is"),
    (headed(HEADED, lnc_size=3), "NCC819 m.neff, header: lnc_size is 3, and 1 and 2 are supported"),
    (headed(HEADED, major=0), "neff_version_major is 0 in the header and 2 in info.json"),
]


@pytest.mark.parametrize(("raw", "said"), HEADERS)
def test_headers(raw, said):
    assert said in refusal(raw)


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        (
            {"header__neff_version_major": 3},
            "neff_version_major is 3, and this reader supports 0 to 2 "
            "(the reader is too old: use a newer ncc, or an older compiler)",
        ),
        (
            {"header__feature_bits": 0x1000 | 1 << 28},
            "feature_bits is 0x10001000, and this reader supports bits 0 to 26, not bit 28 "
            "(the reader is too old: use a newer ncc, or an older compiler)",
        ),
    ],
)
def test_h19_a_feature_the_reader_does_not_know(header, fields, said):
    raw = wrapped(changed(GOOD, "info.json", **fields), header=header)
    place = "header" if header else "info.json"
    assert refusal(raw) == f"NCC805 m.neff, {place}: {said}"


@pytest.mark.parametrize("header", [False, True])
def test_h19_a_feature_the_reader_knows(header):
    raw = wrapped(changed(GOOD, "info.json", header__feature_bits=0x100), header=header)
    record, _ = pack.describe(raw)
    assert record["feature bits"] == "0x100 (indirect-copy bound check)"


@pytest.mark.parametrize("header", [False, True])
@pytest.mark.parametrize(
    ("without", "said"),
    [
        (DEF, "NCC811 m.neff, sg00/def.json: is missing (kelf-0.json names it)"),
        (
            "sg00/Pool0.bin",
            "NCC811 m.neff, sg00/Pool0.bin: is missing (sg00/def.json names it as 'pool_instr')",
        ),
    ],
)
def test_h20_a_member_is_missing(header, without, said):
    found = {k: v for k, v in GOOD.items() if k != without}
    assert refusal(wrapped(signed(found), header=header)) == said


@pytest.mark.parametrize("header", [False, True])
def test_h20_an_unknown_member_is_a_warning(header):
    raw = wrapped(signed({**GOOD, "sg00/notes.txt": b"hello"}), header=header)
    record, rows = pack.describe(raw)
    assert record["warning"] == "sg00/notes.txt is a member that nothing reads"
    assert any(row["member"] == "sg00/notes.txt" for row in rows)


@pytest.mark.parametrize("header", [False, True])
def test_h20_a_stream_is_cut(header):
    found = signed({**GOOD, "sg00/PE0.bin": GOOD["sg00/PE0.bin"][:-32]})
    raw = wrapped(found, header=header)
    said = (
        "NCC813 m.neff, sg00/PE0.bin: has 544 bytes, no multiple of 64: "
        "it ends inside bundle 8 (sg00/def.json names it)"
    )
    assert refusal(raw) == said
    listing, fault = disasm(raw, "m.neff")
    assert str(fault) == said
    assert listing.count("  LoadStationary ") == 4
    assert listing.count("  Matmul ") == 4
    assert "# PE ends early: 32 bytes of bundle 8 are there" in listing
    assert "var lhs id=1" in listing


def test_r6_a_changed_member_breaks_the_digest():
    raw = wrapped({**GOOD, "sg00/PE0.json": GOOD["sg00/PE0.json"] + b" "})
    assert "NCC806 m.neff, info.json: `digest` is" in refusal(raw)


GZIP = wrapped(GOOD)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (GZIP[:-9], "the gzip stream ends before its end"),
        (GZIP[:-1], "the gzip stream ends before its end"),
        (GZIP + b"\0", "1 bytes follow the end of the gzip stream"),
        (GZIP + GZIP, f"{len(GZIP)} bytes follow the end of the gzip stream"),
        (GZIP[:-8] + bytes(4) + GZIP[-4:], "the gzip stream is damaged: incorrect data check"),
        (GZIP[:-4] + bytes(4), "the gzip stream is damaged: incorrect length check"),
        (GZIP[:2] + b"\x07" + GZIP[3:], "the gzip stream is damaged"),
    ],
)
def test_r7_gzip(raw, said):
    assert f"NCC807 m.neff: {said}" in refusal(raw)
    header = rehashed(raw, HEADED)
    assert said in refusal(header)


def test_r8_limits():
    small = Limits(total=1000, members=2, member=100, ratio=2, free=100)
    with pytest.raises(NccError, match="NCC808 the archive inflates to more than 1000 bytes"):
        gunzip(gzip_bytes(bytes(1001)), small)
    with pytest.raises(NccError, match="NCC808 the archive inflates to more than 2 times"):
        gunzip(gzip_bytes(bytes(900)), small)
    with pytest.raises(NccError, match="NCC808 a: has 101 bytes, and at most 100 are read"):
        untar(tar_bytes({"a": bytes(101)}), small)
    with pytest.raises(NccError, match="NCC808 there are more than 2 members"):
        untar(tar_bytes({"a": b"", "b": b"", "c": b""}), small)


def test_r8_a_bomb_is_not_inflated():
    """64 MiB of zeros in 64 KB: refused by the ratio, long before the end."""
    bomb = gzip.compress(bytes(64 << 20), 6, mtime=0)
    assert "NCC808 m.neff: the archive inflates to more than 200 times its size" in refusal(bomb)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "is empty"),
        ("/etc/passwd", "is absolute"),
        ("../x", "has an empty or dotted part"),
        ("sg00//x", "has an empty or dotted part"),
        ("a/./b", "has an empty or dotted part"),
        ("a\\b", "has a backslash or an unprintable character"),
        ("a\nb", "has a backslash or an unprintable character"),
        ("C:x", "names a drive"),
        (b"\xff\xfe", "is not UTF-8"),
    ],
)
def test_r9_names(name, why):
    assert why in refusal(tar_of((name, b"0", b"data")))


def test_r9_names_twice():
    said = refusal(tar_of(("a", b"0", b"1"), ("./a", b"0", b"2")))
    assert (
        said
        == "NCC809 m.neff: the member name 'a' stands twice in the archive (names are short and relative)"
    )


def pax(**keys):
    found = b""
    for key, value in keys.items():
        body = f" {key}={value}\n".encode()
        size = len(body) + 2
        found += str(size).encode() + body
    return found


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (("l", b"2", b""), "is of tar type '2', no regular file or directory"),
        (("l", b"1", b""), "is of tar type '1'"),
        (("dev", b"3", b""), "is of tar type '3'"),
        (("s", b"S", b""), "is of tar type 'S'"),
        (("x", b"x", pax(path="other12")), "an extended tar record sets 'path'"),
        (("x", b"x", pax(size="1234567")), "an extended tar record sets 'size'"),
        (("x", b"x", pax(**{"GNU.sparse.map": "1"})), "sets 'GNU.sparse.map'"),
        (("x", b"x", b"9999 mtime=1\n"), "an extended tar record cannot be read"),
        (("x", b"x", b"nonsense"), "an extended tar record cannot be read"),
    ],
)
def test_r10_entries(entry, said):
    assert said in refusal(tar_of(entry, ("a", b"0", b"x")))


def test_r10_times_and_directories_may_stand_there():
    entries = [("sg00", b"5", b""), ("x", b"x", pax(mtime="123456789"))]
    entries += [(path, b"0", data) for path, data in GOOD.items()]
    assert pack.read(tar_of(*entries)) == pack.read(wrapped(GOOD))


def test_r10_damaged_tars():
    tar = wrapped(GOOD, False)
    assert "the checksum of the tar header at byte 0 is wrong" in refusal(b"x" + tar[1:])
    assert "NCC810" in refusal(tar[:1000])
    assert "without its two empty blocks" in refusal(tar[:1536])
    assert "does not end after the empty block" in refusal(tar[:-1] + b"x")
    assert "is no ustar header" in refusal(tar_of(("a", b"0", b""))[:512] + b"y" * 512)


def test_a_member_of_the_gnu_dialect_is_read():
    """base-256 numbers in the owner and the size, and its own magic."""
    tar = bytearray(wrapped(GOOD, False))
    size = int(tar[124:135], 8)
    tar[257:265] = b"ustar  \0"
    tar[124:136] = b"\x80" + size.to_bytes(11, "big")
    tar[148:156] = b" " * 8
    tar[148:156] = b"%06o\0 " % sum(tar[:512])
    assert len(pack.read(bytes(tar)).members) == 15


PLANTED = [
    ("kelf-0.json", {"graphs": []}, "NCC811 m.neff, kelf-0.json: lists no graph"),
    ("kelf-0.json", {"graphs": "sg00"}, "'graphs' is \"sg00\" and must be a list"),
    ("kelf-0.json", {"graphs": None}, "lacks the key 'graphs'"),
    (
        "kelf-0.json",
        {"graphs": [{"definition": DEF, "name": "a"}] * 2},
        "lists one definition twice",
    ),
    ("kelf-0.json", {"target": "inferentia9"}, "NCC817 m.neff, kelf-0.json: the target is"),
    ("kelf-0.json", {"version": "1.0"}, "NCC818 m.neff, kelf-0.json: has schema version '1.0'"),
    ("neff.json", {"version": "2"}, "NCC818 m.neff, neff.json: has schema version '2'"),
    (DEF, {"version": "9.1"}, "NCC818 m.neff, sg00/def.json: has schema version '9.1'"),
    (DEF, {"pe": None}, "NCC811 m.neff, sg00/def.json: lacks the key 'pe'"),
    (DEF, {"pe_instr": "PE9.bin"}, "NCC811 m.neff, sg00/PE9.bin: is missing (sg00/def.json"),
    (DEF, {"var": []}, "NCC814 m.neff, sg00/def.json: 'var' is [] and must be an object"),
    (
        DEF,
        {"var__lhs__type": "weights"},
        "NCC814 m.neff, sg00/def.json, variable lhs: has the type",
    ),
    (DEF, {"var__lhs__var_id": 2}, "the var_id 2 is used twice"),
    (DEF, {"var__lhs__var_id": 9}, "the var_ids are not 0 to 3"),
    (DEF, {"var__lhs__var_id": -1}, "the var_id -1 is negative"),
    (DEF, {"var__lhs__size": 4}, "has size 4, and its shape and dtype take 131072"),
    (DEF, {"var__lhs__size": None}, "lacks the key 'size'"),
    (DEF, {"var__lhs__size": True}, "'size' is true and must be a whole number"),
    (DEF, {"var__lhs__alignment": 3}, "has size 131072 and alignment 3"),
    (DEF, {"var__lhs__dtype": "bf17"}, "has the dtype 'bf17', which ncc does not know"),
    (DEF, {"var__lhs__shape": [128, -512]}, "which is no number from 0 up"),
    (DEF, {"var__out__type": "input"}, "there is no output variable"),
    (DEF, {"var__lhs__type": "state-buffer"}, "var_id 0 is not the one state-buffer variable"),
    (
        DEF,
        {"dma_queue__qSP__type": "magic"},
        "NCC815 m.neff, sg00/def.json, queue qSP: has the type",
    ),
    (DEF, {"dma_queue__qSP__num_queues": 17}, "has num_queues 17, outside 1..16"),
    (DEF, {"dma_queue__qSP__owner": "gpu"}, "has the owner 'gpu'"),
    (DEF, {"dma_queue__qSP__owner": "act"}, "shares its owner or semaphore with the queue"),
    (DEF, {"dma_queue__qSP__semaphore": 9}, "shares its owner or semaphore with the queue"),
    (DEF, {"dma_queue__qSP__semaphore": 256}, "has the semaphore 256, outside 0..255"),
    (DEF, {"dma_queue__qSP": None}, "NCC815 m.neff, sg00, bundle 0 of SP: no queue of SP is"),
    (DEF, {"dma_queue__qSP__semaphore": 13}, "raises S[12] by 16, and qSP has S[13] by 16"),
    (DEF, {"dma_queue__qSP__num_queues": 8}, "raises S[12] by 16, and qSP has S[12] by 8"),
    (
        DEF,
        {"dma_queue": {f"q{i}": {"type": "data", "num_queues": 16} for i in range(12)}},
        "there are 192 queues, and at most 176 may be",
    ),
    (
        "sg00/tensor_map.json",
        {"inputs": []},
        "NCC820 m.neff, sg00/tensor_map.json: lists the inputs",
    ),
    (
        "sg00/tensor_map.json",
        {"outputs": [{"name": "x"}]},
        "names 'x', which is no output variable",
    ),
    ("sg00/PE0.json", {"dma": [{"queue": "qX"}]}, "a DMA block names the queue 'qX'"),
    (
        "sg00/PE0.json",
        {"dma": [{"queue": "qSP", "desc": [{"from": "abc"}]}]},
        "NCC814 m.neff, sg00/PE0.json: a descriptor's 'from' names 'abc'",
    ),
    (
        "sg00/PE0.json",
        {"dma": [{"queue": "qSP", "desc": [{"to": "lhs", "to_sizes": [4, 4], "to_steps": [1]}]}]},
        "a descriptor's 'to' has 2 sizes and 1 steps",
    ),
    (
        "sg00/PE0.json",
        {
            "dma": [
                {"queue": "qSP", "desc": [{"to": "lhs", "to_sizes": [1] * 5, "to_steps": [1] * 5}]}
            ]
        },
        "at most 4",
    ),
    (
        "sg00/PE0.json",
        {
            "dma": [
                {
                    "queue": "qSP",
                    "desc": [
                        {
                            "from": "out",
                            "from_off": 131000,
                            "from_sizes": [4, 30],
                            "from_steps": [1, 4],
                        }
                    ],
                }
            ]
        },
        "touches bytes 131000 to 131119 of out, which has 131072",
    ),
    ("info.json", {"header__uuid": "xyz"}, "NCC812 m.neff, info.json: uuid is 'xyz'"),
    ("info.json", {"header__num_tpb": -1}, "num_tpb is -1, outside its 32 bits"),
    ("info.json", {"header__tpb_per_node": [256]}, "tpb_per_node is no list"),
    ("info.json", {"header__name": "x" * 300}, "name has more than 256 bytes"),
    ("info.json", {"header__lnc_size": 3}, "NCC819 m.neff, info.json: lnc_size is 3"),
    (
        "info.json",
        {"header__num_tpb": 0},
        "NCC819 m.neff, kelf-0.json: there are 1 subgraphs for 0",
    ),
]


@pytest.mark.parametrize(("path", "keys", "said"), PLANTED)
def test_planted(path, keys, said):
    found = changed(GOOD, path, **keys)
    assert said in refusal(wrapped(found if path == "info.json" else signed(found)))


def test_a_record_that_is_no_object():
    raw = tar_bytes(changed(GOOD, "info.json", header=7))
    assert "'header' is 7 and must be an object" in refusal(raw)


def test_r11_no_kelf():
    found = {k: v for k, v in GOOD.items() if k != "kelf-0.json"}
    said = "NCC811 m.neff, kelf-0.json: is missing (it lists the subgraphs)"
    assert refusal(wrapped(signed(found))) == said


def test_the_older_name_of_the_kelf_is_read():
    found = {("kelf-a.json" if k == "kelf-0.json" else k): v for k, v in GOOD.items()}
    assert pack.read(wrapped(signed(found))).get("kelf-a.json")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"[]\n", "is not a JSON object"),
        (b"{", "is no JSON at line 1, column 2"),
        (b"{} {}", "is no JSON at line 1, column 4"),
        (b'{"a": 1, "a": 2}', "the key 'a' stands twice in one object"),
        (b'{"a": {"b": 1, "b": 2}}', "the key 'b' stands twice in one object"),
        (b'{"a": 99999999999999999999999}', "has more than 64 bits"),
        (b'{"a": 1e999}', "is too large"),
        (b'{"a": NaN}', "NaN is no number of JSON"),
        (b'{"a": ' + b"[" * 65 + b"]" * 65 + b"}", "nests deeper than 64 levels"),
        (b'{"a": ' + b"[" * 100_000, "nests deeper than 64 levels"),
        (b'{"a": "\xff"}', "is not UTF-8 at byte 7"),
        (b"\xef\xbb\xbf{}", "is no JSON at line 1, column 1"),
        (b"", "is no JSON at line 1, column 1"),
    ],
)
@pytest.mark.parametrize("path", ["kelf-0.json", "sg00/DVE0.json"])
def test_r12_json(path, data, said):
    text = refusal(wrapped(signed({**GOOD, path: data})))
    assert text.startswith(f"NCC812 m.neff, {path}: ")
    assert said in text


def stream(*changes):
    raw = bytearray(GOOD["sg00/DVE0.bin"])
    for at, byte in changes:
        raw[at] = byte
    return bytes(raw)


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (stream((0, 0xFF)), "NCC813 m.neff, sg00/DVE0.bin: bundle 0 has the opcode FF, unknown to"),
        (
            stream((1, 0x12)),
            "NCC813 m.neff, sg00/DVE0.bin: byte 01 of bundle 0 is 12 and must be 10",
        ),
        (stream()[:64], "NCC813 m.neff, sg00/DVE0.bin: does not end with an Exit"),
        (
            stream((0x27, 1)),
            "NCC701 m.neff, sg00/DVE0.bin, bundle 0 (Copy): byte 27 is 01, and no field",
        ),
        (stream((76, 2)), "NCC813 m.neff, sg00/DVE0.bin: does not end with an Exit"),
        (encode_bundle(Bundle("Nop")), "does not end with an Exit"),
    ],
)
def test_r13_streams(data, said):
    assert said in refusal(wrapped(signed({**GOOD, "sg00/DVE0.bin": data})))


def test_r15a_addresses():
    raw = bytearray(GOOD["sg00/Activation0.bin"])
    raw[0x2C] = 9
    said = refusal(wrapped(signed({**GOOD, "sg00/Activation0.bin": bytes(raw)})))
    assert said.startswith("NCC820 m.neff, sg00, bundle 0 of Activation: dst is in variable 9")
    raw[0x2C], raw[0x28] = 3, 4
    said = refusal(wrapped(signed({**GOOD, "sg00/Activation0.bin": bytes(raw)})))
    assert "dst touches bytes 4 to 131075 of out, which has 131072" in said


def test_r16_constants():
    found = members(MIXED)
    without = {k: v for k, v in found.items() if k != "sg00/const3.npy"}
    assert refusal(wrapped(signed(without))) == (
        "NCC816 m.neff, sg00/const3.npy: is missing (sg00/def.json, variable eye names it)"
    )
    for data, said in (
        (found["sg00/const3.npy"][:-1], "holds 31 bytes, and sg00/def.json, variable eye has 32"),
        (b"not numpy", "is no NumPy file of format 1"),
        (b"\x93NUMPY\x01\x00\x05\x00{{{{{", "has a NumPy header that cannot be read"),
        (b"\x93NUMPY\x02\x00" + bytes(40), "is no NumPy file of format 1"),
    ):
        assert said in refusal(wrapped(signed({**found, "sg00/const3.npy": data})))
    raw = changed(found, DEF, var__eye__file_name="eye.dat")
    raw["sg00/eye.dat"] = found["sg00/const3.npy"][-32:]
    again = pack.read(wrapped(signed(raw)))
    assert pack.unpack(again).vars[2].data.raw == found["sg00/const3.npy"][-32:]


def test_r17_another_machine():
    said = refusal(wrapped(GOOD), TARGETS["trn1"])
    assert said == (
        "NCC817 m.neff, kelf-0.json: the target is 'cayman', and trn1 runs 'sunda' "
        "(compile for this target)"
    )
    pack.read(wrapped(GOOD), target=TARGETS["trn2"])
    star = wrapped(signed(changed(GOOD, "kelf-0.json", target="*")))
    pack.read(star, target=TARGETS["trn2"])
    old = wrapped(signed(changed(GOOD, "kelf-0.json", target="v3")))
    pack.read(old, target=TARGETS["trn2"])


def test_r18_a_minor_version_is_a_warning():
    raw = wrapped(signed(changed(GOOD, "kelf-0.json", version="0.7")))
    record, _ = pack.describe(raw)
    assert record["warning"] == "kelf-0.json has schema version 0.7, not 0.5"


def test_r19_more_subgraphs_than_cores():
    found = {**GOOD, **{k.replace("sg00", "sg01"): v for k, v in GOOD.items()}}
    graphs = [{"definition": f"sg0{i}/def.json", "name": f"sg0{i}"} for i in (0, 1)]
    found = changed(found, "kelf-0.json", graphs=graphs)
    assert "there are 2 subgraphs for 1 cores" in refusal(wrapped(signed(found)))
    two = pack.read(wrapped(signed(changed(found, "info.json", header__num_tpb=2))))
    assert pack.unpack(two, 1) == pack.unpack(two, 0)
    with pytest.raises(NccError, match=r"NCC811 kelf-0\.json: there is no core 2; there are 2"):
        pack.unpack(two, 2)


def test_a_file_of_another_compiler_is_sound_and_not_run():
    found = changed(GOOD, DEF, var__lhs__dtype=None, var__lhs__type="tmp-buf")
    raw = wrapped(signed(found))
    record, _ = pack.describe(raw)
    assert record["warning"] == "ncc cannot run it: lhs is a tmp-buf without dtype and shape"
    with pytest.raises(NccError, match="NCC814 sg00: ncc cannot run this file"):
        pack.unpack(pack.read(raw))


def test_a_file_without_info_is_read_with_a_warning():
    found = {k: v for k, v in GOOD.items() if k != "info.json"}
    record, _ = pack.describe(gzip_bytes(tar_bytes(found)))
    assert record["warning"].startswith("info.json is missing")


@pytest.mark.parametrize("part", range(4))
def test_flipped_bits_never_give_a_traceback(part):
    """Bits all over the file, in each form: a sentence, or a file that is still sound."""
    compressed, header = bool(part & 1), bool(part & 2)
    good = wrapped(members(MIXED), compressed, header)
    state = 12345 + part
    for _ in range(250):
        raw = bytearray(good)
        for _ in range(1 + state % 3):
            state = zlib.crc32(state.to_bytes(4, "little"))
            raw[state % len(raw)] ^= 1 << (state >> 16) % 8
        survives(bytes(raw))


@pytest.mark.parametrize("path", sorted(members(MIXED)))
def test_damaged_members_never_give_a_traceback(path):
    """Behind a digest that fits, so that the damage reaches the readers of the members."""
    found = members(MIXED)
    state = zlib.crc32(path.encode())
    data = found[path]
    for _ in range(40 if data else 1):
        raw = bytearray(data)
        state = zlib.crc32(state.to_bytes(4, "little"))
        where = state % len(raw) if raw else 0
        match state >> 20 & 3:
            case 0:
                raw[where : where + 1] = bytes([state >> 8 & 0xFF])
            case 1:
                del raw[where : where + 1 + (state >> 10) % 80]
            case 2:
                raw[where:where] = raw[: (state >> 10) % 80]
            case _:
                raw[where : where + 1] = b"9" if raw else b""
        damaged = {**found, path: bytes(raw)}
        if path != "info.json":
            survives(tar_bytes(signed(damaged)))
        else:
            survives(tar_bytes(damaged))


def survives(raw):
    try:
        neff = pack.read(raw, "m.neff")
    except NccError as wrong:
        assert "\n" not in str(wrong)
    else:
        assert neff.get("kelf-0.json") or neff.get("kelf-a.json")
    try:
        text, _ = disasm(raw, "m.neff")
    except NccError:
        return
    assert text.startswith("# ncc isa ")


def test_values_of_any_kind_never_give_a_traceback():
    """Every value of every JSON member replaced by others of the wrong kind."""

    def places(obj, at=()):
        if isinstance(obj, dict | list):
            for key in obj if isinstance(obj, dict) else range(len(obj)):
                yield (*at, key)
                yield from places(obj[key], (*at, key))

    others = (None, -1, 1 << 40, "", "x", [], [None], {}, {"a": None}, True, 0.5, "sb")
    turn = 0
    found = members(MIXED)
    for path in [p for p in found if p.endswith(".json")]:
        for place in places(json.loads(found[path])):
            for value in others[turn % 4 :: 4]:
                turn += 1
                obj = json.loads(found[path])
                inner = obj
                for key in place[:-1]:
                    inner = inner[key]
                inner[place[-1]] = value
                damaged = {**found, path: json.dumps(obj).encode()}
                survives(tar_bytes(damaged if path == "info.json" else signed(damaged)))
