"""The dry run of the reference, whole and with one fault after the other put into its bundles."""

from __future__ import annotations

import attrs
import machine_programs as m
import numpy as np
import pytest
from machine_programs import record

from ncc.encode.bundle import decode_stream, encode_stream
from ncc.errors import NccError
from ncc.ir.isa import Band, Var
from ncc.sim.run import run_isa, run_report
from ncc.target import TARGETS

TRN2 = TARGETS["trn2"]
DRY = m.dry_run()
A, B = m.whole()


def fault(program, seed=None) -> NccError:
    with pytest.raises(NccError) as found:
        run_isa(program, TRN2, [A, B], seed=seed)
    return found.value


def test_the_dry_run_has_the_bytes_that_the_reference_gives():
    pe, sp = DRY.streams[m.PE].bundles, DRY.streams[m.SP].bundles
    act = DRY.streams[m.ACT].bundles
    assert encode_stream(pe[:1]).hex() == (
        "01100000050c00002000000000000000000000000100010001008000010001000600000000008080000000000f"
        "0f000000000000000000000000000000000000"
    )
    assert encode_stream(sp[:2]).hex() == (
        "d41000000000000000000000000c100200000000010000100040000000000000080001000001000000000000000"
        "0001020000000000000000800010020000606"
        "da000000000000000000000000000000000000000004000010800000000000000000000000000000000000000000"
        "000000000000000000000000000000000000"
    )
    assert encode_stream(act[:1]).hex() == (
        "d4100000050300000100000000091000000c000000000010000004000000000080000100000400000000000003"
        "00001000040000000000008000010000040a0a"
    )


def test_the_dry_run_is_exact_in_forty_interleavings():
    want = A @ B
    for seed in (None, *range(40)):
        (got,) = run_isa(DRY, TRN2, [A, B], seed=seed)
        np.testing.assert_array_equal(got, want)


def test_random_values_are_those_of_the_definition():
    draw = np.random.default_rng(3)
    a, b = draw.normal(size=(128, 512)), draw.normal(size=(512, 256))
    from ncc import numerics

    a16, b16 = numerics.cast(a, "bfloat16"), numerics.cast(b, "bfloat16")
    acc = np.zeros((128, 256), np.float32)
    for t in range(4):
        cut = slice(128 * t, 128 * t + 128)
        part = a16[:, cut].astype(np.float64) @ b16[cut].astype(np.float64)
        acc = acc + part.astype(np.float32)
    (got,) = run_isa(DRY, TRN2, [a, b], seed=1)
    np.testing.assert_array_equal(got, acc)


def test_a_report_counts():
    report = run_report(DRY, TRN2, [A, B]).report
    assert report.bundles["Matmul"] == 4 and report.dmas == 9
    assert report.descriptors == 4 * 8 + 4 * 128 + 128
    assert report.warnings == []


def edited(engine, index, **fields):
    bundle = DRY.streams[engine].bundles[index]
    return m.changed(DRY, engine, index, m.with_fields(bundle, **fields))


def rebanded(engine, index, band):
    bundle = DRY.streams[engine].bundles[index]
    return m.changed(DRY, engine, index, attrs.evolve(bundle, band=band))


def test_start_dropped():
    found = fault(edited(m.PE, 1, psum_flags=0))
    assert found.code == "NCC908" and "unwritten" in str(found) and "PE 1 (Matmul)" in str(found)


def test_second_start():
    found = fault(edited(m.PE, 5, psum_flags=1))
    assert found.code == "NCC907" and "PE 5 (Matmul)" in str(found)
    assert "a group is open" in str(found)


def test_stop_dropped():
    found = fault(edited(m.PE, 7, psum_flags=0))
    assert found.code == "NCC907" and "DVE 0 (Copy)" in str(found) and "open" in str(found)


def test_another_bank():
    other = m.chip(0, 2048, (1, 256), space="psum")
    found = fault(edited(m.PE, 3, dst=other))
    assert found.code == "NCC908" and "unwritten" in str(found) and "PE 3 (Matmul)" in str(found)


def test_an_update_lost_is_a_deadlock_that_names_both():
    found = fault(rebanded(m.PE, 7, Band()))
    assert found.code == "NCC901"
    assert "DVE 0 (Copy) waits for S[0] >= 4, which is 3" in str(found)
    assert "Activation 0 (DmaDirect2d) waits for S[3] >= 1, which is 0" in str(found)


WAITS = [
    (engine, index)
    for engine, stream in enumerate(DRY.streams)
    for index, bundle in enumerate(stream.bundles)
    if bundle.band.wait[0] and not (engine == m.DVE and index == 1)
]


@pytest.mark.parametrize("engine, index", WAITS)
@pytest.mark.parametrize("seed", [None, 0, 1])
def test_each_wait_lost_is_named(engine, index, seed):
    bundle = DRY.streams[engine].bundles[index]
    band = attrs.evolve(bundle.band, wait=(0, 0))
    found = fault(rebanded(engine, index, band), seed)
    if bundle.op == "Exit":
        assert found.code == "NCC904" and f"({bundle.op})" in str(found)
    else:
        assert found.code in ("NCC902", "NCC903", "NCC907", "NCC908"), str(found)
        if found.code == "NCC902":
            assert bundle.op in str(found) and "bytes" in str(found)


def test_a_lost_wait_is_a_race_that_names_both_bundles_and_the_bytes():
    bundle = DRY.streams[m.PE].bundles[2]
    found = fault(rebanded(m.PE, 2, attrs.evolve(bundle.band, wait=(0, 0))))
    assert found.code == "NCC902"
    assert "PE 2 (LoadStationary)" in str(found) and "SP 3 (DmaDirect2d)" in str(found)
    assert "sb rows 0 to 127 bytes 256 to 511" in str(found)


def test_a_stray_bit_is_in_no_field():
    raw = bytearray(encode_stream(DRY.streams[m.PE].bundles))
    raw[0x29] |= 4
    with pytest.raises(NccError, match="byte 29"):
        decode_stream(bytes(raw))


def test_reuse_of_a_buffer_without_waiting_is_a_race():
    sp = DRY.streams[m.SP].bundles
    again = m.load(m.SP, m.Dram(2, 0), m.chip(0, 0x400), 128, 512, "bfloat16", 512)
    found = fault(m.changed(m.changed(DRY, m.SP, 12, m.leave((12, 144))), m.SP, 11, sp[11]))
    assert found.code == "NCC901"  # one DMA less than the Exit waits for
    streams = list(DRY.streams)
    streams[m.SP] = attrs.evolve(streams[m.SP], bundles=(*sp[:12], again, m.leave((12, 144))))
    found = fault(attrs.evolve(DRY, streams=tuple(streams)))
    assert found.code == "NCC902" and "SP 12 (DmaDirect2d)" in str(found)


def test_two_dmas_of_one_queue_need_a_wait():
    var = Var("x", 1, "input", "float32", (4, 8))
    out = Var("y", 2, "output", "float32", (4, 8))
    place = m.chip(0, 0)
    one = m.load(m.SP, m.Dram(1, 0), place, 4, 32, "float32", 32)
    two = m.save(m.SP, place, m.Dram(2, 0), 4, 32, "float32", 32)
    waits = m.save(m.SP, place, m.Dram(2, 0), 4, 32, "float32", 32, awaited=(12, 16))
    x = np.arange(32, dtype=np.float32).reshape(4, 8)
    good = m.program({m.SP: [one, waits, m.leave((12, 32))]}, [var, out])
    np.testing.assert_array_equal(run_isa(good, TRN2, [x], seed=0)[0], x)
    with pytest.raises(NccError, match="NCC902"):
        run_isa(m.program({m.SP: [one, two, m.leave((12, 32))]}, [var, out]), TRN2, [x])


def test_unwritten_bytes_travel_and_are_named_where_they_leave():
    out = Var("y", 1, "output", "float32", (4, 8))
    double = record(
        "TensorScalar",
        m.band(None, m.DVE),
        src=m.chip(0, 64, (1, 8)),
        dst=m.chip(0, 0, (1, 8)),
        in_dtype=10,
        out_dtype=10,
        nchan=4,
        op0=4,
        imm0=0x3F800000,
    )
    save = m.save(m.SP, m.chip(0, 0), m.Dram(1, 0), 4, 32, "float32", 32, awaited=(m.DVE, 1))
    bad = m.program({m.DVE: [double, m.leave()], m.SP: [save, m.leave((12, 16))]}, [out])
    with pytest.raises(NccError, match=r"NCC903 SP 0 \(DmaDirect2d\): .*nobody wrote.* output y"):
        run_isa(bad, TRN2, [])


def test_an_output_that_stays_unwritten_is_named():
    out = Var("y", 1, "output", "float32", (4, 8))
    with pytest.raises(NccError, match="NCC903 128 of 128 bytes of output y were never written"):
        run_isa(m.program({}, [out]), TRN2, [])


def test_a_queue_trigger_is_refused_by_name():
    block = record("DMATrigger", queue="q_weights", block=2)
    with pytest.raises(NccError, match=r"NCC915 .*q_weights"):
        run_isa(m.program({m.SP: [block, m.leave()]}, []), TRN2, [])


@pytest.mark.parametrize(
    "streams, code",
    [
        ({m.DVE: [record("Nop")]}, "NCC911"),
        ({m.DVE: [m.leave(), record("Nop"), m.leave()]}, "NCC911"),
        ({m.DVE: [record("Halt"), m.leave()]}, "NCC920"),
        ({m.DVE: [m.leave((9, 1))]}, "NCC901"),
        ({m.PE: [record("LdTags", tags=m.chip(0, 0)), m.leave()]}, "NCC900"),
    ],
)
def test_streams_that_cannot_end(streams, code):
    with pytest.raises(NccError, match=code):
        run_isa(m.program(streams, []), TRN2, [])


def memset(at, rows, count, engine=m.DVE):
    return {
        engine: [
            record("Memset", dst=at, out_dtype=10, nchan=rows, count=count),
            m.leave(),
        ]
    }


@pytest.mark.parametrize(
    "at, rows, code",
    [
        (m.chip(0, 229376 - 28, (1, 8)), 4, "NCC905"),
        (m.chip(96, 0, (1, 8)), 32, ""),
        (m.chip(96, 0, (1, 8)), 33, "NCC906"),
        (m.chip(64, 0, (1, 8)), 64, ""),
        (m.chip(32, 0, (1, 8)), 64, "NCC906"),
        (m.chip(4, 0, (1, 8)), 4, "NCC906"),
        (m.chip(64, 0, (1, 8)), 65, "NCC906"),
        (m.chip(0, 16384 - 16, (1, 8), space="psum"), 4, "NCC905"),
        (m.chip(0, 0, (-1, 8)), 4, "NCC905"),
        (m.chip(0, 28, (-1, 8)), 4, ""),
    ],
)
def test_places_that_an_engine_may_touch(at, rows, code):
    program = m.program(memset(at, rows, 8), [])
    if not code:
        run_isa(program, TRN2, [])
        return
    with pytest.raises(NccError, match=rf"{code} DVE 0 \(Memset\)"):
        run_isa(program, TRN2, [])


def test_pool_has_no_port_to_psum():
    program = m.program(memset(m.chip(0, 0, (1, 8), space="psum"), 4, 8, m.POOL), [])
    with pytest.raises(NccError, match="NCC913"):
        run_isa(program, TRN2, [])


def test_a_dma_outside_its_variable():
    bad = m.load(m.SP, m.Dram(1, 16), m.chip(0, 0), 4, 32, "float32", 32)
    var = Var("x", 1, "input", "float32", (4, 8))
    program = m.program({m.SP: [bad, m.leave((12, 16))]}, [var])
    with pytest.raises(NccError, match=r"NCC905 SP 0 \(DmaDirect2d\): touches bytes 16 to 143 of"):
        run_isa(program, TRN2, [np.zeros((4, 8))])


def test_a_dma_on_the_wrong_queue():
    var = Var("x", 1, "input", "float32", (4, 8))
    bad = m.load(m.ACT, m.Dram(1, 0), m.chip(0, 0), 4, 32, "float32", 32)
    for engine in (m.SP, m.PE):
        program = m.program({engine: [bad, m.leave()]}, [var])
        with pytest.raises(NccError, match="NCC914"):
            run_isa(program, TRN2, [np.zeros((4, 8))])


def test_the_step_limit_ends_a_loop():
    loop = [
        record("Nop"),
        record("CompareAndBranch", compare=0, target_mode=3, target=-64),
        m.leave(),
    ]
    with pytest.raises(NccError, match="NCC910"):
        run_report(m.program({m.SP: loop}, []), TRN2, [], limit=1000)


@pytest.mark.parametrize("step", [-128, 192, 32])
def test_a_branch_out_of_its_stream(step):
    jump = record("CompareAndBranch", compare=0, target_mode=3, target=step)
    said = (
        rf"NCC918 SP 1 \(CompareAndBranch\): branches {step} bytes away, which is no bundle of SP"
    )
    with pytest.raises(NccError, match=said):
        run_isa(m.program({m.SP: [record("Nop"), jump, m.leave()]}, []), TRN2, [])


def test_wrong_inputs():
    for given in ([A], [A, A], [A, B, B]):
        with pytest.raises(NccError, match="NCC006"):
            run_isa(DRY, TRN2, given)
    with pytest.raises(NccError, match="NCC916"):
        run_isa(DRY, TARGETS["trn1"], [A, B])


def test_flipped_bits_give_a_result_or_one_sentence():
    draw = np.random.default_rng(0)
    said = 0
    for _ in range(120):
        engine = draw.choice([m.PE, m.ACT, m.DVE, m.SP])
        raw = bytearray(encode_stream(DRY.streams[engine].bundles))
        raw[draw.integers(len(raw))] ^= 1 << int(draw.integers(8))
        try:
            stream = attrs.evolve(DRY.streams[engine], bundles=decode_stream(bytes(raw)))
            streams = (*DRY.streams[:engine], stream, *DRY.streams[engine + 1 :])
            run_isa(attrs.evolve(DRY, streams=streams), TRN2, [A, B])
        except NccError as fault:
            said += 1
            assert fault.said and "\n" not in str(fault)
    assert said > 80
