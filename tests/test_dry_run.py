"""The reference's dry-run programs: compiled, traced to their bundles, and run from their bytes."""

from __future__ import annotations

import numpy as np
import pytest
from whole_programs import (
    HERE,
    counts,
    field,
    hlo,
    printed,
    product,
    program_of,
    seed,
    streams,
    waits,
)

from ncc import checking, driver, values
from ncc.encode.bundle import encode_bundle
from ncc.ir.bir_opcodes import key
from ncc.sim.run import run_neff

SEEDS = 40  # random interleavings of each program

# What stands in every LoadStationary and Matmul of the seed on gen3, addresses and event bands left
# out: 128 x 128 weights, 256 columns that move, bf16, all row and column groups, byte 2E zero.
WEIGHTS = (
    "0110 0000 ........ ........ 00000000 ........ 0100 0100 0100 8000 0100 0100"
    "06 00 00 00 00 00 80 80 00 00 00 00 0f 0f 00 00 00000000000000000000000000000000"
)
MOVING = (
    "0210 0000 ........ ........ 00000000 ........ 0100 0100 0100 0001 0100 0100"
    "06 00 00 00 00 00 80 80 00 00 00 {} 0f 0f 00 00 ........ 0100 0100 0100 0001 0100 0100"
)
# the same of the dry run's transposing DMA with its extension, and of its last DMA
TURN = (
    "d410 0000 ........ ........ 000c1002 ........ 01000010 00400000 00000000 0800 0100 0001 0000"
    "........ 00000010 20000000 00000000 0800 0100 2000 06 06"
)
TILE = "da00" + "00" * 18 + "00040000 1080" + "00" * 38
STORE = (
    "d410 0000 ........ ........ 00091000 ........ 00000010 00000400 00000000 8000 0100 0004 0000"
    "........ 03000010 00040000 00000000 8000 0100 0004 0a 0a"
)


def masked(raw: bytes, pattern: str) -> str:
    """The bytes in hexadecimal, with a dot where the pattern has one."""
    text, marks = raw.hex(), pattern.replace(" ", "")
    return "".join("." if m == "." else t for t, m in zip(text, marks, strict=True))


def from_bytes(stage, inputs, seeds=SEEDS, **ends):
    """The outputs from the bytes, the same in every interleaving that was tried."""
    neff = driver.compile(stage, **ends).module
    first = run_neff(neff, stage.target, inputs)
    for number in range(seeds):
        for want, got in zip(first, run_neff(neff, stage.target, inputs, seed=number), strict=True):
            np.testing.assert_array_equal(got, want, f"interleaving {number}")
    return first


def wholes(stage):
    return values.whole(stage, 0)


def exact(*arrays):
    return [np.asarray(a, np.float64) for a in arrays]


# --- the seed matmul ------------------------------------------------------------------------------


def test_the_seed_has_the_streams_of_the_dry_run():
    program = program_of(seed())
    assert counts(program) == (9, 2, 0, 2, 13)
    found = streams(program)
    assert [b.op for b in found["PE"]] == ["LoadStationary", "Matmul"] * 4 + ["Exit"]
    assert [b.op for b in found["Activation"]] == ["DmaDirect2d", "Exit"]
    assert [b.op for b in found["DVE"]] == ["Copy", "Exit"]
    assert [b.op for b in found["SP"]] == ["DmaDirect2d", "Extension", "DmaDirect2d"] * 4 + ["Exit"]


def test_the_seed_waits_as_the_dry_run_does():
    found = streams(program_of(seed()))
    assert waits(found["PE"]) == [("LoadStationary", 12, 32 * t) for t in (1, 2, 3, 4)]
    assert waits(found["Activation"]) == [("DmaDirect2d", 3, 1), ("Exit", 9, 16)]
    assert waits(found["DVE"]) == [("Copy", 0, 4)]
    assert waits(found["SP"]) == [("Exit", 12, 128)]
    raised = [(e, b.op, b.band.update[1]) for e, s in found.items() for b in s if b.band.update[0]]
    assert raised == [*[("PE", "Matmul", 0)] * 4, ("DVE", "Copy", 3)]
    dmas = [
        (e, field(b, "semaphore"), field(b, "sem_increment"))
        for e, s in found.items()
        for b in s
        if b.op == "DmaDirect2d"
    ]
    assert dmas == [("Activation", 9, 16), *[("SP", 12, 16)] * 8]


def test_the_eight_bundles_of_pe_are_the_references():
    bundles = streams(program_of(seed()))["PE"][:8]
    flags = ("01", "00", "00", "02")  # START on the first only, STOP on the last only
    for number, bundle in enumerate(bundles):
        pattern = MOVING.format(flags[number // 2]) if number % 2 else WEIGHTS
        raw = encode_bundle(bundle, 3)
        assert masked(raw, pattern) == pattern.replace(" ", ""), f"bundle {number}"
        assert raw[0x2E] == 0
    products = bundles[1::2]
    assert {(field(b, "dst").space, field(b, "dst").byte) for b in products} == {("psum", 0)}
    places = {field(b, "src").byte for b in bundles[::2]}
    places |= {field(b, "moving").byte for b in products}
    assert len(places) == 8, "eight tiles lie in eight places"


def test_the_dmas_are_the_references():
    found = streams(program_of(seed()))
    sp = [encode_bundle(b, 3) for b in found["SP"]]
    for tile in range(4):
        assert masked(sp[3 * tile], TURN) == TURN.replace(" ", "")
        assert sp[3 * tile + 1].hex() == TILE.replace(" ", "")
    sources = [(field(b, "src").var, field(b, "src").byte) for b in found["SP"][:12:3]]
    assert sources == [(1, 0x100 * t) for t in range(4)]
    sources = [(field(b, "src").var, field(b, "src").byte) for b in found["SP"][2:12:3]]
    assert sources == [(2, 0x10000 * t) for t in range(4)]
    store = encode_bundle(found["Activation"][0], 3)
    assert masked(store, STORE) == STORE.replace(" ", "")


def test_the_seed_runs_from_its_bytes():
    inputs = wholes(seed())
    lhs, rhs = exact(*inputs)
    (got,) = from_bytes(seed(), inputs)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, lhs @ rhs)


def test_trn1_has_four_transposes_more():
    """No DMA transposes there: PE does, with the identity as its moving operand, and DVE evicts."""
    stage = seed("trn1")
    program = program_of(stage)
    ops = [b.op for b in streams(program)["PE"]]
    assert (ops.count("LoadStationary"), ops.count("Matmul")) == (8, 8)
    products = [b for b in streams(program)["PE"] if b.op == "Matmul"]
    # a transpose is a group of its own; the four products are one group, as on trn2
    assert [field(b, "psum_flags") for b in products] == [3, 3, 3, 3, 1, 0, 0, 2]
    assert [b.op for b in streams(program)["DVE"]] == ["Cast"] * 4 + ["Copy", "Exit"]
    assert not any(b.op == "Extension" for s in program.streams for b in s.bundles)
    inputs = wholes(stage)
    lhs, rhs = exact(*inputs)
    np.testing.assert_array_equal(from_bytes(stage, inputs)[0], lhs @ rhs)


# --- its relatives --------------------------------------------------------------------------------


def test_bias_and_relu_have_the_streams_of_the_dry_run():
    stage = hlo(product(128, 512, 256, bias=True, relu=True))
    program = program_of(stage)
    assert counts(program) == (9, 3, 0, 3, 14)
    found = streams(program)
    assert [b.op for b in found["Activation"]] == ["Activate", "DmaDirect2d", "Exit"]
    # the sum has two waits, for the product and for the biases, and a bundle holds one
    assert [b.op for b in found["DVE"]] == ["EventSemaphore", "TensorTensor", "Exit"]
    (row,) = [b for b in found["SP"] if b.op == "DmaDirect2d" and field(b, "src").var == 3]
    assert field(row, "src_step") == 0, "one row goes to all partitions"
    assert field(row, "src_num") == (128, 1)
    inputs = wholes(stage)
    lhs, rhs, bias = exact(*inputs)
    np.testing.assert_array_equal(from_bytes(stage, inputs)[0], np.maximum(lhs @ rhs + bias, 0))


def test_k_640_takes_five_pairs():
    stage = hlo(product(128, 640, 256))
    bundles = streams(program_of(stage))["PE"]
    assert [b.op for b in bundles] == ["LoadStationary", "Matmul"] * 5 + ["Exit"]
    assert [field(b, "psum_flags") for b in bundles[1::2]] == [1, 0, 0, 0, 2]
    inputs = wholes(stage)
    lhs, rhs = exact(*inputs)
    np.testing.assert_array_equal(from_bytes(stage, inputs)[0], lhs @ rhs)


def test_n_768_takes_two_banks():
    stage = hlo(product(128, 512, 768))
    placed = driver.compile(stage, stop_after="alloc-psum").module
    banks = {
        loc.bank for of in placed.main.sets if of.memory == "PSUM" for loc in of.locs if loc.live
    }
    assert banks == {0, 1}
    flags = driver.compile(stage, stop_after="mm-acc-flags").module.main.blocks[0].insts
    found = [key(i, "accumulation_flag") for i in flags if i.opcode == "Matmult"]
    assert sorted(found) == [1, 1, 4, 4, 4, 4, 6, 6], "two groups of four"
    inputs = wholes(stage)
    lhs, rhs = exact(*inputs)
    np.testing.assert_array_equal(from_bytes(stage, inputs)[0], lhs @ rhs)


# --- the programs that are written as printed BIR -------------------------------------------------


@pytest.mark.parametrize("name", ["softmax", "two_buffers", "halves", "interleaved"])
def test_the_written_programs_print_as_they_are_written(name):
    assert printed(name).text() == (HERE / "bir_programs" / f"{name}.txt").read_text()


def test_softmax_from_its_bytes():
    """Largest first, so that exp cannot overflow: even rows near 1000 come out right."""
    stage = printed("softmax")
    program = program_of(stage)
    assert counts(program) == (0, 5, 0, 4, 2)
    found = streams(program)
    assert [b.op for b in found["Activation"]] == [
        "ActivationTableLoad",
        "Activate",
        "ActivationReadAccumulator",
        "DmaDirect2d",
        "Exit",
    ]
    assert [b.op for b in found["DVE"]] == ["TensorReduce", "Reciprocal", "TensorScalar", "Exit"]
    x = np.random.default_rng(0).normal(size=(128, 512)).astype(np.float32) * 8
    x[5] += 1000
    (got,) = from_bytes(stage, [x])
    wide = x.astype(np.float64)
    e = np.exp(wide - wide.max(1, keepdims=True))
    assert np.abs(got - e / e.sum(1, keepdims=True)).max() < 1e-6
    np.testing.assert_allclose(got.sum(1), 1, atol=1e-5)


def test_two_buffers_run_ahead():
    """Sixteen products from two buffers: each load waits only for the product before its buffer's."""
    stage = printed("two_buffers")
    program = program_of(stage)
    assert counts(program) == (33, 2, 0, 2, 33)
    found = streams(program)
    assert waits(found["PE"]) == [("LoadStationary", 12, 32 * t) for t in range(1, 17)]
    loads = waits(found["SP"])
    assert loads == [*[("DmaDirect2d", 0, t) for t in range(1, 15)], ("Exit", 12, 512)]
    places = [field(b, "src").byte for b in found["PE"] if b.op == "LoadStationary"]
    assert places == [places[0], places[1]] * 8 and places[0] != places[1]
    inputs = wholes(stage)
    lhs_t, rhs = exact(*inputs)
    np.testing.assert_array_equal(from_bytes(stage, inputs)[0], lhs_t.T @ rhs)


def test_two_groups_in_the_halves_of_a_bank():
    """The second begins on the zeros that the first one's START left, and only adds."""
    stage = printed("halves")
    program = program_of(stage)
    found = streams(program)
    assert [b.op for b in found["PE"]] == ["LoadStationary", *["Matmul"] * 3, "Exit"]
    products = found["PE"][1:4]
    assert [field(b, "psum_flags") for b in products] == [3, 0, 2]
    assert [field(b, "dst").byte for b in products] == [0, 1024, 1024]
    inputs = wholes(stage)
    w, x = exact(*inputs)
    want = w.T @ np.concatenate([x[:, :256], x[:, 256:512] + x[:, 512:]], 1)
    np.testing.assert_array_equal(from_bytes(stage, inputs)[0], want)


def test_two_groups_in_one_bank_interleaved():
    stage = printed("interleaved")
    products = [b for b in streams(program_of(stage))["PE"] if b.op == "Matmul"]
    assert [field(b, "psum_flags") for b in products] == [1, 0, 2, 2]
    assert [field(b, "dst").byte for b in products] == [0, 1024, 0, 1024]
    inputs = wholes(stage)
    w, x = exact(*inputs)
    want = w.T @ np.concatenate([x[:, :256] + x[:, 512:768], x[:, 256:512] + x[:, 768:]], 1)
    np.testing.assert_array_equal(from_bytes(stage, inputs)[0], want)


@pytest.mark.parametrize("name", ["softmax", "two_buffers", "halves", "interleaved"])
def test_every_stage_of_a_written_program_means_the_same(name):
    stage = printed(name)
    sets = [checking.whole_numbers(stage), checking.random_numbers(stage)]
    result = checking.check(stage, driver.plan(stage), sets)
    assert not result.failed, f"{result.place}: {result.failed}"
    assert result.rows[-1]["pass"] == "pack"
