"""Random programs from their bytes: the same values as in program order, however engines interleave."""

from __future__ import annotations

import attrs
import numpy as np
import pytest
from order_programs import TAIL, TRN2, chip, dram, module, seed, through, whole
from order_random import flagged, program

from ncc.errors import NccError
from ncc.interp.bir import run
from ncc.ir.bir import Ap, Inst, Module, with_insts
from ncc.passes import load
from ncc.sim.run import run_isa


def filled(number: int) -> Module:
    """A random program that finds every byte written."""
    made = program(number)
    first = [
        Inst(
            "f0", "DMACopy", "DMA", (whole("x", "float32", 64, 6),), (whole("y", "float32", 64, 6),)
        )
    ]
    for name, rows in (("s", 64), ("r", 32), ("u", 32)):
        source = Ap("x", "float32", ((6, rows), (1, 6)))
        first.append(
            Inst(f"f{name}", "DMACopy", "DMA", (source,), (whole(name, "float32", rows, 6),))
        )
    for of in made.main.sets:
        if of.memory != "DRAM":
            out = whole(of.name, of.dtype, *of.shape)
            first.append(Inst(f"z{of.name}", "Memset", "DVE", (), (out,)))
    source = whole("x", "float32", 64, 6)
    for name in "ab":
        out = Ap(name, "float32", ((8, 64), (1, 6)))
        first.append(Inst(f"l{name}", "Load", "DMA", (source,), (out,)))
    return module(made.main.sets, [*first, *made.main.blocks[0].insts[:-1]])


def test_random_programs_give_the_values_of_program_order():
    x = np.random.default_rng(2).integers(-4, 5, (64, 6)).astype(np.float32)
    for number in range(30):
        made = flagged(through(filled(number)))
        (want,) = run(made, TRN2, [x])
        done = through(made, *[name for name in TAIL if name != "mm_acc_flags"])
        bytes_ = load("output.encode").apply(done, TRN2)
        for order in (None, 0, 1):
            (got,) = run_isa(bytes_, TRN2, [x], seed=order)
            np.testing.assert_array_equal(got, want, f"program {number}, order {order}")


@pytest.mark.parametrize("buffers", [4, 2])
def test_the_seed_runs_from_its_bytes(buffers: int):
    draw = np.random.default_rng(0)
    lhs = draw.integers(-4, 5, (128, 512)).astype(np.float32)
    rhs = draw.integers(-4, 5, (512, 256)).astype(np.float32)
    made = load("output.encode").apply(through(seed(buffers), *TAIL), TRN2)
    for order in (None, 0, 1, 2):
        (got,) = run_isa(made, TRN2, [lhs, rhs], seed=order)
        np.testing.assert_array_equal(got, lhs @ rhs)


def test_the_machine_reports_every_wait_that_is_taken_out():
    made = through(seed(2), *TAIL)
    insts = made.main.blocks[0].insts
    ones = [np.ones((128, 512), np.float32), np.ones((512, 256), np.float32)]
    taken = 0
    for n, inst in enumerate(insts):
        if not inst.waits:
            continue
        taken += 1
        cut = with_insts(made, (*insts[:n], attrs.evolve(inst, waits=()), *insts[n + 1 :]))
        with pytest.raises(NccError):
            run_isa(load("output.encode").apply(cut, TRN2), TRN2, ones)
    assert taken == 10


def softmax() -> Module:
    """The softmax of the rows of [128, 512], as the reference's dry run has it."""
    sets = (
        dram("x", "float32", (128, 512), "ExternalInput"),
        dram("y", "float32", (128, 512), "ExternalOutput"),
        chip("t", "float32", (128, 512), (0,)),
        chip("e", "float32", (128, 512), (2048,)),
        chip("m", "float32", (128, 1), (4096,)),
        chip("s", "float32", (128, 1), (4100,)),
        chip("r", "float32", (128, 1), (4104,)),
    )
    x, y, t, e = (whole(name, "float32", 128, 512) for name in "xyte")
    m, s, r = (whole(name, "float32", 128, 1) for name in "msr")
    most = (("axis", "X"), ("negate", True), ("op", "max"))
    power = (("acc", "ZeroAccumulate"), ("func", "Exp"))
    insts = [
        Inst("i0", "Load", "DMA", (x,), (t,)),
        Inst("i1", "TensorReduce", "DVE", (t,), (m,), most),
        Inst("i2", "Activation", "Activation", (t, m), (e,), power),
        Inst("i3", "ActivationReadAccumulator", "Activation", (), (s,)),
        Inst("i4", "Reciprocal", "DVE", (s,), (r,)),
        Inst("i5", "TensorScalarPtr", "DVE", (e, r), (e,), (("op0", "mult"),)),
        Inst("i6", "Save", "DMA", (e,), (y,)),
    ]
    return module(sets, insts)


def test_softmax_runs_from_its_bytes():
    x = np.random.default_rng(4).normal(size=(128, 512)).astype(np.float32)
    made = load("output.encode").apply(through(softmax(), *TAIL), TRN2)
    assert [len(s.bundles) for s in made.streams] == [0, 5, 0, 4, 2]
    power = np.exp(x.astype(np.float64) - x.max(axis=1, keepdims=True))
    for order in (None, 0, 1):
        (got,) = run_isa(made, TRN2, [x], seed=order)
        want = power / power.sum(axis=1, keepdims=True)
        assert np.abs(got - want).max() < 1e-7
