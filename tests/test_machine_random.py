"""Generated programs: the verdict never depends on the interleaving, and without a race neither do
the numbers."""

from __future__ import annotations

import random

import machine_programs as m
import numpy as np
from machine_programs import record

from ncc.encode.codes import ACT_FUNC, ALU
from ncc.encode.values import f32_bits, word_of
from ncc.errors import NccError
from ncc.ir.isa import Dram, Var
from ncc.sim.run import run_isa
from ncc.target import TARGETS

TRN2 = TARGETS["trn2"]
F32 = 10
SLOTS, WIDTH = 5, 8


def tile(slot: int, half: int):
    """A slot, or one of its halves: tiles that overlap only in part."""
    count = WIDTH if half == 2 else WIDTH // 2
    return m.chip(0, 4 * (slot * WIDTH + (half % 2) * WIDTH // 2), (1, count)), count


def generated(seed: int):
    """Streams of four engines, every wait on a count that earlier bundles reach."""
    draw = random.Random(seed)
    streams: dict[int, list] = {e: [] for e in (m.ACT, m.POOL, m.DVE, m.SP)}
    counts = dict.fromkeys(streams, 0)
    queue = 0
    for n in range(draw.randint(8, 22)):
        engine = draw.choice(list(streams))
        waits = []
        for other in streams:
            if other != engine and counts[other] and draw.random() < 0.75:
                newest = draw.random() < 0.8
                waits.append((other, counts[other] if newest else draw.randint(1, counts[other])))
        if queue and draw.random() < 0.75:
            waits.append((12, 16 * (queue if draw.random() < 0.8 else draw.randint(1, queue))))
        for wait in waits:
            streams[engine].append(record("EventSemaphore", m.wait(*wait)))
        slot, half = draw.randrange(SLOTS), draw.randrange(3)
        to, count = tile(slot, half)
        source, _ = tile(draw.randrange(SLOTS), 2 if half == 2 else draw.randrange(2))
        if engine == m.SP:
            queue += 1
            src = Dram(1, 0) if draw.random() < 0.5 else m.chip(0, source.byte)
            step = 4 * WIDTH if isinstance(src, Dram) else 0x40000
            streams[engine].append(
                record(
                    "DmaDirect2d",
                    src=src,
                    src_num=(2, 1),
                    src_step=(step, 0),
                    src_size=4 * count,
                    dst=m.chip(0, to.byte),
                    dst_num=(2, 1),
                    dst_step=(0x40000, 0),
                    dst_size=4 * count,
                    src_dtype=F32,
                    dst_dtype=F32,
                    semaphore=12,
                    sem_increment=16,
                )
            )
            continue
        counts[engine] += 1
        streams[engine].append(
            record(
                "TensorScalar" if engine != m.ACT else "Copy",
                m.band(None, engine),
                src=source,
                dst=to,
                in_dtype=F32,
                out_dtype=F32,
                nchan=2,
                **({} if engine == m.ACT else {"op0": ALU["add"], "imm0": f32_bits(n + 1.0)}),
            )
        )
    first = [
        m.load(m.SP, Dram(1, 0), m.chip(0, 4 * WIDTH * s), 2, 4 * WIDTH, "float32", 4 * WIDTH)
        for s in range(SLOTS)
    ]
    ready = 16 * SLOTS
    for engine, stream in streams.items():
        for i, bundle in enumerate(stream):
            if bundle.op == "EventSemaphore" and bundle.band.wait[1] == 12:
                stream[i] = record("EventSemaphore", m.wait(12, bundle.band.value + ready))
        stream[:0] = [record("EventSemaphore", m.wait(12, ready))]
        if engine != m.SP:
            stream.append(m.leave())
    last = [record("EventSemaphore", m.wait(e, n)) for e, n in counts.items() if n]
    last.append(record("EventSemaphore", m.wait(12, ready + 16 * queue)))
    save = m.save(m.SP, m.chip(0, 0), Dram(2, 0), 2, 4 * WIDTH * SLOTS, "float32", 160)
    streams[m.SP] = [*first, *streams[m.SP], *last, save, m.leave((12, ready + 16 * queue + 16))]
    variables = [
        Var("x", 1, "input", "float32", (2, WIDTH)),
        Var("y", 2, "output", "float32", (2, WIDTH * SLOTS)),
    ]
    return m.program(streams, variables)


def outcome(program, x, seed):
    try:
        return "", run_isa(program, TRN2, [x], seed=seed)[0]
    except NccError as fault:
        return fault.code, None


def test_no_race_means_one_result():
    x = np.random.default_rng(0).normal(size=(2, WIDTH)).astype(np.float32)
    good = bad = 0
    for seed in range(60):
        program = generated(seed)
        code, want = outcome(program, x, None)
        assert code in ("", "NCC902"), code
        for other in range(3):
            again, got = outcome(program, x, other)
            assert again == code, (seed, other)
            if want is not None:
                np.testing.assert_array_equal(got, want)
        good, bad = good + (code == ""), bad + (code != "")
    assert good >= 8 and bad >= 8, (good, bad)


def test_softmax_of_rows_from_bundles():
    """Negated row maximum, exp with bias and sum, read-back, reciprocal, scale (dry run 16.6)."""
    rows, n = 128, 512
    x_at, e_at = m.chip(0, 0, (1, n)), m.chip(0, 4 * n, (1, n))
    low, total, inverse = (m.chip(0, 8 * n + 32 * i, (1, 1)) for i in range(3))
    plain = {"in_dtype": F32, "out_dtype": F32, "nchan": rows}
    dve = [
        record(
            "TensorReduce",
            m.band((12, 16), m.DVE),
            src=x_at,
            dst=low,
            op=ALU["max"],
            op_dim=2,
            negated=1,
            **plain,
        ),
        record("Reciprocal", m.band((m.ACT, 2), m.DVE), src=total, dst=inverse, **plain),
        record(
            "TensorScalar",
            m.band(None, m.DVE),
            src=e_at,
            dst=e_at,
            op0=ALU["mult"],
            imm0_src=1,
            imm0=word_of(m.chip(0, inverse.byte)),
            **plain,
        ),
        m.leave(),
    ]
    act = [
        record("ActivationTableLoad", table_set=0),
        record(
            "Activate",
            m.band((m.DVE, 1), m.ACT),
            src=x_at,
            dst=e_at,
            act_func=ACT_FUNC["Exp"],
            scale=f32_bits(1.0),
            bias=word_of(m.chip(0, low.byte)),
            bias_dtype=F32,
            accumulator_cmd=3,
            **plain,
        ),
        record(
            "ActivationReadAccumulator",
            m.band(None, m.ACT),
            dst=total,
            out_dtype=F32,
            nchan=rows,
            count=1,
        ),
        m.save(
            m.ACT, m.chip(0, 4 * n), Dram(2, 0), rows, 4 * n, "float32", 4 * n, awaited=(m.DVE, 3)
        ),
        m.leave((9, 16)),
    ]
    sp = [
        m.load(m.SP, Dram(1, 0), m.chip(0, 0), rows, 4 * n, "float32", 4 * n),
        m.leave((12, 16)),
    ]
    variables = [
        Var("x", 1, "input", "float32", (rows, n)),
        Var("y", 2, "output", "float32", (rows, n)),
    ]
    program = m.program({m.ACT: act, m.DVE: dve, m.SP: sp}, variables)
    x = np.random.default_rng(1).normal(size=(rows, n)).astype(np.float32) * 4
    wide = x.astype(np.float64)
    wide = np.exp(wide - wide.max(axis=1, keepdims=True))
    want = wide / wide.sum(axis=1, keepdims=True)
    for seed in (None, 0, 1):
        (got,) = run_isa(program, TRN2, [x], seed=seed)
        np.testing.assert_allclose(got, want, atol=2e-7)
