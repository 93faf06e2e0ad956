"""What ncc writes: members, three forms, the same bytes each time, and back again."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import os
import struct
import subprocess
import sys
import tarfile
import uuid
from pathlib import Path

import numpy as np
import pytest
from isa_programs import MIXED, matmul
from neff_files import FORMS

from ncc import pack
from ncc.encode.text import parse
from ncc.errors import UsageError
from ncc.pack import text as neff_text
from ncc.pack.laws import LAWS, signature
from ncc.pack.listing import asm, disasm
from ncc.target import TARGETS

PROGRAMS = pytest.mark.parametrize("text", [matmul(), MIXED], ids=["matmul", "mixed"])


@PROGRAMS
def test_unpack_inverts_build(text):
    program = parse(text)
    assert pack.unpack(pack.build(program)) == program


@PROGRAMS
@pytest.mark.parametrize(("compressed", "header"), FORMS)
def test_every_form_reads_back(text, compressed, header):
    neff = pack.build(parse(text))
    raw = pack.to_bytes(neff, compressed, header)
    again = pack.read(raw)
    assert pack.to_bytes(again, compressed, header) == raw
    assert pack.to_bytes(again) == pack.to_bytes(neff)
    assert pack.unpack(again) == parse(text)


@PROGRAMS
@pytest.mark.parametrize(("compressed", "header"), FORMS)
def test_asm_of_disasm_gives_the_same_file(text, compressed, header):
    raw = pack.to_bytes(pack.build(parse(text)), compressed, header)
    listing, fault = disasm(raw)
    assert fault is None
    assert pack.to_bytes(asm(listing), compressed, header) == raw


def test_the_header_has_the_documented_layout():
    raw = pack.to_bytes(pack.build(parse(matmul())), header=True)
    package, size, data, major, minor = struct.unpack_from("<5Q", raw)
    assert (package, size, data, major, minor) == (2, 1024, len(raw) - 1024, 2, 0)
    assert raw[0xAC:0xBC] == hashlib.md5(raw[1024:]).digest()
    assert raw[0xBC:0xCC] == b"0" * 16
    assert raw[0xDC:0xE3] == b"matmul\0"
    assert struct.unpack_from("<I", raw, 0xA8) == (1,)
    assert struct.unpack_from("<I", raw, 0x1DC) == (1,)
    assert raw[0x1E0:0x220] == b"\1" + bytes(63)
    assert struct.unpack_from("<QI", raw, 0x220) == (0x1000, 1)
    assert not any(raw[0x22C:0x400])
    assert raw[0x400:0x402] == b"\x1f\x8b"
    assert uuid.UUID(bytes=raw[0xCC:0xDC]).version == 4


def test_a_bare_tar_has_package_version_1_and_sha256():
    raw = pack.to_bytes(pack.build(parse(matmul())), compressed=False, header=True)
    assert int.from_bytes(raw[:8], "little") == 1
    assert raw[0xAC:0xCC] == hashlib.sha256(raw[1024:]).digest()
    assert json.loads(pack.read(raw).get("info.json"))["header"]["pkg_version"] == 1


def test_the_archive_is_what_other_tools_read():
    raw = pack.to_bytes(pack.build(parse(MIXED)))
    assert raw[:10] == bytes.fromhex("1f8b0800000000000003")
    plain = gzip.decompress(raw)
    assert len(plain) % 10240 == 0
    with tarfile.open(fileobj=io.BytesIO(plain)) as tar:
        infos = tar.getmembers()
        names = [i.name for i in infos]
        array = np.load(io.BytesIO(tar.extractfile("sg00/const3.npy").read()))
    assert names == sorted(names)
    assert {(i.uname, i.gname, i.uid, i.gid, i.mode, i.mtime) for i in infos} == {
        ("nobody", "nobody", 0, 0, 0o644, 0)
    }
    assert array.dtype == np.uint8
    assert array.shape == (32,)


def test_the_definition_says_what_a_machine_needs():
    members = {m.path: m.data for m in pack.build(parse(MIXED)).members}
    found = json.loads(members["sg00/def.json"])
    assert found["var"]["sb.0"] == {"size": 1 << 25, "type": "state-buffer", "var_id": 0}
    assert found["var"]["sb"]["type"] == "output"  # a name that the program took first
    assert found["var"]["x y"]["var_id"] == 1
    assert found["var"]["spill"]["backing_variable_off"] == 64
    assert found["dma_queue"] == {
        "qPool": {"num_queues": 4, "owner": "pool", "semaphore": 10, "type": "dynamic"}
    }
    tensors = json.loads(members["sg00/tensor_map.json"])
    assert tensors["inputs"] == [
        {"declared": "float8_e4m3fn", "dtype": "bfloat16", "name": "x y", "shape": [4, 8]}
    ]
    sets = json.loads(members["sg00/Activation0.json"])["activation_function_sets"]
    assert sets == ["exp_and_others", "natural_log"]
    info = json.loads(members["info.json"])
    assert info["name"] == "a program"
    assert info["header"]["feature_bits"] == 0x9000  # a DMA, and one that converts
    assert info["engines"] == {"act": True, "dve": True, "pe": True, "pool": True, "sp": False}


def test_json_members_are_plain():
    for member in pack.build(parse(matmul())).members:
        if member.path.endswith(".json"):
            text = member.data.decode()
            again = json.dumps(json.loads(text), indent=1, sort_keys=True) + "\n"
            assert text == again


def test_a_program_without_dma_is_version_1():
    text = "program p target=cayman gen=3\nvar out id=1 kind=output dtype=float32 shape=(2,3)\n"
    record, _ = pack.describe(pack.to_bytes(pack.build(parse(text))))
    assert record["version"] == "1.0"
    assert record["feature bits"] == "0x0 (none)"
    assert record["engine bitmap"] == "0x00 (no engine)"


def test_equal_programs_give_equal_bytes_in_any_process():
    code = (
        "import hashlib\nfrom isa_programs import MIXED\nfrom ncc import pack\n"
        "from ncc.encode.text import parse\n"
        "print(hashlib.sha256(pack.to_bytes(pack.build(parse(MIXED)))).hexdigest())"
    )
    path = os.pathsep.join(sys.path)
    digests = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={"PYTHONPATH": path, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    here = hashlib.sha256(pack.to_bytes(pack.build(parse(MIXED)))).hexdigest()
    assert digests == {here + "\n"}


def test_writing_is_whole_or_not_at_all(tmp_path, monkeypatch):
    neff = pack.build(parse(matmul()))
    path = tmp_path / "m.neff"
    pack.write(neff, path)
    first = path.read_bytes()
    assert pack.read(path) == pack.read(first)

    def broken(here, there):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", broken)
    with pytest.raises(UsageError, match=r"NCC003 cannot write .*: no space left on device"):
        pack.write(pack.build(parse(MIXED)), path)
    assert path.read_bytes() == first
    assert [p.name for p in tmp_path.iterdir()] == ["m.neff"]


def test_the_list_names_the_seeds_members():
    record, rows = pack.describe(pack.to_bytes(pack.build(parse(matmul())), header=True))
    seeds = {row["member"]: row["seed's name"] for row in rows if row["seed's name"]}
    assert seeds == {
        "sg00/PE0.bin": "PE.bin",
        "sg00/Activation0.bin": "Activation.bin",
        "sg00/Pool0.bin": "Pool.bin",
        "sg00/DVE0.bin": "DVE.bin",
        "sg00/SP0.bin": "SP.bin",
    }
    assert record["form"] == "header, gzip"
    assert record["version"] == "2.0"
    assert record["engine bitmap"] == "0x1b (PE, Activation, DVE, SP)"
    assert record["feature bits"] == "0x1000 (DGE)"
    assert len(record["uuid"]) == 32
    assert {row["member"]: row["bytes"] for row in rows}["sg00/SP0.bin"] == 832


@PROGRAMS
def test_the_printed_stage_reads_back(text):
    neff = pack.build(parse(text))
    printed = neff_text.show(neff)
    assert neff_text.parse(printed) == neff
    assert "  # Exit" in printed


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("member a", "expected `member PATH text`"),
        ("member a.bin bytes\n  0g", "expected hexadecimal digits"),
        ("member a.bin bytes\n  00 y2", "expected hexadecimal digits"),
        ("member a.bin bytes\n  00 x999999999999", "expected hexadecimal digits"),
        ("member a.bin bytes\nmember a.bin bytes", "the member a.bin is there twice"),
        ("  00", "expected `member PATH text`"),
    ],
)
def test_a_printed_stage_that_cannot_be_read_is_refused(line, said):
    with pytest.raises(Exception, match="NCC009") as wrong:
        neff_text.parse(line, "n.txt", 1)
    assert said in str(wrong.value)


@PROGRAMS
def test_laws_hold_and_signatures_agree(text):
    from ncc.encode import laws as isa_laws

    program = parse(text)
    neff = pack.build(program)
    machine = next(t for t in TARGETS.values() if t.neff == program.neff_target)
    assert [str(w) for law in LAWS for w in law.check(neff, machine)] == []
    assert signature(neff) == isa_laws.signature(program)
